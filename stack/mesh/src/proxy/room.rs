//! Room in the proxy's table: flows that are over are forgotten, and the least important ones give way.

use std::net::IpAddr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::Because;
use hopwise_core::endpoint::Memory;

use super::Proxy;
use super::entries::{Charge, Entries, ProxyEntry};
use super::flow::ProxyFlow;
use super::read::FlowKey;
use super::relays::{Books, Relays};

/// The silence after which a flow is forgotten, and the one after its end.
const IDLE: Duration = Duration::from_secs(15 * 60);
const ENDED: Duration = Duration::from_secs(30);
/// The silence after which a flow with a brief entry is forgotten.
const BRIEF: Duration = Duration::from_secs(10);
/// The time between two sweeps.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The times of the last sweeps.
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
    /// Returns whether one more flow of this mobile can be followed. Others may give way to it.
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

    /// Makes one flow give way, if one may.
    fn make_room(&mut self, now: Instant, mobile: IpAddr) {
        if let Some(key) = self.gives_way(mobile) {
            self.gave_way += 1;
            self.let_go_of(now, &key);
        }
    }

    /// Returns whether there is memory to cut one more flow of this mobile in two.
    pub(super) fn has_memory(&self, mobile: IpAddr) -> bool {
        self.entries.left_for(mobile) != Memory::Spent
    }

    /// Makes flows give way while they hold more than the memory. The mobile that holds the most gives up the packets
    /// of its largest flow. If that flow is cut, it gives up the cut flow whose data has stood still for longest.
    pub(super) fn keep_within(&mut self, now: Instant) {
        while self.entries.are_overdrawn() {
            let Some((mobile, key)) = self.entries.holds_most() else { return };
            if let Some(flow) = self.flows.get_mut(&key) {
                flow.make_room(now, &mut self.out);
                Proxy::file(&mut self.deadlines, &mut self.entries, key, flow, now);
                continue;
            }
            let stillest = self.relays.stillest(mobile).unwrap_or(key);
            self.gave_way += 1;
            self.let_go_of(now, &stillest);
        }
    }

    fn is_full(&self) -> bool {
        self.flows.len() + self.relays.len() >= self.config.most_flows
    }

    /// A flow without a lasting entry, or the most silent one of the mobile with too many.
    fn gives_way(&self, to: IpAddr) -> Option<FlowKey> {
        let brief = self.entries.first_to_go();
        brief.or_else(|| self.most_silent(self.entries.has_too_many(to)?))
    }

    fn most_silent(&self, mobile: IpAddr) -> Option<FlowKey> {
        let flows = self.flows.range(FlowKey::first_of(mobile)..);
        let flows = flows.take_while(|(key, _)| key.mobile.ip() == mobile);
        let silent = flows.map(|(key, flow)| (flow.seen_at, *key));
        let cut = self.relays.of(mobile).map(|(key, relay)| (relay.moved_at, *key));
        silent.chain(cut).min().map(|(_, key)| key)
    }

    /// Forgets silent flows with brief entries, and cut ones whose opener is silent. Packets that wait for a link stay.
    fn sweep_brief(&mut self, now: Instant) {
        if !is_due(&mut self.sweeps.brief, now) {
            return;
        }
        let is_over = |flow: &ProxyFlow| now.since(flow.seen_at) >= BRIEF && flow.kept_packets() == 0;
        let brief = self.entries.brief_flows();
        let is_over = |key: &FlowKey| {
            self.flows.get(key).is_some_and(is_over) || self.relays.has_no_opener(key, now, BRIEF)
        };
        let over: Vec<_> = brief.filter(is_over).collect();
        over.iter().for_each(|key| self.let_go_of(now, key));
    }

    /// Forgets flows that are over.
    fn sweep(&mut self, now: Instant) {
        if !is_due(&mut self.sweeps.all, now) {
            return;
        }
        let (relays, mut books) = self.relays();
        relays.sweep(now, IDLE, &mut books);
        let is_over =
            |flow: &ProxyFlow| now.since(flow.seen_at) >= if flow.has_ended() { ENDED } else { IDLE };
        let over: Vec<_> = self.flows.iter().filter(|(_, flow)| is_over(flow)).map(|(key, _)| *key).collect();
        over.iter().for_each(|key| self.let_go_of(now, key));
    }

    /// Forgets a flow after its waiting packets have left. Both ends of a cut one get a RST.
    fn let_go_of(&mut self, now: Instant, key: &FlowKey) {
        if let Some(flow) = self.flows.get_mut(key) {
            flow.let_go(now, Because::NoRoom, &mut self.out);
        }
        self.forget(key);
        let (relays, mut books) = self.relays();
        relays.give_up(now, key, &mut books);
    }

    /// The cut flows, with the books that they write into.
    pub(super) fn relays(&mut self) -> (&mut Relays, Books<'_>) {
        (&mut self.relays, Books { entries: &mut self.entries, out: &mut self.out })
    }

    pub(super) fn forget(&mut self, key: &FlowKey) {
        let Some(flow) = self.flows.remove(key) else { return };
        self.entries.leave(*key, flow.entry);
        self.entries.hold(*key, flow.charge, Charge::NONE);
        if let Some(due) = flow.due {
            self.deadlines.remove(&(due, *key));
        }
    }

    /// Gives a flow a lasting entry, once both sides were seen and its agent serves it.
    pub(super) fn update_entry(entries: &mut Entries, key: FlowKey, flow: &mut ProxyFlow) {
        if flow.entry != ProxyEntry::Lasting && flow.earns_a_lasting_entry() {
            entries.leave(key, std::mem::replace(&mut flow.entry, ProxyEntry::Lasting));
            entries.enter(key, ProxyEntry::Lasting);
        }
        let charge = Charge::new(flow.entry, flow.kept_bytes());
        entries.hold(key, std::mem::replace(&mut flow.charge, charge), charge);
    }
}
