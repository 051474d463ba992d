//! Packets as scripts write them. Numbers are the script's: sequence numbers relative to the initial ones.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hopwise_core::wire::{Ecn, Flags, RouteKind};

use super::options::OptionList;
use super::text::{Range, Read, Words, bytes, field, problem, sequence, switch};

/// A segment that comes in, or that is expected. An absent field is usual, or not compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    pub(crate) flags: Flags,
    pub(crate) seq: u32,
    pub(crate) len: u32,
    pub(crate) ack: Option<u32>,
    pub(crate) window: Option<Range>,
    pub(crate) urgent: Option<u16>,
    pub(crate) options: Option<OptionList>,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) dscp: Option<u8>,
    pub(crate) dont_fragment: Option<bool>,
    pub(crate) route: Option<Route>,
    pub(crate) from: Option<PartialSocket>,
    pub(crate) to: Option<PartialSocket>,
    /// The packet leaves as one, to be cut into segments of that much payload.
    pub(crate) bundle: Option<u16>,
    pub(crate) ignores_push: bool,
    pub(crate) tricks: Tricks,
}

/// The hops of an IPv4 source route.
pub(crate) type Route = (RouteKind, Vec<Ipv4Addr>);

/// An address, a port, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartialSocket {
    pub(crate) ip: Option<IpAddr>,
    pub(crate) port: Option<u16>,
}

/// The oddities of a packet that comes in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tricks {
    pub(crate) bad_checksum: bool,
    pub(crate) bad_ip_checksum: bool,
    /// Payload that differs from the peer's stream.
    pub(crate) junk: bool,
    pub(crate) truncate: Option<usize>,
    /// The data offset field, in words.
    pub(crate) offset: Option<u8>,
    /// The four bits between data offset and flags.
    pub(crate) reserved: u8,
    pub(crate) ip_options: Vec<u8>,
    pub(crate) cast: Option<hopwise_core::Cast>,
    /// The size of the segments that a link coalesced.
    pub(crate) coalesced: Option<u16>,
}

/// A packet that comes in.
#[derive(Clone, Debug)]
pub(crate) enum Inbound {
    Tcp(Box<Segment>),
    Icmp(IcmpIn),
    /// A whole packet, byte for byte.
    Raw(Vec<u8>),
}

/// An ICMP message that comes in; an error quotes a segment of ours.
#[derive(Clone, Debug, Default)]
pub(crate) struct IcmpIn {
    pub(crate) kind: String,
    /// The MTU of `too_big`, the code of `unreachable` and of `icmp TYPE CODE`.
    pub(crate) numbers: Vec<u64>,
    /// The sequence number in the quote; absent, the newest segment's.
    pub(crate) about: Option<u32>,
    /// Bytes of the quote behind its IP header.
    pub(crate) quote: Option<usize>,
    pub(crate) from: Option<IpAddr>,
}

/// A packet that is expected.
#[derive(Clone, Debug)]
pub(crate) enum Outbound {
    Tcp(Box<Segment>),
    Icmp {
        icmp_type: u8,
        code: Option<u8>,
    },
    /// `...`: all packets until now.
    Anything,
}

impl Inbound {
    pub(crate) fn read(words: &mut Words) -> Read<Inbound> {
        match words.peek() {
            Some("raw") => {
                words.next();
                let packet = bytes(words.want("the packet")?)?;
                words.finish()?;
                Ok(Inbound::Raw(packet))
            }
            Some("icmp") => {
                words.next();
                Ok(Inbound::Icmp(IcmpIn::read(words)?))
            }
            _ => Ok(Inbound::Tcp(Box::new(Segment::read(words)?))),
        }
    }
}

