//! The test's knowledge of a packet before the endpoint gets it.

use hopwise_core::wire::{Checksums, IcmpView, IpView, TcpView, UdpView, protocol};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Soundness {
    Sound,
    /// Some header or checksum is wrong: the packet is dropped, and counted once.
    Malformed,
    /// A piece of a packet that is not complete yet.
    Piece,
}

pub(super) fn soundness(packet: &[u8]) -> Soundness {
    let Ok(view) = IpView::parse(packet) else { return Soundness::Malformed };
    if view.fragment.is_some() {
        return Soundness::Piece;
    }
    let (src, dst, payload) = (view.src, view.dst, view.payload);
    let is_sound = match (view.protocol, src.is_ipv4()) {
        (protocol::TCP, _) => TcpView::parse(src, dst, payload, Checksums::Verify).is_ok(),
        (protocol::UDP, _) => UdpView::parse(src, dst, payload).is_ok(),
        (protocol::ICMP, true) | (protocol::ICMPV6, false) => {
            IcmpView::parse(src, dst, view.protocol, payload).is_ok()
        }
        _ => true,
    };
    if is_sound { Soundness::Sound } else { Soundness::Malformed }
}

/// Returns whether a sound segment's data is the stream's. After random changes of bytes it may be other data, since a
/// checksum finds only most changes.
pub(super) fn carries_the_stream(packet: &[u8]) -> bool {
    let Ok(view) = IpView::parse(packet) else { return true };
    if view.fragment.is_some() {
        return false;
    }
    let Ok(segment) = TcpView::parse(view.src, view.dst, view.payload, Checksums::Verify) else {
        return true;
    };
    if view.protocol != protocol::TCP {
        return true;
    }
    let start = segment.seq + u32::from(segment.flags.contains(hopwise_core::wire::Flags::SYN));
    (0u32..).zip(segment.payload).all(|(at, octet)| *octet == super::packet::octet_at(start + at))
}
