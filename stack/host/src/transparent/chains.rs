//! The chains of the nft table: they mark SYNs to be held, and lead packets of caught connections to their sockets.
//!
//! A caught SYN stands in the set `caught` until the chain `arrive` takes it out, which stands behind the firewall and
//! before NAT. One that stays was dropped by this machine's firewall or by its filter of reverse paths. From there on
//! until the last chain it stands in the set `arrived`. One that stays there was dropped in between, or NAT has given
//! it another source. A sender in the name of a host can bring that about, by packets that make connection tracking
//! enter the connection first: it says nothing of the firewall. A SYN with another source finds no way that waits for
//! it. The last chain drops it, so that its host is not answered. The firewall has nothing to do with the end of a SYN
//! that is in neither set, such as a reset from its host.
//!
//! Such a sender can also make tracking call packets of a caught connection invalid. They become untracked, so that a
//! firewall that drops invalid packets lets them in. A firewall may drop untracked packets as well, or may know a
//! connection's former packets by tracking. A SYN for which tracking has made no entry of its own therefore stands in
//! `arrived` from the beginning: its end says nothing of the firewall. Rules about tracking would turn it on. They are
//! left out where it is off. A SYN stands there from the beginning as well if no route leads back to its source by the
//! interface that it came by: the filter of reverse paths drops it, and a route that comes later lets its like in.
//!
//! A SYN that comes in leaves its places in the sets, which the kernel frees within a second. A seat of the node has an
//! entry for each second that SYNs stay, and copies of SYNs have the rest. A SYN for which there is no place is
//! dropped, which says nothing of the firewall either.
//!
//! A half-open connection does not show that its host has sent the SYN. A SYN in the host's name leaves one where the
//! host's own connection goes straight on. While a connection stands in the set `asked`, a packet therefore has to
//! acknowledge the number of an answer that this kernel has sent, or to reset the number of the SYN. These numbers
//! stand in `opening`. Any other packet goes straight on. A packet with such a number also finds the listener of an
//! answer that was a SYN cookie. Once a SYN of a connection in `asked` has gone straight on, the connection stands in
//! `passed`. The kernel then answers no more, since connection tracking would follow its answer, and resets go to the
//! server.
//!
//! A number leaves `opening` once it has served: the SYN's by the acknowledgement of its answer or by a reset, and the
//! answer's by the first packet of the socket that stands then. A connection leaves `asked` by a FIN or a reset of its
//! socket, and by a reset that its socket gets. No reset takes a half-open connection out of `asked`, since the kernel
//! may not accept the reset. A host that resets the SYN's number has not sent the SYN, or has given up: the number
//! stands in `disowned`, and nothing has to wait for that SYN. A number of one connection says nothing of another
//! connection.
//!
//! The last node opens connections in hosts' names, from ports of its own kernel's choice. The host may have such a
//! port in a connection to the server that goes straight on, and the server answers the SYN for that connection (RFC
//! 5961). A kernel that gets the answer resets the connection. From the SYN until the next packet of its socket, the
//! connection therefore stands in `calling`, and its socket gets a packet only if it acknowledges the SYN's number.
//! The host gets any other packet. A reset that refuses the SYN takes the connection out as well.
//!
//! Two made-up packets, one in a host's name and one in a server's, make connection tracking know a connection that
//! nobody has opened. An entry stands in the set `astray` if a packet of it comes by the hosts' interfaces in the name
//! of a server that is routed elsewhere, or by another interface in the name of a host. It stands there by its number,
//! which no packet chooses, and leads no SYN past the node. Tracking itself goes on: paths of a host's two directions
//! may differ, also through NAT. Nothing is written into the entry, since rules of a firewall may read it. The entry of
//! a connection that both ends have opened (assured) does not come into the set any more: a SYN in the host's name
//! would be answered here, amid the connection. Where the set is full, further entries lead SYNs straight on.
//!
//! A router tells the sender of a packet that no frame of its link holds it (RFC 1191, RFC 8201). The sender is a
//! socket of this machine, and the address a host's or a server's: the message has to find the socket.
//!
//! The kernel answers questions about the sets, not a program: a confined process may run none.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use rustix::net::netlink::NETFILTER;

