//! More connections than seats, and a crowd of which some break off.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::random::SplitMix64;
use hopwise_host::Clock;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::process::Signal;

use super::clashes::{SILENT, connect_from, end, nft, send};
use super::hangs::stop;
use super::{Chain, FIRST, LAST, PORT, TOOLS, V4, exchange_over};
use crate::field::{Daemon, HOPWISE, text};
use crate::flood::SYN;
use crate::namespace::Namespace;
use crate::world::{is_long, until, within_patience};

/// One host takes half of the seats alone. SYNs of sources that nobody has cost no connection that is carried its seat.
#[test]
fn more_hosts_than_seats_go_straight_on_and_end_no_carried_connection() {
    needs!(&TOOLS);
    let chain = Chain::new("seats");
    chain.serve(PORT);
    chain.exchange(V4[1], 1000);
    let few = FIRST.replace("answers_within", "connections: 4, answers_within");
    let (_last, _first) = (chain.last(), chain.node(&chain.first, 1, &few));
    let talk = |stream: &mut TcpStream| {
        stream.write_all(b"x").expect("it is open");
        stream.read_exact(&mut [0; 1]).expect("the server answers");
    };
    let source = |nth: usize| {
        let other = format!("10.1.0.{}", 100 + nth);
        chain.host.ip(&["addr", "add", &format!("{other}/24"), "dev", "lan0"]);
        chain.host.ip(&["route", "replace", "10.2.0.0/24", "via", "10.1.0.1", "src", &other]);
        other
    };
    let mut carried: Vec<_> = (0..2).map(|_| talking(&chain).expect("the server answers")).collect();
    chain.exchange(V4[1], 1000);
    assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (2, 1));
    for nth in 1..=2 {
        source(nth);
        carried.push(talking(&chain).expect("the server answers"));
    }
    assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (4, 1));
    for nth in 3..=6 {
        let other = source(nth);
        let seen = chain.exchange(V4[1], 1000);
        assert_eq!((seen.host, seen.by_server.ip().to_string()), (seen.by_server, other));
        carried.iter_mut().for_each(talk);
    }
    assert_eq!((chain.at_first("caught"), chain.at_first("straight"), chain.at_first("open")), (4, 5, 4));
}

/// A node decides about 256 SYNs at a time. The last one answers nothing, so that none of them is decided soon.
#[test]
fn more_syns_than_are_decided_at_a_time_go_straight_on_and_the_node_serves() {
    needs!(&TOOLS);
    let chain = Chain::new("syns");
    chain.serve(PORT);
    chain.exchange(V4[1], 1000);
    let (last, _first) = (chain.last(), chain.first());
    stop(&last);
    let _opened: Vec<_> = chain.host.run(|| {
        let to: SocketAddr = format!("{}:{PORT}", V4[1]).parse().expect("an address");
        let opens = || {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).expect("a socket");
            assert_eq!(connect(&socket, &to), Err(Errno::INPROGRESS));
            socket
        };
        (0..300).map(|_| opens()).collect()
    });
    within_patience(until(|| chain.at_first("straight") == 300));
    last.tell(Signal::CONT);
    within_patience(until(|| {
        chain.exchange(V4[1], 1000);
        chain.at_first("caught") > 0
    }));
}

/// Its SYNs wait for a place at a port of the server, for half of ten seconds.
#[test]
fn one_address_that_floods_a_port_of_a_server_leaves_places_of_syns_that_are_decided_to_others() {
    needs!(&TOOLS);
    let chain = Chain::new("places-left");
    (PORT..PORT + 2).for_each(|port| chain.serve(port));
    nft(&chain.host, SILENT);
    let other = end("10.1.0.3", 40_000);
    chain.host.ip(&["addr", "add", "10.1.0.3/24", "dev", "lan0"]);
    chain.exchange(V4[1], 1000);
    let (_last, _first) = (chain.last(), chain.first());
    for port in 30_000..30_400 {
        send(&chain.host, [end(V4[0], port), end(V4[1], PORT)], 7, (SYN, 64));
    }
    within_patience(until(|| chain.at_first("caught") == 8 && chain.at_first("straight") >= 136));
    let stream = connect_from(&chain, other, end(V4[1], PORT + 1)).expect("the server is reached");
    exchange_over(stream, 1000).expect("the connection holds");
    assert_eq!(chain.at_first("caught"), 9, "{}", chain.log(1));
}

