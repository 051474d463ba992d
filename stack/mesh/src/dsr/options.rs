//! The DSR Options header (RFC 4728 §6), bit by bit. It stands between the IPv4 header and the payload.

use std::net::Ipv4Addr;

use crate::on_demand::is_host;
use hopwise_core::narrow::{as_u8, as_u16};
use hopwise_core::wire::protocol;

mod content;

pub use content::{
    ArrivalsOption, DsrOption, RouteError, RouteErrorReason, RouteReply, RouteRequest, SourceRoute,
};

const PAD_N: u8 = 0;
/// An option number without registration; nodes that do not know it pass it on (§6).
const ARRIVALS: u8 = 0x17;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ERROR: u8 = 3;
const ACK: u8 = 32;
const SOURCE_ROUTE: u8 = 96;
const ACK_REQUEST: u8 = 160;
const PAD_1: u8 = 224;

/// The fixed part: next header, flags, length of the options.
const FIXED: usize = 4;
/// Set in the header of the flow state extension, which is not supported here.
const FLOW_STATE: u8 = 0x80;
/// The action bits of an unknown option, without the bit that requests an error (§6).
const UNKNOWN_ACTION: u8 = 0x60;
const UNKNOWN_IS_ERROR: u8 = 0x80;
const MUST_REMOVE: u8 = 0x20;
const MUST_DROP: u8 = 0x60;

const LAST_EXTERNAL: u8 = 0x80;
const NODE_UNREACHABLE: u8 = 1;
const OPTION_NOT_SUPPORTED: u8 = 3;

/// The largest number of addresses in a source route, a reply or a request.
pub(crate) const MOST_ADDRESSES: usize = 62;
/// The next header that says "nothing follows".
pub const NOTHING: u8 = protocol::NO_NEXT_HEADER;
/// A salvage count has four bits.
pub(crate) const MOST_SALVAGES: u8 = 15;

/// The bytes are no such header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedOptions;

/// A DSR Options header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionsHeader {
    /// The protocol of what follows.
    pub next: u8,
    /// The options in their order, without padding.
    pub options: Vec<DsrOption>,
}

/// A header as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The header without the options that are to be removed.
    pub header: OptionsHeader,
    /// Length of the header in bytes.
    pub len: usize,
    /// Offset of the source route's Segments Left field.
    pub(crate) segments_at: Option<usize>,
    /// Unknown options (§6): one that requests an error, whether some are to be removed, and whether the packet is to
    /// be dropped. Those to be marked go on as they came.
    pub unsupported: Option<u8>,
    pub(crate) has_removed: bool,
    pub(crate) is_to_be_dropped: bool,
}

impl OptionsHeader {
    /// Reads the header at the beginning of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<ReadOptions, MalformedOptions> {
        let [next, flags, high, low, rest @ ..] = bytes else { return Err(MalformedOptions) };
        if flags & FLOW_STATE != 0 {
            return Err(MalformedOptions);
        }
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let mut options = rest.get(..len).ok_or(MalformedOptions)?;
        let mut read = ReadOptions {
            header: OptionsHeader { next: *next, options: Vec::new() },
            len: FIXED + len,
            ..ReadOptions::default()
        };
        while let Some((kind, behind)) = options.split_first() {
            if *kind == PAD_1 {
                options = behind;
                continue;
            }
            let (size, behind) = behind.split_first().ok_or(MalformedOptions)?;
            let (data, behind) = behind.split_at_checked(usize::from(*size)).ok_or(MalformedOptions)?;
            let at = FIXED + len - options.len();
            options = behind;
            read.take(*kind, data, at)?;
        }
        Ok(read)
    }

    /// Appends the header, padded to a multiple of four bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let begins = out.len();
        out.extend([self.next, 0, 0, 0]);
        for option in &self.options {
            option.emit(begins, out);
        }
        // The options' length is a multiple of four (§6.1).
        while !(out.len() - begins).is_multiple_of(4) {
            out.push(PAD_1);
        }
        let len = out.len() - begins - FIXED;
        assert!(len <= usize::from(u16::MAX), "options have at most 65,535 bytes");
        out[begins + 2..begins + 4].copy_from_slice(&as_u16(len).to_be_bytes());
    }

    /// The header alone, padded to a multiple of four bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.emit(&mut bytes);
        bytes
    }

    /// The route of the packet, if it has one.
    pub fn route(&self) -> Option<&SourceRoute> {
        self.options.iter().find_map(|option| match option {
            DsrOption::Route(route) => Some(route),
            _ => None,
        })
    }
}

