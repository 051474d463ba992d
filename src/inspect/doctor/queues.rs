//! Rules of nft and iptables that a killed proxy left: they lead into netfilter queues that nobody has.

use std::collections::BTreeSet;
use std::io;

use hopwise_host::{left_queues, remove_left_queues};

use super::faults;
use super::finding::Finding;

const CHECK: &str = "queues";

/// With `is_repair` the rules of killed proxies are removed.
pub(super) fn examine(is_repair: bool) -> Finding {
    match left_queues() {
        Ok(left) if left.is_empty() => {
            Finding::ok(CHECK, "no killed proxy left any rule into a netfilter queue")
        }
        Ok(left) if is_repair => removed(&left, remove_left_queues()),
        Ok(left) => {
            let found = format!(
                "a killed `hopwise proxy` left rules into netfilter queue {} (nft, or iptables): packets go on there",
                listed(&left)
            );
            faults::QUEUES_LEFT.found(found)
        }
        Err(error) => Finding::skipped(CHECK, format!("nft does not list its tables: {error}")),
    }
}

fn listed(queues: &BTreeSet<u16>) -> String {
    queues.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

pub(super) fn removed(left: &BTreeSet<u16>, done: io::Result<BTreeSet<u16>>) -> Finding {
    match done {
        Ok(done) if done == *left => {
            Finding::ok(CHECK, format!("rules into netfilter queue {} removed", listed(left)))
        }
        Ok(done) => {
            let rest = left.difference(&done).copied().collect();
            faults::QUEUES_STAY.found(format!("rules into netfilter queue {} stay", listed(&rest)))
        }
        Err(error) => faults::QUEUES_STAY.found(format!("not removed: {error}")),
    }
}
