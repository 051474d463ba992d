//! Lines of the log that strangers can bring about: so many of each kind in a second, the rest is counted.

use std::collections::BTreeMap;

/// Lines of one kind between two counts.
const MOST: u64 = 20;

#[derive(Debug, Default)]
pub(super) struct Words {
    since: BTreeMap<&'static str, u64>,
}

impl Words {
    /// Whether one more line of that kind may be written.
    pub(super) fn may(&mut self, kind: &'static str) -> bool {
        let count = self.since.entry(kind).or_default();
        *count += 1;
        *count <= MOST
    }

    /// Once a second: how many lines of each kind were not written.
    pub(super) fn unsaid(&mut self) -> Vec<(&'static str, u64)> {
        let since = std::mem::take(&mut self.since);
        since
            .into_iter()
            .filter(|(_, count)| *count > MOST)
            .map(|(kind, count)| (kind, count - MOST))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_twenty_lines_and_a_count_and_other_kinds_are_said_all_the_same() {
        let mut words = Words::default();
        assert_eq!((0..500).filter(|_| words.may("route")).count(), 20);
        assert!(words.may("route gone"));
        assert_eq!(words.unsaid(), [("route", 480)]);
        assert!(words.may("route"));
        assert_eq!(words.unsaid(), []);
    }
}
