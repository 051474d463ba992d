//! The one rule that iptables sets where the kernel's nft has no queues: marked SYNs go into the queue. And all rules
//! and routes that killed transparent nodes left.
//!
//! The rule matches a mark that our table of nft alone sets. A rule that a killed process leaves does nothing, since
//! the table that marked packets is gone. The next start replaces the rule.

use std::collections::BTreeSet;
use std::io;

use super::{HELD, TransparentError, chains, failed, ways};
use crate::nfqueue::left_chains;
use crate::nfqueue::rules::{IPTABLES, clear_by, removing, removing_made, restore};
use crate::nft::tables;
use crate::running::UndoCommand;

#[derive(Debug)]
pub(super) struct InIptables {
    _undo: UndoCommand,
}

impl InIptables {
    pub(super) fn set(queue: u16) -> io::Result<InIptables> {
        let before = tables()?;
        let cleared: String = IPTABLES.iter().map(|program| clearing(program, queue)).collect();
        for program in IPTABLES {
            clear_by(&clearing(program, queue));
            restore(program, &rules(queue)).inspect_err(|_| clear_by(&cleared))?;
        }
        Ok(InIptables { _undo: UndoCommand::by(&format!("{cleared}{}true", removing_made(&before)))? })
    }
}

/// Removes the rule into this queue.
pub(super) fn remove_queue(queue: u16) {
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

/// Things that killed processes left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftRulesAndRoutes {
    /// The tables of routing that have a route and a rule.
    pub tables: BTreeSet<u32>,
    /// The netfilter queues into which a rule of iptables leads.
    pub queues: BTreeSet<u16>,
}

impl LeftRulesAndRoutes {
    /// Returns whether nothing was left.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.queues.is_empty()
    }
}

/// Looks for them. The table of a process that runs stands in nft, and its queue has a reader.
pub fn left() -> Result<LeftRulesAndRoutes, TransparentError> {
    let standing = tables().map_err(failed("list the tables of nft"))?;
    let stands = |table: &u32| {
        let wanted = format!("table {}", chains::table(*table));
        standing.lines().any(|line| line == wanted)
    };
    let mut tables = ways::tables().map_err(TransparentError::Step)?;
    tables.retain(|table| !stands(table));
    let queues = left_chains(CHAIN_OF).map_err(failed("list the rules of iptables"))?;
    Ok(LeftRulesAndRoutes { tables, queues })
}

/// Removes them, and returns what stays.
pub fn remove_left() -> Result<LeftRulesAndRoutes, TransparentError> {
    let LeftRulesAndRoutes { tables, queues } = left()?;
    queues.into_iter().for_each(remove_queue);
    ways::remove(&tables).map_err(TransparentError::Step)?;
    left()
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
