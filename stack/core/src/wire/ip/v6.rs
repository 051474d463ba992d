//! IPv6 headers and their extension headers (RFC 8200), walked within bounds.

use std::net::{IpAddr, Ipv6Addr};

use smoltcp::wire::Ipv6Packet;

use super::protocol::{DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ROUTING};
use super::{Ecn, FragmentInfo, IpHeader, IpView};
use crate::trace::DropReason;

pub(in crate::wire) const HEADER_LEN: usize = 40;
/// No honest packet comes near; each more costs time before anything is known about the sender (RFC 8504
/// §5.3).
const MAX_EXTENSIONS: usize = 8;
const MAX_EXTENSION_BYTES: usize = 512;

const OPTION_PAD1: u8 = 0;
const OPTION_PADN: u8 = 1;

/// Where the walk over the extension headers ended.
#[derive(Debug)]
pub(in crate::wire) struct Walk<'a> {
    pub(in crate::wire) protocol: u8,
    pub(in crate::wire) fragment: Option<FragmentInfo>,
    pub(in crate::wire) payload: &'a [u8],
}

#[inline(always)]
pub(super) fn parse(packet: &[u8]) -> Result<IpView<'_>, DropReason> {
    if packet.len() < HEADER_LEN {
        return Err(DropReason::Truncated);
    }
    let header = Ipv6Packet::new_unchecked(packet);
    let end = HEADER_LEN + usize::from(header.payload_len());
    if packet.len() < end {
        return Err(DropReason::Truncated);
    }
    let walk = walk(header.next_header().into(), &packet[HEADER_LEN..end])?;
    Ok(IpView {
        src: IpAddr::V6(header.src_addr()),
        dst: IpAddr::V6(header.dst_addr()),
        protocol: walk.protocol,
        hop_limit: header.hop_limit(),
        ecn: Ecn::from_bits(header.traffic_class()),
        dscp: header.traffic_class() >> 2,
        dont_fragment: true,
        fragment: walk.fragment,
        source_route: None,
        header_len: end - walk.payload.len(),
        payload: walk.payload,
    })
}

/// Everything from the fixed header on.
#[inline(always)]
pub(in crate::wire) fn walk(first: u8, payload: &[u8]) -> Result<Walk<'_>, DropReason> {
    if is_extension(first) {
        return walk_extensions(first, payload, Place::First);
    }
    Ok(Walk { protocol: first, fragment: None, payload })
}

/// What a reassembled datagram's payload begins with; hop-by-hop options cannot be among it.
pub(super) fn walk_after_fragment(first: u8, payload: &[u8]) -> Result<Walk<'_>, DropReason> {
    walk_extensions(first, payload, Place::Later)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Later,
}

#[inline]
fn is_extension(protocol: u8) -> bool {
    matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS)
}

#[cold]
fn walk_extensions(first: u8, payload: &[u8], place: Place) -> Result<Walk<'_>, DropReason> {
    let mut protocol = first;
    let mut rest = payload;
    let mut walked = 0;
    while is_extension(protocol) {
        if protocol == HOP_BY_HOP && (walked > 0 || place == Place::Later) {
            return Err(DropReason::IpMalformed);
        }
        walked += 1;
        let (header, tail) = split_extension(protocol, rest)?;
        if walked > MAX_EXTENSIONS || payload.len() - tail.len() > MAX_EXTENSION_BYTES {
            return Err(DropReason::IpExtensions);
        }
        match protocol {
            ROUTING => check_routing(header)?,
            FRAGMENT => {
                if let Some(fragment) = read_fragment(header) {
                    return Ok(Walk { protocol: header[0], fragment: Some(fragment), payload: tail });
                }
            }
            _ => check_options(&header[2..])?,
        }
        protocol = header[0];
        rest = tail;
    }
    Ok(Walk { protocol, fragment: None, payload: rest })
}

/// The header, at least 8 bytes, and what comes after it.
fn split_extension(protocol: u8, rest: &[u8]) -> Result<(&[u8], &[u8]), DropReason> {
    let units = *rest.get(1).ok_or(DropReason::Truncated)?;
    let len = if protocol == FRAGMENT { 8 } else { 8 * (1 + usize::from(units)) };
    rest.split_at_checked(len).ok_or(DropReason::Truncated)
}

/// RFC 8200 §4.4: one that is used up is passed over whatever its type; one that is not asks us to forward.
fn check_routing(header: &[u8]) -> Result<(), DropReason> {
    let segments_left = header[3];
    if segments_left == 0 { Ok(()) } else { Err(DropReason::SourceRoute) }
}

/// `None` for a fragment that is the whole datagram, which stands for itself (RFC 6946 §4).
fn read_fragment(header: &[u8]) -> Option<FragmentInfo> {
    let field = u16::from_be_bytes([header[2], header[3]]);
    let id = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    let (offset, more) = (field & !7, field & 1 == 1);
    (more || offset > 0).then_some(FragmentInfo { id, offset, more })
}

/// RFC 8200 §4.2: the two high bits of an unknown option say whether the packet may be used without it.
fn check_options(mut options: &[u8]) -> Result<(), DropReason> {
    while let [kind, tail @ ..] = options {
        if *kind == OPTION_PAD1 {
            options = tail;
            continue;
        }
        let [len, value @ ..] = tail else { return Err(DropReason::IpMalformed) };
        if *kind != OPTION_PADN && kind >> 6 != 0 {
            return Err(DropReason::IpMalformed);
        }
        options = value.get(usize::from(*len)..).ok_or(DropReason::IpMalformed)?;
    }
    Ok(())
}

#[inline]
pub(super) fn emit(
    header: &IpHeader<'_>,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    payload_len: usize,
    out: &mut Vec<u8>,
) {
    assert!(payload_len <= usize::from(u16::MAX), "an IPv6 payload has at most 65535 bytes");
    let mut bytes = [0; HEADER_LEN];
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes[..]);
    packet.set_version(6);
    packet.set_traffic_class(header.traffic_class());
    packet.set_payload_len(payload_len as u16);
    packet.set_next_header(header.protocol.into());
    packet.set_hop_limit(header.hop_limit);
    packet.set_src_addr(src);
    packet.set_dst_addr(dst);
    out.extend_from_slice(&bytes);
}
