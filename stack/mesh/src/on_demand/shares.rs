//! The shares of a table, so that no neighbour fills it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

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

    /// Returns whether a table with so many entries takes one more from this neighbour; `None` is the node itself.
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
}
