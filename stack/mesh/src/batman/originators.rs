//! The table: for each originator the neighbours by which its messages come, and the best of them, its router.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::{Instant, LinkId};

use super::quality::{Recent, WINDOW, Window};

/// A neighbour, and the link to it.
pub(super) type Neighbour = (LinkId, Ipv4Addr);

/// For this long after a restart, numbers that go back once more are old messages.
const RESTART_REST: Duration = Duration::from_secs(30);
/// A copy counts for the ranking if its TTL is lower by no more than this.
const TTL_SLACK: u8 = 3;

/// A message against those that came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    /// The first one with its number.
    New,
    /// Another neighbour has brought it.
    Copy,
    /// The same neighbour has brought it.
    Repeated,
    /// Its number is far behind.
    Old,
}

/// The messages of an originator that one neighbour has brought.
#[derive(Clone, Debug, Default)]
struct Brought {
    window: Window,
    recent: Recent,
    ttl: u8,
    last: Instant,
}

#[derive(Clone, Debug)]
pub(super) struct Originator {
    /// The newest number.
    seq: u16,
    /// The TTL of the first message with that number.
    ttl: u8,
    restarted: Option<Instant>,
    by: BTreeMap<Neighbour, Brought>,
    pub(super) router: Option<Neighbour>,
    /// The hop count that connections last got.
    pub(super) reported_hops: Option<u8>,
}

impl Originator {
    pub(super) fn new(seq: u16) -> Originator {
        // The first message is newer than anything before it.
        let seq = seq.wrapping_sub(1);
        Originator { seq, ttl: 0, restarted: None, by: BTreeMap::new(), router: None, reported_hops: None }
    }

    /// Notes a message's number.
    pub(super) fn note(&mut self, now: Instant, from: Neighbour, seq: u16, ttl: u8) -> Novelty {
        let ahead = seq.wrapping_sub(self.seq).cast_signed();
        let is_far_behind = ahead <= -WINDOW.cast_signed();
        if is_far_behind {
            if self.restarted.is_some_and(|at| now.since(at) < RESTART_REST) {
                return Novelty::Old;
            }
            self.restarted = Some(now);
            self.by.values_mut().for_each(|brought| brought.window = Window::default());
        }
        let age = if is_far_behind { 0 } else { ahead.min(0).unsigned_abs() };
        let is_newest = is_far_behind || ahead > 0;
        let novelty = if is_newest {
            Novelty::New
        } else if self.by.get(&from).is_some_and(|brought| brought.window.has(age)) {
            Novelty::Repeated
        } else if self.by.values().any(|brought| brought.window.has(age)) {
            Novelty::Copy
        } else {
            Novelty::New
        };
        if is_newest {
            let by = if is_far_behind { 0 } else { ahead.unsigned_abs() };
            self.by.values_mut().for_each(|brought| brought.window.slide(by));
            self.seq = seq;
        }
        if novelty == Novelty::New {
            self.ttl = ttl;
        }
        let brought = self.by.entry(from).or_default();
        brought.window.mark(age);
        brought.last = now;
        novelty
    }

    /// The number of the last 64 messages that this neighbour has brought.
    pub(super) fn count(&self, from: Neighbour) -> u8 {
        self.by.get(&from).map_or(0, |brought| brought.window.count())
    }

    fn mean(&self, from: Neighbour) -> u8 {
        self.by.get(&from).map_or(0, |brought| brought.recent.mean())
    }

    /// Returns whether a noted message counts for the ranking: a new one does, and so does a copy of the newest one
    /// that came by about as many hops.
    pub(super) fn is_ranked(&self, novelty: Novelty, seq: u16, ttl: u8) -> bool {
        novelty == Novelty::New || (seq == self.seq && self.ttl.saturating_sub(TTL_SLACK) <= ttl)
    }

    /// Books the quality of the path over this neighbour, and chooses the router. `echoes` tells of each neighbour how
    /// many of our messages it repeats: between equals that decides.
    pub(super) fn rank(
        &mut self,
        from: Neighbour,
        (quality, ttl): (u8, u8),
        novelty: Novelty,
        echoes: impl Fn(Neighbour) -> u8,
    ) {
        if novelty == Novelty::New {
            let others = self.by.iter_mut().filter(|(neighbour, _)| **neighbour != from);
            others.for_each(|(_, brought)| brought.recent.push(0));
        }
        let brought = self.by.entry(from).or_default();
        brought.recent.push(quality);
        brought.ttl = ttl;
        let is_better = self.router.is_none_or(|router| {
            let (of_router, of_from) = (self.mean(router), self.mean(from));
            of_from > of_router || (of_from == of_router && echoes(from) > echoes(router))
        });
        if is_better {
            self.router = Some(from);
        }
    }

    /// The links to the originator, where its messages begin with this TTL.
    pub(super) fn hops(&self, first_ttl: u8) -> Option<u8> {
        let brought = self.by.get(&self.router?)?;
        Some(first_ttl.saturating_sub(brought.ttl).saturating_add(1))
    }

    /// Returns whether anything changed.
    fn forget(&mut self, now: Instant, timeout: Duration) -> bool {
        let count = self.by.len();
        self.by.retain(|_, brought| now.since(brought.last) < timeout);
        if self.router.is_some_and(|router| !self.by.contains_key(&router)) {
            let best = self.by.iter().max_by_key(|(_, brought)| brought.recent.mean());
            self.router =
                best.filter(|(_, brought)| brought.recent.mean() > 0).map(|(neighbour, _)| *neighbour);
        }
        self.by.len() < count
    }
}

#[derive(Debug)]
pub(super) struct Originators {
    by_address: BTreeMap<Ipv4Addr, Originator>,
    most: usize,
}

impl Originators {
    pub(super) fn new(most: u32) -> Originators {
        Originators { by_address: BTreeMap::new(), most: most as usize }
    }

    pub(super) fn get(&self, node: Ipv4Addr) -> Option<&Originator> {
        self.by_address.get(&node)
    }

    pub(super) fn get_mut(&mut self, node: Ipv4Addr) -> Option<&mut Originator> {
        self.by_address.get_mut(&node)
    }

    /// The entry of the sender of a message with this number; `None` if the table has no room.
    pub(super) fn entry(&mut self, node: Ipv4Addr, seq: u16) -> Option<&mut Originator> {
        if self.by_address.len() >= self.most && !self.by_address.contains_key(&node) {
            return None;
        }
        Some(self.by_address.entry(node).or_insert_with(|| Originator::new(seq)))
    }

    /// Forgets neighbours that have brought nothing for that long. Returns the originators of which they did before.
    pub(super) fn forget(&mut self, now: Instant, timeout: Duration) -> Vec<Ipv4Addr> {
        let forgets = |(node, originator): (&Ipv4Addr, &mut Originator)| {
            originator.forget(now, timeout).then_some(*node)
        };
        self.by_address.iter_mut().filter_map(forgets).collect()
    }

    /// Removes the originators of which no neighbour brings messages any more.
    pub(super) fn remove_silent(&mut self) {
        self.by_address.retain(|_, originator| !originator.by.is_empty());
    }
}
