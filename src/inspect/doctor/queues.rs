//! Rules of nft and iptables that a killed proxy left: they lead into netfilter queues that nobody has.

use std::collections::BTreeSet;
use std::io;

use hopwise_host::{left_queues, remove_left_queues};

use super::Finding;

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
            Finding::warning(CHECK, found, "hopwise doctor --repair, or start a proxy there again")
        }
        Err(error) => Finding::skipped(CHECK, format!("nft does not list its tables: {error}")),
    }
}

fn listed(queues: &BTreeSet<u16>) -> String {
    queues.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

fn removed(left: &BTreeSet<u16>, done: io::Result<BTreeSet<u16>>) -> Finding {
    const WHERE: &str = "run it as root, in the network namespace of that proxy";
    match done {
        Ok(done) if done == *left => {
            Finding::ok(CHECK, format!("rules into netfilter queue {} removed", listed(left)))
        }
        Ok(done) => {
            let rest = left.difference(&done).copied().collect();
            Finding::failure(CHECK, format!("rules into netfilter queue {} stay", listed(&rest)), WHERE)
        }
        Err(error) => Finding::failure(CHECK, format!("not removed: {error}"), WHERE),
    }
}
