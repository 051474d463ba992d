//! ICMP (RFC 792) and ICMPv6 (RFC 4443) in one form. Every message that concerns us has the same parts: type, code,
//! checksum, four bytes that depend on the type, and a body.

mod quoted;

pub use quoted::QuotedTcp;

use std::net::IpAddr;

use super::{Sum, protocol};
use crate::narrow::as_u32;
use crate::trace::DropReason;

const HEADER_LEN: usize = 8;
/// RFC 1812 §4.3.2.3: our errors, IP header included, are no longer than the packets that every host takes.
const MAX_ERROR_PACKET_V4: usize = 576;
/// RFC 4443 §2.4(c): as many bytes as fit the smallest MTU.
const MAX_ERROR_PACKET_V6: usize = 1280;

mod v4 {
    pub(super) const ECHO_REPLY: u8 = 0;
    pub(super) const UNREACHABLE: u8 = 3;
    pub(super) const SOURCE_QUENCH: u8 = 4;
    pub(super) const ECHO_REQUEST: u8 = 8;
    pub(super) const TIME_EXCEEDED: u8 = 11;
    pub(super) const PARAMETER_PROBLEM: u8 = 12;
    pub(super) const CODE_PORT: u8 = 3;
    pub(super) const CODE_TOO_BIG: u8 = 4;
}

mod v6 {
    pub(super) const UNREACHABLE: u8 = 1;
    pub(super) const TOO_BIG: u8 = 2;
    pub(super) const TIME_EXCEEDED: u8 = 3;
    pub(super) const PARAMETER_PROBLEM: u8 = 4;
    pub(super) const ECHO_REQUEST: u8 = 128;
    pub(super) const ECHO_REPLY: u8 = 129;
    pub(super) const CODE_PORT: u8 = 4;
}

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpView<'a> {
    /// A ping. [`emit_echo_reply`] answers it.
    EchoRequest {
        /// The sender's number for a series of requests.
        id: u16,
        /// The place in the series.
        seq: u16,
        /// The reply must repeat it.
        data: &'a [u8],
    },
    /// The answer to [`emit_echo_request`].
    EchoReply {
        /// As in the request.
        id: u16,
        /// As in the request.
        seq: u16,
        /// As in the request.
        data: &'a [u8],
    },
    /// A report about a packet. The caller checks whether that packet was ours.
    Error {
        /// The reason, in one form for both families.
        kind: IcmpKind,
        /// The quoted part of the packet that caused the error, from its IP header on.
        quoted: &'a [u8],
    },
    /// Messages that are ignored here: redirects, router and neighbour discovery, queries.
    Other {
        /// ICMP's type over IPv4, ICMPv6's over IPv6.
        icmp_type: u8,
        /// Its meaning depends on the type.
        code: u8,
    },
}

/// The fault of the quoted packet. Codes are those of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpKind {
    /// Type 3 over IPv4, except code 4; type 1 over IPv6.
    Unreachable {
        /// A port without a socket is 3 over IPv4, and 4 over IPv6.
        code: u8,
    },
    /// In IPv4 `mtu` is 0 if the router is older than RFC 1191.
    PacketTooBig {
        /// The MTU of the next hop, in bytes of a whole packet.
        mtu: u32,
    },
    /// Type 11 over IPv4, type 3 over IPv6.
    TimeExceeded {
        /// 0 if the hop limit ran out, 1 if fragments did not come in time.
        code: u8,
    },
    /// Type 12 over IPv4, type 4 over IPv6.
    ParameterProblem {
        /// RFC 792; over IPv6 RFC 4443 §3.4.
        code: u8,
        /// The place of the faulty byte in the packet, from 0. IPv4 has room for 255.
        pointer: u32,
    },
    /// IPv4 only; deprecated and ignored (RFC 6633).
    SourceQuench,
}

impl IcmpKind {
    /// The error for a packet from `to` to a port without a socket.
    pub fn port_unreachable(to: IpAddr) -> IcmpKind {
        IcmpKind::Unreachable { code: if to.is_ipv4() { v4::CODE_PORT } else { v6::CODE_PORT } }
    }
}

impl<'a> IcmpView<'a> {
    /// `bytes` is the payload of a packet of `protocol`, ICMP or ICMPv6.
    pub fn parse(
        src: IpAddr,
        dst: IpAddr,
        protocol: u8,
        bytes: &'a [u8],
    ) -> Result<IcmpView<'a>, DropReason> {
        let of_its_family = match src {
            IpAddr::V4(_) => protocol == protocol::ICMP,
            IpAddr::V6(_) => protocol == protocol::ICMPV6,
        };
        let Some((header, body)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(DropReason::IcmpMalformed);
        };
        if !of_its_family || message_sum(src, dst, bytes.len()).add(bytes).finish() != 0 {
            return Err(DropReason::IcmpMalformed);
        }
        Ok(match src {
            IpAddr::V4(_) => read_v4(*header, body),
            IpAddr::V6(_) => read_v6(*header, body),
        })
    }
}

fn read_v4(header: [u8; HEADER_LEN], body: &[u8]) -> IcmpView<'_> {
    let [icmp_type, code, _, _, pointer, _, mtu @ ..] = header;
    let kind = match (icmp_type, code) {
        (v4::ECHO_REQUEST | v4::ECHO_REPLY, _) => {
            return read_echo(icmp_type == v4::ECHO_REQUEST, header, body);
        }
        (v4::UNREACHABLE, v4::CODE_TOO_BIG) => {
            IcmpKind::PacketTooBig { mtu: u32::from(u16::from_be_bytes(mtu)) }
        }
        (v4::UNREACHABLE, code) => IcmpKind::Unreachable { code },
        (v4::SOURCE_QUENCH, _) => IcmpKind::SourceQuench,
        (v4::TIME_EXCEEDED, code) => IcmpKind::TimeExceeded { code },
        (v4::PARAMETER_PROBLEM, code) => IcmpKind::ParameterProblem { code, pointer: u32::from(pointer) },
        _ => return IcmpView::Other { icmp_type, code },
    };
    IcmpView::Error { kind, quoted: body }
}

