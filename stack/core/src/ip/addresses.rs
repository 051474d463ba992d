//! The uses of an address, whatever our own addresses are.

use std::net::{IpAddr, Ipv4Addr};

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
/// [`Prefix::is_broadcast`](super::Prefix::is_broadcast).
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