use super::{ANY, CAUGHT, HELD, TransparentConfig};
use crate::netlink::ask::{ask, open};
use crate::netlink::message::NetlinkMessage;
use crate::netlink::way::octets;
use crate::nfqueue::family;
use crate::nfqueue::rules::{INET, SUBSYSTEM, saved, terminated};
use crate::nft::ruleset;

/// The beginning of the name of our table. The number of the table of routing follows.
const TABLE: &str = "hopwise_transparent_";
/// The stay of a SYN that does not come in, in seconds. A node asks for a SYN from its first second to its 15th.
const STAYS_FOR: usize = 16;
/// The stay of a connection whose SYN has gone straight on beside a socket: a socket in TIME-WAIT has a minute.
const PASSES_FOR: usize = 64;
/// The stay of an entry of connection tracking, which keeps a silent connection for as long.
const ASTRAY_FOR: &str = "5d";
/// The places in each set for a seat.
const NOTED_FOR_A_SEAT: usize = 64;
/// The bounds of each set, whatever number of seats the node has. Few seats are taken and left as often as many.
const LEAST_NOTED: usize = 1 << 16;
const MOST_NOTED: usize = 1 << 20;
/// The place of the chain that notes entries: connection tracking sees packets at -200.
const TRACKED: i32 = -199;
/// The place of the first chain that notes: NAT changes sources at 100.
const BEFORE_NAT: i32 = 99;
/// The place of the last chain: connection tracking enters connections at the greatest number.
const BEFORE_ENTERED: i32 = i32::MAX - 1;
/// The kinds of addresses that no other host has. Behind these chains the kernel drops IPv4 packets from such a source,
/// so that a caught SYN from there would not come in. An answer to IPv6 would stay on this machine.
const NO_HOSTS: &str = "local, broadcast, multicast, anycast";
/// A SYN whose entry in connection tracking is its own.
const IS_FRESH: &str = "ct state new ct status & confirmed == 0";
/// SYNs of connections that tracking has seen both ends of, also from their middle, and of connections whose addresses
/// NAT changes. One end's packets may be made up. A single answer to them leaves an entry for a minute at most. A SYN
/// that would itself be the answer, to a packet in the server's name, begins its connection.
const IS_KNOWN: [&str; 2] = [
    "ct status & (assured | snat | dnat) != 0",
    "ct direction original ct status seen-reply ct expiration > 60s",
];
/// A SYN whose source is routed by the interface that it came by.
const IS_ROUTED: &str = "fib saddr . iif oif exists";
/// What a router tells the sender of a packet that goes no further, such as one that is larger than its link's frames.
const UNREACHED: [&str; 2] = ["icmp type destination-unreachable", "icmpv6 type packet-too-big"];
/// Words of rules that turn connection tracking on, in nft and in both forms of iptables.
const TRACKING: &str =
    "ct masquerade snat dnat redirect netmap synproxy flow conntrack state connmark connlimit";
/// A SYN that begins a connection, and a packet that does not.
const SYN: &str = "tcp flags & (fin | syn | rst | ack) == syn";
const LATER: &str = "tcp flags & (fin | syn | rst | ack) != syn";
/// A reset that acknowledges a SYN, and so refuses its connection.
const REFUSAL: &str = "tcp flags & (rst | ack) == rst | ack";
/// A packet of a connection that stands here, or that this machine opens.
const STANDS: &str = "socket transparent 1 socket wildcard 0";
/// An answer to a SYN, among packets with a SYN.
const ANSWER: &str = "tcp flags & ack == ack";

pub(super) fn table(number: u32) -> String {
    format!("inet {}", name(number))
}

/// The name of our table without its family.
pub(super) fn name(number: u32) -> String {
    format!("{TABLE}{number}")
}

