//! IPv4 and IPv6 in one form: the facts that upper layers need about a packet of either version.

mod mark;
mod source_route;
mod v4;
pub(super) mod v6;

pub use mark::mark_congestion;
pub use source_route::{RouteKind, SourceRoute};
pub(super) use v4::final_destination as final_destination_v4;
pub use v6::Fault;

use std::net::IpAddr;

use crate::trace::DropReason;

/// Protocol and next-header numbers.
pub mod protocol {
    /// IPv6 hop-by-hop options, only right after the fixed header (RFC 8200 §4.3).
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP over IPv4 (RFC 792).
    pub const ICMP: u8 = 1;
    /// RFC 9293.
    pub const TCP: u8 = 6;
    /// RFC 768.
    pub const UDP: u8 = 17;
    /// IPv6 routing header (RFC 8200 §4.4).
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header (RFC 8200 §4.5).
    pub const FRAGMENT: u8 = 44;
    /// Encapsulating security payload (RFC 4303). It is not decrypted.
    pub const ESP: u8 = 50;
    /// Authentication header (RFC 4302). It counts as a payload.
    pub const AH: u8 = 51;
    /// ICMP over IPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
    /// No payload follows (RFC 8200 §4.7).
    pub const NO_NEXT_HEADER: u8 = 59;
    /// IPv6 destination options (RFC 8200 §4.6).
    pub const DESTINATION_OPTIONS: u8 = 60;
}

/// The two bits of RFC 3168 §5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Routers drop the packet instead of marking it.
    #[default]
    NotEct = 0,
    /// It may be marked. No connection here sends it.
    Ect1 = 1,
    /// It may be marked: new data of a connection that agreed on ECN.
    Ect0 = 2,
    /// A router on the way met congestion.
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

    /// The value of the low two bits of the traffic class; in IPv4, of the TOS octet.
    pub const fn bits(self) -> u8 {
        self as u8
    }
}

/// A received packet with its headers read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpView<'a> {
    /// It may be forged, or no host's address: the caller checks that.
    pub src: IpAddr,
    /// The caller checks that it is ours.
    pub dst: IpAddr,
    /// The protocol of `payload`, after the extension headers. In a fragment it is the first protocol of the whole
    /// datagram's payload.
    pub protocol: u8,
    /// The value on arrival; TTL in IPv4.
    pub hop_limit: u8,
    /// Routers on the way may have set it to [`Ecn::Ce`].
    pub ecn: Ecn,
    /// The six bits of RFC 2474.
    pub dscp: u8,
    /// Always true in IPv6, since routers never fragment it.
    pub dont_fragment: bool,
    /// Set if `payload` is a piece of a datagram. An IPv6 fragment that is a whole datagram (RFC 6946) does not count.
    pub fragment: Option<FragmentInfo>,
    /// The reverse route, if the packet came by a source route.
    pub source_route: Option<Box<SourceRoute>>,
    /// Bytes before `payload`: header, options and extension headers.
    pub header_len: usize,
    /// Without link padding.
    pub payload: &'a [u8],
}

/// The place of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentInfo {
    /// 16 bits in IPv4, 32 in IPv6.
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
    pub(crate) fn fault_of_fragment(&self) -> Option<Fault> {
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
    /// It also counts in the checksums of upper layers.
    pub src: IpAddr,
    /// The final destination, behind all hops of `source_route`.
    pub dst: IpAddr,
    /// See [`protocol`].
    pub protocol: u8,
    /// TTL in IPv4; each router takes one off.
    pub hop_limit: u8,
    /// [`Ecn::Ect0`] only for new data (RFC 3168 §6.1.5).
    pub ecn: Ecn,
    /// The six bits of RFC 2474, from 0 to 63.
    pub dscp: u8,
    /// IPv4 only, as are `id` and `source_route`.
    pub dont_fragment: bool,
    /// Different for packets that may be fragmented (RFC 6864).
    pub id: u16,
    /// None leaves the way to the routers.
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
    /// The bytes that [`emit`](IpHeader::emit) appends, the option of a source route included.
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
