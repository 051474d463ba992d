//! What a run came to.

use hopwise_air::World;
use hopwise_air::dcf::StationStats;
use hopwise_air::ledger::Ledger;
use hopwise_core::tcp::ConnectionStats;

use super::build::address_of;
use super::host::{Flow, Host, Traffic};
use super::plan::Plan;

#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    pub counted_s: f64,
    pub flows: Vec<FlowResult>,
    pub air: AirTotals,
    pub nodes: Vec<NodeResult>,
    /// Routes asked for, and routes that broke.
    pub discoveries: u64,
    pub route_failures: u64,
    pub events: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeResult {
    pub stats: StationStats,
    pub queue_drops: u64,
    /// Where the station's time went, if that was booked.
    pub ledger: Option<Ledger>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    pub from: u32,
    pub to: u32,
    pub hops: Option<u8>,
    /// In order, to the application, in the counted time.
    pub counted_bytes: u64,
    pub bytes_delivered: u64,
    pub goodput_kbps: f64,
    pub sender: ConnectionStats,
    pub receiver: ConnectionStats,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AirTotals {
    pub frames_sent: u64,
    pub collisions: u64,
    pub retry_drops: u64,
    pub queue_drops: u64,
    pub airtime_s: f64,
}

impl Results {
    pub fn total_kbps(&self) -> f64 {
        self.flows.iter().map(|flow| flow.goodput_kbps).sum()
    }

    /// Jain's index of the flows' goodputs; 1 for equal shares.
    pub fn jain(&self) -> f64 {
        let squares: f64 = self.flows.iter().map(|flow| flow.goodput_kbps * flow.goodput_kbps).sum();
        let total = self.total_kbps();
        if squares == 0.0 { 1.0 } else { total * total / (self.flows.len() as f64 * squares) }
    }
}

pub(super) fn of(plan: &Plan, world: &World<Host>) -> Results {
    let counted = plan.duration.saturating_sub(plan.warmup);
    let counted_s = counted.as_micros() as f64 / 1e6;
    let flows = plan.flows.iter().zip(0..).map(|(flow, index)| {
        let end = |node: u32, is_end: fn(&Traffic) -> bool| {
            let host = &world.machines()[node as usize];
            let found = host.flows().iter().find(|flow: &&Flow| flow.index == index && is_end(&flow.traffic));
            let stats = found.and_then(|flow| host.stats(world.now(), flow)).unwrap_or_default();
            (stats, found.and_then(Flow::tally).copied().unwrap_or_default())
        };
        let is_sink = |t: &Traffic| matches!(t, Traffic::BulkSink { .. } | Traffic::DatagramSink { .. });
        let (sender, _) = end(flow.from, |t| matches!(t, Traffic::BulkSource { .. }));
        let (receiver, tally) = end(flow.to, is_sink);
        let goodput_kbps =
            if counted_s > 0.0 { tally.counted_bytes as f64 * 8.0 / counted_s / 1000.0 } else { 0.0 };
        let path = world.machines()[flow.from as usize].node().path(address_of(flow.to));
        FlowResult {
            from: flow.from,
            to: flow.to,
            hops: path.hops_to_peer.map(|(hops, _)| hops),
            counted_bytes: tally.counted_bytes,
            bytes_delivered: tally.bytes,
            goodput_kbps,
            sender,
            receiver,
        }
    });
    let (mut discoveries, mut route_failures) = (0, 0);
    for host in world.machines() {
        let (found, broken) = host.node().routing().counts();
        discoveries += found;
        route_failures += broken;
    }
    let node = |(host, station): (&Host, u32)| NodeResult {
        stats: *world.stats(station),
        queue_drops: host.node().queue_drops(),
        ledger: world.ledger(station),
    };
    Results {
        counted_s,
        flows: flows.collect(),
        air: air(world),
        nodes: world.machines().iter().zip(0..).map(node).collect(),
        discoveries,
        route_failures,
        events: world.events(),
    }
}

fn air(world: &World<Host>) -> AirTotals {
    let (mut totals, mut airtime_ns) = (AirTotals::default(), 0);
    for (host, station) in world.machines().iter().zip(0..) {
        let stats = world.stats(station);
        totals.frames_sent += stats.frames_sent.total();
        totals.collisions += stats.collisions;
        totals.retry_drops += stats.retry_drops;
        totals.queue_drops += host.node().queue_drops();
        airtime_ns += stats.airtime_ns;
    }
    totals.airtime_s = airtime_ns as f64 / 1e9;
    totals
}
