//! IPv6 headers and their extension headers (RFC 8200), walked within bounds.

use std::net::{IpAddr, Ipv6Addr};

use smoltcp::wire::Ipv6Packet;

use super::protocol::{DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ICMPV6, ROUTING, TCP, UDP};
use super::{Ecn, FragmentInfo, IpHeader, IpView};
use crate::narrow::as_u32;
use crate::trace::DropReason;

pub(crate) const HEADER_LEN: usize = 40;
/// The limits of extension headers. Honest packets stay far below, and each header costs time before anything is known
/// about the sender (RFC 8504 §5.3).
const MAX_EXTENSIONS: usize = 8;
const MAX_EXTENSION_BYTES: usize = 512;

const OPTION_PAD1: u8 = 0;

const FRAGMENT_LEN: usize = 8;
/// Places of fields in the fixed header.
const PAYLOAD_LENGTH_AT: usize = 4;
const NEXT_HEADER_AT: usize = 6;
/// Codes of the parameter problem (RFC 4443 §3.4, RFC 7112 §7).
const ERRONEOUS_FIELD: u8 = 0;
const UNKNOWN_HEADER: u8 = 1;
const UNKNOWN_OPTION: u8 = 2;
const INCOMPLETE_CHAIN: u8 = 3;

/// The content of a parameter problem for the sender of a packet (RFC 8200 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The reason that the drop is counted under.
    pub reason: DropReason,
    /// 0 to 3 (RFC 4443 §3.4, RFC 7112 §7).
    pub code: u8,
    /// The place of the faulty byte in the packet, from 0.
    pub pointer: u32,
    /// The error is due even if the packet went to a group.
    pub concerns_groups: bool,
}

impl Fault {
    fn new(reason: DropReason, code: u8, pointer: usize) -> Fault {
        Fault { reason, code, pointer: as_u32(pointer), concerns_groups: false }
    }
}

/// The end of the walk over the extension headers.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) protocol: u8,
    pub(crate) fragment: Option<FragmentInfo>,
    pub(crate) payload: &'a [u8],
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
    Ok(view(packet, end, walk))
}

/// The view of a packet that ends at `end`.
#[inline(always)]
fn view<'a>(packet: &'a [u8], end: usize, walk: Walk<'a>) -> IpView<'a> {
    let header = Ipv6Packet::new_unchecked(packet);
    IpView {
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
    }
}

/// Walks all headers after the fixed one.
#[inline(always)]
pub(crate) fn walk(first: u8, payload: &[u8]) -> Result<Walk<'_>, DropReason> {
    if is_extension(first) {
        return walk_extensions(first, payload, HeaderAt::FIRST)?.without_fault();
    }
    Ok(Walk { protocol: first, fragment: None, payload })
}

/// Walks the headers of a reassembled datagram's payload, which cannot contain hop-by-hop options.
pub(super) fn walk_after_fragment(first: u8, payload: &[u8]) -> Result<Walk<'_>, DropReason> {
    walk_extensions(first, payload, HeaderAt::after_fragment(HEADER_LEN + FRAGMENT_LEN))?.without_fault()
}

/// A refused packet with its fault, if its sender must get an error.
#[cold]
pub(super) fn faulty(packet: &[u8]) -> Option<(IpView<'_>, Fault)> {
    let (fixed, payload) = packet.split_first_chunk::<HEADER_LEN>()?;
    let payload = payload.get(..usize::from(u16::from_be_bytes([fixed[4], fixed[5]])))?;
    let chain = walk_extensions(fixed[NEXT_HEADER_AT], payload, HeaderAt::FIRST).ok()?;
    let fault = chain.fault?;
    Some((view(packet, HEADER_LEN + payload.len(), chain.walk), fault))
}

/// The fault of a fragment, if its sender must get an error (RFC 8200 §4.5). The first fragment must contain all
/// headers, since filters on the path see no more (RFC 7112).
#[cold]
pub(super) fn fault_of_fragment(view: &IpView<'_>, fragment: FragmentInfo) -> Option<Fault> {
    let invalid = |pointer| Fault::new(DropReason::FragmentInvalid, ERRONEOUS_FIELD, pointer);
    let header_at = view.header_len - FRAGMENT_LEN;
    let end = header_at - HEADER_LEN + usize::from(fragment.offset) + view.payload.len();
    if fragment.more && !view.payload.len().is_multiple_of(8) {
        return Some(invalid(PAYLOAD_LENGTH_AT));
    }
    if end > usize::from(u16::MAX) {
        return Some(invalid(header_at + 2));
    }
    if fragment.offset > 0 {
        return None;
    }
    let chain = walk_extensions(view.protocol, view.payload, HeaderAt::after_fragment(view.header_len));
    match chain {
        Ok(chain) if chain.fault.is_some() => chain.fault,
        Ok(chain) if chain.walk.payload.len() >= least_header(chain.walk.protocol) => None,
        Ok(_) | Err(DropReason::Truncated) => Some(Fault { code: INCOMPLETE_CHAIN, ..invalid(0) }),
        Err(_) => None, // Found again in the whole datagram.
    }
}

/// The least header length of a protocol.
fn least_header(protocol: u8) -> usize {
    match protocol {
        TCP => 20,
        UDP | ICMPV6 => 8,
        _ => 0,
    }
}