impl ReadOptions {
    /// `at` is the option's offset in the header.
    fn take(&mut self, kind: u8, data: &[u8], at: usize) -> Result<(), MalformedOptions> {
        let option = match kind {
            PAD_N => return Ok(()),
            REQUEST => {
                self.only_one(|option| matches!(option, DsrOption::Request(_)))?;
                DsrOption::Request(RouteRequest {
                    id: half(data, 0)?,
                    target: host(data, 2)?,
                    addresses: hosts(data.get(6..).ok_or(MalformedOptions)?)?,
                })
            }
            REPLY => {
                let (flags, rest) = data.split_first().ok_or(MalformedOptions)?;
                let addresses = hosts(rest)?;
                if addresses.is_empty() {
                    return Err(MalformedOptions);
                }
                DsrOption::Reply(RouteReply { is_last_external: flags & LAST_EXTERNAL != 0, addresses })
            }
            ERROR => DsrOption::Error(error(data)?),
            ACK_REQUEST => DsrOption::AckRequest { id: exactly(data, 2).and_then(|data| half(data, 0))? },
            ACK => {
                let data = exactly(data, 10)?;
                DsrOption::Ack { id: half(data, 0)?, src: host(data, 2)?, dst: host(data, 6)? }
            }
            SOURCE_ROUTE => {
                self.only_one(|option| matches!(option, DsrOption::Route(_)))?;
                self.segments_at = Some(at + 3);
                DsrOption::Route(source_route(data)?)
            }
            ARRIVALS => DsrOption::Arrivals(ArrivalsOption {
                of: host(data, 0)?,
                flows: data[size_of::<Ipv4Addr>()..].to_vec(),
            }),
            kind => {
                if kind & UNKNOWN_IS_ERROR != 0 {
                    self.unsupported.get_or_insert(kind);
                }
                match kind & UNKNOWN_ACTION {
                    MUST_DROP => self.is_to_be_dropped = true,
                    MUST_REMOVE => {
                        self.has_removed = true;
                        return Ok(());
                    }
                    _ => {}
                }
                DsrOption::Unknown { kind, data: data.to_vec() }
            }
        };
        self.header.options.push(option);
        Ok(())
    }

    /// Refuses a second option of a kind: it would contradict the first.
    fn only_one(&self, is_same: impl Fn(&DsrOption) -> bool) -> Result<(), MalformedOptions> {
        if self.header.options.iter().any(is_same) { Err(MalformedOptions) } else { Ok(()) }
    }
}

impl DsrOption {
    /// `begins` is the offset of the header: addresses stand at multiples of four from there.
    fn emit(&self, begins: usize, out: &mut Vec<u8>) {
        let begin = |out: &mut Vec<u8>, kind: u8, len: usize| {
            assert!(len <= usize::from(u8::MAX), "an option's length is one byte");
            out.extend([kind, as_u8(len)]);
        };
        match self {
            DsrOption::Request(request) => {
                begin(out, REQUEST, 6 + 4 * request.addresses.len());
                out.extend(request.id.to_be_bytes());
                out.extend(request.target.octets());
                write(&request.addresses, out);
            }
            DsrOption::Reply(reply) => {
                while (out.len() - begins) % 4 != 1 {
                    out.push(PAD_1);
                }
                begin(out, REPLY, 1 + 4 * reply.addresses.len());
                out.push(if reply.is_last_external { LAST_EXTERNAL } else { 0 });
                write(&reply.addresses, out);
            }
            DsrOption::Error(error) => {
                let (kind, about): (u8, &[u8]) = match &error.problem {
                    RouteErrorReason::Unreachable(node) => (NODE_UNREACHABLE, &node.octets()),
                    RouteErrorReason::NotSupported { option } => {
                        (OPTION_NOT_SUPPORTED, std::slice::from_ref(option))
                    }
                    RouteErrorReason::Other { kind } => (*kind, &[]),
                };
                begin(out, ERROR, 10 + about.len());
                out.extend([kind, error.salvage & 0x0f]);
                write(&[error.src, error.dst], out);
                out.extend_from_slice(about);
            }
            DsrOption::AckRequest { id } => {
                begin(out, ACK_REQUEST, 2);
                out.extend(id.to_be_bytes());
            }
            DsrOption::Ack { id, src, dst } => {
                begin(out, ACK, 10);
                out.extend(id.to_be_bytes());
                write(&[*src, *dst], out);
            }
            DsrOption::Route(route) => {
                begin(out, SOURCE_ROUTE, 2 + 4 * route.addresses.len());
                out.extend(route.word().to_be_bytes());
                write(&route.addresses, out);
            }
            DsrOption::Arrivals(ArrivalsOption { of, flows }) => {
                begin(out, ARRIVALS, 4 + flows.len());
                write(&[*of], out);
                out.extend_from_slice(flows);
            }
            DsrOption::Unknown { kind, data } => {
                begin(out, *kind, data.len());
                out.extend_from_slice(data);
            }
        }
    }
}

