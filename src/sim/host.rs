//! A mesh node with the programs that run on it.

use hopwise_core::endpoint::Event;
use hopwise_core::tcp::ConnectionStats;
use hopwise_core::trace::TraceEvent;
use hopwise_core::{Instant, LinkEvent, LinkId, Machine, Rx, Transmit};
use hopwise_mesh::Node;

use super::programs::Flow;

#[derive(Debug)]
pub struct Host {
    node: Node,
    flows: Vec<Flow>,
    next: Instant,
    /// Some source sends as much as leaves.
    is_saturated: bool,
    /// Some flow's datagrams end here.
    has_sink: bool,
}

impl Host {
    pub(super) fn new(mut node: Node, mut flows: Vec<Flow>) -> Host {
        flows.iter_mut().for_each(|flow| flow.open(&mut node));
        let is_saturated = flows.iter().any(Flow::is_saturated);
        let has_sink = flows.iter().any(Flow::is_sink);
        let mut host = Host { node, flows, next: Instant::ZERO, is_saturated, has_sink };
        host.find_next();
        host
    }

    pub fn node(&self) -> &Node {
        &self.node
    }

    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Counters of the flow's connections at this end.
    pub fn stats(&self, now: Instant, flow: &Flow) -> ConnectionStats {
        flow.stats(now, &self.node)
    }

    fn find_next(&mut self) {
        self.next = self.flows.iter().map(Flow::next).min().unwrap_or(Instant::FAR);
    }

    /// What the programs do when something has come in.
    fn act(&mut self, now: Instant) {
        let mut has_acted = false;
        while let Some(event) = self.node.poll_event() {
            has_acted = true;
            let (node, mut flows) = (&mut self.node, self.flows.iter_mut());
            match event {
                Event::Incoming(listener) => flows.any(|flow| flow.accept(now, node, listener)),
                Event::Connection(conn, event) => flows.any(|flow| flow.on_event(now, node, conn, event)),
            };
        }
        if self.has_sink {
            self.flows.iter_mut().for_each(|flow| flow.read_datagrams(now, &mut self.node));
        }
        if has_acted {
            self.find_next();
        }
    }

    /// What the programs do of their own accord.
    fn begin(&mut self, now: Instant) {
        for flow in &mut self.flows {
            if flow.next() <= now {
                flow.begin(now, &mut self.node);
            }
        }
        self.find_next();
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
            self.flows.iter_mut().for_each(|flow| flow.refill(now, &mut self.node));
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
