//! UDP datagrams (RFC 768).

use std::net::IpAddr;

use smoltcp::wire::UdpPacket;

use super::Sum;
use super::protocol::UDP;
use crate::trace::DropReason;

const HEADER_LEN: usize = 8;

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpView<'a> {
    pub src_port: u16,
    pub dst_port: u16,
    pub payload: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// Reads the datagram; bytes beyond its length are cut off.
    pub fn parse(src: IpAddr, dst: IpAddr, bytes: &'a [u8]) -> Result<UdpView<'a>, DropReason> {
        if bytes.len() < HEADER_LEN {
            return Err(DropReason::Truncated);
        }
        let header = UdpPacket::new_unchecked(bytes);
        let len = usize::from(header.len());
        if len < HEADER_LEN {
            return Err(DropReason::UdpMalformed);
        }
        let datagram = bytes.get(..len).ok_or(DropReason::Truncated)?;
        // RFC 8200 §8.1: without a header checksum of its own, IPv6 does not let the sender leave this one out.
        let unsummed = header.checksum() == 0 && src.is_ipv4();
        if !unsummed && (header.checksum() == 0 || checksum(src, dst, datagram) != 0) {
            return Err(DropReason::UdpChecksum);
        }
        Ok(UdpView {
            src_port: header.src_port(),
            dst_port: header.dst_port(),
            payload: &datagram[HEADER_LEN..],
        })
    }
}

fn checksum(src: IpAddr, dst: IpAddr, datagram: &[u8]) -> u16 {
    Sum::pseudo_header(src, dst, UDP, datagram.len() as u32).add(datagram).finish()
}

/// Appends a datagram from the first port to the second.
pub fn emit(src: IpAddr, dst: IpAddr, ports: (u16, u16), payload: &[u8], out: &mut Vec<u8>) {
    let len = HEADER_LEN + payload.len();
    assert!(len <= usize::from(u16::MAX), "a UDP datagram has at most 65535 bytes");
    let mut bytes = [0; HEADER_LEN];
    let mut header = UdpPacket::new_unchecked(&mut bytes[..]);
    header.set_src_port(ports.0);
    header.set_dst_port(ports.1);
    header.set_len(len as u16);
    let start = out.len();
    let sum = Sum::pseudo_header(src, dst, UDP, len as u32).append(&bytes, out).append(payload, out);
    // RFC 768: zero says "no checksum", so a sum of zero travels as its other representation.
    let checksum = if sum.finish() == 0 { u16::MAX } else { sum.finish() };
    out[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
}
