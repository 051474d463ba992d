//! The chains of the nft table: they mark SYNs to be held, and lead packets of caught connections to their sockets.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use super::{CAUGHT, HELD, TransparentConfig};
use crate::nfqueue::family;

/// The beginning of the name of our table. The number of the table of routing follows.
const TABLE: &str = "hopwise_transparent_";
/// The stay of a SYN that has come in, in seconds, and the bound of such SYNs. A node asks for a SYN within 15 s, and
/// seldom at all.
const ARRIVED_FOR: u32 = 30;
const MOST_ARRIVED: u32 = 65_535;
/// A SYN that begins a connection.
const SYN: &str = "tcp flags & (fin | syn | rst | ack) == syn";

pub(super) fn table(number: u32) -> String {
    format!("inet {}", name(number))
}

/// The name of our table without its family.
pub(super) fn name(number: u32) -> String {
    format!("{TABLE}{number}")
}

/// The set of caught SYNs of an address's version that have come in.
pub(super) fn arrivals_of(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "arrived4" } else { "arrived6" }
}

/// The chains, before and after the place of iptables' table `mangle` (-150). `queues` if nft itself can hold packets.
pub(super) fn of(config: &TransparentConfig, ports: &[SocketAddr], queues: bool) -> String {
    let mut chains = hold(config, ports);
    if queues && !config.interfaces.is_empty() {
        // Writing to a String does not fail.
        let _ = write!(
            chains,
            "chain held {{ type filter hook prerouting priority -150; policy accept; \
             meta mark & {HELD:#x} == {HELD:#x} queue flags bypass to {}; }}; ",
            config.queue
        );
    }
    chains + &end(ports) + &arrive(ports)
}

/// Makes and removes a table whose only chain has a queue, in one step. An nft that
/// holds a table of ours says nothing after an error, and would be waited for.
pub(super) fn tries_queue(config: &TransparentConfig) -> String {
    let table = table(config.table);
    let chain = format!("chain tried {{\n queue flags bypass to {}\n }}", config.queue);
    format!(
        "table {table} {{}}\ndelete table {table}\ntable {table} {{\n {chain}\n}}\ndelete table {table}\n"
    )
}

/// A SYN is never taken for a packet of a known socket: its client may use a port anew. A packet that finds a listener
/// alone is no packet of ours. The kernel does not say so of handshakes, whose last packet would find it by its port:
/// connections to the ports of the listeners therefore go straight on.
fn hold(config: &TransparentConfig, ports: &[SocketAddr]) -> String {
    let later = "tcp flags & (fin | syn | rst | ack) != syn";
    let own: Vec<_> = ports.iter().map(|listener| listener.port().to_string()).collect();
    let others =
        if own.is_empty() { String::new() } else { format!(" tcp dport != {{ {} }}", own.join(", ")) };
    let mut rules = String::new();
    for of in [" socket wildcard 0", others.as_str()] {
        // Writing to a String does not fail.
        let _ = write!(rules, "{later} socket transparent 1{of} meta mark set meta mark | {CAUGHT:#x}; ");
    }
    if !config.interfaces.is_empty() {
        let quoted: Vec<_> = config.interfaces.iter().map(|name| format!("\"{name}\"")).collect();
        let from = format!("iifname {{ {} }} {SYN}{others} fib daddr type != local", quoted.join(", "));
        for spared in &config.spared {
            let _ = write!(rules, "{} daddr {spared} return; ", family(*spared));
        }
        for network in &config.networks {
            let _ = write!(
                rules,
                "{from}{} {} daddr {network} meta mark set meta mark | {HELD:#x}; ",
                ports_of(config),
                family(network.address())
            );
        }
    }
    format!("chain hold {{ type filter hook prerouting priority -151; policy accept; {rules}}}; ")
}

fn ports_of(config: &TransparentConfig) -> String {
    let ports = config.ports.iter().map(|ports| match (ports.start(), ports.end()) {
        (one, other) if one == other => one.to_string(),
        (one, other) => format!("{one}-{other}"),
    });
    let ports: Vec<_> = ports.collect();
    if ports.is_empty() { String::new() } else { format!(" tcp dport {{ {} }}", ports.join(", ")) }
}

