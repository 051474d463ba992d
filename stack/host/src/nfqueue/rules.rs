//! Rules that lead forwarded packets into queues. Without a listener, packets go on (`bypass`).
//!
//! They come after the router's own rules (`priority filter`, and iptables' table `filter`): a packet that those drop
//! never reaches the proxy. The rules go when the links do. Rules that a crash left do no harm until the next start,
//! which replaces them. If the kernel's nft has no queues, iptables sets the rules, in its nft or its older form. A
//! kernel without iptables' table `security` has no table after `filter`: the rules are in `mangle` there, before it.

use std::fmt::Write as _;
use std::io;
use std::process::Command;

use hopwise_core::ip::Prefix;

use super::standing::{Chain, INET, IPV4, IPV6, Standing};
use super::{ForwardConfig, family};
use crate::nft::{feed, nft, tables};
use crate::running::run;
use crate::undo::Undo;

#[derive(Debug)]
pub(super) struct QueueRules {
    _undo: Undo,
    standing: Standing,
}

/// The programs for both versions of IP.
pub(crate) const IPTABLES: [&str; 2] = ["iptables", "ip6tables"];
/// Tables of iptables with the command that adds to `FORWARD`, tried in turn. The chain of `security` comes after the
/// one of `filter`. The chain of `mangle` comes before it, and our rules stand last there.
const TABLES: [(&str, &str); 2] = [("security", "-I"), ("mangle", "-A")];
/// The beginnings of the names of our table of nft, and of our chain of iptables. The first queue's number follows.
pub(super) const TABLE_OF: &str = "hopwise_proxy_";
pub(super) const CHAIN_OF: &str = "HOPWISE-";
/// The chain in the nft table.
const CHAIN: &str = "forwarded";

impl QueueRules {
    pub(super) fn set(config: &ForwardConfig) -> io::Result<QueueRules> {
        let table = table(config.queue);
        let undo = match nft(&with_nft(config)) {
            Ok(()) => Undo::by(&format!("nft delete table inet {table}")),
            Err(of_nft) if of_nft.kind() == io::ErrorKind::TimedOut => return Err(of_nft),
            Err(of_nft) => {
                let before = tables()?;
                with_iptables(config).map_err(|error| {
                    // One version of IP may have its rules already.
                    IPTABLES.iter().for_each(|program| clear(program, config.queue));
                    io::Error::new(error.kind(), format!("nft: {of_nft}; {error}"))
                })?;
                let cleared: String =
                    IPTABLES.iter().map(|program| clearing(program, config.queue)).collect();
                Undo::by(&format!("{cleared}{}true", removing_made(&before)))
            }
        };
        let in_nft = Chain { family: INET, table: table.clone(), name: CHAIN.to_owned() };
        let in_iptables = TABLES.into_iter().flat_map(|(table, _)| {
            let name = chain(config.queue);
            [IPV4, IPV6].map(|family| Chain { family, table: table.to_owned(), name: name.clone() })
        });
        let standing = Standing::of([in_nft].into_iter().chain(in_iptables));
        Ok(QueueRules { _undo: undo?, standing })
    }

    /// Returns whether they are all there still. Those of the older iptables cannot be asked for.
    pub(super) fn stand(&self) -> bool {
        self.standing.holds()
    }
}

fn table(queue: u16) -> String {
    format!("{TABLE_OF}{queue}")
}

fn chain(queue: u16) -> String {
    format!("{CHAIN_OF}{queue}")
}

