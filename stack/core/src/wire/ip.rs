//! IPv4 and IPv6 in one form: the facts that upper layers need about a packet of either version.

mod source_route;
mod v4;
pub(super) mod v6;

pub use source_route::{RouteKind, SourceRoute};
pub(super) use v4::final_destination as final_destination_v4;
pub use v6::Fault;

use std::net::IpAddr;

use crate::trace::DropReason;

/// Protocol and next-header numbers.
pub mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ICMP: u8 = 1;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const ESP: u8 = 50;
    pub const AH: u8 = 51;
    pub const ICMPV6: u8 = 58;
    pub const NO_NEXT_HEADER: u8 = 59;
    pub const DESTINATION_OPTIONS: u8 = 60;
}

/// The two bits of RFC 3168 §5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Ecn {
    #[default]
    NotEct = 0,
    Ect1 = 1,
    Ect0 = 2,
    Ce = 3,
}

impl Ecn {
    /// The value of the low two bits of the traffic class.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    pub const fn bits(self) -> u8 {
        self as u8
    }
}

/// A received packet with its headers read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpView<'a> {
    pub src: IpAddr,
    pub dst: IpAddr,
    /// The protocol of `payload`, after the extension headers. In a fragment it is the first protocol of the whole
    /// datagram's payload.
    pub protocol: u8,
    pub hop_limit: u8,
    pub ecn: Ecn,
    pub dscp: u8,
    /// Always true in IPv6, since routers never fragment it.
    pub dont_fragment: bool,
    /// Set if `payload` is a piece of a datagram. An IPv6 fragment that is a whole datagram (RFC 6946) does not count.
    pub fragment: Option<FragmentInfo>,
    /// The reverse route, if the packet came by a source route.
    pub source_route: Option<Box<SourceRoute>>,
    /// Bytes before `payload`: header, options and extension headers.
    pub header_len: usize,
    pub payload: &'a [u8],
}

/// The place of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentInfo {
    pub id: u32,
    /// In bytes, a multiple of 8.
    pub offset: u16,
    /// More fragments follow.
    pub more: bool,
}

impl<'a> IpView<'a> {
    /// Reads all headers of a whole packet; link padding after it is cut off.
    #[inline(always)]
    pub fn parse(packet: &'a [u8]) -> Result<IpView<'a>, DropReason> {
        match packet.first().map(|byte| byte >> 4) {
            Some(4) => v4::parse(packet),
            Some(6) => v6::parse(packet),
            Some(_) => Err(DropReason::IpVersion),
            None => Err(DropReason::Truncated),
        }
    }

    /// A packet that [`parse`](Self::parse) refuses, with the fault, if its sender must get an error (RFC 8200 §4).
    #[cold]
    pub fn faulty(packet: &'a [u8]) -> Option<(IpView<'a>, Fault)> {
        packet.first().filter(|byte| **byte >> 4 == 6).and_then(|_| v6::faulty(packet))
    }

    /// The fault of an IPv6 fragment, if its sender must get an error (RFC 8200 §4.5).
    #[cold]
    pub fn fault_of_fragment(&self) -> Option<Fault> {
        let fragment = self.fragment.filter(|_| self.src.is_ipv6())?;
        v6::fault_of_fragment(self, fragment)
    }

    /// The place in an IPv6 packet of the number that names the protocol after its headers.
    pub fn protocol_at(packet: &[u8]) -> u32 {
        v6::protocol_at(packet)
    }

    /// The datagram that such fragments made up. In IPv6, `payload` may begin with more extension headers, which are
    /// walked now.
    pub fn reassembled<'b>(&self, payload: &'b [u8]) -> Result<IpView<'b>, DropReason> {
        let (protocol, payload, walked) = match self.src {
            IpAddr::V4(_) => (self.protocol, payload, 0),
            IpAddr::V6(_) => {
                let walk = v6::walk_after_fragment(self.protocol, payload)?;
                if walk.fragment.is_some() {
                    // Otherwise the piece would pass for a whole datagram; honest senders fragment once.
                    return Err(DropReason::FragmentInvalid);
                }
                (walk.protocol, walk.payload, payload.len() - walk.payload.len())
            }
        };
        Ok(IpView {
            protocol,
            payload,
            fragment: None,
            header_len: self.header_len + walked,
            source_route: self.source_route.clone(),
            ..*self
        })
    }
}

/// A header to write. Source and destination are of one family.
#[derive(Clone, Copy, Debug)]
pub struct IpHeader<'a> {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub protocol: u8,
    pub hop_limit: u8,
    pub ecn: Ecn,
    pub dscp: u8,
    /// IPv4 only, as are `id` and `source_route`.
    pub dont_fragment: bool,
    pub id: u16,
    pub source_route: Option<&'a SourceRoute>,
}

impl IpHeader<'static> {
    /// The header of a host without special wishes; other fields go before `..IpHeader::plain(…)`.
    pub const fn plain(src: IpAddr, dst: IpAddr, protocol: u8) -> IpHeader<'static> {
        IpHeader {
            src,
            dst,
            protocol,
            hop_limit: 64,
            ecn: Ecn::NotEct,
            dscp: 0,
            dont_fragment: true,
            id: 0,
            source_route: None,
        }
    }
}

impl IpHeader<'_> {
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub fn len(&self) -> usize {
        match self.dst {
            IpAddr::V4(_) => v4::header_len(self),
            IpAddr::V6(_) => v6::HEADER_LEN,
        }
    }

    /// Appends the header of a packet with `payload_len` bytes after it. With a source route the destination field is
    /// the first hop and the option lists the rest. Checksums of upper layers use `dst` nevertheless (RFC 9293 §3.1).
    #[inline]
    pub fn emit(&self, payload_len: usize, out: &mut Vec<u8>) {
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => v4::emit(self, src, dst, payload_len, out),
            (IpAddr::V6(src), IpAddr::V6(dst)) => v6::emit(self, src, dst, payload_len, out),
            _ => panic!("source and destination are of one family"),
        }
    }

    #[inline]
    fn traffic_class(&self) -> u8 {
        self.dscp << 2 | self.ecn.bits()
    }
}

#[cfg(test)]
mod tests;
