//! Configuration of `hopwise node`: the keys, their meaning, and the checks that need several keys.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hopwise_core::ip::Prefix;
pub use hopwise_host::TUN_CROSSINGS;
use hopwise_host::{CapturedLink, Framing};
use hopwise_lab::file_kind;
use hopwise_lab::keys;
use hopwise_lab::located::{Checked, Document, LoadError, YamlPath};
use hopwise_lab::rules::{self, Network};
use hopwise_lab::tcp::Tcp;
use hopwise_lab::units::{Rate, Share, Size, Time, number};
use hopwise_lab::words;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use hopwise_daemon::confine::Confine;

mod check;
mod endpoint;
mod listeners;
mod services;
mod side;
mod transparent;

pub(crate) use check::is_hosts;
pub(crate) use endpoint::link_id;
pub(crate) use listeners::{path_at, ports};
use nix::unistd::User;
pub(crate) use services::{Allow, Bounds, Metrics, Socks5};
use services::{connections, idle, reads_within};

use crate::links::check_filter;
pub(crate) use side::{HostPort, Side};
pub(crate) use transparent::{Class, Source, Transparent};

/// A node: its address, its links, and what runs over them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Name and addresses of the node.
    pub node: Node,
    /// Links of the node, at least one.
    pub links: Vec<Link>,
    /// Routes beyond the subnets of the links (default: none).
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Rules that choose the agents of a connection; the first one that matches applies (default: none, and all
    /// connections have the default agents). SIGHUP reads them anew.
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
    /// Names that SOCKS5 and forwards know before those of the system, each with its address (default: none).
    #[serde(default)]
    pub hosts: BTreeMap<String, IpAddr>,
    /// Ports that are handed on between this machine and the mesh (default: none).
    #[serde(default)]
    pub(crate) forwards: Vec<Forward>,
    /// SOCKS5 proxy for programs of this machine (default: none).
    pub(crate) socks5: Option<Socks5>,
    /// TCP of the hosts behind this node, which goes to another node over Hopwise without their knowing (default:
    /// none).
    pub transparent: Option<Transparent>,
    /// Figures for Prometheus (default: none).
    pub(crate) metrics: Option<Metrics>,
    /// Capture from the start of the node on (default: none).
    pub capture: Option<Capture>,
    /// Path of the control socket, for `hopwise status` and `capture` (default: no socket).
    #[schemars(with = "Option<String>")]
    pub control: Option<PathBuf>,
    /// User that a daemon started by root becomes; root: it stays root (default: hopwise, or a
    /// number without a name where there is no such user).
    pub(crate) user: Option<String>,
    /// Confinement of files and system calls by Landlock and seccomp, once everything is open (default on).
    #[serde(default)]
    pub(crate) confine: Confine,
    /// Folders in which `hopwise capture start` may write, besides /tmp and those of the capture and of the socket
    /// (default: none).
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(crate) captures: Vec<PathBuf>,
    /// TCP settings of the node.
    #[serde(default)]
    pub(crate) tcp: Tcp,
    /// The most that the stacks of the node hold together because of their peers.
    #[serde(default)]
    pub(crate) bounds: Bounds,
    /// Time for which a stack polls for more packets before it sleeps: less delay for a processor core (default: it
    /// sleeps at once).
    pub(crate) busy_poll: Option<Time>,
    /// Time that connections have to finish at the end of the daemon.
    #[serde(default = "Time::millis::<5_000>")]
    pub(crate) stop_within: Time,
}

impl NodeConfig {
    /// Returns whether the two differ only in settings that a running node can change.
    pub(crate) fn says_the_same_beside_rules(&self, other: &NodeConfig) -> bool {
        let said = |config: &NodeConfig| format!("{:?}", NodeConfig { rules: Vec::new(), ..config.clone() });
        said(self) == said(other)
    }
}

/// The node itself.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name of the node, as `hopwise status` and metrics show it.
    pub name: String,
    /// Own address with its subnet, or a list of them.
    #[serde(deserialize_with = "one_or_more")]
    #[schemars(with = "OneOrMore")]
    pub address: Vec<Address>,
}

/// An address with its subnet, such as 10.7.0.2/24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub struct Address(pub Prefix);

const ADDRESS: &str = "an address with its subnet, such as 10.7.0.2/24";

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Address, D::Error> {
        let text = String::deserialize(from)?;
        text.parse()
            .map(Address)
            .map_err(|error| serde::de::Error::custom(format_args!("`{text}`: {error}, expected {ADDRESS}")))
    }
}

/// Kind of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// A TUN device, with the kernel at its other end.
    Tun,
    /// The same with segmentation offload.
    TunFast,
    /// An interface beside the kernel.
    Raw,
    /// Packets that pass an interface, without taking part; in a build with the feature pcap.
    Pcap,
    /// A capture played again; in a build with the feature pcap.
    Replay,
}

