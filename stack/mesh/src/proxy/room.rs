//! Room in the proxy's table: flows that are over are forgotten, and those that matter least give way.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::Because;

use super::Proxy;
use super::flow::Flow;
use super::read::FlowKey;
use super::seats::Seat;

/// A flow is forgotten when nothing has passed for so long, or for so long after it has ended.
const IDLE: Duration = Duration::from_secs(15 * 60);
const ENDED: Duration = Duration::from_secs(30);
/// A flow that sits briefly is forgotten when nothing has passed for so long.
const BRIEF: Duration = Duration::from_secs(10);
/// Between two looks for flows to forget.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// When flows to forget were last looked for.
#[derive(Debug, Default)]
pub(super) struct Sweeps {
    all: Option<Instant>,
    brief: Option<Instant>,
}

fn is_due(last: &mut Option<Instant>, now: Instant) -> bool {
    let is_due = last.is_none_or(|at| now.since(at) >= SWEEP_EVERY);
    if is_due {
        *last = Some(now);
    }
    is_due
}

impl Proxy {
    /// Whether one more flow of this mobile's can be followed. Others may give way to it.
    pub(super) fn has_room(&mut self, now: Instant, mobile: IpAddr) -> bool {
        self.sweep_brief(now);
        if self.is_full() {
            self.sweep(now);
        }
        if self.is_full() {
            self.make_room(now, mobile);
        }
        !self.is_full()
    }

    /// One flow gives way, if there is one that may. Cut ones may until the other end has answered.
    fn make_room(&mut self, now: Instant, mobile: IpAddr) {
        if self.seats.brief() == 0 && self.relays.give_up_one() {
            self.gave_way += 1;
        } else if let Some(key) = self.gives_way(mobile) {
            self.gave_way += 1;
            self.let_go_of(now, &key);
        }
    }

    fn is_full(&self) -> bool {
        self.flows.len() + self.relays.len() >= self.config.most_flows
    }

    /// A flow that sits briefly, or the one of the mobile with too many that has been silent for longest.
    fn gives_way(&self, to: IpAddr) -> Option<FlowKey> {
        let brief = self.seats.first_to_go();
        brief.or_else(|| {
            let mobile = self.seats.has_too_many(to)?;
            let silent = self.flows_of(mobile).min_by_key(|(_, flow)| flow.seen_at)?;
            Some(*silent.0)
        })
    }

    fn flows_of(&self, mobile: IpAddr) -> impl Iterator<Item = (&FlowKey, &Flow)> {
        let least = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let first = FlowKey { mobile: SocketAddr::new(mobile, 0), fixed: least };
        self.flows.range(first..).take_while(move |(key, _)| key.mobile.ip() == mobile)
    }

    /// Forgets flows that sit briefly and are silent. What waits for a link stays.
    fn sweep_brief(&mut self, now: Instant) {
        if !is_due(&mut self.sweeps.brief, now) {
            return;
        }
        let is_over = |flow: &Flow| now.since(flow.seen_at) >= BRIEF && flow.kept_packets() == 0;
        let brief = self.seats.sit_briefly();
        let over: Vec<_> = brief.filter(|key| self.flows.get(key).is_some_and(is_over)).collect();
        over.iter().for_each(|key| self.let_go_of(now, key));
    }

    /// Forgets flows that are over.
    fn sweep(&mut self, now: Instant) {
        if !is_due(&mut self.sweeps.all, now) {
            return;
        }
        self.relays.sweep(now, now - IDLE);
        let is_over = |flow: &Flow| now.since(flow.seen_at) >= if flow.has_ended() { ENDED } else { IDLE };
        let over: Vec<_> = self.flows.iter().filter(|(_, flow)| is_over(flow)).map(|(key, _)| *key).collect();
        over.iter().for_each(|key| self.let_go_of(now, key));
    }

    /// What waits of the flow goes on first.
    fn let_go_of(&mut self, now: Instant, key: &FlowKey) {
        if let Some(flow) = self.flows.get_mut(key) {
            flow.let_go(now, Because::NoRoom, &mut self.out);
        }
        self.forget(key);
    }

    pub(super) fn forget(&mut self, key: &FlowKey) {
        let Some(flow) = self.flows.remove(key) else { return };
        self.seats.leave(*key, flow.seat);
        if let Some(due) = flow.due {
            self.deadlines.remove(&(due, *key));
        }
    }

    /// A flow whose both sides were seen, and which its agent serves, has a lasting seat.
    pub(super) fn seat(&mut self, key: FlowKey) {
        let Some(flow) = self.flows.get_mut(&key).filter(|flow| flow.earns_a_seat()) else { return };
        if let seat @ Seat::Brief(_) = std::mem::replace(&mut flow.seat, Seat::Lasting) {
            self.seats.leave(key, seat);
            self.seats.sit(key, Seat::Lasting);
        }
    }
}
