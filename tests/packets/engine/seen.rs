//! The endpoint's packets, read by etherparse, which shares no code with core. Every packet that leaves has to be
//! well-formed, and this is checked in every script.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice, TcpSlice};
use hopwise_core::wire::{Ecn, Flags, RouteKind};

use super::options::{Opt, decode};
use super::peer::{Peer, Side, stretch};
use super::segment::{Outbound, Route, Segment, show_ecn};
use super::text::{Problem, Read, problem, show_sequence};

const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

#[derive(Clone, Debug)]
pub(crate) enum Seen {
    Tcp(Box<SeenTcp>),
    Icmp { dst: IpAddr, icmp_type: u8, code: u8 },
}

/// A segment of ours, in the wire's numbers.
#[derive(Clone, Debug)]
pub(crate) struct SeenTcp {
    pub(crate) src: SocketAddr,
    /// The end of the source route, if there is one.
    pub(crate) dst: SocketAddr,
    pub(crate) flags: Flags,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    window: u16,
    urgent: u16,
    options: Vec<Opt>,
    payload: Vec<u8>,
    hop_limit: u8,
    dscp: u8,
    ecn: Ecn,
    dont_fragment: bool,
    route: Option<Route>,
    /// The payload of the bundle's segments, if it is one.
    pub(crate) segment_bytes: Option<u16>,
}

/// The fields of the IP header.
struct Around<'a> {
    src: IpAddr,
    dst: IpAddr,
    protocol: u8,
    hop_limit: u8,
    dscp: u8,
    ecn: Ecn,
    dont_fragment: bool,
    route: Option<Route>,
    payload: &'a [u8],
}

impl Seen {
    pub(crate) fn read(packet: &[u8], mtu: u16) -> Read<Seen> {
        if packet.len() > usize::from(mtu) {
            return Err(problem!("{} bytes do not fit the link, whose MTU is {mtu}", packet.len()));
        }
        let ip = match packet.first().map(|first| first >> 4) {
            Some(4) => read_v4(packet)?,
            _ => read_v6(packet)?,
        };
        match ip.protocol {
            TCP => Ok(Seen::Tcp(Box::new(read_tcp(ip)?))),
            ICMP | ICMPV6 if ip.payload.len() >= 8 => {
                Ok(Seen::Icmp { dst: ip.dst, icmp_type: ip.payload[0], code: ip.payload[1] })
            }
            other => Err(problem!("protocol {other} is none that we speak")),
        }
    }
}

fn from<E: std::fmt::Display>(error: E) -> Problem {
    problem!("etherparse does not take it: {error}")
}

fn read_v4(packet: &[u8]) -> Read<Around<'_>> {
    let header = Ipv4HeaderSlice::from_slice(packet).map_err(from)?;
    if header.to_header().calc_header_checksum() != header.header_checksum() {
        return Err(problem!("the checksum of the IPv4 header is wrong"));
    }
    if usize::from(header.total_len()) != packet.len() {
        return Err(problem!(
            "the total length says {}, but {} bytes left",
            header.total_len(),
            packet.len()
        ));
    }
    let (dst, route) = destination(header.destination_addr(), header.options())?;
    Ok(Around {
        src: header.source_addr().into(),
        dst: dst.into(),
        protocol: header.protocol().0,
        hop_limit: header.ttl(),
        dscp: header.dcp().value(),
        ecn: Ecn::from_bits(header.ecn().value()),
        dont_fragment: header.dont_fragment(),
        route,
        payload: &packet[header.slice().len()..],
    })
}

/// The header names a source route's first hop; the further hops and the destination stand behind it.
fn destination(dst: Ipv4Addr, options: &[u8]) -> Read<(Ipv4Addr, Option<Route>)> {
    let kind = match options {
        [] => return Ok((dst, None)),
        [131, ..] => RouteKind::Loose,
        [137, ..] => RouteKind::Strict,
        [other, ..] => return Err(problem!("IP option {other} is none that we send")),
    };
    let stations: Vec<Ipv4Addr> = options
        .get(3..options.get(1).map_or(0, |len| usize::from(*len)))
        .ok_or_else(|| problem!("the source route has a length that cannot be"))?
        .chunks_exact(4)
        .map(|octets| Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]))
        .collect();
    let mut hops = vec![dst];
    hops.extend(&stations);
    let last = hops.pop().ok_or_else(|| problem!("a source route without a destination"))?;
    if options[2] != 4 || stations.is_empty() {
        return Err(problem!("a source route of ours begins at its first address"));
    }
    Ok((last, Some((kind, hops))))
}

