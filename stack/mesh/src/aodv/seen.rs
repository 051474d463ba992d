//! Requests that a node has processed: each once, remembered for a while, bounded however many come.

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;

use crate::on_demand::rates::Origins;

/// The largest number of remembered requests; beyond it the oldest are forgotten.
const MOST: usize = 8_192;

#[derive(Debug, Default)]
pub(super) struct Seen {
    known: BTreeSet<(Ipv4Addr, u32)>,
    /// In the order of their time.
    until: VecDeque<(Instant, (Ipv4Addr, u32))>,
    origins: Origins,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    New,
    Repeated,
    /// Its origin sends more requests than it may.
    Flood,
}

impl Seen {
    pub(super) fn note(
        &mut self,
        now: Instant,
        key: (Ipv4Addr, u32),
        memory: Duration,
        rate: u32,
    ) -> Request {
        while let Some((until, oldest)) = self.until.front().copied()
            && (until <= now || self.until.len() >= MOST)
        {
            self.until.pop_front();
            self.known.remove(&oldest);
        }
        if !self.known.insert(key) {
            return Request::Repeated;
        }
        self.until.push_back((now + memory, key));
        if rate > 0 && self.origins.count(now, key.0) > rate { Request::Flood } else { Request::New }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Duration = Duration::from_secs(6);

    #[test]
    fn a_request_is_new_once_until_it_is_forgotten() {
        let mut seen = Seen::default();
        let key = (Ipv4Addr::new(10, 0, 0, 1), 7);
        let mut note = |s, key| seen.note(Instant::from_secs(s), key, MEMORY, 0);
        assert_eq!(note(0, key), Request::New);
        assert_eq!(note(5, key), Request::Repeated);
        assert_eq!(note(5, (key.0, 8)), Request::New);
        assert_eq!(note(6, key), Request::New);
    }

    #[test]
    fn a_flood_of_requests_is_told_and_takes_bounded_memory() {
        let mut seen = Seen::default();
        let origin = Ipv4Addr::new(10, 0, 0, 1);
        let news = (0..100).map(|id| seen.note(Instant::ZERO, (origin, id), MEMORY, 20));
        assert_eq!(news.filter(|news| *news == Request::New).count(), 20);
        for id in 0..50_000 {
            seen.note(Instant::ZERO, (Ipv4Addr::from_bits(id), id), MEMORY, 20);
        }
        assert!(seen.len() <= MOST && seen.origins.len() <= MOST && seen.until.len() <= MOST);
    }
}
