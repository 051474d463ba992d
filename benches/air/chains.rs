//! One bulk flow over a chain of nodes 200 m apart, with our TCP in the nodes.

use std::sync::Arc;
use std::time::Duration;

use hopwise::sim::{Arm, FlowPlan, Plan, RoutingPlan, TrafficPlan};
use hopwise_agents::Profile;
use hopwise_air::Arp;
use hopwise_air::channel::Channel;
use hopwise_air::dcf::{MacConfig, Rules};
use hopwise_air::medium::{Place, Radio};
use hopwise_air::phy::Phy;
use hopwise_core::tcp::TcpConfig;
use hopwise_mesh::WhenFull;

use crate::cpu;
use crate::row::{Better, Row, median_of};

const NS2: &str = "ns-2 2.35";

/// Hops, and what ns-2 reaches there.
const TWO_MBPS: [(u32, Option<f64>); 4] = [(1, Some(804.0)), (8, Some(409.0)), (15, Some(305.0)), (29, None)];
const ELEVEN_MBPS: [(u32, Option<f64>); 4] =
    [(1, Some(356.0)), (8, Some(204.0)), (15, None), (29, Some(122.0))];

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (profile, lengths, seconds) in [("dsss-2mbps", TWO_MBPS, 300), ("dsss-11mbps", ELEVEN_MBPS, 100)] {
        for (hops, theirs) in lengths {
            let plan = plan(profile, hops, seconds);
            let ours = median_of(|| {
                seconds as f64 / cpu::seconds(|| drop(hopwise::sim::run(&plan).expect("a sound plan")))
            });
            let (name, unit) = (format!("{profile} {hops} hops"), "simulated s/CPU s");
            rows.push(match theirs {
                Some(theirs) => Row::beside(name, unit, Better::More, ours, (NS2, theirs)),
                None => Row::alone(name, unit, ours),
            });
        }
    }
    rows
}

fn plan(profile: &str, hops: u32, seconds: u64) -> Plan {
    Plan {
        places: (0..=hops).map(|n| Some(Place { x: 200.0 * f64::from(n), y: 0.0 })).collect(),
        wires: Vec::new(),
        phy: Phy::named(profile).expect("a profile"),
        radio: Radio::default(),
        channel: Channel::default(),
        tracks: Vec::new(),
        mac: MacConfig { rules: Rules::Ns2, ..MacConfig::default() },
        arp: Arp::Known,
        queue_packets: 50,
        when_full: WhenFull::Drop,
        routing: RoutingPlan::Static,
        profile: Profile::Ns2,
        flows: vec![FlowPlan::new(
            0,
            hops,
            Duration::ZERO,
            TrafficPlan::bulk(Arc::new(TcpConfig::ns2(1000))),
        )],
        rules: Vec::new(),
        gateway: None,
        arm: Arm {
            name: "x".into(),
            receiver: "delayed".into(),
            senders: "[newreno]".into(),
            shadows: "[]".into(),
            base_station: None,
        },
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        seed: 1,
        trace_events: 0,
    }
}