/// The two directions with their matches on the mobiles' networks, for nft and for iptables.
fn directions(config: &ForwardConfig) -> [(&str, &str, u16, [&'static str; 2]); 2] {
    let ForwardConfig { wire, radio, queue, .. } = config;
    [(wire, radio, *queue, ["daddr", "-d"]), (radio, wire, queue + 1, ["saddr", "-s"])]
}

/// Makes, deletes and makes the table again, to replace an existing one in one step.
fn with_nft(config: &ForwardConfig) -> String {
    let table = table(config.queue);
    let mut rules = String::new();
    for (from, to, queue, [end, _]) in directions(config) {
        for network in &config.mobiles {
            let family = family(network.address());
            // Writing to a String does not fail.
            let matches =
                format!("iifname \"{from}\" oifname \"{to}\" meta l4proto tcp {family} {end} {network}");
            let _ = writeln!(rules, "    {matches} queue flags bypass to {queue}");
        }
    }
    format!(
        "table inet {table} {{}}\ndelete table inet {table}\ntable inet {table} {{\n  chain {CHAIN} {{\n    \
         type filter hook forward priority filter + 1; policy accept;\n{rules}  }}\n}}\n"
    )
}

fn with_iptables(config: &ForwardConfig) -> io::Result<()> {
    for (program, is_v6) in IPTABLES.into_iter().zip([false, true]) {
        clear(program, config.queue);
        let networks: Vec<_> = config.mobiles.iter().filter(|n| n.address().is_ipv6() == is_v6).collect();
        if !networks.is_empty() {
            set_with(program, config, &networks)?;
        }
    }
    Ok(())
}

/// Takes the first table that there is.
fn set_with(program: &str, config: &ForwardConfig, networks: &[&Prefix]) -> io::Result<()> {
    let [after, before] = TABLES.map(|table| for_iptables(config, networks, table));
    let Err(refused) = restore(program, &after) else { return Ok(()) };
    restore(program, &before).map_err(|error| {
        let said = format!("table security: {refused}; table mangle: {error}");
        io::Error::new(error.kind(), said)
    })?;
    tracing::warn!(
        %refused,
        "there is no table `security`: packets come to the proxy from `mangle`, before the router's own filter. It \
         holds and answers packets that the filter would drop: take `by: tun` where there are such"
    );
    Ok(())
}

fn for_iptables(config: &ForwardConfig, networks: &[&Prefix], (table, add): (&str, &str)) -> String {
    let chain = chain(config.queue);
    let mut rules = String::new();
    for (from, to, queue, [_, end]) in directions(config) {
        for network in networks {
            let matches = format!("-i {from} -o {to} -p tcp {end} {network}");
            let _ = writeln!(rules, "-A {chain} {matches} -j NFQUEUE --queue-num {queue} --queue-bypass");
        }
    }
    format!("*{table}\n:{chain} - [0:0]\n{rules}{add} FORWARD -j {chain}\nCOMMIT\n")
}

/// The commands that remove our rules.
fn clearing(program: &str, queue: u16) -> String {
    let chain = chain(queue);
    TABLES.into_iter().map(|(table, _)| removing(program, (table, "FORWARD"), &chain)).collect()
}

/// The commands that remove a chain, and the rules of another one that lead there. Errors of missing ones do not
/// matter.
pub(crate) fn removing(program: &str, (table, from): (&str, &str), chain: &str) -> String {
    let table = format!("{program} -w -t {table}");
    format!("while {table} -D {from} -j {chain}; do :; done; {table} -F {chain}; {table} -X {chain}; ")
}

/// The commands that remove the tables that iptables-nft has made for us, unless others have rules there by then. The
/// older iptables has no such tables: nft then finds none.
pub(crate) fn removing_made(before: &str) -> String {
    let mut commands = String::new();
    for (program, family) in IPTABLES.into_iter().zip(["ip", "ip6"]) {
        for (name, _) in TABLES {
            let table = format!("{family} {name}");
            if !before.lines().any(|line| line.strip_prefix("table ") == Some(&table)) {
                let is_empty = format!("! {program} -w -t {name} -S | grep -qv '^-P '");
                // Writing to a String does not fail.
                let _ = write!(commands, "{{ {is_empty}; }} && nft delete table {table}; ");
            }
        }
    }
    commands
}

/// Removes all rules that lead into this queue and the next.
pub(super) fn remove(queue: u16) {
    // Those are not there that another program has set.
    let _ = nft(&format!("delete table inet {}", table(queue)));
    IPTABLES.iter().for_each(|program| clear(program, queue));
}

fn clear(program: &str, queue: u16) {
    clear_by(&clearing(program, queue));
}

/// Runs commands that remove rules.
pub(crate) fn clear_by(commands: &str) {
    // A missing program has set no rules.
    let _ = run(Command::new("sh").args(["-c", commands]), "");
}

/// Adds rules in one step, beside those of others.
pub(crate) fn restore(program: &str, script: &str) -> io::Result<()> {
    let program = format!("{program}-restore");
    feed(Command::new(&program).args(["-w", "--noflush"]), script)
        .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ForwardConfig {
        let mobiles = ["10.9.0.0/24", "fd09::/64"].map(|text| text.parse().expect("a prefix")).to_vec();
        ForwardConfig { wire: "wire".into(), radio: "radio".into(), mobiles, queue: 7100 }
    }

    #[test]
    fn both_ways_lead_into_queues_that_let_packets_go_on_where_nobody_listens() {
        let script = with_nft(&config());
        for rule in [
            "iifname \"wire\" oifname \"radio\" meta l4proto tcp ip daddr 10.9.0.0/24 queue flags bypass to 7100\n",
            "iifname \"radio\" oifname \"wire\" meta l4proto tcp ip6 saddr fd09::/64 queue flags bypass to 7101\n",
        ] {
            assert!(script.contains(rule), "{rule} in {script}");
        }
        assert_eq!(script.matches("queue flags bypass").count(), 4);
        assert!(script.contains("hook forward priority filter + 1;"), "{script}");
        assert!(
            script.starts_with("table inet hopwise_proxy_7100 {}\ndelete table inet hopwise_proxy_7100\n")
        );
    }

    #[test]
    fn tables_that_were_there_before_are_not_removed() {
        let commands = removing_made("table ip security\ntable ip6 mangle\ntable inet mangle\n");
        let removed = commands.matches("nft delete table ").count();
        assert!(removed == 2 && commands.contains("delete table ip mangle"), "{commands}");
        assert!(commands.contains("delete table ip6 security"), "{commands}");
    }

    #[test]
    fn iptables_is_told_the_same_family_by_family() {
        let config = config();
        let script = for_iptables(&config, &[&config.mobiles[0]], TABLES[0]);
        let matches = "-A HOPWISE-7100 -i radio -o wire -p tcp -s 10.9.0.0/24";
        let rule = &format!("{matches} -j NFQUEUE --queue-num 7101 --queue-bypass\n");
        assert!(
            script.starts_with("*security\n")
                && script.contains(rule)
                && script.ends_with("-I FORWARD -j HOPWISE-7100\nCOMMIT\n"),
            "{script}"
        );
        assert!(!script.contains("fd09"));
    }
}
