//! Programs on a node: the two ends of each flow.

mod client;
mod datagrams;
mod message;
mod server;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::HopSource;
use hopwise_core::endpoint::{ConnId, EventKind, ListenerId};
use hopwise_core::tcp::{ConnectionStats, Info};
use hopwise_core::trace::Lacking;
use hopwise_mesh::Node;

use super::names::address_of;
use super::plan::{FlowPlan, Plan, TrafficPlan};
use client::Client;
use datagrams::{Sink, Source};
use server::Server;

/// The first flow's port; others follow.
const PORT: u16 = 5001;

/// One end of a flow.
#[derive(Debug)]
pub struct Flow {
    /// Its number in the plan.
    pub index: u16,
    end: End,
}

#[derive(Debug)]
enum End {
    Client(Client),
    Server(Server),
    Source(Source),
    Sink(Sink),
}

/// The bytes that arrived, and those of them that count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub counts_from: Instant,
    pub counted_bytes: u64,
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, now: Instant, bytes: u64) {
        self.bytes += bytes;
        if now >= self.counts_from {
            self.counted_bytes += bytes;
        }
    }
}

/// Transfers or requests that ended in the counted time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    pub count: u64,
    pub total_ns: u64,
    pub longest_ns: u64,
}

impl Completions {
    fn add(&mut self, took_ns: u64) {
        self.count += 1;
        self.total_ns += took_ns;
        self.longest_ns = self.longest_ns.max(took_ns);
    }
}

/// The totals of one end of a TCP flow over all its connections.
#[derive(Debug, Default)]
struct Seen {
    tally: Tally,
    /// The counters of connections that are over.
    past: Counted,
    /// The agents of the last connection.
    agents: Option<AgentsAtEnd>,
    /// The hops to the peer when the first connection could carry data, and their source.
    hops: Option<(u8, HopSource)>,
}

/// The agents that a connection had at one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentsAtEnd {
    /// Specs.
    pub receiver: String,
    pub senders: String,
    pub shadows: String,
    /// Abilities that the peer did not agree to, or never showed.
    pub receiver_lacks: Vec<Lacking>,
    pub senders_lack: Vec<Lacking>,
}

impl AgentsAtEnd {
    fn of(now: Instant, node: &Node, conn: ConnId) -> Option<AgentsAtEnd> {
        let Info { receiver, senders, shadows, receiver_lacks, senders_lack, .. } =
            node.endpoint().info(now, conn).ok()?;
        Some(AgentsAtEnd { receiver, senders, shadows, receiver_lacks, senders_lack })
    }
}

impl Seen {
    fn new(counts_from: Instant) -> Seen {
        Seen { tally: Tally { counts_from, ..Tally::default() }, ..Seen::default() }
    }

    /// Notes the state of a connection that has begun, was answered, or is over.
    fn note(&mut self, now: Instant, node: &Node, conn: ConnId) {
        self.agents = AgentsAtEnd::of(now, node, conn).or(self.agents.take());
    }

    /// A connection can carry data.
    fn note_hops(&mut self, node: &Node, peer: IpAddr) {
        self.hops = self.hops.or(node.path(peer).hops_to_peer);
    }

    /// Ends a connection here; its last segments may still leave.
    fn let_go(&mut self, now: Instant, node: &mut Node, conn: ConnId) {
        self.note(now, node, conn);
        self.past.add(now, node, conn);
        // A connection that has failed is gone already.
        let _ = node.with_endpoint(now, |endpoint| endpoint.close(now, conn));
    }

    /// The same at once; written bytes that have not left are lost.
    fn cut_off(&mut self, now: Instant, node: &mut Node, conn: ConnId) {
        self.note(now, node, conn);
        self.past.add(now, node, conn);
        let _ = node.with_endpoint(now, |endpoint| endpoint.abort(now, conn));
    }
}

/// Counters over several connections.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub stats: ConnectionStats,
    /// ACKs that each shadow would have sent.
    pub shadow_acks: Vec<u64>,
    /// The total wait of the first segments of those.
    pub shadow_holds: Vec<Duration>,
}

impl Counted {
    fn add(&mut self, now: Instant, node: &Node, conn: ConnId) {
        let Ok(info) = node.endpoint().info(now, conn) else { return };
        add(&mut self.stats, &info.stats);
        let shadows = self.shadow_acks.len().max(info.shadow_acks.len());
        self.shadow_acks.resize(shadows, 0);
        self.shadow_acks.iter_mut().zip(info.shadow_acks).for_each(|(sum, more)| *sum += more);
        self.shadow_holds.resize(shadows, Duration::ZERO);
        self.shadow_holds.iter_mut().zip(info.shadow_holds).for_each(|(sum, more)| *sum += more);
    }
}

fn add(to: &mut ConnectionStats, more: &ConnectionStats) {
    to.segments_sent += more.segments_sent;
    to.segments_retransmitted += more.segments_retransmitted;
    to.bytes_sent += more.bytes_sent;
    to.bytes_acked += more.bytes_acked;
    to.segments_received += more.segments_received;
    to.segments_in_order += more.segments_in_order;
    to.segments_out_of_order += more.segments_out_of_order;
    to.segments_duplicate += more.segments_duplicate;
    to.bytes_received += more.bytes_received;
    to.acks_sent += more.acks_sent;
    to.acks_repeated += more.acks_repeated;
    to.timeouts += more.timeouts;
    to.fast_retransmits += more.fast_retransmits;
    to.tail_probes += more.tail_probes;
    to.window_probes += more.window_probes;
    to.undone += more.undone;
    to.dsacks += more.dsacks;
}

