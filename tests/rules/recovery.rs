//! Fast recovery and its triggers: RFC 6582, 6675, 8985, 9937.

use hopwise_core::Instant;
use hopwise_core::tcp::TcpConfig;
use hopwise_core::trace::{DropReason, SentWhat, TraceEvent, TraceKind};
use hopwise_testing::memory::End;

use super::flow::{Setup, ms};

const MSS: u64 = 1448;

fn segments_after_recovery_began(events: &[TraceEvent]) -> Vec<SentWhat> {
    let began = events.iter().position(|event| matches!(event.kind, TraceKind::RecoveryBegan { .. }));
    let events = &events[began.expect("a loss was found")..];
    let at = events[0].now;
    let what = |event: &TraceEvent| match event.kind {
        TraceKind::Sent { what, .. } if event.now == at => Some(what),
        _ => None,
    };
    events.iter().filter_map(what).collect()
}

/// Two SACKed segments above the hole are less than the threshold: RACK's timer finds the loss, not an ACK.
#[test]
fn a_loss_that_the_reordering_timer_finds_lets_out_the_resend_and_no_burst() {
    let mut setup = Setup::over(ms(40));
    setup.senders = "[newreno:iw=3]";
    let mut flow = setup.start();
    flow.settle();
    flow.offer_and_lose(MSS);
    flow.offer(100 * MSS);
    flow.wait(ms(60));
    let events = flow.trace(End::A);
    assert_eq!(segments_after_recovery_began(&events), [SentWhat::Resent]);
}

/// RFC 3708: only a D-SACK for a retransmission contradicts the loss; the network doubles packets too.
#[test]
fn a_loss_stays_one_when_the_network_doubles_other_segments() {
    let mut flow = Setup::over(ms(40)).start();
    flow.settle();
    flow.offer_and_lose(MSS);
    flow.hosts.path_from(End::A).impairment.duplicate_ppm = 1_000_000;
    flow.offer(6 * MSS);
    flow.hosts.path_from(End::A).impairment.duplicate_ppm = 0;
    flow.wait(ms(500));
    let stats = flow.sender().stats;
    assert_eq!((flow.received, stats.fast_retransmits, stats.undone), (7 * MSS, 1, 0));
}

/// The same when the D-SACK comes long after the recovery.
#[test]
fn a_loss_stays_one_when_the_network_doubles_segments_later() {
    let mut flow = Setup::over(ms(40)).start();
    flow.settle();
    flow.offer_and_lose(MSS);
    flow.offer(6 * MSS);
    flow.wait(ms(500));
    flow.hosts.path_from(End::A).impairment.duplicate_ppm = 1_000_000;
    flow.offer(6 * MSS);
    flow.wait(ms(500));
    let stats = flow.sender().stats;
    assert_eq!((flow.received, stats.fast_retransmits, stats.undone), (13 * MSS, 1, 0));
}

/// RFC 8985 §6.2: reordering costs one needless recovery, taken back; then RACK waits.
#[test]
fn reordering_is_taken_for_loss_a_few_times_at_most() {
    for (by_ms, senders) in [(2, "[cubic]"), (5, "[cubic]"), (2, "[newreno]"), (5, "[newreno]")] {
        let mut setup = Setup::over(ms(40)).rate(100_000_000, 1000);
        (setup.senders, setup.bytes) = (senders, 10_000_000);
        (setup.to_b.impairment.reorder_ppm, setup.to_b.impairment.reorder_by) = (30_000, ms(by_ms));
        let flow = setup.run(Instant::from_secs(20));
        let stats = flow.sender().stats;
        assert!(flow.ended.is_some() && stats.fast_retransmits <= 3, "{by_ms} ms: {stats:?}");
        assert_eq!((stats.undone, stats.timeouts), (stats.fast_retransmits, 0));
    }
}

/// The queue of a path overflows in slow start: every other segment of a window is lost, the rest is kept.
#[test]
fn what_arrives_between_many_holes_is_kept() {
    for sack in [true, false] {
        let mut setup = Setup::over(ms(20)).rate(10_000_000, 300);
        let tcp = TcpConfig { sack, ..TcpConfig::ns2(1000) };
        (setup.senders, setup.tcp) = ("[newreno]", [tcp.clone(), tcp]);
        setup.bytes = 4_000_000;
        let mut flow = setup.run(Instant::from_secs(60));
        let lost = flow.hosts.lost_from(End::A);
        let refused = flow.count(End::B, |kind| *kind == TraceKind::Dropped(DropReason::TooManyHoles));
        assert!(lost > 100, "{lost}");
        assert_eq!(refused, 0);
    }
}

/// RFC 6582 §3.2: only the first partial ACK restarts the timer. A window with many losses then ends in a timeout and
/// slow start, not in a hole a round trip.
#[test]
fn without_sack_only_the_first_partial_ack_restarts_the_timer() {
    let mut flow = Setup::over(ms(100)).both(|tcp| tcp.sack = false).start();
    flow.settle();
    flow.offer(40 * MSS);
    flow.wait(ms(500));
    let began = flow.hosts.now();
    for _ in 0..10 {
        flow.offer_and_lose(MSS);
        flow.offer(MSS);
    }
    while flow.received < 60 * MSS {
        flow.wait(ms(10));
    }
    assert_eq!(flow.sender().stats.timeouts, 1);
    assert!(flow.hosts.now() < began + ms(900), "{}", flow.hosts.now());
}

/// RFC 3522 §3.2: the ACK has to be for a retransmission of this recovery. Those of the one before are still under way
/// when it begins, and their timestamps are older.
#[test]
fn a_resend_of_the_recovery_before_denies_nothing() {
    for rate in [4_000_000, 10_000_000, 20_000_000] {
        let mut setup = Setup::over(ms(100)).rate(rate, 100);
        setup = setup.both(|tcp| tcp.recv_buffer.initial = tcp.recv_buffer.max);
        setup.bytes = rate * 10 / 8;
        let flow = setup.run(Instant::from_secs(60));
        let stats = flow.sender().stats;
        assert!(flow.ended.is_some() && stats.fast_retransmits < 10, "{rate}: {stats:?}");
        assert_eq!((stats.undone, stats.timeouts), (0, 0), "{rate}");
    }
}

/// A timeout within a recovery finds recent retransmissions: the arrival of the first one does not show that nothing
/// was lost.
#[test]
fn a_timeout_within_a_recovery_is_not_denied_by_what_that_sent_again() {
    let mut setup = Setup::over(ms(20)).rate(100_000_000, 50).both(|tcp| tcp.sack = false);
    (setup.senders, setup.bytes) = ("[newreno]", 3_000_000);
    let flow = setup.run(Instant::from_secs(20));
    let stats = flow.sender().stats;
    assert!(flow.ended.is_some());
    // If denied, it would be followed by one for every few segments of the window.
    assert!(stats.undone == 0 && stats.timeouts <= 2, "{stats:?}");
}
