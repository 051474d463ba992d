//! Mesh peering (IEEE 802.11-2020, 14.4): two nodes are peers once each has opened the peering and confirmed the
//! other's. Nodes hear of each other by beacons, and listen to no path messages but those of peers.
//!
//! The steps are those of mac80211's station mesh entity, without its rejections: all nodes have one configuration.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::narrow::{as_u16, as_u32, as_usize};
use hopwise_core::{Instant, LinkId};

use super::frames::{Frame, Peering};
use super::metric::Link;
use super::settings::Settings;
use crate::on_demand::Chance;

/// A neighbour on a link.
pub(super) type Neighbour = (LinkId, Ipv4Addr);

/// The largest number of neighbours that a node knows of, peers or not.
const MOST_NEIGHBOURS: usize = 256;

/// Reasons for the end of a peering.
const CANCELLED: u16 = 52;
const CLOSE_RECEIVED: u16 = 55;
const MAX_RETRIES: u16 = 56;
const CONFIRM_TIMEOUT: u16 = 57;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listen,
    OpenSent,
    OpenReceived,
    ConfirmReceived,
    Established,
    Holding,
}

#[derive(Clone, Debug)]
struct Peer {
    state: State,
    /// Our identity of the peering and the peer's; 0 stands for none.
    own: u16,
    theirs: u16,
    reason: u16,
    retries: u8,
    timeout: Duration,
    /// The end of the wait that the state has.
    until: Option<Instant>,
    heard: Instant,
    link: Link,
}

impl Peer {
    fn new(now: Instant, first_kbps: u32) -> Peer {
        Peer {
            state: State::Listen,
            own: 0,
            theirs: 0,
            reason: 0,
            retries: 0,
            timeout: Duration::ZERO,
            until: None,
            heard: now,
            link: Link::new(first_kbps),
        }
    }

    fn restart(&mut self) {
        (self.state, self.own, self.theirs, self.reason) = (State::Listen, 0, 0, 0);
        (self.retries, self.until) = (0, None);
    }

    fn wait(&mut self, now: Instant, time: Duration) {
        (self.timeout, self.until) = (time, Some(now + time));
    }

    fn close(&mut self, now: Instant, reason: u16, holding: Duration) {
        (self.state, self.reason) = (State::Holding, reason);
        self.wait(now, holding);
    }

    fn establish(&mut self) {
        (self.state, self.until) = (State::Established, None);
    }

    fn peering(&self) -> Peering {
        Peering { own: self.own, peer: self.theirs, reason: self.reason }
    }
}

/// The neighbours of a node.
#[derive(Debug)]
pub(super) struct Peers {
    by_neighbour: BTreeMap<Neighbour, Peer>,
    settings: Settings,
    /// Frames to a new neighbour leave at this rate.
    first_kbps: u32,
    chance: Chance,
}

/// The consequences of a step: frames for the neighbour, and whether it was a peer and is none any more.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) frames: Vec<Frame>,
    pub(super) is_lost: bool,
}

impl Peers {
    pub(super) fn new(settings: Settings, first_kbps: u32, seed: u64) -> Peers {
        Peers { by_neighbour: BTreeMap::new(), settings, first_kbps, chance: Chance::new(seed) }
    }

    pub(super) fn has_room(&self) -> bool {
        self.established() < self.settings.max_peer_links
    }

    pub(super) fn is_peer(&self, neighbour: Neighbour) -> bool {
        self.by_neighbour.get(&neighbour).is_some_and(|peer| peer.state == State::Established)
    }

    #[cfg(test)]
    pub(super) fn identity(&self, neighbour: Neighbour) -> u16 {
        self.by_neighbour.get(&neighbour).map_or(0, |peer| peer.own)
    }

    /// The peer of that address, on any link.
    pub(super) fn of(&self, node: Ipv4Addr) -> Option<Neighbour> {
        let is_it =
            |(neighbour, peer): &(&Neighbour, &Peer)| neighbour.1 == node && peer.state == State::Established;
        self.by_neighbour.iter().find(is_it).map(|(neighbour, _)| *neighbour)
    }

    pub(super) fn link_mut(&mut self, neighbour: Neighbour) -> Option<&mut Link> {
        self.by_neighbour.get_mut(&neighbour).map(|peer| &mut peer.link)
    }

    pub(super) fn established(&self) -> u32 {
        as_u32(self.by_neighbour.values().filter(|peer| peer.state == State::Established).count())
    }

    pub(super) fn note_heard(&mut self, now: Instant, neighbour: Neighbour) {
        if let Some(peer) = self.by_neighbour.get_mut(&neighbour) {
            peer.heard = now;
        }
    }

    /// An identity that no other peering of this node has.
    fn new_identity(&mut self) -> u16 {
        loop {
            let own = as_u16(as_usize(self.chance.below(1 << 16)));
            if own != 0 && self.by_neighbour.values().all(|peer| peer.own != own) {
                return own;
            }
        }
    }

    /// The entry of a neighbour, a new one if there is room.
    fn entry(&mut self, now: Instant, neighbour: Neighbour) -> Option<&mut Peer> {
        let has_room = self.by_neighbour.len() < MOST_NEIGHBOURS;
        if !has_room && !self.by_neighbour.contains_key(&neighbour) {
            return None;
        }
        let first_kbps = self.first_kbps;
        Some(self.by_neighbour.entry(neighbour).or_insert_with(|| Peer::new(now, first_kbps)))
    }