impl Flow {
    /// The end of a flow that is at this node, if one is.
    pub(super) fn of(plan: &Plan, index: u16, flow: &FlowPlan, node: u32) -> Option<Flow> {
        let to = SocketAddr::new(address_of(flow.to), PORT + index);
        let times = (Instant::ZERO + flow.start, flow.stop.map_or(Instant::FAR, |stop| Instant::ZERO + stop));
        let seen = Seen::new(plan.counts_from());
        let end = match (&flow.traffic, flow.from == node, flow.to == node) {
            (TrafficPlan::Tcp(tcp), true, _) => {
                End::Client(Client::new(Arc::clone(tcp), to, times, (plan.seed, index), seen))
            }
            (TrafficPlan::Tcp(tcp), _, true) => End::Server(Server::new(Arc::clone(tcp), seen)),
            (&TrafficPlan::Datagrams { bytes, every, hop_limit }, true, _) => {
                End::Source(Source::new(to, (bytes, hop_limit), every, times, (plan.seed, index)))
            }
            (TrafficPlan::Datagrams { .. }, _, true) => End::Sink(Sink::new(seen.tally)),
            _ => return None,
        };
        Some(Flow { index, end })
    }

    pub(super) fn open(&mut self, node: &mut Node) {
        let port = PORT + self.index;
        match &mut self.end {
            End::Client(_) => {}
            End::Server(server) => server.open(node, port),
            End::Source(source) => source.open(node, port),
            End::Sink(sink) => sink.open(node, port),
        }
    }

    /// The time of the program's next action of its own.
    pub(super) fn next(&self) -> Instant {
        match &self.end {
            End::Client(client) => client.next(),
            End::Source(source) => source.next(),
            End::Server(_) | End::Sink(_) => Instant::FAR,
        }
    }

    /// Lets the program act at that time.
    pub(super) fn begin(&mut self, now: Instant, node: &mut Node) {
        match &mut self.end {
            End::Client(client) => client.begin(now, node),
            End::Source(source) => source.begin(now, node),
            End::Server(_) | End::Sink(_) => {}
        }
    }

    /// Returns whether this is the program's listener, and takes the new connection if so.
    pub(super) fn accept(&mut self, now: Instant, node: &mut Node, from: ListenerId) -> bool {
        match &mut self.end {
            End::Server(server) => server.accept(now, node, from),
            _ => false,
        }
    }

    /// Returns whether the connection is the program's own, and acts on the event if so.
    pub(super) fn on_event(&mut self, now: Instant, node: &mut Node, conn: ConnId, event: EventKind) -> bool {
        match &mut self.end {
            End::Client(client) => client.on_event(now, node, conn, event),
            End::Server(server) => server.on_event(now, node, conn, event),
            _ => false,
        }
    }

    pub(super) fn read_datagrams(&mut self, now: Instant, node: &mut Node) {
        if let End::Sink(sink) = &mut self.end {
            sink.read(now, node);
        }
    }

    /// Called when a packet has left: a source that sends as much as leaves adds another one.
    pub(super) fn refill(&mut self, now: Instant, node: &mut Node) {
        if let End::Source(source) = &mut self.end {
            source.refill(now, node);
        }
    }

    pub(super) fn is_sink(&self) -> bool {
        matches!(self.end, End::Sink(_))
    }

    pub(super) fn is_saturated(&self) -> bool {
        matches!(&self.end, End::Source(source) if source.is_saturated())
    }

    /// True if this end is the one at `from`.
    pub fn is_opener(&self) -> bool {
        matches!(self.end, End::Client(_) | End::Source(_))
    }

    /// The data that came in at this end.
    pub fn tally(&self) -> Tally {
        match &self.end {
            End::Client(client) => client.seen.tally,
            End::Server(server) => server.seen.tally,
            End::Source(_) => Tally::default(),
            End::Sink(sink) => sink.tally,
        }
    }

    /// The connection at hand, if there is one.
    pub fn conn(&self) -> Option<ConnId> {
        match &self.end {
            End::Client(client) => client.conn(),
            End::Server(server) => server.conn(),
            _ => None,
        }
    }

    /// The agents at this end of the last connection.
    pub fn agents(&self, now: Instant, node: &Node) -> Option<AgentsAtEnd> {
        let seen = match &self.end {
            End::Client(client) => &client.seen,
            End::Server(server) => &server.seen,
            _ => return None,
        };
        let open = self.conn().and_then(|conn| AgentsAtEnd::of(now, node, conn));
        open.or_else(|| seen.agents.clone())
    }

    /// The hops to the other end, as known when data could first leave.
    pub fn hops(&self) -> Option<(u8, HopSource)> {
        match &self.end {
            End::Client(client) => client.seen.hops,
            End::Server(server) => server.seen.hops,
            _ => None,
        }
    }

    /// The completions of a flow whose transfers or requests have an end.
    pub fn completions(&self) -> Option<Completions> {
        match &self.end {
            End::Client(client) => client.completions(),
            _ => None,
        }
    }

    /// Counters of all its connections at this end; datagrams count as segments.
    pub fn counted(&self, now: Instant, node: &Node) -> Counted {
        match &self.end {
            End::Client(client) => client.counted(now, node),
            End::Server(server) => server.counted(now, node),
            End::Source(source) => {
                let stats = ConnectionStats { segments_sent: source.sent(), ..ConnectionStats::default() };
                Counted { stats, ..Counted::default() }
            }
            End::Sink(_) => Counted::default(),
        }
    }
}
