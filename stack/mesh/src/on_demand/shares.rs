//! Bounds of tables: the shares of neighbours, and the neighbour that makes room. Also the changes of a table.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use hopwise_core::Instant;

/// One neighbour may bring a quarter of the table's entries. Another quarter, and no more, is for destinations that the
/// node itself searches for: strangers choose some of these, too.
const PARTS: usize = 4;

/// The number of entries of each neighbour, and of the node itself.
#[derive(Debug)]
pub(crate) struct Shares {
    most: usize,
    brought: BTreeMap<Option<Ipv4Addr>, usize>,
}

impl Shares {
    pub(crate) fn new(most: u32) -> Shares {
        Shares { most: most as usize, brought: BTreeMap::new() }
    }

    /// Returns whether a table with `entries` entries takes one more from this neighbour; `None` is the node itself.
    pub(crate) fn has_room(&self, entries: usize, by: Option<Ipv4Addr>) -> bool {
        let share = self.most / PARTS;
        let room = if by.is_none() { self.most } else { self.most - share };
        entries < room && self.brought.get(&by).is_none_or(|brought| *brought < share)
    }

    pub(crate) fn add(&mut self, by: Option<Ipv4Addr>) {
        *self.brought.entry(by).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, by: Option<Ipv4Addr>) {
        if let Some(brought) = self.brought.get_mut(&by) {
            *brought -= 1;
            if *brought == 0 {
                self.brought.remove(&by);
            }
        }
    }
}

/// What became of a route that a message offers to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferResult {
    /// It is taken.
    Yes,
    /// The known route is as good or better, or there is no room for one more.
    No,
}

/// The largest number of neighbours of which a node keeps something.
pub(crate) const MOST_NEIGHBOURS: usize = 4_096;

/// The standing of a neighbour, from what any stranger can bring about up to what it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NeighbourStanding {
    /// Its frames arrive here.
    Heard,
    /// Ours are known not to arrive there.
    Blacklisted,
    /// Ours arrive there, too. A stranger can acknowledge in many names.
    Confirmed,
    /// Data goes to it. Its silence has to be noticed.
    InUse,
}

/// The neighbour that makes room when the table of neighbours is full: one of the lowest standing, and among these the
/// one that was silent for longest. Each is given with its standing and the time at which it was last heard. Strangers
/// can make up any number of addresses, and these must not keep real neighbours out.
pub(crate) fn gives_way(
    known: impl Iterator<Item = (Ipv4Addr, NeighbourStanding, Instant)>,
) -> Option<Ipv4Addr> {
    known.min_by_key(|(_, standing, heard)| (*standing, *heard)).map(|(address, ..)| address)
}

/// Destinations whose routes may have changed, for a reader that keeps a copy of the table. Changes are noted only
/// after the first `take`.
#[derive(Debug, Default)]
pub(crate) struct Changes(Option<BTreeSet<Ipv4Addr>>);

impl Changes {
    pub(crate) fn note(&mut self, dst: Ipv4Addr) {
        if let Some(noted) = &mut self.0 {
            noted.insert(dst);
        }
    }

    /// The destinations noted since the last call; `None` at the first call, when the whole table is new.
    pub(crate) fn take(&mut self) -> Option<BTreeSet<Ipv4Addr>> {
        self.0.replace(BTreeSet::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_has_a_quarter_and_the_node_finds_room_when_all_others_have_theirs() {
        let mut shares = Shares::new(16);
        let mut entries = 0;
        for neighbour in 0..20 {
            let by = Some(Ipv4Addr::new(10, 0, 0, neighbour));
            let before = entries;
            for _ in 0..16 {
                if shares.has_room(entries, by) {
                    shares.add(by);
                    entries += 1;
                }
            }
            assert_eq!(entries - before, if neighbour < 3 { 4 } else { 0 });
        }
        assert!(shares.has_room(entries, None) && shares.has_room(15, None) && !shares.has_room(16, None));
        (0..4).for_each(|_| shares.add(None));
        assert!(!shares.has_room(4, None), "the node has no more than a quarter itself");
        shares.remove(None);
        assert!(shares.has_room(4, None));
        let first = Some(Ipv4Addr::new(10, 0, 0, 0));
        shares.remove(first);
        assert!(shares.has_room(entries - 1, first));
    }

    #[test]
    fn a_stranger_goes_before_a_next_hop_and_the_silent_one_before_the_others() {
        let node = |last: u8| Ipv4Addr::new(10, 0, 0, last);
        let mut known = vec![
            (node(1), NeighbourStanding::InUse, Instant::from_secs(1)),
            (node(2), NeighbourStanding::Confirmed, Instant::from_secs(2)),
            (node(3), NeighbourStanding::Blacklisted, Instant::from_secs(3)),
            (node(4), NeighbourStanding::Heard, Instant::from_secs(9)),
            (node(5), NeighbourStanding::Heard, Instant::from_secs(8)),
        ];
        let mut gone = Vec::new();
        while let Some(next) = gives_way(known.iter().copied()) {
            known.retain(|(address, ..)| *address != next);
            gone.push(next);
        }
        assert_eq!(gone, [5, 4, 3, 2, 1].map(node));
    }
}
