//! The address and port that a connection comes from, and the listener that takes it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hopwise_core::Seq;
use hopwise_core::endpoint::{
    ConnId, ConnectError, ConnectOptions, LinkConfig, ListenOptions, Route, SourceRoutes,
};
use hopwise_core::secrets::PortRange;
use hopwise_core::trace::DropReason;
use hopwise_core::wire::{
    Checksums, Flags, IpHeader, RouteKind, SourceRoute, TcpHeader, TcpOptions, protocol,
};
use hopwise_core::{LinkId, NextHop};
use hopwise_testing::memory::End;

use super::net::{A, A2, A6, B, B2, B6, Net, PORT, Pair, SERVER, prefix, v4};

fn from(local_ip: Option<IpAddr>, local_port: Option<u16>) -> ConnectOptions {
    ConnectOptions { local_ip, local_port, ..ConnectOptions::default() }
}

fn local_of(net: &Net, id: ConnId) -> SocketAddr {
    net.hosts.a.info(net.now(), id).expect("open").flow.local
}

// shows: MUST-43
#[test]
fn the_local_address_and_port_may_be_named() {
    let mut net = Net::new();
    let id = net.connect_with(&from(Some(A2), Some(4321)));
    assert_eq!(local_of(&net, id), SocketAddr::new(A2, 4321));
    let sent = net.sent();
    assert_eq!((sent[0].ip().src, sent[0].tcp().src_port), (A2, 4321));
}

// shows: MUST-44
#[test]
fn an_address_that_is_not_named_is_the_one_next_to_the_peer() {
    let mut net = Net::with(|_, config| {
        config.links = vec![
            LinkConfig::wire(0, 1500, ["192.0.2.1/24", "10.0.0.1/24", "fd00::1/64"].map(prefix).to_vec()),
            LinkConfig::wire(1, 1500, vec![prefix("198.51.100.1/24")]),
        ];
        config.routes = vec![Route { to: prefix("203.0.113.0/24"), link: LinkId(1), via: NextHop::Link }];
    });
    let now = net.now();
    for (to, expected) in [
        ("10.0.0.2:7", "10.0.0.1"),
        ("192.0.2.9:7", "192.0.2.1"),
        ("[fd00::2]:7", "fd00::1"),
        ("198.51.100.7:7", "198.51.100.1"),
        ("203.0.113.7:7", "198.51.100.1"),
    ] {
        let to = to.parse().expect("an address");
        let id = net.hosts.a.connect(now, to, &ConnectOptions::default()).expect("a route");
        assert_eq!(local_of(&net, id).ip().to_string(), expected, "to {to}");
    }
}

// shows: MUST-45
#[test]
fn all_segments_of_a_connection_come_from_the_address_that_it_began_with() {
    let mut pair = Net::new().pair_with(&from(Some(A2), None));
    pair.send(End::A, &[1; 10_000]);
    pair.net.settle();
    pair.read(End::B);
    pair.shutdown(End::A);
    pair.shutdown(End::B);
    pair.net.settle();
    let sent = pair.net.sent_by(End::A);
    assert!(sent.len() > 10 && sent.iter().all(|sent| sent.ip().src == A2));
}

#[test]
fn an_address_that_is_not_ours_or_of_another_family_is_no_place_to_connect_from() {
    let mut net = Net::new();
    let now = net.now();
    for local in [v4(99), B, A6] {
        let refusal = net.hosts.a.connect(now, SERVER, &from(Some(local), None)).expect_err("not ours");
        assert!(matches!(refusal, ConnectError::NoLocalAddress), "{refusal:?}");
        assert!(refusal.to_string().contains("no local address"), "{refusal}");
    }
}

#[test]
fn a_port_may_be_used_again_to_another_peer_and_not_to_the_same() {
    let mut net = Net::new();
    let now = net.now();
    let options = from(None, Some(4321));
    net.connect_with(&options);
    let refusal = net.hosts.a.connect(now, SERVER, &options).expect_err("in use");
    let local = SocketAddr::new(A, 4321);
    assert!(matches!(refusal, ConnectError::InUse(said) if said == local), "{refusal:?}");
    assert!(refusal.to_string().contains("choose another port, or none"), "{refusal}");
    net.hosts.a.connect(now, SocketAddr::new(B2, PORT), &options).expect("another peer");
    net.hosts.a.connect(now, SERVER, &from(Some(A2), Some(4321))).expect("another address of ours");
}

