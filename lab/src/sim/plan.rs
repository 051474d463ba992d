//! Parts of a run, once names and units are resolved.

use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::Profile;
use hopwise_air::Arp;
use hopwise_air::channel::Channel;
use hopwise_air::dcf::MacConfig;
use hopwise_air::frames::{Mac, mac_of};
use hopwise_air::medium::{Position, Radio};
use hopwise_air::motion::NodeTrack;
use hopwise_air::phy::Phy;
use hopwise_core::Instant;
use hopwise_core::endpoint::Rule;
use hopwise_core::ip::UdpOptions;
use hopwise_core::narrow::as_u8;
use hopwise_core::queue::FqCodelConfig;
use hopwise_core::tcp::TcpConfig;
use hopwise_mesh::constants::{ConstantValue, ConstantValues, RuleSet};
use hopwise_mesh::{RoutingProtocol, WhenFull};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gateway::GatewayPlan;
use crate::programs::{Amount, INTERVALS, Marks};
use crate::world;

/// All that determines a simulated run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The place of each node's radio; `None`: it has wires alone.
    pub positions: Vec<Option<Position>>,
    /// The addresses of radios that have none of ours, by node.
    pub macs: Vec<Mac>,
    /// Movement of the nodes; empty: no node moves.
    pub tracks: Vec<Option<NodeTrack>>,
    /// The wires between nodes.
    pub wires: Vec<WirePlan>,
    /// The physical layer of all radios.
    pub phy: Phy,
    /// The powers of all radios.
    pub radio: Radio,
    /// The effects of the channel.
    pub channel: Channel,
    /// The MAC's settings of all radios.
    pub mac: MacConfig,
    /// The source of neighbours' addresses.
    pub arp: Arp,
    /// Linux's queue above each radio, in place of `queue_packets`.
    pub linux_queue: Option<FqCodelConfig>,
    /// The length of a radio's queue, with the packet that the radio has.
    pub queue_packets: usize,
    /// The fate of a node's own packets when a queue is full.
    pub when_full: WhenFull,
    /// The routing protocol with its constants.
    pub routing: RoutingPlan,
    /// The profile of the agents' defaults.
    pub profile: Profile,
    /// The flows by their numbers.
    pub flows: Vec<FlowPlan>,
    /// Rules that give a connection its agents, before the arm's.
    pub rules: Vec<Rule>,
    /// The agents of all flows that no rule concerns.
    pub arm: Arm,
    /// Gateway, where the arm's base-station agent runs.
    pub gateway: Option<GatewayPlan>,
    /// The duration from the first flow's start.
    pub duration: Duration,
    /// Beginning that no result counts.
    pub warmup: Duration,
    /// The seed of all chance in the run.
    pub seed: u64,
    /// Events that each endpoint keeps until they are drained; 0 without a reader.
    pub trace_events: usize,
}

impl Plan {
    /// The address of a node's radio.
    pub fn mac(&self, node: u32) -> Mac {
        self.macs.get(node as usize).copied().unwrap_or_else(|| mac_of(node))
    }
}

/// A routing protocol and its constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingPlan {
    /// The protocol.
    pub protocol: &'static RoutingProtocol,
    /// The constants that differ from their defaults.
    pub constants: ConstantValues,
}

impl RoutingPlan {
    /// The registered protocol of this name with the defaults of these rules.
    pub fn under(name: &str, rules: RuleSet) -> RoutingPlan {
        let protocol = RoutingProtocol::named(name).expect("the name of a protocol");
        RoutingPlan { protocol, constants: ConstantValues::of(rules) }
    }

    /// The same TCP, with the hop limit that routing gives to packets. Its peers are nodes of the same world.
    #[must_use]
    pub fn limit_hops(&self, mut tcp: TcpConfig) -> TcpConfig {
        if let Some(hop_limit) = self.data_hop_limit() {
            tcp.hop_limit = hop_limit;
        }
        tcp.hops.peers_hop_limit = tcp.hop_limit;
        tcp
    }

    /// Hop limit of data packets; none: the default of endpoints.
    fn data_hop_limit(&self) -> Option<u8> {
        match self.value("data_hop_limit")? {
            ConstantValue::Count(hops) => Some(as_u8(hops as usize)),
            _ => None,
        }
    }

    /// The value of a constant in force, if the protocol has it.
    pub(crate) fn value(&self, name: &str) -> Option<ConstantValue> {
        self.protocol.value(&self.constants, name)
    }

    /// True if the protocol has this switch, and it is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.value(name) == Some(ConstantValue::Switch(true))
    }

    /// The marks of datagrams: the hop limit that routing gives to data, and this code point.
    pub fn marks(&self, dscp: u8) -> Marks {
        Marks { hop_limit: self.data_hop_limit().unwrap_or(UdpOptions::default().hop_limit), dscp }
    }
}

/// The agents under trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// The name in results.
    pub name: String,
    /// The spec of the receiver agent.
    pub receiver: String,
    /// The spec of the sender agents.
    pub senders: String,
    /// The spec of the shadows.
    pub shadows: String,
    /// Base-station agent of the gateway; none: it is a router.
    pub base_station: Option<String>,
    /// Programs are on hosts behind the ends, and transparent nodes carry their TCP.
    pub transparent: bool,
    /// The spec of the receiver agent by which `hopwise thin` holds a kernel's ACKs; none: the kernel alone decides.
    pub thin: Option<String>,
}

