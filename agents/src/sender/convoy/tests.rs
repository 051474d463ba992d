use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{AckRequest, HopSource, LossKind, Recovered, SentKind, Turn};

use crate::Profile;
use crate::sender::train::SharedPath;
use crate::testkit::sender::{Bench, MSS};

const RTT: Duration = Duration::from_millis(20);

fn bench(hops: u8) -> Bench {
    member(hops, &SharedPath::default())
}

fn member(hops: u8, shared: &SharedPath) -> Bench {
    let mut bench = Bench::beside("convoy", Profile::Modern, shared).with_rtt(RTT);
    bench.unsent_bytes = 1_000_000;
    bench.path.hops_to_peer = Some((hops, HopSource::Ttl));
    (bench.path.rtt.latest, bench.path.rtt.min) = (Some(RTT / 4), Some(RTT / 4));
    bench
}

fn asked(bench: &mut Bench) -> u8 {
    match bench.note().ack_request {
        Some(AckRequest::After(left)) => left,
        other => panic!("{other:?} asks for nothing"),
    }
}

fn may_go_on(bench: &mut Bench) -> bool {
    let now = bench.now;
    let allowed = bench.allowed();
    allowed.new_from <= now && allowed.flight_bytes >= bench.flight.bytes + u64::from(MSS)
}

/// Sends all that may leave now. Returns the numbers that its segments carry.
fn burst(bench: &mut Bench) -> Vec<u8> {
    let mut numbers = Vec::new();
    while may_go_on(bench) {
        numbers.push(asked(bench));
        bench.send(1);
        assert!(numbers.len() <= 256, "no end of it");
    }
    numbers
}

/// A burst whose segments come in runs of at most `most`. Returns its length, and whether it was a survey.
fn whole(bench: &mut Bench, most: u32) -> (usize, bool) {
    whole_over_wire(bench, most, Duration::ZERO)
}

/// An aggregate of 28 segments takes `RTT` on the air, and each burst the wire's round trip beside its air.
fn whole_over_wire(bench: &mut Bench, most: u32, wire: Duration) -> (usize, bool) {
    let numbers = burst(bench);
    let round_trip = wire + RTT * numbers.len() as u32 / 28;
    (bench.path.rtt.smoothed, bench.path.rtt.min) = (Some(round_trip), Some(wire + RTT / 4));
    bench.wait(round_trip);
    while bench.flight.segments > 0 {
        bench.ack(bench.flight.segments.min(most));
    }
    (numbers.len(), numbers.iter().all(|number| *number == 0))
}

/// A flow that has just learnt that aggregates have 28 segments.
fn taught(hops: u8) -> Bench {
    taught_beside(hops, &SharedPath::default())
}

fn taught_beside(hops: u8, shared: &SharedPath) -> Bench {
    let mut bench = member(hops, shared);
    let bursts: Vec<_> = (0..5).map(|_| whole(&mut bench, 28)).collect();
    assert_eq!(bursts, [(10, true), (20, true), (40, true), (56, true), (56, true)]);
    bench
}

/// The same, once paced bursts are tried.
fn in_paced() -> Bench {
    in_paced_beside(&SharedPath::default())
}

fn in_paced_beside(shared: &SharedPath) -> Bench {
    let mut bench = taught_beside(8, shared);
    let bursts =
        (0..1_000).take_while(|_| bench.gauge("burst_segments") != Some(12) && whole(&mut bench, 28).0 > 0);
    assert!((40..200).contains(&bursts.count()), "after a second and more");
    bench
}

#[test]
fn bursts_grow_as_a_window_does_until_they_come_in_pieces() {
    let mut bench = taught(3);
    assert_eq!(bench.gauge("aggregate_segments"), Some(28));
    let bursts: Vec<_> = (0..8).map(|_| whole(&mut bench, 28)).collect();
    let asks = [(28, false), (56, true), (28, false), (28, false), (56, true)];
    assert_eq!(bursts[..5], asks, "it asks again, and ever more seldom");
}