#[test]
fn chosen_ports_are_of_the_range_and_never_twice_to_one_peer() {
    let mut net = Net::with(|_, config| config.ports = PortRange::new(50_000, 50_019));
    let now = net.now();
    let mut ports: Vec<_> = (0..20)
        .map(|_| {
            let id = net.connect();
            local_of(&net, id).port()
        })
        .collect();
    ports.sort_unstable();
    assert_eq!(ports, (50_000..50_020).collect::<Vec<_>>());
    let refusal = net.hosts.a.connect(now, SERVER, &ConnectOptions::default()).expect_err("none is left");
    assert!(matches!(refusal, ConnectError::NoFreePort), "{refusal:?}");
    assert!(refusal.to_string().contains("widen `ports`"), "{refusal}");
    net.hosts.a.connect(now, SocketAddr::new(B2, PORT), &ConnectOptions::default()).expect("another peer");
}

// shows: MUST-41, MUST-42
#[test]
fn listeners_at_different_addresses_share_a_port() {
    let mut net = Net::new();
    let listeners = [Some(B), Some(B2), None]
        .map(|local| net.hosts.b.listen(local, PORT, ListenOptions::default()).expect("not taken"));
    let now = net.now();
    for to in [B, B2, B6] {
        net.hosts.a.connect(now, SocketAddr::new(to, PORT), &ConnectOptions::default()).expect("a route");
    }
    net.settle();
    for (listener, local) in listeners.into_iter().zip([B, B2, B6]) {
        let id = net.accept(listener);
        assert_eq!(net.hosts.b.info(net.now(), id).expect("open").flow.local, SocketAddr::new(local, PORT));
        let now = net.now();
        assert_eq!(net.hosts.b.accept(now, listener), None);
    }
}

// shows: MUST-41
#[test]
fn a_listener_takes_many_and_connections_do_not_need_it_any_more() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let ids: Vec<_> = (0..5).map(|_| net.connect()).collect();
    net.settle();
    let accepted: Vec<_> = (0..5).map(|_| net.accept(listener)).collect();
    let now = net.now();
    net.hosts.b.stop_listening(now, listener);
    for id in ids {
        assert_eq!(net.hosts.a.send(now, id, b"still here"), Ok(10));
    }
    net.settle();
    assert!(accepted.iter().all(|id| net.hosts.b.readable(*id) == 10));
}

const HOPS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 50), Ipv4Addr::new(10, 0, 0, 51)];

fn way(hops: &[Ipv4Addr]) -> SourceRoute {
    SourceRoute::new(RouteKind::Strict, hops).expect("some hops")
}

/// A segment that came by `hops` and has reached its destination: the route is recorded in the order of travel.
fn routed(flags: Flags, seq: Seq, ack: Seq, src_port: u16, dst_port: u16, hops: &[Ipv4Addr]) -> Vec<u8> {
    let options = TcpOptions::default();
    let header =
        TcpHeader { src_port, dst_port, seq, ack, flags, window: 9000, urgent: 0, options: &options };
    let mut packet = Vec::new();
    let route = way(hops);
    // The option leaves room for every hop; its sender fills in those that are yet to be visited.
    let mut ip = IpHeader::plain(B, A, protocol::TCP);
    ip.source_route = Some(&route);
    ip.emit(header.len(), &mut packet);
    header.emit(B, A, (&[], &[]), Checksums::Verify, &mut packet);
    let IpAddr::V4(to) = A else { unreachable!() };
    let option = &mut packet[20..20 + 3 + 4 * hops.len()];
    option[2] = option.len() as u8 + 1;
    for (place, hop) in option[3..].chunks_exact_mut(4).zip(hops) {
        place.copy_from_slice(&hop.octets());
    }
    packet[16..20].copy_from_slice(&to.octets());
    fix_header_sum(&mut packet);
    packet
}

