//! The parts of a packet that a base station reads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hopwise_core::agent::{Dialect, Side};
use hopwise_core::narrow::as_u32;
use hopwise_core::wire::{Checksums, Ecn, Flags, IpHeader, IpView, Sum, TcpView, protocol};

/// Names a flow. The mobile comes first, so that all flows of one mobile are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Address and port of the end behind the radio.
    pub mobile: SocketAddr,
    /// Address and port of the other end.
    pub fixed: SocketAddr,
}

impl FlowKey {
    /// A key below all flows of this mobile.
    pub(super) fn first_of(mobile: IpAddr) -> FlowKey {
        let least = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        FlowKey { mobile: SocketAddr::new(mobile, 0), fixed: least }
    }
}

pub(super) struct ReadPacket<'a> {
    pub(super) key: FlowKey,
    pub(super) tcp: TcpView<'a>,
    pub(super) ce: bool,
    pub(super) pattern: Option<&'a [u8]>,
    pub(super) dialect: Dialect,
}

/// `None` for a packet that is no whole TCP segment: a base station does not handle it.
pub(super) fn read(packet: &[u8], from: Side, checksums: Checksums) -> Option<ReadPacket<'_>> {
    let ip = IpView::parse(packet).ok()?;
    if ip.protocol != protocol::TCP || ip.fragment.is_some() || ip.source_route.is_some() {
        return None;
    }
    let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, checksums).ok()?;
    let (src, dst) = (SocketAddr::new(ip.src, tcp.src_port), SocketAddr::new(ip.dst, tcp.dst_port));
    let key = match from {
        Side::Fixed => FlowKey { mobile: dst, fixed: src },
        Side::Mobile => FlowKey { mobile: src, fixed: dst },
    };
    let pattern = pattern(packet, &ip);
    let dialect = if tcp.flags.contains(Flags::SYN) { dialect(ip.payload) } else { Dialect::Other };
    Some(ReadPacket { key, ce: ip.ecn == Ecn::Ce, tcp, pattern, dialect })
}

/// The packet without padding behind it, if it can serve as a pattern for ACKs. IP options and extension headers do not
/// belong into one.
pub(super) fn pattern<'a>(packet: &'a [u8], ip: &IpView<'_>) -> Option<&'a [u8]> {
    let is_plain = ip.header_len == if ip.src.is_ipv4() { 20 } else { 40 };
    packet.get(..ip.header_len + ip.payload.len()).filter(|_| is_plain)
}

/// Parses a packet that was read before.
pub(super) fn parse(packet: &[u8]) -> Option<(IpView<'_>, TcpView<'_>)> {
    let ip = IpView::parse(packet).ok()?;
    let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Trust).ok()?;
    Some((ip, tcp))
}

/// A packet that was read before, with its TCP header unchanged and without data.
pub(super) fn without_data(packet: &[u8]) -> Option<Vec<u8>> {
    let (ip, tcp) = parse(packet)?;
    let segment = ip.payload.get(..ip.payload.len() - tcp.payload.len())?;
    let mut bare = Vec::with_capacity(MOST_HEADERS);
    let at = emit(&ip, segment, 0, &mut bare);
    bare[at + CHECKSUM..at + CHECKSUM + 2].fill(0);
    let sum = Sum::pseudo_header(ip.src, ip.dst, protocol::TCP, as_u32(segment.len())).add(&bare[at..]);
    bare[at + CHECKSUM..at + CHECKSUM + 2].copy_from_slice(&sum.finish().to_be_bytes());
    bare.shrink_to_fit();
    Some(bare)
}

/// A packet [without data](without_data), with `data` zeros behind it. Its checksum is not right then.
pub(super) fn with_zeros(bare: &[u8], data: usize) -> Option<Vec<u8>> {
    let (ip, _) = parse(bare)?;
    let mut packet = Vec::with_capacity(bare.len() + data);
    emit(&ip, ip.payload, data, &mut packet);
    packet.resize(packet.len() + data, 0);
    Some(packet)
}

/// Writes the headers of a packet with so much data; returns the place of its TCP header.
fn emit(ip: &IpView<'_>, segment: &[u8], data: usize, out: &mut Vec<u8>) -> usize {
    let header = IpHeader { hop_limit: ip.hop_limit, ..IpHeader::plain(ip.src, ip.dst, protocol::TCP) };
    header.emit(segment.len() + data, out);
    let at = out.len();
    out.extend_from_slice(segment);
    at
}

/// The headers of IPv6 and TCP, without options of IP.
const MOST_HEADERS: usize = 40 + 60;
/// The place of the checksum in a TCP header (RFC 9293 §3.1).
const CHECKSUM: usize = 16;

const END: u8 = 0;
const NOP: u8 = 1;

/// The sender's kind, by the order of the options that every modern stack offers.
fn dialect(segment: &[u8]) -> Dialect {
    let header_len = usize::from(segment[12] >> 4) * 4;
    let mut rest = segment.get(20..header_len).unwrap_or_default();
    let mut order = [0; 4];
    let mut count = 0;
    while let [kind, after @ ..] = rest {
        if *kind == END || count == order.len() {
            break;
        }
        if *kind == NOP {
            rest = after;
            continue;
        }
        order[count] = *kind;
        count += 1;
        let Some(next) = after.first().and_then(|len| rest.get(usize::from((*len).max(2))..)) else { break };
        rest = next;
    }
    match order {
        [2, 4, 8, 3] => Dialect::Linux,
        [2, 3, 4, 8] => Dialect::Bsd,
        _ => Dialect::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn(options: &[u8]) -> Vec<u8> {
        let mut segment = vec![0; 20];
        segment.extend_from_slice(options);
        segment.resize(segment.len().next_multiple_of(4), 0);
        segment[12] = (segment.len() as u8 / 4) << 4;
        segment
    }

    #[test]
    fn stacks_are_told_by_the_order_of_their_options() {
        let linux = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        let bsd = [2, 4, 5, 180, 1, 3, 3, 6, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0];
        let old = [2, 4, 5, 180, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(dialect(&syn(&linux)), Dialect::Linux);
        assert_eq!(dialect(&syn(&bsd)), Dialect::Bsd);
        for other in [&old[..], &[], &[2], &[2, 0], &[8, 200, 1, 2]] {
            assert_eq!(dialect(&syn(other)), Dialect::Other, "{other:?}");
        }
    }
}
