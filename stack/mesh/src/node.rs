//! The node: packets come in, go up to the endpoint or on to a neighbour, and wait in the queue of an interface.
//!
//! Invariants
//! - N1: a packet is in one place: a queue, the link, the endpoint or the routing protocol.
//! - N2: each dropped packet is counted and traced with its reason.

mod leaving;
mod orders;

use std::net::IpAddr;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::{Event, PathSeam};
use hopwise_core::queue::{Queued, SpareBuffers};
use hopwise_core::trace::{DropReason, TraceEvent, TraceKind, TraceRing};
use hopwise_core::wire::{IpView, UdpView, protocol};
use hopwise_core::{
    Cast, Endpoint, Instant, LinkEvent, LinkId, Machine, NextHop, Payload, QueueClass, Rx, Transmit,
};

use crate::queue::{InterfaceQueue, QueueConfig, WhenFull};
use crate::routing::{ControlMessage, Cx, RoutedPacket, Routing, RoutingVerdict, Undelivered};
use crate::shim::take_one_hop;

/// The endpoint's one link: the node itself, which routes its packets.
pub const OWN_LINK: LinkId = LinkId(0);

/// Ids of packets that are not the endpoint's have this bit set.
const FORWARDED: u64 = 1 << 63;

/// A machine that forwards packets between its interfaces, and has an endpoint of its own.
pub struct Node {
    endpoint: Endpoint,
    addresses: Vec<IpAddr>,
    interfaces: Vec<(Interface, InterfaceQueue)>,
    /// A queue is Linux's: it drops packets by itself, and counts what comes in.
    has_fq_codel: bool,
    routing: Box<dyn Routing>,
    trace: TraceRing,
    spare: SpareBuffers<64>,
    forwarded: u64,
    /// When the packet that left last had come into its queue.
    queued_at: Option<Instant>,
    observed: Option<Observed>,
}

impl Node {
    /// `endpoint` has one link, [`OWN_LINK`], that delivers by itself.
    pub fn new(config: NodeConfig, endpoint: Endpoint) -> Node {
        let queue = |interface: Interface| (interface, InterfaceQueue::new(interface.queue));
        let is_fq_codel = |interface: &Interface| matches!(interface.queue, QueueConfig::FqCodel(_));
        Node {
            has_fq_codel: config.interfaces.iter().any(is_fq_codel),
            endpoint,
            addresses: config.addresses,
            interfaces: config.interfaces.into_iter().map(queue).collect(),
            routing: config.routing,
            trace: TraceRing::new(config.trace_events),
            spare: SpareBuffers::default(),
            forwarded: 0,
            queued_at: None,
            observed: None,
        }
    }

    /// The endpoint, to look at.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Runs `act` on the endpoint, and queues what the endpoint then wants to send.
    pub fn with_endpoint<T>(&mut self, now: Instant, act: impl FnOnce(&mut Endpoint) -> T) -> T {
        let done = act(&mut self.endpoint);
        self.pull(now);
        self.obey_routing(now);
        done
    }

    /// The next event for a program on this node.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }

    /// When the packet that left last had come into its interface's queue; none before the first.
    pub fn queued_at(&self) -> Option<Instant> {
        self.queued_at
    }

    /// The routing protocol, to look at.
    pub fn routing(&self) -> &dyn Routing {
        &*self.routing
    }

    /// Gives connections to `peer` the known path. Call it after one was opened or accepted.
    pub fn give_path(&mut self, now: Instant, peer: IpAddr) {
        let path = self.routing.path(peer);
        if path.hops_to_peer.is_some() {
            self.endpoint.handle_path(now, peer, None, &PathEvent::HopsChanged, &path);
        }
    }

    /// The facts that routing knows of the path to a peer.
    pub fn path(&self, peer: IpAddr) -> Path {
        self.routing.path(peer)
    }

    fn dropped(&mut self, now: Instant, id: u64, reason: DropReason) {
        self.trace.push(now, 0, id, TraceKind::Dropped(reason));
    }

