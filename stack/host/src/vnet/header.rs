//! Writes the header before an outgoing packet.

use hopwise_core::narrow::as_u16;
use hopwise_core::wire::{Flags, protocol};
use tun_rs::VirtioNetHdr;

pub(super) const NEEDS_CHECKSUM: u8 = 1;
pub(super) const DATA_VALID: u8 = 2;
pub(super) const TCP_V4: u8 = 1;
pub(super) const TCP_V6: u8 = 4;
pub(super) const UDP: u8 = 5;
/// CWR is set, in the first segment alone.
pub(super) const ECN: u8 = 0x80;

/// The offset of the checksum in a TCP header.
pub(super) const TCP_CHECKSUM: u16 = 16;

/// The machine leaves every TCP checksum to the link, and finishes all others.
pub(crate) fn header_for(packet: &[u8], segment_bytes: Option<u16>) -> VirtioNetHdr {
    let Some((tcp_at, gso_type)) = tcp(packet) else { return VirtioNetHdr::default() };
    let whole = VirtioNetHdr {
        flags: NEEDS_CHECKSUM,
        csum_start: as_u16(tcp_at),
        csum_offset: TCP_CHECKSUM,
        ..VirtioNetHdr::default()
    };
    let Some(gso_size) = segment_bytes else { return whole };
    let tcp_len = u16::from(packet[tcp_at + 12] >> 4) * 4;
    let has_cwr = packet[tcp_at + 13] & Flags::CWR.0 != 0;
    VirtioNetHdr {
        gso_type: if has_cwr { gso_type | ECN } else { gso_type },
        hdr_len: as_u16(tcp_at) + tcp_len,
        gso_size,
        ..whole
    }
}

/// The offset of the TCP header, and the type of a bundle of that family. `None` for other protocols.
fn tcp(packet: &[u8]) -> Option<(usize, u8)> {
    let (tcp_at, protocol_at, gso_type) = match packet.first()? >> 4 {
        4 => (usize::from(packet[0] & 0xf) * 4, 9, TCP_V4),
        6 => (40, 6, TCP_V6),
        _ => return None,
    };
    let is_tcp = packet.get(protocol_at) == Some(&protocol::TCP) && packet.len() >= tcp_at + 20;
    is_tcp.then_some((tcp_at, gso_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4_tcp(flags: u8) -> Vec<u8> {
        let mut packet = vec![0; 20 + 32 + 3000];
        (packet[0], packet[9], packet[20 + 12], packet[20 + 13]) = (0x45, 6, 0x80, flags);
        packet
    }

    #[test]
    fn a_single_segment_asks_for_its_checksum_alone() {
        let header = header_for(&v4_tcp(0x10), None);
        assert_eq!((header.flags, header.gso_type, header.csum_start, header.csum_offset), (1, 0, 20, 16));
    }

    #[test]
    fn a_bundle_says_how_it_is_cut() {
        let header = header_for(&v4_tcp(0x10), Some(1448));
        assert_eq!((header.gso_type, header.gso_size, header.hdr_len), (TCP_V4, 1448, 52));
        assert_eq!(header_for(&v4_tcp(0x90), Some(1448)).gso_type, TCP_V4 | ECN);
    }

    #[test]
    fn ipv6_has_its_own_name_and_place() {
        let mut packet = vec![0; 40 + 20 + 3000];
        (packet[0], packet[6], packet[40 + 12]) = (0x60, 6, 0x50);
        let header = header_for(&packet, Some(1000));
        assert_eq!((header.gso_type, header.csum_start, header.hdr_len), (TCP_V6, 40, 60));
    }

    #[test]
    fn what_is_no_tcp_or_too_short_asks_for_nothing() {
        let mut udp = v4_tcp(0);
        udp[9] = 17;
        for packet in [&udp[..], &v4_tcp(0)[..30], &[], &[0x45]] {
            assert_eq!(header_for(packet, None).flags, 0);
        }
    }
}
