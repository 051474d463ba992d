//! Keeps packets that are sent anew away from connection tracking where the router translates addresses.
//!
//! With an interface that translates, tracking knows the packets of a connection by the addresses that the other
//! interface does not show. A packet that is sent anew to the other interface would count as the first one of another
//! connection, and would leave from another port. The table goes when its owner does.

use std::io;

use super::ForwardConfig;
use crate::firewall::Ruleset;
use crate::nft::OwnedTable;

/// Mark of packets that are not tracked.
pub(super) const MARK: libc::c_int = 0x0068_6f70;
/// The beginning of the table's name. The first queue's number follows.
const TABLE: &str = "hopwise_anew_";

/// The interface whose packets are not tracked, and the table that says so.
#[derive(Debug)]
pub(super) struct Untracked {
    pub(super) device: String,
    _table: OwnedTable,
}

impl Untracked {
    /// `None` if neither interface translates addresses, as far as nft lists. An nft that does not answer is an error.
    pub(super) fn set(config: &ForwardConfig) -> io::Result<Option<Untracked>> {
        let rules = match Ruleset::read() {
            Ok(rules) => rules,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "rules of the router that translate addresses could not be listed");
                return Ok(None);
            }
        };
        let Some(device) = other_side(config, &rules).map(str::to_owned) else { return Ok(None) };
        match OwnedTable::set(&format!("inet {TABLE}{}", config.queue), &chain(&device)) {
            Ok(table) => Ok(Some(Untracked { device, _table: table })),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
            Err(error) => {
                say_wrong_port(&device, &error);
                Ok(None)
            }
        }
    }
}

fn say_wrong_port(device: &str, error: &io::Error) {
    tracing::warn!(
        %error,
        device,
        "the router translates addresses: packets that were kept leave by it from another port, as if of another \
         connection. Take `by: tun`"
    );
}

/// The interface beside the one that translates addresses.
fn other_side<'a>(config: &'a ForwardConfig, rules: &Ruleset) -> Option<&'a str> {
    let ForwardConfig { wire, radio, .. } = config;
    if !rules.translating(wire, true).is_empty() {
        Some(radio)
    } else if !rules.translating(radio, false).is_empty() {
        Some(wire)
    } else {
        None
    }
}

fn chain(device: &str) -> String {
    format!(
        "chain sent {{ type filter hook output priority raw; policy accept; \
         oifname \"{device}\" meta mark {MARK:#x} notrack; }};"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_untracked_on_the_side_that_does_not_translate() {
        let (wire, radio) = ("wire".to_owned(), "radio".to_owned());
        let config = ForwardConfig { wire, radio, mobiles: Vec::new(), queue: 7100 };
        let nat = |hook: &str, rule: &str| {
            let hook = format!("\t\ttype nat hook {hook} priority 0; policy accept;\n");
            Ruleset::parse(&format!("table ip nat {{\n\tchain c {{\n{hook}\t\t{rule}\n\t}}\n}}\n"))
        };
        for (hook, rule, wanted) in [
            ("postrouting", "oifname \"wire\" masquerade", Some("radio")),
            ("postrouting", "ip saddr 10.9.0.0/24 snat to 192.0.2.1", Some("radio")),
            ("prerouting", "iifname \"wire\" tcp dport 80 dnat to 10.9.0.2", Some("radio")),
            ("postrouting", "oifname \"radio\" masquerade", Some("wire")),
            ("postrouting", "oifname \"lan\" masquerade", None),
            ("prerouting", "ct status dnat accept", None),
        ] {
            assert_eq!(other_side(&config, &nat(hook, rule)), wanted, "{rule}");
        }
        assert!(chain("radio").contains("oifname \"radio\" meta mark 0x686f70 notrack;"));
    }
}