    fn is_ours(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    fn take_packet(&mut self, now: Instant, rx: &Rx<'_>) -> Result<(), DropReason> {
        let view = IpView::parse(rx.packet)?;
        let is_unicast = is_unicast(view.dst);
        if self.routing.header() == Some(view.protocol) && view.fragment.is_none() {
            let own = self.routing.handle_wrapped(&Cx { now, endpoint: &self.endpoint }, rx);
            if let Some(packet) = own {
                self.give_endpoint(now, &Rx { link: OWN_LINK, packet: &packet, ..*rx });
                self.pull(now);
            }
        } else if let Some(port) = self.routing.port()
            && view.protocol == protocol::UDP
            && view.fragment.is_none()
            && (!is_unicast || self.is_ours(view.dst))
            && let Ok(udp) = UdpView::parse(view.src, view.dst, view.payload)
            && udp.dst_port == port
        {
            let control = ControlMessage {
                link: rx.link,
                from: rx.from,
                cast: rx.cast,
                src: view.src,
                dst: view.dst,
                hop_limit: view.hop_limit,
                message: udp.payload,
            };
            self.routing.handle_control(&Cx { now, endpoint: &self.endpoint }, &control);
        } else if self.is_ours(view.dst) || rx.cast == Cast::ToAll || !is_unicast {
            self.give_endpoint(now, &Rx { link: OWN_LINK, ..*rx });
            self.pull(now);
        } else {
            self.forward(now, rx, &view)?;
        }
        Ok(())
    }

    fn forward(&mut self, now: Instant, rx: &Rx<'_>, view: &IpView<'_>) -> Result<(), DropReason> {
        if view.hop_limit <= 1 {
            return Err(DropReason::HopLimit);
        }
        if self.is_ours(view.src) {
            return Err(DropReason::Loop);
        }
        let mut packet = self.spare.copy(rx.packet);
        take_one_hop(&mut packet);
        self.forwarded += 1;
        let id = FORWARDED | self.forwarded;
        let way = PacketEnds { src: view.src, dst: view.dst, from: rx.from, hop_limit: view.hop_limit - 1 };
        self.send_on(now, way, id, packet);
        Ok(())
    }

    /// Routes a packet, and carries the verdict out.
    fn send_on(&mut self, now: Instant, way: PacketEnds, id: u64, packet: Vec<u8>) {
        let PacketEnds { src, dst, from, hop_limit } = way;
        let routed = RoutedPacket { src, dst, from, hop_limit, id, packet: &packet };
        match self.routing.route(&Cx { now, endpoint: &self.endpoint }, &routed) {
            RoutingVerdict::Forward { link, via } => {
                self.enqueue(now, link, Queued { to: via, class: QueueClass::Data, id, at: now, packet });
            }
            RoutingVerdict::Wrapped { link, via, packet: wrapped } => {
                self.spare.keep(packet);
                self.enqueue(
                    now,
                    link,
                    Queued { to: via, class: QueueClass::Data, id, at: now, packet: wrapped },
                );
            }
            RoutingVerdict::Keep => self.spare.keep(packet),
            RoutingVerdict::Drop(reason) => {
                self.dropped(now, id, reason);
                self.spare.keep(packet);
            }
        }
    }

    fn enqueue(&mut self, now: Instant, link: LinkId, queued: Queued) {
        let Some(queue) = self.queue_mut(link) else {
            self.dropped(now, queued.id, DropReason::NoRoute);
            return;
        };
        match queue.push(now, queued) {
            Some(lost) => {
                self.dropped(now, lost.id, DropReason::QueueFull);
                self.spare.keep(lost.packet);
            }
            None => self.tell_lost(now, link),
        }
    }

    /// Queues what the endpoint wants to send. With `hold` the endpoint is polled only while there is room.
    fn pull(&mut self, now: Instant) {
        loop {
            let is_held = self
                .interfaces
                .iter()
                .any(|(interface, queue)| interface.when_full == WhenFull::Hold && queue.is_full());
            if is_held {
                return;
            }
            let mut packet = self.spare.empty();
            let Some(transmit) = self.endpoint.poll_transmit(now, OWN_LINK, Payload::Inline, &mut packet)
            else {
                self.spare.keep(packet);
                return;
            };
            self.show_trace();
            if let Some(Observed { observer, .. }) = &mut self.observed {
                observer.on_departure(now, transmit.id, &packet);
            }
            self.send_own(now, &transmit, packet);
        }
    }

    fn send_own(&mut self, now: Instant, transmit: &Transmit, packet: Vec<u8>) {
        let Ok(view) = IpView::parse(&packet) else {
            self.dropped(now, transmit.id, DropReason::IpMalformed);
            return;
        };
        if is_unicast(view.dst) {
            let way = PacketEnds { src: view.src, dst: view.dst, from: None, hop_limit: view.hop_limit };
            self.send_on(now, way, transmit.id, packet);
            return;
        }
        let shared: Vec<_> =
            self.interfaces.iter().filter(|(i, _)| i.is_shared).map(|(i, _)| i.link).collect();
        for link in shared {
            let copy = packet.clone();
            let queued =
                Queued { to: NextHop::All, class: transmit.class, id: transmit.id, at: now, packet: copy };
            self.enqueue(now, link, queued);
        }
    }

    fn on_undelivered(&mut self, now: Instant, link: LinkId, to: IpAddr, id: u64, packet: &[u8]) {
        let Ok(view) = IpView::parse(packet) else { return };
        let is_own = self.is_ours(view.src);
        let from = if is_own { None } else { Some(view.src) };
        let routed =
            RoutedPacket { src: view.src, dst: view.dst, from, hop_limit: view.hop_limit, id, packet };
        let cx = Cx { now, endpoint: &self.endpoint };
        if self.routing.on_undelivered(&cx, (link, to), &routed) == Undelivered::Drop {
            self.dropped(now, id, DropReason::Undelivered);
        }
    }
}

/// The facts that routing needs apart from a packet's bytes.
struct PacketEnds {
    src: IpAddr,
    dst: IpAddr,
    from: Option<IpAddr>,
    hop_limit: u8,
}

fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_multicast() && !v4.is_broadcast(),
        IpAddr::V6(v6) => !v6.is_multicast(),
    }
}

