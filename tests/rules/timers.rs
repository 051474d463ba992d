//! Round trips and their effects: RFC 6298, RFC 7323 §4, and the tail loss probe of RFC 8985 §7.

use hopwise_core::Instant;
use hopwise_testing::memory::End;

use super::flow::{Setup, ms};

const MSS: u64 = 1448;

/// The RTO after the reverse path was silent for three seconds within a transfer.
fn rto_after_silence(setup: &Setup) -> std::time::Duration {
    let mut flow = setup.start();
    flow.settle();
    flow.offer(20 * MSS);
    flow.hosts.path_from(End::B).is_down = true;
    flow.wait(ms(3000));
    flow.hosts.path_from(End::B).is_down = false;
    while flow.sender().snd_una != flow.sender().snd_nxt {
        flow.wait(ms(10));
    }
    let info = flow.sender();
    assert_eq!(flow.received, 20 * MSS);
    info.rto / (1 << info.backoff)
}

/// RFC 6298 §3: an ACK that covers a retransmission gives no round trip.
#[test]
fn lost_acks_do_not_stretch_the_rto() {
    let setup = Setup::over(ms(40));
    assert_eq!(rto_after_silence(&setup), ms(200));
    let without = setup.both(|tcp| tcp.timestamps = false);
    assert_eq!(rto_after_silence(&without), ms(200));
}

/// RFC 7323 §4.1: the echo is of the segment that the ACK was sent for, though ACKs before it were lost.
#[test]
fn a_lost_ack_before_it_does_not_stretch_a_sample() {
    let mut setup = Setup::over(ms(40));
    setup.receiver = "immediate";
    let mut flow = setup.start();
    flow.settle();
    for _ in 0..20 {
        flow.hosts.path_from(End::B).is_down = true;
        flow.offer(MSS);
        flow.wait(ms(70));
        flow.hosts.path_from(End::B).is_down = false;
        flow.offer(MSS);
        flow.wait(ms(300));
    }
    let rtt = flow.sender().path.rtt;
    assert!(rtt.smoothed < Some(ms(45)), "{rtt:?}");
}

/// The sender waits for a receiver that holds its ACKs: the hold is part of the RTO.
#[test]
fn a_receiver_that_holds_is_waited_for() {
    let mut setup = Setup::over(ms(40));
    setup.receiver = "delayed:d=8,hold=150ms";
    let mut flow = setup.start();
    flow.settle();
    for _ in 0..20 {
        flow.offer(2 * MSS);
        flow.wait(ms(400));
    }
    let info = flow.sender();
    assert!(info.rto >= ms(200) && info.path.rtt.smoothed > Some(ms(150)), "{:?}", info.path.rtt);
    assert_eq!((flow.hosts.now() > Instant::ZERO, info.stats.timeouts), (true, 0));
}

/// RFC 8985 §7.2: a probe that would come after the RTO takes its place.
#[test]
fn a_lost_tail_is_probed_also_where_the_rto_is_short() {
    let mut flow = Setup::over(ms(400)).start();
    flow.settle();
    for _ in 0..30 {
        flow.offer(2 * MSS);
        flow.wait(ms(1000));
    }
    assert!(flow.sender().rto < ms(500));
    flow.offer(3 * MSS);
    flow.offer_and_lose(MSS);
    flow.wait(ms(3000));
    let stats = flow.sender().stats;
    assert_eq!((flow.received, stats.tail_probes, stats.timeouts), (64 * MSS, 1, 0));
}

/// RFC 8985 §7.4: an ACK that was only held leaves before the probe comes, the D-SACK follows it.
#[test]
fn a_probe_that_was_not_needed_takes_nothing_from_the_window() {
    let mut setup = Setup::over(ms(100));
    setup.receiver = "delayed:d=8,hold=180ms";
    let mut flow = setup.start();
    flow.settle();
    flow.offer(2 * MSS);
    flow.wait(ms(1000));
    let info = flow.sender();
    assert_eq!((info.stats.tail_probes, info.stats.timeouts), (1, 0));
    flow.offer(8 * MSS);
    flow.wait(ms(1000));
    assert_eq!((flow.received, flow.sender().ssthresh_bytes), (10 * MSS, u64::MAX));
}

/// RFC 8985 §7.4: a probe that repaired a loss hides it; the window is reduced as though it had been seen.
#[test]
fn a_probe_that_was_needed_reduces_the_window_once_more_is_acknowledged() {
    let mut flow = Setup::over(ms(100)).start();
    flow.settle();
    flow.offer(3 * MSS);
    flow.offer_and_lose(MSS);
    flow.wait(ms(1000));
    let info = flow.sender();
    assert_eq!((info.stats.tail_probes, info.stats.timeouts), (1, 0));
    flow.offer(2 * MSS);
    flow.wait(ms(1000));
    assert_eq!(flow.received, 6 * MSS);
    assert!(flow.sender().ssthresh_bytes < 10 * MSS);
}
