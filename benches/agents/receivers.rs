//! Receiver agents on a steady flow over five hops with a known window: a segment a millisecond, one in 64 out of
//! order. Agents that want trains get them in eights.

use std::hint::black_box;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_agents::registry::{self, Kind};
use hopwise_core::Instant;
use hopwise_core::agent::{
    AckDecided, AckRequest, AckVerdict, AgentMaker, Arrival, By, Class, HopSource, Owed, Path, ReceiverAgent,
    RecvView,
};

use crate::clock::cost_ns;
use crate::row::Row;
use crate::{goal_ns, least_in_turn, more};

const SEGMENTS: u64 = 20_000;
const BYTES: u32 = 1_000;
const GAP: Duration = Duration::from_millis(1);
/// The longest delay that the ledger allows.
const CEILING: Duration = Duration::from_millis(490);

pub(crate) fn rows() -> Vec<Row> {
    let plainest = || cost("immediate");
    let mut rows = vec![Row::alone("immediate", "ns/segment", least_in_turn(plainest, plainest).0)];
    for agent in registry::all().filter(|agent| agent.kind() == Kind::Receiver).skip(1) {
        let spec = if agent.wraps() { format!("{}(immediate)", agent.name) } else { agent.name.to_owned() };
        rows.push(
            Row::alone(&*spec, "ns more", more(|| cost(&spec), plainest)).meant_to_be(goal_ns(agent.name)),
        );
    }
    rows
}

fn cost(spec: &str) -> f64 {
    let mut bench = ReceiverBench::new(spec);
    let cost = cost_ns(SEGMENTS, || {
        for nth in 0..SEGMENTS {
            bench.arrive(if nth % 64 == 63 { Class::OutOfOrder } else { Class::InOrder });
        }
    });
    black_box(bench.acks);
    cost
}

/// The ledger's state for an agent.
struct ReceiverBench {
    agent: Box<dyn ReceiverAgent>,
    now: Instant,
    owed: Owed,
    path: Path,
    acks: u64,
}

impl ReceiverBench {
    fn new(spec: &str) -> ReceiverBench {
        let mut path = Path { hops_from_peer: Some((5, HopSource::Routing)), ..Path::default() };
        path.rtt.min = Some(Duration::from_millis(40));
        path.rtt.smoothed = Some(Duration::from_millis(60));
        ReceiverBench {
            agent: StandardAgents::default().receiver(spec).expect("a spec")(),
            now: Instant::ZERO,
            owed: Owed::default(),
            path,
            acks: 0,
        }
    }

    fn arrive(&mut self, class: Class) {
        self.now += GAP;
        self.run_out();
        let mut arrival = Arrival::new(self.now, class, BYTES);
        (arrival.gap, arrival.gap_in_order, arrival.rtt) = (Some(GAP), Some(GAP), Some(GAP));
        arrival.ack_request = Some(AckRequest::After(8 - (self.owed.in_order_total % 8) as u8));
        if class == Class::InOrder {
            self.owed.segments += 1;
            self.owed.bytes += BYTES;
            self.owed.since.get_or_insert(self.now);
            self.owed.in_order_total += 1;
        }
        let verdict = self.agent.on_arrival(black_box(&arrival), &view(&self.path, self.owed));
        self.obey(verdict);
    }

    /// Handles deadlines and the ceiling.
    fn run_out(&mut self) {
        if self.agent.deadline().is_some_and(|due| due <= self.now) {
            let verdict = self.agent.on_deadline(self.now, &view(&self.path, self.owed));
            self.obey(verdict);
        }
        if self.owed.since.is_some_and(|since| since + CEILING <= self.now) {
            self.decide(By::Forced);
        }
    }

    fn obey(&mut self, verdict: AckVerdict) {
        match verdict {
            AckVerdict::Hold(_) => {}
            AckVerdict::Now(_) => self.decide(By::Agent),
            AckVerdict::Repeat(_) => self.decide(By::Repeat),
        }
    }

    fn decide(&mut self, by: By) {
        black_box(self.agent.note());
        let Owed { segments, bytes, .. } = self.owed;
        let in_order_total = self.owed.in_order_total;
        self.owed = Owed { last_ack: Some(self.now), in_order_total, ..Owed::default() };
        self.acks += 1;
        let decided = AckDecided::new(self.now, by, segments, bytes);
        self.agent.on_ack(&decided, &view(&self.path, self.owed));
    }
}

fn view(path: &Path, owed: Owed) -> RecvView<'_> {
    let mut view = RecvView::new(owed, path, BYTES, 65_535);
    view.peer_cwnd = Some(12);
    view
}
