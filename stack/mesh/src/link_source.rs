//! Where news of links to mobiles come from: what a radio world knows, a schedule, a carrier, what an interface knows
//! of its stations.

use std::collections::VecDeque;
use std::fmt::Debug;

use hopwise_core::{Instant, LinkEvent};

/// Something that knows of links. It never waits.
pub trait LinkSource: Debug + Send {
    /// What has become known by now, one at a time.
    fn poll_news(&mut self, now: Instant) -> Option<Told>;
    /// When there may be more, where no descriptor says so.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// What a source says, and when it was so: a signal may be older than the news of it.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub at: Instant,
    pub event: LinkEvent<'static>,
}

/// News that are known before their time.
#[derive(Clone, Debug, Default)]
pub struct Schedule(VecDeque<Told>);

impl Schedule {
    pub fn new(news: impl IntoIterator<Item = Told>) -> Schedule {
        let mut news: Vec<Told> = news.into_iter().collect();
        news.sort_by_key(|told| told.at);
        Schedule(news.into())
    }
}

impl LinkSource for Schedule {
    fn poll_news(&mut self, now: Instant) -> Option<Told> {
        if self.0.front()?.at <= now { self.0.pop_front() } else { None }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.front().map(|told| told.at)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn a_schedule_says_each_thing_once_and_not_before_its_time() {
        let told = |s, last| {
            let peer = IpAddr::from([10, 0, 0, last]);
            Told { at: Instant::from_secs(s), event: LinkEvent::Gone { peer } }
        };
        let mut schedule = Schedule::new([told(2, 1), told(1, 2), told(2, 3)]);
        let mut at = |s| {
            let now = Instant::from_secs(s);
            let said = std::iter::from_fn(|| schedule.poll_news(now)).map(|told| told.at.as_millis());
            (said.collect::<Vec<_>>(), schedule.poll_timeout().map(Instant::as_millis))
        };
        assert_eq!(at(0), (vec![], Some(1_000)));
        assert_eq!(at(1), (vec![1_000], Some(2_000)));
        assert_eq!(at(9), (vec![2_000, 2_000], None));
    }
}