impl Outbound {
    pub(crate) fn read(words: &mut Words) -> Read<Outbound> {
        if words.take("...") {
            words.finish()?;
            return Ok(Outbound::Anything);
        }
        if !words.take("icmp") {
            return Ok(Outbound::Tcp(Box::new(Segment::read(words)?)));
        }
        let icmp_type = field(words.want("the ICMP type")?)?;
        let code = words.next().map(field).transpose()?;
        words.finish()?;
        Ok(Outbound::Icmp { icmp_type, code })
    }
}

impl IcmpIn {
    fn read(words: &mut Words) -> Read<IcmpIn> {
        let mut icmp = IcmpIn { kind: words.want("the kind of message")?.to_owned(), ..IcmpIn::default() };
        while let Some(word) = words.next() {
            match word {
                "about" => icmp.about = Some(sequence(words.want("a sequence number")?)?),
                "quote" => icmp.quote = Some(field(words.want("a number of bytes")?)?),
                "from" => icmp.from = Some(address(words.want("an address")?)?),
                other => icmp.numbers.push(field(other)?),
            }
        }
        Ok(icmp)
    }
}

impl Segment {
    pub(crate) fn read(words: &mut Words) -> Read<Segment> {
        let mut segment = Segment { flags: read_flags(words.want("the flags")?)?, ..Segment::default() };
        let mut has_seq = false;
        while let Some(key) = words.next().map(str::to_owned) {
            has_seq |= key == "seq";
            segment.read_field(&key, words)?;
        }
        if !has_seq {
            return Err(problem!("a segment needs `seq`"));
        }
        if segment.flags.contains(Flags::ACK) != segment.ack.is_some() && !segment.flags.contains(Flags::RST)
        {
            return Err(problem!("`ack N` goes with the flag `.`"));
        }
        Ok(segment)
    }

    fn read_field(&mut self, key: &str, words: &mut Words) -> Read<()> {
        if key.starts_with('[') {
            self.options = Some(OptionList::read(key)?);
            return Ok(());
        }
        match key {
            "junk" => self.tricks.junk = true,
            "bad" => match words.want("what is bad")? {
                "checksum" => self.tricks.bad_checksum = true,
                "ip_checksum" => self.tricks.bad_ip_checksum = true,
                other => return Err(problem!("`{other}`: bad checksum, or bad ip_checksum")),
            },
            "route" => self.route = Some(read_route(words)?),
            _ => return self.read_value(key, words),
        }
        Ok(())
    }

    fn read_value(&mut self, key: &str, words: &mut Words) -> Read<()> {
        let value = words.want(&format!("the value of `{key}`"))?;
        match key {
            "seq" => (self.seq, self.len) = read_span(value)?,
            "ack" => self.ack = Some(sequence(value)?),
            "win" => self.window = Some(Range::read(value)?),
            "urg" => self.urgent = Some(field(value)?),
            "ecn" => self.ecn = Some(read_ecn(value)?),
            "ttl" => self.hop_limit = Some(field(value)?),
            "dscp" => self.dscp = Some(field(value)?),
            "df" => self.dont_fragment = Some(switch(value)?),
            "from" => self.from = Some(PartialSocket::read(value)?),
            "to" => self.to = Some(PartialSocket::read(value)?),
            "truncate" => self.tricks.truncate = Some(field(value)?),
            "offset" => self.tricks.offset = Some(field(value)?),
            "reserved" => self.tricks.reserved = field(value)?,
            "ip_options" => self.tricks.ip_options = bytes(value)?,
            "cast" => self.tricks.cast = Some(read_cast(value)?),
            "bundle" => self.bundle = Some(field(value)?),
            "coalesced" => self.tricks.coalesced = Some(field(value)?),
            other => return Err(problem!("`{other}` is nothing that a segment has")),
        }
        Ok(())
    }
}

