//! An end node of a live world: an endpoint with the node's programs, on one link to the node's kernel.

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::agent::HopSource;
use hopwise_core::endpoint::{ConnId, EndpointConfig, LinkConfig, Route};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::TcpConfig;
use hopwise_core::trace::TraceEvent;
use hopwise_core::{Endpoint, Instant, LinkEvent, LinkId, Machine, NextHop, Payload, Rx, Transmit};

use super::address_of_programs;
use crate::programs::{EndResult, Platform, ProgramEvent, Programs};
use crate::sim::{Plan, agents_of};

/// The pause between two looks at the round-trip times.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The machine of an end node. It ends by itself: after the plan's end no program acts.
#[derive(Debug)]
pub struct LiveNode {
    alone: Alone,
    programs: Programs<Endpoint>,
    next: Instant,
    end: Instant,
    look_at: Instant,
    watcher: Option<TraceWatcher>,
    /// Events for the watcher.
    events: Vec<TraceEvent>,
}

/// Sees each event of the trace, with the endpoint as it is by then.
type TraceView = Box<dyn FnMut(&Endpoint, &TraceEvent) + Send>;

struct TraceWatcher(TraceView);

hopwise_core::shown!(TraceWatcher);

/// An endpoint that knows of its paths only what packets show.
#[derive(Debug)]
struct Alone {
    endpoint: Endpoint,
}

impl LiveNode {
    /// `link` leads to the node's kernel, which routes.
    pub fn new(
        plan: &Plan,
        node: u32,
        link: LinkConfig,
        key: [u8; 32],
    ) -> Result<LiveNode, Box<dyn Error + Send + Sync>> {
        let everywhere = Prefix::new(IpAddr::from([0, 0, 0, 0]), 0)?;
        let config = EndpointConfig {
            tcp: plan.routing.limit_hops(TcpConfig::modern()).into(),
            routes: vec![Route { to: everywhere, link: link.id, via: NextHop::Link }],
            rules: plan.rules.clone(),
            agents: agents_of(&plan.arm),
            trace_events: plan.trace_events,
            ..EndpointConfig::new(link, key)
        };
        let mut alone =
            Alone { endpoint: Endpoint::new(config, Box::new(StandardAgents::new(plan.profile)))? };
        let mut programs = Programs::of(plan, node, address_of_programs);
        programs.open(&mut alone);
        let next = programs.next();
        let (end, look_at) = (plan.end(), plan.counts_from());
        Ok(LiveNode { alone, programs, next, end, look_at, watcher: None, events: Vec::new() })
    }

    /// Shows the trace to this as well, while it is kept.
    pub fn watch_trace(&mut self, sees: TraceView) {
        self.watcher = Some(TraceWatcher(sees));
    }

    /// The results of each end of a flow here, which began at this time of day.
    pub fn results(&self, began: Duration) -> Vec<EndResult> {
        self.programs.flows().iter().map(|flow| flow.result((began, self.end), &self.alone)).collect()
    }

    /// Lets the routing of this host tell the endpoint, or ask it.
    pub fn with_endpoint<R>(&mut self, now: Instant, act: impl FnOnce(&mut Endpoint) -> R) -> R {
        let done = act(&mut self.alone.endpoint);
        self.act(now);
        done
    }

    /// Returns whether the run has ended by now.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.end
    }

    fn act(&mut self, now: Instant) {
        if self.is_over(now) {
            return;
        }
        if self.programs.act(now, &mut self.alone) {
            self.next = self.programs.next();
        }
    }
}

impl Machine for LiveNode {
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>) {
        self.alone.endpoint.handle_packet(now, rx);
        self.act(now);
    }

    fn handle_link_event(&mut self, now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        self.alone.endpoint.handle_link_event(now, link, event);
        self.act(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.is_over(now) {
            return;
        }
        self.alone.endpoint.handle_timeout(now);
        if self.next <= now {
            self.programs.begin(now, &mut self.alone);
            self.next = self.programs.next();
        }
        if self.look_at <= now {
            self.programs.look(now, &self.alone.endpoint);
            self.look_at = now + LOOK_EVERY;
        }
        self.act(now);
    }

    fn poll_transmit(
        &mut self,
        now: Instant,
        link: LinkId,
        payload: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.alone.endpoint.poll_transmit(now, link, payload, out)
    }

    fn lent(&self) -> (&[u8], &[u8]) {
        self.alone.endpoint.lent()
    }

    fn keep_trace(&mut self, is_kept: bool) {
        self.alone.endpoint.keep_trace(is_kept);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = self.next.min(self.look_at).min(self.end);
        self.alone.endpoint.poll_timeout().into_iter().chain([own]).min()
    }

    fn drain_trace(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        let Some(TraceWatcher(sees)) = &mut self.watcher else {
            return self.alone.endpoint.drain_trace(sink);
        };
        let events = &mut self.events;
        self.alone.endpoint.drain_trace(&mut |event| events.push(*event));
        for event in events.drain(..) {
            sees(&self.alone.endpoint, &event);
            sink(&event);
        }
    }
}

impl Platform for Alone {
    type Sockets = Endpoint;

    fn sockets(&self) -> &Endpoint {
        &self.endpoint
    }

    fn with<T>(&mut self, _: Instant, act: impl FnOnce(&mut Endpoint) -> T) -> T {
        act(&mut self.endpoint)
    }

    fn poll_event(&mut self) -> Option<ProgramEvent<Endpoint>> {
        self.endpoint.poll_event().map(ProgramEvent::from)
    }

    fn give_path(&mut self, _: Instant, _: IpAddr) {}

    fn hops_to(&self, now: Instant, _: IpAddr, conn: Option<ConnId>) -> Option<(u8, HopSource)> {
        let path = self.endpoint.info(now, conn?).ok()?.path;
        path.hops_to_peer.or(path.hops_from_peer)
    }

    /// The kernel's queue is not seen from here.
    fn takes_more(&self) -> bool {
        false
    }
}
