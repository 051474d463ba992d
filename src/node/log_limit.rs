//! Limits a line of the log that strangers can cause as often as they like: one a minute, with the number of cases.

use std::io;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

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

    /// Says that a service could not accept a client, and waits. The descriptors may be spent, or the client gone
    /// already: the next one may work.
    pub(super) async fn not_accepted(&self, service: &str, error: &io::Error) {
        if let Some(times) = self.due() {
            tracing::warn!(%error, times, "{service}: a client was not accepted");
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_is_due_at_once_and_then_once_a_minute() {
        let limit = LogLimit::default();
        assert_eq!([limit.due(), limit.due(), limit.due()], [Some(1), None, None]);
        sleep(EVERY).await;
        assert_eq!([limit.due(), limit.due()], [Some(3), None]);
    }
}
