//! Parts of a run, once names and units are resolved.

use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::Profile;
use hopwise_air::Arp;
use hopwise_air::channel::Channel;
use hopwise_air::dcf::MacConfig;
use hopwise_air::medium::{Position, Radio};
use hopwise_air::motion::Track;
use hopwise_air::phy::Phy;
use hopwise_core::Instant;
use hopwise_core::endpoint::Rule;
use hopwise_core::ip::UdpOptions;
use hopwise_core::tcp::TcpConfig;
use hopwise_mesh::{WhenFull, aodv, aodvv2, dsr, gpsr};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gateway::GatewayPlan;
use crate::kernel_tcp;
use crate::programs::{Amount, INTERVALS};

#[derive(Clone, Debug)]
pub struct Plan {
    /// The place of each node's radio; `None`: it has wires alone.
    pub positions: Vec<Option<Position>>,
    /// Movement of the nodes; empty: no node moves.
    pub tracks: Vec<Option<Track>>,
    pub wires: Vec<WirePlan>,
    pub phy: Phy,
    pub radio: Radio,
    pub channel: Channel,
    pub mac: MacConfig,
    pub arp: Arp,
    pub queue_packets: usize,
    pub when_full: WhenFull,
    pub routing: RoutingPlan,
    /// The profile of the agents' defaults.
    pub profile: Profile,
    pub flows: Vec<FlowPlan>,
    /// Rules that give a connection its agents, before the arm's.
    pub rules: Vec<Rule>,
    pub arm: Arm,
    /// Gateway, where the arm's base-station agent runs.
    pub gateway: Option<GatewayPlan>,
    /// The duration from the first flow's start.
    pub duration: Duration,
    /// Beginning that no result counts.
    pub warmup: Duration,
    pub seed: u64,
    /// Events that each endpoint keeps until they are drained; 0 without a reader.
    pub trace_events: usize,
}

/// Routing protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutingPlan {
    /// The shortest paths at the beginning, installed by hand.
    Static,
    Aodv(Box<aodv::Settings>),
    Dymo(Box<aodvv2::Settings>),
    Dsr(Box<dsr::Settings>),
    Gpsr(Box<gpsr::Settings>),
}

impl RoutingPlan {
    /// The same TCP, with the hop limit that routing gives to packets. Its peers are nodes of the same world.
    #[must_use]
    pub fn limit_hops(&self, mut tcp: TcpConfig) -> TcpConfig {
        if let Some(hop_limit) = self.data_hop_limit() {
            tcp.hop_limit = hop_limit;
        }
        tcp.hops.peers_hop_limit = tcp.hop_limit;
        tcp
    }

    /// Hop limit of data packets; none: each protocol's own default.
    fn data_hop_limit(&self) -> Option<u8> {
        match self {
            RoutingPlan::Static | RoutingPlan::Dymo(_) => None,
            RoutingPlan::Aodv(settings) => Some(settings.data_hop_limit),
            RoutingPlan::Dsr(settings) => Some(settings.data_hop_limit),
            RoutingPlan::Gpsr(settings) => Some(settings.data_hop_limit),
        }
    }

    /// True if nodes listen to frames for other nodes.
    pub fn is_promiscuous(&self) -> bool {
        match self {
            RoutingPlan::Static | RoutingPlan::Aodv(_) | RoutingPlan::Dymo(_) => false,
            RoutingPlan::Dsr(settings) => settings.promiscuous,
            RoutingPlan::Gpsr(settings) => settings.promiscuous,
        }
    }
}

/// The agents under trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    pub name: String,
    pub receiver: String,
    pub senders: String,
    pub shadows: String,
    /// Base-station agent of the gateway; none: it is a router.
    pub base_station: Option<String>,
}

impl Arm {
    /// An arm that runs the kernel's TCP.
    pub(crate) fn kernel(name: &str, algorithm: &str) -> Arm {
        Arm {
            name: name.to_owned(),
            receiver: "kernel".to_owned(),
            senders: format!("kernel:{algorithm}"),
            shadows: String::new(),
            base_station: None,
        }
    }

