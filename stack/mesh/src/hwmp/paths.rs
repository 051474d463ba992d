//! The paths of a node (forwarding information): for each destination a next hop, a metric and a sequence number, and
//! the search for it.
//!
//! A sequence number of a destination orders what is told of it. Newer news replaces older, and as new news only if its
//! metric is better. A path that was lost takes newer news alone.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;

use super::metric::is_clearly_better;
use super::peers::PeerKey;

/// A number this far from the known one is of a node that has started again.
const SANE_DISTANCE: u32 = 32;
/// The time after its end for which a path is remembered with its number.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Returns whether the number is newer, around the circle.
pub(super) fn is_newer(sn: u32, than: u32) -> bool {
    (than.wrapping_sub(sn) as i32) < 0
}

/// A packet of the node itself that waits for a path.
#[derive(Debug)]
pub(super) struct PathlessPacket {
    pub(super) id: u64,
    pub(super) packet: Vec<u8>,
}

/// A search for a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSearch {
    pub(super) retries: u8,
    pub(super) timeout: Duration,
    /// When the next request is due; none before the first one has left.
    pub(super) until: Option<Instant>,
    /// An answer has come. The search goes on to its end, so that no other one begins before.
    pub(super) is_answered: bool,
}

/// News of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct HwmpPathNews {
    pub(super) via: PeerKey,
    pub(super) metric: u32,
    pub(super) hops: u8,
    pub(super) ends: Instant,
}

#[derive(Debug, Default)]
pub(super) struct MeshPath {
    pub(super) is_active: bool,
    pub(super) next_hop: Option<PeerKey>,
    pub(super) metric: u32,
    pub(super) hops: u8,
    /// The newest number that was told, if any was.
    pub(super) sn: Option<u32>,
    pub(super) ends: Instant,
    pub(super) search: Option<PathSearch>,
    /// A request waits for its turn.
    pub(super) is_queued: bool,
    pub(super) waiting: VecDeque<PathlessPacket>,
    /// Packets of the node itself use it.
    pub(super) is_ours: bool,
    pub(super) reported_hops: Option<u8>,
}

impl MeshPath {
    /// The next hop of a path that may be used.
    pub(super) fn via(&self) -> Option<PeerKey> {
        self.next_hop.filter(|_| self.is_active)
    }

    /// Returns whether news with the destination's number replaces what is known.
    pub(super) fn yields_to(&self, sn: u32, news: &HwmpPathNews) -> bool {
        let Some(known) = self.sn else { return true };
        if !self.is_active {
            let has_started_again = sn.abs_diff(known) > SANE_DISTANCE;
            return is_newer(sn, known) || has_started_again;
        }
        let is_better = if self.next_hop == Some(news.via) {
            news.metric < self.metric
        } else {
            is_clearly_better(news.metric, self.metric)
        };
        is_newer(sn, known) || sn == known && is_better
    }

    /// Returns whether news of a neighbour itself, which has no number, replaces what is known.
    pub(super) fn yields_to_neighbour(&self, news: &HwmpPathNews) -> bool {
        let is_better = if self.next_hop == Some(news.via) {
            news.metric <= self.metric
        } else {
            is_clearly_better(news.metric, self.metric)
        };
        !self.is_active || is_better
    }

    pub(super) fn take(&mut self, sn: Option<u32>, news: &HwmpPathNews) {
        self.next_hop = Some(news.via);
        (self.metric, self.hops, self.is_active) = (news.metric, news.hops, true);
        self.sn = sn.or(self.sn);
        self.ends = self.ends.max(news.ends);
        if let Some(search) = &mut self.search {
            search.is_answered = true;
        }
    }

    /// Keeps a packet until there is a path. Returns the oldest one if there are too many.
    pub(super) fn keep(&mut self, most: u32, waiting: PathlessPacket) -> Option<PathlessPacket> {
        let oldest = if self.waiting.len() >= most as usize { self.waiting.pop_front() } else { None };
        self.waiting.push_back(waiting);
        oldest
    }
}

/// All paths of a node.
#[derive(Debug)]
pub(super) struct Paths {
    by_node: BTreeMap<Ipv4Addr, MeshPath>,
    most: usize,
}

impl Paths {
    pub(super) fn new(most: u32) -> Paths {
        Paths { by_node: BTreeMap::new(), most: most as usize }
    }

    pub(super) fn get(&self, node: Ipv4Addr) -> Option<&MeshPath> {
        self.by_node.get(&node)
    }

    /// The path as it was last looked at.
    pub(super) fn known_mut(&mut self, node: Ipv4Addr) -> Option<&mut MeshPath> {
        self.by_node.get_mut(&node)
    }

