//! The next deadline among very many: a heap in which any slot's entry can be found and moved.

use crate::Instant;
use crate::narrow::as_u32;

/// Children of an entry. Four make the heap half as deep as two, and 16-byte siblings share a cache line.
const ARITY: usize = 4;
/// Marks in `places` a slot without a deadline.
const ABSENT: u32 = u32::MAX;

/// At most one deadline for each slot (a small number that names a connection). Equal deadlines are due in the order of
/// their slots, so that a run is independent of the order in which they were set.
///
/// 1. No entry is before its parent, the entry at (index - 1) / 4.
/// 2. `places[slot]` is the index of that slot's entry.
#[derive(Debug, Default)]
pub(crate) struct TimerHeap {
    entries: Vec<(Instant, u32)>,
    places: Vec<u32>,
}

impl TimerHeap {
    pub(crate) fn new() -> TimerHeap {
        TimerHeap::default()
    }

    /// The earliest deadline and its slot.
    pub(crate) fn peek(&self) -> Option<(Instant, u32)> {
        self.entries.first().copied()
    }

    #[cfg(any(test, debug_assertions))]
    pub(crate) fn get(&self, slot: u32) -> Option<Instant> {
        let place = self.places.get(slot as usize)?;
        self.entries.get(*place as usize).map(|(at, _)| *at)
    }

    /// The number of slots with a deadline.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Sets, moves or (with [`Instant::FAR`]) removes the deadline of `slot`. The cost grows with the logarithm of
    /// the number of deadlines; an unchanged one costs nothing.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, at: Instant) {
        let place = self.places.get(slot as usize).copied().unwrap_or(ABSENT);
        let filed = self.entries.get(place as usize).map_or(Instant::FAR, |(filed, _)| *filed);
        if filed != at {
            self.refile(place, slot, at);
        }
    }

    /// Moves the deadline of `slot` forward, or sets it. A later one changes nothing: the filed one is then due too
    /// early, and its owner sets it anew.
    #[inline]
    pub(crate) fn move_forward(&mut self, slot: u32, at: Instant) {
        let place = self.places.get(slot as usize).copied().unwrap_or(ABSENT);
        let filed = self.entries.get(place as usize).map_or(Instant::FAR, |(filed, _)| *filed);
        if at < filed {
            self.refile(place, slot, at);
        }
    }

    #[inline(never)]
    fn refile(&mut self, place: u32, slot: u32, at: Instant) {
        if place == ABSENT {
            self.insert(slot, at);
        } else if at == Instant::FAR {
            self.remove(place as usize, slot);
        } else {
            self.replace(place as usize, (at, slot));
        }
    }

    fn insert(&mut self, slot: u32, at: Instant) {
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, ABSENT);
        }
        self.entries.push((at, slot));
        self.sift_up(self.entries.len() - 1, (at, slot));
    }

    fn remove(&mut self, place: usize, slot: u32) {
        self.places[slot as usize] = ABSENT;
        let Some(last) = self.entries.pop() else { return };
        if place < self.entries.len() {
            self.replace(place, last);
        }
    }

    /// Replaces an entry and restores the heap order.
    fn replace(&mut self, place: usize, entry: (Instant, u32)) {
        if entry <= self.entries[place] {
            self.sift_up(place, entry);
        } else {
            self.sift_down(place, entry);
        }
    }

    fn sift_up(&mut self, mut place: usize, entry: (Instant, u32)) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.entries[parent] <= entry {
                break;
            }
            self.put(place, self.entries[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sift_down(&mut self, mut place: usize, entry: (Instant, u32)) {
        loop {
            let first = place * ARITY + 1;
            let last = (first + ARITY).min(self.entries.len());
            let Some(child) = (first..last).min_by_key(|child| self.entries[*child]) else { break };
            if entry <= self.entries[child] {
                break;
            }
            self.put(place, self.entries[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Instant, u32)) {
        self.entries[place] = entry;
        self.places[entry.1 as usize] = as_u32(place);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_deadlines_are_due_by_slot_whatever_the_order_of_setting() {
        for order in [[3, 1, 2], [1, 2, 3], [2, 3, 1]] {
            let mut heap = TimerHeap::new();
            for slot in order {
                heap.set(slot, Instant(5));
            }
            let mut due = Vec::new();
            while let Some((_, slot)) = heap.peek() {
                due.push(slot);
                heap.set(slot, Instant::FAR);
            }
            assert_eq!(due, [1, 2, 3]);
        }
    }

    #[test]
    fn a_deadline_moves_forward_alone() {
        let mut heap = TimerHeap::new();
        for (at, filed) in [(5, 5), (7, 5), (3, 3), (u64::MAX, 3)] {
            heap.move_forward(7, Instant(at));
            assert_eq!(heap.peek(), Some((Instant(filed), 7)));
        }
    }

    #[test]
    fn a_deadline_that_never_comes_is_none() {
        let mut heap = TimerHeap::new();
        heap.set(7, Instant::FAR);
        assert_eq!((heap.peek(), heap.len()), (None, 0));
        heap.set(7, Instant(1));
        heap.set(7, Instant::FAR);
        assert_eq!(heap.peek(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn agrees_with_a_sorted_set(
            steps in prop::collection::vec((0..40_u32, prop::option::weighted(0.7, 0..50_u64)), 1..300),
        ) {
            let mut heap = TimerHeap::new();
            let mut by_slot = BTreeMap::new();
            for (slot, at) in steps {
                heap.set(slot, at.map_or(Instant::FAR, Instant));
                match at {
                    Some(at) => by_slot.insert(slot, at),
                    None => by_slot.remove(&slot),
                };
                let sorted: BTreeSet<_> = by_slot.iter().map(|(slot, at)| (Instant(*at), *slot)).collect();
                prop_assert_eq!(heap.peek(), sorted.first().copied());
                prop_assert_eq!(heap.len(), sorted.len());
                prop_assert_eq!(heap.get(slot), by_slot.get(&slot).copied().map(Instant));
                for (place, entry) in heap.entries.iter().enumerate() {
                    prop_assert_eq!(heap.places[entry.1 as usize] as usize, place);
                    prop_assert!(place == 0 || heap.entries[(place - 1) / ARITY] < *entry);
                }
                let present = heap.places.iter().filter(|place| **place != ABSENT).count();
                prop_assert_eq!(present, sorted.len());
            }
        }
    }
}
