//! UDP and ICMP at the endpoint.

use std::net::{IpAddr, SocketAddr};

use hopwise_core::endpoint::UdpSendError;
use hopwise_core::ip::{UdpError, UdpId, UdpOptions};
use hopwise_core::trace::DropReason;
use hopwise_core::wire::{IcmpKind, IcmpView, IpView, UdpView, icmp, protocol, udp};
use hopwise_core::{Cast, Machine, Rx};
use hopwise_testing::memory::{End, LINK};

use super::net::{A, A2, A6, B, B2, B6, Net, Sent, packet, v4};

const PORT: u16 = 654;

fn bound(net: &mut Net, end: End, local: Option<IpAddr>) -> UdpId {
    net.hosts.machine(end).udp_bind(local, PORT, UdpOptions::default()).expect("a free port")
}

fn at(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, PORT)
}

fn datagram(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    udp::emit(from.ip(), to.ip(), (from.port(), to.port()), payload, &mut bytes);
    packet(from.ip(), to.ip(), protocol::UDP, &bytes)
}

/// The kind of the error, and both ends of the datagram that it quotes.
fn error_in(sent: &Sent) -> (IcmpKind, [SocketAddr; 2]) {
    let ip = sent.ip();
    match IcmpView::parse(ip.src, ip.dst, ip.protocol, ip.payload) {
        Ok(IcmpView::Error { kind, quoted }) => {
            let of = IpView::parse(quoted).expect("the whole datagram");
            let udp = UdpView::parse(of.src, of.dst, of.payload).expect("it is one");
            (kind, [(of.src, udp.src_port).into(), (of.dst, udp.dst_port).into()])
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn datagrams_go_both_ways_over_both_families() {
    for (a, b) in [(A, B), (A6, B6)] {
        let mut net = Net::new();
        let (ours, theirs) = (bound(&mut net, End::A, None), bound(&mut net, End::B, None));
        net.hosts.a.udp_send(ours, at(b), None, b"hello").expect("a route");
        net.settle();
        let got = net.hosts.b.udp_recv(theirs).expect("a datagram");
        assert_eq!((&*got.payload, got.from, got.to, got.link), (&b"hello"[..], at(a), b, LINK));
        assert_eq!((got.hop_limit, net.hosts.b.udp_recv(theirs)), (64, None));
        net.hosts.b.udp_send(theirs, got.from, None, &[]).expect("a route");
        net.settle();
        assert_eq!(net.hosts.a.udp_recv(ours).map(|got| got.payload), Some(vec![]), "empty ones count too");
    }
}

#[test]
fn a_socket_with_an_address_takes_and_sends_with_that_one() {
    let mut net = Net::new();
    let special = bound(&mut net, End::B, Some(B2));
    let general = bound(&mut net, End::B, None);
    let ours = bound(&mut net, End::A, Some(A2));
    net.hosts.a.udp_send(ours, at(B), None, b"general").expect("a route");
    net.hosts.a.udp_send(ours, at(B2), None, b"special").expect("a route");
    net.settle();
    for (id, text) in [(general, "general"), (special, "special")] {
        let got = net.hosts.b.udp_recv(id).expect("a datagram");
        assert_eq!((&*got.payload, got.from), (text.as_bytes(), at(A2)));
        assert_eq!(net.hosts.b.udp_recv(id), None);
    }
}

#[test]
fn what_cannot_be_bound_says_why() {
    let mut net = Net::new();
    let bind = |net: &mut Net, local, port| net.hosts.a.udp_bind(local, port, UdpOptions::default());
    assert_eq!(bind(&mut net, None, 0), Err(UdpError::PortZero));
    let id = bind(&mut net, None, PORT).expect("free");
    let refusal = bind(&mut net, None, PORT).expect_err("taken");
    assert_eq!(refusal, UdpError::PortInUse { port: PORT });
    assert!(refusal.to_string().contains("take another port"), "{refusal}");
    let group = "224.0.0.9".parse().expect("an address");
    assert_eq!(bind(&mut net, Some(group), PORT), Err(UdpError::LocalNotUnicast));
    let refusal = bind(&mut net, Some(B), PORT + 1).expect_err("the other end's address");
    assert_eq!(refusal, UdpError::NotOurs { address: B });
    assert!(refusal.to_string().contains("give it to a link, or bind without an address"), "{refusal}");
    bind(&mut net, Some(A), PORT + 1).expect("ours");
    net.hosts.a.udp_close(id).expect("open");
    bind(&mut net, None, PORT).expect("free again");
}

#[test]
fn what_cannot_be_sent_says_why() {
    let mut net = Net::new();
    let id = bound(&mut net, End::A, None);
    let send = |net: &mut Net, to: SocketAddr, len| net.hosts.a.udp_send(id, to, None, &vec![0; len]);
    let nowhere = SocketAddr::new("192.0.2.1".parse().expect("an address"), PORT);
    let refusal = send(&mut net, nowhere, 1).expect_err("no route");
    assert_eq!(refusal, UdpSendError::NoRoute(nowhere.ip()));
    assert!(refusal.to_string().contains("name a link, or add a route"), "{refusal}");
    assert_eq!(send(&mut net, at(B), 1473), Err(UdpSendError::TooBig { most: 1472 }));
    assert_eq!(send(&mut net, at(B6), 1453), Err(UdpSendError::TooBig { most: 1452 }));
    let no_port = SocketAddr::new(B, 0);
    assert_eq!(send(&mut net, no_port, 1), Err(UdpSendError::Socket(UdpError::NoDestination)));
    for (to, len) in [(at(B), 1472), (at(B6), 1452)] {
        assert_eq!(send(&mut net, to, len), Ok(()));
        let sent = net.sent_by(End::A);
        assert_eq!((sent.len(), sent[0].packet.len()), (1, 1500));
    }
    net.hosts.a.udp_close(id).expect("open");
    assert_eq!(send(&mut net, at(B), 1), Err(UdpSendError::Socket(UdpError::Closed)));
    assert_eq!((net.hosts.a.udp_close(id), net.hosts.a.udp_recv(id)), (Err(UdpError::Closed), None));
}

#[test]
fn a_socket_of_one_family_does_not_send_to_the_other() {
    let mut net = Net::new();
    let id = bound(&mut net, End::A, Some(A));
    let refusal = net.hosts.a.udp_send(id, at(B6), None, b"x").expect_err("of the other family");
    assert_eq!(refusal, UdpSendError::Socket(UdpError::OtherFamily));
    assert!(refusal.to_string().contains("bind one of the destination's"), "{refusal}");
}

#[test]
fn queues_of_a_socket_are_bounded_both_ways() {
    let mut net = Net::with(|_, config| config.udp.queue_datagrams = 3);
    let (ours, theirs) = (bound(&mut net, End::A, None), bound(&mut net, End::B, None));
    let send = |net: &mut Net| net.hosts.a.udp_send(ours, at(B), None, b"x");
    for _ in 0..3 {
        assert_eq!(send(&mut net), Ok(()));
    }
    assert_eq!(send(&mut net), Err(UdpSendError::Socket(UdpError::QueueFull)));
    net.settle();
    for _ in 0..2 {
        assert_eq!(send(&mut net), Ok(()), "they have left");
    }
    net.settle();
    assert_eq!(net.hosts.b.drops(DropReason::UdpQueueFull), 2);
    assert_eq!(std::iter::from_fn(|| net.hosts.b.udp_recv(theirs)).count(), 3);
}

#[test]
fn groups_are_heard_by_their_members_and_by_nobody_else() {
    let group: IpAddr = "224.0.0.138".parse().expect("an address");
    let mut net = Net::new();
    let ours = bound(&mut net, End::A, None);
    let refusal = net.hosts.a.udp_send(ours, at(group), None, b"x").expect_err("which link?");
    assert_eq!(refusal, UdpSendError::NoRoute(group));
    net.hosts.a.udp_send(ours, at(group), Some(LINK), b"to nobody").expect("named");
    net.settle();
    assert_eq!(net.hosts.b.drops(DropReason::NotOurs), 1);
    assert!(net.sent_by(End::B).is_empty(), "no error for a group");
    let options = UdpOptions { groups: vec![group], ..UdpOptions::default() };
    let member = net.hosts.b.udp_bind(None, PORT, options).expect("free");
    net.hosts.a.udp_send(ours, at(group), Some(LINK), b"to members").expect("named");
    net.settle();
    let got = net.hosts.b.udp_recv(member).expect("a datagram");
    assert_eq!((&*got.payload, got.to), (&b"to members"[..], group));
}

#[test]
fn a_datagram_that_nobody_waits_for_is_answered_with_port_unreachable() {
    for (a, b, code) in [(A, B, 3), (A6, B6, 4)] {
        let mut net = Net::new();
        let from = SocketAddr::new(a, 4000);
        net.hosts.inject(End::B, &datagram(from, at(b), b"anybody?"));
        let sent = net.sent_by(End::B);
        assert_eq!(sent.len(), 1);
        let (kind, quoted) = error_in(&sent[0]);
        assert_eq!(kind, IcmpKind::Unreachable { code });
        assert_eq!(quoted, [from, at(b)]);
        assert_eq!((sent[0].ip().src, sent[0].ip().dst), (b, a));
        assert_eq!(net.hosts.b.drops(DropReason::UdpNoSocket), 1);
    }
}

#[test]
fn broadcasts_are_never_answered_with_an_error() {
    let mut net = Net::new();
    let from = SocketAddr::new(A, 4000);
    for to in ["10.0.0.255", "255.255.255.255", "224.0.0.1"] {
        net.hosts.inject(End::B, &datagram(from, at(to.parse().expect("an address")), b"anybody?"));
    }
    let now = net.now();
    let unicast = datagram(from, at(B), b"anybody?");
    let rx = Rx { cast: Cast::ToAll, ..Rx::new(LINK, &unicast) };
    net.hosts.b.handle_packet(now, &rx);
    assert!(net.sent_by(End::B).is_empty());
}

#[test]
fn a_broadcast_reaches_the_socket_on_its_port() {
    let mut net = Net::new();
    let id = bound(&mut net, End::B, None);
    let from = SocketAddr::new(A, 4000);
    for to in ["10.0.0.255", "255.255.255.255"] {
        net.hosts.inject(End::B, &datagram(from, at(to.parse().expect("an address")), to.as_bytes()));
        assert_eq!(net.hosts.b.udp_recv(id).map(|got| got.payload), Some(to.as_bytes().to_vec()));
    }
}

#[test]
fn a_datagram_with_a_wrong_checksum_is_counted_and_goes_no_further() {
    let mut net = Net::new();
    let id = bound(&mut net, End::B, None);
    let mut spoilt = datagram(SocketAddr::new(A, 4000), at(B), b"spoilt");
    *spoilt.last_mut().expect("some") ^= 1;
    net.hosts.inject(End::B, &spoilt);
    assert_eq!((net.hosts.b.udp_recv(id), net.hosts.b.drops(DropReason::UdpChecksum)), (None, 1));
    assert!(net.sent_by(End::B).is_empty());
}

fn echo_request(from: IpAddr, to: IpAddr, data: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    icmp::emit_echo_request(from, to, 77, 3, data, &mut message);
    packet(from, to, if from.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 }, &message)
}

#[test]
fn echo_is_answered_in_both_families() {
    for (a, b) in [(A, B), (A6, B6), (A, B2)] {
        let mut net = Net::new();
        net.hosts.inject(End::B, &echo_request(a, b, b"ping"));
        let sent = net.sent_by(End::B);
        assert_eq!(sent.len(), 1);
        let ip = sent[0].ip();
        assert_eq!((ip.src, ip.dst), (b, a));
        let reply = IcmpView::parse(ip.src, ip.dst, ip.protocol, ip.payload);
        assert_eq!(reply, Ok(IcmpView::EchoReply { id: 77, seq: 3, data: b"ping" }));
    }
}

#[test]
fn echo_is_not_answered_for_groups_or_for_others() {
    let mut net = Net::new();
    for to in [v4(255), v4(99), "224.0.0.1".parse().expect("an address")] {
        net.hosts.inject(End::B, &echo_request(A, to, b"ping"));
    }
    assert!(net.sent_by(End::B).is_empty());
    assert_eq!(net.hosts.b.drops(DropReason::NotOurs), 3);
}

#[test]
fn echo_is_answered_a_hundred_times_a_second_and_no_more() {
    let mut net = Net::new();
    for _ in 0..150 {
        net.hosts.inject(End::B, &echo_request(A, B, b"flood"));
    }
    assert_eq!(net.sent_by(End::B).len(), 100);
    assert_eq!(net.hosts.b.drops(DropReason::IcmpRateLimited), 50);
    net.wait(std::time::Duration::from_secs(1));
    net.hosts.inject(End::B, &echo_request(A, B, b"again"));
    assert_eq!(net.sent_by(End::B).len(), 1);
}

#[test]
fn a_protocol_that_nobody_speaks_is_refused_by_name() {
    const SCTP: u8 = 132;
    let mut net = Net::new();
    for (a, b, expected) in [
        (A, B, IcmpKind::Unreachable { code: 2 }),
        (A6, B6, IcmpKind::ParameterProblem { code: 1, pointer: 6 }),
    ] {
        net.hosts.inject(End::B, &packet(a, b, SCTP, &[0; 20]));
        let sent = net.sent_by(End::B);
        assert_eq!(sent.len(), 1);
        let ip = sent[0].ip();
        let view = IcmpView::parse(ip.src, ip.dst, ip.protocol, ip.payload);
        assert!(matches!(view, Ok(IcmpView::Error { kind, .. }) if kind == expected), "{view:?}");
    }
    assert_eq!(net.hosts.b.drops(DropReason::NoProtocol), 2);
}

/// RFC 1122 §3.2.2: an error about an error would never end.
#[test]
fn errors_are_not_answered_with_errors() {
    let mut net = Net::new();
    let mut message = Vec::new();
    let about = datagram(at(B), at(A), b"x");
    icmp::emit_error(A, B, IcmpKind::Unreachable { code: 3 }, &about, &mut message);
    net.hosts.inject(End::B, &packet(A, B, protocol::ICMP, &message));
    assert!(net.sent_by(End::B).is_empty());
}
