//! A proxy that hangs: its watcher ends it, and packets go on without it.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::Clock;

use super::{By, Network, ways};
use crate::world::{until, within_patience};

#[test]
fn a_proxy_that_hangs_is_ended_by_its_watcher_and_no_connection_ends() {
    const NAME: &str = "a_proxy_that_hangs_is_ended_by_its_watcher_and_no_connection_ends";
    for by in ways(NAME) {
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
        within_patience(until(|| network.log().contains("the proxy hangs and is killed")));
    }
}

/// The gap of a transfer when the proxy hangs with the default patience: from the stop to the first bytes that pass
/// without it. `None` if the watcher ended it before, as on a machine that is busy.
fn gap_of_a_hang(by: By) -> Option<Duration> {
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
    transfer.wait_for(1);
    let gap = clock.now().since(Instant::ZERO);
    within_patience(until(|| network.log().contains("the proxy hangs and is killed")));
    Some(gap)
}

/// The watcher kills after a second. TCP tries again after .2, .6, 1.4 and 3 seconds of silence. The machine may be
/// busy with other things meanwhile, so the best of some tries counts.
#[test]
fn packets_go_on_without_a_proxy_that_hangs_before_tcp_has_lost_much_time() {
    const NAME: &str = "packets_go_on_without_a_proxy_that_hangs_before_tcp_has_lost_much_time";
    for by in ways(NAME) {
        let mut gaps = (0..5).map(|_| gap_of_a_hang(by)).inspect(|gap| println!("{by:?}: {gap:.1?}"));
        let is_short = |gap: Option<Duration>| gap.is_some_and(|gap| gap < Duration::from_secs(5));
        assert!(gaps.any(is_short), "{by:?}: no gap was below 5 s");
    }
}
