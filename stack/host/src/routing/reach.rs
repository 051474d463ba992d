//! Finds the devices that the routes of the kernel's main table lead to.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::ip::Prefix;
use hopwise_core::narrow::as_u8;

/// The kernel's main table of IPv4, one route a line.
const TABLE: &str = "/proc/thread-self/net/route";

/// The table at one time. It has to be read again and again: netlink does not report the routes that a device loses
/// when it goes down.
#[derive(Clone, Debug)]
pub struct Table(String);

impl Table {
    /// A device's name may be any bytes.
    pub fn read() -> io::Result<Table> {
        Ok(Table(String::from_utf8_lossy(&fs::read(TABLE)?).into_owned()))
    }

    /// The device of the route to an address: that of the longest prefix, and among equals of the least metric. Routes
    /// to more than `network` do not count, because the default route leads everywhere.
    pub fn device_towards(&self, address: Ipv4Addr, network: &Prefix) -> Option<&str> {
        let leads_there =
            |route: &Line<'_>| route.bits >= network.bits() && address.to_bits() & route.mask() == route.to;
        let routes = self.lines().filter(leads_there);
        routes.max_by_key(|route| (route.bits, u32::MAX - route.metric)).map(|route| route.device)
    }

    /// Returns whether this network has a route over that device.
    pub fn has_route(&self, network: &Prefix, device: &str) -> bool {
        let IpAddr::V4(address) = network.address() else { return false };
        let is_it = |route: Line<'_>| {
            route.bits == network.bits()
                && address.to_bits() & route.mask() == route.to
                && route.device == device
        };
        self.lines().any(is_it)
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.0.lines().skip(1).filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            // Addresses are printed as numbers in the machine's byte order.
            let bits = |nth: usize| {
                u32::from_str_radix(words.get(nth)?, 16)
                    .ok()
                    .map(|word| u32::from_be_bytes(word.to_ne_bytes()))
            };
            let (to, bits) = (bits(1)?, as_u8(bits(7)?.count_ones() as usize));
            Some(Line { device: words[0], to, bits, metric: words.get(6)?.parse().ok()? })
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Line<'t> {
    device: &'t str,
    to: u32,
    /// The length of the prefix.
    bits: u8,
    metric: u32,
}

impl Line<'_> {
    fn mask(&self) -> u32 {
        !u32::MAX.checked_shr(self.bits.into()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_longest_prefix_says_where_an_address_is() {
        let table = Table(
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     hop0\t0500000A\t00000000\t0001\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n\
                     mesh\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
                .to_owned(),
        );
        let prefix = |text: &str| text.parse::<Prefix>().expect("a network");
        let device = |text: &str, network: &str| {
            table.device_towards(text.parse().expect("an address"), &prefix(network))
        };
        assert_eq!(device("10.0.0.5", "10.0.0.0/24"), Some("hop0"));
        assert_eq!(device("10.0.0.6", "10.0.0.0/24"), Some("mesh"));
        assert_eq!(device("10.0.0.6", "10.0.0.0/25"), None, "that route leads to more than the network");
        assert_eq!(device("9.9.9.9", "9.0.0.0/8"), None, "only the default route leads there");
        assert_eq!(
            Table("Iface\n".to_owned()).device_towards(Ipv4Addr::LOCALHOST, &prefix("127.0.0.0/8")),
            None
        );
        let has = |network: &str, device: &str| table.has_route(&prefix(network), device);
        assert!(has("10.0.0.0/24", "mesh") && has("10.0.0.9/24", "mesh") && has("10.0.0.5/32", "hop0"));
        assert!(!has("10.0.0.0/24", "hop0") && !has("10.0.0.0/25", "mesh") && !has("10.1.0.0/24", "mesh"));
    }
}
