//! The agents `train` at both ends of a path: their notes to each other arrive, and bound the data under way.

use hopwise_core::Instant;
use hopwise_core::agent::{AckRule, By};
use hopwise_core::trace::{Lacking, TraceKind};
use hopwise_testing::memory::End;

use super::flow::{Flow, Setup, ms};

/// 100 segments of 1448 bytes over 2 Mbit/s, the agents by name.
fn run(senders: &'static str, receiver: &'static str, change: impl Fn(&mut Setup)) -> Flow {
    let mut setup = Setup::over(ms(40)).rate(2_000_000, 50);
    (setup.senders, setup.receiver, setup.bytes) = (senders, receiver, 144_800);
    change(&mut setup);
    let flow = setup.run(Instant::from_secs(60));
    assert!(flow.ended.is_some(), "{setup:?}");
    flow
}

fn acks(flow: &mut Flow, wanted: impl Fn(By, AckRule) -> bool) -> usize {
    flow.count(End::B, |kind| matches!(kind, TraceKind::AckDecided { by, why, .. } if wanted(*by, why.rule)))
}

#[test]
fn every_ack_of_a_clean_path_was_asked_for() {
    let mut flow = run("[train]", "train", |_| {});
    let stats = flow.sender().stats;
    assert_eq!((stats.segments_retransmitted, stats.timeouts, stats.tail_probes), (0, 0, 0), "{stats:?}");
    let (all, asked) = {
        let mut decided = Vec::new();
        for event in flow.trace(End::B) {
            if let TraceKind::AckDecided { by: By::Agent, why, .. } = event.kind {
                decided.push(why.rule);
            }
        }
        (decided.len(), decided.iter().filter(|rule| **rule == AckRule::Asked).count())
    };
    assert_eq!(all, asked);
    assert!((5..=12).contains(&asked), "{asked} trains");
}

#[test]
fn a_peer_that_knows_rate_requests_alone_acknowledges_once_a_train_too() {
    let mut flow = run("[train]", "tarr:hold=490ms", |_| {});
    let lacks = |kind: &TraceKind| matches!(kind, TraceKind::Fallback(Lacking::RateRequest));
    assert_eq!(flow.count(End::A, lacks), 0);
    let asked = acks(&mut flow, |by, rule| by == By::Agent && rule == AckRule::Asked);
    assert!((5..=12).contains(&asked), "{asked} trains");
}

/// With the peer's notes, no end lacks rate requests: that would be a fallback without an alternative.
#[test]
fn whoever_tells_trains_lacks_nothing() {
    let mut flow = run("[train]", "train", |_| {});
    for end in [End::A, End::B] {
        assert_eq!(flow.count(end, |kind| matches!(kind, TraceKind::Fallback(_))), 0, "{end:?}");
    }
    let mut flow = run("[train]", "delayed", |_| {});
    let told = |kind: &TraceKind| matches!(kind, TraceKind::Fallback(Lacking::AckAfter));
    assert_eq!((flow.count(End::A, told), flow.sender().stats.timeouts), (1, 0));
}

/// The flight in the trace is the most that the agents saw, segment by segment. The path holds too few segments to
/// count as a wire.
#[test]
fn a_train_is_all_that_is_ever_in_flight() {
    for loss_ppm in [0, 20_000, 200_000] {
        let mut setup = Setup::over(ms(15)).rate(2_000_000, 50);
        (setup.senders, setup.receiver, setup.bytes) = ("[train]", "train", 400_000);
        setup.to_b.impairment.loss_ppm = loss_ppm;
        let mut flow = setup.start();
        let until = Instant::from_secs(300);
        while flow.ended.is_none() && flow.hosts.now() < until {
            flow.act();
            flow.hosts.step(until);
            let info = flow.sender();
            let train = info.gauges.iter().find(|(name, _)| *name == "train_segments");
            let train = train.map_or(64, |(_, segments)| *segments);
            // A tail probe may go beyond it (RFC 8985 §7.3).
            assert!(u64::from(info.flight.segments) <= train + 1, "{} of {train}", info.flight.segments);
        }
        assert!(flow.ended.is_some(), "{loss_ppm} ppm");
    }
}

/// A loss of one in fifty is repaired within its train: SACK reports it, and no timer runs out.
#[test]
fn what_is_lost_within_a_train_needs_no_timeout() {
    let mut flow = run("[train]", "train", |setup| {
        (setup.to_b.impairment.loss_ppm, setup.bytes, setup.seed) = (20_000, 600_000, 5);
    });
    let stats = flow.sender().stats;
    assert!(stats.segments_retransmitted >= 4, "{stats:?}");
    assert_eq!(stats.timeouts, 0, "{stats:?}");
    let waited = acks(&mut flow, |by, rule| by == By::Forced && rule == AckRule::Ceiling);
    assert_eq!(waited, 0, "the receiver's own hold ends before the ceiling");
}

/// Without SACK a sender needs three ACKs behind a hole. A train with two holes may end in a timeout.
#[test]
fn a_connection_without_sack_recovers_by_duplicate_acks() {
    let flow = run("[train]", "train", |setup| {
        *setup = setup.clone().both(|tcp| tcp.sack = false);
        (setup.to_b.impairment.loss_ppm, setup.bytes, setup.seed) = (20_000, 600_000, 5);
    });
    let stats = flow.sender().stats;
    assert!(stats.fast_retransmits >= 3, "{stats:?}");
}

/// Three timeouts in a row may be a fade; a sender that goes on at an unchanged pace after them floods a dead path.
#[test]
fn a_dead_path_is_asked_twice_as_seldom_each_time_from_the_fourth_timeout_on() {
    let mut setup = Setup::over(ms(40)).rate(2_000_000, 50);
    (setup.senders, setup.receiver) = ("[train]", "train");
    let mut flow = setup.start();
    flow.settle();
    flow.offer(100_000);
    flow.wait(ms(300));
    flow.trace(End::A);
    flow.hosts.path_from(End::A).is_down = true;
    flow.wait(ms(300_000));
    let mut waits = Vec::new();
    for event in flow.trace(End::A) {
        if let TraceKind::Timeout { rto_us, .. } = event.kind {
            waits.push(rto_us);
        }
    }
    let first = waits[0];
    let expected = |nth: u32| first.saturating_mul(1 << nth.saturating_sub(3)).min(60_000_000);
    for (nth, wait) in (0..).zip(&waits) {
        // Traced times are cut to microseconds before they are doubled here.
        assert!(wait.abs_diff(expected(nth)) <= 64, "{nth}: {waits:?}");
    }
    assert!((8..20).contains(&waits.len()), "{waits:?}");
}

/// A minute of a wire, its beginning aside; the queue before it holds half a round trip, a sixth, or two.
#[test]
fn over_a_wire_it_is_as_quick_as_newreno() {
    let wires = [(3_000_000, ms(30), 50), (4_000_000, ms(60), 10), (5_000_000, ms(400), 1_000)];
    for (rate, round_trip, queue) in wires {
        let took = |senders, receiver| {
            let mut setup = Setup::over(round_trip).rate(rate, queue);
            (setup.senders, setup.receiver, setup.bytes) = (senders, receiver, rate * 60 / 8);
            let flow = setup.run(Instant::from_secs(600));
            flow.ended.expect("all of it").0 / 1_000_000
        };
        let (ours, theirs) = (took("[train]", "train"), took("[newreno]", "delayed"));
        assert!(ours <= theirs * 102 / 100 + 5_000, "{rate} bit/s: {ours} ms, {theirs} ms");
    }
}
