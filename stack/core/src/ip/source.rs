//! Identifies hosts by their addresses, to divide resources among them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
}
