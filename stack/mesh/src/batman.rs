//! B.A.T.M.A.N. IV: each node sends originator messages (OGM), and routes go back where the best ones came from.
//!
//! Every second a node broadcasts an OGM with the next number. Each neighbour passes it on, with the quality of the
//! path so far. A neighbour that repeats many of a node's messages hears that node well: the quality of a link is the
//! share of them. A node sends packets for an originator to the neighbour whose messages of it tell of the best path
//! (`originators.rs`). No node knows a whole route.
//!
//! Linux's batman-adv is the model: its constants, its counts, and its rules for what is passed on. Two things are
//! batmand's, which routes IP as nodes here do. Messages have its form (`message.rs`), and packets get no header of
//! the protocol. batman-adv's has 24 bytes, with the Ethernet header inside.
//!
//! The protocol believes in counts alone. A frame that the MAC gave up changes nothing, and a packet without a route is
//! dropped.

mod message;
mod originators;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::Path;
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, LinkId, NextHop};

use crate::constants::{ConstantForm, ON, constants};
use crate::on_demand::{
    Interface, Manners, MessageReceiver, Outbox, is_host, name_of, path_of, sender_of, v4,
};
use crate::protocol::{LiveRouter, PacketMark, RoutingProtocol, RoutingSetup};
use crate::routing::{ControlMessage, Cx, RoutedPacket, Routing, RoutingOrder, RoutingVerdict};
use message::{OGM_BYTES, Ogm};
use originators::Window;
use originators::{LinkNeighbour, Novelty, Originators};

/// The UDP port of batmand.
pub const PORT: u16 = 4305;

/// Messages share a packet up to this length.
const MOST_SHARED_BYTES: usize = 512;
/// The time for which a message waits for more messages.
const SHARING: Duration = Duration::from_millis(100);
/// The largest random delay of a message that is passed on.
const PASSING: Duration = Duration::from_millis(10);
/// The largest random shift of an originator message, to either side.
const JITTER: Duration = Duration::from_millis(20);
/// The time without a message after which a node forgets a neighbour or an originator.
const PURGE_TIMEOUT: Duration = Duration::from_secs(200);
/// The largest number of originators in the table of a node.
const MOST_ORIGINATORS: u32 = 4_096;
/// The time between two searches for what has been silent for long.
const PURGING: Duration = Duration::from_secs(1);

/// B.A.T.M.A.N. IV in the registry.
pub static DESCRIPTOR: RoutingProtocol = RoutingProtocol {
    name: "batman",
    summary: "B.A.T.M.A.N. IV, as in Linux's batman-adv; in world hwsim it is the kernel's own.",
    constants: Settings::CONSTANTS,
    subject: "B.A.T.M.A.N. IV",
    is_flat: false,
    mark: PacketMark::Port(PORT),
    needs_positions: false,
    live: LiveRouter::BatmanAdv,
    daemon: None,
    make: |constants, setup| Box::new(Batman::new(constants.into(), setup)),
};

/// A node that sends packets where the best originator messages come from.
#[derive(Debug)]
pub struct Batman {
    settings: Settings,
    interfaces: Vec<Interface>,
    own: Ipv4Addr,
    outbox: Outbox,
    seq: u16,
    next_own: Instant,
    /// The messages that leave with our next one, for each interface.
    beside_own: Vec<Vec<u8>>,
    /// Other messages that leave later.
    waiting: Vec<OutgoingBundle>,
    /// Which of our last messages each neighbour has repeated.
    echoes: BTreeMap<LinkNeighbour, Window>,
    originators: Originators,
    next_purge: Instant,
    lost: u64,
}

/// Messages that leave together.
#[derive(Debug)]
struct OutgoingBundle {
    at: Instant,
    link: LinkId,
    bytes: Vec<u8>,
}

/// A message on its way through a node: its sender, and whether that is the router to its originator.
#[derive(Clone, Copy)]
struct MessagePassage {
    from: LinkNeighbour,
    is_from_router: bool,
}

