//! Mesh peering (IEEE 802.11-2020, 14.4): two nodes are peers once each has opened the peering and confirmed the
//! other's. Nodes hear of each other by beacons, and listen to path messages of peers alone.
//!
//! The steps follow mac80211's station mesh entity, without its rejections: all nodes have one configuration.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::narrow::{as_u16, as_u32, as_usize};
use hopwise_core::{Instant, LinkId};

use super::Settings;
use super::frames::{Frame, Peering};
use super::metric::LinkMetric;
use crate::on_demand::Chance;

/// A neighbour on a link.
pub(super) type PeerKey = (LinkId, Ipv4Addr);

/// The largest number of neighbours that a node knows of, peers or not.
const MOST_NEIGHBOURS: usize = 256;

/// The time without a confirmation after which a node opens a peering again.
const RETRY_TIMEOUT: Duration = Duration::from_millis(100);
/// The number of times that a node opens a peering again.
const MOST_RETRIES: u8 = 3;
/// The time that a node whose peering was confirmed waits for the other side to open it.
const OPEN_TIMEOUT: Duration = Duration::from_millis(100);
/// The time after a failed peering before the next one.
const HOLDING_TIMEOUT: Duration = Duration::from_millis(100);

/// Reasons for the end of a peering.
const CANCELLED: u16 = 52;
const CLOSE_RECEIVED: u16 = 55;
const MAX_RETRIES: u16 = 56;
const CONFIRM_TIMEOUT: u16 = 57;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerState {
    Listen,
    OpenSent,
    OpenReceived,
    ConfirmReceived,
    Established,
    Holding,
}

#[derive(Clone, Debug)]
struct Peer {
    state: PeerState,
    /// Our identity of the peering and the peer's; 0 stands for none.
    own: u16,
    theirs: u16,
    reason: u16,
    retries: u8,
    timeout: Duration,
    /// The end of the wait that the state has.
    until: Option<Instant>,
    heard: Instant,
    link: LinkMetric,
}

impl Peer {
    fn new(now: Instant, first_kbps: u32) -> Peer {
        Peer {
            state: PeerState::Listen,
            own: 0,
            theirs: 0,
            reason: 0,
            retries: 0,
            timeout: Duration::ZERO,
            until: None,
            heard: now,
            link: LinkMetric::new(first_kbps),
        }
    }

    fn restart(&mut self) {
        (self.state, self.own, self.theirs, self.reason) = (PeerState::Listen, 0, 0, 0);
        (self.retries, self.until) = (0, None);
    }

    fn wait(&mut self, now: Instant, time: Duration) {
        (self.timeout, self.until) = (time, Some(now + time));
    }

    fn close(&mut self, now: Instant, reason: u16, holding: Duration) {
        (self.state, self.reason) = (PeerState::Holding, reason);
        self.wait(now, holding);
    }

    fn establish(&mut self) {
        (self.state, self.until) = (PeerState::Established, None);
    }

    fn peering(&self) -> Peering {
        Peering { own: self.own, peer: self.theirs, reason: self.reason }
    }
}

/// The neighbours of a node.
#[derive(Debug)]
pub(super) struct Peers {
    by_neighbour: BTreeMap<PeerKey, Peer>,
    settings: Settings,
    /// Frames to a new neighbour leave at this rate.
    first_kbps: u32,
    chance: Chance,
}

/// The consequences of a step: frames for the neighbour, and whether it was a peer and is none any more.
#[derive(Debug, Default)]
pub(super) struct PeerStep {
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

    pub(super) fn is_peer(&self, neighbour: PeerKey) -> bool {
        self.by_neighbour.get(&neighbour).is_some_and(|peer| peer.state == PeerState::Established)
    }

    #[cfg(test)]
    pub(super) fn identity(&self, neighbour: PeerKey) -> u16 {
        self.by_neighbour.get(&neighbour).map_or(0, |peer| peer.own)
    }

    /// The peer of that address, on any link.
    pub(super) fn of(&self, node: Ipv4Addr) -> Option<PeerKey> {
        let is_it = |(neighbour, peer): &(&PeerKey, &Peer)| {
            neighbour.1 == node && peer.state == PeerState::Established
        };
        self.by_neighbour.iter().find(is_it).map(|(neighbour, _)| *neighbour)
    }

    pub(super) fn link_mut(&mut self, neighbour: PeerKey) -> Option<&mut LinkMetric> {
        self.by_neighbour.get_mut(&neighbour).map(|peer| &mut peer.link)
    }

    pub(super) fn established(&self) -> u32 {
        as_u32(self.by_neighbour.values().filter(|peer| peer.state == PeerState::Established).count())
    }

