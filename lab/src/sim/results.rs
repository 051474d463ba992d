//! Results of a run.

use std::time::Duration;

use hopwise_air::RadioWorld;
use hopwise_air::airtime::{AirLoad, AirtimeBook};
use hopwise_air::dcf::{RateUse, StationStats};
use hopwise_air::waits::WaitHistogram;
use hopwise_core::Machine;
use hopwise_core::narrow::as_u32;
use hopwise_core::trace::DropReason;
use hopwise_mesh::Node;
use serde::{Deserialize, Serialize};

use super::host::SimHost;
use super::outages::OutageWatch;
use super::plan::{Directions, FlowPlan, Plan, TrafficPlan};
use crate::programs::{
    AgentsAtEnd, Bursts, CompletionTimes, Counted, CountedHops, EndResult, INTERVALS, Probed, Spread,
};
use crate::result::DatagramResult;

/// The measurements of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The seconds that results count: the duration without the warm-up.
    pub counted_s: f64,
    /// The flows, one entry for each direction with data.
    pub flows: Vec<FlowResult>,
    /// All radios together.
    pub air: AirTotals,
    /// Each node by itself.
    pub nodes: Vec<NodeResult>,
    /// The numbers of route discoveries, and of routes that broke.
    pub discoveries: u64,
    /// Routes that broke.
    pub route_failures: u64,
}

/// The measurements at one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeResult {
    /// The counters of its radio.
    pub stats: StationStats,
    /// Packets that found one of its interface queues full.
    pub queue_drops: u64,
    /// Airtime of the station, if that was booked.
    pub airtime: Option<AirtimeBook>,
    /// The waits of packets in its queues.
    pub waits: WaitsByLoad,
    /// The load that each rate has carried, under rate control.
    pub rates: Vec<RateUse>,
}

/// Times from the interface queue to the first frame, with its backoff. The mean is exact, the quantile within 1/64.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueWait {
    /// The number of packets.
    pub count: u64,
    /// The mean wait in milliseconds.
    pub mean_ms: f64,
    /// The wait in milliseconds that 95 % do not exceed.
    pub p95_ms: f64,
}

/// The waits of TCP's data and of its ACKs; none where there is no such packet, or the world does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WaitsByLoad {
    /// The waits of segments with payload.
    pub data: Option<QueueWait>,
    /// The waits of TCP's ACKs.
    pub acks: Option<QueueWait>,
}

impl QueueWait {
    fn of(waits: &WaitHistogram) -> Option<QueueWait> {
        let (mean_ns, p95_ns) = (waits.mean_ns()?, waits.quantile_ns(95)?);
        Some(QueueWait { count: waits.count(), mean_ms: mean_ns / 1e6, p95_ms: p95_ns / 1e6 })
    }
}

impl WaitsByLoad {
    /// The waits at these stations, together.
    fn at<M: Machine>(world: &RadioWorld<M>, stations: impl Iterator<Item = u32> + Clone) -> WaitsByLoad {
        let of = |load: AirLoad| {
            let mut all = WaitHistogram::default();
            stations.clone().for_each(|station| all.join(world.waits(station).of(load)));
            QueueWait::of(&all)
        };
        WaitsByLoad { data: of(AirLoad::TcpData), acks: of(AirLoad::TcpAck) }
    }
}

/// One direction of a flow's data.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Its number in the plan.
    pub flow: u16,
    /// The direction of this data within the flow.
    pub direction: DataDirection,
    /// The source of this data, whichever end opened.
    pub from: u32,
    /// The receiver of this data, by its number.
    pub to: u32,
    /// The hops between them, where they are known.
    pub hops: Option<CountedHops>,
    /// Bytes in order, to the application, in the counted time.
    pub counted_bytes: u64,
    /// Bytes in order, to the application, in the whole run.
    pub bytes_delivered: u64,
    /// `counted_bytes` over the counted time, in kbit/s.
    pub goodput_kbps: f64,
    /// Counters of the end at `from`.
    pub sender: Counted,
    /// Counters of the end at `to`.
    pub receiver: Counted,
    /// The part of the sender's timeouts that came while a link was out or announced to go; none without outages.
    pub timeouts_in_outages: Option<u32>,
    /// The mean smoothed round-trip time at `from`, where the world samples it.
    pub rtt: Option<Duration>,
    /// The round trips that TCP measured at `from`, where it tells each.
    pub round_trips: Option<Spread>,
    /// The agents of the last connection: the receiver at `to`, the senders at `from`.
    pub agents: Option<AgentsAtEnd>,
    /// Completions of transfers and requests, with the first row of a flow.
    pub completions: Option<CompletionTimes>,
    /// The counted bytes of each interval, up to the last one that had any.
    pub by_interval: Vec<u64>,
    /// The bursts in which `from` sent, where its TCP tells.
    pub bursts: Option<Bursts>,
    /// The fate of a probe's datagrams.
    pub probed: Option<Probed>,
    /// The fate of datagrams at a rate.
    pub datagrams: Option<DatagramResult>,
    /// It counts in no total.
    pub is_background: bool,
}

