//! Programs on a node: the two ends of each flow, with equal draws in every world.

mod arrivals;
mod client;
mod datagrams;
mod delays;
mod message;
mod probe;
mod seen;
mod server;
mod sockets;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::HopSource;
use hopwise_core::endpoint::EventKind;

use crate::sim::{FlowPlan, Plan, TrafficPlan};
use client::ClientProgram;
pub(crate) use datagrams::AHEAD;
use datagrams::{DatagramSource, Sink, TimedSocket};
pub(crate) use probe::NUMBER_BYTES;
use probe::ProbeProgram;
pub(crate) use seen::INTERVALS;
use seen::{BurstCounter, EndTotals, ListenerOf, RoundTripLog, RttSamples};
use server::ServerProgram;

pub use delays::Amount;
pub use delays::Spread;
pub use probe::Probed;
pub use seen::{AgentsAtEnd, ArrivedBytes, Bursts, CompletionTimes, ConnOf, Counted, CountedHops, EndResult};
pub use sockets::{Marks, Platform, ProgramEvent, Sockets, start_of};

/// The first flow's port; later flows count on from it.
const PORT: u16 = 5001;

/// The programs of one node.
#[derive(Debug)]
pub struct Programs<S: Sockets> {
    flows: Vec<ProgramFlow<S>>,
    /// True if some source keeps the link busy.
    is_saturated: bool,
    /// True if some flow's datagrams come here.
    takes_datagrams: bool,
}

impl<S: Sockets> Programs<S> {
    /// The ends of the plan's flows that are at this node. `name` gives the address of a node.
    pub fn of(plan: &Plan, node: u32, name: impl Fn(u32) -> IpAddr) -> Programs<S> {
        let numbered = (0..).zip(&plan.flows);
        let flows: Vec<_> =
            numbered.filter_map(|(index, flow)| ProgramFlow::of(plan, index, flow, (node, &name))).collect();
        let is_saturated = flows.iter().any(ProgramFlow::is_saturated);
        let takes_datagrams = flows.iter().any(ProgramFlow::takes_datagrams);
        Programs { flows, is_saturated, takes_datagrams }
    }

    /// The ends of flows on this node.
    pub fn flows(&self) -> &[ProgramFlow<S>] {
        &self.flows
    }

    /// Opens listeners and sockets for datagrams.
    pub fn open<P: Platform<Sockets = S>>(&mut self, node: &mut P) {
        self.flows.iter_mut().for_each(|flow| flow.open(node));
    }

    /// The time of the next action of a program's own.
    pub fn next(&self) -> Instant {
        self.flows.iter().map(ProgramFlow::next).min().unwrap_or(Instant::FAR)
    }

    /// Lets the programs act on all news. Returns whether there was any about connections.
    pub fn act<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) -> bool {
        // An event may let a connection go, and its last round trip with it.
        self.flows.iter_mut().for_each(|flow| flow.measure(now, node.sockets()));
        let mut has_acted = false;
        while let Some(event) = node.poll_event() {
            has_acted = true;
            let mut flows = self.flows.iter_mut();
            match event {
                ProgramEvent::Incoming(listener) => flows.any(|flow| flow.accept(now, node, listener)),
                ProgramEvent::Connection(conn, event) => {
                    flows.any(|flow| flow.on_event(now, node, conn, event))
                }
            };
        }
        if self.takes_datagrams {
            self.flows.iter_mut().for_each(|flow| flow.read_datagrams(now, node));
        }
        self.flows.iter_mut().for_each(|flow| flow.count_burst(now, node.sockets()));
        has_acted
    }

    /// Lets the programs act whose time has come.
    pub fn begin<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        for flow in &mut self.flows {
            if flow.next() <= now {
                flow.begin(now, node);
            }
        }
    }

    /// Looks at the round-trip times of connections. Live worlds call it at equal intervals.
    pub fn look(&mut self, now: Instant, sockets: &S) {
        for flow in &mut self.flows {
            if let Some(rtt) = flow.conn().and_then(|conn| sockets.rtt(now, conn)) {
                flow.rtts.add(rtt);
            }
        }
    }

    /// Called when a packet has left: a saturated source adds another one.
    pub(crate) fn refill<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        if self.is_saturated {
            self.flows.iter_mut().for_each(|flow| flow.refill(now, node));
        }
    }
}

/// One end of a flow.
#[derive(Debug)]
pub struct ProgramFlow<S: Sockets> {
    /// Its number in the plan.
    pub index: u16,
    /// The address of the node at the other end.
    peer: IpAddr,
    rtts: RttSamples,
    round_trips: RoundTripLog<S::Conn>,
    sending: BurstCounter<S::Conn>,
    end: FlowEnd<S>,
}

#[derive(Debug)]
enum FlowEnd<S: Sockets> {
    Client(ClientProgram<S>),
    Server(ServerProgram<S>),
    Source(DatagramSource<S>),
    Sink(Sink<S>),
    Probe(ProbeProgram<S>),
}

