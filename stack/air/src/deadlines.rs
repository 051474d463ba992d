//! One deadline for each station, and the earliest of all at hand: a tournament of minima, without a branch to
//! mispredict.
//!
//! The lowest station's deadline comes first of several equal ones. The order therefore never depends on the order of
//! filing.

use hopwise_core::narrow::as_usize;

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Deadlines {
    /// A heap-shaped tree: 1 is the root, the leaves begin at `leaves`. Each node is an instant with the station's
    /// number in its lowest bits; the root therefore gives both.
    tree: Vec<u64>,
    leaves: usize,
    number_bits: u32,
}

impl Deadlines {
    pub(crate) fn new(stations: usize) -> Deadlines {
        let leaves = stations.next_power_of_two().max(2);
        Deadlines { tree: vec![NEVER; 2 * leaves], leaves, number_bits: leaves.trailing_zeros() }
    }

    /// Sets a deadline. With a million stations four hours fit, with a thousand half a year.
    #[inline]
    pub(crate) fn set(&mut self, station: usize, at: u64) {
        debug_assert!(station < self.leaves, "a station has a leaf");
        debug_assert!(at == NEVER || at >> (64 - self.number_bits) == 0, "a run of this length does not fit");
        let mut node = self.leaves + station;
        let mut least = if at == NEVER { NEVER } else { at << self.number_bits | station as u64 };
        // The length is a power of two: with its mask the compiler sees that every place is within.
        let tree = self.tree.as_mut_slice();
        let Some(mask) = tree.len().checked_sub(1) else { return };
        tree[node & mask] = least;
        while node > 1 {
            least = least.min(tree[(node ^ 1) & mask]);
            node >>= 1;
            tree[node & mask] = least;
        }
    }

    /// The earliest deadline.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.instant(self.tree[1])
    }

    /// The station of the earliest deadline; the lowest of several.
    #[inline]
    pub(crate) fn first(&self) -> usize {
        as_usize(self.tree[1] & (self.leaves - 1) as u64)
    }

    #[inline]
    pub(crate) fn of(&self, station: usize) -> u64 {
        self.instant(self.tree[self.leaves + station])
    }

    #[inline]
    fn instant(&self, key: u64) -> u64 {
        if key == NEVER { NEVER } else { key >> self.number_bits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_of_all_is_found_whatever_was_set_before() {
        let mut deadlines = Deadlines::new(9);
        let mut plain = [NEVER; 9];
        let mut stream = crate::random::NumberStream::new(1, 0, crate::random::Purpose::Traffic);
        for _ in 0..10_000 {
            let station = stream.below(9) as usize;
            let at = if stream.below(4) == 0 { NEVER } else { u64::from(stream.below(50)) };
            deadlines.set(station, at);
            plain[station] = at;
            let least = plain.iter().copied().min().unwrap_or(NEVER);
            assert_eq!(deadlines.next(), least);
            if least != NEVER {
                assert_eq!(plain.iter().position(|at| *at == least), Some(deadlines.first()));
            }
            assert_eq!(deadlines.of(station), at);
        }
    }
}
