//! AODV's messages (RFC 3561 §5), bit by bit, with the extensions that may follow them (§9).

use hopwise_core::narrow::as_u8;

use std::net::Ipv4Addr;
use std::time::Duration;

const RREQ: u8 = 1;
const RREP: u8 = 2;
const RERR: u8 = 3;
const RREP_ACK: u8 = 4;

const RREQ_BYTES: usize = 24;
const RREP_BYTES: usize = 20;
const RERR_BYTES: usize = 4;
/// A destination in a RERR.
const UNREACHABLE_BYTES: usize = 8;

/// RREQ flags.
const JOIN: u8 = 0x80;
const REPAIR: u8 = 0x40;
const GRATUITOUS: u8 = 0x20;
const DESTINATION_ONLY: u8 = 0x10;
const UNKNOWN_SEQ: u8 = 0x08;
/// RREP flags; REPAIR is the first of them here.
const RREP_REPAIR: u8 = 0x80;
const ACK_REQUIRED: u8 = 0x40;
const PREFIX_SIZE: u8 = 0x1f;
/// RERR flag.
const NO_DELETE: u8 = 0x80;

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedMessage;

/// Requests a route (§5.1). `J` and `R` are for multicast, which is not supported: they are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rreq {
    /// Flag J.
    pub is_join: bool,
    /// Flag R.
    pub is_repair: bool,
    /// A node that replies from its table also informs the destination.
    pub is_gratuitous: bool,
    /// Only the destination replies.
    pub is_destination_only: bool,
    /// The hops from the originator to the node that sent this copy.
    pub hop_count: u8,
    /// The number of the request; with the originator it identifies the copies of one request.
    pub id: u32,
    /// The node that is sought.
    pub dst: Ipv4Addr,
    /// The last known number; `None` sets the U flag.
    pub dst_seq: Option<u32>,
    /// The node that seeks the route.
    pub origin: Ipv4Addr,
    /// The originator's own sequence number, which its reverse route gets.
    pub origin_seq: u32,
}

/// Announces a route (§5.2); a hello is one too (§6.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rrep {
    /// Flag R, for multicast.
    pub is_repair: bool,
    /// The receiver answers with a RREP-ACK.
    pub wants_ack: bool,
    /// Bits of the prefix to which the route leads, from 0 to 31. 0 stands for the destination alone.
    pub prefix_size: u8,
    /// The hops from the destination to the node that sent this copy.
    pub hop_count: u8,
    /// The node to which the route leads.
    pub dst: Ipv4Addr,
    /// The sequence number of the destination.
    pub dst_seq: u32,
    /// The node that had asked for the route.
    pub origin: Ipv4Addr,
    /// The time in milliseconds for which the route may be used.
    pub lifetime_ms: u32,
}

/// Names the routes that are gone (§5.3). There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerr {
    /// The link was mended: keep the routes.
    pub is_no_delete: bool,
    /// The destinations that are lost, each with its sequence number.
    pub unreachable: Vec<(Ipv4Addr, u32)>,
}

/// The four messages of AODV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AodvMessage {
    /// A request for a route.
    Rreq(Rreq),
    /// A route, in answer to a request or as a hello.
    Rrep(Rrep),
    /// The news that routes are lost.
    Rerr(Rerr),
    /// The acknowledgement of a reply.
    RrepAck,
}

/// The largest number of destinations in one RERR.
pub(crate) const MOST_UNREACHABLE: usize = 255;
/// No route is as long as this.
pub(crate) const MOST_HOPS: u8 = 250;