impl Batman {
    /// A node that has heard nobody yet, at time 0.
    pub fn new(settings: Settings, setup: RoutingSetup) -> Batman {
        let RoutingSetup { interfaces, seed, .. } = setup;
        let mut outbox = Outbox::new(Manners { port: PORT, everyone: Ipv4Addr::BROADCAST }, seed);
        Batman {
            own: name_of(&interfaces),
            seq: 0,
            next_own: Instant::ZERO + outbox.chance.up_to(settings.orig_interval),
            beside_own: vec![Vec::new(); interfaces.len()],
            waiting: Vec::new(),
            echoes: BTreeMap::new(),
            originators: Originators::new(MOST_ORIGINATORS),
            next_purge: Instant::ZERO + PURGING,
            lost: 0,
            interfaces,
            outbox,
            settings,
        }
    }

    fn router_to(&self, dst: IpAddr) -> Option<LinkNeighbour> {
        self.originators.get(v4(dst)?)?.router
    }

    fn echoes_of(&self, neighbour: LinkNeighbour) -> u8 {
        self.echoes.get(&neighbour).map_or(0, |window| window.count())
    }

    /// Sends our next message, with the messages that wait for it.
    fn send_own(&mut self, now: Instant) {
        self.seq = self.seq.wrapping_add(1);
        self.echoes.values_mut().for_each(|window| window.slide(1));
        let (seq, ttl) = (self.seq, self.settings.ttl);
        let own = Ogm {
            is_not_best: false,
            is_direct_link: false,
            ttl,
            seq,
            originator: self.own,
            previous: self.own,
            quality: originators::FULL,
        };
        for index in 0..self.interfaces.len() {
            let mut bytes = Vec::with_capacity(MOST_SHARED_BYTES);
            own.write(&mut bytes);
            bytes.append(&mut self.beside_own[index]);
            self.send(self.interfaces[index], &bytes);
        }
        let shift = self.outbox.chance.up_to(2 * JITTER);
        self.next_own = now + self.settings.orig_interval.saturating_sub(JITTER) + shift;
    }

    fn send(&mut self, interface: Interface, message: &[u8]) {
        let order = self.outbox.order(&interface, MessageReceiver::Everyone, 1, message);
        self.outbox.push(order);
    }

    fn send_waiting(&mut self, now: Instant) {
        let due: Vec<_> = self.waiting.extract_if(.., |waiting| waiting.at <= now).collect();
        for OutgoingBundle { link, bytes, .. } in due {
            if let Some(interface) = self.interfaces.iter().find(|interface| interface.link == link).copied()
            {
                self.send(interface, &bytes);
            }
        }
    }

    /// Files a message for an interface: with another packet that leaves soon, or in one that waits for more.
    fn file(&mut self, now: Instant, index: usize, ogm: &Ogm) {
        let at = now + self.outbox.chance.up_to(PASSING);
        let link = self.interfaces[index].link;
        if !self.settings.aggregated_ogms {
            let mut bytes = Vec::with_capacity(OGM_BYTES);
            ogm.write(&mut bytes);
            self.waiting.push(OutgoingBundle { at, link, bytes });
            return;
        }
        let is_soon = |leaves: Instant| leaves > at && leaves <= at + SHARING;
        let beside_own = &mut self.beside_own[index];
        if is_soon(self.next_own) && beside_own.len() + 2 * OGM_BYTES <= MOST_SHARED_BYTES {
            ogm.write(beside_own);
            return;
        }
        let fits = |waiting: &&mut OutgoingBundle| {
            waiting.link == link
                && is_soon(waiting.at)
                && waiting.bytes.len() + OGM_BYTES <= MOST_SHARED_BYTES
        };
        match self.waiting.iter_mut().find(fits) {
            Some(waiting) => ogm.write(&mut waiting.bytes),
            None => {
                let mut bytes = Vec::with_capacity(MOST_SHARED_BYTES);
                ogm.write(&mut bytes);
                self.waiting.push(OutgoingBundle { at: at + SHARING, link, bytes });
            }
        }
    }

