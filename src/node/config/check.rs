//! Checks of a configuration that need several keys; an error points to its place.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopwise_core::ip::Prefix;
use hopwise_lab::located::{Document, Refusal, YamlPath};
use hopwise_lab::units::Time;

use super::{Address, Bounds, HostPort, LEAST_ROTATION, Link, LinkKind, NodeConfig, Side, Socks5, listeners};

pub(super) type Checked = Result<(), Box<Refusal>>;

/// The limit of Linux for the name of an interface.
const LONGEST_NAME: usize = 15;
/// RFC 791 requires every host to accept this size; IPv6 requires 1280.
const SMALLEST_MTU: u16 = 576;
const SMALLEST_MTU_V6: u16 = 1280;
/// The limit of Linux for a TUN.
const MOST_QUEUES: u16 = 256;
/// One at each end.
const MOST_CROSSINGS: u8 = 2;
/// Each takes a descriptor and a port, and there are no more ports.
const MOST_CONNECTIONS: usize = 65_536;
const LEAST_MEMORY: u64 = 1 << 20;

pub(super) fn all(document: &Document, config: &NodeConfig) -> Checked {
    let root = YamlPath::root();
    if config.node.address.is_empty() {
        let at = root.key("node").key("address");
        return Err(document.refuse(&at, "no address", "at least one, such as 10.7.0.2/24"));
    }
    if config.links.is_empty() {
        return Err(document.refuse(
            &root.key("links"),
            "no link",
            "at least one, such as { kind: tun, name: hw0 }",
        ));
    }
    links(document, config)?;
    addresses(document, config)?;
    routes(document, config)?;
    for (nth, rule) in config.rules.iter().enumerate() {
        rule.check(document, &root.key("rules").index(nth))?;
    }
    forwards(document, config)?;
    bounds(document, config)?;
    listeners::each_at_its_own_address(document, config)?;
    seats(document, config)?;
    scrapers(document, config)?;
    captured(document, config)?;
    config.tcp.check(document, &root.key("tcp"))
}

fn links(document: &Document, config: &NodeConfig) -> Checked {
    let at = YamlPath::root().key("links");
    let mut names = BTreeMap::new();
    for (nth, link) in config.links.iter().enumerate() {
        let at = at.index(nth);
        if let Some(first) = names.insert(&link.name, nth) {
            let problem = format!("the name `{}` is links.{first}'s already", link.name);
            return Err(document.refuse(&at.key("name"), problem, "a name of its own for each link"));
        }
        one_link(document, config, &at, link)?;
    }
    Ok(())
}

fn one_link(document: &Document, config: &NodeConfig, at: &YamlPath, link: &Link) -> Checked {
    let bytes = link.name.len();
    let sound = !link.name.contains(|c: char| c == '/' || c.is_whitespace());
    if bytes == 0 || bytes > LONGEST_NAME || !sound {
        let problem = format!("`{}` names no interface", link.name);
        return Err(document.refuse(&at.key("name"), problem, "1 to 15 bytes without spaces and slashes"));
    }
    let is_tun = matches!(link.kind, LinkKind::Tun | LinkKind::TunFast);
    if !link.kernel.is_empty() && !is_tun {
        let problem = "`kernel` is the kernel's address on its end of a TUN, which this link is not";
        return Err(document.refuse_key(&at.key("kernel"), problem, "kind: tun or tun-fast, or no `kernel`"));
    }
    if link.mtu.is_some() && !is_tun {
        let problem = "an interface brings its own MTU";
        return Err(document.refuse_key(&at.key("mtu"), problem, "kind: tun or tun-fast, or no `mtu`"));
    }
    if link.offload.is_some() && is_tun {
        let problem = "the kind of a TUN decides about offload";
        return Err(document.refuse_key(
            &at.key("offload"),
            problem,
            "kind: tun-fast for offload, tun for none",
        ));
    }
    if link.crossings.is_some_and(|crossings| crossings > MOST_CROSSINGS) {
        let problem = "a path has only two ends";
        return Err(document.refuse(&at.key("crossings"), problem, "0, 1 or 2"));
    }
    queues(document, config, at, link)?;
    captures(document, at, link)?;
    let of_link = if link.address.is_empty() { &config.node.address } else { &link.address };
    let has_v6 = of_link.iter().any(|address| address.0.address().is_ipv6());
    let least = if has_v6 { SMALLEST_MTU_V6 } else { SMALLEST_MTU };
    if let Some(mtu) = link.mtu.filter(|mtu| *mtu < least) {
        let accepted = format!("{least} to 65535 bytes");
        return Err(document.refuse(&at.key("mtu"), format!("{mtu} is too small"), &accepted));
    }
    Ok(())
}