fn read_v6(packet: &[u8]) -> Read<Around<'_>> {
    let header = Ipv6HeaderSlice::from_slice(packet).map_err(from)?;
    let payload = &packet[40..];
    if usize::from(header.payload_length()) != payload.len() {
        return Err(problem!("the payload length says {}, not {}", header.payload_length(), payload.len()));
    }
    Ok(Around {
        src: header.source_addr().into(),
        dst: header.destination_addr().into(),
        protocol: header.next_header().0,
        hop_limit: header.hop_limit(),
        dscp: header.traffic_class() >> 2,
        ecn: Ecn::from_bits(header.traffic_class()),
        dont_fragment: true,
        route: None,
        payload,
    })
}

fn read_tcp(ip: Around<'_>) -> Read<SeenTcp> {
    let segment = TcpSlice::from_slice(ip.payload).map_err(from)?;
    let checksum = match (ip.src, ip.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            segment.calc_checksum_ipv4(src.octets(), dst.octets()).map_err(from)?
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            segment.calc_checksum_ipv6(src.octets(), dst.octets()).map_err(from)?
        }
        _ => return Err(problem!("source and destination are not of one family")),
    };
    if checksum != segment.checksum() {
        return Err(problem!("the TCP checksum is wrong"));
    }
    if ip.payload[12] & 0x0f != 0 {
        return Err(problem!("reserved bits are set"));
    }
    let flags = Flags(ip.payload[13]);
    let options = decode(segment.options())?;
    check_flags(flags, segment.urgent_pointer(), &options)?;
    Ok(SeenTcp {
        src: SocketAddr::new(ip.src, segment.source_port()),
        dst: SocketAddr::new(ip.dst, segment.destination_port()),
        flags,
        seq: segment.sequence_number(),
        ack: segment.acknowledgment_number(),
        window: segment.window_size(),
        urgent: segment.urgent_pointer(),
        options,
        payload: segment.payload().to_vec(),
        hop_limit: ip.hop_limit,
        dscp: ip.dscp,
        ecn: ip.ecn,
        dont_fragment: ip.dont_fragment,
        route: ip.route,
        segment_bytes: None,
    })
}

/// Checks rules for all packets that leave, whatever a script expects.
fn check_flags(flags: Flags, urgent: u16, options: &[Opt]) -> Read<()> {
    let is_syn_only = |opt: &&Opt| {
        matches!(opt, Opt::Mss(_) | Opt::Wscale(_) | Opt::SackOk | Opt::Offer(_) | Opt::RateOffer)
    };
    if !flags.contains(Flags::SYN)
        && let Some(option) = options.iter().find(is_syn_only)
    {
        return Err(problem!("`{option}` goes with SYN only (RFC 9293 MUST-65)"));
    }
    if flags.contains(Flags::URG) != (urgent > 0) {
        return Err(problem!("URG and an urgent pointer go together"));
    }
    let starts = [Flags::SYN, Flags::FIN, Flags::RST].iter().filter(|flag| flags.contains(**flag)).count();
    if starts > 1 { Err(problem!("of SYN, FIN and RST at most one")) } else { Ok(()) }
}

impl SeenTcp {
    /// Learns our initial numbers, and checks that the payload is the application's.
    pub(crate) fn meet(&mut self, peer: &mut Peer) -> Read<()> {
        if self.flags.contains(Flags::SYN) && peer.our_isn.is_none() {
            peer.our_isn = Some(self.seq);
        }
        let options = std::mem::take(&mut self.options);
        self.options = options.into_iter().map(|option| peer.learn_option(option)).collect();
        let seq = peer.our_script(self.seq);
        if self.payload != stretch(Side::Ours, seq, self.payload.len() as u32) {
            return Err(problem!("its payload is not what the application gave"));
        }
        let end = seq.wrapping_add(self.payload.len() as u32).wrapping_sub(1);
        if !self.payload.is_empty() && end > peer.sent {
            return Err(problem!("it carries more than the application gave"));
        }
        Ok(())
    }

