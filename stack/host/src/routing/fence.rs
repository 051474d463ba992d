//! Keeps what comes in from a mesh away from the machine's other devices, by an nft table of a process (`flags owner`).
//! The kernel removes the table when that process ends, and it ends with ours for any reason.
//!
//! A device that forwards does so to each other device of the machine: its wire, bridges of containers. Without a check
//! of the reverse path, sources may be forged. Rules go by address, because the device of a served address may come
//! later, when nothing can command nft any more.

use std::io;
use std::net::Ipv4Addr;

use crate::nft::{OwnedTable, in_a_name};

/// The table of a running fence. Dropping it removes the table.
#[derive(Debug)]
pub struct Fence(OwnedTable);

impl Fence {
    /// Packets that come in by a device of the mesh leave by one of them, or are for a served address. `tun` is the one
    /// that belongs to this daemon alone.
    pub fn set(tun: &str, mesh: &[&str], served: &[Ipv4Addr]) -> io::Result<Fence> {
        OwnedTable::set(&format!("ip hopwise_mesh_{}", in_a_name(tun)), &chains(mesh, served)).map(Fence)
    }

    /// Returns whether the table still exists.
    pub fn stands(&mut self) -> bool {
        self.0.stands()
    }
}

fn chains(mesh: &[&str], served: &[Ipv4Addr]) -> String {
    let mesh: Vec<_> = mesh.iter().map(|device| format!("\"{device}\"")).collect();
    let (mesh, served) = (mesh.join(", "), served.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>());
    let others =
        if served.is_empty() { String::new() } else { format!("ip daddr != {{ {} }} ", served.join(", ")) };
    format!(
        "chain from_mesh {{ type filter hook forward priority filter; policy accept; \
         iifname {{ {mesh} }} oifname != {{ {mesh} }} {others}drop; }}; "
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_the_mesh_leaves_by_the_mesh_or_for_a_served_address() {
        let served = ["10.0.0.5", "10.0.0.6"].map(|text| text.parse().expect("an address"));
        let rules = chains(&["wlan0", "hopwise0"], &served);
        let wanted = "iifname { \"wlan0\", \"hopwise0\" } oifname != { \"wlan0\", \"hopwise0\" } \
                      ip daddr != { 10.0.0.5, 10.0.0.6 } drop;";
        assert!(rules.contains(wanted), "{rules}");
        assert_eq!(rules.lines().count(), 1);
        assert!(chains(&["wlan0"], &[]).contains("oifname != { \"wlan0\" } drop;"));
    }
}