/// Checks `queues`. Shards share nothing, so that a link with one queue could belong to one shard only.
fn queues(document: &Document, config: &NodeConfig, at: &YamlPath, link: &Link) -> Checked {
    let Some(queues) = link.queues else { return Ok(()) };
    let at = at.key("queues");
    if link.kind != LinkKind::TunFast {
        let problem = "only a TUN with offload has several queues";
        return Err(document.refuse_key(&at, problem, "kind: tun-fast, or no `queues`"));
    }
    if !(1..=MOST_QUEUES).contains(&queues) {
        let accepted = format!("1 to {MOST_QUEUES}, such as one for each processor");
        return Err(document.refuse(&at, format!("a device of {queues} queues"), &accepted));
    }
    if queues > 1 && config.links.len() > 1 {
        let problem = "only the first queue could use the other links";
        return Err(document.refuse_key(&at, problem, "no `queues` beside other links"));
    }
    Ok(())
}

/// Checks the keys of capture links.
fn captures(document: &Document, at: &YamlPath, link: &Link) -> Checked {
    let is_capture = matches!(link.kind, LinkKind::Pcap | LinkKind::Replay);
    if is_capture && !cfg!(feature = "pcap") {
        let accepted = "tun, tun-fast or raw, or a build with --features pcap";
        return Err(document.refuse(&at.key("kind"), "this build is without libpcap", accepted));
    }
    let plays = link.kind == LinkKind::Replay;
    let refuse_key =
        |key: &str, problem: &str, accepted: &str| Err(document.refuse_key(&at.key(key), problem, accepted));
    if link.filter.is_some() && link.kind != LinkKind::Pcap {
        return refuse_key("filter", "only a live capture takes a filter", "kind: pcap, or no `filter`");
    }
    if link.file.is_some() && !plays {
        return refuse_key("file", "only a replay has a file", "kind: replay, or no `file`");
    }
    if link.pace.is_some() && !plays {
        return refuse_key("pace", "only a replay has a pace", "kind: replay, or no `pace`");
    }
    if link.checksums.is_some() && !is_capture {
        return refuse_key(
            "checksums",
            "only captures may lack checksums",
            "kind: pcap or replay, or no `checksums`",
        );
    }
    if plays && link.file.is_none() {
        return Err(document.refuse(at, "a replay needs a file", "file: a capture, such as run.pcap"));
    }
    if is_capture && link.offload.is_some() {
        return refuse_key("offload", "this link sends nothing", "no `offload` here");
    }
    Ok(())
}

/// Returns whether a host may have that address in that subnet.
pub(crate) fn is_hosts(address: Prefix) -> bool {
    let ip = address.address();
    !ip.is_unspecified() && !ip.is_multicast() && !address.is_broadcast(ip)
}

/// Checks that each address occurs once, and that a host may have it.
fn addresses(document: &Document, config: &NodeConfig) -> Checked {
    let root = YamlPath::root();
    let mut seen: BTreeMap<IpAddr, YamlPath> = BTreeMap::new();
    let mut one = |address: &Address, at: YamlPath| {
        let ip = address.0.address();
        if !is_hosts(address.0) {
            return Err(document.refuse(
                &at,
                format!("{ip} is not the address of a host"),
                "an address in the subnet",
            ));
        }
        match seen.insert(ip, at.clone()) {
            Some(first) => {
                let problem = format!("{ip} stands at `{first}` already");
                Err(document.refuse(&at, problem, "each address once"))
            }
            None => Ok(()),
        }
    };
    let mut each = |addresses: &[Address], at: &YamlPath| {
        let mut numbered = addresses.iter().enumerate();
        numbered.try_for_each(|(nth, address)| one(address, document.nth_at(at, nth)))
    };
    each(&config.node.address, &root.key("node").key("address"))?;
    for (nth, link) in config.links.iter().enumerate() {
        let at = root.key("links").index(nth);
        each(&link.address, &at.key("address"))?;
        each(&link.kernel, &at.key("kernel"))?;
    }
    Ok(())
}

