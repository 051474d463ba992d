//! Requests that a node has processed. One is redundant after one that was as new and as near. Their number is bounded.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;

use super::table::is_newer;
use crate::on_demand::rates::Origins;

/// The largest number of remembered requests; beyond it the oldest are forgotten.
const MOST: usize = 8_192;

/// The origin and the target of a request.
type Pair = (Ipv4Addr, Ipv4Addr);

#[derive(Debug, Default)]
pub(super) struct Seen {
    /// With number and metric, and the time until which it is remembered.
    known: BTreeMap<Pair, (u16, u8, Instant)>,
    /// In the order of their time.
    until: VecDeque<(Instant, Pair)>,
    origins: Origins,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    New,
    Redundant,
    /// Its origin sends more requests than it may.
    Flood,
}

impl Seen {
    pub(super) fn note(
        &mut self,
        now: Instant,
        pair: Pair,
        (seq, metric): (u16, u8),
        memory: Duration,
        rate: u32,
    ) -> Request {
        while let Some((until, oldest)) = self.until.front().copied()
            && (until <= now || self.until.len() >= MOST)
        {
            self.until.pop_front();
            // It may have been renewed since.
            if self.known.get(&oldest).is_some_and(|(.., known_until)| *known_until == until) {
                self.known.remove(&oldest);
            }
        }
        if let Some((known, best, _)) = self.known.get(&pair) {
            let is_redundant = is_newer(*known, seq) || (*known == seq && *best <= metric);
            if is_redundant {
                return Request::Redundant;
            }
        }
        self.known.insert(pair, (seq, metric, now + memory));
        self.until.push_back((now + memory, pair));
        if rate > 0 && self.origins.count(now, pair.0) > rate { Request::Flood } else { Request::New }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Duration = Duration::from_secs(12);
    const PAIR: Pair = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9));

    #[test]
    fn a_request_is_redundant_unless_it_is_newer_or_nearer() {
        let mut seen = Seen::default();
        let mut note = |s, what| seen.note(Instant::from_secs(s), PAIR, what, MEMORY, 0);
        for (s, what, expected) in [
            (0, (7, 3), Request::New),
            (1, (7, 3), Request::Redundant),
            (1, (7, 4), Request::Redundant),
            (2, (7, 2), Request::New),
            (3, (6, 1), Request::Redundant),
            (13, (7, 2), Request::Redundant),
            (14, (7, 2), Request::New),
            (14, (8, 9), Request::New),
        ] {
            assert_eq!(note(s, what), expected, "{what:?} after {s} s");
        }
    }

    #[test]
    fn a_flood_of_requests_is_told_and_takes_bounded_memory() {
        let mut seen = Seen::default();
        let mut note = |dst: u32, seq| {
            let pair = (PAIR.0, Ipv4Addr::from_bits(dst));
            seen.note(Instant::ZERO, pair, (seq, 1), MEMORY, 20)
        };
        assert_eq!((0..100).filter(|seq| note(1, *seq) == Request::New).count(), 20);
        for dst in 0..50_000 {
            let _ = note(dst, 200);
        }
        assert!(seen.known.len() <= MOST && seen.until.len() <= MOST);
    }
}
