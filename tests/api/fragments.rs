//! Datagrams that come in fragments, and ICMP errors that leave no faster than allowed.

use std::net::{IpAddr, SocketAddr};

use hopwise_core::ip::{UdpId, UdpOptions};
use hopwise_core::trace::DropReason;
use hopwise_core::wire::{IcmpKind, IcmpView, Sum, protocol, udp};
use hopwise_testing::memory::End;

use super::net::{A, A6, B, B6, Net, packet, pattern, secs};

const PORT: u16 = 654;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const FRAGMENT: u8 = 44;

fn bound(net: &mut Net) -> UdpId {
    net.hosts.b.udp_bind(None, PORT, UdpOptions::default()).expect("a free port")
}

fn datagram(from: IpAddr, to: IpAddr, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    udp::emit(from, to, (4000, PORT), payload, &mut bytes);
    packet(from, to, protocol::UDP, &bytes)
}

/// Cuts a packet into pieces of `each` octets, a multiple of 8.
fn cut(packet: &[u8], each: usize) -> Vec<Vec<u8>> {
    let header_len = if packet[0] >> 4 == 4 { V4_HEADER } else { V6_HEADER };
    let (header, payload) = packet.split_at(header_len);
    let pieces = payload.chunks(each).enumerate().map(|(nth, piece)| {
        let more = (nth + 1) * each < payload.len();
        let offset = (nth * each) as u16;
        if header_len == V4_HEADER {
            v4(header, offset, more, piece)
        } else {
            v6(header, offset, more, piece)
        }
    });
    pieces.collect()
}

fn v4(header: &[u8], offset: u16, more: bool, piece: &[u8]) -> Vec<u8> {
    let mut header = header.to_vec();
    header[2..4].copy_from_slice(&((V4_HEADER + piece.len()) as u16).to_be_bytes());
    header[4..6].copy_from_slice(&77_u16.to_be_bytes());
    header[6..8].copy_from_slice(&((u16::from(more) << 13) | (offset / 8)).to_be_bytes());
    header[10..12].fill(0);
    let sum = Sum::default().add(&header).finish();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&header, piece].concat()
}

fn v6(header: &[u8], offset: u16, more: bool, piece: &[u8]) -> Vec<u8> {
    let mut header = header.to_vec();
    header[4..6].copy_from_slice(&((8 + piece.len()) as u16).to_be_bytes());
    let mut extension = [header[6], 0, 0, 0, 0, 0, 0, 77];
    extension[2..4].copy_from_slice(&(offset | u16::from(more)).to_be_bytes());
    header[6] = FRAGMENT;
    [&header, &extension[..], piece].concat()
}

#[test]
fn a_datagram_in_fragments_reaches_its_socket_in_either_order() {
    for (from, to) in [(A, B), (A6, B6)] {
        for reversed in [false, true] {
            let mut net = Net::new();
            let socket = bound(&mut net);
            let data = pattern(3000, 1);
            let mut pieces = cut(&datagram(from, to, &data), 1200);
            assert_eq!(pieces.len(), 3);
            if reversed {
                pieces.reverse();
            }
            for piece in &pieces {
                assert_eq!(net.hosts.b.udp_recv(socket), None, "not before it is whole");
                net.hosts.inject(End::B, piece);
            }
            let got = net.hosts.b.udp_recv(socket).expect("whole");
            assert_eq!((got.payload, got.from), (data, SocketAddr::new(from, 4000)));
            net.wait(secs(200));
            assert!(net.sent_by(End::B).is_empty() && net.hosts.b.drops(DropReason::FragmentTimeout) == 0);
        }
    }
}

/// RFC 792, RFC 8200 §4.5: the error goes to the sender of the first fragment, and only if that came.
#[test]
fn a_datagram_whose_rest_never_comes_is_given_up_and_told_of() {
    for (from, to) in [(A, B), (A6, B6)] {
        for first_came in [true, false] {
            let mut net = Net::new();
            let pieces = cut(&datagram(from, to, &pattern(3000, 1)), 1200);
            let begun = net.now();
            net.hosts.inject(End::B, &pieces[usize::from(!first_came)]);
            net.wait(secs(200));
            let sent = net.sent_by(End::B);
            assert_eq!((sent.len(), net.hosts.b.drops(DropReason::FragmentTimeout)), (first_came.into(), 1));
            assert!(sent.iter().all(|error| error.at == begun + secs(60)));
            for error in sent {
                let ip = error.ip();
                let view = IcmpView::parse(ip.src, ip.dst, ip.protocol, ip.payload);
                let IcmpView::Error { kind, quoted } = view.expect("an error") else { panic!("{view:?}") };
                assert_eq!(kind, IcmpKind::TimeExceeded { code: 1 });
                assert!(pieces[0].starts_with(quoted) && (ip.src, ip.dst) == (to, from));
            }
        }
    }
}

/// RFC 4443 §2.4 f, RFC 1812 §4.3.2.8.
#[test]
fn errors_are_told_ten_at_once_and_ten_a_second_and_no_more() {
    let mut net = Net::new();
    let nobody = datagram(A, B, b"anybody?");
    (0..100).for_each(|_| net.hosts.inject(End::B, &nobody));
    assert_eq!(net.sent_by(End::B).len(), 10);
    assert_eq!(net.hosts.b.drops(DropReason::IcmpRateLimited), 90);
    net.wait(secs(1));
    (0..100).for_each(|_| net.hosts.inject(End::B, &nobody));
    assert_eq!(net.sent_by(End::B).len(), 10);
}

