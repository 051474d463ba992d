//! IP apart from its headers: address rules, reassembly, the policy for ICMP errors, path MTUs, the addresses of a
//! host, and UDP for routing daemons. All of it takes plain values and is bounded.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

mod icmp_policy;
mod path_mtu;
mod prefix;
mod rate_limit;
mod reassembly;
mod udp_sockets;

pub(crate) use icmp_policy::{ErrorKind, Offender, may_answer_with_error};
pub(crate) use path_mtu::{PathMtuCache, plateau_below};
pub(crate) use prefix::longest_match;
pub use prefix::{Prefix, PrefixError};
pub(crate) use rate_limit::{Taken, TokenBucket};
pub use reassembly::{FragmentKey, Limits, Reassembler};
pub use udp_sockets::{Datagram, UdpError, UdpId, UdpLimits, UdpOptions};
pub(crate) use udp_sockets::{OutgoingDatagram, UdpArrival, UdpSockets};

// Identifies hosts by their addresses, to divide resources among them.

/// The addresses that one host can take at will. Shares are counted by source, so a host gets no second share by a
/// second address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(IpAddr);

/// The network bits of IPv6: a host chooses the other 64 bits itself (RFC 4291 §2.5.1, RFC 8981).
const NETWORK: u128 = !(u64::MAX as u128);

impl Source {
    /// All loopback addresses are one source. Each IPv6 network of 64 bits is one. An IPv4 address is a source of its
    /// own, even if it is written as an IPv6 address.
    pub fn of(address: IpAddr) -> Source {
        Source(match address.to_canonical() {
            local if local.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & NETWORK)),
            v4 => v4,
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V6(network) => write!(f, "{network}/64"),
            v4 if v4.is_loopback() => f.write_str("loopback"),
            v4 => v4.fmt(f),
        }
    }
}

// The uses of an address, whatever our own addresses are.

/// What a source, or an address, makes us hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Connections that it has opened to us, or its incomplete datagrams.
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

/// The shares of sources, counted exactly. Each address counts in addition to its source, to find the flooding host in
/// a network of many. Each change takes O(log n).
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Shares(BTreeMap<(Source, Option<IpAddr>), Share>);

impl Shares {
    pub(crate) fn change(&mut self, peer: IpAddr, was: Share, is: Share) {
        for holder in [None, Some(peer)].map(|address| (Source::of(peer), address)) {
            let share = self.0.entry(holder).or_default();
            share.count = share.count + is.count - was.count;
            share.bytes = share.bytes + is.bytes - was.bytes;
            if *share == Share::default() {
                self.0.remove(&holder);
            }
        }
    }

    /// The share of the peer's source, and that of its address alone.
    pub(crate) fn of(&self, peer: IpAddr) -> [Share; 2] {
        [None, Some(peer)]
            .map(|address| self.0.get(&(Source::of(peer), address)).copied().unwrap_or_default())
    }

    /// The sum over all sources.
    #[cfg(test)]
    pub(crate) fn total(&self) -> Share {
        let mut total = Share::default();
        for (_, share) in self.0.iter().filter(|((_, address), _)| address.is_none()) {
            total.count += share.count;
            total.bytes += share.bytes;
        }
        total
    }
}

/// The rule for 127/8 and ::1 as sources: allowed only from a link that stays within the host (RFC 1122 §3.2.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loopback {
    /// On links to other hosts.
    Refused,
    /// On a link that stays within the host.
    Allowed,
}

/// Returns whether a packet from there can be answered: the address names one host (RFC 1122 §3.2.1.3, RFC 4291 §2.5).
pub(crate) fn is_valid_source(address: IpAddr, loopback: Loopback) -> bool {
    is_unicast_destination(address) && (loopback == Loopback::Allowed || !address.is_loopback())
}

/// Returns whether the address names one host, judged by itself. It cannot recognise a subnet's broadcast address: see
/// [`Prefix::is_broadcast`](Prefix::is_broadcast).
pub(crate) fn is_unicast_destination(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !is_this_network(v4) && !v4.is_multicast() && !is_reserved(v4),
        // An IPv4 address mapped to IPv6 serves interfaces between programs. On the wire it would bypass filters, and
        // our keyed hashes could not tell it from the IPv4 address.
        IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_multicast() && v6.to_ipv4_mapped().is_none(),
    }
}

/// 0/8 is only for hosts that do not know their address yet (RFC 1122 §3.2.1.3 a, b).
fn is_this_network(address: Ipv4Addr) -> bool {
    address.octets()[0] == 0
}

/// 240/4, with 255.255.255.255 (RFC 1112 §4, RFC 919).
fn is_reserved(address: Ipv4Addr) -> bool {
    address.octets()[0] >= 240
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        Source::of(text.parse().expect("an address")).to_string()
    }

    #[test]
    fn addresses_that_one_host_can_take_are_one_source() {
        assert_eq!([of("127.0.0.1"), of("127.200.3.4"), of("::1")], ["loopback"; 3]);
        assert_eq!([of("fd09::2"), of("fd09::66:0:0:1")], ["fd09::/64"; 2]);
        assert_ne!(of("fd09::2"), of("fd09:0:0:1::2"));
        assert_eq!([of("10.9.0.2"), of("::ffff:10.9.0.2")], ["10.9.0.2"; 2]);
        assert_ne!(of("10.9.0.2"), of("10.9.0.3"));
        assert_eq!(of("::ffff:127.0.0.9"), "loopback");
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_of_one_host_are_valid_sources() {
        for text in
            ["10.7.0.1", "1.0.0.0", "223.255.255.255", "169.254.1.1", "fe80::1", "2001:db8::1", "fd00::"]
        {
            assert!(is_valid_source(ip(text), Loopback::Refused), "{text}");
            assert!(is_unicast_destination(ip(text)), "{text}");
        }
    }

    #[test]
    fn addresses_of_many_or_of_nobody_are_no_sources() {
        let bad = [
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "ff02::1",
            "::ffff:10.0.0.1",
        ];
        for text in bad {
            assert!(!is_valid_source(ip(text), Loopback::Allowed), "{text}");
            assert!(!is_unicast_destination(ip(text)), "{text}");
        }
    }

    #[test]
    fn loopback_is_a_source_only_where_it_is_allowed() {
        for text in ["127.0.0.1", "127.9.9.9", "::1"] {
            assert!(!is_valid_source(ip(text), Loopback::Refused), "{text}");
            assert!(is_valid_source(ip(text), Loopback::Allowed), "{text}");
        }
    }
}