    /// A path that has ended is active no more.
    pub(super) fn get_mut(&mut self, now: Instant, node: Ipv4Addr) -> Option<&mut MeshPath> {
        let path = self.by_node.get_mut(&node)?;
        path.is_active &= path.ends >= now;
        Some(path)
    }

    /// The path to a node, a new one if there is room.
    pub(super) fn entry(&mut self, now: Instant, node: Ipv4Addr) -> Option<&mut MeshPath> {
        if !self.by_node.contains_key(&node) {
            if self.by_node.len() >= self.most {
                return None;
            }
            self.by_node.insert(node, MeshPath { ends: now, ..MeshPath::default() });
        }
        self.get_mut(now, node)
    }

    /// Gives up all paths over a neighbour. Each destination gets a newer number. Returns both.
    pub(super) fn lose(&mut self, now: Instant, via: PeerKey) -> Vec<(Ipv4Addr, u32)> {
        let is_over = |path: &MeshPath| path.via() == Some(via) && path.ends >= now;
        let over = self.by_node.iter_mut().filter(|(_, path)| is_over(path));
        over.map(|(node, path)| {
            let sn = path.sn.unwrap_or(0).wrapping_add(1);
            path.is_active = false;
            path.sn = path.sn.map(|_| sn);
            (*node, sn)
        })
        .collect()
    }

    /// Forgets all paths over a neighbour, also paths that were lost before. Returns them.
    pub(super) fn flush(&mut self, via: PeerKey) -> Vec<(Ipv4Addr, MeshPath)> {
        self.by_node.extract_if(.., |_, path| path.next_hop == Some(via)).collect()
    }

    /// When the next search is due to go on or to end.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_node.values().filter_map(|path| path.search?.until).min()
    }

    /// The destinations whose searches are due.
    pub(super) fn due(&self, now: Instant) -> Vec<Ipv4Addr> {
        let is_due =
            |path: &MeshPath| path.search.is_some_and(|search| search.until.is_some_and(|at| at <= now));
        self.by_node.iter().filter(|(_, path)| is_due(path)).map(|(node, _)| *node).collect()
    }

    /// Forgets paths that ended long ago, and are not searched for.
    pub(super) fn forget(&mut self, now: Instant) {
        let is_wanted = |path: &MeshPath| path.search.is_some() || path.is_queued;
        self.by_node.retain(|_, path| is_wanted(path) || path.ends + REMEMBERED >= now);
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::LinkId;

    use super::*;

    fn news(via: u8, metric: u32) -> HwmpPathNews {
        let via = (LinkId(0), Ipv4Addr::new(10, 0, 0, via));
        HwmpPathNews { via, metric, hops: 2, ends: Instant::from_secs(5) }
    }

    fn known(sn: u32, metric: u32) -> MeshPath {
        let mut path = MeshPath::default();
        path.take(Some(sn), &news(1, metric));
        path
    }

    #[test]
    fn newer_news_is_taken_and_as_new_news_only_if_it_is_better() {
        let yields = |sn, via, metric| known(7, 1_000).yields_to(sn, &news(via, metric));
        assert!(yields(8, 2, 9_000) && !yields(6, 2, 1));
        assert_eq!([999, 1_000].map(|metric| yields(7, 1, metric)), [true, false], "over the same neighbour");
        assert_eq!([900, 999].map(|metric| yields(7, 2, metric)), [true, false], "over another one");
    }

    #[test]
    fn a_lost_path_takes_newer_news_alone_or_that_of_a_node_that_started_again() {
        let mut lost = known(100, 1_000);
        lost.is_active = false;
        let yields = [100, 101, 99, 69, 68, 67].map(|sn| lost.yields_to(sn, &news(1, 1)));
        assert_eq!(yields, [false, true, false, false, false, true]);
    }

    #[test]
    fn a_path_ends_by_its_time_alone_and_news_of_a_shorter_one_does_not_shorten_it() {
        let mut paths = Paths::new(1);
        let node = Ipv4Addr::new(10, 0, 0, 9);
        paths.entry(Instant::ZERO, node).expect("there is room").take(Some(1), &news(1, 10));
        let early = HwmpPathNews { ends: Instant::from_secs(1), ..news(1, 9) };
        paths.entry(Instant::ZERO, node).expect("it is there").take(Some(2), &early);
        let mut is_active = |s| paths.get_mut(Instant::from_secs(s), node).expect("it is there").is_active;
        assert_eq!([5, 6].map(&mut is_active), [true, false]);
        assert!(paths.entry(Instant::ZERO, Ipv4Addr::new(10, 0, 0, 8)).is_none(), "there is room for one");
        paths.forget(Instant::from_secs(605));
        assert!(paths.get(node).is_some());
        paths.forget(Instant::from_secs(606));
        assert!(paths.get(node).is_none());
    }
}
