//! HWMP on demand: the path selection of mesh networks (IEEE 802.11s), by airtime, and the peering below it.
//!
//! Nodes find each other by beacons and become peers (`peers.rs`). A node that needs a path broadcasts a request (PREQ)
//! with its sequence number, and each node adds the metric of the last link as it passes the request on. Replies (PREP)
//! go back where the best requests came from (`selection.rs`). The metric of a link is the airtime of a frame
//! (`metric.rs`), by the rates and the losses of the frames that the node sent there. A path lives for some seconds,
//! and packets renew it before its end. A neighbour that loses nearly all frames takes its paths along, and an error
//! (PERR) tells the other neighbours.
//!
//! Linux's mac80211 is the model: its constants, its steps, and its averages. These things are different. Messages are
//! the bodies of 802.11 frames (`frames.rs`), but they travel as UDP, as nodes here carry IP. The rate of a link is the
//! average of its acknowledged frames, also where a driver of Linux has an estimate of its throughput. A search whose
//! retry finds no room among 64 searches tries again, and a search whose answered path is lost meanwhile asks anew:
//! mac80211 leaves both until the next packet. There are no root announcements, no gates and no proxies: mac80211 has
//! them off.

mod frames;
mod metric;
mod paths;
mod peers;
mod selection;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, LinkId, NextHop, QueueClass};

use crate::constants::{ConstantForm, constants};
use crate::on_demand::{Interface, Manners, MessageReceiver, Outbox, name_of, path_of, sender_of, v4};
use crate::protocol::{LiveRouter, PacketMark, RoutingProtocol, RoutingSetup};
use crate::routing::{
    ControlMessage, Cx, Hop, RoutedPacket, Routing, RoutingOrder, RoutingVerdict, Undelivered,
};
use frames::Frame;
use paths::{PathlessPacket, Paths};
use peers::{PeerKey, PeerStep, Peers};
use selection::Selection;

/// The UDP port of the messages. HWMP itself has none.
pub const PORT: u16 = 4_306;

/// A time unit of 802.11.
const TIME_UNIT: Duration = Duration::from_micros(1_024);
/// An answering frame leaves after a random part of this time, as from a work queue. Without it, all nodes that heard a
/// frame would begin to send in one slot.
const WORK: Duration = Duration::from_micros(500);
/// The largest number of packets of the node itself that wait for one path; the oldest gives way.
const FRAME_QUEUE: u32 = 10;
/// The largest number of paths in the table of a node.
const MOST_PATHS: u32 = 1_024;
/// The share of lost frames in percent, as a moving average, above which a node gives up all paths over that neighbour.
const LINK_FAIL_THRESHOLD: u8 = 95;
/// The time between two looks for what is to be forgotten.
const HOUSEKEEPING: Duration = Duration::from_secs(60);

/// HWMP in the registry.
pub static DESCRIPTOR: RoutingProtocol = RoutingProtocol {
    name: "hwmp",
    summary: "HWMP, the path selection of 802.11s, as in Linux's mac80211; in world hwsim it is the kernel's own.",
    constants: Settings::CONSTANTS,
    subject: "HWMP and of mesh peering",
    is_flat: false,
    mark: PacketMark::Port(PORT),
    needs_positions: false,
    live: LiveRouter::Mac80211,
    daemon: None,
    make: |constants, setup| Box::new(Hwmp::new(constants.into(), setup)),
};

/// A node of a mesh network with HWMP.
#[derive(Debug)]
pub struct Hwmp {
    settings: Settings,
    interfaces: Vec<Interface>,
    own: Ipv4Addr,
    outbox: Outbox,
    peers: Peers,
    paths: Paths,
    selection: Selection,
    next_beacon: Instant,
    next_housekeeping: Instant,
    discoveries: u64,
    failures: u64,
}

impl Hwmp {
    /// A node without peers, at time 0.
    pub fn new(settings: Settings, setup: RoutingSetup) -> Hwmp {
        let RoutingSetup { interfaces, first_kbps, seed, .. } = setup;
        let mut outbox = Outbox::new(Manners { port: PORT, everyone: Ipv4Addr::BROADCAST }, seed);
        Hwmp {
            own: name_of(&interfaces),
            interfaces,
            next_beacon: Instant::ZERO + outbox.chance.up_to(settings.beacon_interval),
            next_housekeeping: Instant::ZERO + HOUSEKEEPING,
            peers: Peers::new(settings.clone(), first_kbps, outbox.chance.seed()),
            paths: Paths::new(MOST_PATHS),
            selection: Selection::default(),
            discoveries: 0,
            failures: 0,
            outbox,
            settings,
        }
    }

    fn tell_everyone(&mut self, at: Instant, frame: &Frame) {
        let message = frame.bytes();
        for interface in &self.interfaces {
            let order = self.outbox.order(interface, MessageReceiver::Everyone, 1, &message);
            self.outbox.push_at(at, order);
        }
    }

    fn tell(&mut self, at: Instant, (link, to): PeerKey, frame: &Frame) {
        if let Some(interface) = self.interfaces.iter().find(|interface| interface.link == link) {
            let order = self.outbox.order(interface, MessageReceiver::Neighbour(to), 1, &frame.bytes());
            self.outbox.push_at(at, order);
        }
    }

