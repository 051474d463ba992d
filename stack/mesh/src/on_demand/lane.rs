//! Lanes share out turns and room: first by source address, then by whether a stranger's packet has named both ends,
//! then by protocol, by UDP port, and by whether the destination is known. A flood in one lane leaves each other lane
//! its share.

use std::collections::BTreeMap;

use super::rank::Rank;

/// The largest number of remembered lanes, and how many requests back they are remembered.
const MOST_REMEMBERED: usize = 4_096;
const REQUESTS_REMEMBERED: u64 = 512;

/// The source of a packet, from the widest level to the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane(pub(crate) [u32; Lane::LEVELS]);

impl Lane {
    pub(crate) const LEVELS: usize = 5;
    /// The lane of packets that are only forwarded.
    pub(crate) const OTHERS: Lane = Lane([0; Lane::LEVELS]);

    /// The wider lanes that this one is a part of, and itself.
    fn widths(self) -> [(usize, Lane); Lane::LEVELS] {
        std::array::from_fn(|level| {
            let mut wide = Lane::OTHERS;
            wide.0[..=level].copy_from_slice(&self.0[..=level]);
            (level, wide)
        })
    }
}

/// The last requests of lanes.
#[derive(Debug, Default)]
pub(crate) struct Served {
    at: BTreeMap<(Rank, usize, Lane), u64>,
    requests: u64,
}

impl Served {
    /// The last request of the lane on each level. The lane with the least has waited longest.
    pub(crate) fn last(&self, rank: Rank, lane: Lane) -> [u64; Lane::LEVELS] {
        lane.widths().map(|(level, lane)| self.at.get(&(rank, level, lane)).copied().unwrap_or(0))
    }

    pub(crate) fn note(&mut self, rank: Rank, lane: Lane) {
        self.requests += 1;
        let requests = self.requests;
        self.at.extend(lane.widths().map(|(level, lane)| ((rank, level, lane), requests)));
        if self.at.len() > MOST_REMEMBERED {
            self.at.retain(|_, at| *at + REQUESTS_REMEMBERED > requests);
        }
    }
}

/// The first of the most crowded lane: of the source with the most, then of its protocol with the most, and so on. The
/// oldest stand first.
pub(crate) fn most_crowded<const N: usize>(lanes: &[[u32; N]]) -> Option<usize> {
    let narrowed = |left: Vec<usize>, level: usize| {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        left.iter().for_each(|nth| *counts.entry(lanes[*nth][level]).or_default() += 1);
        let most = counts.values().max().copied();
        let first = left.iter().map(|nth| lanes[*nth][level]).find(|key| counts.get(key).copied() == most)?;
        Some(left.into_iter().filter(|nth| lanes[*nth][level] == first).collect())
    };
    (0..N).try_fold((0..lanes.len()).collect(), narrowed)?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_most_crowded_lane_gives_way() {
        let lanes = [[1, 6, 1], [1, 17, 1], [1, 17, 2], [2, 6, 1], [2, 6, 2]];
        assert_eq!(most_crowded(&lanes), Some(1), "three of source 1, and two of them datagrams");
        assert_eq!(most_crowded(&lanes[3..]), Some(0));
        assert_eq!(most_crowded(&[[3, 1], [2, 1], [2, 2]]), Some(1));
        assert_eq!(most_crowded::<3>(&[]), None);
    }

    #[test]
    fn lanes_take_turns_at_each_width_and_each_rank_has_its_own() {
        let mut served = Served::default();
        let (a, b, other) = (Lane([1, 0, 17, 53, 0]), Lane([1, 0, 17, 54, 0]), Lane([2, 0, 6, 0, 0]));
        served.note(Rank::Unsure, a);
        served.note(Rank::Answer, other);
        let mut order = [a, b, other];
        order.sort_by_key(|lane| served.last(Rank::Unsure, *lane));
        assert_eq!(order, [other, b, a]);
        served.note(Rank::Unsure, other);
        order.sort_by_key(|lane| served.last(Rank::Unsure, *lane));
        assert_eq!(order, [b, a, other]);
    }

    #[test]
    fn ever_new_lanes_take_bounded_memory() {
        let mut served = Served::default();
        (0..100_000).for_each(|n| served.note(Rank::Unsure, Lane([n, n, n, n, n])));
        assert!(served.at.len() <= MOST_REMEMBERED);
    }
}