impl Link {
    /// The link's description in a capture's file.
    pub(crate) fn captured(&self) -> CapturedLink {
        let is_ethernet = self.kind == LinkKind::Raw;
        let framing = if is_ethernet { Framing::Ethernet } else { Framing::Ip };
        CapturedLink { name: self.name.clone(), framing }
    }
}

/// One link; its kind decides which keys apply.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Kind of the link.
    pub kind: LinkKind,
    /// Name of the TUN device that is made, of the interface that is used, or of the replay: 1 to 15 bytes.
    pub name: String,
    /// MTU of the device, at least 1280 where the link has an IPv6 address (kinds: tun, tun-fast; default 1500).
    #[schemars(extend("x-range" = "576 to 65535", "x-unit" = "bytes"))]
    pub mtu: Option<u16>,
    /// Number of queues, each with a stack of its own that shares nothing with the others; the link is then the only
    /// one (kind: tun-fast; default 1).
    #[schemars(extend("x-range" = "1 to 256", "x-unit" = "queues"))]
    pub queues: Option<u16>,
    /// The interface may be handed several segments at once (kind: raw; default true).
    pub(crate) offload: Option<bool>,
    /// Filter in the language of libpcap (kind: pcap; default: none).
    pub(crate) filter: Option<String>,
    /// Capture to replay (kind: replay, which requires it).
    #[schemars(with = "Option<String>")]
    pub file: Option<PathBuf>,
    /// Pace of the packets (kind: replay; default as-recorded).
    pub(crate) pace: Option<PaceName>,
    /// Treatment of checksums; packets captured at their sender may have none yet (kinds: pcap, replay; default
    /// verify).
    pub checksums: Option<ChecksumsName>,
    /// Routers on the path to peers that are no hops: a kernel between a TUN and the radio, at either end (default: 2
    /// for a TUN, otherwise 0).
    #[schemars(extend("x-range" = "0 to 2", "x-unit" = "routers"))]
    pub(crate) crossings: Option<u8>,
    /// Addresses of the kernel on its end of a TUN, one or a list (kinds: tun, tun-fast; default: none).
    #[serde(default, deserialize_with = "one_or_more")]
    #[schemars(with = "OneOrMore")]
    pub(crate) kernel: Vec<Address>,
    /// Own addresses on this link, one or a list (default: those of the node).
    #[serde(default, deserialize_with = "one_or_more")]
    #[schemars(with = "OneOrMore")]
    pub address: Vec<Address>,
    /// Faults that the link applies to packets in each direction, for tests (default: none).
    pub(crate) fault: Option<Fault>,
}

/// Pace of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PaceName {
    /// With the times of the capture.
    AsRecorded,
    /// Without pauses.
    AtOnce,
}

/// Treatment of checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChecksumsName {
    /// A packet with a wrong checksum is dropped.
    Verify,
    /// Checksums are not looked at.
    Trust,
}

/// The default for a TUN.
pub const MTU: u16 = 1500;

/// Faults that a link applies to packets in each direction, for tests.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// Seed of the random numbers.
    #[schemars(extend("x-range" = "0 or more", "x-unit" = "no unit"))]
    pub seed: u64,
    /// Share of packets that are lost.
    pub(crate) drop: Share,
    /// Share of packets that arrive twice.
    pub(crate) duplicate: Share,
    /// Share of packets in which a bit is wrong.
    pub(crate) corrupt: Share,
    /// Share of packets that others overtake.
    pub(crate) reorder: Share,
    /// Delay of a packet that others overtake (default 5ms).
    pub(crate) reorder_by: Option<Time>,
    /// Delay of every packet (default: none).
    pub(crate) delay: Option<Time>,
    /// Rate of the link (default: no bound).
    pub(crate) rate: Option<Rate>,
    /// Number of packets that may wait for the rate or be on their way (default 1000).
    #[schemars(extend("x-range" = "1 or more", "x-unit" = "packets"))]
    pub(crate) queue_packets: Option<usize>,
}

/// A route beyond the subnets of the links.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Network that the route leads to.
    pub to: Address,
    /// Name of the link that the route leaves by.
    pub(crate) link: String,
    /// Neighbour that forwards packets (kind of the link: raw; default: the link itself).
    pub via: Option<IpAddr>,
}

pub(crate) type Rule = rules::Rule<Network>;