/// Both nodes are one peer for each other. The data of the other host's connection has stood still for longest.
#[test]
fn a_host_that_spends_the_buffers_of_a_node_ends_no_connection_of_another_host() {
    needs!(&TOOLS);
    let chain = Chain::new("spent-buffers");
    chain.serve(PORT);
    chain.exchange(V4[1], 1000);
    pour(&chain, PORT + 1);
    chain.host.ip(&["addr", "add", "10.1.0.3/24", "dev", "lan0"]);
    let [others, server] = [end("10.1.0.3", 40_000), end(V4[1], PORT + 1)];
    let tight = format!("{FIRST}\nbounds: {{ memory: 4MiB }}");
    let (_last, _first) = (chain.last(), chain.node(&chain.first, 1, &tight));
    let mut still = connect_from(&chain, others, server).expect("the server is reached");
    still.read_exact(&mut [0; 1000]).expect("the server sends");
    let greedy: Vec<_> = (0..100).map(|_| chain.connect(V4[1], PORT + 1).expect("it is reached")).collect();
    let bounds = || chain.status(&chain.first, 1)["bounds"].take();
    within_patience(until(|| bounds()["gave_way"]["memory"].as_u64() > Some(0)));
    still.read_exact(&mut vec![0; 3_000_000]).expect("it goes on");
    assert_eq!(chain.at_first("straight"), 0, "{}", chain.log(1));
    drop(greedy);
}

/// A server that sends without end.
fn pour(chain: &Chain, port: u16) {
    let listener = chain.server.run(|| TcpListener::bind(("::", port)).expect("the port is free"));
    chain.server.spawn(move || {
        for mut client in listener.incoming().flatten() {
            thread::spawn(move || while client.write_all(&[0; 16 << 10]).is_ok() {});
        }
    });
}

#[test]
fn clients_that_are_not_accepted_while_descriptors_are_spent_are_served_later_and_take_a_line_a_minute() {
    needs!(&TOOLS);
    let chain = Chain::new("spent");
    chain.serve(PORT);
    chain.exchange(V4[1], 1000);
    let few = ["sh", "-c", "ulimit -n 64 && exec \"$0\" node \"$1\"", HOPWISE];
    let (_last, _first) = (chain.last(), chain.node_by(&few, &chain.first, 1, FIRST));
    let clock = Clock::start();
    // While no client is accepted, a further one waits for a place, and goes straight on in the end.
    let mut opened: Vec<_> =
        (0..60).map(|_| chain.connect(V4[1], PORT).expect("the kernel has it")).collect();
    within_patience(until(|| chain.log(1).contains("a client was not accepted")));
    for stream in opened.drain(20..) {
        exchange_over(stream, 1000).expect("it is accepted once others have ended");
    }
    let minutes = clock.now().since(Instant::ZERO).as_secs() / 60;
    let lines = chain.log(1).matches("a client was not accepted").count();
    assert!((1..=minutes + 1).contains(&(lines as u64)), "{}", chain.log(1));
}

#[test]
fn a_crowd_with_broken_connections_leaves_nothing_behind() {
    needs!(&TOOLS);
    let chain = Chain::new("crowd");
    chain.serve(PORT);
    let (mut last, mut first) = (chain.last(), chain.first());
    chain.crowd();
    within_patience(until(|| chain.at_first("open") == 0 && chain.at_last("open") == 0));
    assert_eq!(
        (chain.at_first("caught"), chain.at_first("straight"), chain.at_last("opened")),
        (120, 0, 120)
    );
    leave_nothing(&chain, (&mut first, &mut last));
    for namespace in [&chain.first, &chain.last] {
        assert_eq!(chain.tables(namespace), "", "no table of nft stays");
    }
}

/// The ends of a crowd's connections.
#[derive(Debug, Default)]
struct Crowd {
    whole: AtomicU64,
    /// Broken off by their hosts.
    broken: AtomicU64,
    /// Cut by a kill.
    cut: AtomicU64,
    /// Odd while a node is being killed.
    kills: AtomicU64,
    is_over: AtomicBool,
}

