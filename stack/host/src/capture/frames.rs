//! Finds the frame of a capture's file that holds an arrived packet.

use std::collections::VecDeque;

/// Arrivals that each shard's connections may still answer: more than can come within the longest delay of an ACK.
const MOST: usize = 32 << 10;

/// The latest arrivals in the file being written.
#[derive(Debug, Default)]
pub struct Frames {
    /// For each shard the numbers of its packets, which rise, and their frames.
    shards: Vec<VecDeque<(u64, u64)>>,
}

impl Frames {
    /// Notes that the arrived packet of that number is that frame.
    pub fn note(&mut self, shard: u16, id: u64, frame: u64) {
        let shard = usize::from(shard);
        if self.shards.len() <= shard {
            self.shards.resize_with(shard + 1, VecDeque::new);
        }
        let known = &mut self.shards[shard];
        if known.len() == MOST {
            known.pop_front();
        }
        known.push_back((id, frame));
    }

    /// The number of the frame that holds the arrival `id` of a shard; `None` for one that is too old.
    pub fn of(&self, shard: u16, id: u64) -> Option<u64> {
        let known = self.shards.get(usize::from(shard))?;
        let place = known.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        known.get(place).map(|(_, frame)| *frame)
    }

    /// Forgets all frames, because another file begins or frames were lost.
    pub(super) fn forget(&mut self) {
        self.shards.clear();
    }
}