impl AodvMessage {
    /// Reads a message and the extensions behind it.
    pub fn parse(bytes: &[u8]) -> Result<(AodvMessage, Extensions<'_>), MalformedMessage> {
        let (message, used) = match bytes.first() {
            Some(&RREQ) => (AodvMessage::Rreq(Rreq::parse(bytes)?), RREQ_BYTES),
            Some(&RREP) => (AodvMessage::Rrep(Rrep::parse(bytes)?), RREP_BYTES),
            Some(&RERR) => {
                let rerr = Rerr::parse(bytes)?;
                let used = RERR_BYTES + UNREACHABLE_BYTES * rerr.unreachable.len();
                (AodvMessage::Rerr(rerr), used)
            }
            Some(&RREP_ACK) if bytes.len() >= 2 => (AodvMessage::RrepAck, 2),
            _ => return Err(MalformedMessage),
        };
        Ok((message, Extensions::parse(&bytes[used..])?))
    }

    /// Appends the message in the form of the RFC, without extensions.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            AodvMessage::Rreq(rreq) => rreq.emit(out),
            AodvMessage::Rrep(rrep) => rrep.emit(out),
            AodvMessage::Rerr(rerr) => rerr.emit(out),
            AodvMessage::RrepAck => out.extend([RREP_ACK, 0]),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(word(bytes, at))
}

