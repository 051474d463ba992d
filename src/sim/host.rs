//! A mesh node with the programs that run on it: sources and sinks.

use std::net::SocketAddr;
use std::sync::Arc;

use hopwise_core::endpoint::{ConnId, ConnectOptions, Event, EventKind, ListenOptions, ListenerId};
use hopwise_core::ip::{UdpId, UdpOptions};
use hopwise_core::tcp::{ConnectionStats, TcpConfig};
use hopwise_core::trace::TraceEvent;
use hopwise_core::{Instant, LinkEvent, LinkId, Machine, Rx, Transmit};
use hopwise_mesh::Node;

use super::build::{RADIO, address_of};
use super::plan::{FlowPlan, Plan, TrafficPlan};

/// The first flow's port; others follow.
const PORT: u16 = 5001;
/// Written at a time.
static CHUNK: [u8; 1 << 16] = [0; 1 << 16];
/// A saturated source keeps this many packets waiting.
const AHEAD: usize = 2;

/// One end of a flow.
#[derive(Debug)]
pub struct Flow {
    /// Its number in the plan.
    pub index: u16,
    pub traffic: Traffic,
}

#[derive(Debug)]
pub enum Traffic {
    BulkSource {
        tcp: Arc<TcpConfig>,
        to: SocketAddr,
        start: Instant,
        conn: Option<ConnId>,
        has_failed: bool,
    },
    BulkSink {
        tcp: Arc<TcpConfig>,
        listener: Option<ListenerId>,
        conn: Option<ConnId>,
        tally: Tally,
    },
    DatagramSource {
        to: SocketAddr,
        bytes: u16,
        every: Option<std::time::Duration>,
        next: Instant,
        socket: Option<UdpId>,
    },
    DatagramSink {
        socket: Option<UdpId>,
        tally: Tally,
    },
}

/// What arrived, and what of it counts.
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

impl Flow {
    /// The end of a flow that is at this node, if one is.
    pub(super) fn of(plan: &Plan, index: u16, flow: &FlowPlan, node: u32) -> Option<Flow> {
        let to = SocketAddr::new(address_of(flow.to), PORT + index);
        let start = Instant::ZERO + flow.start;
        let tally = Tally { counts_from: plan.counts_from(), ..Tally::default() };
        let traffic = match (&flow.traffic, flow.from == node, flow.to == node) {
            (TrafficPlan::Bulk { tcp }, true, _) => {
                let tcp = Arc::clone(tcp);
                Traffic::BulkSource { tcp, to, start, conn: None, has_failed: false }
            }
            (TrafficPlan::Bulk { tcp }, _, true) => {
                Traffic::BulkSink { tcp: Arc::clone(tcp), listener: None, conn: None, tally }
            }
            (&TrafficPlan::Datagrams { bytes, every }, true, _) => {
                Traffic::DatagramSource { to, bytes, every, next: start, socket: None }
            }
            (TrafficPlan::Datagrams { .. }, _, true) => Traffic::DatagramSink { socket: None, tally },
            _ => return None,
        };
        Some(Flow { index, traffic })
    }

    pub fn tally(&self) -> Option<&Tally> {
        match &self.traffic {
            Traffic::BulkSink { tally, .. } | Traffic::DatagramSink { tally, .. } => Some(tally),
            _ => None,
        }
    }

    pub fn conn(&self) -> Option<ConnId> {
        match self.traffic {
            Traffic::BulkSource { conn, .. } | Traffic::BulkSink { conn, .. } => conn,
            _ => None,
        }
    }

    /// When the program does something of its own accord.
    fn next(&self) -> Instant {
        match &self.traffic {
            Traffic::BulkSource { start, conn: None, has_failed: false, .. } => *start,
            Traffic::DatagramSource { next, socket: Some(_), .. } => *next,
            _ => Instant::FAR,
        }
    }
}

#[derive(Debug)]
pub struct Host {
    node: Node,
    flows: Vec<Flow>,
    next: Instant,
    /// Some source sends as much as leaves.
    is_saturated: bool,
}

impl Host {
    pub(super) fn new(node: Node, flows: Vec<Flow>) -> Host {
        let is_saturated =
            flows.iter().any(|flow| matches!(flow.traffic, Traffic::DatagramSource { every: None, .. }));
        let mut host = Host { node, flows, next: Instant::ZERO, is_saturated };
        host.open();
        host
    }

    pub fn node(&self) -> &Node {
        &self.node
    }

    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Counters of the flow's connection at this end.
    pub fn stats(&self, now: Instant, flow: &Flow) -> Option<ConnectionStats> {
        self.node.endpoint().info(now, flow.conn()?).ok().map(|info| info.stats)
    }

    fn open(&mut self) {
        for flow in &mut self.flows {
            let port = PORT + flow.index;
            let endpoint = |node: &mut Node, act: &mut dyn FnMut(&mut hopwise_core::Endpoint)| {
                node.with_endpoint(Instant::ZERO, |endpoint| act(endpoint));
            };
            match &mut flow.traffic {
                Traffic::BulkSink { tcp, listener, .. } => endpoint(&mut self.node, &mut |endpoint| {
                    *listener = {
                        let tcp = Some(Arc::clone(tcp));
                        let options = ListenOptions { tcp, ..ListenOptions::default() };
                        endpoint.listen(None, port, options).ok()
                    };
                }),
                Traffic::DatagramSource { socket, .. } => endpoint(&mut self.node, &mut |endpoint| {
                    *socket = endpoint.udp_bind(None, port, UdpOptions::default()).ok();
                }),
                Traffic::DatagramSink { socket, .. } => endpoint(&mut self.node, &mut |endpoint| {
                    *socket = endpoint.udp_bind(None, port, UdpOptions::default()).ok();
                }),
                Traffic::BulkSource { .. } => {}
            }
        }
        self.find_next();
    }