    /// The differences of a segment from the expected one.
    pub(crate) fn differences(&self, wanted: &Segment, peer: &Peer) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, is: String, should: String| {
            if is != should {
                found.push(format!("{what} is {is}, not {should}"));
            }
        };
        let ignored = if wanted.ignores_push { Flags::PSH } else { Flags::default() };
        compare("flags", (self.flags | ignored).to_string(), (wanted.flags | ignored).to_string());
        compare("seq", show_sequence(peer.our_script(self.seq)), show_sequence(wanted.seq));
        compare("length", self.payload.len().to_string(), wanted.len.to_string());
        if let Some(ack) = wanted.ack {
            compare("ack", show_sequence(peer.its_script(self.ack)), show_sequence(ack));
        }
        compare("bundle", format!("{:?}", self.segment_bytes), format!("{:?}", wanted.bundle));
        let mut optional = |what: &str, is: String, should: Option<String>| {
            if let Some(should) = should {
                compare(what, is, should);
            }
        };
        optional("urg", self.urgent.to_string(), wanted.urgent.map(|urgent| urgent.to_string()));
        optional("ecn", show_ecn(self.ecn).to_owned(), wanted.ecn.map(|ecn| show_ecn(ecn).to_owned()));
        optional("ttl", self.hop_limit.to_string(), wanted.hop_limit.map(|limit| limit.to_string()));
        optional("dscp", self.dscp.to_string(), wanted.dscp.map(|dscp| dscp.to_string()));
        optional("df", self.dont_fragment.to_string(), wanted.dont_fragment.map(|df| df.to_string()));
        optional(
            "route",
            format!("{:?}", self.route),
            wanted.route.as_ref().map(|_| format!("{:?}", wanted.route)),
        );
        optional("source", self.src.to_string(), wanted.from.map(|place| place.or(self.src).to_string()));
        optional("destination", self.dst.to_string(), wanted.to.map(|place| place.or(self.dst).to_string()));
        if let Some(window) = wanted.window
            && !window.contains(self.window.into())
        {
            found.push(format!("win is {}, not {window}", self.window));
        }
        found.extend(wanted.options.as_ref().and_then(|list| list.difference(&self.options)));
        found
    }

    /// The segment as a script would write it.
    pub(crate) fn show(&self, peer: &Peer) -> String {
        let mut text = format!("{} seq {}", self.flags, show_sequence(peer.our_script(self.seq)));
        if !self.payload.is_empty() {
            let end = self.seq.wrapping_add(self.payload.len() as u32);
            let _ = write!(text, "..{}", show_sequence(peer.our_script(end)));
        }
        if self.flags.contains(Flags::ACK) {
            let _ = write!(text, " ack {}", show_sequence(peer.its_script(self.ack)));
        }
        let _ = write!(text, " win {}", self.window);
        if let Some(segment_bytes) = self.segment_bytes {
            let _ = write!(text, " bundle {segment_bytes}");
        }
        if self.urgent > 0 {
            let _ = write!(text, " urg {}", self.urgent);
        }
        if self.ecn != Ecn::NotEct {
            let _ = write!(text, " ecn {}", show_ecn(self.ecn));
        }
        let shown = self.options.iter().filter(|option| !matches!(option, Opt::Nop | Opt::End));
        let options: Vec<String> = shown.map(ToString::to_string).collect();
        if !options.is_empty() {
            let _ = write!(text, " [{}]", options.join(", "));
        }
        text
    }
}

impl Seen {
    pub(crate) fn show(&self, peer: &Peer) -> String {
        match self {
            Seen::Tcp(segment) => segment.show(peer),
            Seen::Icmp { icmp_type, code, .. } => format!("icmp {icmp_type} {code}"),
        }
    }

    /// The differences from the expected packet; empty if there are none.
    pub(crate) fn differences(&self, wanted: &Outbound, peer: &Peer) -> Vec<String> {
        match (self, wanted) {
            (Seen::Tcp(segment), Outbound::Tcp(wanted)) => segment.differences(wanted, peer),
            (Seen::Icmp { icmp_type, code, .. }, Outbound::Icmp { icmp_type: wanted, code: wanted_code }) => {
                let is_it = icmp_type == wanted && wanted_code.is_none_or(|wanted| wanted == *code);
                if is_it { Vec::new() } else { vec!["it is another ICMP message".to_owned()] }
            }
            (_, Outbound::Anything) => Vec::new(),
            _ => vec!["it is of another protocol".to_owned()],
        }
    }
}
