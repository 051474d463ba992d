//! Many connections at one endpoint.

use std::collections::BTreeMap;

use hopwise_core::endpoint::{ConnId, ConnectOptions, Event, EventKind, ListenOptions};
use hopwise_core::trace::DropReason;
use hopwise_core::wire::Flags;
use hopwise_core::{Instant, Machine, Rx, Seq};
use hopwise_testing::memory::{End, LINK};

use super::net::{A, Net, PORT, Pair, SERVER, pattern, secs, segment};

const CONNECTIONS: u16 = 400;
const FIRST_PORT: u16 = 20_000;

/// The bytes of the client on that port, and the server's answer. Lengths differ: no two streams can be confused.
fn speech(port: u16) -> Vec<u8> {
    pattern(1000 + 7 * usize::from(port - FIRST_PORT), usize::from(port))
}

fn answer(port: u16) -> Vec<u8> {
    pattern(3000 - 5 * usize::from(port - FIRST_PORT), 1 + usize::from(port))
}

/// Reads all bytes that the events of an end report, into one heap for each connection.
fn read_all(net: &mut Net, end: End, heaps: &mut BTreeMap<(u16, u16), Vec<u8>>) {
    let events = net.events(end);
    let now = net.now();
    let machine = net.hosts.machine(end);
    let mut out = vec![0; 1 << 16];
    for event in events {
        let Event::Connection(id, EventKind::Readable) = event else { continue };
        let flow = machine.info(now, id).expect("open").flow;
        let len = machine.recv(now, id, &mut out).expect("readable");
        heaps.entry((flow.local.port(), flow.remote.port())).or_default().extend(&out[..len]);
    }
}

#[test]
fn hundreds_of_connections_at_once_keep_their_bytes_apart() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions { backlog: 1000, half_open: 1000, ..ListenOptions::default() });
    let ports = FIRST_PORT..FIRST_PORT + CONNECTIONS;
    let options = |port| ConnectOptions { local_port: Some(port), ..ConnectOptions::default() };
    let clients: Vec<ConnId> = ports.clone().map(|port| net.connect_with(&options(port))).collect();
    net.settle();
    let now = net.now();
    for (port, id) in ports.clone().zip(&clients) {
        assert_eq!(net.hosts.a.send(now, *id, &speech(port)), Ok(speech(port).len()));
    }
    let mut servers = BTreeMap::new();
    while let Some(id) = net.hosts.b.accept(now, listener) {
        let port = net.hosts.b.info(now, id).expect("open").flow.remote.port();
        assert_eq!(net.hosts.b.send(now, id, &answer(port)), Ok(answer(port).len()));
        assert_eq!(servers.insert(port, id), None, "each once");
    }
    assert_eq!(servers.len(), usize::from(CONNECTIONS));
    let (mut at_a, mut at_b) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..50 {
        net.settle();
        read_all(&mut net, End::A, &mut at_a);
        read_all(&mut net, End::B, &mut at_b);
    }
    for port in ports.clone() {
        assert!(at_b[&(PORT, port)] == speech(port), "from {port}");
        assert!(at_a[&(port, PORT)] == answer(port), "to {port}");
    }
    all_end(&mut net, &clients, servers.values().copied());
}

fn all_end(net: &mut Net, clients: &[ConnId], servers: impl Iterator<Item = ConnId>) {
    let now = net.now();
    for id in clients {
        net.hosts.a.close(now, *id).expect("open");
    }
    for id in servers {
        net.hosts.b.close(now, id).expect("open");
    }
    net.wait(secs(100));
    assert_eq!((net.hosts.a.connections(), net.hosts.b.connections()), (0, 0));
    assert_eq!(net.hosts.a.ids().count() + net.hosts.b.ids().count(), 0);
    assert_eq!(net.hosts.next_at(), None, "nothing is left that wants to be woken");
}

#[test]
fn ends_of_some_leave_others_alone() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let clients: Vec<ConnId> = (0..60).map(|_| net.connect()).collect();
    net.settle();
    let servers: Vec<ConnId> = (0..60).map(|_| net.accept(listener)).collect();
    let now = net.now();
    for (nth, id) in clients.iter().enumerate() {
        net.hosts.a.send(now, *id, &pattern(5000, nth)).expect("open");
        if nth % 3 == 1 {
            net.hosts.a.abort(now, *id).expect("open");
        }
    }
    net.wait(secs(2));
    let now = net.now();
    let mut out = vec![0; 6000];
    let by_port = |net: &Net, id| net.hosts.b.info(net.now(), id).expect("held").flow.remote.port();
    let ports: Vec<Option<u16>> =
        clients.iter().map(|id| net.hosts.a.info(now, *id).ok().map(|info| info.flow.local.port())).collect();
    let mut whole = 0;
    for id in servers {
        let port = by_port(&net, id);
        let Some(nth) = ports.iter().position(|of| *of == Some(port)) else { continue };
        assert_eq!(net.hosts.b.recv(now, id, &mut out), Ok(5000));
        assert!(out[..5000] == pattern(5000, nth), "connection {nth}");
        whole += 1;
    }
    assert_eq!(whole, 40);
    assert_eq!(net.hosts.a.ids().count(), 40);
}

