//! The device to which the kernel's main table sends packets for an address.

use std::fs;
use std::net::Ipv4Addr;

/// The kernel's main table of IPv4, a route a line.
const TABLE: &str = "/proc/thread-self/net/route";

/// None where no route leads there.
pub fn device_towards(address: Ipv4Addr) -> Option<String> {
    // A device's name may be any bytes.
    device_in(&String::from_utf8_lossy(&fs::read(TABLE).ok()?), address)
}

/// By the longest prefix, and among equals by the least metric.
fn device_in(table: &str, address: Ipv4Addr) -> Option<String> {
    let routes = table.lines().skip(1).filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        // Addresses stand there as the machine holds them in memory.
        let bits = |nth: usize| {
            u32::from_str_radix(words.get(nth)?, 16).ok().map(|word| u32::from_be_bytes(word.to_ne_bytes()))
        };
        let (to, mask) = (bits(1)?, bits(7)?);
        let metric: u32 = words.get(6)?.parse().ok()?;
        (u32::from(address) & mask == to).then(|| (mask.count_ones(), u32::MAX - metric, words[0]))
    });
    routes.max().map(|(_, _, device)| device.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_longest_prefix_says_where_an_address_is() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     hop0\t0500000A\t00000000\t0001\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n\
                     mesh\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        let device = |text: &str| device_in(table, text.parse().expect("an address"));
        assert_eq!(device("10.0.0.5").as_deref(), Some("hop0"));
        assert_eq!(device("10.0.0.6").as_deref(), Some("mesh"));
        assert_eq!(device("9.9.9.9").as_deref(), Some("eth0"));
        assert_eq!(device_in("Iface\n", Ipv4Addr::LOCALHOST), None);
    }
}