/// The digit of an address's version in the names of its sets.
fn version(address: IpAddr) -> char {
    if address.is_ipv4() { '4' } else { '6' }
}

/// The letters of the host's and of the server's end in the names of a packet's fields.
const TO_SERVER: [char; 2] = ['s', 'd'];
const TO_HOST: [char; 2] = ['d', 's'];

/// The version, the ends of a packet as keys of the sets, and the ends without the server's port, which leave room for
/// a number: nft 1.0.6 cannot list longer keys with one.
fn keys(address: IpAddr, [host, server]: [char; 2]) -> (char, String, String) {
    let family = family(address);
    let most = format!("{family} {host}addr . tcp {host}port . {family} {server}addr");
    (version(address), format!("{most} . tcp {server}port"), most)
}

/// Returns whether connection tracking is on: it makes an entry for a packet to this machine, or a rule needs it.
/// Another rule may keep that packet out of tracking.
pub(super) fn is_tracking() -> bool {
    has_entries() || turns_on(&ruleset(None).unwrap_or_default()) || turns_on(&saved().unwrap_or_default())
}

fn turns_on(rules: &str) -> bool {
    let mut words = rules.split_whitespace().map(|word| word.trim_matches('"'));
    words.any(|word| TRACKING.split(' ').any(|known| known.eq_ignore_ascii_case(word)))
}

fn has_entries() -> bool {
    if let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) {
        // An entry of any other packet tells as much.
        let _ = socket.local_addr().and_then(|own| socket.send_to(&[0], own));
    }
    let entries = fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_count");
    entries.is_ok_and(|entries| entries.trim() != "0")
}

