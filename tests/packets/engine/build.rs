//! Packets of the peer as bytes. They are written by hand, not by core: the one checks the other.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hopwise_core::wire::{Flags, RouteKind};

use super::peer::{Peer, Side, stretch};
use super::segment::{IcmpIn, Segment};
use super::text::{Read, problem};

const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const TTL: u8 = 64;
/// The payload in place of the stream's.
const JUNK: u8 = 0xee;

/// The header around a segment or a message.
struct Ip<'a> {
    src: IpAddr,
    dst: IpAddr,
    protocol: u8,
    hop_limit: u8,
    /// DSCP and ECN.
    class: u8,
    options: &'a [u8],
}

/// Ones' complement sum of RFC 1071, bytes in pairs.
fn sum(parts: &[&[u8]]) -> u16 {
    let bytes: Vec<u8> = parts.concat();
    let mut total: u32 = 0;
    for pair in bytes.chunks(2) {
        total += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, len: usize) -> Vec<u8> {
    let mut header = [octets(src), octets(dst)].concat();
    header.extend((len as u32).to_be_bytes());
    header.extend([0, 0, 0, protocol]);
    header
}

fn packet(ip: &Ip<'_>, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match (ip.src, ip.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let header_len = 20 + ip.options.len().next_multiple_of(4);
            let total = (header_len + payload.len()) as u16;
            bytes.extend([0x40 | (header_len / 4) as u8, ip.class]);
            bytes.extend(total.to_be_bytes());
            bytes.extend([0, 1, 0x40, 0, ip.hop_limit, ip.protocol, 0, 0]);
            bytes.extend(src.octets());
            bytes.extend(dst.octets());
            bytes.extend(ip.options);
            bytes.resize(header_len, 0);
            let checksum = sum(&[&bytes]);
            bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        _ => {
            bytes.extend([0x60 | ip.class >> 4, ip.class << 4, 0, 0]);
            bytes.extend((payload.len() as u16).to_be_bytes());
            bytes.extend([ip.protocol, ip.hop_limit]);
            bytes.extend(octets(ip.src));
            bytes.extend(octets(ip.dst));
        }
    }
    bytes.extend(payload);
    bytes
}

/// A packet of the peer with this segment.
pub(crate) fn tcp(segment: &Segment, peer: &mut Peer, now_ms: u32) -> Read<Vec<u8>> {
    let src = segment.from.unwrap_or_default().or(peer.remote);
    let dst = segment.to.unwrap_or_default().or(peer.local);
    if src.is_ipv4() != dst.is_ipv4() {
        return Err(problem!("{src} and {dst} are not of one family"));
    }
    let mut bytes = header(segment, (src, dst), peer, now_ms)?;
    let len = segment.len;
    bytes.extend(if segment.tricks.junk {
        vec![JUNK; len as usize]
    } else {
        // The SYN takes the first number.
        stretch(Side::Peers, segment.seq.wrapping_add(segment.flags.contains(Flags::SYN).into()), len)
    });
    let pseudo_header = pseudo_header(src.ip(), dst.ip(), TCP, bytes.len());
    let mut checksum = sum(&[&pseudo_header, &bytes]);
    if segment.tricks.bad_checksum {
        checksum ^= 0x0100;
    }
    bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
    let options = ip_options(segment, src.ip())?;
    let ip = Ip {
        src: src.ip(),
        dst: dst.ip(),
        protocol: TCP,
        hop_limit: segment.hop_limit.unwrap_or(TTL),
        class: segment.dscp.unwrap_or(0) << 2 | segment.ecn.unwrap_or_default().bits(),
        options: &options,
    };
    let mut packet = packet(&ip, &bytes);
    if segment.tricks.bad_ip_checksum {
        packet[10] ^= 0x01;
    }
    packet.truncate(segment.tricks.truncate.unwrap_or(usize::MAX));
    Ok(packet)
}

