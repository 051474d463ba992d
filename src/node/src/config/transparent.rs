//! `transparent:` of a node, and its checks.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use hopwise_daemon::check_interfaces;
use hopwise_lab::located::{Checked, Document, YamlPath};
use hopwise_lab::rules::Network;
use hopwise_lab::units::{Time, number};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::services::{connections, idle};
use super::{NodeConfig, Side};

/// TCP of the hosts behind this node, which goes to another node over Hopwise without their knowing.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transparent {
    /// Interfaces by which the hosts' TCP comes in (default: none, and this node only opens connections for others).
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// Destination ports of the TCP that is carried: numbers such as 80, and ranges such as 8000-8100 (default: all).
    #[serde(default)]
    #[schemars(extend("x-range" = "1 to 65535"))]
    pub(crate) ports: Vec<Ports>,
    /// Networks of destinations, each with the node that leads there; the first one that matches applies (default:
    /// none).
    #[serde(default)]
    pub to: Vec<Towards>,
    /// Ports over Hopwise for some of the connections, so that `rules` can choose their agents; the first one that
    /// matches applies (default: none, and all connections have `port`).
    #[serde(default)]
    pub(crate) classes: Vec<Class>,
    /// Port over Hopwise at which nodes find each other; the same at all nodes.
    #[serde(default = "number::<u16, 7300>")]
    #[schemars(extend("x-range" = "1 to 65535", "x-unit" = "no unit"))]
    pub(crate) port: u16,
    /// Networks of the nodes for which this node opens connections (default: none).
    #[serde(default)]
    pub(crate) from: Vec<Network>,
    /// Networks of the destinations that it opens for them (default: all but loopback and link-local ones).
    pub(crate) targets: Option<Vec<Network>>,
    /// Source address of the connections that it opens for them (default client).
    #[serde(default)]
    pub(crate) source: Source,
    /// Time that a host's SYN may wait for the other node and the destination; then it goes straight on.
    #[serde(default = "Time::millis::<800>")]
    #[schemars(extend("x-range" = "10ms to 30s"))]
    pub(crate) answers_within: Time,
    /// Number of carried connections at the same time: seats. One address has at most half of them. Beyond that,
    /// connections go straight on.
    #[serde(default = "connections")]
    #[schemars(extend("x-range" = "1 to 65536", "x-unit" = "connections"))]
    pub(crate) connections: usize,
    /// Time without data after which a carried connection is closed.
    #[serde(default = "idle")]
    #[schemars(extend("x-range" = "100ms or more"))]
    pub(crate) idle: Time,
    /// Netfilter queue for held SYNs, which no other program has.
    #[serde(default = "number::<u16, 7300>")]
    #[schemars(extend("x-range" = "0 to 65535", "x-unit" = "no unit"))]
    pub(crate) queue: u16,
    /// Routing table for this node alone, and the priority of the routing rules that lead there.
    #[serde(default = "number::<u16, 7300>")]
    #[schemars(extend("x-range" = "256 to 32765", "x-unit" = "no unit"))]
    pub(crate) table: u16,
}

/// A network of destinations, and the node that leads there.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Towards {
    /// Network of the destinations.
    pub(crate) network: Network,
    /// Address of the node that opens connections to them.
    pub(crate) node: IpAddr,
}

/// Connections with a port of their own over Hopwise.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Class {
    /// Port over Hopwise of these connections, by which `rules` at both nodes choose their agents.
    #[schemars(extend("x-range" = "1 to 65535", "x-unit" = "no unit"))]
    pub(crate) port: u16,
    /// Hosts that open the connection: an address or a network (default: any).
    pub(crate) from: Option<Network>,
    /// Destinations: an address or a network (default: any).
    pub to: Option<Network>,
    /// Destination ports (default: any).
    #[serde(default)]
    #[schemars(extend("x-range" = "1 to 65535"))]
    pub(crate) ports: Vec<Ports>,
    /// DSCP of the SYN (default: any).
    #[schemars(extend("x-range" = "0 to 63", "x-unit" = "no unit"))]
    pub(crate) dscp: Option<u8>,
}

/// Source address of the connections that a node opens for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Source {
    /// Address of the client, where the destination's answers come back through this node; otherwise its own one.
    #[default]
    Client,
    /// Address of this node.
    Own,
}