    /// A neighbour's beacon: a node with room opens a peering.
    pub(super) fn on_beacon(&mut self, now: Instant, neighbour: Neighbour, accepts: bool) -> Step {
        let has_room = self.has_room();
        let (own, retry_timeout) = (self.new_identity(), self.settings.retry_timeout);
        let Some(peer) = self.entry(now, neighbour) else { return Step::default() };
        if peer.state != State::Listen || !accepts || !has_room {
            return Step::default();
        }
        (peer.state, peer.own) = (State::OpenSent, own);
        peer.wait(now, retry_timeout);
        Step { frames: vec![Frame::Open(peer.peering())], is_lost: false }
    }

    /// A neighbour opens a peering.
    pub(super) fn on_open(&mut self, now: Instant, neighbour: Neighbour, theirs: u16) -> Step {
        let has_room = self.has_room();
        let (own, retry_timeout) = (self.new_identity(), self.settings.retry_timeout);
        let Some(peer) = self.entry(now, neighbour) else { return Step::default() };
        if !has_room || peer.theirs != 0 && peer.theirs != theirs {
            return Step::default();
        }
        peer.theirs = theirs;
        let mut frames = Vec::new();
        match peer.state {
            State::Listen => {
                (peer.state, peer.own) = (State::OpenReceived, own);
                peer.wait(now, retry_timeout);
                frames.extend([Frame::Open(peer.peering()), Frame::Confirm(peer.peering())]);
            }
            State::OpenSent => {
                peer.state = State::OpenReceived;
                frames.push(Frame::Confirm(peer.peering()));
            }
            State::ConfirmReceived => {
                peer.establish();
                frames.push(Frame::Confirm(peer.peering()));
            }
            State::OpenReceived | State::Established => frames.push(Frame::Confirm(peer.peering())),
            State::Holding => frames.push(Frame::Close(peer.peering())),
        }
        Step { frames, is_lost: false }
    }

    /// A neighbour confirms our peering.
    pub(super) fn on_confirm(&mut self, now: Instant, neighbour: Neighbour, said: Peering) -> Step {
        let has_room = self.has_room();
        let Some(peer) = self.by_neighbour.get_mut(&neighbour) else { return Step::default() };
        let is_of_other = peer.own != said.peer || peer.theirs != 0 && peer.theirs != said.own;
        if !has_room || is_of_other {
            return Step::default();
        }
        peer.theirs = said.own;
        match peer.state {
            State::OpenSent => {
                peer.state = State::ConfirmReceived;
                peer.wait(now, self.settings.confirm_timeout);
            }
            State::OpenReceived => peer.establish(),
            State::Holding => {
                return Step { frames: vec![Frame::Close(peer.peering())], is_lost: false };
            }
            State::Listen | State::ConfirmReceived | State::Established => {}
        }
        Step::default()
    }

    /// A neighbour ends the peering. A peer may have started again, so that its identities do not matter.
    pub(super) fn on_close(&mut self, now: Instant, neighbour: Neighbour, said: Peering) -> Step {
        let Some(peer) = self.by_neighbour.get_mut(&neighbour) else { return Step::default() };
        let was_peer = peer.state == State::Established;
        let is_of_other = peer.theirs != said.own || said.peer != 0 && peer.own != said.peer;
        if !was_peer && is_of_other {
            return Step::default();
        }
        match peer.state {
            State::Listen | State::Holding => {
                peer.restart();
                Step::default()
            }
            _ => {
                peer.close(now, CLOSE_RECEIVED, self.settings.holding_timeout);
                Step { frames: vec![Frame::Close(peer.peering())], is_lost: was_peer }
            }
        }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.by_neighbour.values().filter_map(|peer| peer.until).min()
    }

    /// Does what is due: opens peerings again, gives them up, or ends the wait after that.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Vec<(Neighbour, Frame)> {
        let mut frames = Vec::new();
        let due =
            self.by_neighbour.iter_mut().filter(|(_, peer)| peer.until.is_some_and(|until| until <= now));
        for (neighbour, peer) in due {
            let may_retry = peer.retries < self.settings.max_retries;
            match peer.state {
                State::OpenSent | State::OpenReceived if may_retry => {
                    peer.retries += 1;
                    let time = peer.timeout + self.chance.up_to(peer.timeout);
                    peer.wait(now, time);
                    frames.push((*neighbour, Frame::Open(peer.peering())));
                }
                State::OpenSent | State::OpenReceived | State::ConfirmReceived => {
                    let is_confirmed = peer.state == State::ConfirmReceived;
                    let reason = if is_confirmed { CONFIRM_TIMEOUT } else { MAX_RETRIES };
                    peer.close(now, reason, self.settings.holding_timeout);
                    frames.push((*neighbour, Frame::Close(peer.peering())));
                }
                State::Listen | State::Established | State::Holding => peer.restart(),
            }
        }
        frames
    }

    /// Forgets neighbours that were silent for long. Returns those that were peers, with a last frame for each.
    pub(super) fn forget(&mut self, now: Instant) -> Vec<(Neighbour, Frame)> {
        let is_silent = |peer: &Peer| now.since(peer.heard) > self.settings.plink_timeout;
        let gone: Vec<_> = self.by_neighbour.extract_if(.., |_, peer| is_silent(peer)).collect();
        let last = |(neighbour, peer): (Neighbour, Peer)| {
            let close = Frame::Close(Peering { reason: CANCELLED, ..peer.peering() });
            (peer.state == State::Established).then_some((neighbour, close))
        };
        gone.into_iter().filter_map(last).collect()
    }
}