impl<S: Sockets> ProgramFlow<S> {
    /// The end of a flow that is at this node, if one is.
    fn of(
        plan: &Plan,
        index: u16,
        flow: &FlowPlan,
        (node, name): (u32, &dyn Fn(u32) -> IpAddr),
    ) -> Option<ProgramFlow<S>> {
        // Most flows of a large world are elsewhere.
        if flow.from != node && flow.to != node {
            return None;
        }
        let to = SocketAddr::new(name(flow.to), PORT + index);
        let times = (Instant::ZERO + flow.start, flow.stop.map_or(Instant::FAR, |stop| Instant::ZERO + stop));
        let seen = EndTotals::new::<S>(ArrivedBytes::new(plan.counts_from(), plan.interval()));
        let timed = |marks| TimedSocket::new((to, marks), times, (plan, index));
        let end = match (&flow.traffic, flow.from == node, flow.to == node) {
            (TrafficPlan::Tcp(tcp), true, _) => {
                FlowEnd::Client(ClientProgram::new(Arc::clone(tcp), to, times, (plan.seed, index), seen))
            }
            (TrafficPlan::Tcp(tcp), _, true) => FlowEnd::Server(ServerProgram::new(Arc::clone(tcp), seen)),
            (&TrafficPlan::Datagrams { bytes, every, marks }, true, _) => {
                FlowEnd::Source(DatagramSource::new(timed(marks), bytes, every))
            }
            (TrafficPlan::Datagrams { .. }, _, true) => FlowEnd::Sink(Sink::new(seen.tally, None)),
            (&TrafficPlan::Probe { bytes, every, marks }, true, _) => {
                FlowEnd::Probe(ProbeProgram::new(timed(marks), bytes, every, plan.counts_from()))
            }
            (&TrafficPlan::Probe { marks, .. }, _, true) => {
                let back = SocketAddr::new(name(flow.from), PORT + index);
                FlowEnd::Sink(Sink::new(seen.tally, Some((back, marks))))
            }
            _ => return None,
        };
        let peer = name(if flow.from == node { flow.to } else { flow.from });
        Some(ProgramFlow {
            index,
            peer,
            rtts: RttSamples::default(),
            round_trips: RoundTripLog::none(),
            sending: BurstCounter::none(),
            end,
        })
    }
    fn open<P: Platform<Sockets = S>>(&mut self, node: &mut P) {
        let port = PORT + self.index;
        match &mut self.end {
            FlowEnd::Client(_) => {}
            FlowEnd::Server(server) => server.open(node, port),
            FlowEnd::Source(source) => source.timed.open(node, port),
            FlowEnd::Probe(probe) => probe.timed.open(node, port),
            FlowEnd::Sink(sink) => sink.open(node, port),
        }
    }

    /// The time of the program's next action of its own.
    fn next(&self) -> Instant {
        match &self.end {
            FlowEnd::Client(client) => client.next(),
            FlowEnd::Source(source) => source.timed.next(),
            FlowEnd::Probe(probe) => probe.timed.next(),
            FlowEnd::Server(_) | FlowEnd::Sink(_) => Instant::FAR,
        }
    }

