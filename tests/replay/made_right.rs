//! Lengths and checksums of a packet, made right after its bytes were changed at random. Without that, nearly all
//! changed packets are dropped at the first checksum.

use std::net::IpAddr;

use hopwise_core::wire::{Sum, protocol};

use crate::input::Bits;

/// Makes the lengths right by bit 0, the checksum of the IPv4 header by bit 1, and the checksum of the layer above by
/// bit 2.
pub(crate) fn make_right(packet: &mut [u8], which: Bits) {
    let Some(header) = header_len(packet).filter(|len| *len <= packet.len()) else { return };
    let (is_v4, whole) = (packet[0] >> 4 == 4, packet.len());
    let protocol = packet[if is_v4 { 9 } else { 6 }];
    if which.has(0) {
        let (at, len) = if is_v4 { (2, whole) } else { (4, whole - header) };
        packet[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
        if let (protocol::UDP, Some(field)) = (protocol, packet.get_mut(header + 4..header + 6)) {
            field.copy_from_slice(&((whole - header) as u16).to_be_bytes());
        }
    }
    if which.has(1) && is_v4 {
        put_sum(Sum::default(), 10, &mut packet[..header]);
    }
    if which.has(2) {
        let (src, dst) = ends(packet, is_v4);
        let above = &mut packet[header..];
        let (at, sum) = match protocol {
            protocol::TCP => (16, Sum::pseudo_header(src, dst, protocol, above.len() as u32)),
            protocol::UDP => (6, Sum::pseudo_header(src, dst, protocol, above.len() as u32)),
            protocol::ICMPV6 => (2, Sum::pseudo_header(src, dst, protocol, above.len() as u32)),
            protocol::ICMP => (2, Sum::default()),
            _ => return,
        };
        put_sum(sum, at, above);
    }
}

fn header_len(packet: &[u8]) -> Option<usize> {
    match packet.first()? >> 4 {
        4 => Some(usize::from(packet[0] & 0xf) * 4).filter(|len| *len >= 20),
        6 => Some(40),
        _ => None,
    }
}

fn ends(packet: &[u8], is_v4: bool) -> (IpAddr, IpAddr) {
    let v4 = |at: usize| <[u8; 4]>::try_from(&packet[at..at + 4]).expect("four bytes").into();
    let v6 = |at: usize| <[u8; 16]>::try_from(&packet[at..at + 16]).expect("sixteen bytes").into();
    if is_v4 { (v4(12), v4(16)) } else { (v6(8), v6(24)) }
}

fn put_sum(start: Sum, at: usize, bytes: &mut [u8]) {
    let Some(field) = bytes.get_mut(at..at + 2) else { return };
    field.fill(0);
    let sum = start.add(bytes).finish();
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}
