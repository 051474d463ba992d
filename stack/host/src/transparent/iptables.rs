//! The one rule that iptables sets where the kernel's nft has no queues: marked SYNs go into the queue.
//!
//! It matches a mark that our table of nft alone sets. A rule that a killed process leaves does nothing, and the
//! next start replaces it.

use std::fmt::Write as _;
use std::io;
use std::process::Command;

use super::HELD;
use crate::nfqueue::rules::{IPTABLES, removing_made};
use crate::nft::{feed, tables};
use crate::running::run;
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
            // A missing program has set no rules.
            let _ = run(Command::new("sh").args(["-c", &clearing(program, queue)]), "");
            let restore = format!("{program}-restore");
            let set = feed(Command::new(&restore).args(["-w", "--noflush"]), &rules(queue));
            if let Err(error) = set {
                let _ = run(Command::new("sh").args(["-c", &cleared]), "");
                return Err(io::Error::new(error.kind(), format!("{restore}: {error}")));
            }
        }
        Ok(InIptables { _undo: Undo::by(&format!("{cleared}{}true", removing_made(&before)))? })
    }
}

fn chain(queue: u16) -> String {
    format!("HOPWISE-T{queue}")
}

fn rules(queue: u16) -> String {
    let chain = chain(queue);
    format!(
        "*mangle\n:{chain} - [0:0]\n-A {chain} -m mark --mark {HELD:#x}/{HELD:#x} -j NFQUEUE --queue-num {queue} \
         --queue-bypass\n-A PREROUTING -j {chain}\nCOMMIT\n"
    )
}

/// The commands that remove the rule. Errors of missing rules do not matter.
fn clearing(program: &str, queue: u16) -> String {
    let (chain, table) = (chain(queue), format!("{program} -w -t mangle"));
    let mut commands = String::new();
    // Writing to a String does not fail.
    let _ = write!(
        commands,
        "while {table} -D PREROUTING -j {chain}; do :; done; {table} -F {chain}; {table} -X {chain}; "
    );
    commands
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