impl Crowd {
    /// Opens one connection after the other. One that began and ended between two kills comes whole.
    fn flow(&self, chain: &Chain, nth: u64) {
        let mut random = SplitMix64::new(nth);
        while !self.is_over.load(Ordering::SeqCst) {
            let (breaks, before) = (random.below(20) == 0, self.kills.load(Ordering::SeqCst));
            let ended = slowly(chain, &mut random, breaks);
            let count = match ended {
                Ok(()) if breaks => &self.broken,
                Ok(()) => &self.whole,
                Err(error) => {
                    let kills = self.kills.load(Ordering::SeqCst);
                    assert!(
                        before % 2 == 1 || kills != before,
                        "no node was killed, {kills} before: {error}\n{}\n{}",
                        chain.log(1),
                        chain.log(2)
                    );
                    &self.cut
                }
            };
            count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Kills a node amid its connections, lets new ones pass without it, and starts it again.
    fn kill(&self, chain: &Chain, killed: &mut Daemon, namespace: &Namespace, again: impl Fn() -> Daemon) {
        let cut = self.cut.load(Ordering::SeqCst);
        self.kills.fetch_add(1, Ordering::SeqCst);
        killed.tell(Signal::KILL);
        let _ = killed.ended();
        within_patience(until(|| !chain.tables(namespace).contains("hopwise_transparent")));
        self.kills.fetch_add(1, Ordering::SeqCst);
        for _ in 0..5 {
            let seen = chain.exchange(V4[1], 10_000);
            assert_eq!(seen.host, seen.by_server, "it goes straight on");
        }
        *killed = again();
        within_patience(until(|| self.cut.load(Ordering::SeqCst) > cut));
    }
}

/// Ends a crowd when this is dropped, also by a panic.
struct Over<'a>(&'a Crowd);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

/// Five hundred connections at a time by `train`, of which each twentieth breaks off, for ten minutes. The first node
/// is killed meanwhile, and then the last one.
#[test]
#[expect(clippy::disallowed_methods, reason = "programs of hosts pause in real time")]
fn five_hundred_flows_at_a_time_come_whole_but_for_those_that_hosts_break_off_or_kills_cut() {
    let test = "five_hundred_flows_at_a_time_come_whole_but_for_those_that_hosts_break_off_or_kills_cut";
    if !is_long() {
        println!("skipped: {test}: takes ten minutes; scripts/test --long runs it");
        return;
    }
    needs!(&TOOLS);
    const THIRD: Duration = Duration::from_secs(200);
    let chain = Chain::new("flows");
    chain.serve(PORT);
    let rules = "rules: [{ match: { port: 7300 }, sender: train, receiver: train }]";
    let last = || chain.node(&chain.last, 2, &format!("{LAST}\n{rules}"));
    let first = || chain.node(&chain.first, 1, &format!("{FIRST}\n{rules}"));
    let (mut at_last, mut at_first, crowd) = (last(), first(), Crowd::default());
    thread::scope(|scope| {
        let _over = Over(&crowd);
        for nth in 0..500 {
            let (chain, crowd) = (&chain, &crowd);
            scope.spawn(move || crowd.flow(chain, nth));
        }
        thread::sleep(THIRD);
        assert_trained(&chain);
        crowd.kill(&chain, &mut at_first, &chain.first, first);
        within_patience(until(|| chain.at_first("caught") > 500));
        thread::sleep(THIRD);
        let caught = chain.at_first("caught");
        crowd.kill(&chain, &mut at_last, &chain.last, last);
        within_patience(until(|| chain.at_last("opened") > 500 && chain.at_first("caught") > caught));
        thread::sleep(THIRD);
    });
    println!("{crowd:?}");
    leave_nothing(&chain, (&mut at_first, &mut at_last));
}

/// The connections between the two nodes have the agents of the rules.
fn assert_trained(chain: &Chain) {
    let status = chain.status(&chain.first, 1);
    let connections = status["connections"].as_array().expect("a list");
    let trained = connections.iter().filter(|one| one.to_string().contains("train"));
    assert!(trained.count() > 100, "{status}");
}

/// A connection whose server has told its address.
fn talking(chain: &Chain) -> io::Result<TcpStream> {
    let mut stream = chain.connect(V4[1], PORT)?;
    stream.write_all(b"who am I\n")?;
    let mut told = [0; 1];
    while told != *b"\n" {
        stream.read_exact(&mut told)?;
    }
    Ok(stream)
}

/// Sends a few kilobytes at a time there and back, and compares them. One that breaks off resets its connection at some
/// time.
#[expect(clippy::disallowed_methods, reason = "programs of hosts pause in real time")]
fn slowly(chain: &Chain, random: &mut SplitMix64, breaks: bool) -> io::Result<()> {
    let mut stream = talking(chain)?;
    for _ in 0..=random.below(20) {
        let sent: Vec<u8> = (0..=random.below(1000)).flat_map(|_| random.next_u64().to_be_bytes()).collect();
        let mut back = vec![0; sent.len()];
        stream.write_all(&sent)?;
        if breaks && random.below(4) == 0 {
            break;
        }
        stream.read_exact(&mut back)?;
        assert!(back == sent, "bytes came back as others");
        thread::sleep(Duration::from_millis(random.below(400)));
    }
    if breaks {
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("it is a socket");
    }
    Ok(())
}

/// Holds that nothing of the connections and of the two nodes stays.
fn leave_nothing(chain: &Chain, (first, last): (&mut Daemon, &mut Daemon)) {
    let held = |namespace: &Namespace, net: u8| {
        chain.status(namespace, net)["bounds"]["held"]["transparent"].clone()
    };
    within_patience(until(|| chain.at_first("open") == 0 && chain.at_last("open") == 0));
    within_patience(until(|| held(&chain.first, 1) == 0 && held(&chain.last, 2) == 0));
    for (daemon, namespace) in [(first, &chain.first), (last, &chain.last)] {
        assert!(!text(&namespace.output(&["ip", "route", "show", "table", "7300"]).stdout).is_empty());
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0));
        // A table of iptables stays after a kill, without a rule or a chain of ours.
        let ruleset = text(&namespace.output(&["nft", "list", "ruleset"]).stdout).to_lowercase();
        assert!(!ruleset.contains("hopwise") && !ruleset.contains("queue"), "{ruleset}");
        let rules = text(&namespace.output(&["ip", "rule"]).stdout);
        assert!(!rules.contains("fwmark"), "{rules}");
        assert_eq!(text(&namespace.output(&["ip", "route", "show", "table", "7300"]).stdout), "");
    }
    assert!(!PathBuf::from(chain.path("1.sock.carried")).exists());
}