/// A slow acceptor must not make a client repeat its SYN, which costs a second.
#[test]
fn bursts_are_taken_before_the_program_accepts_any_of_them() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let clients: Vec<ConnId> = (0..16)
        .flat_map(|_| {
            let burst: Vec<ConnId> = (0..64).map(|_| net.connect()).collect();
            net.settle();
            burst
        })
        .collect();
    let now = net.now();
    let state = |id: &ConnId| net.hosts.a.info(now, *id).expect("held").state;
    assert!(clients.iter().all(|id| state(id).is_synchronized()));
    for reason in DropReason::ALL {
        assert_eq!(net.hosts.b.drops(*reason), 0, "{}", reason.name());
    }
    assert_eq!(std::iter::from_fn(|| net.hosts.b.accept(now, listener)).count(), clients.len());
}

#[test]
fn ten_thousand_in_bursts_of_64_open_and_none_is_dropped() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let mut accepted = 0;
    for _ in 0..157 {
        let burst: Vec<ConnId> = (0..64).map(|_| net.connect()).collect();
        net.settle();
        let now = net.now();
        let state = |id: &ConnId| net.hosts.a.info(now, *id).expect("held").state;
        assert!(burst.iter().all(|id| state(id).is_synchronized()));
        accepted += std::iter::from_fn(|| net.hosts.b.accept(now, listener)).count();
    }
    assert_eq!(accepted, 157 * 64);
    for reason in DropReason::ALL {
        assert_eq!(net.hosts.b.drops(*reason), 0, "{}", reason.name());
    }
}

#[test]
fn a_full_queue_of_connections_that_wait_takes_more_once_one_is_accepted() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions { backlog: 3, ..ListenOptions::default() });
    for _ in 0..3 {
        net.connect();
    }
    net.settle();
    let late = net.connect();
    net.settle();
    let is_open = |net: &Net| net.hosts.a.info(net.now(), late).expect("held").state.is_synchronized();
    assert!(!is_open(&net));
    assert_eq!(net.hosts.b.drops(DropReason::AcceptQueueFull), 1);
    net.accept(listener);
    net.wait(secs(2));
    assert!(is_open(&net), "its next SYN is taken");
    assert_eq!(
        std::iter::from_fn(|| {
            let now = net.now();
            net.hosts.b.accept(now, listener)
        })
        .count(),
        3
    );
}

#[test]
fn with_the_queue_of_handshakes_full_cookies_lead_to_the_same_connections() {
    for half_open in [0, 2] {
        let mut net = Net::new();
        let listener = net.listen(ListenOptions { half_open, ..ListenOptions::default() });
        let clients: Vec<ConnId> = (0..20).map(|_| net.connect()).collect();
        net.settle();
        let now = net.now();
        for (nth, id) in clients.iter().enumerate() {
            assert_eq!(net.hosts.a.send(now, *id, &pattern(4000 + nth, nth)), Ok(4000 + nth));
        }
        net.wait(secs(1));
        let now = net.now();
        let mut lens: Vec<usize> = (0..20)
            .map(|_| {
                let id = net.accept(listener);
                let mut out = vec![0; 10_000];
                let len = net.hosts.b.recv(now, id, &mut out).expect("open");
                assert!(out[..len] == pattern(len, len - 4000));
                len
            })
            .collect();
        lens.sort_unstable();
        assert_eq!(lens, (4000..4020).collect::<Vec<_>>(), "half_open {half_open}");
    }
}

/// A segment that opens a connection does not wait behind other connections' data.
#[test]
fn what_opens_a_connection_leaves_before_what_others_have_to_send() {
    let mut pair = Pair::new();
    let now = pair.net.now();
    pair.net.sent();
    pair.send(End::B, &pattern(3000, 0));
    let ports = [30_001, 30_002, 30_003];
    for port in ports {
        let syn = segment((A, port).into(), SERVER, Flags::SYN, Seq(7), Seq(0));
        pair.net.hosts.b.handle_packet(now, &Rx::new(LINK, &syn));
    }
    let left: Vec<_> =
        pair.net.sent_by(End::B).iter().map(|sent| (sent.tcp().flags, sent.tcp().dst_port)).collect();
    let syn_acks = ports.map(|port| (Flags::SYN | Flags::ACK, port));
    assert_eq!(left[..3], syn_acks, "in the order in which they came");
    assert!(left.len() > 3 && left[3..].iter().all(|(flags, _)| !flags.contains(Flags::SYN)), "{left:?}");
}

#[test]
fn a_program_that_connects_does_not_wait_for_what_another_has_written() {
    let mut pair = Pair::new();
    pair.net.sent();
    pair.send(End::A, &pattern(3000, 0));
    pair.net.connect();
    let left: Vec<_> = pair.net.sent_by(End::A).iter().map(|sent| sent.tcp().flags).collect();
    assert!(left[0].contains(Flags::SYN), "{left:?}");
    assert!(left.len() > 1 && left[1..].iter().all(|flags| !flags.contains(Flags::SYN)), "{left:?}");
}

/// No clock and no chance is involved: a second run gives equal bytes at equal times.
#[test]
fn the_same_calls_give_the_same_packets() {
    let run = || {
        let mut net = Net::new();
        net.listen(ListenOptions::default());
        for nth in 0..30 {
            let now = net.now();
            let id = net.hosts.a.connect(now, SERVER, &ConnectOptions::default()).expect("a route");
            net.hosts.a.send(now, id, &pattern(3000, nth)).expect("open");
            net.settle();
        }
        net.wait(secs(1));
        let sent: Vec<(Instant, Vec<u8>)> =
            net.sent().into_iter().map(|sent| (sent.at, sent.packet)).collect();
        sent
    };
    assert!(run() == run());
}
