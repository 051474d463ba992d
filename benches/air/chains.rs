//! One bulk flow over a chain of nodes 200 m apart, with our TCP in the nodes: with an ACK for each segment over ns-2's
//! AODV, as ns-2 itself runs it in turn (`ns2.rs`), and under `delayed` over static routes.

use std::slice;
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

use crate::row::{Better, Row, in_turn, median_of};
use crate::{cpu, ns2};

const UNIT: &str = "simulated s/CPU s";

/// A radio's profile, its rate in Mbit/s for ns-2, and how long a run takes.
const PROFILES: [(&str, u32, u64); 2] = [("dsss-2mbps", 2, 300), ("dsss-11mbps", 11, 100)];
const HOPS: [u32; 4] = [1, 8, 15, 29];

/// The least speed, as a multiple of ns-2's.
fn wanted(hops: u32) -> Option<f64> {
    match hops {
        8 => Some(12.0),
        15 | 29 => Some(15.0),
        _ => None,
    }
}

/// Under AODV a flow stands still now and then, more or less often by the seed.
const SEEDS: u64 = 5;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (profile, mbps, seconds) in PROFILES {
        for hops in HOPS {
            rows.push(under_aodv((profile, hops, seconds), mbps));
            let plan = plan((profile, hops, seconds), RoutingPlan::default(), "delayed");
            let ours = median_of(|| speed(slice::from_ref(&plan)));
            rows.push(Row::alone(format!("{profile} {hops} hops, static, delayed"), UNIT, ours));
        }
    }
    rows
}

/// A flow with an ACK for each segment over ns-2's AODV, in turn with ns-2 itself where it is installed.
fn under_aodv((profile, hops, seconds): (&str, u32, u64), mbps: u32) -> Row {
    let routing = || RoutingPlan::under("aodv", RuleSet::Ns2);
    let plans: Vec<_> = (1..=SEEDS)
        .map(|seed| Plan { seed, ..plan((profile, hops, seconds), routing(), "immediate") })
        .collect();
    let name = format!("{profile} {hops} hops, AODV, immediate");
    if !ns2::is_installed() {
        return Row::alone(name, UNIT, median_of(|| speed(&plans)));
    }
    let simulated = (SEEDS * seconds) as f64;
    let theirs = || {
        let cpu = |seed| ns2::cpu_seconds(hops, mbps, seconds, seed);
        simulated / (1..=SEEDS).map(cpu).sum::<f64>()
    };
    let (ours, theirs) = in_turn(|| speed(&plans), theirs);
    let row = Row::beside(name, UNIT, Better::More, ours, (ns2::NAME, theirs));
    match wanted(hops) {
        Some(goal) => row.meant_to_be(goal),
        None => row,
    }
}

/// Simulated seconds in a second of CPU time.
fn speed(plans: &[Plan]) -> f64 {
    let simulated: f64 = plans.iter().map(|plan| plan.duration.as_secs_f64()).sum();
    let run = |plan| drop(hopwise_lab::sim::run(plan).expect("a sound plan"));
    simulated / cpu::seconds(|| plans.iter().for_each(run))
}

fn plan((profile, hops, seconds): (&str, u32, u64), routing: RoutingPlan, receiver: &str) -> Plan {
    let tcp = routing.limit_hops(TcpConfig::ns2(1000));
    Plan {
        positions: (0..=hops).map(|n| Some(Position { x: 200.0 * f64::from(n), y: 0.0 })).collect(),
        macs: Vec::new(),
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
            thin: None,
        },
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        seed: 1,
        trace_events: 0,
    }
}
