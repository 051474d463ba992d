//! The goodput of a flow compared with the theory of its sender.

use std::cell::RefCell;
use std::rc::Rc;

use hopwise_core::tcp::TcpConfig;
use hopwise_core::wire::{Checksums, IpView, TcpView};
use hopwise_core::{Instant, Seq};
use hopwise_testing::memory::End;

use super::flow::{Setup, ms};

const MSS: u64 = 1448;

/// Percent of the rate, with headers, from the third second on; no timer runs out on the path.
fn utilisation(setup: &Setup, bits_per_second: u64) -> u64 {
    let mut flow = setup.start();
    flow.offer(1 << 40);
    flow.run(Instant::from_secs(3));
    let before = flow.received;
    flow.run(Instant::from_secs(9));
    assert_eq!(flow.sender().stats.timeouts, 0, "{setup:?}");
    (flow.received - before) * 8 * 1500 / MSS / 6 * 100 / bits_per_second
}

/// A queue of 0.3 bandwidth-delay products is full at the peak of the sawtooth and empty for half of it. A sender that
/// halves reaches 90 %, one that keeps 0.7 more. A queue of three products never runs empty.
#[test]
fn a_clean_path_is_filled() {
    let rate = 20_000_000;
    for (senders, queue_packets, least) in
        [("[cubic]", 10, 95), ("[newreno]", 10, 86), ("[cubic]", 100, 99), ("[newreno]", 100, 99)]
    {
        let mut setup = Setup::over(ms(20)).rate(rate, queue_packets);
        setup.senders = senders;
        let percent = utilisation(&setup, rate);
        assert!(percent >= least, "{senders} over {queue_packets} packets: {percent} %");
    }
}

/// RFC 9406: growing round trips end slow start before the queue of 300 packets overflows. A loss ends it if not, and
/// takes a good part of the last window.
#[test]
fn slow_start_ends_before_the_queue_overflows() {
    for (senders, lost) in [
        ("[newreno:hystart=on]", 0..=3),
        ("[cubic:hystart=on]", 0..=3),
        ("[newreno]", 100..=1_000),
        ("[cubic]", 100..=1_000),
    ] {
        let mut setup = Setup::over(ms(20)).rate(10_000_000, 300);
        let tcp = TcpConfig { sack: true, ..TcpConfig::ns2(1000) };
        (setup.senders, setup.tcp, setup.bytes) = (senders, [tcp.clone(), tcp], 2_000_000);
        let flow = setup.run(Instant::from_secs(60));
        let found = flow.hosts.lost_from(End::A);
        assert!(flow.ended.is_some() && lost.contains(&found), "{senders}: {found}");
    }
}

/// The receiver's window is no reason to lose more than the queue cannot take: recovery needs room above the hole.
#[test]
fn slow_start_ends_in_one_recovery() {
    let mut setup = Setup::over(ms(20)).rate(100_000_000, 50);
    (setup.senders, setup.bytes) = ("[newreno]", 3_000_000);
    let flow = setup.run(Instant::from_secs(20));
    let stats = flow.sender().stats;
    assert!(flow.ended.is_some());
    assert_eq!((stats.fast_retransmits, stats.timeouts), (1, 0), "{stats:?}");
}

/// The buffer has room for all that the window promised, however many ACKs rounded it up. Refused bytes would have to
/// be sent again.
#[test]
fn a_reader_that_takes_little_at_a_time_lets_nothing_be_sent_twice() {
    for round_trip_ms in [10, 20, 50, 100] {
        let mut setup = Setup::over(ms(round_trip_ms));
        (setup.read_bytes, setup.read_every, setup.bytes) = (100, ms(40), 80_000);
        let flow = setup.run(Instant::from_secs(60));
        let stats = flow.sender().stats;
        assert!(flow.ended.is_some());
        assert_eq!((stats.segments_retransmitted, stats.timeouts), (0, 0), "{round_trip_ms} ms: {stats:?}");
    }
}

/// RFC 9293 SHLD-14, also where the window is in units of 128 bytes, and segments are no multiples of these.
#[test]
fn the_right_edge_of_the_window_never_moves_back() {
    for (mtu, read_bytes, receiver) in [1500, 1492, 1280, 1100].into_iter().flat_map(|mtu| {
        [(mtu, 0, "immediate"), (mtu, 20_000, "immediate"), (mtu, 3_000, "delayed"), (mtu, 70_000, "delayed")]
    }) {
        let mut setup = Setup::over(ms(20)).rate(100_000_000, 200);
        (setup.mtu, setup.receiver, setup.bytes) = ([mtu; 2], receiver, 600_000);
        (setup.read_bytes, setup.read_every) = (read_bytes, ms(7));
        let edges = Rc::new(RefCell::new(Vec::new()));
        let told = Rc::clone(&edges);
        let tap = move |_, from, packet: &[u8], _| {
            if from == End::B {
                told.borrow_mut().extend(right_edge(packet));
            }
        };
        let mut flow = setup.start_tapped(Some(Box::new(tap)));
        assert!(flow.run(Instant::from_secs(60)), "{setup:?}");
        let edges = edges.borrow();
        let back = edges.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert_eq!(back, 0, "of {} ACKs, MTU {mtu}, {read_bytes} at a time, {receiver}", edges.len());
    }
}

/// The right edge in an ACK, in units of 128 bytes, as [`Setup`]'s buffers give.
fn right_edge(packet: &[u8]) -> Option<Seq> {
    let ip = IpView::parse(packet).expect("a packet");
    let segment = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("a segment");
    let is_scaled = segment.options.window_scale.is_none();
    is_scaled.then(|| segment.ack + (u32::from(segment.window) << 7))
}

/// Mathis: MSS / RTT · √(3 / 2dp). Timeouts and the round-up to whole segments may take a third.
#[test]
fn goodput_under_loss_follows_the_square_root() {
    for (loss_ppm, receiver, per_rtt) in [
        (10_000, "immediate", 122),
        (10_000, "delayed", 87),
        (1_000, "immediate", 387),
        (1_000, "delayed:d=4", 194),
    ] {
        let mut setup = Setup::over(ms(40));
        (setup.senders, setup.receiver, setup.to_b.impairment.loss_ppm) = ("[newreno]", receiver, loss_ppm);
        setup.bytes = 20_000_000 / u64::from(loss_ppm / 1_000);
        let flow = setup.run(Instant::from_secs(200));
        // Tenths of a segment in a round trip, with 25 of these a second.
        let theory = per_rtt * MSS * 8 * 25 / 10;
        let percent = flow.goodput() * 100 / theory;
        assert!((65..=150).contains(&percent), "{receiver} at {loss_ppm} ppm: {percent} % of {theory}");
    }
}