    fn find_next(&mut self) {
        self.next = self.flows.iter().map(Flow::next).min().unwrap_or(Instant::FAR);
    }

    /// What the programs do when something has come in.
    fn act(&mut self, now: Instant) {
        while let Some(event) = self.node.poll_event() {
            match event {
                Event::Incoming(listener) => self.accept(now, listener),
                Event::Connection(id, EventKind::Connected | EventKind::Writable) => self.write(now, id),
                Event::Connection(id, EventKind::Readable) => self.read(now, id),
                Event::Connection(..) => {}
            }
        }
        if self.flows.iter().any(|flow| matches!(flow.traffic, Traffic::DatagramSink { .. })) {
            self.read_datagrams(now);
        }
    }

    fn accept(&mut self, now: Instant, from: ListenerId) {
        for flow in &mut self.flows {
            if let Traffic::BulkSink { listener, conn, .. } = &mut flow.traffic
                && *listener == Some(from)
                && let Some(id) = self.node.with_endpoint(now, |endpoint| endpoint.accept(now, from))
            {
                *conn = Some(id);
                if let Ok(info) = self.node.endpoint().info(now, id) {
                    self.node.tell_path(now, info.flow.remote.ip());
                }
                self.read(now, id);
                return;
            }
        }
    }

    fn write(&mut self, now: Instant, id: ConnId) {
        self.node.with_endpoint(now, |endpoint| {
            while endpoint.send(now, id, &CHUNK).is_ok_and(|taken| taken == CHUNK.len()) {}
        });
    }

    fn read(&mut self, now: Instant, id: ConnId) {
        let bytes = self.node.endpoint().readable(id);
        if bytes == 0 {
            return;
        }
        if self.node.with_endpoint(now, |endpoint| endpoint.consume(now, id, bytes)).is_ok() {
            for flow in &mut self.flows {
                if let Traffic::BulkSink { conn, tally, .. } = &mut flow.traffic
                    && *conn == Some(id)
                {
                    tally.add(now, u64::from(bytes));
                }
            }
        }
    }

    fn read_datagrams(&mut self, now: Instant) {
        for flow in &mut self.flows {
            let Traffic::DatagramSink { socket: Some(socket), tally } = &mut flow.traffic else { continue };
            let socket = *socket;
            self.node.with_endpoint(now, |endpoint| {
                while let Some(datagram) = endpoint.udp_recv(socket) {
                    tally.add(now, datagram.payload.len() as u64);
                }
            });
        }
    }

    /// What the programs do of their own accord.
    fn begin(&mut self, now: Instant) {
        for flow in &mut self.flows {
            if flow.next() > now {
                continue;
            }
            match &mut flow.traffic {
                Traffic::BulkSource { tcp, to, conn, has_failed, .. } => {
                    let options = ConnectOptions { tcp: Some(Arc::clone(tcp)), ..ConnectOptions::default() };
                    let opened =
                        self.node.with_endpoint(now, |endpoint| endpoint.connect(now, *to, &options));
                    *conn = opened.ok();
                    *has_failed = conn.is_none();
                    self.node.tell_path(now, to.ip());
                }
                Traffic::DatagramSource { to, bytes, every, next, socket: Some(socket) } => {
                    let (to, socket, payload) = (*to, *socket, &CHUNK[..usize::from(*bytes)]);
                    match every {
                        Some(every) => {
                            *next = now + *every;
                            // What does not fit is lost, as it would be in any queue.
                            self.node.with_endpoint(now, |e| e.udp_send(socket, to, None, payload).is_ok());
                        }
                        None => {
                            *next = Instant::FAR;
                            for _ in 0..AHEAD {
                                self.node
                                    .with_endpoint(now, |e| e.udp_send(socket, to, None, payload).is_ok());
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        self.find_next();
    }

    /// A packet has left: the saturated source that began puts another behind the rest.
    fn refill(&mut self, now: Instant) {
        for flow in &mut self.flows {
            let Traffic::DatagramSource { to, bytes, every: None, next: Instant::FAR, socket: Some(socket) } =
                &flow.traffic
            else {
                continue;
            };
            let payload = &CHUNK[..usize::from(*bytes)];
            while self.node.queue(RADIO).is_some_and(|queue| queue.len() < AHEAD) {
                self.node.with_endpoint(now, |e| e.udp_send(*socket, *to, None, payload).is_ok());
            }
        }
    }
}

impl Machine for Host {
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>) {
        self.node.handle_packet(now, rx);
        self.act(now);
    }

    fn handle_link_event(&mut self, now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        self.node.handle_link_event(now, link, event);
        self.act(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
        if self.next <= now {
            self.begin(now);
        }
        self.act(now);
    }

    fn poll_transmit(&mut self, now: Instant, link: LinkId, out: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.node.poll_transmit(now, link, out);
        if self.is_saturated && transmit.is_some() {
            self.refill(now);
        }
        transmit
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let program = Some(self.next).filter(|next| *next != Instant::FAR);
        match (self.node.poll_timeout(), program) {
            (Some(node), Some(program)) => Some(node.min(program)),
            (node, program) => node.or(program),
        }
    }

    fn drain_trace(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        self.node.drain_trace(sink);
    }
}