/// A port such as 80, or a range such as 8000-8100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ports(pub(crate) RangeInclusive<u16>);

impl JsonSchema for Ports {
    fn schema_name() -> Cow<'static, str> {
        "Ports".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"] })
    }
}

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Ports, D::Error> {
        let value = serde_yaml::Value::deserialize(from)?;
        let text = match &value {
            serde_yaml::Value::Number(number) => number.to_string(),
            serde_yaml::Value::String(text) => text.clone(),
            _ => String::new(),
        };
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Ports(first..=last)),
            _ => Err(serde::de::Error::custom(format_args!(
                "`{text}`, expected a port such as 80, or a range such as 8000-8100"
            ))),
        }
    }
}

impl Transparent {
    /// The ports over Hopwise, each once.
    pub(crate) fn mesh_ports(&self) -> Vec<u16> {
        let mut ports: Vec<u16> = self.classes.iter().map(|class| class.port).chain([self.port]).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

pub(super) fn check(document: &Document, config: &NodeConfig) -> Checked {
    let Some(transparent) = &config.transparent else { return Ok(()) };
    let at = YamlPath::root().key("transparent");
    if transparent.to.is_empty() && transparent.from.is_empty() {
        let wanted = "`interfaces` with `to`, `from`, or all three";
        return Err(document.refuse(&at, "there is nothing to carry", wanted));
    }
    if transparent.to.is_empty() != transparent.interfaces.is_empty() {
        let (there, missing) =
            if transparent.to.is_empty() { ("interfaces", "to") } else { ("to", "interfaces") };
        let problem = format!("`{there}` is there without `{missing}`");
        return Err(document.refuse(&at, problem, "both of them, or neither"));
    }
    if transparent.targets.is_some() && transparent.from.is_empty() {
        let problem = "`targets` is there without `from`, and nothing is opened for others";
        return Err(document.refuse(&at, problem, "both of them, or neither"));
    }
    interfaces(document, config, transparent, &at.key("interfaces"))?;
    ports(document, &transparent.ports, &at.key("ports"))?;
    towards(document, config, transparent, &at.key("to"))?;
    classes(document, transparent, &at.key("classes"))?;
    mesh_ports(document, config, transparent, &at)
}

fn interfaces(document: &Document, config: &NodeConfig, transparent: &Transparent, at: &YamlPath) -> Checked {
    check_interfaces(document, at, &transparent.interfaces)?;
    for (nth, name) in transparent.interfaces.iter().enumerate() {
        let at = at.index(nth);
        if config.links.iter().any(|link| &link.name == name) {
            let problem = format!("`{name}` is a link of this node: its own connections would be caught");
            return Err(document.refuse(&at, problem, "an interface towards hosts"));
        }
        if name == "lo" {
            let problem = "`lo` has no hosts behind it";
            return Err(document.refuse(&at, problem, "an interface towards hosts"));
        }
    }
    Ok(())
}

/// Each port stands once.
fn ports(document: &Document, ports: &[Ports], at: &YamlPath) -> Checked {
    for (nth, Ports(range)) in ports.iter().enumerate() {
        let meets = |Ports(other): &Ports| other.start() <= range.end() && range.start() <= other.end();
        if let Some(earlier) = ports[..nth].iter().position(meets) {
            let problem = format!("some of these ports stand at index {earlier} already");
            return Err(document.refuse(&at.index(nth), problem, "each port once"));
        }
    }
    Ok(())
}

/// Returns whether every address of one network is in the other.
fn covers(outer: &Network, inner: &Network) -> bool {
    outer.0.bits() <= inner.0.bits() && outer.0.contains(inner.0.address())
}

/// A class matches some connections, and not only those of an earlier one.
fn classes(document: &Document, transparent: &Transparent, at: &YamlPath) -> Checked {
    for (nth, class) in transparent.classes.iter().enumerate() {
        let at = at.index(nth);
        ports(document, &class.ports, &at.key("ports"))?;
        if let (Some(from), Some(to)) = (class.from, class.to)
            && from.0.address().is_ipv4() != to.0.address().is_ipv4()
        {
            let problem = "`from` and `to` are of different versions of IP: no connection matches";
            return Err(document.refuse(&at, problem, "networks of one version"));
        }
        if let Some(earlier) = transparent.classes[..nth].iter().position(|other| other.covers(class)) {
            let problem = format!("`transparent.classes.{earlier}` matches all of these connections before");
            return Err(document.refuse(&at, problem, "the narrower class first"));
        }
    }
    Ok(())
}

impl Class {
    /// Returns whether this class matches all connections of another one.
    fn covers(&self, other: &Class) -> bool {
        let of_network = |outer: Option<Network>, inner: Option<Network>| match (outer, inner) {
            (None, _) => true,
            (Some(outer), Some(inner)) => covers(&outer, &inner),
            (Some(_), None) => false,
        };
        let is_in = |Ports(inner): &Ports| {
            self.ports.iter().any(|Ports(outer)| outer.contains(inner.start()) && outer.contains(inner.end()))
        };
        of_network(self.from, other.from)
            && of_network(self.to, other.to)
            && self.dscp.is_none_or(|dscp| other.dscp == Some(dscp))
            && (self.ports.is_empty() || !other.ports.is_empty() && other.ports.iter().all(is_in))
    }
}

fn towards(document: &Document, config: &NodeConfig, transparent: &Transparent, at: &YamlPath) -> Checked {
    for (nth, towards) in transparent.to.iter().enumerate() {
        let at = at.index(nth);
        let own = (0..config.links.len()).flat_map(|nth| config.addresses_of(nth));
        if own.into_iter().any(|own| own.address() == towards.node) {
            let problem = format!("{} is an address of this node", towards.node);
            return Err(document.refuse(&at.key("node"), problem, "the address of another node"));
        }
        if let Some(problem) = never_a_node(config, towards.node) {
            let problem = format!("{} is {problem}", towards.node);
            return Err(document.refuse(&at.key("node"), problem, "the address of another node"));
        }
        let first = towards.network.0.address();
        if first.is_loopback() || first.is_multicast() {
            let problem = format!("hosts open no connection to {} through a router", towards.network.0);
            return Err(document.refuse(&at.key("network"), problem, "a network of destinations"));
        }
        let is_outer = |other: &Towards| covers(&other.network, &towards.network);
        if let Some(earlier) = transparent.to[..nth].iter().position(is_outer) {
            let problem = format!("{} is in `transparent.to.{earlier}` already", towards.network.0);
            return Err(document.refuse(
                &at.key("network"),
                problem,
                "each network once, the narrower one first",
            ));
        }
    }
    Ok(())
}

/// Why no node can have this address, or be reached there from this one.
fn never_a_node(config: &NodeConfig, node: IpAddr) -> Option<&'static str> {
    let links = &config.links;
    let mut own = (0..links.len()).flat_map(|nth| config.addresses_of(nth));
    let mut of_kernel = links.iter().flat_map(|link| &link.kernel);
    if node.is_unspecified() || node.is_multicast() || node == IpAddr::from([255; 4]) {
        Some("no address of a machine")
    } else if node.is_loopback() {
        Some("this machine itself")
    } else if of_kernel.any(|kernel| kernel.0.address() == node) {
        Some("the kernel's end of a link of this node")
    } else if own.all(|own| own.address().is_ipv4() != node.is_ipv4()) {
        Some("of a version of IP in which this node has no address")
    } else {
        None
    }
}

/// Checks that the ports are no others' over Hopwise.
fn mesh_ports(document: &Document, config: &NodeConfig, transparent: &Transparent, at: &YamlPath) -> Checked {
    let listens = |wanted: u16| {
        let mut forwards = config.forwards.iter();
        forwards.position(|forward| matches!(&forward.listen, Side::Mesh(listen) if listen.port == wanted))
    };
    let of_classes = transparent.classes.iter().enumerate();
    let of_classes = of_classes.map(|(nth, class)| (class.port, at.key("classes").index(nth).key("port")));
    for (port, at) in of_classes.chain([(transparent.port, at.key("port"))]) {
        if let Some(nth) = listens(port) {
            let problem = format!("`forwards.{nth}.listen` has port {port} over Hopwise already");
            return Err(document.refuse(&at, problem, "a port of its own"));
        }
    }
    Ok(())
}
