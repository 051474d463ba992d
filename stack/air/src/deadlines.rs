//! One deadline a station, and the earliest of all at hand: a tournament of minima, without a branch to mispredict.
//!
//! Of equal deadlines the lowest station's goes first, so that the order never depends on what was filed when.

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Deadlines {
    /// A heap-shaped tree: 1 is the root, the leaves begin at `leaves`.
    tree: Vec<u64>,
    leaves: usize,
}

impl Deadlines {
    pub(crate) fn new(stations: usize) -> Deadlines {
        let leaves = stations.next_power_of_two().max(2);
        Deadlines { tree: vec![NEVER; 2 * leaves], leaves }
    }

    #[inline]
    pub(crate) fn set(&mut self, station: usize, at: u64) {
        let mut node = self.leaves + station;
        self.tree[node] = at;
        let mut least = at;
        while node > 1 {
            least = least.min(self.tree[node ^ 1]);
            node >>= 1;
            self.tree[node] = least;
        }
    }

    /// When the earliest one is.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.tree[1]
    }

    /// Whose it is; the lowest of several.
    #[inline]
    pub(crate) fn first(&self) -> usize {
        let (least, mut node) = (self.tree[1], 1);
        while node < self.leaves {
            node = 2 * node + usize::from(self.tree[2 * node] != least);
        }
        node - self.leaves
    }

    #[inline]
    pub(crate) fn of(&self, station: usize) -> u64 {
        self.tree[self.leaves + station]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_of_all_is_found_whatever_was_set_before() {
        let mut deadlines = Deadlines::new(9);
        let mut plain = [NEVER; 9];
        let mut stream = crate::random::Stream::new(1, 0, crate::random::Purpose::Traffic);
        for _ in 0..10_000 {
            let station = stream.below(9) as usize;
            let at = if stream.below(4) == 0 { NEVER } else { u64::from(stream.below(50)) };
            deadlines.set(station, at);
            plain[station] = at;
            let least = plain.iter().copied().min().unwrap_or(NEVER);
            assert_eq!(deadlines.next(), least);
            assert_eq!(plain.iter().position(|at| *at == least), Some(deadlines.first()));
            assert_eq!(deadlines.of(station), at);
        }
    }
}