/// The chains, before and after the place of iptables' table `mangle` (-150). `queues` if nft itself can hold packets,
/// and `tracks` if connection tracking is on.
pub(super) fn of(config: &TransparentConfig, ports: &[SocketAddr], (queues, tracks): (bool, bool)) -> String {
    let mut chains = hold(config, ports, tracks);
    if queues && !config.interfaces.is_empty() {
        let queued = format!("meta mark & {HELD:#x} == {HELD:#x} queue flags bypass to {}; ", config.queue);
        chains += &chain("held", "prerouting", -150, &queued);
    }
    if tracks && !config.interfaces.is_empty() {
        chains += &note_sides(config);
    }
    sets(config) + &chains + &end(ports, tracks) + &arrive(ports) + &answer()
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

/// Notes the entries of packets whose source is on the other side of this machine.
fn note_sides(config: &TransparentConfig) -> String {
    let (hosts, note) = (hosts_interfaces(config), "ct status & assured == 0 update @astray { ct id }");
    let mut rules = String::new();
    for network in &config.networks {
        let family = family(network.address());
        // Writing to a String does not fail.
        let _ = write!(
            rules,
            "meta l4proto tcp iifname {hosts} {family} saddr {network} fib saddr . iif oif missing {note}; \
             meta l4proto tcp iifname != {hosts} {family} daddr {network} fib saddr oifname {hosts} {note}; "
        );
    }
    set("astray", "ct id", ASTRAY_FOR, config) + &chain("sides", "prerouting", TRACKED, &rules)
}

fn hosts_interfaces(config: &TransparentConfig) -> String {
    let quoted: Vec<_> = config.interfaces.iter().map(|name| format!("\"{name}\"")).collect();
    format!("{{ {} }}", quoted.join(", "))
}

/// A SYN is never taken for a packet of a known socket: its client may use a port anew. A packet that finds a listener
/// alone is no packet of ours. The kernel does not say so of handshakes and of TIME-WAIT: connections to the ports of
/// the listeners therefore go straight on.
///
/// A SYN in a frame that is not for this machine alone is left to the kernel: a firewall may tell it from the rest. So
/// is a SYN of a connection that tracking knows and this machine has no socket of: tracking would follow an answer to
/// the SYN, and take the packets of the connection for invalid. Such a SYN gets both marks, and is held to be counted.
fn hold(config: &TransparentConfig, ports: &[SocketAddr], tracks: bool) -> String {
    let others = others(ports);
    let catch = format!("meta mark set meta mark | {CAUGHT:#x}; ");
    let mut rules = String::new();
    for any in ANY {
        let (v, ends, most) = keys(any, TO_SERVER);
        // Writing to a String does not fail. The packet goes towards the host, whatever its end is called here.
        let _ = write!(
            rules,
            "{LATER} {ends} @calling{v} {most} . tcp ackseq != @opening{v} accept; \
             {REFUSAL} {ends} @calling{v} delete @opening{v} {{ {most} . tcp ackseq }} \
             delete @calling{v} {{ {ends} }}; \
             tcp flags & rst == rst {STANDS} delete @asked{v} {{ {ends} }}; "
        );
    }
    let _ = write!(rules, "{LATER} {STANDS} {catch}");
    for listener in ports {
        let (v, ends, most) = keys(listener.ip(), TO_SERVER);
        // Writing to a String does not fail. A reset of the SYN's number may be for the server, if that has a copy.
        let _ = write!(
            rules,
            "tcp flags & (syn | ack) == ack {most} . tcp ackseq @opening{v} \
             delete @opening{v} {{ {most} . tcp sequence }} {catch}{LATER} {ends} @passed{v} accept; \
             tcp flags & (rst | ack) == rst {most} . tcp sequence @opening{v} \
             delete @opening{v} {{ {most} . tcp sequence }} \
             update @disowned{v} {{ {most} . tcp sequence }} {catch}{LATER} {ends} @asked{v} accept; "
        );
    }
    let _ = write!(rules, "{LATER} socket transparent 1{others} {catch}");
    for unreached in UNREACHED {
        let _ = write!(rules, "{unreached} {STANDS} {catch}");
    }
    if !config.interfaces.is_empty() {
        let hosts = format!("fib daddr type != local fib saddr type != {{ {NO_HOSTS} }}");
        let from = format!("iifname {} meta pkttype host {SYN}{others} {hosts}", hosts_interfaces(config));
        for spared in &config.spared {
            let _ = write!(rules, "{} daddr {spared} return; ", family(*spared));
        }
        if tracks {
            let _ = write!(rules, "{from} socket transparent 1 meta mark set meta mark | {HELD:#x} accept; ");
        }
        for network in &config.networks {
            let _ = write!(
                rules,
                "{from}{} {} daddr {network} meta mark set meta mark | {HELD:#x}; ",
                ports_of(config),
                family(network.address())
            );
        }
        for known in IS_KNOWN.iter().filter(|_| tracks) {
            let _ = write!(rules, "meta mark & {HELD:#x} == {HELD:#x} ct id != @astray {known} {catch}");
        }
    }
    chain("hold", "prerouting", -151, &rules)
}

/// Matches packets that are not for the listeners' own ports.
fn others(ports: &[SocketAddr]) -> String {
    let own: Vec<_> = ports.iter().map(|listener| listener.port().to_string()).collect();
    if own.is_empty() { String::new() } else { format!(" tcp dport != {{ {} }}", own.join(", ")) }
}

fn ports_of(config: &TransparentConfig) -> String {
    let ports = config.ports.iter().map(|ports| match (ports.start(), ports.end()) {
        (one, other) if one == other => one.to_string(),
        (one, other) => format!("{one}-{other}"),
    });
    let ports: Vec<_> = ports.collect();
    if ports.is_empty() { String::new() } else { format!(" tcp dport {{ {} }}", ports.join(", ")) }
}

/// Notes caught SYNs, each copy anew, and hands them to the listeners. A SYN that went on because nobody reads the
/// queue loses its marks. `notrack` changes only packets for which connection tracking has found no place.
fn end(ports: &[SocketAddr], tracks: bool) -> String {
    let mut rules = format!(
        "meta mark & {HELD:#x} == {HELD:#x} meta mark set meta mark & {:#x}; meta mark & {CAUGHT:#x} == {CAUGHT:#x} \
         notrack; ",
        !(HELD | CAUGHT)
    );
    let (fresh, others) = (if tracks { IS_FRESH } else { "" }, others(ports));
    for listener in ports {
        let ((v, ends, most), syn) = (keys(listener.ip(), TO_SERVER), caught_syn(listener));
        let to = format!("tproxy {} to :{} accept", family(listener.ip()), listener.port());
        // The kernel's socket ends with the host's reset, and the server may have a copy of the SYN by then.
        let on = format!("meta mark & {CAUGHT:#x} == 0 {SYN}{others}");
        let pass = format!("update @passed{v} {{ {ends} timeout {PASSES_FOR}s }}; ");
        // Writing to a String does not fail.
        for set in ["caught", "arrived", "passed"] {
            let _ = write!(rules, "{syn} delete @{set}{v} {{ {ends} }}; ");
        }
        let _ = write!(
            rules,
            "{syn} update @asked{v} {{ {ends} }}; {syn} {ends} != @asked{v} drop; \
             {syn} {fresh} {IS_ROUTED} update @caught{v} {{ {ends} }}; \
             {syn} {ends} != @caught{v} update @arrived{v} {{ {ends} }}; {syn} {to}; \
             meta mark & {CAUGHT:#x} == {CAUGHT:#x} tcp flags & (syn | ack) == ack \
             {most} . tcp ackseq @opening{v} {to}; \
             {on} socket transparent 1 {pass}{on} {ends} @asked{v} {pass}"
        );
    }
    chain("end", "prerouting", -149, &rules)
}

fn caught_syn(listener: &SocketAddr) -> String {
    let version = version(listener.ip());
    format!("meta nfproto ipv{version} meta mark & {CAUGHT:#x} == {CAUGHT:#x} {SYN}")
}

fn sets(config: &TransparentConfig) -> String {
    let (mut sets, stay) = (String::new(), format!("{STAYS_FOR}s"));
    for any in ANY {
        let (v, ends, most) = keys(any, TO_SERVER);
        let number = format!("{most} . tcp sequence");
        for name in ["caught", "arrived", "asked", "passed", "calling", "opening", "disowned"] {
            let key = if matches!(name, "opening" | "disowned") { &number } else { &ends };
            sets += &set(&format!("{name}{v}"), key, &stay, config);
        }
    }
    sets
}

fn set(name: &str, key: &str, stay: &str, config: &TransparentConfig) -> String {
    let size = config.seats.saturating_mul(NOTED_FOR_A_SEAT).clamp(LEAST_NOTED, MOST_NOTED);
    format!("set {name} {{ typeof {key}; flags dynamic,timeout; timeout {stay}; size {size}; }}; ")
}

/// Notes what a packet of the other end acknowledges after a SYN or an answer of this kernel: its number and one more.
/// What a routing daemon sends on, once it has a route, is no answer to a caught SYN, and has no socket that takes
/// addresses of hosts. nft adds no numbers. Of a number that ends in a 0 and some ones, just these bits turn. A kernel
/// that has closed its side needs all later packets, also in TIME-WAIT. A SYN that finds no place in `calling` waits
/// for its repetition.
fn answer() -> String {
    let (mut later, mut rules) = (String::new(), String::new());
    for any in ANY {
        let (v, ends, most) = keys(any, TO_HOST);
        // Writing to a String does not fail.
        let _ = write!(
            later,
            "tcp flags & (fin | rst) != 0 delete @asked{v} {{ {ends} }}; {LATER} socket transparent 1 \
             delete @calling{v} {{ {ends} }} delete @opening{v} {{ {most} . tcp sequence }}; "
        );
        let _ = write!(
            rules,
            "{SYN} update @calling{v} {{ {ends} }}; {SYN} {ends} != @calling{v} drop; \
             {ANSWER} {ends} @passed{v} drop; {ANSWER} {ends} != @asked{v} accept; \
             {ANSWER} update @asked{v} {{ {ends} }}; {ANSWER} update @opening{v} {{ {most} . tcp ackseq }}; \
             {ANSWER} {most} . tcp ackseq != @opening{v} drop; "
        );
        for bits in (0..u32::BITS).map(|ones| u32::MAX >> (u32::BITS - 1 - ones)) {
            let has = format!("tcp sequence & {bits:#x} == {:#x}", bits >> 1);
            let _ = write!(rules, "{has} update @opening{v} {{ {most} . tcp sequence ^ {bits:#x} }}; ");
        }
    }
    let with_syn = format!(
        "tcp flags & (fin | syn | rst) != syn accept; {SYN} socket transparent != 1 accept; \
         fib saddr type local accept; "
    );
    chain("answer", "output", -300, &format!("meta l4proto != tcp accept; {later}{with_syn}{rules}"))
}

fn chain(name: &str, hook: &str, priority: i32, rules: &str) -> String {
    format!("chain {name} {{ type filter hook {hook} priority {priority}; policy accept; {rules}}}; ")
}

/// Takes SYNs out of the set of caught ones before NAT, and out of the next set where they come to the end unchanged.
/// The last copy of a SYN tells its end.
fn arrive(ports: &[SocketAddr]) -> String {
    let (mut arrive, mut take) = (String::new(), String::new());
    for listener in ports {
        let ((v, ends, _), syn) = (keys(listener.ip(), TO_SERVER), caught_syn(listener));
        // Writing to a String does not fail.
        let _ =
            write!(arrive, "{syn} update @arrived{v} {{ {ends} }}; {syn} delete @caught{v} {{ {ends} }}; ");
        let _ = write!(take, "{syn} {ends} != @arrived{v} drop; {syn} delete @arrived{v} {{ {ends} }}; ");
    }
    if ports.is_empty() {
        return String::new();
    }
    chain("arrive", "input", BEFORE_NAT, &arrive) + &chain("take", "input", BEFORE_ENTERED, &take)
}

/// A question for an element of a set, and its attributes (linux/netfilter/nf_tables.h).
const GET_ELEMENT: u16 = SUBSYSTEM | 13;
const IN_TABLE: u16 = 1;
const IN_SET: u16 = 2;
const ELEMENTS: u16 = 3;
const ELEMENT: u16 = 1;
const KEY: u16 = 1;
const VALUE: u16 = 1;

/// The end of a caught SYN on its way through this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The firewall, or the filter of reverse paths, dropped it.
    Dropped,
    /// It did not come to a listener, which says nothing of the firewall. It was lost in connection tracking, by NAT or
    /// in a late chain, or tracking had no entry of its own for it, or no route led back to its source.
    Lost,
    /// It came to a listener, or nothing is known of it.
    Taken,
}

