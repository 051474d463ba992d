//! Sources of link news about mobiles: a radio world, a schedule, a carrier, or the stations of an interface.

use std::collections::VecDeque;
use std::fmt::Debug;

use hopwise_core::{Instant, LinkEvent};

/// A source of link news. It never waits.
pub trait LinkSource: Debug + Send {
    /// The next event that is known by now.
    fn poll_news(&mut self, now: Instant) -> Option<TimedEvent>;
    /// The time of the next possible event, for sources without a descriptor.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// An event and its time: a signal may be older than the news of it.
#[derive(Clone, Copy, Debug)]
pub struct TimedEvent {
    /// The instant at which it happened or is forecast.
    pub at: Instant,
    /// The change of the link.
    pub event: LinkEvent<'static>,
}

/// Events that are known before their time.
#[derive(Clone, Debug, Default)]
pub struct Schedule(VecDeque<TimedEvent>);

impl Schedule {
    /// Takes the events in any order.
    pub fn new(news: impl IntoIterator<Item = TimedEvent>) -> Schedule {
        let mut news: Vec<TimedEvent> = news.into_iter().collect();
        news.sort_by_key(|timed| timed.at);
        Schedule(news.into())
    }
}

impl LinkSource for Schedule {
    fn poll_news(&mut self, now: Instant) -> Option<TimedEvent> {
        if self.0.front()?.at <= now { self.0.pop_front() } else { None }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.front().map(|timed| timed.at)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn a_schedule_says_each_thing_once_and_not_before_its_time() {
        let gone = |s, last| {
            let peer = IpAddr::from([10, 0, 0, last]);
            TimedEvent { at: Instant::from_secs(s), event: LinkEvent::Gone { peer } }
        };
        let mut schedule = Schedule::new([gone(2, 1), gone(1, 2), gone(2, 3)]);
        let mut at = |s| {
            let now = Instant::from_secs(s);
            let said = std::iter::from_fn(|| schedule.poll_news(now)).map(|timed| timed.at.as_millis());
            (said.collect::<Vec<_>>(), schedule.poll_timeout().map(Instant::as_millis))
        };
        assert_eq!(at(0), (vec![], Some(1_000)));
        assert_eq!(at(1), (vec![1_000], Some(2_000)));
        assert_eq!(at(9), (vec![2_000, 2_000], None));
    }
}
