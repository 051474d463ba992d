//! Keeps the kernel from answering for our addresses, by an nft table whose name only Hopwise gives.
//!
//! Packets for addresses that are ours alone never reach the kernel's IP. If the kernel has the address, too, it must
//! not reset connections that it does not know. The table belongs to this process, and goes with the link or when the
//! process is killed.

use std::fmt::Write as _;
use std::net::{IpAddr, UdpSocket};

use crate::link::LinkError;
use crate::name_lock::NameLock;
use crate::nft::{OwnedTable, in_a_name};

use super::RIGHTS;

#[derive(Debug)]
pub(super) struct Guard {
    _table: OwnedTable,
    _lock: NameLock,
}

impl Guard {
    pub(super) fn set(device: &str, addresses: &[IpAddr]) -> Result<Guard, LinkError> {
        let failed = |doing| move |error| LinkError::system(doing, device, error).taking(RIGHTS);
        let lock = NameLock::of(super::KIND, device)?;
        let table = format!("inet {}", table_name(device));
        let table = OwnedTable::set(&table, &chains(device, addresses, has_kernel_address))
            .map_err(failed("tell nft (package nftables) to keep the kernel quiet"))?;
        Ok(Guard { _table: table, _lock: lock })
    }
}

pub(crate) fn table_name(device: &str) -> String {
    format!("hopwise_{}", in_a_name(device))
}

/// Returns whether the kernel has the address, too.
fn has_kernel_address(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

fn chains(device: &str, addresses: &[IpAddr], is_shared: impl Fn(IpAddr) -> bool) -> String {
    let (mut arriving, mut leaving) = (String::new(), String::new());
    for address in addresses {
        let family = if address.is_ipv4() { "ip" } else { "ip6" };
        // Writing to a String does not fail.
        let _ = if is_shared(*address) {
            write!(leaving, "{family} saddr {address} tcp flags & rst == rst drop; ")
        } else {
            write!(arriving, "iifname \"{device}\" {family} daddr {address} drop; ")
        };
    }
    format!(
        "chain arriving {{ type filter hook prerouting priority raw; policy accept; {arriving}}}; \
         chain leaving {{ type filter hook output priority filter; policy accept; {leaving}}}; "
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_ours_alone_is_kept_from_the_kernel_and_a_shared_one_from_resets() {
        let (ours, shared) = ("10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap());
        let rules = chains("eth0", &[ours, shared], |address| address == shared);
        assert!(rules.contains("iifname \"eth0\" ip daddr 10.0.0.1 drop"));
        assert!(rules.contains("ip6 saddr fd00::1 tcp flags & rst == rst drop"));
        assert!(!rules.contains("ip saddr 10.0.0.1") && !rules.contains("ip6 daddr"));
    }

    #[test]
    fn a_table_is_named_after_its_device_without_what_nft_does_not_take() {
        assert_eq!(table_name("wlan0"), "hopwise_wlan0");
        assert_eq!(table_name("wlan-0.1"), "hopwise_wlan_2d0_2e1");
        assert_ne!(table_name("br.1"), table_name("br_1"), "a node on one would take the other's");
        assert_ne!(table_name("br_2e1"), table_name("br.1"));
    }
}
