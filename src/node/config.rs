//! Configuration of `hopwise node`: the keys, their meaning, and the checks that need several keys.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopwise_core::ip::Prefix;
use hopwise_host::{CapturedLink, Framing};
use hopwise_lab::located::{Document, LoadError, Refusal};
use hopwise_lab::rules::{self, Network};
use hopwise_lab::tcp::Tcp;
use hopwise_lab::units::{Rate, Share, Size, Time};
use serde::de::{IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::daemon::confine::Confine;

mod check;
mod endpoint;
mod here;
mod listeners;

pub(crate) use check::is_hosts;
pub(crate) use endpoint::link_id;
pub(crate) use here::shown_passwords;
pub(crate) use listeners::{path_at, ports};

/// A node's configuration as it stands in the file; [`load`] has made the checks that serde cannot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeConfig {
    pub(crate) node: Node,
    pub(crate) links: Vec<Link>,
    #[serde(default)]
    pub(crate) routes: Vec<Route>,
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
    /// Names that SOCKS5 and forwards know before the system's.
    #[serde(default)]
    pub(crate) hosts: BTreeMap<String, IpAddr>,
    #[serde(default)]
    pub(crate) forwards: Vec<Forward>,
    pub(crate) socks5: Option<Socks5>,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) capture: Option<Capture>,
    /// Path of the control socket.
    pub(crate) control: Option<PathBuf>,
    /// User that the daemon becomes.
    pub(crate) user: Option<String>,
    /// Confinement of files and system calls.
    #[serde(default)]
    pub(crate) confine: Confine,
    /// Folders in which captures may begin while it runs.
    #[serde(default)]
    pub(crate) captures: Vec<PathBuf>,
    #[serde(default)]
    pub(crate) tcp: Tcp,
    #[serde(default)]
    pub(crate) bounds: Bounds,
    /// Time for which a stack polls for more packets before it sleeps: less delay for a processor core.
    pub(crate) busy_poll: Option<Time>,
    /// Time that connections have to finish at the daemon's end.
    #[serde(default = "stop_within")]
    pub(crate) stop_within: Time,
}

impl NodeConfig {
    /// Returns whether the two differ only in settings that a running node can change.
    pub(crate) fn says_the_same_beside_rules(&self, other: &NodeConfig) -> bool {
        let said = |config: &NodeConfig| format!("{:?}", NodeConfig { rules: Vec::new(), ..config.clone() });
        said(self) == said(other)
    }
}

fn stop_within() -> Time {
    Time(Duration::from_secs(5))
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// Our own address with its subnet, or a list of them.
    #[serde(deserialize_with = "one_or_more")]
    pub(crate) address: Vec<Address>,
}

/// An address with the length of its subnet: `10.7.0.2/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) Prefix);

