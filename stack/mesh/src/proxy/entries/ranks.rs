//! The members of each group, ordered by their entries and bytes, so that the one with the most is found at once.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use hopwise_core::Instant;

/// The entries and bytes of one member, or of a group together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Has {
    /// Brief entries, and the start of the oldest of them.
    pub(super) brief: u32,
    /// Meaningless without brief entries.
    pub(super) oldest: Instant,
    pub(super) lasting: u32,
    /// Members that hold bytes.
    pub(super) holders: u32,
    pub(super) bytes: usize,
}

impl Has {
    /// A group's sums after a member changes from `was` to `is`; the caller updates `oldest`.
    pub(super) fn with(self, was: Has, is: Has) -> Has {
        Has {
            brief: self.brief - was.brief + is.brief,
            oldest: self.oldest,
            lasting: self.lasting - was.lasting + is.lasting,
            bytes: self.bytes - was.bytes + is.bytes,
            holders: self.holders - u32::from(was.bytes > 0) + u32::from(is.bytes > 0),
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.brief == 0 && self.lasting == 0 && self.bytes == 0
    }
}

/// Members `T` of groups `G`. One set of each kind holds all of them: a set for each group would take more memory than
/// its entries.
#[derive(Debug)]
pub(super) struct Ranks<G, T> {
    /// Among members with as many, the one whose oldest entry is older comes last.
    by_brief: BTreeSet<(G, u32, Reverse<Instant>, T)>,
    by_lasting: BTreeSet<(G, u32, T)>,
    by_bytes: BTreeSet<(G, usize, T)>,
}

impl<G, T> Default for Ranks<G, T> {
    fn default() -> Ranks<G, T> {
        let (by_brief, by_lasting, by_bytes) = Default::default();
        Ranks { by_brief, by_lasting, by_bytes }
    }
}

impl<G: Copy + Ord, T: Copy + Ord> Ranks<G, T> {
    pub(super) fn change(&mut self, group: G, of: T, was: Has, is: Has) {
        let brief = |has: Has| (has.brief > 0).then_some((group, has.brief, Reverse(has.oldest), of));
        if let (was, is) = (brief(was), brief(is))
            && was != is
        {
            was.map(|was| self.by_brief.remove(&was));
            self.by_brief.extend(is);
        }
        rank(&mut self.by_lasting, (group, of), was.lasting, is.lasting);
        rank(&mut self.by_bytes, (group, of), was.bytes, is.bytes);
    }

    /// The member of the group with the most brief entries, and the start of its oldest one.
    pub(super) fn most_brief(&self, group: G, any: T) -> Option<(Instant, T)> {
        let beyond = (group, u32::MAX, Reverse(Instant::ZERO), any);
        let (of, _, Reverse(oldest), member) = self.by_brief.range(..beyond).next_back()?;
        (*of == group).then_some((*oldest, *member))
    }

    pub(super) fn most_lasting(&self, group: G, any: T) -> Option<(u32, T)> {
        most(&self.by_lasting, (group, u32::MAX, any))
    }

    pub(super) fn most_bytes(&self, group: G, any: T) -> Option<T> {
        most(&self.by_bytes, (group, usize::MAX, any)).map(|(_, member)| member)
    }
}

fn rank<G: Copy + Ord, N: Copy + Ord + Default, T: Copy + Ord>(
    ranks: &mut BTreeSet<(G, N, T)>,
    (group, of): (G, T),
    was: N,
    is: N,
) {
    if was != is {
        ranks.remove(&(group, was, of));
        ranks.extend((is > N::default()).then_some((group, is, of)));
    }
}

/// `beyond` is more than any member can have.
fn most<G: Copy + Ord, N: Copy + Ord, T: Copy + Ord>(
    ranks: &BTreeSet<(G, N, T)>,
    beyond: (G, N, T),
) -> Option<(N, T)> {
    let (group, has, member) = ranks.range(..beyond).next_back()?;
    (*group == beyond.0).then_some((*has, *member))
}