    /// The kernel's algorithm, if the arm runs its TCP.
    pub fn algorithm(&self) -> Option<&str> {
        kernel_tcp::algorithm(&self.senders)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WirePlan {
    pub ends: (u32, u32),
    pub bits_per_second: u64,
    pub delay: Duration,
    /// Queue at each end (default: as in the radio).
    pub queue_packets: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    pub from: u32,
    pub to: u32,
    /// The start on the world's clock, as `stop` is.
    pub start: Duration,
    /// New transfers and requests end then, and endless data is cut off.
    pub stop: Option<Duration>,
    /// True if its data stands in its own row and in no total.
    pub is_background: bool,
    pub traffic: TrafficPlan,
}

impl FlowPlan {
    /// A flow in the foreground, to the end of the run.
    pub fn new(from: u32, to: u32, start: Duration, traffic: TrafficPlan) -> FlowPlan {
        FlowPlan { from, to, start, stop: None, is_background: false, traffic }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrafficPlan {
    Tcp(Arc<TcpPlan>),
    Datagrams {
        bytes: u16,
        /// Nanoseconds from one to the next; none: as many as leave.
        every: Option<Amount>,
        hop_limit: u8,
    },
    /// Datagrams that the other end sends back.
    Probe {
        bytes: u16,
        /// Nanoseconds from one to the next.
        every: Amount,
        hop_limit: u8,
    },
}

/// Traffic of two programs over TCP. The one at `from` opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpPlan {
    pub tcp: Arc<TcpConfig>,
    pub talk: Talk,
    /// Nanoseconds between the end of one transfer or request and the next.
    pub think: Amount,
    /// Number of transfers or requests; none: until the end.
    pub times: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// A connection that never runs out of data.
    Endless(Directions),
    /// A connection for each transfer.
    Transfers { bytes: Amount, directions: Directions },
    /// One connection, a request at a time.
    Requests { request: Amount, response: Amount },
}

/// Direction of bulk data, seen from the node that opens the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "DirectionName")]
pub enum Directions {
    /// Data goes to the peer.
    #[default]
    Forth,
    /// Data comes from the peer.
    Back,
    /// Data goes both ways.
    Both,
}

impl Directions {
    pub fn has_forth(self) -> bool {
        self != Directions::Back
    }

    pub fn has_back(self) -> bool {
        self != Directions::Forth
    }
}

impl Talk {
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

    pub fn datagrams(bytes: u16, every: Option<Amount>, routing: &RoutingPlan) -> TrafficPlan {
        TrafficPlan::Datagrams { bytes, every, hop_limit: of_datagrams(routing) }
    }

    pub fn probe(bytes: u16, every: Amount, routing: &RoutingPlan) -> TrafficPlan {
        TrafficPlan::Probe { bytes, every, hop_limit: of_datagrams(routing) }
    }

    /// Links that a packet crosses at the most.
    pub fn hop_limit(&self) -> u8 {
        match self {
            TrafficPlan::Tcp(plan) => plan.tcp.hop_limit,
            TrafficPlan::Datagrams { hop_limit, .. } | TrafficPlan::Probe { hop_limit, .. } => *hop_limit,
        }
    }
}

/// The hop limit of datagrams.
fn of_datagrams(routing: &RoutingPlan) -> u8 {
    routing.data_hop_limit().unwrap_or(UdpOptions::default().hop_limit)
}

impl Plan {
    pub fn begins(&self) -> Instant {
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        Instant::ZERO + first
    }

    pub fn counts_from(&self) -> Instant {
        self.begins() + self.warmup
    }

    /// The counted time is divided into intervals of this length.
    pub fn interval(&self) -> Duration {
        self.duration.saturating_sub(self.warmup) / INTERVALS
    }

    pub fn end(&self) -> Instant {
        self.begins() + self.duration
    }
}