/// RFC 8200 §4.5: a fragment that can be part of no packet causes an error at once.
#[test]
fn the_sender_of_an_impossible_fragment_is_told_where_it_is_wrong() {
    let header = datagram(A6, B6, b"")[..V6_HEADER].to_vec();
    let cases = [
        ("not whole units", v6(&header, 0, true, &[0; 20]), (0, 4)),
        ("past the end", v6(&header, 65_528, false, &[0; 20]), (0, 42)),
        (
            "headers in the next one",
            v6(&[&header[..6], &[6], &header[7..]].concat(), 0, true, &[0; 8]),
            (3, 0),
        ),
    ];
    for (what, packet, (code, pointer)) in cases {
        assert_eq!(problem_told_of(&packet), Some((code, pointer)), "{what}");
    }
}

/// RFC 8200 §4 to §4.4, RFC 4443 §3.4.
#[test]
fn the_sender_of_headers_that_nobody_knows_is_told_where_they_are() {
    const TCP: u8 = 6;
    let options = |next: u8, option: u8| vec![next, 0, option, 4, 0, 0, 0, 0];
    let tcp = vec![0; 20];
    let all = |headers: &[&[u8]]| [&headers.concat(), tcp.as_slice()].concat();
    let to_one = [
        ("option 10", 60, all(&[&options(TCP, 0x9e)]), Some((2, 42))),
        ("option 11", 60, all(&[&options(TCP, 0xde)]), Some((2, 42))),
        ("in the second header", 60, all(&[&options(60, 0x1e), &options(TCP, 0xde)]), Some((2, 50))),
        ("option 01", 60, all(&[&options(TCP, 0x5e)]), None),
        ("for every hop", 0, all(&[&options(TCP, 0x9e)]), Some((2, 42))),
        ("for every hop, later", 60, all(&[&options(0, 0x1e), &options(TCP, 0x1e)]), Some((1, 40))),
        ("a way to go", 43, all(&[&[TCP, 0, 77, 1, 0, 0, 0, 0]]), Some((0, 42))),
        ("of type 0", 43, all(&[&[TCP, 0, 0, 1, 0, 0, 0, 0]]), Some((0, 42))),
        ("no protocol", 99, all(&[]), Some((1, 6))),
        ("no protocol behind options", 60, all(&[&options(99, 0x1e)]), Some((1, 40))),
        ("an ICMP error", 60, [options(58, 0x9e), vec![1; 8]].concat(), None),
    ];
    for (what, next, payload, told) in to_one {
        assert_eq!(problem_told_of(&packet(A6, B6, next, &payload)), told, "{what}");
    }
    let group = "ff02::1".parse().expect("an address");
    for (option, told) in [(0x9e, Some((2, 42))), (0xde, None)] {
        let packet = packet(A6, group, 60, &all(&[&options(TCP, option)]));
        assert_eq!(problem_told_of(&packet), told, "{option:#x} to a group");
    }
}

/// RFC 8200 §4.7: "no next header" is known, and octets after it are ignored.
#[test]
fn nothing_after_the_headers_is_nothing_to_tell_of() {
    let options = [59, 0, 0x1e, 4, 0, 0, 0, 0];
    for (next, payload) in [(59, &[0; 20][..]), (60, &options), (0, &options)] {
        assert_eq!(problem_told_of(&packet(A6, B6, next, payload)), None, "{next}");
    }
}

/// The code and pointer of the parameter problem in answer to a packet.
fn problem_told_of(packet: &[u8]) -> Option<(u8, u32)> {
    let mut net = Net::new();
    net.hosts.inject(End::B, packet);
    let sent = net.sent_by(End::B);
    assert!(sent.len() <= 1);
    let error = sent.first()?;
    let ip = error.ip();
    assert_eq!((ip.src, ip.dst), (B6, A6));
    let view = IcmpView::parse(ip.src, ip.dst, ip.protocol, ip.payload);
    let Ok(IcmpView::Error { kind, quoted }) = view else { panic!("{view:?}") };
    assert!(packet.starts_with(quoted));
    let IcmpKind::ParameterProblem { code, pointer } = kind else { panic!("{kind:?}") };
    Some((code, pointer))
}

/// Fragments of eight octets cost little to send.
#[test]
fn a_flood_of_fragments_from_one_source_costs_nobody_else_a_datagram() {
    for (from, to, flooder) in [(A, B, "10.0.0.77"), (A6, B6, "fd00::77")] {
        let mut net = Net::new();
        let socket = bound(&mut net);
        let data = pattern(3000, 1);
        let pieces = cut(&datagram(from, to, &data), 1200);
        net.hosts.inject(End::B, &pieces[0]);
        let flooder: IpAddr = flooder.parse().expect("an address");
        for id in 0..2000_u16 {
            let header = datagram(flooder, to, b"");
            let piece = match from {
                IpAddr::V4(_) => {
                    let mut piece = v4(&header[..V4_HEADER], 0, true, &[0; 8]);
                    piece[4..6].copy_from_slice(&id.to_be_bytes());
                    piece[10..12].fill(0);
                    let sum = Sum::default().add(&piece[..V4_HEADER]).finish();
                    piece[10..12].copy_from_slice(&sum.to_be_bytes());
                    piece
                }
                IpAddr::V6(_) => {
                    let mut piece = v6(&header[..V6_HEADER], 0, true, &[0; 8]);
                    piece[46..48].copy_from_slice(&id.to_be_bytes());
                    piece
                }
            };
            net.hosts.inject(End::B, &piece);
        }
        pieces[1..].iter().for_each(|piece| net.hosts.inject(End::B, piece));
        assert_eq!(net.hosts.b.udp_recv(socket).map(|got| got.payload), Some(data));
    }
}
