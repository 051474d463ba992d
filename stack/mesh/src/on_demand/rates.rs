//! Limits on the number of events in a second; that of a node's own requests is in `searches`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;

const WINDOW: Duration = Duration::from_secs(1);

/// At most `most` events in every second that begins with the first of them; 0 sets no limit.
#[derive(Debug)]
pub(crate) struct EventRate {
    most: u32,
    began: Instant,
    count: u32,
}

impl EventRate {
    pub(crate) fn new(most: u32) -> EventRate {
        EventRate { most, began: Instant::ZERO, count: 0 }
    }

    /// Takes one, or returns the time of the next one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        if self.count == 0 || now.since(self.began) >= WINDOW {
            (self.began, self.count) = (now, 0);
        }
        if self.most > 0 && self.count >= self.most {
            return Err(self.began + WINDOW);
        }
        self.count += 1;
        Ok(())
    }
}

/// The cause of a route error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A link broke, here or beyond a neighbour that reports it.
    Break,
    /// Data came that cannot be forwarded. A stranger can send any.
    Data,
}

/// Route errors in every second that begins with the first of them: data causes half of them at most.
#[derive(Debug)]
pub(crate) struct Errors {
    most: u32,
    began: Instant,
    count: u32,
    of_data: u32,
}

impl Errors {
    /// 0 sets no limit.
    pub(crate) fn new(most: u32) -> Errors {
        Errors { most, began: Instant::ZERO, count: 0, of_data: 0 }
    }

    pub(crate) fn take(&mut self, now: Instant, cause: Cause) -> bool {
        if self.count == 0 || now.since(self.began) >= WINDOW {
            (self.began, self.count, self.of_data) = (now, 0, 0);
        }
        let is_of_data = cause == Cause::Data;
        let is_over = self.count >= self.most || (is_of_data && self.of_data >= self.most.div_ceil(2));
        if self.most > 0 && is_over {
            return false;
        }
        self.count += 1;
        self.of_data += u32::from(is_of_data);
        true
    }
}

/// What a node has to make of a request that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestNews {
    New,
    Redundant,
    /// Its origin sends more requests than it may.
    Flood,
}

/// The largest number of origins that are counted at once.
const MOST_ORIGINS: usize = 8_192;

/// The count of each node in the second that began then.
#[derive(Debug, Default)]
pub(crate) struct Origins(BTreeMap<Ipv4Addr, (Instant, u32)>);

impl Origins {
    /// Counts one more, and returns the origin's count in its second.
    pub(crate) fn count(&mut self, now: Instant, origin: Ipv4Addr) -> u32 {
        if self.0.len() >= MOST_ORIGINS {
            self.0.retain(|_, (began, _)| now.since(*began) < WINDOW);
        }
        if self.0.len() >= MOST_ORIGINS && !self.0.contains_key(&origin) {
            return u32::MAX; // Thousands of origins in one second are a flood, whichever they are.
        }
        let (began, count) = self.0.entry(origin).or_insert((now, 0));
        if now.since(*began) >= WINDOW {
            (*began, *count) = (now, 0);
        }
        *count += 1;
        *count
    }

    /// Counts a request that was not seen before, of which its origin may send `rate` in a second; 0 sets no limit.
    pub(crate) fn news(&mut self, now: Instant, origin: Ipv4Addr, rate: u32) -> RequestNews {
        if rate > 0 && self.count(now, origin) > rate { RequestNews::Flood } else { RequestNews::New }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The limit for all neighbours together, as a multiple of the limit for one neighbour.
const NEIGHBOURS_IN_ALL: u32 = 4;

/// At most `each` events a second for each neighbour, and a few times as many for all of them; 0 sets no limit.
#[derive(Debug)]
pub(crate) struct Throttle {
    each: u32,
    neighbours: Origins,
    all: EventRate,
}

impl Throttle {
    pub(crate) fn new(each: u32) -> Throttle {
        let all = EventRate::new(each.saturating_mul(NEIGHBOURS_IN_ALL));
        Throttle { each, neighbours: Origins::default(), all }
    }

    /// Takes one for that neighbour, if there is one left. A neighbour over its limit takes none of the other
    /// neighbours' share.
    pub(crate) fn take(&mut self, now: Instant, neighbour: Ipv4Addr) -> bool {
        self.each == 0 || (self.neighbours.count(now, neighbour) <= self.each && self.all.take(now).is_ok())
    }
}

/// The limits of a node, each for a second; 0 sets none.
#[derive(Debug)]
pub(crate) struct Limits {
    /// On messages of neighbours, and on messages that these cause.
    pub(crate) heard: Throttle,
    pub(crate) answers: Throttle,
    pub(crate) errors: Errors,
}

impl Limits {
    pub(crate) fn new(heard: u32, answers: u32, errors: u32) -> Limits {
        let (heard, answers) = (Throttle::new(heard), Throttle::new(answers));
        Limits { heard, answers, errors: Errors::new(errors) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_causes_half_of_the_errors_at_most_and_breaks_have_what_is_left() {
        let mut errors = Errors::new(10);
        let mut taken = |s, cause| (0..99).filter(|_| errors.take(Instant::from_secs(s), cause)).count();
        assert_eq!([taken(1, Cause::Data), taken(1, Cause::Break), taken(1, Cause::Data)], [5, 5, 0]);
        assert_eq!([taken(2, Cause::Break), taken(2, Cause::Data), taken(3, Cause::Data)], [10, 0, 5]);
        let mut endless = Errors::new(0);
        assert!((0..99).all(|_| endless.take(Instant::ZERO, Cause::Data)));
    }

    #[test]
    fn a_neighbour_has_its_rate_and_all_of_them_have_theirs() {
        let mut throttle = Throttle::new(10);
        let node = |n: u8| Ipv4Addr::new(10, 0, 0, n);
        let mut taken = |ms, n| (0..100).filter(|_| throttle.take(Instant::from_millis(ms), node(n))).count();
        assert_eq!([taken(1_000, 1), taken(1_001, 2), taken(1_002, 3)], [10, 10, 10]);
        assert_eq!([taken(1_003, 4), taken(1_004, 5)], [10, 0], "four times as much for all");
        assert_eq!(taken(2_100, 1), 10);
        let mut open = Throttle::new(0);
        assert!((0..10_000).all(|_| open.take(Instant::ZERO, node(1))));
    }

    #[test]
    fn ten_a_second_and_not_one_more() {
        let mut rate = EventRate::new(10);
        let taken = (0..30).filter(|n| rate.take(Instant::from_millis(1_000 + n)).is_ok());
        assert_eq!(taken.count(), 10);
        assert_eq!(rate.take(Instant::from_millis(1_999)), Err(Instant::from_millis(2_000)));
        assert_eq!(rate.take(Instant::from_millis(2_000)), Ok(()));
    }
}
