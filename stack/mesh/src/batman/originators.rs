//! The table: for each originator the neighbours by which its messages come, and the best of them, its router.
//! Also the quality of links and paths, in parts of 255: counts of messages over the last ones sent, and their mean.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::{Instant, LinkId};

/// A neighbour, and the link to it.
pub(super) type LinkNeighbour = (LinkId, Ipv4Addr);

/// For this long after a restart, numbers that go back once more are old messages.
const RESTART_REST: Duration = Duration::from_secs(30);
/// A copy counts for the ranking if its TTL is lower by no more than this.
const TTL_SLACK: u8 = 3;

/// A message compared with earlier messages.
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
    recent: RecentQualities,
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
    by: BTreeMap<LinkNeighbour, Brought>,
    pub(super) router: Option<LinkNeighbour>,
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
    pub(super) fn note(&mut self, now: Instant, from: LinkNeighbour, seq: u16, ttl: u8) -> Novelty {
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
    pub(super) fn count(&self, from: LinkNeighbour) -> u8 {
        self.by.get(&from).map_or(0, |brought| brought.window.count())
    }

    fn mean(&self, from: LinkNeighbour) -> u8 {
        self.by.get(&from).map_or(0, |brought| brought.recent.mean())
    }

    /// Returns whether a noted message counts for the ranking: a new message does, and so does a copy of the newest
    /// message that came by a similar number of hops.
    pub(super) fn is_ranked(&self, novelty: Novelty, seq: u16, ttl: u8) -> bool {
        novelty == Novelty::New || (seq == self.seq && self.ttl.saturating_sub(TTL_SLACK) <= ttl)
    }

    /// Books the quality of the path over this neighbour, and chooses the router. `echoes` tells of each neighbour how
    /// many of our messages it repeats: between equals that decides.
    pub(super) fn rank(
        &mut self,
        from: LinkNeighbour,
        (quality, ttl): (u8, u8),
        novelty: Novelty,
        echoes: impl Fn(LinkNeighbour) -> u8,
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
    pub(super) most: usize,
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

/// The messages over which a link is judged.
pub(super) const WINDOW: u16 = 64;
/// The values over which the quality of a path is averaged.
const VALUES: usize = 5;
/// The quality of a link without a loss.
pub(super) const FULL: u8 = 255;

/// Which of the last messages have come. Bit 0 is the newest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window(u64);

impl Window {
    pub(super) fn slide(&mut self, by: u16) {
        self.0 = self.0.checked_shl(by.into()).unwrap_or(0);
    }

    /// Notes the message that was sent `age` messages before the newest one.
    pub(super) fn mark(&mut self, age: u16) {
        if age < WINDOW {
            self.0 |= 1 << age;
        }
    }

    pub(super) fn has(self, age: u16) -> bool {
        age < WINDOW && self.0 >> age & 1 == 1
    }

    pub(super) fn count(self) -> u8 {
        part_of_255(self.0.count_ones())
    }
}

/// The last values of a path's quality.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentQualities {
    values: [u8; VALUES],
    next: usize,
}

impl RecentQualities {
    pub(super) fn push(&mut self, quality: u8) {
        self.values[self.next] = quality;
        self.next = (self.next + 1) % VALUES;
    }

    /// The mean of the values that are not 0.
    pub(super) fn mean(&self) -> u8 {
        let (sum, count) = self
            .values
            .iter()
            .filter(|value| **value > 0)
            .fold((0_u32, 0_u32), |(sum, count), value| (sum + u32::from(*value), count + 1));
        part_of_255(sum.checked_div(count).unwrap_or(0))
    }
}

fn part_of_255(value: u32) -> u8 {
    u8::try_from(value).unwrap_or(FULL)
}

/// The quality of a path over a link to a neighbour that says `told`. The neighbour repeats `echoes` of the last 64
/// messages of ours, and `received` of its own came here. Their ratio is the link's quality towards the neighbour. A
/// link on which little comes here is worth less, since its acknowledgements do not arrive.
pub(super) fn over_link(told: u8, echoes: u8, received: u8) -> u8 {
    let [told, echoes, received, window, full]: [u32; 5] =
        [told.into(), echoes.into(), received.into(), WINDOW.into(), FULL.into()];
    let there = (full * echoes.min(received)).checked_div(received).unwrap_or(0);
    let missed = window.saturating_sub(received);
    let back = full - full * missed.pow(3) / window.pow(3);
    part_of_255(told * there * back / full.pow(2))
}

/// The quality after one more hop.
pub(super) fn after_hop(quality: u8, hop_penalty: u8) -> u8 {
    part_of_255(u32::from(quality) * u32::from(FULL - hop_penalty) / u32::from(FULL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_what_came_of_the_last_64() {
        let mut window = Window::default();
        for age in [0, 1, 63, 64, 1_000] {
            window.mark(age);
        }
        assert_eq!((window.count(), window.has(63), window.has(2), window.has(64)), (3, true, false, false));
        window.slide(1);
        assert_eq!((window.count(), window.has(0), window.has(2)), (2, false, true));
        window.slide(64);
        assert_eq!(window, Window::default());
    }

    #[test]
    fn the_mean_leaves_out_what_did_not_come() {
        let mut recent = RecentQualities::default();
        assert_eq!(recent.mean(), 0);
        for quality in [200, 0, 100] {
            recent.push(quality);
        }
        assert_eq!(recent.mean(), 150);
        for _ in 0..5 {
            recent.push(0);
        }
        assert_eq!(recent.mean(), 0);
        for _ in 0..7 {
            recent.push(255);
        }
        assert_eq!(recent.mean(), 255);
    }

    #[test]
    fn a_links_quality_is_that_of_both_directions() {
        for (told, echoes, received, expected) in [
            (255, 64, 64, 255),
            (255, 32, 64, 127),
            (255, 64, 32, 224), // 255 - 255 / 8 for what is missed
            (255, 16, 32, 111), // half of that
            (255, 8, 8, 85),    // nearly nothing comes back
            (100, 64, 64, 100),
            (255, 0, 64, 0),
            (255, 64, 0, 0),
            (0, 64, 64, 0),
        ] {
            assert_eq!(over_link(told, echoes, received), expected, "{told} {echoes} {received}");
        }
    }

    #[test]
    fn each_hop_takes_its_part() {
        assert_eq!(after_hop(255, 30), 225);
        assert_eq!(after_hop(225, 30), 198);
        assert_eq!(after_hop(255, 0), 255);
        assert_eq!(after_hop(255, 255), 0);
    }
}