/// The place of the number that names the protocol after the headers.
#[cold]
pub(super) fn protocol_at(packet: &[u8]) -> u32 {
    let chain = packet
        .split_first_chunk::<HEADER_LEN>()
        .and_then(|(fixed, payload)| walk_extensions(fixed[NEXT_HEADER_AT], payload, HeaderAt::FIRST).ok());
    as_u32(chain.map_or(NEXT_HEADER_AT, |chain| chain.named_at))
}

/// The start of a walk.
#[derive(Clone, Copy)]
struct HeaderAt {
    /// The place of the first header in the packet, and the place of the number that names it.
    at: usize,
    named_at: usize,
}

impl HeaderAt {
    const FIRST: HeaderAt = HeaderAt { at: HEADER_LEN, named_at: NEXT_HEADER_AT };

    fn after_fragment(at: usize) -> HeaderAt {
        HeaderAt { at, named_at: at - FRAGMENT_LEN }
    }
}

/// The walked headers, and the first fault among them.
struct Chain<'a> {
    walk: Walk<'a>,
    named_at: usize,
    fault: Option<Fault>,
}

impl<'a> Chain<'a> {
    fn without_fault(self) -> Result<Walk<'a>, DropReason> {
        self.fault.map_or(Ok(self.walk), |fault| Err(fault.reason))
    }
}

#[inline]
fn is_extension(protocol: u8) -> bool {
    matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS)
}

#[cold]
fn walk_extensions(first: u8, payload: &[u8], place: HeaderAt) -> Result<Chain<'_>, DropReason> {
    let (mut protocol, mut rest) = (first, payload);
    let (mut named_at, mut fault, mut walked) = (place.named_at, None, 0);
    while is_extension(protocol) {
        let at = place.at + (payload.len() - rest.len());
        walked += 1;
        if protocol == HOP_BY_HOP && at != HEADER_LEN {
            fault.get_or_insert(Fault::new(DropReason::IpMalformed, UNKNOWN_HEADER, named_at));
        }
        let Ok((header, tail)) = split_extension(protocol, rest) else {
            // The first fault is reported.
            return fault.map_or(Err(DropReason::Truncated), |fault: Fault| Err(fault.reason));
        };
        if walked > MAX_EXTENSIONS || payload.len() - tail.len() > MAX_EXTENSION_BYTES {
            return Err(DropReason::IpExtensions);
        }
        if fault.is_none() {
            fault = match protocol {
                ROUTING => check_routing(header, at),
                FRAGMENT => None,
                _ => check_options(&header[2..], at + 2)?,
            };
        }
        let fragment = if protocol == FRAGMENT { read_fragment(header) } else { None };
        (protocol, named_at, rest) = (header[0], at, tail);
        if fragment.is_some() {
            return Ok(Chain { walk: Walk { protocol, fragment, payload: rest }, named_at, fault });
        }
    }
    Ok(Chain { walk: Walk { protocol, fragment: None, payload: rest }, named_at, fault })
}

/// The header, at least 8 bytes, and the bytes after it.
fn split_extension(protocol: u8, rest: &[u8]) -> Result<(&[u8], &[u8]), DropReason> {
    let units = *rest.get(1).ok_or(DropReason::Truncated)?;
    let len = if protocol == FRAGMENT { 8 } else { 8 * (1 + usize::from(units)) };
    rest.split_at_checked(len).ok_or(DropReason::Truncated)
}

/// RFC 8200 §4.4: skips a finished routing header of any type. An unfinished one would need a router; no type is
/// supported here.
fn check_routing(header: &[u8], at: usize) -> Option<Fault> {
    let segments_left = header[3];
    (segments_left > 0).then(|| Fault::new(DropReason::SourceRoute, ERRONEOUS_FIELD, at + 2))
}

/// `None` for a fragment that is a whole datagram by itself (RFC 6946 §4).
fn read_fragment(header: &[u8]) -> Option<FragmentInfo> {
    let field = u16::from_be_bytes([header[2], header[3]]);
    let id = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    let (offset, more) = (field & !7, field & 1 == 1);
    (more || offset > 0).then_some(FragmentInfo { id, offset, more })
}

/// RFC 8200 §4.2: the two high bits of an unknown option decide whether the packet may be used, and whether its sender
/// gets an error.
fn check_options(options: &[u8], at: usize) -> Result<Option<Fault>, DropReason> {
    let mut rest = options;
    while let [kind, tail @ ..] = rest {
        if *kind == OPTION_PAD1 {
            rest = tail;
            continue;
        }
        let pointer = at + (options.len() - rest.len());
        let [len, value @ ..] = tail else { return Err(DropReason::IpMalformed) };
        let unknown = Fault::new(DropReason::IpMalformed, UNKNOWN_OPTION, pointer);
        match kind >> 6 {
            0b00 => {}
            0b01 => return Err(DropReason::IpMalformed),
            0b10 => return Ok(Some(Fault { concerns_groups: true, ..unknown })),
            _ => return Ok(Some(unknown)),
        }
        rest = value.get(usize::from(*len)..).ok_or(DropReason::IpMalformed)?;
    }
    Ok(None)
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
    let class_and_flow = 0x6000_0000 | u32::from(header.traffic_class()) << 20;
    let length = as_u32(payload_len) << 16 | u32::from(header.protocol) << 8 | u32::from(header.hop_limit);
    out.extend_from_slice([class_and_flow, length].map(u32::to_be_bytes).as_flattened());
    out.extend_from_slice([src, dst].map(|address| address.octets()).as_flattened());
}
