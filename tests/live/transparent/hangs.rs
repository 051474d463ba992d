//! A first node that hangs: its watcher lets SYNs go on, and the node serves again when it works again.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::Clock;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use super::{Chain, FIRST, PORT, TOOLS, V4, V6, exchange_over};
use crate::field::{Daemon, text};
use crate::world::{until, within_patience};

/// Stops a node, and waits until each of its threads stands.
pub(super) fn stop(node: &Daemon) {
    node.tell(Signal::STOP);
    let stopped = waitpid(Some(Pid::from_child(&node.0)), WaitOptions::UNTRACED).expect("it is our child");
    assert!(stopped.is_some_and(|(_, status)| status.stopped()), "{stopped:?}");
}

/// Lets the first node work again, and waits until its watcher has seen it.
fn work_again(chain: &Chain, first: &Daemon, hangs: usize) {
    first.tell(Signal::CONT);
    within_patience(until(|| chain.log(1).matches("the node works again").count() == hangs));
}

#[test]
fn connections_go_straight_on_while_the_first_node_hangs_and_are_carried_afterwards() {
    needs!(&TOOLS);
    let chain = Chain::new("hangs");
    chain.serve(PORT);
    let (_last, mut first) = (chain.last(), chain.first());
    chain.exchange(V4[1], 1000);
    assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (1, 0));
    stop(&first);
    for [_, server] in [V4, V6] {
        let seen = chain.exchange(server, 100_000);
        assert_eq!(seen.host, seen.by_server, "the kernel's own path keeps the port");
    }
    within_patience(until(|| chain.log(1).contains("the node hangs: new connections go straight on")));
    work_again(&chain, &first, 1);
    chain.exchange(V4[1], 100_000);
    assert_eq!(chain.at_first("caught"), 2, "{}", chain.log(1));
    first.tell(Signal::TERM);
    assert_eq!(first.ended(), Some(0));
    let queues = chain.first.output(&["cat", "/proc/net/netfilter/nfnetlink_queue"]);
    assert_eq!(text(&queues.stdout), "", "the watcher has ended, too");
}

/// The processes of a namespace whose arguments have this word.
fn processes(chain: &Chain, word: &str) -> Vec<Pid> {
    let has = |pid: &Pid| {
        let words = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    chain.first.pids().into_iter().filter(has).collect()
}

#[test]
fn a_watcher_that_was_killed_is_started_again_and_one_without_its_starter_goes_on() {
    needs!(&TOOLS);
    let chain = Chain::new("rewatched");
    chain.serve(PORT);
    let (_last, mut first) = (chain.last(), chain.first());
    let watchers = || processes(&chain, "--alone");
    let starters = || {
        let watchers = watchers();
        processes(&chain, "bypass").into_iter().filter(|pid| !watchers.contains(pid)).collect::<Vec<_>>()
    };
    let kill = |pid: Pid| rustix::process::kill_process(pid, Signal::KILL).expect("it is there");
    let mut hangs = 0;
    let mut passes = |first: &Daemon| {
        stop(first);
        let seen = chain.exchange(V4[1], 1000);
        assert_eq!(seen.host, seen.by_server, "it goes straight on");
        hangs += 1;
        work_again(&chain, first, hangs);
    };
    let watcher_after = |killed| {
        let mut found = None;
        within_patience(until(|| {
            found = watchers().first().copied().filter(|pid| Some(*pid) != killed);
            found.is_some()
        }));
        found
    };
    for _ in 0..2 {
        let killed = watcher_after(None);
        kill(killed.expect("it runs"));
        watcher_after(killed);
        passes(&first);
    }
    kill(starters()[0]);
    within_patience(until(|| starters().is_empty()));
    passes(&first);
    first.tell(Signal::TERM);
    assert_eq!(first.ended(), Some(0));
    within_patience(until(|| watchers().is_empty()));
}

/// The host sends it again, and that one goes straight on. The first one must not be caught any more.
#[test]
fn a_syn_that_a_node_held_when_it_hung_is_not_caught_afterwards() {
    needs!(&TOOLS);
    let chain = Chain::new("hung");
    chain.serve(PORT);
    let last = chain.last();
    let first = chain.node(&chain.first, 1, &FIRST.replace("10s", "30s"));
    // All neighbours are known afterwards.
    chain.exchange(V4[1], 1000);
    within_patience(until(|| chain.at_first("open") == 0));
    stop(&last);
    let is_held = || chain.status(&chain.first, 1)["bounds"]["held"]["transparent"] == 1;
    let stream = std::thread::scope(|scope| {
        let opens = scope.spawn(|| chain.connect(V4[1], PORT));
        within_patience(until(is_held));
        stop(&first);
        opens.join().expect("it does not panic").expect("the server is reached")
    });
    last.tell(Signal::CONT);
    work_again(&chain, &first, 1);
    within_patience(until(|| chain.at_first("straight") + chain.at_first("caught") == 2));
    let seen = exchange_over(stream, 100_000).expect("the connection holds");
    assert_eq!(seen.host, seen.by_server);
    assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (1, 1));
}

/// A SYN is sent again after a second. The machine may be busy with other things meanwhile, so the best of some tries
/// counts.
#[test]
fn a_syn_to_a_node_that_hangs_goes_on_before_its_host_sends_it_again() {
    needs!(&TOOLS);
    let chain = Chain::new("hang-gap");
    chain.serve(PORT);
    let (_last, first) = (chain.last(), chain.first());
    chain.exchange(V4[1], 1000);
    let mut gaps = (1..=5).map(|hang| {
        stop(&first);
        let clock = Clock::start();
        drop(chain.connect(V4[1], PORT).expect("the server is reached"));
        let gap = clock.now().since(Instant::ZERO);
        work_again(&chain, &first, hang);
        gap
    });
    assert!(gaps.any(|gap| gap < Duration::from_secs(1)), "not once within a second");
    assert_eq!(chain.at_first("caught"), 1);
}
