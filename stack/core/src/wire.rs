//! Bytes to values and back. smoltcp reads addresses and rare parts (extension headers, ICMP). The headers of IPv4 and
//! TCP, their options and checksums are our own code.
//!
//! Parsing borrows; only a reverse source route is allocated. Emitting appends to the caller's buffer, and copies and
//! sums the payload in one pass. A packet that cannot be parsed gives a [`DropReason`](crate::trace::DropReason), never
//! a panic.
//!
//! Functions on the path of every packet are `inline(always)`. The views are large: moving them through memory at a
//! call would cost as much again as reading the header.

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
pub use icmp::{IcmpKind, IcmpView, QuotedTcp};
pub use ip::{Ecn, Fault, FragmentInfo, IpHeader, IpView, RouteKind, SourceRoute, mark_congestion, protocol};
pub use tcp::{
    Flags, HopwiseOption, Notes, OfferFlags, RateRequest, SackBlock, TcpBytes, TcpHeader, TcpOptions,
    TcpView, Timestamps,
};
pub use udp::UdpView;
