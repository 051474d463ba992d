//! Limits a line of the log that strangers can cause as often as they like: one a minute, with the number of cases.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep};

/// The least time between two lines.
pub(super) const EVERY: Duration = Duration::from_secs(60);
/// The pause before another client is accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// The cases without a line, and the time of the last line.
#[derive(Debug, Default)]
pub(super) struct LogLimit(Mutex<(u64, Option<Instant>)>);

impl LogLimit {
    /// Counts a case. Returns the number of cases since the last line, if the next one is due.
    pub(super) fn due(&self) -> Option<u64> {
        let (cases, last) = &mut *self.0.lock();
        *cases += 1;
        if last.is_some_and(|last| last.elapsed() < EVERY) {
            return None;
        }
        *last = Some(Instant::now());
        Some(std::mem::take(cases))
    }

    /// Says that a service could not accept a client, and returns the wait for the next one. The descriptors may be
    /// spent, or the client gone already: the next one may work.
    pub(super) fn not_accepted(&self, service: &str, error: &io::Error) -> Sleep {
        if let Some(times) = self.due() {
            tracing::warn!(%error, times, "{service}: a client was not accepted");
        }
        sleep(PAUSE)
    }
}

// Logs how often a client or a peer made room because a resource had reached its bound.

#[derive(Debug, Default)]
pub(super) struct Crowding {
    /// The counts that the log has, and the time of its last line.
    said: BTreeMap<String, u64>,
    at: Option<Instant>,
}

impl Crowding {
    /// Takes the counts since the start, by name. Returns the growth of those that a line is due for.
    pub(super) fn due(&mut self, counts: &BTreeMap<String, u64>, now: Instant) -> Option<String> {
        let said = |name: &String| self.said.get(name).copied().unwrap_or(0);
        let growth = counts.iter().map(|(name, count)| (name, count.saturating_sub(said(name))));
        let news: Vec<_> = growth.filter(|(_, new)| *new > 0).collect();
        if news.is_empty() || self.at.is_some_and(|at| now.duration_since(at) < EVERY) {
            return None;
        }
        let news: Vec<_> = news.iter().map(|(name, new)| format!("{new} of {name}")).collect();
        (self.said, self.at) = (counts.clone(), Some(now));
        Some(news.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_is_due_at_once_and_then_once_a_minute() {
        let limit = LogLimit::default();
        assert_eq!([limit.due(), limit.due(), limit.due()], [Some(1), None, None]);
        sleep(EVERY).await;
        assert_eq!([limit.due(), limit.due()], [Some(3), None]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_not_accepted_keeps_the_next_client_waiting_and_nothing_else() {
        let (limit, began) = (LogLimit::default(), Instant::now());
        let pause = limit.not_accepted("forward", &io::ErrorKind::Other.into());
        assert_eq!((began.elapsed(), pause.deadline() - began), (Duration::ZERO, PAUSE));
        pause.await;
        assert_eq!(began.elapsed(), PAUSE);
    }

    #[test]
    fn what_gave_way_is_said_at_once_and_then_once_a_minute() {
        let (mut crowding, began) = (Crowding::default(), Instant::now());
        let mut due = |orphans, seats, s| {
            let counts = [("orphans".to_owned(), orphans), ("socks5".to_owned(), seats)].into();
            crowding.due(&counts, began + Duration::from_secs(s)).unwrap_or_default()
        };
        assert_eq!([due(0, 0, 0), due(2, 0, 1), due(3, 5, 60)], ["", "2 of orphans", ""]);
        assert_eq!([due(3, 7, 61), due(3, 7, 200)], ["1 of orphans, 7 of socks5", ""]);
    }
}
