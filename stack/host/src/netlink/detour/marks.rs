//! Marks TCP that a router forwards between a wire and a radio, in an nft table that ends with this process.
//!
//! Routing rules cannot match the outgoing interface of a packet, but nft can. Connection tracking would see each
//! packet of a detour twice, and decide on its addresses before its outgoing interface is known. It is therefore
//! switched off on the radio's side, and sees each packet once, at the wire.

use std::fmt::Write as _;
use std::io;

use hopwise_core::ip::Prefix;

use super::DetourConfig;
use crate::firewall::Ruleset;
use crate::nft::OwnedTable;

/// The bit of a packet's mark that the rules of detours match.
pub(super) const MARK: u32 = 0x0800_0000;

/// The beginning of the family and the name of our nft table. The number of a table of routing follows.
const TABLE: &str = "inet hopwise_detour_";

pub(super) fn set(config: &DetourConfig) -> io::Result<OwnedTable> {
    OwnedTable::set(&format!("{TABLE}{}", config.table), &chains(config))
}

/// The first tables of routing of the detours that nft lists, each with its wire and its radio.
pub(super) fn listed(rules: &Ruleset) -> impl Iterator<Item = (u32, String, String)> {
    rules.chains().iter().filter_map(|chain| {
        let table = chain.table.strip_prefix(TABLE)?.parse().ok()?;
        let is_of_radio = |rule: &&String| rule.contains(" saddr ") && rule.contains(" mark set ");
        let mut names = chain.rules.iter().find(is_of_radio)?.split('"').skip(1).step_by(2);
        let (radio, wire) = (names.next()?, names.next()?);
        Some((table, wire.to_owned(), radio.to_owned()))
    })
}

fn chains(config: &DetourConfig) -> String {
    let DetourConfig { wire, radio, networks, mobile, .. } = config;
    let mut untracked = String::new();
    // A destination that the router rewrites is tracked from the mobile's own packets on: those connections pass.
    let mut marked = format!(
        "iifname \"{radio}\" ct status dnat return; \
         iifname \"{wire}\" ct direction reply ct status dnat return; "
    );
    for network in networks {
        // Writing to a String does not fail.
        let from = between(radio, "saddr", network, wire);
        let _ = write!(untracked, "{from} notrack; ");
        for passing in [from, between(wire, "daddr", network, radio)] {
            let _ = write!(marked, "{passing} meta mark set meta mark | {MARK:#x}; ");
        }
    }
    // Before connection tracking (-200), and after it has restored the addresses of replies (-100).
    format!(
        "chain untracked {{ type filter hook prerouting priority -300; policy accept; \
         iifname \"{mobile}\" notrack; {untracked}}}; \
         chain marked {{ type filter hook prerouting priority -99; policy accept; {marked}}}; "
    )
}

fn between(from: &str, end: &str, network: &Prefix, to: &str) -> String {
    let family = if network.address().is_ipv4() { "ip" } else { "ip6" };
    format!("iifname \"{from}\" meta l4proto tcp {family} {end} {network} fib daddr oifname \"{to}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_between_both_interfaces_is_marked_and_the_radio_s_side_is_untracked() {
        let networks = ["10.9.0.0/24", "fd09::/64"].map(|text| text.parse().expect("a prefix")).to_vec();
        let [wire, radio, fixed, mobile] = ["eth0", "wlan0", "hopf", "hopm"].map(str::to_owned);
        let config = DetourConfig { wire, radio, networks, fixed, mobile, table: 7100, priority: 7100 };
        let chains = chains(&config);
        for rule in [
            "iifname \"wlan0\" meta l4proto tcp ip saddr 10.9.0.0/24 fib daddr oifname \"eth0\" notrack; ",
            "iifname \"hopm\" notrack; ",
            "iifname \"eth0\" meta l4proto tcp ip6 daddr fd09::/64 fib daddr oifname \"wlan0\" meta mark set",
        ] {
            assert!(chains.contains(rule), "{rule} in {chains}");
        }
        assert_eq!([chains.matches("notrack").count(), chains.matches("mark set").count()], [3, 4]);
    }
}
