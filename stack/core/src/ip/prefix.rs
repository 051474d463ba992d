//! An address and the number of its network bits: "10.7.0.0/16".
//!
//! Not `ipnet`: it gives a /31 a broadcast address, and its errors do not name the accepted values.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// A network, or an address in one: bits beyond `len` are kept and printed, but do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

impl Prefix {
    /// Fails with more than 32 bits for IPv4, or 128 for IPv6.
    pub fn new(address: IpAddr, len: u8) -> Result<Prefix, PrefixError> {
        let longest = width(address);
        if len > longest {
            return Err(PrefixError::TooLong { longest });
        }
        Ok(Prefix { address, len })
    }

    /// The network of exactly one address.
    pub fn host(address: IpAddr) -> Prefix {
        Prefix { address, len: width(address) }
    }

    /// The address as it was given, with the bits beyond [`bits`](Prefix::bits).
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The number of leading network bits.
    pub fn bits(&self) -> u8 {
        self.len
    }

    /// Returns whether the address is of this family and has the same network bits.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && self.host_bits(self.address, address) == 0
    }

    /// The broadcast address of an IPv4 subnet; networks of two addresses have none (RFC 3021).
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        match self.address {
            IpAddr::V4(v4) if self.len <= 30 => {
                Some(Ipv4Addr::from_bits(v4.to_bits() | (u32::MAX >> self.len)))
            }
            _ => None,
        }
    }

    /// Returns whether the address equals [`broadcast`](Prefix::broadcast).
    pub fn is_broadcast(&self, address: IpAddr) -> bool {
        self.broadcast().is_some_and(|broadcast| address == IpAddr::V4(broadcast))
    }

    /// The bits of the network part in which two addresses of one family differ.
    fn host_bits(&self, a: IpAddr, b: IpAddr) -> u128 {
        let host_len = u32::from(width(a) - self.len);
        // A shift by all 128 bits of ::/0 would overflow.
        (bits(a) ^ bits(b)).checked_shr(host_len).unwrap_or(0)
    }
}

/// The entry of the longest prefix that contains `address`; of equal ones the first.
pub(crate) fn longest_match<'a, T>(
    table: impl IntoIterator<Item = (&'a Prefix, T)>,
    address: IpAddr,
) -> Option<(&'a Prefix, T)> {
    let mut best: Option<(&Prefix, T)> = None;
    for (prefix, value) in table {
        let longer = best.as_ref().is_none_or(|(so_far, _)| prefix.len > so_far.len);
        if longer && prefix.contains(address) {
            best = Some((prefix, value));
        }
    }
    best
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let Some((address, len)) = text.split_once('/') else { return Err(PrefixError::NoLength) };
        let address: IpAddr = address.parse().map_err(|_| PrefixError::Address)?;
        let longest = width(address);
        // `parse` would also accept "+8", which would not be printed as it was read.
        if len.is_empty() || len.len() > 3 || !len.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(PrefixError::Length { longest });
        }
        let len: u8 = len.parse().map_err(|_| PrefixError::TooLong { longest })?;
        Prefix::new(address, len)
    }
}

