//! Says in the log what made room for others because a bound was reached.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::log_limit::EVERY;

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