const ADDRESS: &str = "an address with its subnet, such as 10.7.0.2/24";

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Address, D::Error> {
        let text = String::deserialize(from)?;
        text.parse()
            .map(Address)
            .map_err(|error| serde::de::Error::custom(format_args!("`{text}`: {error}, expected {ADDRESS}")))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LinkKind {
    Tun,
    TunFast,
    Raw,
    /// Live capture of an interface, without taking part.
    Pcap,
    /// A capture played again.
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

/// One link; which keys it needs and takes depends on its kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Link {
    pub(crate) kind: LinkKind,
    /// The TUN device to make, or the interface to use, or the name of a replay.
    pub(crate) name: String,
    /// MTU of a TUN; an interface has its own.
    pub(crate) mtu: Option<u16>,
    /// Number of queues (kind: tun-fast), each a shard that shares nothing with the others.
    pub(crate) queues: Option<u16>,
    /// Segmentation offload: an interface may be handed several segments at once.
    pub(crate) offload: Option<bool>,
    /// Filter in libpcap's language (kind: pcap).
    pub(crate) filter: Option<String>,
    /// Capture to replay (kind: replay).
    pub(crate) file: Option<PathBuf>,
    /// Pace (kind: replay; default as-recorded).
    pub(crate) pace: Option<PaceName>,
    /// Checksums (kinds: pcap, replay); packets captured at their sender may have none yet.
    pub(crate) checksums: Option<ChecksumsName>,
    /// Routers on the path to peers that are no hops: a kernel between a TUN and the radio, at either end.
    pub(crate) crossings: Option<u8>,
    /// The addresses that the kernel has on its end of a TUN.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(crate) kernel: Vec<Address>,
    /// Our addresses on this link, if they differ from the node's.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(crate) address: Vec<Address>,
    pub(crate) fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PaceName {
    AsRecorded,
    AtOnce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ChecksumsName {
    Verify,
    Trust,
}

/// The default for a TUN: the kernels here and at the peer forward.
pub(crate) const TUN_CROSSINGS: u8 = 2;
/// The default for a TUN.
pub(crate) const MTU: u16 = 1500;

/// Faults that a link applies to packets in each direction; for tests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Fault {
    pub(crate) seed: u64,
    pub(crate) drop: Share,
    pub(crate) duplicate: Share,
    pub(crate) corrupt: Share,
    pub(crate) reorder: Share,
    /// Delay of a packet that others overtake.
    pub(crate) reorder_by: Option<Time>,
    pub(crate) delay: Option<Time>,
    pub(crate) rate: Option<Rate>,
    /// Packets that may wait for the rate or be on their way.
    pub(crate) queue_packets: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    pub(crate) to: Address,
    pub(crate) link: String,
    /// The neighbour that forwards packets; a TUN needs none.
    pub(crate) via: Option<IpAddr>,
}

pub(crate) type Rule = rules::Rule<Network>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forward {
    pub(crate) listen: Side,
    pub(crate) to: Side,
    /// Number of connections at the same time.
    #[serde(default = "connections")]
    pub(crate) connections: usize,
    /// Least time that a client keeps its seat while it is quiet or leaves data unread and no other seat is free.
    #[serde(default = "reads_within")]
    pub(crate) reads_within: Time,
    /// Time without data after which a connection is closed.
    #[serde(default = "idle")]
    pub(crate) idle: Time,
    /// Seats up to which a source takes some from the source with the most; by default half of them.
    pub(crate) per_source: Option<usize>,
}

/// One end of a forward: on this machine's own TCP, or over Hopwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Local(HostPort),
    Mesh(HostPort),
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (side, HostPort { host, port }) = match self {
            Side::Local(at) => ("", at),
            Side::Mesh(at) => ("mesh:", at),
        };
        match host.as_str() {
            "" if !side.is_empty() => write!(f, "{side}{port}"),
            host if host.contains(':') => write!(f, "{side}[{host}]:{port}"),
            host => write!(f, "{side}{host}:{port}"),
        }
    }
}

/// `10.7.0.2:80`, `[fd07::2]:80`, `name:80`. For a listener `:80` means every address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl HostPort {
    pub(crate) fn parse(text: &str) -> Option<HostPort> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_name = |host: &str| host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        match bare {
            Some(v6) if v6.parse::<std::net::Ipv6Addr>().is_ok() => {
                Some(HostPort { host: v6.to_owned(), port })
            }
            None if is_name(host) => Some(HostPort { host: host.to_owned(), port }),
            _ => None,
        }
    }

    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl<'de> Deserialize<'de> for Side {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Side, D::Error> {
        let text = String::deserialize(from)?;
        let read = match text.strip_prefix("mesh:") {
            Some(rest) => {
                HostPort::parse(rest).or_else(|| HostPort::parse(&format!(":{rest}"))).map(Side::Mesh)
            }
            None => HostPort::parse(&text).map(Side::Local),
        };
        read.ok_or_else(|| {
            let wanted = "expected 127.0.0.1:8080 on this machine or mesh:10.7.0.2:80 over Hopwise";
            serde::de::Error::custom(format_args!("`{text}`, {wanted}"))
        })
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Socks5 {
    pub(crate) listen: SocketAddr,
    /// As for a forward.
    #[serde(default = "connections")]
    pub(crate) connections: usize,
    /// Time that a client has to name its target.
    #[serde(default = "handshake_within")]
    pub(crate) handshake_within: Time,
    /// As for a forward.
    #[serde(default = "reads_within")]
    pub(crate) reads_within: Time,
    #[serde(default = "idle")]
    pub(crate) idle: Time,
    pub(crate) per_source: Option<usize>,
    /// Passwords by name; without any, clients need no login.
    #[serde(default)]
    pub(crate) users: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) allow: Allow,
}

/// The accepted clients, and their allowed targets; an absent list has no effect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Allow {
    pub(crate) clients: Option<Vec<Network>>,
    pub(crate) targets: Option<Vec<Network>>,
}

