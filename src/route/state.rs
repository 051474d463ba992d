//! What a daemon leaves for its next start: when it last routed, and the number that it last told of itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// More than a node tells of itself between two marks.
const NUMBERS_AHEAD: u16 = 1_024;

#[derive(Debug)]
pub(super) struct State {
    path: PathBuf,
}

impl State {
    pub(super) fn new(path: &Path) -> State {
        State { path: path.to_owned() }
    }

    /// The number from which a node that has kept its own goes on.
    pub(super) fn number(&self) -> Option<u16> {
        let number: u16 = fs::read_to_string(&self.path).ok()?.trim().parse().ok()?;
        Some(number.wrapping_add(NUMBERS_AHEAD))
    }

    /// A node that routed a moment ago has lost its numbers, and waits until nobody routes by them (RFC 3561 §6.13).
    /// `now` counts from 1970, as the file's time does.
    pub(super) fn rest_left(&self, rest: Duration, now: Duration) -> Duration {
        let marked = fs::metadata(&self.path).and_then(|facts| facts.modified()).ok();
        let marked = marked.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        marked.map_or(Duration::ZERO, |marked| left(marked, rest, now))
    }

    /// Leaves word of when this node last routed, and of its number.
    pub(super) fn mark(&self, number: Option<u16>) {
        let text = number.map_or(String::new(), |number| format!("{number}\n"));
        if let Err(error) = crate::daemon::state::write(&self.path, &text) {
            tracing::debug!(path = %self.path.display(), %error, "not marked");
        }
    }
}

/// A clock that was set back since, or a mark from the future, makes no rest longer.
fn left(marked: Duration, rest: Duration, now: Duration) -> Duration {
    (marked + rest).saturating_sub(now).min(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_never_longer_than_the_protocol_asks_for() {
        let seconds = Duration::from_secs;
        let rest = seconds(15);
        for (marked, now, expected) in [(100, 100, 15), (100, 110, 5), (100, 115, 0), (100, 900, 0)] {
            assert_eq!(left(seconds(marked), rest, seconds(now)), seconds(expected), "{marked} at {now}");
        }
        assert_eq!(left(seconds(31_536_100), rest, seconds(100)), rest, "a mark from next year");
    }
}