/// A port that is handed on, from this machine to the mesh or back.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forward {
    /// End at which connections arrive: an address of this machine such as 127.0.0.1:8080, or mesh:8022 over Hopwise.
    pub(crate) listen: Side,
    /// Other end: 127.0.0.1:22 on this machine, or mesh:10.7.0.2:80 over Hopwise. Exactly one of the two ends is over
    /// Hopwise.
    pub to: Side,
    /// Number of connections at the same time: seats. A quiet client, or the source with the most, makes room for
    /// another one.
    #[serde(default = "connections")]
    #[schemars(extend("x-range" = "1 to 65536", "x-unit" = "connections"))]
    pub(crate) connections: usize,
    /// Least time that a client keeps its seat while it carries nothing and no other seat is free.
    #[serde(default = "reads_within")]
    #[schemars(extend("x-range" = "100ms or more"))]
    pub(crate) reads_within: Time,
    /// Time without data after which a connection is closed.
    #[serde(default = "idle")]
    #[schemars(extend("x-range" = "100ms or more"))]
    pub(crate) idle: Time,
    /// Number of connections of one source at the most (default: `connections`).
    #[schemars(extend("x-range" = "1 or more", "x-unit" = "connections"))]
    pub(crate) per_source: Option<usize>,
}

/// Nearly every packet fits into a capture file of this size, with its comments.
const ROTATIONS: &str = "64KiB or more";

/// Checks the size for a capture without a configuration file.
pub fn check_rotation(bytes: u64) -> Result<(), String> {
    let is_enough = keys::Range::of(ROTATIONS).holds(bytes as f64);
    is_enough.then_some(()).ok_or_else(|| format!("too small for a file: expected {ROTATIONS}"))
}

/// Capture of the packets of the links in a file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// File of the capture in the format pcapng.
    #[schemars(with = "String")]
    pub file: PathBuf,
    /// Names of the captured links (default: all).
    #[serde(default)]
    pub links: Vec<String>,
    /// Size before which a new file begins (default: one file of any size).
    #[schemars(extend("x-range" = ROTATIONS))]
    pub(crate) rotate: Option<Size>,
    /// Number of rotated files that are kept.
    #[serde(default = "number::<u32, 8>")]
    #[schemars(extend("x-range" = "1 or more", "x-unit" = "files"))]
    pub(crate) files: u32,
}

hopwise_lab::schema_of!(NodeConfig, checked by read);

/// Reads and checks a configuration.
pub fn load(path: &Path) -> Result<NodeConfig, LoadError> {
    Document::load_with(path, read).map(|(_, config)| config)
}

/// The same for a file that was read.
pub fn parse(path: &Path, text: &str) -> Checked<NodeConfig> {
    read(&Document::parse(&path.display().to_string(), text)?)
}

fn read(document: &Document) -> Checked<NodeConfig> {
    file_kind::NODE.check(document)?;
    keys::check(document, json_schema())?;
    let config: NodeConfig = document.read()?;
    check::all(document, &config)?;
    Ok(config)
}

/// The configuration of a node on this machine.
pub(crate) fn read_for_here(document: &Document) -> Checked<NodeConfig> {
    let config = read(document)?;
    all(document, &config)?;
    Ok(config)
}

/// The schema of [`one_or_more`].
struct OneOrMore;

impl JsonSchema for OneOrMore {
    fn schema_name() -> Cow<'static, str> {
        "Addresses".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<Address>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

/// One address, or a list of them, each refused at its own place.
fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Address>, D::Error> {
    words::one_or_more(from, format_args!("{ADDRESS}, or a list of them"))
}

#[cfg(test)]
mod tests;

// Checks of a configuration that only its own machine can make. A running node that reads its rules again skips them.
// A resolver may be slow, and the rest of the file needs a restart.

/// The warning about passwords in a file that each user of this machine may read.
pub(crate) fn shown_passwords(path: &Path, config: &NodeConfig) -> Option<String> {
    let has_passwords = config.socks5.as_ref().is_some_and(|socks5| !socks5.users.is_empty());
    let mode = fs::metadata(path).ok()?.permissions().mode();
    let shown = path.display();
    (has_passwords && mode & 0o004 != 0).then(|| {
        format!("{shown}: each user of this machine can read the passwords of `users`: chmod o-r {shown}")
    })
}

fn all(document: &Document, config: &NodeConfig) -> Checked {
    user(document, config)?;
    for (nth, link) in config.links.iter().enumerate() {
        let Some(filter) = &link.filter else { continue };
        check_filter(filter).map_err(|problem| {
            let at = YamlPath::root().key("links").index(nth).key("filter");
            let accepted = "a filter in libpcap's language (man pcap-filter), such as tcp port 80";
            document.refuse(&at, format!("`{filter}`: {problem}"), accepted)
        })?;
    }
    Ok(())
}

/// Checks that the user exists. A reader of the file may be unable to become that user: the start checks that.
fn user(document: &Document, config: &NodeConfig) -> Checked {
    match config.user.as_deref().map(|name| (name, User::from_name(name))) {
        Some((name, Ok(None))) => {
            let problem = format!("there is no user `{name}` on this machine");
            let accepted = "a user's name, such as nobody (`getent passwd` lists them), or no `user`";
            Err(document.refuse(&YamlPath::root().key("user"), problem, accepted))
        }
        _ => Ok(()),
    }
}
