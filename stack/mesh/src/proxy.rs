//! The base station's proxy: a machine between a link to the fixed side and a link to mobiles. It hosts an agent for
//! each flow that crosses it.
//!
//! Invariant P5: packets pass untouched wherever the proxy does not understand something or has no room.

mod config;
mod entries;
mod facts;
mod flow;
mod outbox;
mod read;
mod relay;
mod relays;
mod room;
mod rtt;
mod store;
mod syns;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use hopwise_core::agent::{BadSpec, BaseStationMaker, Because, LinkNews, MakeServes, Serves, Side, Split};
use hopwise_core::trace::{DropReason, TraceEvent, TraceKind};
use hopwise_core::wire::{Checksums, Flags};
use hopwise_core::{Instant, LinkEvent, LinkId, Machine, NextHop, Payload, QueueClass, Rx, Transmit};

pub use config::ProxyCounts;
pub use config::{ProxyConfig, ProxyRule};
use entries::Entries;
use flow::{CurrentPacket, ProxyFlow};
use outbox::Outbox;
pub use read::FlowKey;
use read::ReadPacket;
use relay::{HalfParameters, Relay};
use relays::{MOST_DUE, OfSyn, Relays};
use room::Sweeps;
use store::PacketStore;
use syns::Syns;

/// The largest number of mobiles whose links are known not to be up.
const MOST_LINKS: usize = 4_096;
/// The shortest time between two calls of an agent whose deadline stays due.
const AT_THE_EARLIEST: Duration = Duration::from_millis(1);

/// The machine of a base station: it passes packets between two links, and serves flows by their agents.
pub struct Proxy {
    config: ProxyConfig,
    rules: Vec<(ProxyRule, MakeServes)>,
    flows: BTreeMap<FlowKey, ProxyFlow>,
    /// Flows that are cut in two; none of them is in `flows`.
    relays: Relays,
    syns: Syns,
    /// The agents' deadlines, equal to `ProxyFlow::due`.
    deadlines: BTreeSet<(Instant, FlowKey)>,
    /// Links that are not up, with the last news of them.
    links: BTreeMap<IpAddr, LinkNews>,
    out: Outbox,
    numbers: u32,
    entries: Entries,
    sweeps: Sweeps,
    gave_way: u64,
    packets: u64,
    untouched: u64,
}

impl Proxy {
    /// Refuses rules with unknown agents.
    pub fn new(
        config: ProxyConfig,
        maker: Box<dyn BaseStationMaker>,
    ) -> Result<Proxy, Box<dyn Error + Send + Sync>> {
        let read = |rule: &ProxyRule| Ok((rule.clone(), maker.base_station(&rule.agent)?));
        let rules = config.rules.iter().map(read).collect::<Result<_, BadSpec>>()?;
        let out = Outbox::new(config.most_queued, config.most_kept_bytes, config.trace_events);
        let entries = Entries::new(config.most_kept_bytes);
        Ok(Proxy {
            config,
            rules,
            flows: BTreeMap::new(),
            relays: Relays::default(),
            syns: Syns::default(),
            deadlines: BTreeSet::new(),
            links: BTreeMap::new(),
            out,
            numbers: 0,
            entries,
            sweeps: Sweeps::default(),
            gave_way: 0,
            packets: 0,
            untouched: 0,
        })
    }