/// The most that the node's stacks hold together because of their peers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Bounds {
    pub(crate) connections: Option<usize>,
    pub(crate) orphans: Option<usize>,
    pub(crate) orphan_memory: Option<Size>,
    pub(crate) time_waits: Option<usize>,
    pub(crate) memory: Option<Size>,
}

/// A quiet session is not wrong, and if seats are scarce the quietest makes room anyhow; Envoy has the same value.
fn idle() -> Time {
    Time(Duration::from_secs(3600))
}

fn connections() -> usize {
    1024
}

fn handshake_within() -> Time {
    Time(Duration::from_secs(10))
}

fn reads_within() -> Time {
    Time(Duration::from_secs(30))
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metrics {
    #[serde(default = "metrics_listen")]
    pub(crate) listen: SocketAddr,
    /// Names in scrapers' requests, beside the node's, `localhost` and addresses.
    #[serde(default)]
    pub(crate) names: Vec<String>,
}

fn metrics_listen() -> SocketAddr {
    SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 9184))
}

/// Nearly every packet fits into a capture file of this size, with its comments.
const LEAST_ROTATION: u64 = 64 << 10;

/// Checks the size for a capture without a configuration file.
pub(crate) fn check_rotation(bytes: u64) -> Result<(), String> {
    let is_enough = bytes >= LEAST_ROTATION;
    is_enough.then_some(()).ok_or_else(|| "too small for a file: expected 64KiB or more".to_owned())
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Capture {
    pub(crate) file: PathBuf,
    /// The captured links; all of them if none is named.
    #[serde(default)]
    pub(crate) links: Vec<String>,
    /// A new file begins before this one is larger.
    pub(crate) rotate: Option<Size>,
    /// Number of rotated files to keep.
    #[serde(default = "capture_files")]
    pub(crate) files: u32,
}

fn capture_files() -> u32 {
    8
}

/// Reads and checks a configuration.
pub(crate) fn load(path: &Path) -> Result<NodeConfig, LoadError> {
    let document = Document::load(path)?;
    read(&document).map_err(LoadError::Refused)
}

/// The same for a file that was read.
pub(crate) fn parse(path: &Path, text: &str) -> Result<NodeConfig, Box<Refusal>> {
    read(&Document::parse(&path.display().to_string(), text)?)
}

/// The same for a node on this machine, with the document, which later shows the places of keys.
pub(crate) fn load_for_here(path: &Path) -> Result<(Document, NodeConfig), LoadError> {
    let document = Document::load(path)?;
    let config = read_for_here(&document).map_err(LoadError::Refused)?;
    Ok((document, config))
}

fn read(document: &Document) -> Result<NodeConfig, Box<Refusal>> {
    let config: NodeConfig = document.read()?;
    check::all(document, &config)?;
    Ok(config)
}

fn read_for_here(document: &Document) -> Result<NodeConfig, Box<Refusal>> {
    let config = read(document)?;
    here::all(document, &config)?;
    Ok(config)
}

/// One address, or a list of them, each refused at its own place.
fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Address>, D::Error> {
    struct OneOrMore;

    impl<'de> Visitor<'de> for OneOrMore {
        type Value = Vec<Address>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{ADDRESS}, or a list of them")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<Address>, E> {
            Address::deserialize(text.into_deserializer()).map(|address| vec![address])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Address>, A::Error> {
            let mut addresses = Vec::new();
            while let Some(address) = items.next_element()? {
                addresses.push(address);
            }
            Ok(addresses)
        }
    }

    from.deserialize_any(OneOrMore)
}

#[cfg(test)]
mod tests;