    /// The time at which the answer to a frame leaves.
    fn soon(&mut self, now: Instant) -> Instant {
        now + self.outbox.chance.up_to(WORK)
    }

    fn send_beacon(&mut self, now: Instant) {
        self.next_beacon = now + self.settings.beacon_interval;
        let units = self.settings.beacon_interval.as_micros() / TIME_UNIT.as_micros();
        let interval = u16::try_from(units).unwrap_or(u16::MAX);
        let peers = u8::try_from(self.peers.established()).unwrap_or(u8::MAX);
        let beacon = Frame::Beacon { interval, peers, accepts: self.peers.has_room() };
        self.tell_everyone(now, &beacon);
    }

    /// Carries out a step of peering.
    fn obey(&mut self, now: Instant, neighbour: PeerKey, step: PeerStep) {
        for frame in step.frames {
            let at = self.soon(now);
            self.tell(at, neighbour, &frame);
        }
        if step.is_lost {
            self.flush(neighbour);
        }
    }

    /// A peer is none any more. Paths over it are forgotten, and packets that wait for them are dropped.
    fn flush(&mut self, neighbour: PeerKey) {
        for (node, path) in self.paths.flush(neighbour) {
            self.failures += u64::from(path.is_active);
            if path.reported_hops.is_some() {
                self.outbox.tell(node, None, PathEvent::RouteFailed, None);
            }
            path.waiting.iter().for_each(|waiting| self.outbox.dropped(DropReason::NoRoute, waiting.id));
        }
    }

    /// All paths over a neighbour are lost.
    fn lose(&mut self, now: Instant, neighbour: PeerKey) {
        for (node, sn) in self.paths.lose(now, neighbour) {
            self.failures += 1;
            self.report(node);
            self.tell_error(now, (node, sn), selection::UNREACHABLE);
        }
    }

    /// Informs connections of the node where the hops of a path have changed.
    fn report(&mut self, node: Ipv4Addr) {
        let Some(path) = self.paths.known_mut(node).filter(|path| path.is_ours) else { return };
        let hops = path.via().map(|_| path.hops);
        self.outbox.report_route(node, &mut path.reported_hops, hops);
    }

    /// Sends the packets that have waited for a path.
    fn release(&mut self, node: Ipv4Addr) {
        let Some(path) = self.paths.known_mut(node) else { return };
        let Some((link, via)) = path.via() else { return };
        for PathlessPacket { packet, .. } in std::mem::take(&mut path.waiting) {
            self.outbox.send((link, via), QueueClass::Data, packet);
        }
    }

    /// The neighbour that sent a message, and the frame in it.
    fn read(&self, control: &ControlMessage<'_>) -> Result<(PeerKey, Frame), DropReason> {
        let from = sender_of(control, self.own)?;
        let frame = Frame::read(control.message).ok_or(DropReason::RoutingMalformed)?;
        Ok(((control.link, from), frame))
    }

    fn take(&mut self, now: Instant, from: PeerKey, frame: &Frame) {
        let step = match frame {
            Frame::Beacon { accepts, .. } => self.peers.on_beacon(now, from, *accepts),
            Frame::Open(said) => self.peers.on_open(now, from, said.own),
            Frame::Confirm(said) => self.peers.on_confirm(now, from, *said),
            Frame::Close(said) => self.peers.on_close(now, from, *said),
            _ if !self.peers.is_peer(from) => return self.outbox.dropped(DropReason::RoutingRefused, 0),
            Frame::Preq(preq) => return self.take_preq(now, from, preq),
            Frame::Prep(prep) => return self.take_prep(now, from, prep),
            Frame::Perr(perr) => return self.take_perr(now, from, perr),
        };
        self.obey(now, from, step);
    }

    fn keep_house(&mut self, now: Instant) {
        self.next_housekeeping = now + HOUSEKEEPING;
        for (neighbour, close) in self.peers.forget(now) {
            self.tell(now, neighbour, &close);
            self.flush(neighbour);
        }
        self.paths.forget(now);
    }

    /// The path that packets of this node, or forwarded packets, take to a node.
    fn way(&mut self, now: Instant, node: Ipv4Addr, is_own: bool) -> Option<PeerKey> {
        let refresh_time = self.settings.path_refresh_time;
        let path = self.paths.get_mut(now, node)?;
        let via = path.via()?;
        let is_old = now + refresh_time > path.ends;
        if is_own && !path.is_ours {
            path.is_ours = true;
            self.report(node);
        }
        if is_own && is_old {
            // Without room for the request, the next packet asks.
            let _is_asked = self.ask(now, node, true);
        }
        Some(via)
    }
}

impl Routing for Hwmp {
    fn port(&self) -> Option<u16> {
        Some(PORT)
    }

