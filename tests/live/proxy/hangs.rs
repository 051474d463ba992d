//! A proxy that hangs: its watcher ends it, and packets go on without it.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::Clock;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrV4, SocketFlags, SocketType, connect, socket_with};

use super::{By, Network, ways};
use crate::world::{side_by_side, until, within_patience};

#[test]
fn a_proxy_that_hangs_is_ended_by_its_watcher_and_no_connection_ends() {
    side_by_side(ways(name_of_test!()), |by| {
        let mut network = Network::by("proxy-hangs", by);
        network.watchdog = "5s";
        let mut running = network.proxy("ack-hold:mode=kick", "none");
        let transfer = network.transfer("cubic");
        transfer.wait_for(1_000_000);
        let stop = rustix::process::Signal::STOP;
        let process = rustix::process::Pid::from_child(&running.0);
        rustix::process::kill_process(process, stop).expect("it is stopped");
        within_patience(until(|| running.0.try_wait().expect("a child").is_some()));
        transfer.wait_for(1_000_000);
        within_patience(until(|| network.log().contains("the daemon hangs and is killed")));
    });
}

/// The times from the stop of a proxy with the default patience: until its watcher has killed it, and until the first
/// bytes of a transfer pass without it. `None` if the watcher ended it before, as on a machine that is busy.
fn gap_of_a_hang(by: By) -> Option<[Duration; 2]> {
    let mut network = Network::by("proxy-gap", by);
    network.watchdog = "1s";
    let mut running = network.proxy("ack-hold:mode=kick", "none");
    let transfer = network.transfer("cubic");
    transfer.wait_for(1_000_000);
    if running.0.try_wait().expect("a child").is_some() {
        return None;
    }
    let clock = Clock::start();
    let process = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(process, rustix::process::Signal::STOP).expect("it is stopped");
    within_patience(until(|| running.0.try_wait().expect("a child").is_some()));
    let killed = clock.now().since(Instant::ZERO);
    transfer.wait_for(1);
    let gap = clock.now().since(Instant::ZERO);
    within_patience(until(|| network.log().contains("the daemon hangs and is killed")));
    Some([killed, gap])
}

/// The watcher kills after a second. TCP tries again after .2, .6, 1.4 and 3 seconds of silence. The machine may be
/// busy with other things meanwhile, so the best of some tries counts.
#[test]
fn packets_go_on_without_a_proxy_that_hangs_before_tcp_has_lost_much_time() {
    // One after the other: this test measures time.
    for by in ways(name_of_test!()) {
        let mut gaps = (0..5).map(|_| gap_of_a_hang(by)).inspect(|gap| println!("{by:?}: {gap:.1?}"));
        let most = [1_500, 5_000].map(Duration::from_millis);
        let is_short = |gap: Option<[Duration; 2]>| {
            gap.is_some_and(|[killed, gap]| [killed < most[0], gap < most[1]] == [true; 2])
        };
        assert!(gaps.any(is_short), "{by:?}: not once within {most:.1?}");
    }
}

fn kept_packets(network: &Network) -> usize {
    let status = network.tell("{\"tell\":\"status\"}");
    let (_, rest) = status.split_once("\"kept_packets\":").expect("a status");
    let number = rest.split(',').next().and_then(|number| number.parse().ok());
    number.expect("a number")
}

/// The radio takes seconds for them.
#[test]
fn packets_that_a_slow_radio_has_no_room_for_make_no_proxy_hang() {
    side_by_side(ways(name_of_test!()), |by| {
        let mut network = Network::by("proxy-slow", by);
        network.watchdog = "3s";
        let mut running = network.proxy("ack-hold:mode=kick", "none");
        let transfers: Vec<_> = (0..10).map(|_| network.transfer("cubic")).collect();
        transfers.iter().for_each(|transfer| transfer.wait_for(300_000));
        network.tell_of("gone");
        network.set_fade(true);
        within_patience(until(|| kept_packets(&network) >= 500));
        let slow = [
            "qdisc", "replace", "dev", "radio", "root", "tbf", "rate", "1mbit", "burst", "10k", "limit",
            "20m",
        ];
        let slowed = network.router.output(&[&["tc"], &slow[..]].concat());
        assert!(slowed.status.success(), "tc: {}", String::from_utf8_lossy(&slowed.stderr));
        network.set_fade(false);
        network.tell_of("up");
        transfers[0].wait_for(100_000);
        assert!(!network.log().contains("hangs"), "{by:?}: {}", network.log());
        assert!(running.0.try_wait().expect("a child").is_none(), "{by:?}: {}", network.log());
    });
}

/// The kernel asks for ever for hosts that are not there, and meanwhile holds the SYNs to them.
#[test]
fn syns_to_hosts_that_are_not_there_keep_no_other_packets_waiting() {
    if !ways(name_of_test!()).contains(&By::Nfqueue) {
        return;
    }
    let network = Network::by("proxy-absent", By::Nfqueue);
    let _running = network.proxy("split", "none");
    network.router.sysctl("ipv4/neigh/radio/mcast_solicit", "100000");
    let sockets: Vec<_> = network.fixed.run(|| {
        let opens = |nth: u16| {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).expect("a socket");
            let absent = [10, 9, 0, 100 + (nth % 100) as u8];
            let begun = connect(&socket, &SocketAddrV4::new(absent.into(), 1_000 + nth));
            assert_eq!(begun, Err(Errno::INPROGRESS));
            socket
        };
        (0..600).map(opens).collect()
    });
    let transfer = network.transfer("cubic");
    transfer.wait_for(1_000_000);
    drop(sockets);
}