    /// The packets that were dropped for this reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.out.trace.drops(reason)
    }

    /// The gauges of a flow's agent.
    pub fn gauges(&self, key: &FlowKey, sink: &mut dyn FnMut(&'static str, u64)) {
        if let Some(flow) = self.flows.get(key) {
            flow.gauges(sink);
        }
    }

    /// Returns whether the next packet for this link has not waited. A node with a queue may drop such a packet.
    pub fn next_is_passing(&mut self, link: LinkId) -> bool {
        let Some(to) = self.side_of(link) else { return false };
        self.out.queue(to).front().is_some_and(|leaving| leaving.is_passing)
    }

    /// Takes data back that the link to the mobile gave up; returns whether it is kept.
    pub fn take_back(&mut self, now: Instant, packet: &[u8]) -> bool {
        let Some(read) = read::read(packet, Side::Fixed, self.config.checksums) else { return false };
        let Some(flow) = self.flows.get_mut(&read.key) else { return false };
        let id = self.out.next_id();
        let has_room = self.entries.has_room(&read.key, flow.charge, PacketStore::cost(packet));
        let at_hand = CurrentPacket::new(id, packet, &read, None, has_room);
        let is_kept = flow.take_back(now, &read, at_hand, &mut self.out);
        Proxy::file(&mut self.deadlines, &mut self.entries, read.key, flow, now);
        self.keep_within(now);
        is_kept
    }

    /// Releases all waiting packets, because the proxy is about to end. Flows that are cut in two end with it.
    pub fn let_go(&mut self, now: Instant) {
        let (relays, mut books) = self.relays();
        relays.abort(now, &mut books);
        for (key, flow) in &mut self.flows {
            flow.let_go(now, Because::NoRoom, &mut self.out);
            Proxy::file(&mut self.deadlines, &mut self.entries, *key, flow, now);
        }
    }

    fn side_of(&self, link: LinkId) -> Option<Side> {
        if link == self.config.fixed {
            Some(Side::Fixed)
        } else if link == self.config.mobile {
            Some(Side::Mobile)
        } else {
            None
        }
    }

    fn take(&mut self, now: Instant, from: Side, packet: &[u8]) {
        self.packets += 1;
        let id = self.out.next_id();
        let read = read::read(packet, from, self.config.checksums);
        if read.as_ref().is_some_and(|read| self.take_cut(now, from, read, packet)) {
            return;
        }
        if let Some(read) = &read {
            self.reopen(now, from, read);
        }
        let Some(read) = read.filter(|read| self.follow(now, from, read, packet)) else {
            self.untouched += 1;
            return self.out.pass(now, from.other(), id, packet);
        };
        let key = read.key;
        let link = self.links.get(&key.mobile.ip()).copied();
        let Some(flow) = self.flows.get_mut(&key) else { unreachable!("it is followed") };
        let has_room = self.entries.has_room(&key, flow.charge, PacketStore::cost(packet));
        let at_hand = CurrentPacket::new(id, packet, &read, link, has_room);
        flow.take(now, from, &read, at_hand, &mut self.out);
        Proxy::file(&mut self.deadlines, &mut self.entries, key, flow, now);
        self.keep_within(now);
    }

    /// Returns whether the packet went to a flow that is cut in two, or that is cut now.
    fn take_cut(&mut self, now: Instant, from: Side, read: &ReadPacket<'_>, packet: &[u8]) -> bool {
        let flags = read.tcp.flags;
        let is_opening = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        if is_opening && self.flows.get(&read.key).is_some_and(ProxyFlow::is_under_way) {
            return false;
        }
        let (relays, mut books) = self.relays();
        if !is_opening {
            let is_taken = relays.take(now, from, (read.key, packet), &mut books);
            self.keep_within(now);
            return is_taken;
        }
        let of_syn = relays.take_syn(now, from, (read.key, read.tcp.seq, packet), &mut books);
        let OfSyn::Free { displaced } = of_syn else {
            self.keep_within(now);
            return true;
        };
        let Some(Serves::Split(split)) = self.serves(&read.key) else { return false };
        let mobile = read.key.mobile.ip();
        if self.relays.is_behind(now) || !self.has_memory(mobile) || !self.has_room(now, mobile) {
            return false;
        }
        self.forget(&read.key);
        let Split { buffer_bytes, makers, .. } = split;
        let making = HalfParameters { buffer_bytes, key: self.config.key, checksums: self.config.checksums };
        let flow = (read.key, read.tcp.seq);
        let Some(mut relay) = Relay::open(now, from, flow, packet, &making, makers) else { return false };
        relay.displaces(displaced);
        let (relays, mut books) = self.relays();
        relays.insert(now, read.key, relay, &mut books);
        self.keep_within(now);
        true
    }

    /// The agent or relay for a new flow, by the first matching rule.
    fn serves(&self, key: &FlowKey) -> Option<Serves> {
        let (_, make) = self.rules.iter().find(|(rule, _)| rule.fits(key))?;
        Some(make())
    }

    /// Returns whether the flow is in the table, or can be put there.
    fn follow(&mut self, now: Instant, from: Side, read: &ReadPacket<'_>, packet: &[u8]) -> bool {
        let flags = read.tcp.flags;
        let is_opening = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        if let Some(flow) = self.flows.get_mut(&read.key) {
            let is_another = is_opening && flow.facts.opened != Some((from, read.tcp.seq));
            if is_another && !flow.has_ended() {
                self.syns.note(from, read, packet);
            }
            if !is_another || !flow.has_ended() {
                return true;
            }
            // The ports are used again: the waiting packets of the old flow leave first.
            flow.let_go(now, Because::NoWaiting, &mut self.out);
            self.forget(&read.key);
        } else if flags.contains(Flags::RST) {
            return false;
        }
        let Some(agent) = self.serves(&read.key).map(Serves::agent) else { return false };
        if !self.has_room(now, read.key.mobile.ip()) {
            return false;
        }
        self.numbers = self.numbers.wrapping_add(1).max(1);
        let flow = ProxyFlow::new(self.numbers, agent, self.config.most_kept_bytes_a_flow, now);
        self.entries.enter(read.key, flow.entry);
        self.flows.insert(read.key, flow);
        true
    }

    /// The other end has answered a SYN of a followed flow: the ports are used again.
    fn reopen(&mut self, now: Instant, from: Side, answer: &ReadPacket<'_>) {
        let key = answer.key;
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let Some(packet) = self.syns.answered(from, answer, flow.facts.opened) else { return };
        let Some(syn) = read::read(&packet, from.other(), Checksums::Trust) else { return };
        flow.let_go(now, Because::NoWaiting, &mut self.out);
        self.forget(&key);
        if self.follow(now, from.other(), &syn, &packet)
            && let Some(flow) = self.flows.get_mut(&key)
        {
            flow.begin(now, from.other(), &syn);
        }
    }

    /// Updates a flow's entry, memory and deadline after a change.
    fn file(
        deadlines: &mut BTreeSet<(Instant, FlowKey)>,
        entries: &mut Entries,
        key: FlowKey,
        flow: &mut ProxyFlow,
        now: Instant,
    ) {
        Proxy::update_entry(entries, key, flow);
        let due = flow.deadline().map(|due| due.max(now));
        if due == flow.due {
            return;
        }
        if let Some(old) = flow.due {
            deadlines.remove(&(old, key));
        }
        if let Some(due) = due {
            deadlines.insert((due, key));
        }
        flow.due = due;
    }

    /// Informs every flow of that mobile. News may be late, repeated, or about unknown mobiles.
    fn tell(&mut self, now: Instant, peer: IpAddr, news: LinkNews) {
        self.out.note(now, 0, 0, TraceKind::LinkTold { news });
        if news == LinkNews::Up {
            self.links.remove(&peer);
        } else if self.links.len() < MOST_LINKS || self.links.contains_key(&peer) {
            self.links.insert(peer, news);
        }
        for (key, flow) in self.flows.range_mut(FlowKey::first_of(peer)..) {
            if key.mobile.ip() != peer {
                break;
            }
            flow.hear(now, news, &mut self.out);
            Proxy::file(&mut self.deadlines, &mut self.entries, *key, flow, now);
        }
    }
}

