//! Bytes to values and back. Addresses, and what only some packets have (extension headers, ICMP), are read by
//! smoltcp; the headers of IPv4 and TCP, their options and checksums are ours.
//!
//! Parsing borrows (the way back by a source route alone is allocated); emitting appends to the caller's buffer
//! and copies payload and sums it in one go. What cannot be parsed is a
//! [`DropReason`](crate::trace::DropReason), never a panic.
//!
//! What every packet goes through is `inline(always)`: the views are large, and moved through memory at a
//! call they cost as much again as reading the header does.

pub mod bundle;
pub mod checksum;
pub mod icmp;
pub mod ip;
#[cfg(test)]
mod oracle;
pub mod tcp;
#[cfg(test)]
mod testing;
pub mod udp;

pub use checksum::{Checksums, Sum};
pub use icmp::{IcmpKind, IcmpView, QuotedTcp, QuotedUdp};
pub use ip::{Ecn, Fault, FragmentInfo, IpHeader, IpView, RouteKind, SourceRoute, protocol};
pub use tcp::{
    Flags, HopwiseOption, Notes, OfferFlags, RateRequest, SackBlock, TcpBytes, TcpHeader, TcpOptions,
    TcpView, Timestamps,
};
pub use udp::UdpView;
