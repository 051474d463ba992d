//! A mesh node with the programs that run on it.

use hopwise_core::endpoint::Event;
use hopwise_core::trace::TraceEvent;
use hopwise_core::{Instant, LinkEvent, LinkId, Machine, Payload, Rx, Transmit};
use hopwise_mesh::{EndpointObserver, Gateway, LinkSource, Node, TimedEvent};

use super::names::RADIO;
use super::programs::{Counted, Flow};

#[derive(Debug)]
pub struct Host {
    node: Node,
    flows: Vec<Flow>,
    next: Instant,
    /// True if some source sends as much as leaves.
    is_saturated: bool,
    /// True if some flow's datagrams end here.
    has_sink: bool,
    /// Base-station proxy in front of the node, if it has one.
    gateway: Option<Gateway>,
    /// News of its links that the node will get.
    news: Option<Box<dyn LinkSource>>,
}

impl Host {
    pub(super) fn new(mut node: Node, mut flows: Vec<Flow>) -> Host {
        flows.iter_mut().for_each(|flow| flow.open(&mut node));
        let is_saturated = flows.iter().any(Flow::is_saturated);
        let has_sink = flows.iter().any(Flow::is_sink);
        let (gateway, news) = (None, None);
        let mut host = Host { node, flows, next: Instant::ZERO, is_saturated, has_sink, gateway, news };
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

    pub fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    pub fn node(&self) -> &Node {
        &self.node
    }

    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Counters of the flow's connections at this end.
    pub fn counted(&self, now: Instant, flow: &Flow) -> Counted {
        flow.counted(now, &self.node)
    }

    fn find_next(&mut self) {
        let news = self.news.as_ref().and_then(|news| news.poll_timeout());
        self.next = self.flows.iter().map(Flow::next).chain(news).min().unwrap_or(Instant::FAR);
    }

    /// Lets the programs act on an event.
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
        if let (Some(gateway), true) = (&mut self.gateway, transmit.is_some()) {
            gateway.feed(&mut self.node, now);
        }
        if self.is_saturated && transmit.is_some() {
            self.flows.iter_mut().for_each(|flow| flow.refill(now, &mut self.node));
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