impl Arm {
    /// An arm that runs the kernel's TCP.
    pub(crate) fn kernel(name: &str, algorithm: &str, thin: Option<String>) -> Arm {
        Arm {
            name: name.to_owned(),
            receiver: "kernel".to_owned(),
            senders: format!("kernel:{algorithm}"),
            shadows: String::new(),
            base_station: None,
            transparent: false,
            thin,
        }
    }

    /// True if the programs' sockets are those of endpoints of ours.
    pub fn has_endpoints(&self) -> bool {
        self.algorithm().is_none() && !self.transparent
    }

    /// The kernel's algorithm, if the arm runs its TCP.
    pub fn algorithm(&self) -> Option<&str> {
        world::kernel_algorithm(&self.senders)
    }
}

/// A wire between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WirePlan {
    /// The numbers of the two nodes.
    pub ends: (u32, u32),
    /// Its rate in each direction.
    pub bits_per_second: u64,
    /// The time from the last bit's departure to the arrival of the packet.
    pub delay: Duration,
    /// Queue at each end (default: as in the radio).
    pub queue_packets: Option<usize>,
}

/// One flow: two nodes, and the traffic between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// The number of the node that opens connections or sends datagrams.
    pub from: u32,
    /// The number of the other node.
    pub to: u32,
    /// The start on the world's clock, as `stop` is.
    pub start: Duration,
    /// New transfers and requests end then, and endless data is cut off.
    pub stop: Option<Duration>,
    /// True if its data stands in its own row and in no total.
    pub is_background: bool,
    /// The traffic of the two programs.
    pub traffic: TrafficPlan,
}

impl FlowPlan {
    /// A flow in the foreground, to the end of the run.
    pub fn new(from: u32, to: u32, start: Duration, traffic: TrafficPlan) -> FlowPlan {
        FlowPlan { from, to, start, stop: None, is_background: false, traffic }
    }

    /// True if TCP brings data of the flow to that node.
    pub fn brings_tcp_to(&self, node: u32) -> bool {
        let TrafficPlan::Tcp(plan) = &self.traffic else { return false };
        let directions = plan.talk.directions();
        directions.has_forth() && self.to == node || directions.has_back() && self.from == node
    }
}

/// The traffic of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrafficPlan {
    /// Programs over TCP.
    Tcp(Arc<TcpPlan>),
    /// Datagrams in one direction.
    Datagrams {
        /// Payload of each datagram.
        bytes: u16,
        /// Nanoseconds from one to the next; none: as many as leave.
        every: Option<Amount>,
        /// The headers of their packets.
        marks: Marks,
    },
    /// Datagrams that the other end sends back.
    Probe {
        /// Payload of each datagram.
        bytes: u16,
        /// Nanoseconds from one to the next.
        every: Amount,
        /// The headers of their packets.
        marks: Marks,
    },
}

/// Traffic of two programs over TCP. The one at `from` opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpPlan {
    /// The configuration of both ends' connections.
    pub tcp: Arc<TcpConfig>,
    /// The exchange of data.
    pub talk: Talk,
    /// Nanoseconds between the end of one transfer or request and the next.
    pub think: Amount,
    /// Number of transfers or requests; none: until the end.
    pub times: Option<u32>,
}

/// The exchange of data between two programs over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// A connection that never runs out of data.
    Endless(Directions),
    /// A connection for each transfer.
    Transfers {
        /// The bytes of each transfer.
        bytes: Amount,
        /// The direction of the data.
        directions: Directions,
    },
    /// One connection, a request at a time.
    Requests {
        /// The bytes of each request.
        request: Amount,
        /// The bytes of each answer.
        response: Amount,
    },
}

/// Direction of bulk data, seen from the node that opens the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "DirectionName")]
pub enum Directions {
    /// Data goes from `from` to `to`.
    #[default]
    Forth,
    /// Data goes from `to` to `from`.
    Back,
    /// Data goes both ways.
    Both,
}

impl Directions {
    /// Returns whether the opener sends.
    pub(crate) fn has_forth(self) -> bool {
        self != Directions::Back
    }

    /// Returns whether the other end sends.
    pub(crate) fn has_back(self) -> bool {
        self != Directions::Forth
    }
}

impl Talk {
    /// The directions that have data.
    pub fn directions(self) -> Directions {
        match self {
            Talk::Endless(directions) | Talk::Transfers { directions, .. } => directions,
            Talk::Requests { .. } => Directions::Both,
        }
    }
}

impl TrafficPlan {
    /// One connection that never runs out of data.
    pub fn bulk(tcp: Arc<TcpConfig>) -> TrafficPlan {
        let talk = Talk::Endless(Directions::Forth);
        TrafficPlan::Tcp(Arc::new(TcpPlan { tcp, talk, think: Amount::NONE, times: Some(1) }))
    }

    /// Links that a packet crosses at the most.
    pub fn hop_limit(&self) -> u8 {
        match self {
            TrafficPlan::Tcp(plan) => plan.tcp.hop_limit,
            TrafficPlan::Datagrams { marks, .. } | TrafficPlan::Probe { marks, .. } => marks.hop_limit,
        }
    }
}

impl Plan {
    /// The start of the first flow.
    pub fn begins(&self) -> Instant {
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        Instant::ZERO + first
    }

    /// The end of the warm-up.
    pub fn counts_from(&self) -> Instant {
        self.begins() + self.warmup
    }

    /// The counted time is divided into intervals of this length.
    pub fn interval(&self) -> Duration {
        self.duration.saturating_sub(self.warmup) / INTERVALS
    }

    /// The end of the run.
    pub fn end(&self) -> Instant {
        self.begins() + self.duration
    }
}
