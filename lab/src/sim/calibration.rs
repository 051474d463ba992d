//! ns-2 2.35's measurements as plans: the places of nodes, the flows, the durations. No setting is tuned to a row.

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

use super::{Arm, FlowPlan, Plan, RoutingPlan, TrafficPlan, WirePlan};

/// Chains under static routes and AODV: `profile,routing,agent,hops,goodput_kbps`.
const CHAINS: &str = include_str!("../../calibration/ns2_chain.csv");
/// Cells, hidden stations, parallel and crossing flows, wires before radios.
const TOPOLOGIES: &str = include_str!("../../calibration/ns2_topologies.csv");

/// A cell of a table: its setting and ns-2's mean.
#[derive(Clone, Debug)]
pub struct CalibrationRow {
    /// The name of the setting.
    pub name: String,
    /// The protocol, and its rules where ns-2 had several.
    pub routing: String,
    /// The goodput of all flows together, in kbit/s.
    pub kbps: f64,
    /// Jain's index of the flows' goodputs.
    pub jain: f64,
    case: String,
    /// The name of the physical layer's profile.
    pub profile: String,
    /// The TCP of the flows, in ns-2's words.
    pub agent: String,
    /// The details, such as `hops:4/n:2`.
    pub detail: String,
}

/// The parts of a row's plan.
#[derive(Clone, Debug)]
pub struct CalibrationCell {
    positions: Vec<Option<Position>>,
    wires: Vec<WirePlan>,
    flows: Vec<FlowPlan>,
    radio: Radio,
    rts_threshold: Option<u32>,
    profile: String,
    routing: RoutingPlan,
    agent: String,
}

/// The chains' rows.
pub fn chains() -> impl Iterator<Item = CalibrationRow> {
    CHAINS.lines().skip(1).map(|line| {
        let fields: Vec<_> = line.split(',').collect();
        let [profile, routing, agent, hops, kbps] = fields[..] else { panic!("five fields: {line}") };
        CalibrationRow {
            name: format!("{profile} {routing} {agent} {hops} hops"),
            routing: routing.into(),
            kbps: kbps.parse().expect("kbit/s"),
            jain: 1.0,
            case: "chain-parallel".into(),
            profile: profile.into(),
            agent: agent.into(),
            detail: format!("hops:{hops}/n:1"),
        }
    })
}

/// The totals of the other topologies.
pub fn topologies() -> impl Iterator<Item = CalibrationRow> {
    TOPOLOGIES.lines().skip(1).filter_map(|line| {
        let fields: Vec<_> = line.split(',').collect();
        let [case, profile, routing, agent, detail, flow, _, kbps, _, jain] = fields[..] else {
            panic!("ten fields: {line}")
        };
        (flow == "total").then(|| CalibrationRow {
            name: format!("{profile} {case} {agent} {detail}"),
            routing: routing.into(),
            kbps: kbps.parse().expect("kbit/s"),
            jain: jain.parse().expect("an index"),
            case: case.into(),
            profile: profile.into(),
            agent: agent.into(),
            detail: detail.into(),
        })
    })
}

impl CalibrationRow {
    /// The nodes and flows of the row.
    pub fn cell(&self) -> CalibrationCell {
        let mut cell = CalibrationCell {
            positions: Vec::new(),
            wires: Vec::new(),
            flows: Vec::new(),
            radio: Radio::default(),
            rts_threshold: Some(0),
            profile: self.profile.clone(),
            routing: match self.routing.as_str() {
                "aodv" => RoutingPlan::under("aodv", RuleSet::Ns2),
                _ => RoutingPlan::default(),
            },
            agent: self.agent.clone(),
        };
        match self.case.as_str() {
            "cell-udp" => self.circle(&mut cell),
            "cell-tcp" if self.text("lay") == Some("pair") => {
                cell.positions = chain(1);
                cell.flows = (0..self.number("n")).map(|n| cell.bulk(n, 0, 1)).collect();
            }
            "cell-tcp" => self.circle(&mut cell),
            "hidden" => self.hidden(&mut cell),
            "chain-parallel" => {
                let hops = self.number("hops");
                cell.positions = chain(hops);
                cell.flows = (0..self.number("n")).map(|n| cell.bulk(n, 0, hops)).collect();
            }
            "cross" => cross(&mut cell),
            "hybrid" => self.hybrid(&mut cell),
            other => panic!("an unknown case: {other}"),
        }
        cell
    }

    /// The number of hops of a chain.
    pub fn hops(&self) -> Option<u32> {
        self.text("hops").and_then(|text| text.parse().ok())
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.detail.split('/').find_map(|part| part.strip_prefix(key)?.strip_prefix(':'))
    }

