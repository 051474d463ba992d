//! A router's answers to packets that go no further. It fragments where it may, and sends an ICMP error where it may
//! not (RFC 1812 §4.2.2.7, §4.3.2.3, RFC 8200 §4.5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopwise_core::wire::{IcmpKind, IpHeader, IpView, Sum, icmp, protocol};

use super::LostTo;

const ROUTER_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
const ROUTER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
const HEADER_V4: usize = 20;
const DONT_FRAGMENT: u8 = 0x40;
const MORE_FRAGMENTS: u16 = 0x2000;

/// The packet in pieces of at most `mtu` octets, if it is an IPv4 packet without options that may be fragmented.
pub(super) fn fragments(packet: &[u8], mtu: u16) -> Option<Vec<Vec<u8>>> {
    let may_cut = packet.len() > HEADER_V4 && packet[0] == 0x45 && packet[6] & DONT_FRAGMENT == 0;
    let each = (usize::from(mtu).saturating_sub(HEADER_V4)) / 8 * 8;
    if !may_cut || each == 0 {
        return None;
    }
    let (header, payload) = packet.split_at(HEADER_V4);
    let before = u16::from_be_bytes([header[6], header[7]]);
    let pieces = payload.chunks(each).enumerate().map(|(nth, piece)| {
        let is_last = (nth + 1) * each >= payload.len();
        let more = if is_last { before & MORE_FRAGMENTS } else { MORE_FRAGMENTS };
        let offset = (before & 0x1fff) + (nth * each / 8) as u16;
        fragment(header, more | offset, piece)
    });
    Some(pieces.collect())
}

fn fragment(header: &[u8], flags_and_offset: u16, piece: &[u8]) -> Vec<u8> {
    let mut fragment = [header, piece].concat();
    let len = fragment.len() as u16;
    fragment[2..4].copy_from_slice(&len.to_be_bytes());
    fragment[6..8].copy_from_slice(&flags_and_offset.to_be_bytes());
    fragment[10..12].fill(0);
    let sum = Sum::default().add(&fragment[..HEADER_V4]).finish();
    fragment[10..12].copy_from_slice(&sum.to_be_bytes());
    fragment
}

/// The ICMP error that gives the sender the reason for a loss. Losses by chance and to queues cause none, nor do
/// packets that cannot be read.
pub(super) fn icmp_error(packet: &[u8], lost_to: LostTo, mtu: u16) -> Option<Vec<u8>> {
    let view = IpView::parse(packet).ok().filter(|view| !is_icmp(view.protocol))?;
    let (router, unreachable) = if view.src.is_ipv4() { (ROUTER_V4, 1) } else { (ROUTER_V6, 0) };
    let kind = match lost_to {
        LostTo::Size => IcmpKind::PacketTooBig { mtu: mtu.into() },
        LostTo::Outage => IcmpKind::Unreachable { code: unreachable },
        LostTo::Chance | LostTo::Queue => return None,
    };
    let mut message = Vec::new();
    icmp::emit_error(router, view.src, kind, packet, &mut message);
    let number = if router.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
    let header = IpHeader::plain(router, view.src, number);
    let mut error = Vec::new();
    header.emit(message.len(), &mut error);
    error.extend_from_slice(&message);
    Some(error)
}

/// True for ICMP: an error is not answered with an error.
fn is_icmp(number: u8) -> bool {
    matches!(number, protocol::ICMP | protocol::ICMPV6)
}

#[cfg(test)]
mod tests {
    use hopwise_core::Instant;
    use hopwise_core::ip::{FragmentKey, Limits, Reassembler};
    use hopwise_core::wire::IcmpView;

    use super::*;

    fn packet(payload: usize, dont_fragment: bool, is_v4: bool) -> Vec<u8> {
        let (v4, v6) = ([1, 2].map(|n| Ipv4Addr::new(10, 0, 0, n)), [1, 2].map(Ipv6Addr::from_bits));
        let [src, dst] = if is_v4 { v4.map(IpAddr::V4) } else { v6.map(IpAddr::V6) };
        let header = IpHeader { dont_fragment, id: 77, ..IpHeader::plain(src, dst, protocol::TCP) };
        let mut packet = Vec::new();
        header.emit(payload, &mut packet);
        packet.extend((0..payload).map(|at| at as u8));
        packet
    }

    #[test]
    fn fragments_fit_the_path_and_come_together_again() {
        let whole = packet(1000, false, true);
        let pieces = fragments(&whole, 300).expect("it may be cut");
        assert!(pieces.len() == 4 && pieces.iter().all(|piece| piece.len() <= 300));
        let mut reassembler = Reassembler::new(Limits::default());
        let mut done = None;
        for piece in pieces.iter().rev() {
            let view = IpView::parse(piece).expect("a fragment is a packet");
            let part = view.fragment.expect("it says that it is a fragment");
            let key = FragmentKey { src: view.src, dst: view.dst, protocol: view.protocol, id: part.id };
            let inserted =
                reassembler.insert(Instant::ZERO, key, part.offset, part.more, view.payload, piece);
            done = inserted.expect("the fragments are sound");
        }
        assert_eq!(done.expect("the last one completes it"), whole[HEADER_V4..]);
    }

    #[test]
    fn what_must_not_be_cut_is_told_of_with_the_size_that_fits() {
        for is_v4 in [true, false] {
            let whole = packet(1400, true, is_v4);
            assert_eq!(fragments(&whole, 1300), None);
            let error = icmp_error(&whole, LostTo::Size, 1300).expect("a router tells");
            let view = IpView::parse(&error).expect("an ICMP error is a packet");
            let message = IcmpView::parse(view.src, view.dst, view.protocol, view.payload);
            let Ok(IcmpView::Error { kind, quoted }) = message else { panic!("{message:?}") };
            assert_eq!(kind, IcmpKind::PacketTooBig { mtu: 1300 });
            assert!(whole.starts_with(quoted) && quoted.len() >= 48);
        }
    }

    #[test]
    fn nothing_is_said_of_chance_or_of_another_error() {
        let whole = packet(100, true, true);
        assert_eq!(icmp_error(&whole, LostTo::Chance, 1500), None);
        let error = icmp_error(&whole, LostTo::Outage, 1500).expect("an outage is told of");
        assert_eq!(icmp_error(&error, LostTo::Outage, 1500), None);
    }
}