fn flag(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

impl Rreq {
    fn parse(bytes: &[u8]) -> Result<Rreq, MalformedMessage> {
        if bytes.len() < RREQ_BYTES {
            return Err(MalformedMessage);
        }
        let flags = bytes[1];
        Ok(Rreq {
            is_join: flags & JOIN != 0,
            is_repair: flags & REPAIR != 0,
            is_gratuitous: flags & GRATUITOUS != 0,
            is_destination_only: flags & DESTINATION_ONLY != 0,
            hop_count: bytes[3],
            id: word(bytes, 4),
            dst: address(bytes, 8),
            dst_seq: (flags & UNKNOWN_SEQ == 0).then(|| word(bytes, 12)),
            origin: address(bytes, 16),
            origin_seq: word(bytes, 20),
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let flags = flag(self.is_join, JOIN)
            | flag(self.is_repair, REPAIR)
            | flag(self.is_gratuitous, GRATUITOUS)
            | flag(self.is_destination_only, DESTINATION_ONLY)
            | flag(self.dst_seq.is_none(), UNKNOWN_SEQ);
        out.extend([RREQ, flags, 0, self.hop_count]);
        out.extend(self.id.to_be_bytes());
        out.extend(self.dst.octets());
        out.extend(self.dst_seq.unwrap_or(0).to_be_bytes());
        out.extend(self.origin.octets());
        out.extend(self.origin_seq.to_be_bytes());
    }
}

impl Rrep {
    /// A reply without flags, about all of an address: the destination with its sequence number and the hops from it.
    pub(super) fn plain(
        (dst, dst_seq, hop_count): (Ipv4Addr, u32, u8),
        origin: Ipv4Addr,
        lifetime_ms: u32,
    ) -> Rrep {
        let (is_repair, wants_ack, prefix_size) = (false, false, 0);
        Rrep { is_repair, wants_ack, prefix_size, hop_count, dst, dst_seq, origin, lifetime_ms }
    }

    fn parse(bytes: &[u8]) -> Result<Rrep, MalformedMessage> {
        if bytes.len() < RREP_BYTES {
            return Err(MalformedMessage);
        }
        Ok(Rrep {
            is_repair: bytes[1] & RREP_REPAIR != 0,
            wants_ack: bytes[1] & ACK_REQUIRED != 0,
            prefix_size: bytes[2] & PREFIX_SIZE,
            hop_count: bytes[3],
            dst: address(bytes, 4),
            dst_seq: word(bytes, 8),
            origin: address(bytes, 12),
            lifetime_ms: word(bytes, 16),
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let flags = flag(self.is_repair, RREP_REPAIR) | flag(self.wants_ack, ACK_REQUIRED);
        out.extend([RREP, flags, self.prefix_size & PREFIX_SIZE, self.hop_count]);
        out.extend(self.dst.octets());
        out.extend(self.dst_seq.to_be_bytes());
        out.extend(self.origin.octets());
        out.extend(self.lifetime_ms.to_be_bytes());
    }
}

impl Rerr {
    /// The number of destinations for which a message of that length has room: at least one.
    pub(super) fn room(bytes: usize) -> usize {
        (bytes.saturating_sub(RERR_BYTES) / UNREACHABLE_BYTES).clamp(1, MOST_UNREACHABLE)
    }

    fn parse(bytes: &[u8]) -> Result<Rerr, MalformedMessage> {
        if bytes.len() < RERR_BYTES {
            return Err(MalformedMessage);
        }
        let count = usize::from(bytes[3]);
        let listed = bytes[RERR_BYTES..].get(..UNREACHABLE_BYTES * count).ok_or(MalformedMessage)?;
        if count == 0 {
            return Err(MalformedMessage);
        }
        let of = |chunk: &[u8]| (address(chunk, 0), word(chunk, 4));
        Ok(Rerr {
            is_no_delete: bytes[1] & NO_DELETE != 0,
            unreachable: listed.chunks_exact(UNREACHABLE_BYTES).map(of).collect(),
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        assert!(!self.unreachable.is_empty() && self.unreachable.len() <= MOST_UNREACHABLE, "RFC 3561 §5.3");
        out.extend([RERR, flag(self.is_no_delete, NO_DELETE), 0, as_u8(self.unreachable.len())]);
        for (dst, seq) in &self.unreachable {
            out.extend(dst.octets());
            out.extend(seq.to_be_bytes());
        }
    }
}

/// A lifetime as messages carry it.
pub(super) fn millis(lifetime: Duration) -> u32 {
    u32::try_from(lifetime.as_millis()).unwrap_or(u32::MAX)
}

/// The bytes of a message, and the extensions behind it.
pub(crate) fn bytes_of(message: &AodvMessage, extensions: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    bytes.extend(extensions);
    bytes
}

#[cfg(test)]
mod tests;

// The extensions that may follow a message: type, length, bytes (RFC 3561 §9).

/// The time between a node's hellos, in milliseconds.
pub(crate) const HELLO_INTERVAL: u8 = 1;
/// Receivers may not skip unknown types from here on.
const MUST_KNOW: u8 = 128;

/// An extension: a type, and the bytes of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// The type. Receivers that do not know it skip one below 128, and refuse the message from 128 on.
    pub kind: u8,
    /// The value, of 255 bytes at most.
    pub data: &'a [u8],
}

/// Extensions whose lengths were checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions<'a> {
    bytes: &'a [u8],
}

impl<'a> Extensions<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Extensions<'a>, MalformedMessage> {
        let mut rest = bytes;
        while let [kind, len, behind @ ..] = rest {
            if *kind >= MUST_KNOW {
                return Err(MalformedMessage);
            }
            rest = behind.get(usize::from(*len)..).ok_or(MalformedMessage)?;
        }
        if rest.is_empty() { Ok(Extensions { bytes }) } else { Err(MalformedMessage) }
    }

    /// All extensions, in the order of the message.
    pub fn iter(&self) -> impl Iterator<Item = Extension<'a>> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let [kind, len, behind @ ..] = rest else { return None };
            let (data, behind) = behind.split_at_checked(usize::from(*len))?;
            rest = behind;
            Some(Extension { kind: *kind, data })
        })
    }

    /// The value of the first extension of this type.
    pub fn find(&self, kind: u8) -> Option<&'a [u8]> {
        self.iter().find(|extension| extension.kind == kind).map(|extension| extension.data)
    }

    /// The bytes as they came, to be passed on.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl Extension<'_> {
    /// Appends it in the form of the RFC; a value of more than 255 bytes panics.
    pub fn emit(&self, out: &mut Vec<u8>) {
        assert!(self.data.len() <= usize::from(u8::MAX), "an extension's length is one byte");
        out.extend([self.kind, as_u8(self.data.len())]);
        out.extend(self.data);
    }
}
