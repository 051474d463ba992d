//! The queues and drops of a node, and an observer of the packets and events of its endpoint.

use hopwise_core::trace::{DropReason, TraceEvent};
use hopwise_core::{Endpoint, Instant, LinkId, Machine, Rx};

use super::Node;
use crate::queue::InterfaceQueue;

/// Sees what a node's endpoint takes and sends. The trace of a sent packet comes before it, that of a taken one after
/// it.
pub trait EndpointObserver {
    /// The endpoint takes a packet; `id` is its running number among the arrivals.
    fn on_arrival(&mut self, now: Instant, id: u64, packet: &[u8]);
    /// The last packet has been processed and its trace is complete.
    fn on_taken(&mut self, now: Instant);
    /// The endpoint has sent a packet; `id` is its own number for it.
    fn on_departure(&mut self, now: Instant, id: u64, packet: &[u8]);
    /// An event of the trace. A reader that drains the trace still gets it.
    fn on_trace(&mut self, endpoint: &Endpoint, event: &TraceEvent);
    /// Whole entries of the [decision log](hopwise_core::tcp::decisions), in their order.
    fn on_decisions(&mut self, entries: &[u8]);
}

/// An observer with what it has seen.
pub(super) struct Observed {
    pub(super) observer: Box<dyn EndpointObserver>,
    arrivals: u64,
    /// Events until the trace is drained.
    pub(super) trace: Vec<TraceEvent>,
}

impl Node {
    /// The queue of an interface; `None` for a link that the node does not have.
    pub fn queue(&self, link: LinkId) -> Option<&InterfaceQueue> {
        self.interfaces.iter().find(|(interface, _)| interface.link == link).map(|(_, queue)| queue)
    }

    /// Packets that interface queues have dropped.
    pub fn queue_drops(&self) -> u64 {
        self.interfaces.iter().map(|(_, queue)| queue.drops()).sum()
    }

    /// Packets that CoDel has marked in interface queues; none where no queue has CoDel.
    pub fn queue_marks(&self) -> Option<u64> {
        self.interfaces.iter().filter_map(|(_, queue)| queue.marks()).reduce(|sum, more| sum + more)
    }

    /// The packets that were dropped for this reason, by the node and by its endpoint.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.trace.drops(reason) + self.endpoint.drops(reason)
    }

    /// Call it before anything has come in.
    pub fn observe_endpoint(&mut self, observer: Box<dyn EndpointObserver>) {
        self.endpoint.keep_decisions(true);
        self.observed = Some(Observed { observer, arrivals: 0, trace: Vec::new() });
    }

    pub(super) fn give_endpoint(&mut self, now: Instant, rx: &Rx<'_>) {
        self.show_trace();
        if let Some(Observed { observer, arrivals, .. }) = &mut self.observed {
            *arrivals += 1;
            observer.on_arrival(now, *arrivals, rx.packet);
        }
        self.endpoint.handle_packet(now, rx);
        self.show_trace();
        if let Some(Observed { observer, .. }) = &mut self.observed {
            observer.on_taken(now);
        }
    }

    /// Shows the observer what the endpoint has traced, and keeps it for the reader of the trace.
    pub(super) fn show_trace(&mut self) {
        let Some(Observed { observer, trace, .. }) = &mut self.observed else { return };
        let seen = trace.len();
        self.endpoint.drain_trace(&mut |event| trace.push(*event));
        for event in &trace[seen..] {
            observer.on_trace(&self.endpoint, event);
        }
        self.endpoint.drain_decisions(&mut |entries| observer.on_decisions(entries));
    }
}
