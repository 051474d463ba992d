//! Datagrams that come in fragments, and ICMP errors that are told no faster than they should be.

use std::net::{IpAddr, SocketAddr};

use hopwise::memory::End;
use hopwise_core::ip::{UdpId, UdpOptions};
use hopwise_core::trace::DropReason;
use hopwise_core::wire::{IcmpKind, IcmpView, Sum, protocol, udp};

use super::net::{A, A6, B, B6, Net, packet, pattern, secs};

const PORT: u16 = 654;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const FRAGMENT: u8 = 44;

fn bound(net: &mut Net) -> UdpId {
    net.world.b.udp_bind(None, PORT, UdpOptions::default()).expect("a free port")
}

fn datagram(from: IpAddr, to: IpAddr, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    udp::emit(from, to, (4000, PORT), payload, &mut bytes);
    packet(from, to, protocol::UDP, &bytes)
}

/// In pieces of `each` octets, a multiple of 8.
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
                assert_eq!(net.world.b.udp_recv(socket), None, "not before it is whole");
                net.world.inject(End::B, piece);
            }
            let got = net.world.b.udp_recv(socket).expect("whole");
            assert_eq!((got.payload, got.from), (data, SocketAddr::new(from, 4000)));
            net.wait(secs(200));
            assert!(net.sent_by(End::B).is_empty() && net.world.b.drops(DropReason::FragmentTimeout) == 0);
        }
    }
}

/// RFC 792, RFC 8200 §4.5: told is whoever sent the first fragment, and only if that came.
#[test]
fn a_datagram_whose_rest_never_comes_is_given_up_and_told_of() {
    for (from, to) in [(A, B), (A6, B6)] {
        for first_came in [true, false] {
            let mut net = Net::new();
            let pieces = cut(&datagram(from, to, &pattern(3000, 1)), 1200);
            net.world.inject(End::B, &pieces[usize::from(!first_came)]);
            net.wait(secs(200));
            let sent = net.sent_by(End::B);
            assert_eq!((sent.len(), net.world.b.drops(DropReason::FragmentTimeout)), (first_came.into(), 1));
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
    (0..100).for_each(|_| net.world.inject(End::B, &nobody));
    assert_eq!(net.sent_by(End::B).len(), 10);
    assert_eq!(net.world.b.drops(DropReason::IcmpRateLimited), 90);
    net.wait(secs(1));
    (0..100).for_each(|_| net.world.inject(End::B, &nobody));
    assert_eq!(net.sent_by(End::B).len(), 10);
}
