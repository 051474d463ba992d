//! Results of a run.

use std::time::Duration;

use hopwise_air::World;
use hopwise_air::airtime::{Airtime, Load};
use hopwise_air::dcf::StationStats;
use hopwise_core::agent::HopSource;
use hopwise_core::tcp::ConnectionStats;

use super::host::Host;
use super::names::address_of;
use super::plan::{Directions, FlowPlan, Plan, TrafficPlan};
use super::programs::{AgentsAtEnd, Completions, Flow};

#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    pub counted_s: f64,
    pub flows: Vec<FlowResult>,
    pub air: AirTotals,
    pub nodes: Vec<NodeResult>,
    /// The numbers of route discoveries, and of routes that broke.
    pub discoveries: u64,
    pub route_failures: u64,
    pub events: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeResult {
    pub stats: StationStats,
    pub queue_drops: u64,
    /// Airtime of the station, if that was booked.
    pub airtime: Option<Airtime>,
}

/// One direction of a flow's data.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Its number in the plan.
    pub flow: u16,
    pub direction: Direction,
    /// The source of this data, whichever end opened.
    pub from: u32,
    pub to: u32,
    /// The hops and their source.
    pub hops: Option<(u8, HopSource)>,
    /// Bytes in order, to the application, in the counted time.
    pub counted_bytes: u64,
    pub bytes_delivered: u64,
    pub goodput_kbps: f64,
    pub sender: ConnectionStats,
    pub receiver: ConnectionStats,
    /// ACKs that each shadow at `to` would have sent.
    pub shadow_acks: Vec<u64>,
    pub shadow_holds: Vec<Duration>,
    /// The agents of the last connection: the receiver at `to`, the senders at `from`.
    pub agents: Option<AgentsAtEnd>,
    /// Completions of transfers and requests, with the first row of a flow.
    pub completions: Option<Completions>,
    pub is_background: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The only direction that has data, or the opener's.
    First,
    /// The other one.
    Back,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AirTotals {
    pub frames_sent: u64,
    pub collisions: u64,
    pub retry_drops: u64,
    pub queue_drops: u64,
    pub airtime_s: f64,
    /// The parts of `airtime_s` for segments with payload, for those without, and for the rest, each with its RTS, CTS
    /// and ACK.
    pub airtime_s_by_load: [f64; Load::ALL.len()],
}

impl Results {
    /// Flows that count in totals.
    fn foreground(&self) -> impl Iterator<Item = &FlowResult> {
        self.flows.iter().filter(|flow| !flow.is_background)
    }

    pub fn total_kbps(&self) -> f64 {
        // Starts from +0: an empty sum of floats is -0.
        self.foreground().fold(0.0, |total, flow| total + flow.goodput_kbps)
    }

    /// Jain's index of the flows' goodputs, each with both directions together; 1 for equal shares.
    pub fn jain(&self) -> f64 {
        let mut shares: Vec<(u16, f64)> = Vec::new();
        for row in self.foreground() {
            match shares.last_mut() {
                Some((flow, kbps)) if *flow == row.flow => *kbps += row.goodput_kbps,
                _ => shares.push((row.flow, row.goodput_kbps)),
            }
        }
        let squares: f64 = shares.iter().map(|(_, kbps)| kbps * kbps).sum();
        let total: f64 = shares.iter().map(|(_, kbps)| kbps).sum();
        if squares == 0.0 { 1.0 } else { total * total / (shares.len() as f64 * squares) }
    }
}

pub(super) fn of(plan: &Plan, world: &World<Host>) -> Results {
    let counted = plan.duration.saturating_sub(plan.warmup);
    let counted_s = counted.as_micros() as f64 / 1e6;
    let rows = |(flow, index): (&FlowPlan, u16)| {
        let directions = match &flow.traffic {
            TrafficPlan::Tcp(tcp) => tcp.talk.directions(),
            TrafficPlan::Datagrams { .. } => Directions::Forth,
        };
        let forth = directions.has_forth().then(|| row(world, flow, index, (Direction::First, counted_s)));
        let second = if directions == Directions::Both { Direction::Back } else { Direction::First };
        let turned = FlowPlan { from: flow.to, to: flow.from, ..flow.clone() };
        let back = directions.has_back().then(|| row(world, &turned, index, (second, counted_s)));
        forth.into_iter().chain(back)
    };
    let flows = plan.flows.iter().zip(0..).flat_map(rows);
    let (mut discoveries, mut route_failures) = (0, 0);
    for host in world.machines() {
        let (found, broken) = host.node().routing().counts();
        discoveries += found;
        route_failures += broken;
    }
    let node = |(host, station): (&Host, u32)| NodeResult {
        stats: *world.stats(station),
        queue_drops: host.node().queue_drops(),
        airtime: world.airtime(station),
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

/// Data from `from` to `to`.
fn row(
    world: &World<Host>,
    flow: &FlowPlan,
    index: u16,
    (direction, counted_s): (Direction, f64),
) -> FlowResult {
    let [from, to] = [flow.from, flow.to].map(|node| &world.machines()[node as usize]);
    let end = |host: &'_ Host| host.flows().iter().position(|flow| flow.index == index);
    let counted =
        |host: &Host| end(host).map(|nth| host.counted(world.now(), &host.flows()[nth])).unwrap_or_default();
    let receiver = counted(to);
    let [sends, receives]: [Option<&Flow>; 2] =
        [from, to].map(|host| end(host).map(|nth| &host.flows()[nth]));
    let tally = receives.map(Flow::tally).unwrap_or_default();
    let goodput_kbps =
        if counted_s > 0.0 { tally.counted_bytes as f64 * 8.0 / counted_s / 1000.0 } else { 0.0 };
    let agents = |flow: Option<&Flow>, host: &Host| flow?.agents(world.now(), host.node());
    let agents = agents(receives, to).zip(agents(sends, from)).map(|(to, from)| {
        let AgentsAtEnd { senders, senders_lack, .. } = from;
        AgentsAtEnd { senders, senders_lack, ..to }
    });
    let opener = [sends, receives].into_iter().flatten().find(|flow| flow.is_opener());
    let completions = opener.filter(|_| direction == Direction::First).and_then(Flow::completions);
    let at_end = from.node().path(address_of(flow.to)).hops_to_peer;
    FlowResult {
        flow: index,
        direction,
        from: flow.from,
        to: flow.to,
        hops: sends.and_then(Flow::hops).or(at_end),
        counted_bytes: tally.counted_bytes,
        bytes_delivered: tally.bytes,
        goodput_kbps,
        sender: counted(from).stats,
        receiver: receiver.stats,
        shadow_acks: receiver.shadow_acks,
        shadow_holds: receiver.shadow_holds,
        agents,
        completions,
        is_background: flow.is_background,
    }
}

fn air(world: &World<Host>) -> AirTotals {
    let (mut totals, mut airtime_ns, mut by_load) = (AirTotals::default(), 0, [0; Load::ALL.len()]);
    for (host, station) in world.machines().iter().zip(0..) {
        let stats = world.stats(station);
        totals.frames_sent += stats.frames_sent.total();
        totals.collisions += stats.collisions;
        totals.retry_drops += stats.retry_drops;
        totals.queue_drops += host.node().queue_drops();
        airtime_ns += stats.airtime_ns;
        by_load.iter_mut().zip(stats.airtime_ns_by_load).for_each(|(sum, ns)| *sum += ns);
    }
    totals.airtime_s = airtime_ns as f64 / 1e9;
    totals.airtime_s_by_load = by_load.map(|ns| ns as f64 / 1e9);
    totals
}