impl Machine for Node {
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>) {
        self.note_heard(rx);
        if rx.cast == Cast::Overheard {
            self.routing.on_overheard(now, rx);
        } else if let Err(reason) = self.take_packet(now, rx) {
            self.dropped(now, 0, reason);
        }
        self.obey_routing(now);
    }

    fn handle_link_event(&mut self, now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        if let LinkEvent::NotDelivered { id, .. } | LinkEvent::Delivered { id, .. } = *event
            && let Some(queue) = self.queue_mut(link)
        {
            queue.on_gone(id);
        }
        match *event {
            LinkEvent::NotDelivered { to, id, packet } => self.on_undelivered(now, link, to, id, packet),
            LinkEvent::Delivered { by: Some((to, kbps)), .. } => {
                self.routing.on_delivered(now, link, to, kbps);
            }
            LinkEvent::Delivered { by: None, .. } => {}
            _ => self.endpoint.handle_link_event(now, OWN_LINK, event),
        }
        self.obey_routing(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.pull(now);
        self.routing.handle_timeout(&Cx { now, endpoint: &self.endpoint });
        self.obey_routing(now);
    }

    fn poll_transmit(
        &mut self,
        now: Instant,
        link: LinkId,
        _: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.hand_over(now, link, out, |queue| queue.pop(now))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (self.endpoint.poll_timeout(), self.routing.poll_timeout()) {
            (Some(own), Some(routing)) => Some(own.min(routing)),
            (own, routing) => own.or(routing),
        }
    }

    fn drain_trace(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        self.show_trace();
        if let Some(Observed { trace, .. }) = &mut self.observed {
            trace.drain(..).for_each(|event| sink(&event));
        }
        self.endpoint.drain_trace(sink);
        self.trace.drain(sink);
    }

    fn keep_trace(&mut self, is_kept: bool) {
        self.endpoint.keep_trace(is_kept);
        self.trace.keep(is_kept);
    }
}

hopwise_core::shown!(Node: addresses, endpoint);

/// One of the node's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The node's name for the link.
    pub link: LinkId,
    /// The packets that wait for the link.
    pub queue: QueueConfig,
    /// The fate of the node's own packets when the queue is full.
    pub when_full: WhenFull,
    /// Broadcast and multicast packets of the node leave here.
    pub is_shared: bool,
}

/// The configuration of a node, given at construction.
#[derive(Debug)]
pub struct NodeConfig {
    /// The links, without the link to the node's endpoint.
    pub interfaces: Vec<Interface>,
    /// The addresses of the node itself; packets for them go to its endpoint.
    pub addresses: Vec<IpAddr>,
    /// The routing protocol.
    pub routing: Box<dyn Routing>,
    /// Events kept until they are drained, apart from the endpoint's own.
    pub trace_events: usize,
}

// The queues and drops of a node, and an observer of the packets and events of its endpoint.

/// Sees what a node's endpoint takes and sends. The trace of a sent packet comes before the packet, the trace of a
/// received packet after it.
pub trait EndpointObserver {
    /// The endpoint takes a packet; `id` is its running number among the arrivals.
    fn on_arrival(&mut self, now: Instant, id: u64, packet: &[u8]);
    /// The last packet has been processed and its trace is complete.
    fn on_taken(&mut self, now: Instant);
    /// The endpoint has sent a packet; `id` is its own number for it.
    fn on_departure(&mut self, now: Instant, id: u64, packet: &[u8]);
    /// An event of the trace. A reader that drains the trace still gets it.
    fn on_trace(&mut self, endpoint: &Endpoint, event: &TraceEvent);
}

/// An observer with what it has seen.
struct Observed {
    observer: Box<dyn EndpointObserver>,
    arrivals: u64,
    /// Events until the trace is drained.
    trace: Vec<TraceEvent>,
}

impl Node {
    /// The queue of an interface; `None` for a link that the node does not have.
    pub fn queue(&self, link: LinkId) -> Option<&InterfaceQueue> {
        self.interfaces.iter().find(|(interface, _)| interface.link == link).map(|(_, queue)| queue)
    }

    fn queue_mut(&mut self, link: LinkId) -> Option<&mut InterfaceQueue> {
        self.interfaces.iter_mut().find(|(interface, _)| interface.link == link).map(|(_, queue)| queue)
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
        self.observed = Some(Observed { observer, arrivals: 0, trace: Vec::new() });
    }

    fn give_endpoint(&mut self, now: Instant, rx: &Rx<'_>) {
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
    fn show_trace(&mut self) {
        let Some(Observed { observer, trace, .. }) = &mut self.observed else { return };
        let seen = trace.len();
        self.endpoint.drain_trace(&mut |event| trace.push(*event));
        for event in &trace[seen..] {
            observer.on_trace(&self.endpoint, event);
        }
    }
}
