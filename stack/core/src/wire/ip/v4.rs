//! IPv4 headers and their options (RFC 791, RFC 1122 §3.2.1).

use std::net::{IpAddr, Ipv4Addr};

use super::{Ecn, FragmentInfo, IpHeader, IpView, SourceRoute};
use crate::narrow::{as_u32, low_u8, low_u16};
use crate::trace::DropReason;
use crate::wire::Sum;

pub(super) const HEADER_LEN: usize = 20;
const MAX_HEADER_LEN: usize = 60;

/// Bits in the word of identification, flags and fragment offset.
const DONT_FRAGMENT: u32 = 0x4000;
const MORE_FRAGMENTS: u32 = 0x2000;

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;

#[inline(always)]
pub(super) fn parse(packet: &[u8]) -> Result<IpView<'_>, DropReason> {
    let fixed = packet.first_chunk::<HEADER_LEN>().ok_or(DropReason::Truncated)?;
    let words: [u32; HEADER_LEN / 4] = std::array::from_fn(|nth| {
        let at = 4 * nth;
        u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
    });
    let [first, second, third, src, dst] = words;
    // The header length in bytes; its field counts words of four bytes.
    let header_len = 4 * (first >> 24 & 0xf) as usize;
    if header_len < HEADER_LEN {
        return Err(DropReason::IpMalformed);
    }
    let options = packet.get(HEADER_LEN..header_len).ok_or(DropReason::Truncated)?;
    if Sum::default().add_words(&words).add_header(options).finish() != 0 {
        return Err(DropReason::IpChecksum);
    }
    let total_len = (first & 0xffff) as usize;
    if total_len < header_len {
        return Err(DropReason::IpMalformed);
    }
    let payload = packet.get(header_len..total_len).ok_or(DropReason::Truncated)?;
    let (src, dst) = (Ipv4Addr::from_bits(src), Ipv4Addr::from_bits(dst));
    let source_route = if options.is_empty() { None } else { walk_options(options, src)? };
    Ok(IpView {
        src: IpAddr::V4(src),
        dst: IpAddr::V4(dst),
        protocol: low_u8(u64::from(third >> 16)),
        hop_limit: (third >> 24) as u8,
        ecn: Ecn::from_bits(low_u8(u64::from(first >> 16))),
        dscp: low_u8(u64::from(first >> 18)) & 0x3f,
        dont_fragment: second & DONT_FRAGMENT != 0,
        fragment: fragment(second),
        source_route,
        header_len,
        payload,
    })
}

/// Reads the word of identification, flags and offset.
#[inline(always)]
fn fragment(word: u32) -> Option<FragmentInfo> {
    let (offset, more) = (low_u16(u64::from(word << 3)), word & MORE_FRAGMENTS != 0);
    (more || offset > 0).then_some(FragmentInfo { id: word >> 16, offset, more })
}

/// Skips unknown options (RFC 1122 §3.2.1.8); an option that contradicts the header makes the packet invalid. Returns
/// the reverse route if the packet came by a source route.
#[cold]
fn walk_options(mut options: &[u8], src: Ipv4Addr) -> Result<Option<Box<SourceRoute>>, DropReason> {
    let mut way_back = None;
    let mut seen = false;
    while let [kind, tail @ ..] = options {
        match *kind {
            OPTION_END => break,
            OPTION_NOP => options = tail,
            kind => {
                let len = usize::from(*tail.first().ok_or(DropReason::IpMalformed)?);
                if len < 2 || len > options.len() {
                    return Err(DropReason::IpMalformed);
                }
                if SourceRoute::is_source_route(kind) {
                    if seen {
                        return Err(DropReason::IpMalformed);
                    }
                    seen = true;
                    way_back = SourceRoute::way_back(&options[..len], src)?;
                }
                options = &options[len..];
            }
        }
    }
    Ok(way_back.map(Box::new))
}

/// The destination of a packet that a router quotes: with an unfinished source route, the destination field holds only
/// the next hop.
pub(crate) fn final_destination(header: &[u8]) -> Option<Ipv4Addr> {
    let destination = Ipv4Addr::from(*header.get(16..)?.first_chunk::<4>()?);
    let mut options = header.get(HEADER_LEN..)?;
    while let [kind, tail @ ..] = options {
        match *kind {
            OPTION_END => break,
            OPTION_NOP => options = tail,
            kind => {
                let option = options.get(..usize::from(*tail.first()?)).filter(|option| option.len() >= 2)?;
                if SourceRoute::is_source_route(kind) {
                    return Some(SourceRoute::remaining_destination(option).unwrap_or(destination));
                }
                options = &options[option.len()..];
            }
        }
    }
    Some(destination)
}

#[inline]
pub(super) fn header_len(header: &IpHeader<'_>) -> usize {
    let option_len = header.source_route.map_or(0, SourceRoute::option_len);
    HEADER_LEN + option_len.next_multiple_of(4)
}

#[inline]
pub(super) fn emit(
    header: &IpHeader<'_>,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    payload_len: usize,
    out: &mut Vec<u8>,
) {
    let mut room;
    let (next, options) = match header.source_route {
        None => (dst, &[][..]),
        Some(route) => {
            room = [0; MAX_HEADER_LEN - HEADER_LEN];
            let options = &mut room[..header_len(header) - HEADER_LEN];
            (route.write_option(dst, options), &*options)
        }
    };
    let total_len = HEADER_LEN + options.len() + payload_len;
    assert!(total_len <= usize::from(u16::MAX), "an IPv4 packet has at most 65535 bytes");
    let units = as_u32(HEADER_LEN + options.len()) / 4;
    let mut words = [
        (0x40 | units) << 24 | u32::from(header.traffic_class()) << 16 | as_u32(total_len),
        u32::from(header.id) << 16 | if header.dont_fragment { DONT_FRAGMENT } else { 0 },
        u32::from(header.hop_limit) << 24 | u32::from(header.protocol) << 16,
        src.to_bits(),
        next.to_bits(),
    ];
    words[2] |= u32::from(Sum::default().add_words(&words).add_header(options).finish());
    out.extend_from_slice(words.map(u32::to_be_bytes).as_flattened());
    out.extend_from_slice(options);
}
