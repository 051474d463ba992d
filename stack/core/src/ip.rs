//! IP apart from its headers: address rules, reassembly, the policy for ICMP errors, path MTUs, the addresses of a
//! host, and UDP for routing daemons. All of it takes plain values and is bounded.

mod addresses;
mod icmp_policy;
mod path_mtu;
mod prefix;
mod rate_limit;
mod reassembly;
mod source;
mod udp_sockets;

pub use addresses::Loopback;
pub(crate) use addresses::{is_unicast_destination, is_valid_source};
pub(crate) use icmp_policy::{ErrorKind, Offender, may_answer_with_error};
pub(crate) use path_mtu::{PathMtuCache, plateau_below};
pub(crate) use prefix::longest_match;
pub use prefix::{Prefix, PrefixError};
pub(crate) use rate_limit::{Taken, TokenBucket};
pub use reassembly::{FragmentKey, Limits, Reassembler};
pub use source::Source;
pub use udp_sockets::{Datagram, UdpError, UdpId, UdpLimits, UdpOptions};
pub(crate) use udp_sockets::{OutgoingDatagram, UdpArrival, UdpSockets};