crate::named::errors! {
    /// The fault of a prefix.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    PrefixError {
        /// There is no slash.
        NoLength = "no prefix length: write it as in 10.7.0.0/16 or fd00::/8",
        /// The text before the slash is no IP address.
        Address = "no IP address before the slash: write it as in 10.7.0.0/16",
        /// The text after the slash is no number of one to three digits.
        Length {
            /// Bits of the address: 32 or 128.
            longest: u8
        } = "the prefix length is no number: write one from 0 to {longest} after the slash",
        /// The number exceeds the bits of the address.
        TooLong {
            /// Bits of the address: 32 or 128.
            longest: u8
        } = "the prefix is longer than the address: write at most /{longest}",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn contains_its_own_addresses_and_no_others() {
        assert!(prefix("10.7.0.0/16").contains(ip("10.7.255.255")));
        assert!(!prefix("10.7.0.0/16").contains(ip("10.8.0.0")));
        assert!(prefix("10.7.3.9/16").contains(ip("10.7.0.1")), "bits of the host do not count");
        assert!(prefix("10.7.0.1/32").contains(ip("10.7.0.1")));
        assert!(!prefix("10.7.0.1/32").contains(ip("10.7.0.0")));
        assert!(prefix("fd00::/9").contains(ip("fd7f::1")));
        assert!(!prefix("fd00::/9").contains(ip("fd80::1")));
    }

    #[test]
    fn default_routes_contain_their_family_only() {
        assert!(prefix("0.0.0.0/0").contains(ip("255.255.255.255")));
        assert!(!prefix("0.0.0.0/0").contains(ip("::1")));
        assert!(prefix("::/0").contains(ip("ffff::1")));
        assert!(!prefix("::/0").contains(ip("0.0.0.0")));
    }

    #[test]
    fn longest_prefix_wins_and_of_equals_the_first() {
        let table = [prefix("0.0.0.0/0"), prefix("10.7.0.0/16"), prefix("10.0.0.0/8"), prefix("10.7.0.0/16")];
        let found = |text| longest_match(table.iter().zip(0..), ip(text)).map(|(_, index)| index);
        assert_eq!(found("10.7.1.1"), Some(1));
        assert_eq!(found("10.9.1.1"), Some(2));
        assert_eq!(found("192.0.2.1"), Some(0));
        assert_eq!(found("fd00::1"), None);
    }

    #[test]
    fn broadcast_is_all_ones_and_absent_where_there_is_none() {
        assert_eq!(prefix("10.7.3.1/16").broadcast(), Some(Ipv4Addr::new(10, 7, 255, 255)));
        assert!(prefix("10.7.3.1/16").is_broadcast(ip("10.7.255.255")));
        assert_eq!(prefix("10.0.0.1/0").broadcast(), Some(Ipv4Addr::BROADCAST));
        assert_eq!(prefix("10.0.0.0/31").broadcast(), None);
        assert_eq!(prefix("10.0.0.1/32").broadcast(), None);
        assert_eq!(prefix("fd00::/8").broadcast(), None);
    }

    #[test]
    fn wrong_prefixes_say_what_is_accepted() {
        let wrong = |text: &str| text.parse::<Prefix>().unwrap_err();
        assert_eq!(wrong("10.7.0.0"), PrefixError::NoLength);
        assert_eq!(wrong("10.7.0/16"), PrefixError::Address);
        assert_eq!(wrong("10.7.0.0/33"), PrefixError::TooLong { longest: 32 });
        assert_eq!(wrong("fd00::/300"), PrefixError::TooLong { longest: 128 });
        for text in ["10.7.0.0/", "10.7.0.0/+8", "10.7.0.0/x", "10.7.0.0/16/2", "10.7.0.0/00016"] {
            assert_eq!(wrong(text), PrefixError::Length { longest: 32 }, "{text}");
        }
        assert!(wrong("10.7.0.0/33").to_string().contains("at most /32"));
    }

    fn any_prefix() -> impl Strategy<Value = Prefix> {
        let v4 =
            (any::<u32>(), 0u8..=32).prop_map(|(bits, len)| (IpAddr::V4(Ipv4Addr::from_bits(bits)), len));
        let v6 = (any::<u128>(), 0u8..=128).prop_map(|(bits, len)| (IpAddr::V6(bits.into()), len));
        prop_oneof![v4, v6].prop_map(|(address, len)| Prefix::new(address, len).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn what_is_printed_is_read_back(prefix in any_prefix()) {
            prop_assert_eq!(prefix.to_string().parse::<Prefix>(), Ok(prefix));
        }

        #[test]
        fn one_bit_decides_by_its_place(prefix in any_prefix(), place in 0u8..128) {
            let place = place % width(prefix.address);
            let flipped = bits(prefix.address) ^ (1 << (width(prefix.address) - 1 - place));
            let other = match prefix.address {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(flipped).unwrap())),
                IpAddr::V6(_) => IpAddr::V6(flipped.into()),
            };
            prop_assert_eq!(prefix.contains(other), place >= prefix.len);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9a-f:./+ ]{0,24}") {
            let _ = text.parse::<Prefix>();
        }
    }
}