/// The sets of a table.
#[derive(Clone, Debug)]
pub struct Arrivals {
    table: String,
}

impl Arrivals {
    /// The sets of the table with this number.
    pub fn of(table: u32) -> Arrivals {
        Arrivals { table: name(table) }
    }

    /// The end of the last caught SYN of the connection from a host to a server, within the last seconds.
    pub fn of_last(&self, ends: (SocketAddr, SocketAddr)) -> io::Result<Arrival> {
        let (version, key) = (version(ends.0.ip()), [field(ends.0), field(ends.1)].concat());
        Ok(if self.has(&format!("arrived{version}"), &key)? {
            Arrival::Lost
        } else if self.has(&format!("caught{version}"), &key)? {
            Arrival::Dropped
        } else {
            Arrival::Taken
        })
    }

    /// Returns whether a host has reset the answer to its SYN with this number. The host's address is first.
    pub fn is_disowned(&self, (host, server): (SocketAddr, SocketAddr), seq: u32) -> io::Result<bool> {
        let key = [field(host), octets(server.ip()), seq.wrapping_add(1).to_be_bytes().to_vec()].concat();
        self.has(&format!("disowned{}", version(server.ip())), &key)
    }

    /// Returns whether the SYN of a connection from this machine to a server has left, and has not been answered.
    pub fn is_calling(&self, (client, server): (SocketAddr, SocketAddr)) -> io::Result<bool> {
        self.has(&format!("calling{}", version(server.ip())), &[field(server), field(client)].concat())
    }