/// Hands caught SYNs to the listeners. A SYN that went on because nobody reads the queue loses its mark.
fn end(ports: &[SocketAddr]) -> String {
    let mut rules = String::new();
    for listener in ports {
        let version = if listener.is_ipv4() { "ipv4" } else { "ipv6" };
        let _ = write!(
            rules,
            "meta mark & {CAUGHT:#x} == {CAUGHT:#x} {SYN} meta nfproto {version} tproxy {} to :{} accept; ",
            family(listener.ip()),
            listener.port()
        );
    }
    let _ = write!(rules, "meta mark & {HELD:#x} == {HELD:#x} meta mark set meta mark & {:#x}; ", !HELD);
    format!("chain end {{ type filter hook prerouting priority -149; policy accept; {rules}}}; ")
}

/// Notes caught SYNs that have passed all other chains of `input`: this one has the last priority. A host repeats its
/// SYN, and that lengthens the stay in the set.
fn arrive(ports: &[SocketAddr]) -> String {
    let (mut sets, mut rules) = (String::new(), String::new());
    for listener in ports {
        let (set, family) = (arrivals_of(listener.ip()), family(listener.ip()));
        let address = if listener.is_ipv4() { "ipv4_addr" } else { "ipv6_addr" };
        // Writing to a String does not fail.
        let _ = write!(
            sets,
            "set {set} {{ type {address} . inet_service . {address} . inet_service; flags dynamic,timeout; timeout \
             {ARRIVED_FOR}s; size {MOST_ARRIVED}; }}; "
        );
        let _ = write!(
            rules,
            "meta mark & {CAUGHT:#x} == {CAUGHT:#x} {SYN} update @{set} {{ {family} saddr . tcp sport . {family} daddr \
             . tcp dport }}; "
        );
    }
    if ports.is_empty() {
        return String::new();
    }
    format!("{sets}chain arrive {{ type filter hook input priority {}; policy accept; {rules}}}; ", i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> TransparentConfig {
        TransparentConfig {
            interfaces: vec!["lan0".into(), "lan1".into()],
            ports: vec![80..=80, 8000..=8100],
            networks: ["10.2.0.0/16", "fd02::/64"].map(|text| text.parse().expect("a network")).to_vec(),
            spared: vec!["10.2.0.9".parse().expect("an address")],
            queue: 7300,
            table: 7301,
        }
    }

    #[test]
    fn syns_of_the_interfaces_for_the_networks_are_held_and_let_go_where_nobody_listens() {
        let ports = ["0.0.0.0:5000", "[::]:5001"].map(|text| text.parse().expect("an address"));
        let chains = of(&config(), &ports, true);
        for rule in [
            "ip daddr 10.2.0.9 return; iifname { \"lan0\", \"lan1\" } tcp flags & (fin | syn | rst | ack) == syn tcp \
             dport != { 5000, 5001 } fib daddr type != local tcp dport { 80, 8000-8100 } ip daddr 10.2.0.0/16 meta \
             mark set meta mark | 0x2000000; ",
            " ip6 daddr fd02::/64 meta mark set meta mark | 0x2000000; ",
            "meta mark & 0x2000000 == 0x2000000 queue flags bypass to 7300; ",
            "meta nfproto ipv4 tproxy ip to :5000 accept; ",
            "meta nfproto ipv6 tproxy ip6 to :5001 accept; ",
            "meta mark set meta mark & 0xfdffffff; ",
            "set arrived6 { type ipv6_addr . inet_service . ipv6_addr . inet_service; flags dynamic,timeout; timeout \
             30s; size 65535; }; chain arrive { type filter hook input priority 2147483647; policy accept; meta mark & \
             0x4000000 == 0x4000000 tcp flags & (fin | syn | rst | ack) == syn update @arrived4 { ip saddr . tcp sport \
             . ip daddr . tcp dport }; ",
        ] {
            assert!(chains.contains(rule), "{rule} in {chains}");
        }
        assert!(!of(&config(), &ports, false).contains("queue"));
    }

    #[test]
    fn a_node_that_only_opens_for_others_holds_nothing() {
        let chains = of(&TransparentConfig { interfaces: Vec::new(), ..config() }, &[], true);
        assert!(chains.contains("socket transparent 1") && !chains.contains("iifname"), "{chains}");
        assert!(!chains.contains("queue") && !chains.contains("tproxy"), "{chains}");
    }
}
