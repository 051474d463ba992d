//! A mesh node with the programs that run on it.

use std::net::IpAddr;
use std::time::Duration;

use hopwise_core::agent::HopSource;
use hopwise_core::endpoint::ConnId;
use hopwise_core::queue::{Beside, Category, Spent};
use hopwise_core::trace::TraceEvent;
use hopwise_core::{Endpoint, Instant, LinkEvent, LinkId, Machine, Payload, Rx, Transmit};
use hopwise_mesh::{EndpointObserver, Gateway, LinkSource, Node, TimedEvent};

use super::RADIO;
use crate::programs::{AHEAD, EndResult, Platform, ProgramEvent, ProgramFlow, Programs};

/// A mesh node, its programs, and its base-station proxy.
#[derive(Debug)]
pub struct SimHost {
    node: Node,
    programs: Programs<Endpoint>,
    next: Instant,
    /// Base-station proxy in front of the node, if it has one.
    gateway: Option<Gateway>,
    /// News of its links that the node will get.
    news: Option<Box<dyn LinkSource>>,
}

impl SimHost {
    pub(super) fn new(mut node: Node, mut programs: Programs<Endpoint>) -> SimHost {
        programs.open(&mut node);
        let mut host = SimHost { node, programs, next: Instant::ZERO, gateway: None, news: None };
        host.find_next();
        host
    }

    /// Makes it a base station with this source of link news.
    pub(super) fn serve(&mut self, gateway: Option<Gateway>, news: Box<dyn LinkSource>) {
        (self.gateway, self.news) = (gateway, Some(news));
        self.find_next();
    }

    /// Shows the endpoint's packets, from now on.
    pub fn observe_endpoint(&mut self, observer: Box<dyn EndpointObserver>) {
        self.node.observe_endpoint(observer);
    }

    /// The proxy in front of the node, if it has one.
    pub fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    /// The mesh node, to look at.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The ends of flows on this node.
    pub fn flows(&self) -> &[ProgramFlow<Endpoint>] {
        self.programs.flows()
    }

    /// The results of a flow's end, if it is here.
    pub(super) fn result(&self, now: Instant, index: u16) -> Option<EndResult> {
        let flow = self.flows().iter().find(|flow| flow.index == index)?;
        Some(flow.result((Duration::ZERO, now), &self.node))
    }

    /// Takes a further packet for a neighbour, for which the radio has one already.
    pub(super) fn poll_beside(
        &mut self,
        now: Instant,
        link: LinkId,
        more: &Beside,
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        let id = self.node.poll_beside(now, link, more, out)?;
        self.refill(now);
        Some(id)
    }

    /// Takes the next packet of a category while the radio has earlier ones.
    pub(super) fn poll_in(
        &mut self,
        now: Instant,
        link: LinkId,
        of: (Category, usize),
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let transmit = self.node.poll_in(now, link, of, out)?;
        self.refill(now);
        Some(transmit)
    }

    /// The radio tells how much time a packet has taken.
    pub(super) fn on_spent(&mut self, link: LinkId, spent: &Spent) {
        self.node.on_spent(link, spent);
    }

    /// A packet has left the queue.
    fn refill(&mut self, now: Instant) {
        if let Some(gateway) = &mut self.gateway {
            gateway.feed(&mut self.node, now);
        }
        self.programs.refill(now, &mut self.node);
    }

    fn find_next(&mut self) {
        let news = self.news.as_ref().and_then(|news| news.poll_timeout());
        self.next = news.into_iter().chain([self.programs.next()]).min().unwrap_or(Instant::FAR);
    }

    /// Lets the programs act on news.
    fn act(&mut self, now: Instant) {
        if self.programs.act(now, &mut self.node) {
            self.find_next();
        }
    }

    fn tell(&mut self, now: Instant) {
        while let Some(TimedEvent { event, .. }) = self.news.as_mut().and_then(|news| news.poll_news(now)) {
            match &mut self.gateway {
                Some(gateway) => gateway.handle_link_event(&mut self.node, now, RADIO, &event),
                None => self.node.handle_link_event(now, RADIO, &event),
            }
        }
    }

    /// Lets the programs act by their own timers.
    fn begin(&mut self, now: Instant) {
        self.tell(now);
        self.programs.begin(now, &mut self.node);
        self.find_next();
    }
}

impl Machine for SimHost {
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>) {
        match &mut self.gateway {
            Some(gateway) => gateway.handle_packet(&mut self.node, now, rx),
            None => self.node.handle_packet(now, rx),
        }
        self.act(now);
    }

    fn handle_link_event(&mut self, now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        match &mut self.gateway {
            Some(gateway) => gateway.handle_link_event(&mut self.node, now, link, event),
            None => self.node.handle_link_event(now, link, event),
        }
        self.act(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
        if let Some(gateway) = &mut self.gateway {
            gateway.handle_timeout(&mut self.node, now);
        }
        if self.next <= now {
            self.begin(now);
        }
        self.act(now);
    }

    fn poll_transmit(
        &mut self,
        now: Instant,
        link: LinkId,
        _: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let transmit = self.node.poll_transmit(now, link, Payload::Inline, out);
        if transmit.is_some() {
            self.refill(now);
        }
        transmit
    }

    fn lent(&self) -> (&[u8], &[u8]) {
        Default::default()
    }

    fn keep_trace(&mut self, is_kept: bool) {
        self.node.keep_trace(is_kept);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let program = Some(self.next).filter(|next| *next != Instant::FAR);
        let gateway = self.gateway.as_ref().and_then(Gateway::poll_timeout);
        self.node.poll_timeout().into_iter().chain(program).chain(gateway).min()
    }

    fn drain_trace(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        self.node.drain_trace(sink);
        if let Some(gateway) = &mut self.gateway {
            gateway.drain_trace(sink);
        }
    }
}

impl Platform for Node {
    type Sockets = Endpoint;

    fn sockets(&self) -> &Endpoint {
        self.endpoint()
    }

    fn with<T>(&mut self, now: Instant, act: impl FnOnce(&mut Endpoint) -> T) -> T {
        self.with_endpoint(now, act)
    }

    fn poll_event(&mut self) -> Option<ProgramEvent<Endpoint>> {
        Node::poll_event(self).map(ProgramEvent::from)
    }

    fn give_path(&mut self, now: Instant, peer: IpAddr) {
        Node::give_path(self, now, peer);
    }

    fn hops_to(&self, _: Instant, peer: IpAddr, _: Option<ConnId>) -> Option<(u8, HopSource)> {
        self.path(peer).hops_to_peer
    }

    fn takes_more(&self) -> bool {
        // A datagram may not come into the queue: routing keeps it while it looks for a route.
        self.queue(RADIO).is_some_and(|queue| queue.len() < AHEAD && !queue.is_full())
    }
}
