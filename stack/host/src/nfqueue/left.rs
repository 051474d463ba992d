//! Rules that killed proxies left: they lead into queues that nobody has. Packets go on there, so they do no harm.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::process::Command;

use super::rules::{CHAIN_OF, IPTABLES, TABLE_OF, remove};
use crate::nft::tables;
use crate::running::run;

/// The queues of this namespace that programs have, one a line, by their numbers.
const QUEUES: &str = "/proc/thread-self/net/netfilter/nfnetlink_queue";

/// The first queues of killed proxies whose rules are there still.
pub fn left_queues() -> io::Result<BTreeSet<u16>> {
    let mut left: BTreeSet<u16> = named(&tables()?, TABLE_OF).collect();
    left.extend(of_chains(CHAIN_OF)?);
    without_used(left)
}

/// The queues of chains of iptables whose names begin so, and that no program has.
pub(crate) fn left_chains(beginning: &str) -> io::Result<BTreeSet<u16>> {
    without_used(of_chains(beginning)?)
}

fn without_used(mut queues: BTreeSet<u16>) -> io::Result<BTreeSet<u16>> {
    let used = match fs::read_to_string(QUEUES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        used => used?,
    };
    queues.retain(|queue| !is_used(&used, *queue));
    Ok(queues)
}

fn of_chains(beginning: &str) -> io::Result<BTreeSet<u16>> {
    let mut found = BTreeSet::new();
    for program in IPTABLES {
        // Without a table's name it lists those alone that are in use.
        match run(&mut Command::new(format!("{program}-save")), "") {
            Ok(done) => found.extend(named(&String::from_utf8_lossy(&done.stdout), beginning)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
            // A program that is missing has set no rules.
            Err(_) => {}
        }
    }
    Ok(found)
}

/// Removes them, and returns the queues whose rules are gone.
pub fn remove_left_queues() -> io::Result<BTreeSet<u16>> {
    let left = left_queues()?;
    left.iter().for_each(|queue| remove(*queue));
    let rest = left_queues()?;
    Ok(left.difference(&rest).copied().collect())
}

/// The numbers at the ends of names that begin like ours.
fn named(listed: &str, beginning: &str) -> impl Iterator<Item = u16> {
    let words = listed.split(|letter: char| letter.is_whitespace() || letter == ':');
    words.filter_map(move |word| word.strip_prefix(beginning)?.parse().ok())
}

fn is_used(used: &str, queue: u16) -> bool {
    used.lines().any(|line| line.split_whitespace().next().and_then(|word| word.parse().ok()) == Some(queue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queues_of_our_tables_and_chains_are_read_and_those_in_use_too() {
        let listed =
            "table inet hopwise_proxy_7100\ntable inet hopwise_detour_7200\ntable ip hopwise_proxy_x\n";
        assert_eq!(named(listed, TABLE_OF).collect::<Vec<_>>(), [7100]);
        let saved = "*mangle\n:HOPWISE-7300 - [0:0]\n:OTHER - [0:0]\n-A FORWARD -j HOPWISE-7300\nCOMMIT\n";
        assert_eq!(named(saved, CHAIN_OF).collect::<BTreeSet<_>>(), BTreeSet::from([7300]));
        let used = " 7100  1234     0 2 65531     0     0        0  1\n";
        assert!(is_used(used, 7100) && !is_used(used, 7101) && !is_used(used, 1234));
    }
}