fn read_v6(header: [u8; HEADER_LEN], body: &[u8]) -> IcmpView<'_> {
    let [icmp_type, code, _, _, value @ ..] = header;
    let value = u32::from_be_bytes(value);
    let kind = match icmp_type {
        v6::ECHO_REQUEST | v6::ECHO_REPLY => return read_echo(icmp_type == v6::ECHO_REQUEST, header, body),
        v6::UNREACHABLE => IcmpKind::Unreachable { code },
        v6::TOO_BIG => IcmpKind::PacketTooBig { mtu: value },
        v6::TIME_EXCEEDED => IcmpKind::TimeExceeded { code },
        v6::PARAMETER_PROBLEM => IcmpKind::ParameterProblem { code, pointer: value },
        _ => return IcmpView::Other { icmp_type, code },
    };
    IcmpView::Error { kind, quoted: body }
}

fn read_echo(request: bool, header: [u8; HEADER_LEN], data: &[u8]) -> IcmpView<'_> {
    let id = u16::from_be_bytes([header[4], header[5]]);
    let seq = u16::from_be_bytes([header[6], header[7]]);
    if request { IcmpView::EchoRequest { id, seq, data } } else { IcmpView::EchoReply { id, seq, data } }
}

/// Appends a request; `src` and `dst` are those of the packet and determine the family.
pub fn emit_echo_request(src: IpAddr, dst: IpAddr, id: u16, seq: u16, data: &[u8], out: &mut Vec<u8>) {
    let icmp_type = if src.is_ipv4() { v4::ECHO_REQUEST } else { v6::ECHO_REQUEST };
    emit(src, dst, (icmp_type, 0), echo_value(id, seq), data, out);
}

/// Appends the reply to a request with the same `id`, `seq` and `data`.
pub fn emit_echo_reply(src: IpAddr, dst: IpAddr, id: u16, seq: u16, data: &[u8], out: &mut Vec<u8>) {
    let icmp_type = if src.is_ipv4() { v4::ECHO_REPLY } else { v6::ECHO_REPLY };
    emit(src, dst, (icmp_type, 0), echo_value(id, seq), data, out);
}

/// Appends an error about `packet`, and quotes as much of it as fits.
pub fn emit_error(src: IpAddr, dst: IpAddr, kind: IcmpKind, packet: &[u8], out: &mut Vec<u8>) {
    let (head, value) = if src.is_ipv4() { error_head_v4(kind) } else { error_head_v6(kind) };
    let room = match src {
        IpAddr::V4(_) => MAX_ERROR_PACKET_V4 - 20 - HEADER_LEN,
        IpAddr::V6(_) => MAX_ERROR_PACKET_V6 - 40 - HEADER_LEN,
    };
    emit(src, dst, head, value, &packet[..packet.len().min(room)], out);
}

fn error_head_v4(kind: IcmpKind) -> ((u8, u8), [u8; 4]) {
    match kind {
        IcmpKind::Unreachable { code } => ((v4::UNREACHABLE, code), [0; 4]),
        IcmpKind::PacketTooBig { mtu } => {
            let mtu = mtu.min(u32::from(u16::MAX));
            ((v4::UNREACHABLE, v4::CODE_TOO_BIG), mtu.to_be_bytes())
        }
        IcmpKind::TimeExceeded { code } => ((v4::TIME_EXCEEDED, code), [0; 4]),
        IcmpKind::ParameterProblem { code, pointer } => {
            ((v4::PARAMETER_PROBLEM, code), [u8::try_from(pointer).unwrap_or(u8::MAX), 0, 0, 0])
        }
        IcmpKind::SourceQuench => ((v4::SOURCE_QUENCH, 0), [0; 4]),
    }
}

fn error_head_v6(kind: IcmpKind) -> ((u8, u8), [u8; 4]) {
    match kind {
        IcmpKind::Unreachable { code } => ((v6::UNREACHABLE, code), [0; 4]),
        IcmpKind::PacketTooBig { mtu } => ((v6::TOO_BIG, 0), mtu.to_be_bytes()),
        IcmpKind::TimeExceeded { code } => ((v6::TIME_EXCEEDED, code), [0; 4]),
        IcmpKind::ParameterProblem { code, pointer } => {
            ((v6::PARAMETER_PROBLEM, code), pointer.to_be_bytes())
        }
        IcmpKind::SourceQuench => panic!("ICMPv6 has no source quench"),
    }
}

fn echo_value(id: u16, seq: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (id.to_be_bytes(), seq.to_be_bytes());
    [a, b, c, d]
}

fn emit(src: IpAddr, dst: IpAddr, head: (u8, u8), value: [u8; 4], body: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let sum = message_sum(src, dst, HEADER_LEN + body.len())
        .append(&[head.0, head.1, 0, 0], out)
        .append(&value, out)
        .append(body, out);
    out[start + 2..start + 4].copy_from_slice(&sum.finish().to_be_bytes());
}

/// Only ICMPv6 includes the pseudo-header in its checksum (RFC 4443 §2.3).
fn message_sum(src: IpAddr, dst: IpAddr, len: usize) -> Sum {
    match src {
        IpAddr::V4(_) => Sum::default(),
        IpAddr::V6(_) => Sum::pseudo_header(src, dst, protocol::ICMPV6, as_u32(len)),
    }
}

#[cfg(test)]
mod tests;
