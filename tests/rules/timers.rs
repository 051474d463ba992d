//! Round trips and what follows from them: RFC 6298, RFC 7323 §4, and the tail loss probe of RFC 8985 §7.

use hopwise::memory::End;
use hopwise_core::Instant;

use super::flow::{Setup, ms};

const MSS: u64 = 1448;

/// An RTO after the path back was silent for three seconds in the midst of a transfer.
fn rto_after_silence(setup: &Setup) -> std::time::Duration {
    let mut flow = setup.start();
    flow.settle();
    flow.offer(20 * MSS);
    flow.world.path_from(End::B).is_down = true;
    flow.wait(ms(3000));
    flow.world.path_from(End::B).is_down = false;
    while flow.sender().snd_una != flow.sender().snd_nxt {
        flow.wait(ms(10));
    }
    let info = flow.sender();
    assert_eq!(flow.received, 20 * MSS);
    info.rto / (1 << info.backoff)
}

/// RFC 6298 §3: an ACK that covers something sent again says nothing of the round trip.
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
        flow.world.path_from(End::B).is_down = true;
        flow.offer(MSS);
        flow.wait(ms(70));
        flow.world.path_from(End::B).is_down = false;
        flow.offer(MSS);
        flow.wait(ms(300));
    }
    let rtt = flow.sender().path.rtt;
    assert!(rtt.smoothed < Some(ms(45)), "{rtt:?}");
}

/// A receiver that holds its ACKs is waited for: what it holds is part of the RTO.
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
    assert_eq!((flow.world.now() > Instant::ZERO, info.stats.timeouts), (true, 0));
}