/// The direction of a flow's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataDirection {
    /// The only direction that has data, or the opener's.
    First,
    /// The other one.
    Back,
}

/// The packets that interface queues have dropped or marked, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTotals {
    /// All drops; absent where a world's kernels do not tell.
    pub drops: Option<u64>,
    /// CoDel's part of them; absent where no queue has CoDel.
    pub codel_drops: Option<u64>,
    /// The packets that CoDel has marked.
    pub marks: Option<u64>,
}

/// Holes in the numbers that receivers of aggregates got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReorderTotals {
    /// Missing packets that were waited for no longer.
    pub timeouts: u64,
    /// Those of them that came later and were dropped.
    pub late: u64,
}

/// The counters of all radios together, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AirTotals {
    /// Frames of all kinds that were sent.
    pub frames_sent: u64,
    /// Receptions that were lost to another frame at the addressee.
    pub collisions: u64,
    /// Packets that a radio gave up after its last try.
    pub retry_drops: u64,
    /// Effects of the reorder timeout; absent where radios have none.
    pub reorder: Option<ReorderTotals>,
    /// The packets that interface queues have dropped.
    pub queues: QueueTotals,
    /// The sum of all frames' durations, in seconds.
    pub airtime_s: f64,
    /// The parts of `airtime_s` by what the frames carried, in the order of [`AirLoad::ALL`], each with its RTS, CTS
    /// and ACK.
    pub airtime_s_by_load: [f64; AirLoad::ALL.len()],
    /// Over all radios.
    pub waits: WaitsByLoad,
}

impl Results {
    /// Flows that count in totals.
    fn foreground(&self) -> impl Iterator<Item = &FlowResult> {
        self.flows.iter().filter(|flow| !flow.is_background)
    }

    /// The sum of the foreground flows' goodputs, in kbit/s.
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
        jain(&shares.into_iter().map(|(_, kbps)| kbps).collect::<Vec<_>>()).unwrap_or(1.0)
    }

    /// The index of each interval of the counted time; none for one in which nothing arrived. One flow has none.
    pub(crate) fn jain_by_interval(&self) -> Vec<Option<f64>> {
        let mut shares: Vec<(u16, Vec<f64>)> = Vec::new();
        for row in self.foreground() {
            if shares.last().is_none_or(|(flow, _)| *flow != row.flow) {
                shares.push((row.flow, vec![0.0; INTERVALS as usize]));
            }
            let (_, share) = shares.last_mut().expect("it was just added");
            share.iter_mut().zip(&row.by_interval).for_each(|(sum, bytes)| *sum += *bytes as f64);
        }
        if shares.len() < 2 {
            return Vec::new();
        }
        let at = |nth: usize| jain(&shares.iter().map(|(_, share)| share[nth]).collect::<Vec<_>>());
        (0..INTERVALS as usize).map(at).collect()
    }

    /// The mean of these.
    pub(crate) fn jain_over_time(&self) -> Option<f64> {
        let known: Vec<f64> = self.jain_by_interval().into_iter().flatten().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}

/// Jain's index of shares; none where no flow has any.
fn jain(shares: &[f64]) -> Option<f64> {
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let total: f64 = shares.iter().sum();
    (squares != 0.0).then(|| total * total / (shares.len() as f64 * squares))
}

/// The end of a flow at a node.
type EndAt<'a> = dyn Fn(u32, u16) -> Option<EndResult> + 'a;

impl Plan {
    /// The time that results count, in seconds.
    pub fn counted_s(&self) -> f64 {
        self.duration.saturating_sub(self.warmup).as_micros() as f64 / 1e6
    }

    /// The results of all flows in order, from what their ends saw.
    pub fn flow_results(&self, end: &EndAt<'_>) -> Vec<FlowResult> {
        let rows = |(flow, index): (&FlowPlan, u16)| {
            let directions = match &flow.traffic {
                TrafficPlan::Tcp(tcp) => tcp.talk.directions(),
                TrafficPlan::Datagrams { .. } | TrafficPlan::Probe { .. } => Directions::Forth,
            };
            let row = |flow: &FlowPlan, direction| {
                let ends = [flow.from, flow.to].map(|node| end(node, index));
                FlowResult::new(flow, index, (direction, self.counted_s()), ends)
            };
            let forth = directions.has_forth().then(|| row(flow, DataDirection::First));
            let second =
                if directions == Directions::Both { DataDirection::Back } else { DataDirection::First };
            let turned = FlowPlan { from: flow.to, to: flow.from, ..flow.clone() };
            let back = directions.has_back().then(|| row(&turned, second));
            forth.into_iter().chain(back)
        };
        self.flows.iter().zip(0..).flat_map(rows).collect()
    }
}

