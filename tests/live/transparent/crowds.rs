//! More connections than seats, and a crowd of which some break off.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use hopwise_core::random::SplitMix64;
use rustix::net::sockopt;
use rustix::process::Signal;

use super::{Chain, FIRST, PORT, TOOLS, V4};
use crate::field::{Daemon, text};
use crate::namespace::{Namespace, can_run};
use crate::world::{is_long, until, within_patience};

/// SYNs of sources that nobody has cost no connection that is carried its seat.
#[test]
fn more_hosts_than_seats_go_straight_on_and_end_no_carried_connection() {
    if !can_run("more_hosts_than_seats_go_straight_on_and_end_no_carried_connection", &TOOLS) {
        return;
    }
    let chain = Chain::new("seats");
    chain.serve(PORT);
    chain.exchange(V4[1], 1000);
    let few = FIRST.replace("answers_within", "connections: 4, answers_within");
    let (_last, _first) = (chain.last(), chain.node(&chain.first, 1, &few));
    let talk = |stream: &mut TcpStream| {
        stream.write_all(b"x").expect("it is open");
        stream.read_exact(&mut [0; 1]).expect("the server answers");
    };
    let mut carried: Vec<_> = (0..4).map(|_| talking(&chain)).collect();
    assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (4, 0));
    for nth in 1..=6 {
        let other = format!("10.1.0.{}", 100 + nth);
        chain.host.ip(&["addr", "add", &format!("{other}/24"), "dev", "lan0"]);
        chain.host.ip(&["route", "replace", "10.2.0.0/24", "via", "10.1.0.1", "src", &other]);
        let seen = chain.exchange(V4[1], 1000);
        assert_eq!((seen.host, seen.by_server.ip().to_string()), (seen.by_server, other));
        carried.iter_mut().for_each(talk);
    }
    assert_eq!((chain.at_first("caught"), chain.at_first("straight"), chain.at_first("open")), (4, 6, 4));
}

#[test]
fn a_crowd_with_broken_connections_leaves_nothing_behind() {
    if !can_run("a_crowd_with_broken_connections_leaves_nothing_behind", &TOOLS) {
        return;
    }
    let chain = Chain::new("crowd");
    chain.serve(PORT);
    let (mut last, mut first) = (chain.last(), chain.first());
    chain.crowd();
    let carried = 120;
    leave_nothing(&chain, carried, (&mut first, &mut last));
}

/// Five hundred connections at a time, of which each twentieth breaks off, for ten minutes.
#[test]
#[expect(clippy::disallowed_methods, reason = "programs of hosts pause in real time")]
fn five_hundred_flows_at_a_time_of_which_some_break_off_come_whole() {
    let test = "five_hundred_flows_at_a_time_of_which_some_break_off_come_whole";
    if !is_long() {
        println!("skipped: {test}: takes ten minutes; scripts/test --long runs it");
        return;
    }
    if !can_run(test, &TOOLS) {
        return;
    }
    let chain = Chain::new("flows");
    chain.serve(PORT);
    let (mut last, mut first) = (chain.last(), chain.first());
    let (whole, broken) = (AtomicU64::new(0), AtomicU64::new(0));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for nth in 0..500 {
            let (chain, whole, broken, over) = (&chain, &whole, &broken, &over);
            scope.spawn(move || {
                let mut random = SplitMix64::new(nth);
                while !over.load(Ordering::Relaxed) {
                    let breaks = random.below(20) == 0;
                    slowly(chain, &mut random, breaks);
                    if breaks { broken } else { whole }.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(Duration::from_secs(600));
        over.store(true, Ordering::Relaxed);
    });
    let (whole, broken) = (whole.into_inner(), broken.into_inner());
    println!("{whole} connections came whole, and {broken} were broken off");
    leave_nothing(&chain, whole + broken, (&mut first, &mut last));
}

/// A connection whose server has told its address.
fn talking(chain: &Chain) -> TcpStream {
    let mut stream = chain.connect(V4[1], PORT).expect("the server is reached");
    stream.write_all(b"who am I\n").expect("it is open");
    let mut told = [0; 1];
    while told != *b"\n" {
        stream.read_exact(&mut told).expect("the server answers");
    }
    stream
}

/// Sends a few kilobytes at a time there and back, and compares them. One that breaks off resets its connection at some
/// time.
#[expect(clippy::disallowed_methods, reason = "programs of hosts pause in real time")]
fn slowly(chain: &Chain, random: &mut SplitMix64, breaks: bool) {
    let mut stream = talking(chain);
    for _ in 0..=random.below(20) {
        let sent: Vec<u8> = (0..=random.below(1000)).flat_map(|_| random.next_u64().to_be_bytes()).collect();
        let mut back = vec![0; sent.len()];
        stream.write_all(&sent).expect("it is open");
        if breaks && random.below(4) == 0 {
            break;
        }
        stream.read_exact(&mut back).expect("the server answers");
        assert!(back == sent, "bytes came back as others");
        thread::sleep(Duration::from_millis(random.below(400)));
    }
    if breaks {
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("it is a socket");
    }
}

/// Holds that all of them were carried, and that nothing of them and of the two nodes stays.
fn leave_nothing(chain: &Chain, carried: u64, (first, last): (&mut Daemon, &mut Daemon)) {
    let held = |namespace: &Namespace, net: u8| {
        chain.status(namespace, net)["bounds"]["held"]["transparent"].clone()
    };
    within_patience(until(|| chain.at_first("open") == 0 && chain.at_last("open") == 0));
    within_patience(until(|| held(&chain.first, 1) == 0 && held(&chain.last, 2) == 0));
    assert_eq!(
        (chain.at_first("caught"), chain.at_first("straight"), chain.at_last("opened")),
        (carried, 0, carried)
    );
    for (daemon, namespace) in [(first, &chain.first), (last, &chain.last)] {
        assert!(!text(&namespace.output(&["ip", "route", "show", "table", "7300"]).stdout).is_empty());
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0));
        assert_eq!(chain.tables(namespace), "", "no table of nft stays");
        let rules = text(&namespace.output(&["ip", "rule"]).stdout);
        assert!(!rules.contains("fwmark"), "{rules}");
        assert_eq!(text(&namespace.output(&["ip", "route", "show", "table", "7300"]).stdout), "");
    }
    assert!(!PathBuf::from(chain.path("1.sock.carried")).exists());
}