    fn has(&self, set: &str, key: &[u8]) -> io::Result<bool> {
        let question = NetlinkMessage::new(GET_ELEMENT, 0, 0)
            .fixed(&[INET, 0, 0, 0])
            .attribute(IN_TABLE, &terminated(&self.table))
            .attribute(IN_SET, &terminated(set))
            .nest(ELEMENTS, |list| {
                list.nest(ELEMENT, |element| element.nest(KEY, |data| data.attribute(VALUE, key)))
            });
        match ask(open(Some(NETFILTER))?, question, |_| {}) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            asked => asked.map(|()| true),
        }
    }
}

/// An address and a port in a key: each part fills words of four bytes.
fn field(end: SocketAddr) -> Vec<u8> {
    let mut bytes = octets(end.ip());
    bytes.extend_from_slice(&end.port().to_be_bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
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
            seats: 1024,
            queue: 7300,
            table: 7301,
            switches: None,
        }
    }

    #[test]
    fn syns_of_the_interfaces_for_the_networks_are_held_and_let_go_where_nobody_listens() {
        let ports = ["0.0.0.0:5000", "[::]:5001"].map(|text| text.parse().expect("an address"));
        let chains = of(&config(), &ports, (true, true));
        for rule in [
            "ip daddr 10.2.0.9 return; ",
            "anycast } socket transparent 1 meta mark set meta mark | 0x2000000 accept; ",
            "anycast } tcp dport { 80, 8000-8100 } ip daddr 10.2.0.0/16 meta mark set meta mark | 0x2000000; ",
            "meta mark & 0x2000000 == 0x2000000 ct id != @astray ct status & (assured | snat | dnat) != 0 meta mark \
             set meta mark | 0x4000000; ",
            "ct id != @astray ct direction original ct status seen-reply ct expiration > 60s meta mark set meta mark \
             | 0x4000000; }; ",
            "iifname { \"lan0\", \"lan1\" } ip saddr 10.2.0.0/16 fib saddr . iif oif missing ct status & assured == 0 \
             update @astray { ct id }; ",
            "iifname != { \"lan0\", \"lan1\" } ip6 daddr fd02::/64 fib saddr oifname { \"lan0\", \"lan1\" } ct status \
             & assured == 0 update @astray { ct id }; ",
            "set astray { typeof ct id; flags dynamic,timeout; timeout 5d; size 65536; }; ",
            "tcp flags & (rst | ack) == rst ip saddr . tcp sport . ip daddr . tcp sequence @opening4 delete @opening4 \
             { ip saddr . tcp sport . ip daddr . tcp sequence } update @disowned4 { ip saddr . tcp sport . ip daddr . \
             tcp sequence } meta mark set meta mark | 0x4000000; ",
            "icmp type destination-unreachable socket transparent 1 socket wildcard 0 meta mark set meta mark | \
             0x4000000; ",
            "meta mark & 0x2000000 == 0x2000000 meta mark set meta mark & 0xf9ffffff; meta mark & 0x4000000 == \
             0x4000000 notrack; ",
            "== syn delete @caught4 { ip saddr . tcp sport . ip daddr . tcp dport }; ",
            " ip6 daddr fd02::/64 meta mark set meta mark | 0x2000000; ",
            "meta mark & 0x2000000 == 0x2000000 queue flags bypass to 7300; ",
            "== syn ct state new ct status & confirmed == 0 fib saddr . iif oif exists update @caught4 { ip saddr . \
             tcp sport . ip daddr . tcp dport }; ",
            "dport != @caught4 update @arrived4 { ip saddr . tcp sport . ip daddr . tcp dport }; ",
            "== syn tproxy ip to :5000 accept; ",
            "== syn tproxy ip6 to :5001 accept; ",
            "set caught6 { typeof ip6 saddr . tcp sport . ip6 daddr . tcp dport; flags dynamic,timeout; timeout 16s; \
             size 65536; }; ",
            "== ack ip saddr . tcp sport . ip daddr . tcp ackseq @opening4 delete @opening4 { ip saddr . tcp sport . \
             ip daddr . tcp sequence } meta mark set meta mark | 0x4000000; ",
            "ip6 daddr . tcp dport . ip6 saddr . tcp sport @passed6 drop; ",
            "!= syn ip6 saddr . tcp sport . ip6 daddr . tcp dport @calling6 ip6 saddr . tcp sport . ip6 daddr . tcp \
             ackseq != @opening6 accept; ",
            "== syn update @calling4 { ip daddr . tcp dport . ip saddr . tcp sport }; ",
            "tcp sequence & 0x7 == 0x3 update @opening4 { ip daddr . tcp dport . ip saddr . tcp sequence ^ 0x7 }; ",
            "chain arrive { type filter hook input priority 99; policy accept; meta nfproto ipv4 meta mark & 0x4000000 \
             == 0x4000000 tcp flags & (fin | syn | rst | ack) == syn update @arrived4 { ip saddr . tcp sport . ip \
             daddr . tcp dport }; ",
            "chain take { type filter hook input priority 2147483646; policy accept; meta nfproto ipv4 meta mark & \
             0x4000000 == 0x4000000 tcp flags & (fin | syn | rst | ack) == syn ip saddr . tcp sport . ip daddr . tcp \
             dport != @arrived4 drop; ",
        ] {
            assert!(chains.contains(rule), "{rule} in {chains}");
        }
        let plain = of(&config(), &ports, (false, false));
        assert!(!plain.contains("queue") && !plain.contains(" ct "), "{plain}");
    }

    #[test]
    fn rules_that_need_connection_tracking_are_known_in_each_form() {
        for rule in [
            "\t\tiifname \"lan0\" ct state established,related accept",
            "\t\toifname \"mid0\" masquerade",
            "\t\txt match \"conntrack\" counter packets 0 bytes 0 accept",
            "-A POSTROUTING -o mid0 -j MASQUERADE",
            "-A INPUT -m state --state ESTABLISHED -j ACCEPT",
        ] {
            assert!(turns_on(rule), "{rule}");
        }
        for rule in ["", "\t\toifname \"lo\" notrack", "\t\tmeta mark 0x00000001 reject with tcp reset"] {
            assert!(!turns_on(rule), "{rule}");
        }
    }

    #[test]
    fn a_node_that_only_opens_for_others_holds_nothing() {
        let chains = of(&TransparentConfig { interfaces: Vec::new(), ..config() }, &[], (true, true));
        assert!(chains.contains("socket transparent 1") && !chains.contains("iifname"), "{chains}");
        assert!(!chains.contains("queue") && !chains.contains("tproxy"), "{chains}");
    }

    /// Few seats are taken and left as often as many.
    #[test]
    fn a_set_has_places_for_all_seats_and_thousands_whatever_number_of_seats_there_is() {
        for (seats, size) in [(1, 65_536), (64, 65_536), (2048, 131_072), (65_536, 1 << 20)] {
            let sets = sets(&TransparentConfig { seats, ..config() });
            assert_eq!(sets.matches(&format!("size {size};")).count(), 14, "{sets}");
        }
    }

    #[test]
    fn each_part_of_a_key_fills_its_words() {
        assert_eq!(field(SocketAddr::from(([10, 1, 0, 2], 0x1234))), [10, 1, 0, 2, 0x12, 0x34, 0, 0]);
        assert_eq!(field("[fd01::2]:80".parse().expect("an address")).len(), 20);
    }
}