pub(super) fn of(plan: &Plan, world: &RadioWorld<SimHost>, outages: &OutageWatch) -> Results {
    let end = |node: u32, index| world.machines()[node as usize].result(world.now(), index);
    let (mut discoveries, mut route_failures) = (0, 0);
    for host in world.machines() {
        let (found, broken) = host.node().routing().counts();
        discoveries += found;
        route_failures += broken;
    }
    let node = |(host, station): (&SimHost, u32)| NodeResult {
        stats: *world.stats(station),
        queue_drops: host.node().queue_drops(),
        airtime: world.airtime(station),
        waits: WaitsByLoad::at(world, station..station + 1),
        rates: world.rate_uses(station).to_vec(),
    };
    let mut flows = plan.flow_results(&end);
    for row in &mut flows {
        row.timeouts_in_outages = outages.timeouts((row.flow, row.from), row.sender.timeouts);
    }
    Results {
        counted_s: plan.counted_s(),
        flows,
        air: air(world, queue_totals(world)),
        nodes: world.machines().iter().zip(0..).map(node).collect(),
        discoveries,
        route_failures,
    }
}

impl FlowResult {
    /// Data from `flow.from` to `flow.to`, as these two ends saw it.
    fn new(
        flow: &FlowPlan,
        index: u16,
        (direction, counted_s): (DataDirection, f64),
        [from, to]: [Option<EndResult>; 2],
    ) -> FlowResult {
        let tally = to.as_ref().map(|end| end.tally.clone()).unwrap_or_default();
        let goodput_kbps =
            if counted_s > 0.0 { tally.counted_bytes as f64 * 8.0 / counted_s / 1000.0 } else { 0.0 };
        let agents = |end: &Option<EndResult>| end.as_ref()?.agents.clone();
        let agents = agents(&to).zip(agents(&from)).map(|(to, from)| {
            let AgentsAtEnd { senders, senders_lack, .. } = from;
            AgentsAtEnd { senders, senders_lack, ..to }
        });
        let opener = [&from, &to].into_iter().flatten().find(|end| end.is_opener);
        let completions =
            opener.filter(|_| direction == DataDirection::First).and_then(|end| end.completions);
        FlowResult {
            flow: index,
            direction,
            from: flow.from,
            to: flow.to,
            hops: from.as_ref().and_then(|end| end.hops.clone()),
            counted_bytes: tally.counted_bytes,
            bytes_delivered: tally.bytes,
            goodput_kbps,
            rtt: from.as_ref().and_then(|end| end.rtt),
            round_trips: from.as_ref().and_then(|end| end.round_trips),
            probed: from.as_ref().and_then(|end| end.probed),
            datagrams: from.as_ref().zip(to.as_ref()).and_then(DatagramResult::of),
            by_interval: tally.by_interval,
            bursts: from.as_ref().and_then(|end| end.bursts),
            sender: from.map(|end| end.counted).unwrap_or_default(),
            receiver: to.map(|end| end.counted).unwrap_or_default(),
            timeouts_in_outages: None,
            agents,
            completions,
            is_background: flow.is_background,
        }
    }
}

fn queue_totals(world: &RadioWorld<SimHost>) -> QueueTotals {
    let nodes = || world.machines().iter().map(SimHost::node);
    let marks = nodes().filter_map(Node::queue_marks).reduce(|sum, more| sum + more);
    let by_codel = || nodes().map(|node| node.drops(DropReason::Codel)).sum();
    QueueTotals {
        drops: Some(nodes().map(Node::queue_drops).sum()),
        codel_drops: marks.map(|_| by_codel()),
        marks,
    }
}

/// The counters of all radios together.
pub(crate) fn air<M: Machine>(world: &RadioWorld<M>, queues: QueueTotals) -> AirTotals {
    let (mut totals, mut airtime_ns, mut by_load) = (AirTotals::default(), 0, [0; AirLoad::ALL.len()]);
    totals.queues = queues;
    totals.reorder = world.has_reorder_timeout().then(ReorderTotals::default);
    for station in 0..as_u32(world.machines().len()) {
        let stats = world.stats(station);
        totals.frames_sent += stats.frames_sent.total();
        totals.collisions += stats.collisions;
        totals.retry_drops += stats.retry_drops;
        if let Some(reorder) = &mut totals.reorder {
            reorder.timeouts += stats.reorder_timeouts;
            reorder.late += stats.reorder_late;
        }
        airtime_ns += stats.airtime_ns;
        by_load.iter_mut().zip(stats.airtime_ns_by_load).for_each(|(sum, ns)| *sum += ns);
    }
    totals.waits = WaitsByLoad::at(world, 0..as_u32(world.machines().len()));
    totals.airtime_s = airtime_ns as f64 / 1e9;
    totals.airtime_s_by_load = by_load.map(|ns| ns as f64 / 1e9);
    totals
}
