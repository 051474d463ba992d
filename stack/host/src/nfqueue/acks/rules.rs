//! Rules that lead what leaves by some interfaces, and SYNs that arrive by them, into a queue. Without a listener,
//! packets go on (`bypass`).
//!
//! No stranger makes packets wait. The kernel sends SYNs and RSTs to anybody who asks: what it sends of them goes past
//! the queue. SYNs that arrive tell the hops of new flows, and 200 of them a second are led into the queue.
//!
//! They come after the rules of the host's own firewall. A table of nft belongs to this process and goes with it. If
//! the kernel's nft has no queues, iptables sets the rules, in `security` or, where that is missing, in `mangle`. A
//! shell removes them when this process ends, however it ends.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

use crate::nfqueue::rules::{
    IPTABLES, IPV4, IPV6, RuleChain, StandingChains, clear_by, removing, removing_made, restore,
};
use crate::nft::{OwnedTable, feed, tables};
use crate::poller::wait_for;
use crate::running::UndoCommand;

/// The beginnings of the names of our table of nft, and of our chain of iptables. The queue's number follows.
const TABLE_OF: &str = "hopwise_thin_";
const CHAIN_OF: &str = "HOPWISE-A";
const HOOKS: [&str; 3] = ["INPUT", "OUTPUT", "FORWARD"];
/// The SYNs whose hop limits are looked at.
const SYNS: &str = "tcp flags & syn == syn limit rate 200/second burst 200 packets";
/// What leaves and what arrives, in the words of iptables.
const LEAVES: &str = "-p tcp --tcp-flags SYN,RST NONE";
const ARRIVES: &str = "-p tcp --tcp-flags SYN SYN -m limit --limit 200/s --limit-burst 200";
/// Tables of iptables with these hooks, tried in turn.
const TABLES: [&str; 2] = ["security", "mangle"];

/// The wait for the shell of a killed daemon.
const TRIES: u32 = 200;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) enum AckRules {
    Nft(OwnedTable),
    Iptables { _undo: UndoCommand, standing: StandingChains },
}

impl AckRules {
    pub(super) fn set(interfaces: &BTreeSet<String>, queue: u16) -> io::Result<AckRules> {
        let (table, chains) = (format!("inet {TABLE_OF}{queue}"), chains(interfaces, queue));
        // The owner of a table does not tell why it is not made, and waits. What a killed daemon left may stand still:
        // another name is checked.
        let script = format!("table {table}_new {{ flags owner; {chains}}}");
        match feed(Command::new("nft").args(["-c", "-f", "-"]), &script) {
            Ok(()) => OwnedTable::set(&table, &chains).map(AckRules::Nft),
            Err(of_nft) if of_nft.kind() == io::ErrorKind::TimedOut => Err(of_nft),
            Err(of_nft) => with_iptables(interfaces, queue)
                .map_err(|error| io::Error::new(error.kind(), format!("nft: {of_nft}; {error}"))),
        }
    }

    /// Returns whether they are there still, as far as the kernel tells.
    pub(super) fn stand(&mut self) -> bool {
        match self {
            AckRules::Nft(table) => table.stands(),
            AckRules::Iptables { standing, .. } => standing.holds(),
        }
    }
}

fn chains(interfaces: &BTreeSet<String>, queue: u16) -> String {
    let names: Vec<_> = interfaces.iter().map(|name| format!("\"{name}\"")).collect();
    let names = names.join(", ");
    let chain = |hook: &str| {
        let matches = match hook {
            "INPUT" => format!("iifname {{ {names} }} {SYNS}"),
            _ => format!("oifname {{ {names} }} tcp flags & (syn | rst) == 0"),
        };
        let rule = format!("{matches} queue flags bypass to {queue};");
        let hook = hook.to_lowercase();
        format!("chain {hook} {{ type filter hook {hook} priority filter + 1; policy accept; {rule} }}; ")
    };
    HOOKS.map(chain).concat()
}