    pub(super) fn note_heard(&mut self, now: Instant, neighbour: PeerKey) {
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
    fn entry(&mut self, now: Instant, neighbour: PeerKey) -> Option<&mut Peer> {
        let has_room = self.by_neighbour.len() < MOST_NEIGHBOURS;
        if !has_room && !self.by_neighbour.contains_key(&neighbour) {
            return None;
        }
        let first_kbps = self.first_kbps;
        Some(self.by_neighbour.entry(neighbour).or_insert_with(|| Peer::new(now, first_kbps)))
    }

    /// A neighbour's beacon: a node with room opens a peering.
    pub(super) fn on_beacon(&mut self, now: Instant, neighbour: PeerKey, accepts: bool) -> PeerStep {
        let has_room = self.has_room();
        let own = self.new_identity();
        let Some(peer) = self.entry(now, neighbour) else { return PeerStep::default() };
        if peer.state != PeerState::Listen || !accepts || !has_room {
            return PeerStep::default();
        }
        (peer.state, peer.own) = (PeerState::OpenSent, own);
        peer.wait(now, RETRY_TIMEOUT);
        PeerStep { frames: vec![Frame::Open(peer.peering())], is_lost: false }
    }

    /// A neighbour opens a peering.
    pub(super) fn on_open(&mut self, now: Instant, neighbour: PeerKey, theirs: u16) -> PeerStep {
        let has_room = self.has_room();
        let own = self.new_identity();
        let Some(peer) = self.entry(now, neighbour) else { return PeerStep::default() };
        if !has_room || peer.theirs != 0 && peer.theirs != theirs {
            return PeerStep::default();
        }
        peer.theirs = theirs;
        let mut frames = Vec::new();
        match peer.state {
            PeerState::Listen => {
                (peer.state, peer.own) = (PeerState::OpenReceived, own);
                peer.wait(now, RETRY_TIMEOUT);
                frames.extend([Frame::Open(peer.peering()), Frame::Confirm(peer.peering())]);
            }
            PeerState::OpenSent => {
                peer.state = PeerState::OpenReceived;
                frames.push(Frame::Confirm(peer.peering()));
            }
            PeerState::ConfirmReceived => {
                peer.establish();
                frames.push(Frame::Confirm(peer.peering()));
            }
            PeerState::OpenReceived | PeerState::Established => frames.push(Frame::Confirm(peer.peering())),
            PeerState::Holding => frames.push(Frame::Close(peer.peering())),
        }
        PeerStep { frames, is_lost: false }
    }

    /// A neighbour confirms our peering.
    pub(super) fn on_confirm(&mut self, now: Instant, neighbour: PeerKey, said: Peering) -> PeerStep {
        let has_room = self.has_room();
        let Some(peer) = self.by_neighbour.get_mut(&neighbour) else { return PeerStep::default() };
        let is_of_other = peer.own != said.peer || peer.theirs != 0 && peer.theirs != said.own;
        if !has_room || is_of_other {
            return PeerStep::default();
        }
        peer.theirs = said.own;
        match peer.state {
            PeerState::OpenSent => {
                peer.state = PeerState::ConfirmReceived;
                peer.wait(now, OPEN_TIMEOUT);
            }
            PeerState::OpenReceived => peer.establish(),
            PeerState::Holding => {
                return PeerStep { frames: vec![Frame::Close(peer.peering())], is_lost: false };
            }
            PeerState::Listen | PeerState::ConfirmReceived | PeerState::Established => {}
        }
        PeerStep::default()
    }

    /// A neighbour ends the peering. A peer may have started again, so that its identities do not matter.
    pub(super) fn on_close(&mut self, now: Instant, neighbour: PeerKey, said: Peering) -> PeerStep {
        let Some(peer) = self.by_neighbour.get_mut(&neighbour) else { return PeerStep::default() };
        let was_peer = peer.state == PeerState::Established;
        let is_of_other = peer.theirs != said.own || said.peer != 0 && peer.own != said.peer;
        if !was_peer && is_of_other {
            return PeerStep::default();
        }
        match peer.state {
            PeerState::Listen | PeerState::Holding => {
                peer.restart();
                PeerStep::default()
            }
            _ => {
                peer.close(now, CLOSE_RECEIVED, HOLDING_TIMEOUT);
                PeerStep { frames: vec![Frame::Close(peer.peering())], is_lost: was_peer }
            }
        }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.by_neighbour.values().filter_map(|peer| peer.until).min()
    }

    /// Does what is due: opens peerings again, gives them up, or ends the wait after that.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Vec<(PeerKey, Frame)> {
        let mut frames = Vec::new();
        let due =
            self.by_neighbour.iter_mut().filter(|(_, peer)| peer.until.is_some_and(|until| until <= now));
        for (neighbour, peer) in due {
            let may_retry = peer.retries < MOST_RETRIES;
            match peer.state {
                PeerState::OpenSent | PeerState::OpenReceived if may_retry => {
                    peer.retries += 1;
                    let time = peer.timeout + self.chance.up_to(peer.timeout);
                    peer.wait(now, time);
                    frames.push((*neighbour, Frame::Open(peer.peering())));
                }
                PeerState::OpenSent | PeerState::OpenReceived | PeerState::ConfirmReceived => {
                    let is_confirmed = peer.state == PeerState::ConfirmReceived;
                    let reason = if is_confirmed { CONFIRM_TIMEOUT } else { MAX_RETRIES };
                    peer.close(now, reason, HOLDING_TIMEOUT);
                    frames.push((*neighbour, Frame::Close(peer.peering())));
                }
                PeerState::Listen | PeerState::Established | PeerState::Holding => peer.restart(),
            }
        }
        frames
    }

    /// Forgets neighbours that were silent for long. Returns the neighbours that were peers, with a last frame for
    /// each.
    pub(super) fn forget(&mut self, now: Instant) -> Vec<(PeerKey, Frame)> {
        let is_silent = |peer: &Peer| now.since(peer.heard) > self.settings.plink_timeout;
        let gone: Vec<_> = self.by_neighbour.extract_if(.., |_, peer| is_silent(peer)).collect();
        let last = |(neighbour, peer): (PeerKey, Peer)| {
            let close = Frame::Close(Peering { reason: CANCELLED, ..peer.peering() });
            (peer.state == PeerState::Established).then_some((neighbour, close))
        };
        gone.into_iter().filter_map(last).collect()
    }
}
