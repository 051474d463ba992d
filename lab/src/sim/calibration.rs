//! ns-2 2.35's measurements of chains as plans. No setting is tuned to a row.

use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::Profile;
use hopwise_air::Arp;
use hopwise_air::channel::Channel;
use hopwise_air::dcf::{MacConfig, MacRules};
use hopwise_air::medium::{Position, Radio};
use hopwise_air::phy::Phy;
use hopwise_core::tcp::TcpConfig;
use hopwise_mesh::WhenFull;
use hopwise_mesh::constants::RuleSet;

use super::{Arm, FlowPlan, Plan, RoutingPlan, TrafficPlan};

/// Chains under static routes and AODV: `profile,routing,agent,hops,goodput_kbps`.
const CHAINS: &str = include_str!("../../calibration/ns2_chain.csv");

/// A chain of a table: its setting and ns-2's mean.
#[derive(Clone, Debug)]
pub struct CalibrationRow {
    /// The name of the physical layer's profile.
    pub profile: String,
    /// The protocol, and its rules where ns-2 had several.
    pub routing: String,
    /// The TCP of the flow, in ns-2's words.
    pub agent: String,
    /// The number of hops.
    pub hops: u32,
    /// The goodput, in kbit/s.
    pub kbps: f64,
}

/// The chains' rows.
pub fn chains() -> impl Iterator<Item = CalibrationRow> {
    CHAINS.lines().skip(1).map(|line| {
        let fields: Vec<_> = line.split(',').collect();
        let [profile, routing, agent, hops, kbps] = fields[..] else { panic!("five fields: {line}") };
        CalibrationRow {
            profile: profile.into(),
            routing: routing.into(),
            agent: agent.into(),
            hops: hops.parse().expect("hops"),
            kbps: kbps.parse().expect("kbit/s"),
        }
    })
}

/// The places of a chain's nodes.
pub fn places(hops: u32) -> Vec<Option<Position>> {
    (0..=hops).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect()
}

/// The nth flow of endless data. It begins a tenth of a second after the one before.
pub fn bulk(routing: &RoutingPlan, n: u32, (from, to): (u32, u32)) -> FlowPlan {
    let start = Duration::from_millis(1_000 + 100 * u64::from(n));
    FlowPlan::new(from, to, start, TrafficPlan::bulk(Arc::new(routing.limit_hops(TcpConfig::ns2(1000)))))
}

impl CalibrationRow {
    /// The plan of the row's run with this seed.
    pub fn plan(&self, seed: u64) -> Plan {
        let (duration, warmup) = if self.profile == "dsss-2mbps" { (300, 50) } else { (100, 0) };
        let (receiver, senders) = match self.agent.as_str() {
            "delayed-2" => ("delayed", "[newreno]"),
            "immediate+window4" => ("immediate", "[newreno, limit:4]"),
            _ => ("immediate", "[newreno]"),
        };
        let routing = match self.routing.as_str() {
            "aodv" => RoutingPlan::under("aodv", RuleSet::Ns2),
            _ => RoutingPlan::default(),
        };
        Plan {
            positions: places(self.hops),
            macs: Vec::new(),
            wires: Vec::new(),
            phy: Phy::named(&self.profile).expect("a profile"),
            radio: Radio::default(),
            channel: Channel::default(),
            tracks: Vec::new(),
            mac: MacConfig { rules: MacRules::Ns2, rts_threshold: Some(0), ..MacConfig::default() },
            arp: Arp::Known,
            linux_queue: None,
            queue_packets: 50,
            when_full: WhenFull::Drop,
            flows: vec![bulk(&routing, 0, (0, self.hops))],
            routing,
            profile: Profile::Ns2,
            rules: Vec::new(),
            arm: Arm {
                name: "x".into(),
                receiver: receiver.into(),
                senders: senders.into(),
                shadows: "[]".into(),
                base_station: None,
                transparent: false,
                thin: None,
            },
            gateway: None,
            duration: Duration::from_secs(duration),
            warmup: Duration::from_secs(warmup),
            seed,
            trace_events: 0,
        }
    }
}