fn routes(document: &Document, config: &NodeConfig) -> Checked {
    for (nth, route) in config.routes.iter().enumerate() {
        let at = YamlPath::root().key("routes").index(nth);
        let Some(link) = config.links.iter().find(|link| link.name == route.link) else {
            return Err(no_such_link(document, &at.key("link"), config, &route.link));
        };
        let names_neighbours = link.kind == LinkKind::Raw;
        if route.via.is_some() && !names_neighbours {
            let problem = format!("`{}` has no neighbours to name, so it needs no via", link.name);
            return Err(document.refuse_key(&at.key("via"), problem, "no `via` here"));
        }
    }
    Ok(())
}

fn no_such_link(document: &Document, at: &YamlPath, config: &NodeConfig, name: &str) -> Box<Refusal> {
    let names: Vec<_> = config.links.iter().map(|link| format!("`{}`", link.name)).collect();
    document.refuse(at, format!("no link is named `{name}`"), &format!("expected {}", names.join(" or ")))
}

fn forwards(document: &Document, config: &NodeConfig) -> Checked {
    for (nth, forward) in config.forwards.iter().enumerate() {
        let at = YamlPath::root().key("forwards").index(nth);
        let both =
            "one end on this machine, such as 127.0.0.1:8080, and the other over Hopwise, such as mesh:80";
        let ends = (&forward.listen, &forward.to);
        let ((Side::Local(listen), Side::Mesh(to)) | (Side::Mesh(listen), Side::Local(to))) = ends else {
            return Err(document.refuse(&at, "both ends are on the same side", both));
        };
        let is_mesh = matches!(forward.listen, Side::Mesh(_));
        listen_address(document, config, &at.key("listen"), listen, is_mesh)?;
        if to.host.is_empty() {
            return Err(document.refuse(&at.key("to"), "the host is missing", "an address or a name"));
        }
    }
    Ok(())
}

fn listen_address(
    document: &Document,
    config: &NodeConfig,
    at: &YamlPath,
    listen: &HostPort,
    is_mesh: bool,
) -> Checked {
    let mut own = config.links.iter().flat_map(|link| &link.address).chain(&config.node.address);
    match listen.ip() {
        Some(ip) if is_mesh && !own.any(|address| address.0.address() == ip) => Err(document.refuse(
            at,
            format!("{ip} is no address of this node"),
            "mesh:PORT, or one of its addresses",
        )),
        Some(_) => Ok(()),
        None if is_mesh && listen.host.is_empty() => Ok(()),
        None => Err(document.refuse(at, "the address is missing", "an address and a port")),
    }
}

/// Checks seats and times: clients need time to send and to read, and no client is served without a seat.
fn seats(document: &Document, config: &NodeConfig) -> Checked {
    let root = YamlPath::root();
    let forwards = config.forwards.iter().enumerate();
    let forwards = forwards
        .map(|(nth, forward)| (root.key("forwards").index(nth), forward.connections, forward.reads_within));
    let socks5 =
        config.socks5.iter().map(|socks5| (root.key("socks5"), socks5.connections, socks5.reads_within));
    for (at, connections, reads_within) in forwards.chain(socks5) {
        if !(1..=MOST_CONNECTIONS).contains(&connections) {
            let problem = format!("{connections} connections at a time");
            let accepted = format!("1 to {MOST_CONNECTIONS}");
            return Err(document.refuse(&at.key("connections"), problem, &accepted));
        }
        patience(document, &at.key("reads_within"), reads_within, "the time is too short for any reader")?;
    }
    shares(document, config)?;
    config.socks5.as_ref().map_or(Ok(()), |socks5| {
        let at = root.key("socks5").key("handshake_within");
        patience(document, &at, socks5.handshake_within, "the time is too short for any client")?;
        users(document, &root.key("socks5").key("users"), socks5)
    })
}