fn fix_header_sum(packet: &mut [u8]) {
    let len = usize::from(packet[0] & 15) * 4;
    packet[10..12].fill(0);
    let sum = hopwise_core::wire::Sum::default().add(&packet[..len]).finish();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

// shows: MUST-51, MUST-52
#[test]
fn a_source_route_given_at_connect_goes_before_what_packets_say() {
    let mut net = Net::with(|_, config| config.source_routes = SourceRoutes::Accept);
    let ours = way(&HOPS);
    let id = net.connect_with(&ConnectOptions { source_route: Some(ours), ..ConnectOptions::default() });
    let syn = net.sent().remove(0);
    // The first hop stands in the destination field, the rest and the destination in the option.
    assert_eq!(&syn.packet[16..20], &HOPS[0].octets());
    assert_eq!(&syn.packet[20..31], &[137, 11, 4, 10, 0, 0, 51, 10, 0, 0, 2]);
    let (port, iss) = {
        let view = hopwise_core::wire::TcpView::parse(A, B, &syn.packet[32..], Checksums::Verify);
        let view = view.expect("the checksum takes the last destination");
        (view.src_port, view.seq)
    };
    let answer = routed(Flags::SYN | Flags::ACK, Seq(500), iss + 1, PORT, port, &HOPS[1..]);
    net.hosts.inject(End::A, &answer);
    net.hosts.inject(End::A, &routed(Flags::ACK, Seq(501), iss + 1, PORT, port, &HOPS[..1]));
    let now = net.now();
    assert_eq!(net.hosts.a.send(now, id, b"by our way"), Ok(10));
    let sent = net.sent_by(End::A);
    assert!(!sent.is_empty());
    assert!(sent.iter().all(|sent| sent.packet[16..31] == syn.packet[16..31]), "ours and no other");
}

// shows: MUST-53, SHLD-24
#[test]
fn the_passive_side_answers_by_the_way_back_of_the_latest_segment() {
    let mut net = Net::with(|_, config| config.source_routes = SourceRoutes::Accept);
    let listener = net.hosts.a.listen(None, PORT, ListenOptions::default()).expect("a free port");
    net.hosts.inject(End::A, &routed(Flags::SYN, Seq(500), Seq(0), 5000, PORT, &HOPS));
    let answer = net.sent().remove(0);
    assert_eq!(&answer.packet[16..20], &HOPS[1].octets(), "the last hop comes first");
    assert_eq!(&answer.packet[20..31], &[137, 11, 4, 10, 0, 0, 50, 10, 0, 0, 2]);
    let iss = Seq(u32::from_be_bytes(answer.packet[36..40].try_into().expect("four bytes")));
    net.hosts.inject(End::A, &routed(Flags::ACK, Seq(501), iss + 1, 5000, PORT, &HOPS[..1]));
    let now = net.now();
    let id = net.hosts.a.accept(now, listener).expect("a connection");
    net.hosts.a.send(now, id, b"back").expect("open");
    let sent = net.sent_by(End::A);
    assert_eq!(&sent[0].packet[16..20], &HOPS[0].octets());
    assert_eq!(&sent[0].packet[20..27], &[137, 7, 4, 10, 0, 0, 2]);
}

#[test]
fn source_routes_are_refused_and_counted_unless_asked_for() {
    let mut net = Net::new();
    net.hosts.a.listen(None, PORT, ListenOptions::default()).expect("a free port");
    net.hosts.inject(End::A, &routed(Flags::SYN, Seq(500), Seq(0), 5000, PORT, &HOPS));
    assert_eq!(net.hosts.a.drops(DropReason::SourceRoute), 1);
    assert_eq!(net.hosts.a.connections(), 0);
    assert!(net.sent().is_empty());
}

#[test]
fn a_source_route_to_an_ipv6_peer_is_refused() {
    let mut net = Net::new();
    let now = net.now();
    let options = ConnectOptions { source_route: Some(way(&HOPS)), ..ConnectOptions::default() };
    let refusal = net.hosts.a.connect(now, SocketAddr::new(B6, PORT), &options).expect_err("IPv6");
    assert!(matches!(refusal, ConnectError::SourceRouteNeedsIpv4), "{refusal:?}");
    assert!(refusal.to_string().contains("IPv4 only"), "{refusal}");
}

#[test]
fn a_connection_over_ipv6_carries_data_both_ways() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let now = net.now();
    let to = SocketAddr::new(B6, PORT);
    let client = net.hosts.a.connect(now, to, &ConnectOptions::default()).expect("a route");
    net.settle();
    let server = net.accept(listener);
    let mut pair = Pair { net, client, server };
    pair.send(End::A, b"there");
    pair.send(End::B, b"and back");
    pair.net.settle();
    assert_eq!((pair.read(End::B), pair.read(End::A)), (b"there".to_vec(), b"and back".to_vec()));
    assert!(pair.net.sent().iter().all(|sent| sent.packet[0] >> 4 == 6));
}
