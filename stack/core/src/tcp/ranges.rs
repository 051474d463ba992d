//! The stretches of data above the first hole, and the order in which they last changed.

use crate::narrow::as_u32;
use std::ops::Range;

use arrayvec::ArrayVec;

/// The most stretches that are remembered, in at most 12 KiB; data that would start another is refused. A queue that
/// overflows drops every other segment: a window of 2000 has that many holes.
pub(super) const MOST_RANGES: usize = 1024;
/// The most SACK blocks in a segment without other options (RFC 2018 §3).
pub(super) const MOST_BLOCKS: usize = 4;

/// Offsets from `rcv_nxt`; the end is the first byte that is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    start: u32,
    end: u32,
    /// The value of [`Ranges::changes`] when data was last added to this range, or came again.
    changed: u32,
}

/// 1. Sorted, disjoint and with a gap between any two: touching ranges have become one.
/// 2. None starts at 0: such data is in order and no longer kept here.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    list: Vec<Stretch>,
    changes: u32,
}

/// The position of a new segment among the ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meeting {
    /// The segment.
    start: u32,
    end: u32,
    /// The ranges that it overlaps or touches.
    touched: Range<usize>,
    /// The first part that is already held (RFC 2883 §4 reports no more).
    pub(super) duplicate: Option<(u32, u32)>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> u32 {
        as_u32(self.list.len())
    }

    /// The end of the highest range; 0 if there is none.
    pub(super) fn highest_end(&self) -> u32 {
        self.list.last().map_or(0, |last| last.end)
    }

    pub(super) fn bytes(&self) -> u32 {
        self.list.iter().map(|held| held.end - held.start).sum()
    }

    pub(super) fn meet(&self, start: u32, end: u32) -> Meeting {
        let first = self.list.partition_point(|held| held.end < start);
        let count = self.list[first..].partition_point(|held| held.start <= end);
        let touched = first..first + count;
        let mut overlaps =
            self.list[touched.clone()].iter().map(|held| (held.start.max(start), held.end.min(end)));
        let duplicate = overlaps.find(|(from, to)| from < to);
        Meeting { start, end, touched, duplicate }
    }

    /// Returns whether the segment would need a range of its own when no more are allowed.
    pub(super) fn is_full_for(&self, meeting: &Meeting) -> bool {
        meeting.touched.is_empty() && self.list.len() >= MOST_RANGES
    }

    /// The parts of the segment that are not held yet, in order.
    pub(super) fn gaps(&self, meeting: &Meeting) -> impl Iterator<Item = (u32, u32)> {
        let touched = &self.list[meeting.touched.clone()];
        let starts = std::iter::once(meeting.start).chain(touched.iter().map(|held| held.end));
        let ends = touched.iter().map(|held| held.start).chain(std::iter::once(meeting.end));
        starts.zip(ends).filter(|(from, to)| from < to)
    }

    /// Adds a segment above the hole: it and all that it touches become one range, the newest.
    pub(super) fn join(&mut self, meeting: &Meeting) {
        self.changes = self.changes.wrapping_add(1);
        let (start, end) = self.union(meeting);
        let joined = Stretch { start, end, changed: self.changes };
        let touched = meeting.touched.clone();
        if touched.is_empty() {
            self.list.insert(touched.start, joined);
        } else {
            self.list[touched.start] = joined;
            self.list.drain(touched.start + 1..touched.end);
        }
    }

    /// Moves `rcv_nxt` over a segment that begins at it, and over all ranges that the segment touches. Returns the
    /// distance; the rest counts from the new `rcv_nxt`.
    pub(super) fn pass(&mut self, meeting: &Meeting) -> u32 {
        let (_, advanced) = self.union(meeting);
        self.list.drain(meeting.touched.clone());
        for held in &mut self.list {
            held.start -= advanced;
            held.end -= advanced;
        }
        advanced
    }

    fn union(&self, meeting: &Meeting) -> (u32, u32) {
        let touched = &self.list[meeting.touched.clone()];
        let start = touched.first().map_or(meeting.start, |held| held.start.min(meeting.start));
        let end = touched.last().map_or(meeting.end, |held| held.end.max(meeting.end));
        (start, end)
    }

    /// The ranges that changed last, newest first (RFC 2018 §4).
    pub(super) fn newest(&self) -> ArrayVec<(u32, u32), MOST_BLOCKS> {
        let age = |held: &Stretch| self.changes.wrapping_sub(held.changed);
        let mut newest: ArrayVec<&Stretch, MOST_BLOCKS> = ArrayVec::new();
        // Starts at the highest range, where most data arrives, so that nearly all others are passed over.
        for held in self.list.iter().rev() {
            if newest.is_full() {
                if newest.last().is_some_and(|oldest| age(oldest) <= age(held)) {
                    continue;
                }
                newest.pop();
            }
            let place = newest.partition_point(|other| age(other) < age(held));
            newest.insert(place, held);
        }
        newest.iter().map(|held| (held.start, held.end)).collect()
    }

    /// The range that contains this byte.
    pub(super) fn around(&self, at: u32) -> Option<(u32, u32)> {
        let nth = self.list.partition_point(|held| held.end <= at);
        self.list.get(nth).filter(|held| held.start <= at).map(|held| (held.start, held.end))
    }

    /// Frees the list's memory when it is empty.
    pub(super) fn relax(&mut self) {
        if self.list.is_empty() {
            *self = Ranges::default();
        }
    }

    /// Bytes of heap in use.
    pub(super) fn allocated(&self) -> usize {
        self.list.capacity() * size_of::<Stretch>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn add(ranges: &mut Ranges, start: u32, end: u32) {
        let meeting = ranges.meet(start, end);
        ranges.join(&meeting);
    }

    fn all(ranges: &Ranges) -> Vec<(u32, u32)> {
        ranges.list.iter().map(|held| (held.start, held.end)).collect()
    }

    #[test]
    fn touching_ranges_become_one() {
        let mut ranges = Ranges::default();
        add(&mut ranges, 10, 20);
        add(&mut ranges, 30, 40);
        add(&mut ranges, 40, 50);
        assert_eq!(all(&ranges), [(10, 20), (30, 50)]);
        add(&mut ranges, 20, 30);
        assert_eq!(all(&ranges), [(10, 50)]);
    }

    #[test]
    fn gaps_and_first_duplicate_of_a_segment_over_several_ranges() {
        let mut ranges = Ranges::default();
        add(&mut ranges, 10, 20);
        add(&mut ranges, 30, 40);
        let meeting = ranges.meet(15, 45);
        assert_eq!(meeting.duplicate, Some((15, 20)));
        assert_eq!(ranges.gaps(&meeting).collect::<Vec<_>>(), [(20, 30), (40, 45)]);
        let inside = ranges.meet(31, 39);
        assert_eq!(inside.duplicate, Some((31, 39)));
        assert_eq!(ranges.gaps(&inside).count(), 0);
    }

    #[test]
    fn a_segment_that_only_touches_duplicates_nothing() {
        let mut ranges = Ranges::default();
        add(&mut ranges, 10, 20);
        assert_eq!(ranges.meet(20, 30).duplicate, None);
        assert_eq!(ranges.meet(5, 10).duplicate, None);
    }

    #[test]
    fn passing_the_first_hole_leaves_the_rest_counted_from_the_new_next() {
        let mut ranges = Ranges::default();
        for (start, end) in [(10, 20), (30, 40), (50, 60)] {
            add(&mut ranges, start, end);
        }
        let meeting = ranges.meet(0, 35);
        assert_eq!(ranges.pass(&meeting), 40);
        assert_eq!(all(&ranges), [(10, 20)]);
    }

    #[test]
    fn newest_come_first_and_a_repeat_makes_a_range_new() {
        let mut ranges = Ranges::default();
        for start in [10, 30, 50, 70, 90] {
            add(&mut ranges, start, start + 10);
        }
        assert_eq!(ranges.newest()[..], [(90, 100), (70, 80), (50, 60), (30, 40)]);
        add(&mut ranges, 12, 15);
        add(&mut ranges, 60, 62);
        assert_eq!(ranges.newest()[..], [(50, 62), (10, 20), (90, 100), (70, 80)]);
    }

    #[test]
    fn order_survives_the_wrap_of_the_count_of_changes() {
        let mut ranges = Ranges { list: Vec::new(), changes: u32::MAX - 1 };
        for start in [30, 50, 10] {
            add(&mut ranges, start, start + 10);
        }
        assert_eq!(ranges.newest()[..], [(10, 20), (50, 60), (30, 40)]);
    }

    #[test]
    fn an_empty_list_is_given_back_and_a_filled_one_is_not() {
        let mut ranges = Ranges::default();
        add(&mut ranges, 10, 20);
        ranges.relax();
        assert!(ranges.allocated() > 0);
        let meeting = ranges.meet(0, 10);
        ranges.pass(&meeting);
        assert!(ranges.is_empty() && ranges.allocated() > 0);
        ranges.relax();
        assert_eq!(ranges.allocated(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn ranges_are_the_longest_runs_of_what_came(
            segments in prop::collection::vec((0..60_u32, 1..12_u32), 1..60),
        ) {
            let mut ranges = Ranges::default();
            let mut came = [false; 80];
            for (start, len) in segments {
                let meeting = ranges.meet(start, start + len);
                came[start as usize..(start + len) as usize].fill(true);
                if start == 0 {
                    let advanced = ranges.pass(&meeting) as usize;
                    prop_assert_eq!(advanced, came.iter().take_while(|came| **came).count());
                    came.rotate_left(advanced);
                    came[80 - advanced..].fill(false);
                } else {
                    ranges.join(&meeting);
                }
                let edges: Vec<u32> = (1..80).filter(|at| came[at - 1] != came[*at]).map(|at| at as u32).collect();
                prop_assert_eq!(edges, all(&ranges).iter().flat_map(|(from, to)| [*from, *to]).collect::<Vec<_>>());
                prop_assert_eq!(ranges.bytes() as usize, came.iter().filter(|came| **came).count());
            }
        }
    }
}
