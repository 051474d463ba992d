//! The one rule that iptables sets where the kernel's nft has no queues: marked SYNs go into the queue.
//!
//! It matches a mark that our table of nft alone sets. A rule that a killed process leaves does nothing, and the
//! next start replaces it.

use std::collections::BTreeSet;
use std::io;

use super::HELD;
use crate::nfqueue::left_chains;
use crate::nfqueue::rules::{IPTABLES, clear_by, removing, removing_made, restore};
use crate::nft::tables;
use crate::undo::Undo;

#[derive(Debug)]
pub(super) struct InIptables {
    _undo: Undo,
}

impl InIptables {
    pub(super) fn set(queue: u16) -> io::Result<InIptables> {
        let before = tables()?;
        let cleared: String = IPTABLES.iter().map(|program| clearing(program, queue)).collect();
        for program in IPTABLES {
            clear_by(&clearing(program, queue));
            restore(program, &rules(queue)).inspect_err(|_| clear_by(&cleared))?;
        }
        Ok(InIptables { _undo: Undo::by(&format!("{cleared}{}true", removing_made(&before)))? })
    }
}

/// The queues into which rules of killed processes lead.
pub(super) fn left() -> io::Result<BTreeSet<u16>> {
    left_chains(CHAIN_OF)
}

/// Removes the rule into this queue.
pub(super) fn remove(queue: u16) {
    IPTABLES.iter().for_each(|program| clear_by(&clearing(program, queue)));
}

const CHAIN_OF: &str = "HOPWISE-T";

fn chain(queue: u16) -> String {
    format!("{CHAIN_OF}{queue}")
}

fn rules(queue: u16) -> String {
    let chain = chain(queue);
    format!(
        "*mangle\n:{chain} - [0:0]\n-A {chain} -m mark --mark {HELD:#x}/{HELD:#x} -j NFQUEUE --queue-num {queue} \
         --queue-bypass\n-A PREROUTING -j {chain}\nCOMMIT\n"
    )
}

/// The commands that remove the rule.
fn clearing(program: &str, queue: u16) -> String {
    removing(program, ("mangle", "PREROUTING"), &chain(queue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_matches_our_mark_alone_and_lets_packets_go_on() {
        assert!(
            rules(7300).contains("--mark 0x2000000/0x2000000 -j NFQUEUE --queue-num 7300 --queue-bypass\n")
        );
    }
}
