//! Says in the log that connections were reset because the table was full.

use std::time::Duration;

use tokio::time::Instant;

/// The least time between two lines.
const EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Crowding {
    /// The number of resets that the log has, and the time of its last line.
    said: u64,
    at: Option<Instant>,
}

impl Crowding {
    /// Takes the number of resets since the start. Returns those that a line is due for.
    pub(super) fn due(&mut self, resets: u64, now: Instant) -> Option<u64> {
        let new = resets.saturating_sub(self.said);
        let is_due = new > 0 && self.at.is_none_or(|at| now.duration_since(at) >= EVERY);
        if is_due {
            (self.said, self.at) = (resets, Some(now));
        }
        is_due.then_some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_are_said_at_once_and_then_once_a_minute() {
        let (mut crowding, began) = (Crowding::default(), Instant::now());
        let mut due = |resets, s| crowding.due(resets, began + Duration::from_secs(s));
        assert_eq!([due(0, 0), due(2, 1), due(5, 60)], [None, Some(2), None]);
        assert_eq!([due(7, 61), due(7, 200)], [Some(5), None]);
    }
}
