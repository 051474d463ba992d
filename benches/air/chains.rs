//! One bulk flow over a chain of nodes 200 m apart, with our TCP in the nodes. It runs like ns-2's figures (its AODV,
//! `dca`), and under `delayed` over static routes.

use std::sync::Arc;
use std::time::Duration;

use hopwise_agents::Profile;
use hopwise_air::Arp;
use hopwise_air::channel::Channel;
use hopwise_air::dcf::{MacConfig, MacRules};
use hopwise_air::medium::{Position, Radio};
use hopwise_air::phy::Phy;
use hopwise_core::tcp::TcpConfig;
use hopwise_lab::sim::{Arm, FlowPlan, Plan, RoutingPlan, TrafficPlan};
use hopwise_mesh::WhenFull;
use hopwise_mesh::constants::RuleSet;

use crate::cpu;
use crate::row::{Better, Row, median_of};

const NS2: &str = "ns-2 2.35";
const UNIT: &str = "simulated s/CPU s";

/// Hops, and ns-2's speed there.
const TWO_MBPS: [(u32, Option<f64>); 4] = [(1, Some(804.0)), (8, Some(409.0)), (15, Some(305.0)), (29, None)];
const ELEVEN_MBPS: [(u32, Option<f64>); 4] =
    [(1, Some(356.0)), (8, Some(204.0)), (15, None), (29, Some(122.0))];

/// The least speed, as a multiple of ns-2's.
fn wanted(profile: &str, hops: u32) -> Option<f64> {
    match (profile, hops) {
        ("dsss-2mbps", 8) => Some(25.0),
        (_, 15 | 29) => Some(15.0),
        _ => None,
    }
}

/// Under AODV a flow stands still now and then, more or less often by the seed.
const SEEDS: u64 = 5;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (profile, lengths, seconds) in [("dsss-2mbps", TWO_MBPS, 300), ("dsss-11mbps", ELEVEN_MBPS, 100)] {
        for (hops, theirs) in lengths {
            if let Some(theirs) = theirs {
                let plans = (1..=SEEDS).map(|seed| {
                    let routing = RoutingPlan::under("aodv", RuleSet::Ns2);
                    Plan { seed, ..plan((profile, hops, seconds), routing, "dca") }
                });
                let ours = speed(&plans.collect::<Vec<_>>());
                let name = format!("{profile} {hops} hops, AODV, dca");
                let row = Row::beside(name, UNIT, Better::More, ours, (NS2, theirs));
                rows.push(match wanted(profile, hops) {
                    Some(goal) => row.meant_to_be(goal),
                    None => row,
                });
            }
            let ours = speed(&[plan((profile, hops, seconds), RoutingPlan::default(), "delayed")]);
            rows.push(Row::alone(format!("{profile} {hops} hops, static, delayed"), UNIT, ours));
        }
    }
    rows
}

/// Simulated seconds in a second of CPU time.
fn speed(plans: &[Plan]) -> f64 {
    let simulated: f64 = plans.iter().map(|plan| plan.duration.as_secs_f64()).sum();
    let run = |plan| drop(hopwise_lab::sim::run(plan).expect("a sound plan"));
    median_of(|| simulated / cpu::seconds(|| plans.iter().for_each(run)))
}

fn plan((profile, hops, seconds): (&str, u32, u64), routing: RoutingPlan, receiver: &str) -> Plan {
    let tcp = routing.limit_hops(TcpConfig::ns2(1000));
    Plan {
        positions: (0..=hops).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect(),
        wires: Vec::new(),
        phy: Phy::named(profile).expect("a profile"),
        radio: Radio::default(),
        channel: Channel::default(),
        tracks: Vec::new(),
        mac: MacConfig { rules: MacRules::Ns2, ..MacConfig::default() },
        arp: Arp::Known,
        linux_queue: None,
        queue_packets: 50,
        when_full: WhenFull::Drop,
        profile: Profile::Ns2,
        flows: vec![FlowPlan::new(0, hops, Duration::ZERO, TrafficPlan::bulk(Arc::new(tcp)))],
        routing,
        rules: Vec::new(),
        gateway: None,
        arm: Arm {
            name: "x".into(),
            receiver: receiver.into(),
            senders: "[newreno]".into(),
            shadows: "[]".into(),
            base_station: None,
            transparent: false,
        },
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        seed: 1,
        trace_events: 0,
    }
}
