//! The routes that were requested, so that only awaited replies are taken.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;

/// The largest number of remembered requests; beyond it the oldest are forgotten.
const MOST: usize = 16_384;

/// The origin of the request, and its destination.
pub(crate) type Pair = (Ipv4Addr, Ipv4Addr);

#[derive(Debug, Default)]
pub(crate) struct Asked {
    until: BTreeMap<Pair, Instant>,
    /// In the order of the requests.
    asked: VecDeque<(Instant, Pair)>,
}

impl Asked {
    /// A reply may come within that time.
    pub(crate) fn note(&mut self, now: Instant, pair: Pair, memory: Duration) {
        while let Some((until, oldest)) = self.asked.front().copied()
            && (until <= now || self.asked.len() >= MOST)
        {
            self.asked.pop_front();
            // It may have been requested again since.
            if self.until.get(&oldest) == Some(&until) {
                self.until.remove(&oldest);
            }
        }
        self.until.insert(pair, now + memory);
        self.asked.push_back((now + memory, pair));
    }

    pub(crate) fn has(&self, now: Instant, pair: Pair) -> bool {
        self.until.get(&pair).is_some_and(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Duration = Duration::from_secs(5);

    fn pair(n: u32) -> Pair {
        (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::from_bits(n))
    }

    #[test]
    fn a_question_is_open_for_its_time_and_longer_when_it_is_asked_again() {
        let mut asked = Asked::default();
        let at = Instant::from_secs;
        asked.note(at(0), pair(1), MEMORY);
        assert!(asked.has(at(4), pair(1)) && !asked.has(at(5), pair(1)) && !asked.has(at(0), pair(2)));
        asked.note(at(4), pair(1), MEMORY);
        asked.note(at(6), pair(2), MEMORY);
        assert!(asked.has(at(8), pair(1)) && !asked.has(at(9), pair(1)));
    }

    #[test]
    fn a_flood_of_questions_takes_bounded_memory() {
        let mut asked = Asked::default();
        (0..50_000).for_each(|n| asked.note(Instant::ZERO, pair(n), MEMORY));
        assert!(asked.until.len() <= MOST && asked.asked.len() <= MOST);
        assert!(asked.has(Instant::ZERO, pair(49_999)));
    }
}
