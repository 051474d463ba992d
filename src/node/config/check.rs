//! Checks of a configuration that need several keys; an error points to its place.

mod links;

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopwise_core::ip::Prefix;
use hopwise_lab::located::{Document, Refusal, YamlPath};
use hopwise_lab::units::Time;

use super::{Address, Bounds, HostPort, LEAST_ROTATION, LinkKind, NodeConfig, Side, Socks5, listeners};

pub(super) type Checked = Result<(), Box<Refusal>>;

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
    links::all(document, config)?;
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