    fn route(&mut self, cx: &Cx<'_>, packet: &RoutedPacket<'_>) -> RoutingVerdict {
        let Some(dst) = v4(packet.dst) else { return RoutingVerdict::Drop(DropReason::NoRoute) };
        let is_own = packet.from.is_none();
        // Forwarded data has to come from a peer.
        if packet.from.is_some_and(|from| v4(from).and_then(|from| self.peers.of(from)).is_none()) {
            return RoutingVerdict::Drop(DropReason::NoRoute);
        }
        if let Some((link, via)) = self.way(cx.now, dst, is_own) {
            return RoutingVerdict::Forward { link, via: NextHop::Neighbour(via.into()) };
        }
        if !is_own {
            self.refuse(cx.now, dst, packet.from);
            return RoutingVerdict::Drop(DropReason::NoRoute);
        }
        let Some(path) = self.paths.entry(cx.now, dst) else {
            return RoutingVerdict::Drop(DropReason::NoRoute);
        };
        path.is_ours = true;
        let oldest = path.keep(FRAME_QUEUE, PathlessPacket { id: packet.id, packet: packet.packet.to_vec() });
        if let Some(oldest) = oldest {
            self.outbox.dropped(DropReason::RouteBufferFull, oldest.id);
        }
        if !self.ask(cx.now, dst, false) {
            self.drop_waiting(dst);
        }
        RoutingVerdict::Keep
    }

    fn handle_control(&mut self, cx: &Cx<'_>, control: &ControlMessage<'_>) {
        match self.read(control) {
            Ok((from, frame)) => {
                self.peers.note_heard(cx.now, from);
                self.take(cx.now, from, &frame);
            }
            Err(reason) => self.outbox.dropped(reason, 0),
        }
    }

    fn on_delivered(&mut self, now: Instant, link: LinkId, to: IpAddr, kbps: u32) {
        let Some(neighbour) = v4(to).map(|to| (link, to)) else { return };
        self.peers.note_heard(now, neighbour);
        if let Some(quality) = self.peers.link_mut(neighbour) {
            quality.note_delivered(kbps);
        }
    }

    fn on_undelivered(&mut self, cx: &Cx<'_>, (link, to): Hop, _: &RoutedPacket<'_>) -> Undelivered {
        let Some(neighbour) = v4(to).map(|to| (link, to)) else { return Undelivered::Drop };
        if let Some(quality) = self.peers.link_mut(neighbour) {
            quality.note_lost();
            if quality.losses() > u32::from(LINK_FAIL_THRESHOLD) {
                self.lose(cx.now, neighbour);
            }
        }
        Undelivered::Drop
    }

    fn handle_timeout(&mut self, cx: &Cx<'_>) {
        let now = cx.now;
        if self.next_beacon <= now {
            self.send_beacon(now);
        }
        for (neighbour, frame) in self.peers.handle_timeout(now) {
            self.tell(now, neighbour, &frame);
        }
        self.go_on_searching(now);
        if self.next_housekeeping <= now {
            self.keep_house(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let others = [self.peers.next(), self.next_search(), self.outbox.next()];
        others.into_iter().flatten().chain([self.next_beacon, self.next_housekeeping]).min()
    }

    fn poll_order(&mut self, now: Instant) -> Option<RoutingOrder> {
        self.outbox.pop(now)
    }

    fn next_hop(&self, now: Instant, dst: IpAddr) -> Option<(LinkId, IpAddr)> {
        let path = self.paths.get(v4(dst)?).filter(|path| path.ends >= now)?;
        path.via().map(|(link, via)| (link, via.into()))
    }

    fn path(&self, peer: IpAddr) -> Path {
        let path = v4(peer).and_then(|peer| self.paths.get(peer));
        path_of(path.and_then(|path| path.via().map(|_| path.hops)))
    }

    fn counts(&self) -> (u64, u64) {
        (self.discoveries, self.failures)
    }
}

constants! {
    /// Constants of HWMP and of mesh peering (IEEE 802.11s), with the defaults of Linux's mac80211.
    Settings;
    /// Time between two beacons of a node, by which neighbours find each other
    beacon_interval: Duration = ConstantForm::time(10).is(1_024),
    /// Largest number of peers of a node
    max_peer_links: u32 = ConstantForm::count("peers", 1, 255).is(32),
    /// Time without any frame of a peer after which its peering ends
    plink_timeout: Duration = ConstantForm::time(1_000).is(1_800_000),
    /// Lifetime of a path that a request or a reply has told of
    active_path_timeout: Duration = ConstantForm::time(10).is(5_000),
    /// Time before the end of a path from which a packet of the node itself makes it ask again
    path_refresh_time: Duration = ConstantForm::time(0).is(1_000),
    /// Wait for the answer to the first request; each later wait is twice as long
    min_discovery_timeout: Duration = ConstantForm::time(1).is(100),
    /// Number of requests after the first one that stayed without an answer
    max_preq_retries: u8 = ConstantForm::count("requests", 0, 16).is(4),
    /// Least time between two requests of a node
    preq_min_interval: Duration = ConstantForm::time(0).is(10),
    /// TTL with which a node sends requests, replies and errors, and so the largest number of hops of a path
    element_ttl: u8 = ConstantForm::count("hops", 2, 255).is(31),
}

#[cfg(test)]
mod tests;