impl SourceRoute {
    /// F, L, four reserved bits, four of salvage, six of segments left.
    fn word(&self) -> u16 {
        u16::from(self.is_first_external) << 15
            | u16::from(self.is_last_external) << 14
            | u16::from(self.salvage & 0x0f) << 6
            | u16::from(self.segments_left & 0x3f)
    }
}

fn source_route(data: &[u8]) -> Result<SourceRoute, MalformedOptions> {
    let word = half(data, 0)?;
    let addresses = hosts(&data[2..])?;
    let segments_left = (word & 0x3f) as u8;
    if usize::from(segments_left) > addresses.len() {
        return Err(MalformedOptions);
    }
    Ok(SourceRoute {
        is_first_external: word & 0x8000 != 0,
        is_last_external: word & 0x4000 != 0,
        salvage: (word >> 6 & 0x0f) as u8,
        segments_left,
        addresses,
    })
}

fn error(data: &[u8]) -> Result<RouteError, MalformedOptions> {
    let [kind, salvage, ..] = data else { return Err(MalformedOptions) };
    let (src, dst) = (host(data, 2)?, host(data, 6)?);
    let about = &data[10..];
    let problem = match *kind {
        NODE_UNREACHABLE => {
            RouteErrorReason::Unreachable(exactly(about, 4).and_then(|about| host(about, 0))?)
        }
        OPTION_NOT_SUPPORTED => RouteErrorReason::NotSupported { option: exactly(about, 1)?[0] },
        kind => RouteErrorReason::Other { kind },
    };
    Ok(RouteError { salvage: salvage & 0x0f, src, dst, problem })
}

fn exactly(data: &[u8], len: usize) -> Result<&[u8], MalformedOptions> {
    if data.len() == len { Ok(data) } else { Err(MalformedOptions) }
}

fn half(data: &[u8], at: usize) -> Result<u16, MalformedOptions> {
    let bytes = data.get(at..).and_then(<[u8]>::first_chunk::<2>).ok_or(MalformedOptions)?;
    Ok(u16::from_be_bytes(*bytes))
}

/// An address that a node may have.
fn host(data: &[u8], at: usize) -> Result<Ipv4Addr, MalformedOptions> {
    let bytes = data.get(at..).and_then(<[u8]>::first_chunk::<4>).ok_or(MalformedOptions)?;
    let address = Ipv4Addr::from(*bytes);
    if is_host(address) { Ok(address) } else { Err(MalformedOptions) }
}

/// Addresses to the end, none of them twice.
fn hosts(data: &[u8]) -> Result<Vec<Ipv4Addr>, MalformedOptions> {
    if !data.len().is_multiple_of(4) || data.len() > 4 * MOST_ADDRESSES {
        return Err(MalformedOptions);
    }
    let addresses: Vec<_> = (0..data.len()).step_by(4).map(|at| host(data, at)).collect::<Result<_, _>>()?;
    if has_repeats(&addresses) { Err(MalformedOptions) } else { Ok(addresses) }
}

/// Returns whether a node occurs twice: such a route is a loop.
pub(super) fn has_repeats(addresses: &[Ipv4Addr]) -> bool {
    addresses.iter().enumerate().any(|(n, address)| addresses[..n].contains(address))
}

fn write(addresses: &[Ipv4Addr], out: &mut Vec<u8>) {
    addresses.iter().for_each(|address| out.extend(address.octets()));
}

#[cfg(test)]
mod tests;