    fn number(&self, key: &str) -> u32 {
        self.text(key).and_then(|text| text.parse().ok()).expect("a number")
    }

    /// The receiver in the centre, the senders evenly on a circle of 100 m.
    fn circle(&self, cell: &mut CalibrationCell) {
        let stations = self.number("n");
        let on_circle = |n: u32| {
            let angle = f64::from(n) * std::f64::consts::TAU / f64::from(stations);
            Position { x: 100.0 * angle.cos(), y: 100.0 * angle.sin() }
        };
        let circle = (0..stations).map(on_circle);
        cell.positions = std::iter::once(Position::default()).chain(circle).map(Some).collect();
        let is_udp = self.case == "cell-udp";
        let flow = |n| if is_udp { cell.datagrams(n, n + 1, 0) } else { cell.bulk(n, n + 1, 0) };
        cell.flows = (0..stations).map(flow).collect();
        self.set_rts(cell);
    }

    fn set_rts(&self, cell: &mut CalibrationCell) {
        if self.text("rts") == Some("off") {
            cell.rts_threshold = None;
        }
    }

    /// A, B, C on a line; A and C send to B.
    fn hidden(&self, cell: &mut CalibrationCell) {
        let (a, c) = (self.number("da"), self.number("dc"));
        cell.positions = [0, a, a + c].map(|x| Some(Position { x: x.into(), y: 0.0 })).to_vec();
        cell.flows = vec![cell.datagrams(0, 0, 1), cell.datagrams(1, 2, 1)];
        if self.number("cs") == 250 {
            cell.radio.sense_w = cell.radio.receive_w;
        }
        self.set_rts(cell);
    }

    /// A wired node, a base station, mobiles.
    fn hybrid(&self, cell: &mut CalibrationCell) {
        let hops = self.number("hops");
        cell.positions = std::iter::once(None).chain(chain(hops)).collect();
        let (bits_per_second, delay) = (10_000_000, Duration::from_millis(50));
        cell.wires = vec![WirePlan { ends: (0, 1), bits_per_second, delay, queue_packets: None }];
        cell.flows = (0..self.number("n")).map(|n| cell.bulk(n, 0, hops + 1)).collect();
    }
}

fn chain(hops: u32) -> Vec<Option<Position>> {
    (0..=hops).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect()
}

/// Row and column share the centre: 0..5 from west to east, 5, 6, 7, 8 from south to north without it.
fn cross(cell: &mut CalibrationCell) {
    cell.positions = chain(4);
    let column = [-400.0, -200.0, 200.0, 400.0].map(|y| Some(Position { x: 400.0, y }));
    cell.positions.extend(column);
    cell.flows = vec![cell.bulk(0, 0, 4), cell.bulk(1, 5, 8)];
}

impl CalibrationCell {
    /// The nth flow begins a tenth of a second after the one before.
    fn bulk(&self, n: u32, from: u32, to: u32) -> FlowPlan {
        let start = Duration::from_millis(1_000 + 100 * u64::from(n));
        let tcp = self.routing.limit_hops(TcpConfig::ns2(1000));
        FlowPlan::new(from, to, start, TrafficPlan::bulk(Arc::new(tcp)))
    }

    fn datagrams(&self, n: u32, from: u32, to: u32) -> FlowPlan {
        let start = Duration::from_millis(1_000 + u64::from(n));
        FlowPlan::new(
            from,
            to,
            start,
            TrafficPlan::Datagrams { bytes: 1_000, every: None, marks: self.routing.marks(0) },
        )
    }

    /// The plan of the row's run with this seed.
    pub fn plan(&self, seed: u64) -> Plan {
        let (duration, warmup) = if self.profile == "dsss-2mbps" { (300, 50) } else { (100, 0) };
        let (receiver, senders) = match self.agent.as_str() {
            "delayed-2" => ("delayed", "[newreno]"),
            "immediate+window4" => ("immediate", "[newreno, limit:4]"),
            _ => ("immediate", "[newreno]"),
        };
        Plan {
            positions: self.positions.clone(),
            wires: self.wires.clone(),
            phy: Phy::named(&self.profile).expect("a profile"),
            radio: self.radio,
            channel: Channel::default(),
            tracks: Vec::new(),
            mac: MacConfig {
                rules: MacRules::Ns2,
                rts_threshold: self.rts_threshold,
                ..MacConfig::default()
            },
            arp: Arp::Known,
            linux_queue: None,
            queue_packets: 50,
            when_full: WhenFull::Drop,
            routing: self.routing.clone(),
            profile: Profile::Ns2,
            flows: self.flows.clone(),
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