    /// Lets the program act at that time.
    fn begin<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        match &mut self.end {
            FlowEnd::Client(client) => client.begin(now, node),
            FlowEnd::Source(source) => source.begin(now, node),
            FlowEnd::Probe(probe) => probe.begin(now, node),
            FlowEnd::Server(_) | FlowEnd::Sink(_) => {}
        }
    }

    /// Returns whether this is the program's listener, and takes the new connection if so.
    fn accept<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P, from: ListenerOf<P>) -> bool {
        if let FlowEnd::Server(server) = &mut self.end { server.accept(now, node, from) } else { false }
    }

    /// Returns whether the connection is the program's own, and acts on the event if so.
    fn on_event<P: Platform<Sockets = S>>(
        &mut self,
        now: Instant,
        node: &mut P,
        conn: ConnOf<P>,
        event: EventKind,
    ) -> bool {
        match &mut self.end {
            FlowEnd::Client(client) => client.on_event(now, node, conn, event),
            FlowEnd::Server(server) => server.on_event(now, node, conn, event),
            _ => false,
        }
    }

    fn read_datagrams<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        match &mut self.end {
            FlowEnd::Sink(sink) => sink.read(now, node),
            FlowEnd::Probe(probe) => probe.read(now, node),
            FlowEnd::Client(_) | FlowEnd::Server(_) | FlowEnd::Source(_) => {}
        }
    }

    fn refill<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        if let FlowEnd::Source(source) = &mut self.end {
            source.refill(now, node);
        }
    }

    fn takes_datagrams(&self) -> bool {
        matches!(self.end, FlowEnd::Sink(_) | FlowEnd::Probe(_))
    }

    fn is_saturated(&self) -> bool {
        matches!(&self.end, FlowEnd::Source(source) if source.is_saturated())
    }

    /// True if this end is the one at `from`.
    pub(crate) fn is_opener(&self) -> bool {
        matches!(self.end, FlowEnd::Client(_) | FlowEnd::Source(_) | FlowEnd::Probe(_))
    }

    /// The data that came in at this end.
    pub fn tally(&self) -> ArrivedBytes {
        match &self.end {
            FlowEnd::Client(client) => client.seen.tally.clone(),
            FlowEnd::Server(server) => server.seen.tally.clone(),
            FlowEnd::Source(_) | FlowEnd::Probe(_) => ArrivedBytes::default(),
            FlowEnd::Sink(sink) => sink.tally.clone(),
        }
    }

    /// The connection at hand, if there is one.
    pub fn conn(&self) -> Option<S::Conn> {
        match &self.end {
            FlowEnd::Client(client) => client.conn(),
            FlowEnd::Server(server) => server.conn(),
            _ => None,
        }
    }

    /// Takes the round trip that the newest packet has ended, if it did. Called after each packet.
    fn measure(&mut self, now: Instant, sockets: &S) {
        if let Some((conn, seen)) = self.conn().zip(self.seen())
            && let Some(newest) = sockets.newest_rtt(conn)
        {
            let counts = now >= seen.tally.counts_from;
            self.round_trips.take(conn, newest, counts);
        }
    }

    /// Counts the data that has left since the call before as one burst. Called after each packet and timer.
    fn count_burst(&mut self, now: Instant, sockets: &S) {
        if let Some((conn, seen)) = self.conn().zip(self.seen())
            && let Some(sent) = sockets.segments_sent(conn)
        {
            let counts = now >= seen.tally.counts_from;
            self.sending.take(conn, sent, counts);
        }
    }

    /// The agents at this end of the last connection.
    pub fn agents(&self, now: Instant, sockets: &S) -> Option<AgentsAtEnd> {
        let open = self.conn().and_then(|conn| sockets.agents(now, conn));
        open.or_else(|| self.seen()?.agents.clone())
    }

    fn seen(&self) -> Option<&EndTotals> {
        match &self.end {
            FlowEnd::Client(client) => Some(&client.seen),
            FlowEnd::Server(server) => Some(&server.seen),
            FlowEnd::Source(_) | FlowEnd::Sink(_) | FlowEnd::Probe(_) => None,
        }
    }

    /// The hops to the other end, as known when data could first leave.
    pub fn hops(&self) -> Option<(u8, HopSource)> {
        self.seen()?.hops
    }

    /// The completions of a flow whose transfers or requests have an end.
    pub fn completions(&self) -> Option<CompletionTimes> {
        if let FlowEnd::Client(client) = &self.end { client.completions() } else { None }
    }

    /// The probes of a flow that sends them from here.
    fn probed(&self, now: Instant) -> Option<Probed> {
        if let FlowEnd::Probe(probe) = &self.end { Some(probe.probed(now)) } else { None }
    }

    /// Counters of all its connections at this end; datagrams count as segments.
    pub fn counted(&self, now: Instant, sockets: &S) -> Counted {
        match &self.end {
            FlowEnd::Client(client) => client.counted(now, sockets),
            FlowEnd::Server(server) => server.counted(now, sockets),
            FlowEnd::Source(DatagramSource { timed, .. }) | FlowEnd::Probe(ProbeProgram { timed, .. }) => {
                Counted { segments_sent: Some(timed.sent), ..S::nothing_counted() }
            }
            FlowEnd::Sink(_) => S::nothing_counted(),
        }
    }

    /// The measured datagrams that left from here, or those that arrived here with their times.
    fn datagrams(&self) -> (u64, Option<[f64; 4]>) {
        match &self.end {
            FlowEnd::Source(DatagramSource { timed, .. }) | FlowEnd::Probe(ProbeProgram { timed, .. }) => {
                (timed.measured, None)
            }
            FlowEnd::Sink(sink) => sink.arrivals.seen(),
            FlowEnd::Client(_) | FlowEnd::Server(_) => (0, None),
        }
    }

    /// The results of this end so far. Its clock showed zero when the time of day was `began`.
    pub fn result(&self, (began, now): (Duration, Instant), node: &impl Platform<Sockets = S>) -> EndResult {
        let sockets = node.sockets();
        let hops = self.hops().or_else(|| node.hops_to(now, self.peer, self.conn()));
        EndResult {
            flow: self.index,
            is_opener: self.is_opener(),
            tally: self.tally(),
            counted: self.counted(now, sockets),
            agents: self.agents(now, sockets),
            completions: self.completions(),
            hops: hops.map(|(count, source)| CountedHops { count, source: source.name().to_owned() }),
            rtt: self.rtts.mean(),
            round_trips: self.round_trips.spread(),
            probed: self.probed(now),
            bursts: self.sending.bursts(),
            datagrams: self.datagrams(),
            began_ms: (began.as_secs_f64() * 1e3, 0.0),
        }
    }
}