/// Checks each source's share of a service, and the idle time.
fn shares(document: &Document, config: &NodeConfig) -> Checked {
    let root = YamlPath::root();
    let forwards = config.forwards.iter().enumerate();
    let forwards =
        forwards.map(|(nth, forward)| (root.key("forwards").index(nth), forward.per_source, forward.idle));
    let socks5 = config.socks5.iter().map(|socks5| (root.key("socks5"), socks5.per_source, socks5.idle));
    for (at, per_source, idle) in forwards.chain(socks5) {
        if per_source == Some(0) {
            return Err(document.refuse(&at.key("per_source"), "no seat for any source", "1 or more"));
        }
        patience(document, &at.key("idle"), idle, "the time is too short for any connection")?;
    }
    Ok(())
}

/// Checks scrapers' names: one with a port or a path never matches.
fn scrapers(document: &Document, config: &NodeConfig) -> Checked {
    let mut names = config.metrics.iter().flat_map(|metrics| &metrics.names).enumerate();
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let Some((nth, name)) = names.find(|(_, name)| name.is_empty() || !is_name(name)) else { return Ok(()) };
    let at = YamlPath::root().key("metrics").key("names").index(nth);
    let problem = format!("`{name}` is no name of a host");
    Err(document.refuse(&at, problem, "a name without a port, such as n2.example"))
}

/// RFC 1929 counts both in one byte, and neither may be empty.
fn users(document: &Document, at: &YamlPath, socks5: &Socks5) -> Checked {
    let fits = |text: &str| (1..=255).contains(&text.len());
    match socks5.users.iter().find(|(name, password)| !fits(name) || !fits(password)) {
        Some(_) => Err(document.refuse(
            at,
            "SOCKS5 cannot carry a name or password of this length",
            "1 to 255 bytes",
        )),
        None => Ok(()),
    }
}

fn bounds(document: &Document, config: &NodeConfig) -> Checked {
    let at = YamlPath::root().key("bounds");
    let Bounds { connections, orphans, time_waits, orphan_memory, memory } = &config.bounds;
    for (key, count) in [("connections", connections), ("orphans", orphans), ("time_waits", time_waits)] {
        if *count == Some(0) {
            return Err(document.refuse(&at.key(key), "there is room for none", "1 or more"));
        }
    }
    for (key, size) in [("orphan_memory", orphan_memory), ("memory", memory)] {
        if size.is_some_and(|size| size.0 < LEAST_MEMORY) {
            return Err(document.refuse(
                &at.key(key),
                "the memory is too small for any connection",
                "1MiB or more",
            ));
        }
    }
    Ok(())
}

fn patience(document: &Document, at: &YamlPath, time: Time, problem: &str) -> Checked {
    const LEAST: std::time::Duration = std::time::Duration::from_millis(100);
    if time.0 < LEAST { Err(document.refuse(at, problem, "100ms or more")) } else { Ok(()) }
}

fn captured(document: &Document, config: &NodeConfig) -> Checked {
    let Some(capture) = &config.capture else { return Ok(()) };
    let at = YamlPath::root().key("capture");
    if capture.file.as_os_str() == "-" {
        return Err(document.refuse(&at.key("file"), "no file of that name", "a file, such as n2.pcapng"));
    }
    for (nth, name) in capture.links.iter().enumerate() {
        if !config.links.iter().any(|link| &link.name == name) {
            return Err(no_such_link(document, &at.key("links").index(nth), config, name));
        }
    }
    if capture.rotate.is_some_and(|size| size.0 < LEAST_ROTATION) {
        return Err(document.refuse(&at.key("rotate"), "too small for a file", "64KiB or more"));
    }
    if capture.files == 0 {
        return Err(document.refuse(&at.key("files"), "no file would stay", "1 or more"));
    }
    Ok(())
}
