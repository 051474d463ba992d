//! Keeps the kernel from carrying packets that are read here, by an nft table of a process (`flags owner`). The kernel
//! removes the table when that process ends, and it ends with ours for any reason.

use std::fmt::Write as _;
use std::io;

use super::BridgeConfig;
use crate::nft::{OwnedTable, in_a_name};
use crate::raw::ethernet::Mac;

#[derive(Debug)]
pub(super) struct Block(OwnedTable);

impl Block {
    pub(super) fn set(config: &BridgeConfig, own: &[Mac]) -> io::Result<Block> {
        OwnedTable::set(&table(config), &chains(config, own)).map(Block)
    }

    /// Returns whether the table still exists.
    pub(super) fn stands(&mut self) -> bool {
        self.0.stands()
    }
}

fn table(config: &BridgeConfig) -> String {
    format!("netdev hopwise_bridge_{}", in_a_name(&config.wire))
}

/// The chains are at ingress, after packet sockets have their copy and before the bridge. There a tagged frame has the
/// type of its tag: a frame of a VLAN is never blocked.
fn chains(config: &BridgeConfig, own: &[Mac]) -> String {
    let own: Vec<_> = own.iter().map(|mac| hopwise_core::StationAddress(*mac).to_string()).collect();
    let own = own.join(", ");
    let chain = |name: &str, device: &str, end: &str| {
        let mut chain = format!("chain {name} {{ type filter hook ingress device \"{device}\" priority 0; ");
        for network in &config.mobiles {
            let (family, tcp) = if network.address().is_ipv4() {
                ("ip", "ether type ip ip protocol tcp")
            } else {
                ("ip6", "ether type ip6 ip6 nexthdr tcp")
            };
            // Writing to a String does not fail.
            let _ = write!(chain, "ether daddr != {{ {own} }} {tcp} {family} {end} {network} drop; ");
        }
        chain + "}; "
    };
    chain("wire", &config.wire, "daddr") + &chain("radio", &config.radio, "saddr")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_blocked_is_the_mobiles_tcp_and_never_what_is_for_the_bridge_itself() {
        let mobiles = ["10.9.0.0/24", "fd09::/64"].map(|text| text.parse().expect("a prefix")).to_vec();
        let config = BridgeConfig { wire: "eth0.1".into(), radio: "radio".into(), mobiles };
        assert_eq!(table(&config), "netdev hopwise_bridge_eth0_2e1");
        let script = chains(&config, &[[2, 0, 0, 0, 0, 1]]);
        assert_eq!(script.lines().count(), 1);
        for rule in [
            "ether daddr != { 02:00:00:00:00:01 } ether type ip ip protocol tcp ip daddr 10.9.0.0/24 drop;",
            "ether daddr != { 02:00:00:00:00:01 } ether type ip6 ip6 nexthdr tcp ip6 saddr fd09::/64 drop;",
        ] {
            assert!(script.contains(rule), "{rule} in {script}");
        }
    }
}
