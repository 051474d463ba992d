//! Packet sizes: RFC 9293 §3.7, RFC 1191, RFC 4821, RFC 6691.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::tcp::TcpConfig;
use hopwise_core::trace::{MtuHow, TraceKind};
use hopwise_testing::memory::End;

use super::flow::{Flow, Setup, ms};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A flow that has found out that its path swallows everything above 1280 octets.
fn over_narrow_path() -> Flow {
    let mut setup = Setup::over(ms(20));
    setup.to_b.mtu = 1280;
    let mut flow = setup.start();
    flow.settle();
    flow.offer(50_000);
    flow.wait(secs(10));
    assert_eq!((flow.received, flow.sender().path_mtu), (50_000, 1280));
    flow
}

/// RFC 4821 §7.3: a lost probe proves nothing, even if its bytes arrive later.
#[test]
fn what_arrives_in_smaller_pieces_proves_no_larger_packet() {
    let mut flow = over_narrow_path();
    flow.wait(secs(600));
    flow.offer_and_lose(1_000);
    flow.offer_and_lose(4_000);
    flow.wait(secs(10));
    flow.offer(50_000);
    flow.wait(secs(20));
    let is_proof = |kind: &TraceKind| matches!(kind, TraceKind::PathMtu { how: MtuHow::Probe, .. });
    assert_eq!((flow.received, flow.count(End::A, is_proof)), (105_000, 0));
}

/// RFC 1191 §6.3: larger packets are tried again, and again.
#[test]
fn a_path_that_grows_is_used_after_a_probe_that_came_too_early() {
    let mut flow = over_narrow_path();
    for _ in 0..130 {
        flow.offer(10_000);
        flow.wait(secs(5));
    }
    assert_eq!(flow.sender().path_mtu, 1280);
    flow.hosts.path_from(End::A).mtu = u16::MAX;
    for _ in 0..130 {
        flow.offer(10_000);
        flow.wait(secs(5));
    }
    assert_eq!(flow.sender().path_mtu, 1500);
}

/// Silence may also be an outage: when the path is back, so is its size.
#[test]
fn an_outage_leaves_no_small_packets_behind() {
    let mut flow = Setup::over(ms(20)).start();
    flow.settle();
    flow.offer_and_lose(20_000);
    flow.hosts.path_from(End::A).is_down = true;
    flow.wait(secs(20));
    flow.hosts.path_from(End::A).is_down = false;
    flow.wait(secs(30));
    for _ in 0..20 {
        flow.offer(20_000);
        flow.wait(secs(1));
    }
    assert_eq!((flow.received, flow.sender().path_mtu), (420_000, 1500));
}

/// ns-2 knows no packet sizes: an outage changes nothing about a segment.
#[test]
fn the_ns2_profile_never_changes_its_segments() {
    let mut setup = Setup::over(ms(20));
    setup.tcp = [TcpConfig::ns2(1000), TcpConfig::ns2(1000)];
    let mut flow = setup.start();
    flow.settle();
    flow.offer_and_lose(20_000);
    flow.hosts.path_from(End::A).is_down = true;
    flow.wait(secs(60));
    assert_eq!(flow.sender().snd_mss, 1000);
}

/// The least that IPv4 allows is 68 octets (RFC 791).
// shows: MUST-16
#[test]
fn segments_fit_the_smallest_link() {
    for timestamps in [true, false] {
        let mut setup = Setup::over(ms(20)).both(|tcp| tcp.timestamps = timestamps);
        (setup.mtu, setup.bytes) = ([68, 68], 5_000);
        let longest = Arc::new(Mutex::new(0));
        let seen = Arc::clone(&longest);
        let tap = move |_, _, packet: &[u8], _| {
            let mut longest = seen.lock().expect("one thread");
            *longest = packet.len().max(*longest);
        };
        let mut flow = setup.start_tapped(Some(Box::new(tap)));
        flow.run(Instant::from_secs(60));
        assert!(flow.ended.is_some());
        assert_eq!(*longest.lock().expect("one thread"), 68);
    }
}
