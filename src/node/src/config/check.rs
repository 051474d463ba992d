//! Checks of a configuration that need several keys; an error points to its place.

mod links;

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopwise_core::ip::Prefix;
use hopwise_lab::located::{Checked, Document, Refusal, YamlPath};

use super::{Address, HostPort, LinkKind, NodeConfig, Side, listeners, transparent};

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
    listeners::each_at_its_own_address(document, config)?;
    transparent::check(document, config)?;
    users(document, config)?;
    scrapers(document, config)?;
    captured(document, config)
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
fn users(document: &Document, config: &NodeConfig) -> Checked {
    let Some(socks5) = &config.socks5 else { return Ok(()) };
    let fits = |text: &str| (1..=255).contains(&text.len());
    match socks5.users.iter().find(|(name, password)| !fits(name) || !fits(password)) {
        Some(_) => Err(document.refuse(
            &YamlPath::root().key("socks5").key("users"),
            "SOCKS5 cannot carry a name or password of this length",
            "1 to 255 bytes",
        )),
        None => Ok(()),
    }
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
    Ok(())
}
