//! Rules that lead forwarded packets into queues. Without a listener, packets go on (`bypass`).
//!
//! They come after the router's own rules (`priority filter`, and iptables' table `filter`): a packet that the router
//! drops never reaches the proxy. If the kernel's nft has no queues, iptables sets the rules, in its nft or its older
//! form. A kernel without iptables' table `security` has no table after `filter`: the rules are in `mangle` there,
//! before it.
//!
//! The rules go when the links do. A killed proxy leaves rules into queues without a listener, which do no harm. The
//! next start replaces them, and `hopwise doctor` finds them. Whether the rules still stand is asked of the kernel, not
//! of a program: a confined process may run none.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;
use std::{fs, io};

use hopwise_core::ip::Prefix;
use rustix::net::netlink::NETFILTER;

use super::{ForwardConfig, family};
use crate::netlink::ask::{ask, open};
use crate::netlink::message::{NetlinkMessage, attribute};
use crate::nft::{feed, nft, tables};
use crate::running::UndoCommand;
use crate::running::run;

#[derive(Debug)]
pub(super) struct QueueRules {
    _undo: UndoCommand,
    standing: StandingChains,
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
            Ok(()) => UndoCommand::by(&format!("nft delete table inet {table}")),
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
                UndoCommand::by(&format!("{cleared}{}true", removing_made(&before)))
            }
        };
        let in_nft = RuleChain { family: INET, table: table.clone(), name: CHAIN.to_owned() };
        let in_iptables = TABLES.into_iter().flat_map(|(table, _)| {
            let name = chain(config.queue);
            [IPV4, IPV6].map(|family| RuleChain { family, table: table.to_owned(), name: name.clone() })
        });
        let standing = StandingChains::of([in_nft].into_iter().chain(in_iptables));
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

/// The commands that remove a chain, and the rules that lead there. Errors of missing ones do not matter.
pub(crate) fn removing(program: &str, (table, from): (&str, &str), chain: &str) -> String {
    let table = format!("{program} -w -t {table}");
    format!("while {table} -D {from} -j {chain}; do :; done; {table} -F {chain}; {table} -X {chain}; ")
}

/// The commands that remove the tables that iptables-nft has made for us, unless another program has rules there by
/// then. The older iptables has no such tables: nft then finds none.
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

/// Adds rules in one step, and leaves the rules of other programs as they are.
pub(crate) fn restore(program: &str, script: &str) -> io::Result<()> {
    let program = format!("{program}-restore");
    feed(Command::new(&program).args(["-w", "--noflush"]), script)
        .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))
}

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
    Ok(named(&saved()?, beginning).collect())
}

/// The rules of both versions of IP as iptables saves them.
pub(crate) fn saved() -> io::Result<String> {
    let mut found = String::new();
    for program in IPTABLES {
        // Without a table's name it lists only tables in use.
        match run(&mut Command::new(format!("{program}-save")), "") {
            Ok(done) => found += &String::from_utf8_lossy(&done.stdout),
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

/// The subsystem of nftables, and its messages (linux/netfilter/nf_tables.h).
pub(crate) const SUBSYSTEM: u16 = 10 << 8;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
const GET_CHAIN: u16 = SUBSYSTEM | 4;
const TABLE: u16 = 1;
const NAME: u16 = 3;
const USES: u16 = 6;
/// The header of a netfilter message: family, version, and a number without a meaning here.
const HEADER: usize = 4;

/// Families as netfilter numbers them.
pub(crate) const INET: u8 = 1;
pub(crate) const IPV4: u8 = 2;
pub(crate) const IPV6: u8 = 10;

/// A chain, by its family, its table and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuleChain {
    pub(super) family: u8,
    pub(super) table: String,
    pub(super) name: String,
}

/// Chains, each with its number of uses at the time of its making: its rules and the rules that lead to it.
#[derive(Clone, Debug, Default)]
pub(super) struct StandingChains(Vec<(RuleChain, u32)>);

impl StandingChains {
    /// Keeps the chains that nftables knows. Nothing can be told of an unknown chain.
    pub(super) fn of(chains: impl IntoIterator<Item = RuleChain>) -> StandingChains {
        let known = |chain: RuleChain| uses(&chain).ok().flatten().map(|uses| (chain, uses));
        StandingChains(chains.into_iter().filter_map(known).collect())
    }

    /// False once one of them has gone, or has lost a rule. A kernel that does not answer has removed none.
    pub(super) fn holds(&self) -> bool {
        self.0.iter().all(|(chain, before)| match uses(chain) {
            Ok(now) => now.is_some_and(|now| now >= *before),
            Err(_) => true,
        })
    }
}

/// A name as netfilter takes it.
pub(crate) fn terminated(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// `None`: there is no such chain.
fn uses(chain: &RuleChain) -> io::Result<Option<u32>> {
    let question = NetlinkMessage::new(GET_CHAIN, 0, 0)
        .fixed(&[chain.family, 0, 0, 0])
        .attribute(TABLE, &terminated(&chain.table))
        .attribute(NAME, &terminated(&chain.name));
    let mut found = None;
    let asked = ask(open(Some(NETFILTER))?, question, |heard| {
        if heard.kind == NEW_CHAIN {
            found = read(heard.body);
        }
    });
    match asked {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
        Ok(()) => found.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// The number of a chain's uses, by its description.
pub(crate) fn read(body: &[u8]) -> Option<u32> {
    let uses = attribute(body.get(HEADER..)?, USES)?;
    uses.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::messages;

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

    #[test]
    fn a_description_tells_the_uses_of_a_chain() {
        let chain = NetlinkMessage::new(NEW_CHAIN, 0, 1).fixed(&[2, 0, 0, 0]).attribute(NAME, b"forwarded\0");
        let bytes = chain.attribute(USES, &5_u32.to_be_bytes()).finish();
        let body = messages(&bytes).next().expect("it is whole").body;
        assert_eq!(read(body), Some(5));
        assert!((0..body.len()).all(|len| read(&body[..len]).is_none()));
    }
}
