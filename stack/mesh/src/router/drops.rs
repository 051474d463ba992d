//! Counters of messages and packets that were refused, dropped or kept too long; logged at most once a second.

use std::collections::BTreeMap;

use hopwise_core::trace::DropReason;

/// The counters of one router, by reason.
#[derive(Debug, Default)]
pub struct Drops {
    /// For each reason the count, and the count at the last log line.
    counts: BTreeMap<&'static str, (u64, u64)>,
}

impl Drops {
    /// Counts one drop.
    pub fn count(&mut self, reason: DropReason) {
        self.counts.entry(reason.name()).or_default().0 += 1;
    }

    /// The reasons counted since the last call, with the sum since the start.
    pub fn news(&mut self) -> Vec<(&'static str, u64)> {
        let mut news = Vec::new();
        for (reason, (count, said)) in &mut self.counts {
            if count != said {
                news.push((*reason, *count));
                *said = *count;
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_again_when_there_are_more_and_with_the_sum() {
        let mut drops = Drops::default();
        assert_eq!(drops.news(), []);
        let (refused, malformed) = (DropReason::RoutingRefused, DropReason::RoutingMalformed);
        [refused, malformed, refused].into_iter().for_each(|reason| drops.count(reason));
        assert_eq!(drops.news(), [(malformed.name(), 1), (refused.name(), 2)]);
        assert_eq!(drops.news(), []);
        drops.count(refused);
        assert_eq!(drops.news(), [(refused.name(), 3)]);
    }
}
