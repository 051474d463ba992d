//! IP apart from its headers: address rules, reassembly, the policy for ICMP errors, path MTUs, the addresses of a
//! host, and UDP for routing daemons. All of it takes plain values and is bounded.

pub mod addresses;
pub mod icmp_policy;
pub mod path_mtu;
mod prefix;
pub mod rate_limit;
pub mod reassembly;
mod source;
pub mod udp_sockets;

pub use addresses::{Loopback, is_unicast_destination, is_valid_source};
pub use icmp_policy::{ErrorKind, Offender, is_icmp_error, may_answer_with_error};
pub use path_mtu::{PathMtuCache, plateau_below};
pub use prefix::{Prefix, PrefixError, longest_match};
pub use rate_limit::{Taken, TokenBucket};
pub use reassembly::{FragmentKey, Limits, Reassembler};
pub use source::Source;
pub use udp_sockets::{
    Datagram, OutgoingDatagram, UdpArrival, UdpError, UdpId, UdpLimits, UdpOptions, UdpSockets,
};