impl PartialSocket {
    pub(crate) fn read(text: &str) -> Read<PartialSocket> {
        if let Ok(ip) = text.parse() {
            return Ok(PartialSocket { ip: Some(ip), port: None });
        }
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return Ok(PartialSocket { ip: Some(socket.ip()), port: Some(socket.port()) });
        }
        match text.strip_prefix(':') {
            Some(port) => Ok(PartialSocket { ip: None, port: Some(field(port)?) }),
            None => Err(problem!("`{text}`: expected ADDRESS, :PORT, or both")),
        }
    }

    pub(crate) fn or(self, socket: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.ip.unwrap_or(socket.ip()), self.port.unwrap_or(socket.port()))
    }
}

pub(crate) fn address(text: &str) -> Read<IpAddr> {
    text.parse().map_err(|_| problem!("`{text}` is no address"))
}

const LETTERS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('.', Flags::ACK),
    ('U', Flags::URG),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
];

fn read_flags(text: &str) -> Read<Flags> {
    let mut flags = Flags::default();
    for letter in text.chars().filter(|_| text != "none") {
        let known = LETTERS.iter().find(|(name, _)| *name == letter);
        flags |= known.ok_or_else(|| problem!("`{text}`: flags are made of SFRP.UEW, or `none`"))?.1;
    }
    Ok(flags)
}

/// `1..1461` are 1460 bytes, `1` is none.
fn read_span(text: &str) -> Read<(u32, u32)> {
    let Some((from, to)) = text.split_once("..") else { return Ok((sequence(text)?, 0)) };
    let (from, to) = (sequence(from)?, sequence(to)?);
    let len = to.wrapping_sub(from);
    if len > 1 << 20 { Err(problem!("`{text}` ends before it begins")) } else { Ok((from, len)) }
}

const ECN: [(&str, Ecn); 4] =
    [("none", Ecn::NotEct), ("ect1", Ecn::Ect1), ("ect0", Ecn::Ect0), ("ce", Ecn::Ce)];

fn read_ecn(text: &str) -> Read<Ecn> {
    let known = ECN.iter().find(|(name, _)| *name == text).map(|(_, ecn)| *ecn);
    known.ok_or_else(|| problem!("`{text}`: expected none, ect0, ect1 or ce"))
}

pub(crate) fn show_ecn(ecn: Ecn) -> &'static str {
    ECN.iter().find(|(_, value)| *value == ecn).map_or("none", |(name, _)| name)
}

fn read_cast(text: &str) -> Read<hopwise_core::Cast> {
    match text {
        "us" => Ok(hopwise_core::Cast::ToUs),
        "all" => Ok(hopwise_core::Cast::ToAll),
        "overheard" => Ok(hopwise_core::Cast::Overheard),
        other => Err(problem!("`{other}`: expected us, all or overheard")),
    }
}

/// `loose A,B` or `strict A,B`.
pub(crate) fn read_route(words: &mut Words) -> Read<Route> {
    let kind = match words.want("loose or strict")? {
        "loose" => RouteKind::Loose,
        "strict" => RouteKind::Strict,
        other => return Err(problem!("`{other}`: expected loose or strict")),
    };
    let hops = words.want("the hops")?.split(',');
    let hop = |text: &str| text.parse().map_err(|_| problem!("`{text}` is no IPv4 address"));
    Ok((kind, hops.map(hop).collect::<Read<_>>()?))
}

#[test]
fn a_segment_is_read_field_by_field() {
    let read = |line| Words::split(line).and_then(|mut words| Segment::read(&mut words));
    let segment = read("FP. seq 1..1461 ack 5 win 3.. [mss 9] ecn ce from 10.0.0.9:80 bad checksum").unwrap();
    assert_eq!(segment.flags, Flags::FIN | Flags::PSH | Flags::ACK);
    assert_eq!((segment.seq, segment.len, segment.ack), (1, 1460, Some(5)));
    assert_eq!((segment.ecn, segment.tricks.bad_checksum), (Some(Ecn::Ce), true));
    assert!(read("S seq -1..1").unwrap().len == 2);
    for wrong in ["S", "X seq 1", ". seq 1", "S seq 1 ack 1", "S seq 2..1", "S seq 1 what 3", "S seq 1 win"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