    /// The messages of a packet, and the neighbour that sent it.
    fn read(&self, control: &ControlMessage<'_>) -> Result<(LinkNeighbour, Vec<Ogm>), DropReason> {
        let from = sender_of(control, self.own)?;
        let ogms = message::read_all(control.message).ok_or(DropReason::RoutingMalformed)?;
        Ok(((control.link, from), ogms))
    }

    /// Takes a neighbour's message.
    fn take(&mut self, now: Instant, from: LinkNeighbour, ogm: &Ogm) {
        if ogm.originator == self.own {
            self.note_echo(from, ogm);
            return;
        }
        // Our own echoes tell nothing, nor do messages that their sender does not stand for.
        if ogm.previous == self.own || ogm.is_not_best || ogm.quality == 0 || !is_host(ogm.originator) {
            return;
        }
        let is_direct = from.1 == ogm.originator;
        if !is_direct && self.router_to(from.1.into()).is_none() || self.may_loop(ogm) {
            return;
        }
        let Some(originator) = self.originators.entry(ogm.originator, ogm.seq) else { return };
        let passage = MessagePassage { from, is_from_router: originator.router == Some(from) };
        let novelty = originator.note(now, from, ogm.seq, ogm.ttl);
        if novelty == Novelty::Old {
            return;
        }
        let quality = self.quality_over(from, ogm.quality);
        if quality > 0 {
            self.rank(from, ogm, quality, novelty);
        }
        if is_direct || quality > 0 && novelty != Novelty::Repeated {
            self.pass_on(now, passage, is_direct, &Ogm { quality, ..*ogm });
        }
    }

    /// A neighbour has repeated a message of ours, as one of a neighbour of its own.
    fn note_echo(&mut self, from: LinkNeighbour, ogm: &Ogm) {
        if ogm.is_direct_link && self.originators.get(from.1).is_some() {
            self.echoes.entry(from).or_default().mark(self.seq.wrapping_sub(ogm.seq));
        }
    }

    /// Returns whether the sender has the message from our own router to its originator, which is not a neighbour of
    /// ours itself. Each of the two would then send packets to the other one.
    fn may_loop(&self, ogm: &Ogm) -> bool {
        let router = self.router_to(ogm.originator.into());
        router.is_some_and(|(link, router)| {
            router == ogm.previous
                && ogm.originator != ogm.previous
                && self.router_to(router.into()) == Some((link, router))
        })
    }

    /// The quality of a path over this neighbour, which itself has a path of quality `told`.
    fn quality_over(&self, from: LinkNeighbour, told: u8) -> u8 {
        let received = self.originators.get(from.1).map_or(0, |neighbour| neighbour.count(from));
        originators::over_link(told, self.echoes_of(from), received)
    }

    fn rank(&mut self, from: LinkNeighbour, ogm: &Ogm, quality: u8, novelty: Novelty) {
        let Some(originator) = self.originators.get_mut(ogm.originator) else { return };
        if !originator.is_ranked(novelty, ogm.seq, ogm.ttl) {
            return;
        }
        let echoes = &self.echoes;
        let echoes_of = |neighbour| echoes.get(&neighbour).map_or(0, |window| window.count());
        originator.rank(from, (quality, ogm.ttl), novelty, echoes_of);
        self.report(ogm.originator);
    }

    /// Informs connections where the hops to an originator have changed.
    fn report(&mut self, node: Ipv4Addr) {
        let Some(originator) = self.originators.get_mut(node) else { return };
        let hops = originator.hops(self.settings.ttl);
        self.outbox.report_route(node, &mut originator.reported_hops, hops);
    }

