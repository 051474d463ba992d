//! The contents of a packet that an ICMP error quotes. Routers guarantee 8 bytes after the IP header, and may have
//! changed lengths and checksums on the way, so nothing is verified here.

use std::net::{IpAddr, Ipv6Addr};

use crate::Seq;
use crate::wire::ip::{final_destination_v4, v6};
use crate::wire::protocol::TCP;

/// The connection and the segment of an error. The packet was ours: `src` is our side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedTcp {
    /// Our address.
    pub src: IpAddr,
    /// The peer's address, behind all hops of a source route.
    pub dst: IpAddr,
    /// Our port.
    pub src_port: u16,
    /// The peer's port.
    pub dst_port: u16,
    /// The segment's first number. The caller checks that it is in flight (RFC 5927 §4.1).
    pub seq: Seq,
}

impl QuotedTcp {
    /// `None` if the quoted packet is not a TCP segment, or is a later fragment of one.
    pub fn read(quoted: &[u8]) -> Option<QuotedTcp> {
        let packet = QuotedPacket::read(quoted).filter(|packet| packet.protocol == TCP)?;
        let [a, b, c, d, seq @ ..] = *packet.payload.first_chunk::<8>()?;
        Some(QuotedTcp {
            src: packet.src,
            dst: packet.dst,
            src_port: u16::from_be_bytes([a, b]),
            dst_port: u16::from_be_bytes([c, d]),
            seq: Seq(u32::from_be_bytes(seq)),
        })
    }
}

struct QuotedPacket<'a> {
    src: IpAddr,
    dst: IpAddr,
    protocol: u8,
    payload: &'a [u8],
}

impl QuotedPacket<'_> {
    fn read(quoted: &[u8]) -> Option<QuotedPacket<'_>> {
        match quoted.first()? >> 4 {
            4 => QuotedPacket::read_v4(quoted),
            6 => QuotedPacket::read_v6(quoted),
            _ => None,
        }
    }

    fn read_v4(quoted: &[u8]) -> Option<QuotedPacket<'_>> {
        let header_len = usize::from(quoted[0] & 0xf) * 4;
        let (header, payload) = quoted.split_at_checked(header_len)?;
        let fixed = header.first_chunk::<20>()?;
        let offset = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff;
        let src = *fixed[12..].first_chunk::<4>()?;
        let dst = final_destination_v4(header)?;
        (offset == 0).then_some(QuotedPacket {
            src: IpAddr::from(src),
            dst: IpAddr::V4(dst),
            protocol: fixed[9],
            payload,
        })
    }

    fn read_v6(quoted: &[u8]) -> Option<QuotedPacket<'_>> {
        let (header, payload) = quoted.split_first_chunk::<{ v6::HEADER_LEN }>()?;
        let src = Ipv6Addr::from(*header[8..].first_chunk::<16>()?);
        let dst = Ipv6Addr::from(*header[24..].first_chunk::<16>()?);
        let walk = v6::walk(header[6], payload).ok()?;
        let first = walk.fragment.is_none_or(|fragment| fragment.offset == 0);
        first.then_some(QuotedPacket {
            src: IpAddr::V6(src),
            dst: IpAddr::V6(dst),
            protocol: walk.protocol,
            payload: walk.payload,
        })
    }
}