#[test]
fn a_whole_burst_counts_down_and_the_next_one_waits_for_its_ack() {
    let mut bench = taught(3);
    assert_eq!(burst(&mut bench), (1..=28).rev().collect::<Vec<u8>>());
    assert!(!may_go_on(&mut bench));
    bench.wait(RTT);
    bench.ack(20);
    assert!(!may_go_on(&mut bench), "the rest of the aggregate is under way");
    bench.ack(8);
    assert!(may_go_on(&mut bench));
}

#[test]
fn what_is_learnt_changes_with_the_radio() {
    let mut bench = taught(3);
    let surveys = (0..800).map(|_| whole(&mut bench, 12)).filter(|(_, is_survey)| *is_survey);
    assert!(surveys.count() > 5);
    assert_eq!(bench.gauge("aggregate_segments"), Some(12));
    assert!((0..800).all(|_| whole(&mut bench, 28).0 > 0));
    assert_eq!(bench.gauge("aggregate_segments"), Some(28));
}

#[test]
fn a_flow_with_little_data_asks_with_the_last_segment_that_is_ready() {
    let mut bench = taught(3);
    bench.unsent_bytes = 3 * u64::from(MSS);
    let mut numbers = Vec::new();
    for left in (0..3).rev() {
        numbers.push(asked(&mut bench));
        bench.send(1);
        bench.unsent_bytes = left * u64::from(MSS);
    }
    assert_eq!(numbers, [3, 2, 1]);
    bench.unsent_bytes = 100_000;
    assert!(may_go_on(&mut bench), "the burst has room");
    bench.ack(3);
    assert!(burst(&mut bench).len() >= 28);
}

#[test]
fn where_segments_come_one_by_one_it_is_train() {
    let mut bench = bench(3);
    for _ in 0..3 {
        assert_eq!(
            bench.gauge("train_segments"),
            None,
            "one burst may have come at a rate that is only tried"
        );
        assert_eq!(whole(&mut bench, 1), (10, true));
    }
    assert_eq!(bench.gauge("train_segments"), Some(1));
    // The first train has four segments at .6 of the handshake's round trip.
    assert_eq!(asked(&mut bench), 4);
    bench.send(1);
    let gap = bench.allowed().new_from.since(bench.now);
    assert_eq!(gap, Duration::from_millis(3));
}

#[test]
fn runs_of_two_leave_it_in_doubt_for_some_bursts() {
    let mut bench = bench(3);
    assert!((0..8).all(|_| whole(&mut bench, 2) == (10, true)));
    assert_eq!(bench.gauge("train_segments"), None);
    whole(&mut bench, 3);
    assert!(bench.gauge("train_segments").is_some());
}

#[test]
fn with_a_peer_that_takes_no_requests_it_is_cubic() {
    let mut bench = bench(3);
    let mut cubic = Bench::new("cubic").with_rtt(RTT);
    for bench in [&mut bench, &mut cubic] {
        (bench.ack_requests, bench.unsent_bytes) = (None, 1_000_000);
        (0..6).for_each(|_| bench.round(2));
        bench.lose(LossKind::Fast);
        bench.recover(Recovered::Full);
        bench.round(2);
    }
    assert_eq!(bench.allowed(), cubic.allowed());
    assert_eq!(bench.note(), cubic.note());
    assert_eq!(bench.wanted_turn(), None);
}

/// A paced group leaves, and its ACK comes `rtt` after its last segment. Returns the numbers of the group.
fn group(bench: &mut Bench, rtt: Duration) -> Vec<u8> {
    let mut numbers = Vec::new();
    loop {
        bench.now = bench.now.max(bench.allowed().new_from);
        numbers.push(asked(bench));
        bench.send(1);
        if numbers.last() == Some(&1) {
            break;
        }
    }
    bench.wait(rtt);
    bench.path.rtt.smoothed = Some(rtt);
    bench.ack(numbers.len() as u32);
    numbers
}

fn gap_us(bench: &Bench) -> u64 {
    bench.gauge("gap_us").expect("a gauge")
}

#[test]
fn over_many_hops_parts_of_aggregates_leave_a_gap_apart_and_those_of_100_ms_share_an_ack() {
    let mut bench = in_paced();
    let began = bench.now;
    assert_eq!(burst(&mut bench), (109..=120).rev().collect::<Vec<u8>>());
    let gap = bench.allowed().new_from.since(began);
    assert_eq!(gap, RTT / 2, "a little less than a whole aggregate carried");
    bench.now += gap;
    assert_eq!(burst(&mut bench), (97..=108).rev().collect::<Vec<u8>>());
}

