//! What a run is made of, once names and units are resolved.

use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::Profile;
use hopwise_air::channel::Channel;
use hopwise_air::dcf::MacConfig;
use hopwise_air::medium::{Place, Radio};
use hopwise_air::motion::Track;
use hopwise_air::phy::Phy;
use hopwise_core::Instant;
use hopwise_core::tcp::TcpConfig;
use hopwise_mesh::WhenFull;

#[derive(Clone, Debug)]
pub struct Plan {
    /// Where each node's radio stands; `None`: it has wires alone.
    pub places: Vec<Option<Place>>,
    /// How nodes move; empty: nobody does.
    pub tracks: Vec<Option<Track>>,
    pub wires: Vec<WirePlan>,
    pub phy: Phy,
    pub radio: Radio,
    pub channel: Channel,
    pub mac: MacConfig,
    pub queue_packets: usize,
    pub when_full: WhenFull,
    /// Which defaults the agents have.
    pub profile: Profile,
    pub flows: Vec<FlowPlan>,
    pub arm: Arm,
    /// From the first flow's start.
    pub duration: Duration,
    /// Of which this is not counted.
    pub warmup: Duration,
    pub seed: u64,
    /// Events that each endpoint keeps until they are drained; 0 when nobody reads them.
    pub trace_events: usize,
}

/// The agents under trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    pub name: String,
    pub receiver: String,
    pub senders: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WirePlan {
    pub ends: (u32, u32),
    pub bits_per_second: u64,
    pub delay: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    pub from: u32,
    pub to: u32,
    pub start: Duration,
    pub traffic: TrafficPlan,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrafficPlan {
    /// A TCP connection that never runs out of data.
    Bulk { tcp: Arc<TcpConfig> },
    /// Datagrams of so many bytes, one each interval; none: as many as leave.
    Datagrams { bytes: u16, every: Option<Duration> },
}

impl Plan {
    pub fn begins(&self) -> Instant {
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        Instant::ZERO + first
    }

    pub fn counts_from(&self) -> Instant {
        self.begins() + self.warmup
    }

    pub fn end(&self) -> Instant {
        self.begins() + self.duration
    }
}