impl Machine for Proxy {
    fn handle_packet(&mut self, now: Instant, rx: &Rx<'_>) {
        if let Some(from) = self.side_of(rx.link) {
            self.take(now, from, rx.packet);
        }
    }

    fn handle_link_event(&mut self, now: Instant, link: LinkId, event: &LinkEvent<'_>) {
        if self.side_of(link) != Some(Side::Mobile) {
            return;
        }
        match *event {
            LinkEvent::GoingDown { peer, rtt, outage, within } => {
                self.tell(now, peer, LinkNews::GoingDown { rtt, outage, within });
            }
            LinkEvent::Gone { peer } => self.tell(now, peer, LinkNews::Gone),
            LinkEvent::Up { peer } => self.tell(now, peer, LinkNews::Up),
            LinkEvent::NotDelivered { packet, .. } => {
                self.take_back(now, packet);
            }
            LinkEvent::Delivered { .. } | LinkEvent::Signal { .. } => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let (relays, mut books) = self.relays();
        relays.handle_timeout(now, &mut books);
        self.keep_within(now);
        for _ in 0..MOST_DUE {
            let first = self.deadlines.first().copied();
            let Some((due, key)) = first.filter(|(due, _)| *due <= now) else { break };
            self.deadlines.remove(&(due, key));
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            flow.due = None;
            flow.handle_deadline(now, &mut self.out);
            Proxy::file(&mut self.deadlines, &mut self.entries, key, flow, now);
            if let Some(due) = flow.due.filter(|due| *due <= now) {
                self.deadlines.remove(&(due, key));
                let later = now + AT_THE_EARLIEST;
                self.deadlines.insert((later, key));
                flow.due = Some(later);
            }
        }
    }

    fn poll_transmit(
        &mut self,
        now: Instant,
        link: LinkId,
        _: Payload,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let to = self.side_of(link)?;
        let Some(mut leaving) = self.out.queue(to).pop() else {
            let (relays, mut books) = self.relays();
            let transmit = relays.poll_transmit(now, to, out, &mut books)?;
            return Some(Transmit { id: self.out.next_id(), ..transmit });
        };
        std::mem::swap(out, &mut leaving.packet);
        self.out.spare.keep(leaving.packet);
        Some(Transmit { to: NextHop::Link, class: QueueClass::Data, segment_bytes: None, id: leaving.id })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let of_agents = self.deadlines.first().map(|(due, _)| *due);
        of_agents.into_iter().chain(self.relays.poll_timeout()).min()
    }

    fn drain_trace(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        self.out.trace.drain(sink);
    }

    fn keep_trace(&mut self, is_kept: bool) {
        self.out.trace.keep(is_kept);
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("flows", &self.flows.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