    /// Passes a message on. Those of neighbours go back too, as their echo, also where they are not of the router.
    fn pass_on(&mut self, now: Instant, passage: MessagePassage, is_direct: bool, ogm: &Ogm) {
        let MessagePassage { from: (came, from), is_from_router } = passage;
        if ogm.ttl <= 1 || !(is_from_router || is_direct) {
            return;
        }
        for index in 0..self.interfaces.len() {
            let is_same = self.interfaces[index].link == came;
            if !(is_same || is_from_router) {
                continue;
            }
            // A radio cannot receive while it sends: two hops on one link cost more.
            let penalty = self.settings.hop_penalty;
            let quality = if is_same { originators::after_hop(ogm.quality, penalty) } else { ogm.quality };
            let passed = Ogm {
                is_not_best: !is_from_router,
                is_direct_link: is_direct && is_same,
                ttl: ogm.ttl - 1,
                previous: from,
                quality: originators::after_hop(quality, penalty),
                ..*ogm
            };
            self.file(now, index, &passed);
        }
    }

    fn purge(&mut self, now: Instant) {
        self.next_purge = now + PURGING;
        for node in self.originators.forget(now, PURGE_TIMEOUT) {
            let had = self.originators.get(node).is_some_and(|originator| originator.reported_hops.is_some());
            self.report(node);
            self.lost += u64::from(had && self.router_to(node.into()).is_none());
        }
        self.originators.remove_silent();
        let originators = &self.originators;
        self.echoes.retain(|(_, neighbour), _| originators.get(*neighbour).is_some());
    }
}

impl Routing for Batman {
    fn port(&self) -> Option<u16> {
        Some(PORT)
    }

    fn route(&mut self, _cx: &Cx<'_>, packet: &RoutedPacket<'_>) -> RoutingVerdict {
        match self.router_to(packet.dst) {
            Some((link, via)) => RoutingVerdict::Forward { link, via: NextHop::Neighbour(via.into()) },
            None => RoutingVerdict::Drop(DropReason::NoRoute),
        }
    }

    fn handle_control(&mut self, cx: &Cx<'_>, control: &ControlMessage<'_>) {
        match self.read(control) {
            Ok((from, ogms)) => ogms.iter().for_each(|ogm| self.take(cx.now, from, ogm)),
            Err(reason) => self.outbox.dropped(reason, 0),
        }
    }

    fn handle_timeout(&mut self, cx: &Cx<'_>) {
        let now = cx.now;
        if self.next_own <= now {
            self.send_own(now);
        }
        self.send_waiting(now);
        if self.next_purge <= now {
            self.purge(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self.waiting.iter().map(|waiting| waiting.at);
        waiting.chain([self.next_own, self.next_purge]).chain(self.outbox.next()).min()
    }

    fn poll_order(&mut self, now: Instant) -> Option<RoutingOrder> {
        self.outbox.pop(now)
    }

    fn next_hop(&self, _now: Instant, dst: IpAddr) -> Option<(LinkId, IpAddr)> {
        self.router_to(dst).map(|(link, via)| (link, via.into()))
    }

    fn path(&self, peer: IpAddr) -> Path {
        let originator = v4(peer).and_then(|peer| self.originators.get(peer));
        path_of(originator.and_then(|originator| originator.hops(self.settings.ttl)))
    }

    /// The protocol has no searches. A route fails where the last neighbour that led there is forgotten.
    fn counts(&self) -> (u64, u64) {
        (0, self.lost)
    }
}

#[cfg(test)]
mod tests;

// Constants of B.A.T.M.A.N. IV, each a setting, with the defaults of Linux's batman-adv.

constants! {
    /// Constants of B.A.T.M.A.N. IV, with the defaults of Linux's batman-adv.
    Settings;
    /// Time between two originator messages of a node
    orig_interval: Duration = ConstantForm::time(40).is(1_000),
    /// Parts of 255 by which each hop lowers the quality of a path
    hop_penalty: u8 = ConstantForm::count("parts", 0, 255).is(30),
    /// Originator messages that a node passes on wait up to 100 ms for others, and share a packet with them
    aggregated_ogms: bool = ConstantForm::Switch.is(ON),
    /// TTL with which a node sends its originator messages, and so the largest number of hops of a path
    ttl: u8 = ConstantForm::count("hops", 2, 255).is(50),
}