fn with_iptables(interfaces: &BTreeSet<String>, queue: u16) -> io::Result<AckRules> {
    let turn = turn(queue)?;
    let before = tables().unwrap_or_default();
    let cleared = clearing(queue);
    clear_by(&cleared);
    let undo = UndoCommand::at_any_end(&format!("{cleared}{}true", removing_made(&before)), turn)?;
    for program in IPTABLES {
        let set = |table: &str| restore(program, &for_iptables(interfaces, queue, table));
        let Err(error) = set(TABLES[0]).or_else(|_| set(TABLES[1])) else { continue };
        // A kernel may lack IPv6.
        if program == IPTABLES[0] {
            return Err(error);
        }
        tracing::warn!(%error, "ACKs over IPv6 leave as they are");
    }
    let name = format!("{CHAIN_OF}{queue}");
    let known = TABLES.into_iter().flat_map(|table| {
        [IPV4, IPV6].map(|family| RuleChain { family, table: table.to_owned(), name: name.clone() })
    });
    Ok(AckRules::Iptables { _undo: undo, standing: StandingChains::of(known) })
}

/// The name of a socket that the shell holds until it has removed the rules. The shell of a killed daemon would remove
/// ours as well, and its tables would count as a stranger's. Who else holds the name is not waited for longer.
fn turn(queue: u16) -> io::Result<OwnedFd> {
    let name = SocketAddrUnix::new_abstract_name(format!("hopwise-thin-rules-{queue}").as_bytes())?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    for _ in 0..TRIES {
        if bind(&socket, &name).is_ok() {
            break;
        }
        drop(wait_for(&mut [], BETWEEN_TRIES));
    }
    Ok(socket)
}

fn for_iptables(interfaces: &BTreeSet<String>, queue: u16, table: &str) -> String {
    let chain = format!("{CHAIN_OF}{queue}");
    let mut rules = String::new();
    for interface in interfaces {
        for matches in [format!("-o {interface} {LEAVES}"), format!("-i {interface} {ARRIVES}")] {
            // Writing to a String does not fail.
            let _ = writeln!(rules, "-A {chain} {matches} -j NFQUEUE --queue-num {queue} --queue-bypass");
        }
    }
    let hooks = HOOKS.map(|hook| format!("-A {hook} -j {chain}\n")).concat();
    format!("*{table}\n:{chain} - [0:0]\n{rules}{hooks}COMMIT\n")
}

/// The commands that remove our rules.
fn clearing(queue: u16) -> String {
    let chain = format!("{CHAIN_OF}{queue}");
    let of = |program: &&str| {
        let each = |table: &str| HOOKS.map(|hook| removing(program, (table, hook), &chain)).concat();
        TABLES.map(each).concat()
    };
    IPTABLES.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_goes_into_a_queue_that_lets_packets_go_on_where_nobody_listens() {
        let interfaces = ["wlan0", "wlan1"].map(str::to_owned).into();
        let script = chains(&interfaces, 7300);
        let rule =
            "oifname { \"wlan0\", \"wlan1\" } tcp flags & (syn | rst) == 0 queue flags bypass to 7300;";
        assert_eq!(script.matches(rule).count(), 2, "{script}");
        let rule = "hook input priority filter + 1; policy accept; iifname { \"wlan0\", \"wlan1\" } \
                    tcp flags & syn == syn limit rate 200/second burst 200 packets queue flags bypass to \
                    7300;";
        assert!(script.contains(rule), "{script}");
        assert!(script.contains("hook output priority filter + 1;") && script.contains("hook forward"));
        let script = for_iptables(&interfaces, 7300, "security");
        let rule = "-A HOPWISE-A7300 -o wlan1 -p tcp --tcp-flags SYN,RST NONE -j NFQUEUE --queue-num 7300 \
                    --queue-bypass\n";
        let syns = "-A HOPWISE-A7300 -i wlan1 -p tcp --tcp-flags SYN SYN -m limit --limit 200/s \
                    --limit-burst 200 -j NFQUEUE --queue-num 7300 --queue-bypass\n";
        assert!(script.contains(syns), "{script}");
        assert!(
            script.starts_with("*security\n:HOPWISE-A7300 - [0:0]\n") && script.contains(rule),
            "{script}"
        );
        assert!(
            script.ends_with(
                "-A INPUT -j HOPWISE-A7300\n-A OUTPUT -j HOPWISE-A7300\n-A FORWARD -j HOPWISE-A7300\nCOMMIT\n"
            ),
            "{script}"
        );
    }
}