#[test]
fn the_gap_shrinks_until_a_queue_comes_and_follows_it_from_then_on() {
    let mut bench = in_paced();
    let first = gap_us(&bench);
    for _ in 0..5 {
        assert_eq!(group(&mut bench, RTT).len(), 120);
    }
    let quick = gap_us(&bench);
    assert!(quick < first * 3 / 4, "{quick} of {first}");
    group(&mut bench, RTT * 4);
    let steady = gap_us(&bench);
    assert!(steady > quick);
    group(&mut bench, RTT * 4);
    assert!(gap_us(&bench) > steady, "a queue");
    let queued = gap_us(&bench);
    group(&mut bench, RTT);
    let change = gap_us(&bench) as f64 / queued as f64;
    assert!((0.98..1.0).contains(&change), "{change}: one in a hundred at the most");
}

#[test]
fn a_loss_takes_no_window_and_leaves_the_gap() {
    let mut bench = in_paced();
    (0..2).for_each(|_| drop(group(&mut bench, RTT)));
    group(&mut bench, RTT * 6);
    let gap = gap_us(&bench);
    burst(&mut bench);
    let window = bench.allowed().flight_bytes;
    assert_eq!(bench.lose(LossKind::Fast).ssthresh, window);
    bench.lose(LossKind::Timeout { nth: 1 });
    assert_eq!(gap_us(&bench), gap);
}

#[test]
fn a_loss_in_the_beginning_takes_two_steps_back_and_does_not_end_it() {
    let mut bench = in_paced();
    (0..5).for_each(|_| drop(group(&mut bench, RTT)));
    let quick = gap_us(&bench);
    burst(&mut bench);
    bench.lose(LossKind::Fast);
    let after = gap_us(&bench) as f64 / quick as f64;
    assert!((1.15..1.16).contains(&after), "{after}");
    bench.recover(Recovered::Full);
    bench.ack(bench.flight.segments);
    (0..4).for_each(|_| drop(group(&mut bench, RTT)));
    assert!(gap_us(&bench) < quick);
}

#[test]
fn paced_flows_of_a_host_share_the_window() {
    let shared = SharedPath::default();
    let mut first = in_paced_beside(&shared);
    let mut other = member(8, &shared);
    let alone = other.allowed().flight_bytes;
    burst(&mut first);
    assert_eq!(other.allowed().flight_bytes, alone - first.flight.bytes);
    drop(first);
    assert_eq!(other.allowed().flight_bytes, alone, "a flow that ends leaves nothing in flight");
}

#[test]
fn a_retransmission_is_acknowledged_with_what_it_releases() {
    let mut bench = taught(3);
    burst(&mut bench);
    bench.lose(LossKind::Fast);
    bench.sent(bench.count(1), SentKind::Resent);
    assert_eq!(bench.note_at(bench.snd_una).ack_request, Some(AckRequest::After(0)));
    bench.wait(RTT);
    bench.ack(bench.flight.segments);
    assert!(burst(&mut bench).len() >= 28, "and the burst after it is as long");
}

/// Goodput in segments a second for each regime. The gap has a floor, and the path no queue.
fn goodput(bench: &mut Bench, until: Duration, whole_rtt: Duration, paced_rtt: Duration) -> u32 {
    let mut groups = 0;
    let end = bench.now + until;
    while bench.now < end {
        if bench.gauge("burst_segments") == Some(12) {
            groups += 1;
            group(bench, paced_rtt);
        } else {
            whole_over_wire(bench, 28, whole_rtt - RTT.min(whole_rtt));
        }
    }
    groups
}

#[test]
fn up_to_three_hops_no_paced_burst_is_tried_and_over_four_they_are_from_time_to_time() {
    let mut short = taught(3);
    assert_eq!(goodput(&mut short, Duration::from_secs(40), RTT, RTT * 20), 0);
    let mut long = taught(4);
    let tried = goodput(&mut long, Duration::from_secs(60), RTT, RTT * 20);
    assert!((1..60).contains(&tried), "{tried}");
    assert_eq!(long.gauge("burst_segments"), Some(28));
}

