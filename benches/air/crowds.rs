//! The growth of cost with nodes: grids of one density, a bulk flow over three hops for every ten nodes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::Profile;
use hopwise_air::Arp;
use hopwise_air::channel::Channel;
use hopwise_air::dcf::MacConfig;
use hopwise_air::medium::{Position, Radio};
use hopwise_air::motion::{Leg, NodeTrack};
use hopwise_air::phy::Phy;
use hopwise_core::tcp::TcpConfig;
use hopwise_lab::sim::{Arm, FlowPlan, Plan, RoutingPlan, TrafficPlan};
use hopwise_mesh::WhenFull;

use crate::cpu;
use crate::row::{Row, median_of};

const SECONDS: u64 = 10;
const WORK: &str = "--work";

pub(crate) fn rows() -> Vec<Row> {
    let (few, _) = cost(10, 10, Nodes::Stand);
    let (many, kib) = cost(40, 25, Nodes::Stand);
    let (moving, _) = cost(40, 25, Nodes::Move);
    vec![
        Row::alone("100 nodes, 10 flows", "us/node-second", few),
        Row::alone("1000 nodes, 100 flows", "us/node-second", many),
        Row::alone("1000 nodes against 100", "times", many / few).meant_to_be(1.2),
        Row::alone("1000 nodes, memory", "KiB/node", kib).meant_to_be(200.0),
        Row::alone("1000 nodes that move, 100 flows", "us/node-second", moving),
        Row::alone("1000 nodes that move against still", "times", moving / many),
    ]
}

/// Runs one grid once and nothing else, for a profiler, if the command line asks for it.
pub(crate) fn works() -> bool {
    let words: Vec<String> = std::env::args().skip_while(|word| word != WORK).skip(1).collect();
    let [columns, rows] = words.as_slice() else { return false };
    let number = |word: &String| word.parse().expect("--work COLUMNS ROWS: expected two numbers");
    drop(hopwise_lab::sim::run(&plan(number(columns), number(rows))).expect("a sound plan"));
    true
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nodes {
    Stand,
    /// A millimetre a second: no frame changes, and the cost is what possible motion costs.
    Move,
}

/// CPU microseconds for a second of a node, and the most memory of one.
fn cost(columns: u32, rows: u32, what: Nodes) -> (f64, f64) {
    let nodes = columns * rows;
    let mut plan = plan(columns, rows);
    if what == Nodes::Move {
        let track = |position: &Option<Position>| {
            let start = (*position)?;
            let end = Position { x: start.x, y: start.y + 1.0 };
            Some(NodeTrack::Legs(VecDeque::from([Leg::towards(0, start, end, 0.001)])))
        };
        plan.tracks = plan.positions.iter().map(track).collect();
    }
    let seconds = median_of(|| cpu::seconds(|| drop(hopwise_lab::sim::run(&plan).expect("a sound plan"))));
    let kib = cpu::peak_rss_kib() as f64 / f64::from(nodes);
    (seconds * 1e6 / f64::from(nodes) / SECONDS as f64, kib)
}

fn plan(columns: u32, rows: u32) -> Plan {
    let position = |n: u32| Position { x: 200.0 * f64::from(n % columns), y: 200.0 * f64::from(n / columns) };
    let flow = |index: u32| {
        let from = index * 10 / columns * columns + (index * 10 % columns + index % 3) % (columns - 3);
        let traffic = TrafficPlan::bulk(Arc::new(TcpConfig { segment_bytes: 1000, ..TcpConfig::modern() }));
        FlowPlan::new(from, from + 3, Duration::from_millis(index.into()), traffic)
    };
    Plan {
        positions: (0..columns * rows).map(|n| Some(position(n))).collect(),
        macs: Vec::new(),
        wires: Vec::new(),
        phy: Phy::named("dsss-2mbps").expect("a profile"),
        radio: Radio::default(),
        channel: Channel::default(),
        tracks: Vec::new(),
        mac: MacConfig::default(),
        arp: Arp::Known,
        linux_queue: None,
        queue_packets: 50,
        when_full: WhenFull::Drop,
        routing: RoutingPlan::default(),
        profile: Profile::Modern,
        flows: (0..columns * rows / 10).map(flow).collect(),
        rules: Vec::new(),
        gateway: None,
        arm: Arm {
            name: "x".into(),
            receiver: "delayed".into(),
            senders: "[cubic]".into(),
            shadows: "[]".into(),
            base_station: None,
            transparent: false,
            thin: None,
        },
        duration: Duration::from_secs(SECONDS),
        warmup: Duration::ZERO,
        seed: 1,
        trace_events: 0,
    }
}