fn header(
    segment: &Segment,
    (src, dst): (SocketAddr, SocketAddr),
    peer: &mut Peer,
    now_ms: u32,
) -> Read<Vec<u8>> {
    let mut options = Vec::new();
    for option in segment.options.iter().flat_map(|list| &list.options) {
        peer.to_wire(option, now_ms).write(&mut options);
    }
    options.resize(options.len().next_multiple_of(4), 0);
    if options.len() > 40 {
        return Err(problem!("{} bytes of options do not fit", options.len()));
    }
    let words = segment.tricks.offset.unwrap_or((5 + options.len() / 4) as u8);
    let window = peer.window_field(segment.window);
    let mut bytes = Vec::new();
    bytes.extend(src.port().to_be_bytes());
    bytes.extend(dst.port().to_be_bytes());
    bytes.extend(peer.its_number(segment.seq).to_be_bytes());
    bytes.extend(segment.ack.map_or(0, |ack| peer.our_number(ack)).to_be_bytes());
    bytes.extend([words << 4 | segment.tricks.reserved, segment.flags.0]);
    bytes.extend(window.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(segment.urgent.unwrap_or(0).to_be_bytes());
    bytes.extend(options);
    Ok(bytes)
}

/// A source route as it stands in a packet that has travelled all of it: the hops are recorded, none is left.
fn ip_options(segment: &Segment, src: IpAddr) -> Read<Vec<u8>> {
    if src.is_ipv6() && (segment.route.is_some() || !segment.tricks.ip_options.is_empty()) {
        return Err(problem!("IPv6 has no such options"));
    }
    let Some((kind, hops)) = &segment.route else { return Ok(segment.tricks.ip_options.clone()) };
    let len = 3 + 4 * hops.len() as u8;
    let kind = match kind {
        RouteKind::Loose => 131,
        RouteKind::Strict => 137,
    };
    let mut option = vec![kind, len, len + 1];
    option.extend(hops.iter().flat_map(Ipv4Addr::octets));
    Ok(option)
}

/// An ICMP message; errors come from a router on the path unless `from` names another source.
pub(crate) fn icmp(icmp: &IcmpIn, peer: &Peer) -> Read<Vec<u8>> {
    let us = peer.local.ip();
    let router = router(us);
    let (icmp_type, code, value, src) = match (icmp.kind.as_str(), us) {
        ("echo", IpAddr::V4(_)) => (8, 0, 0x0007_0001, peer.remote.ip()),
        ("echo", IpAddr::V6(_)) => (128, 0, 0x0007_0001, peer.remote.ip()),
        _ => {
            let (icmp_type, code, value) = error_head(icmp, us)?;
            (icmp_type, code, value, router)
        }
    };
    let src = icmp.from.unwrap_or(src);
    let body = if icmp.kind == "echo" { b"ping".to_vec() } else { quoted(icmp, peer)? };
    let mut message = vec![icmp_type, code, 0, 0];
    message.extend(value.to_be_bytes());
    message.extend(body);
    let protocol = if us.is_ipv4() { ICMP } else { ICMPV6 };
    let pseudo_header = if us.is_ipv4() { Vec::new() } else { pseudo_header(src, us, ICMPV6, message.len()) };
    let checksum = sum(&[&pseudo_header, &message]);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    Ok(packet(&Ip { src, dst: us, protocol, hop_limit: TTL, class: 0, options: &[] }, &message))
}

fn router(us: IpAddr) -> IpAddr {
    let text = if us.is_ipv4() { "192.0.2.254" } else { "2001:db8::fe" };
    text.parse().unwrap_or(us)
}

fn error_head(icmp: &IcmpIn, us: IpAddr) -> Read<(u8, u8, u32)> {
    let first = icmp.numbers.first().copied();
    let number = || first.ok_or_else(|| problem!("`icmp {}` needs a number", icmp.kind));
    Ok(match (icmp.kind.as_str(), us.is_ipv4()) {
        ("unreachable", true) => (3, number()? as u8, 0),
        ("unreachable", false) => (1, number()? as u8, 0),
        ("net_unreachable", true) => (3, 0, 0),
        ("host_unreachable", true) => (3, 1, 0),
        ("no_route", false) => (1, 0, 0),
        ("protocol_unreachable", true) => (3, 2, 0),
        ("port_unreachable", true) => (3, 3, 0),
        ("port_unreachable", false) => (1, 4, 0),
        ("too_big", true) => (3, 4, number()? as u32),
        ("too_big", false) => (2, 0, number()? as u32),
        ("source_quench", true) => (4, 0, 0),
        ("time_exceeded", true) => (11, 0, 0),
        ("time_exceeded", false) => (3, 0, 0),
        ("parameter_problem", true) => (12, 0, first.unwrap_or(20) as u32),
        ("parameter_problem", false) => (4, 0, first.unwrap_or(40) as u32),
        (kind, _) => return Err(problem!("`{kind}` is no ICMP message of that family")),
    })
}

/// The segment of ours that the error is about: the newest one with that number, or the newest of all with its
/// number changed.
fn quoted(icmp: &IcmpIn, peer: &Peer) -> Read<Vec<u8>> {
    let header_len = |packet: &[u8]| if packet[0] >> 4 == 4 { usize::from(packet[0] & 15) * 4 } else { 40 };
    let number = |packet: &[u8]| packet[header_len(packet) + 4..header_len(packet) + 8].to_vec();
    let newest = peer.emitted.back().ok_or_else(|| problem!("nothing was sent that ICMP could quote"))?;
    let wanted = icmp.about.map(|about| peer.our_number(about).to_be_bytes().to_vec());
    let exact = peer.emitted.iter().rev().find(|packet| wanted.as_ref() == Some(&number(packet)));
    let mut quote = exact.unwrap_or(newest).clone();
    let header_len = header_len(&quote);
    if let Some(wanted) = wanted {
        quote[header_len + 4..header_len + 8].copy_from_slice(&wanted);
    }
    quote.truncate(header_len + icmp.quote.unwrap_or(if peer.local.is_ipv4() { 8 } else { 1000 }));
    Ok(quote)
}