/// A flow over one hop behind a wire, once paced bursts are tried.
fn in_paced_over_wire(wire: Duration) -> Bench {
    let mut bench = bench(1);
    let bursts = (0..1_000).take_while(|_| {
        bench.gauge("burst_segments") != Some(12) && whole_over_wire(&mut bench, 28, wire).0 > 0
    });
    assert!((10..100).contains(&bursts.count()), "after a second and more");
    bench
}

#[test]
fn behind_a_wire_paced_bursts_keep_the_air_of_one_hop_busy() {
    let wire = RTT * 4;
    let mut bench = in_paced_over_wire(wire);
    assert!((9_990..=10_000).contains(&gap_us(&bench)), "as for the air alone");
    (0..3).for_each(|_| drop(group(&mut bench, wire + RTT)));
    let held = (wire + RTT).as_micros() as u64 * 12 / gap_us(&bench);
    let flight = bench.allowed().flight_bytes / u64::from(MSS);
    assert!(flight.abs_diff(held + 120 + 12) < 2, "{flight}: the wire and a group are full");
}

#[test]
fn behind_a_wire_the_first_queue_asks_for_longer_aggregates() {
    let wire = RTT * 4;
    let mut bench = in_paced_over_wire(wire);
    group(&mut bench, wire + RTT);
    assert_ne!(asked(&mut bench), 0);
    group(&mut bench, (wire + RTT) * 4);
    assert_eq!(asked(&mut bench), 0, "a survey");
}

/// A survey then meets free air by chance, while whole aggregates wait.
#[test]
fn a_flow_the_other_way_is_no_wire() {
    let mut bench = taught(3);
    for _ in 0..300 {
        burst(&mut bench);
        bench.path.rtt.smoothed = Some(RTT * 2);
        bench.wait(RTT * 2);
        while bench.flight.segments > 0 {
            bench.ack(bench.flight.segments.min(28));
        }
    }
    assert_eq!(bench.gauge("burst_segments"), Some(28));
}

/// A host that holds each burst up for a quarter of its air time.
#[test]
fn a_slow_host_is_a_wire_unless_data_comes_from_the_peer() {
    for arrivals in [0, 1] {
        let mut bench = taught(3);
        let is_tried = (0..300).any(|_| {
            bench.path.data_arrivals += arrivals;
            whole_over_wire(&mut bench, 28, RTT / 4);
            bench.gauge("burst_segments") == Some(12)
        });
        assert_eq!(is_tried, arrivals == 0, "{arrivals} segments from the peer for each burst");
    }
}

#[test]
fn paced_bursts_that_carry_more_stay() {
    let mut bench = taught(5);
    goodput(&mut bench, Duration::from_secs(20), RTT * 20, RTT);
    assert_eq!(bench.gauge("burst_segments"), Some(12));
}

#[test]
fn flows_of_a_host_know_the_aggregate_together_and_take_turns_by_the_burst() {
    let shared = SharedPath::default();
    let mut flows: Vec<_> = (0..2).map(|_| member(3, &shared)).collect();
    flows[0].turn = Turn::Alone;
    assert!((0..5).all(|_| whole(&mut flows[0], 28).0 > 0));
    let other = &mut flows[1];
    other.turn = Turn::Holding;
    let began = other.snd_una;
    assert_eq!(other.wanted_turn(), Some(began));
    assert_eq!(burst(other).len(), 28, "it need not learn it again");
    assert_eq!(other.wanted_turn(), Some(began), "until its ACK is in");
    other.ack(28);
    assert_eq!(other.wanted_turn(), Some(other.snd_una));
}

#[test]
fn a_few_segments_wait_for_nobody() {
    let mut bench = taught(3);
    bench.unsent_bytes = 5_000;
    assert_eq!(bench.wanted_turn(), None);
    bench.unsent_bytes = 50_000;
    assert!(bench.wanted_turn().is_some());
    bench.now = Instant::from_millis(900_000);
    bench.send(1);
    bench.lose(LossKind::Timeout { nth: 1 });
    assert_eq!(bench.wanted_turn(), None);
}
