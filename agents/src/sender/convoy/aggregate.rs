//! The length of an aggregate, learnt from bursts whose ACKs tell how many segments came together.

use super::constants::{FIRST_SEGMENTS, LEAST_RUN, MOST_RUN, SURVEY_EVERY};

/// Surveys whose longest run is the length. A loss on the air splits a run, and so does a rate that is only tried.
const RECENT: usize = 5;
/// Surveys in a row that bring no longer run end the beginning.
const ENOUGH: u32 = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregate {
    /// Zero before the first survey.
    segments: u32,
    /// Surveys of the beginning that brought no longer run.
    vain: u32,
    /// The longest runs of the last surveys, once the beginning is over.
    recent: Option<[u32; RECENT]>,
    /// ACKs since the last survey, and the number of them that brings the next one.
    acks: u32,
    every: u32,
}

impl Default for Aggregate {
    fn default() -> Aggregate {
        Aggregate { segments: 0, vain: 0, recent: None, acks: 0, every: 1 }
    }
}

impl Aggregate {
    /// The segments of an aggregate, as far as they are known.
    pub(super) fn segments(&self) -> u32 {
        self.segments.clamp(LEAST_RUN, MOST_RUN)
    }

    /// Returns whether bursts still grow.
    pub(super) fn is_starting(&self) -> bool {
        self.recent.is_none()
    }

    /// The segments of the next burst, if it is a survey.
    pub(super) fn survey(&self) -> Option<u32> {
        let known = self.segments();
        if self.is_starting() {
            return Some(if self.segments == 0 { FIRST_SEGMENTS } else { (2 * known).min(MOST_RUN) });
        }
        (self.acks >= self.every).then(|| (known + known / 4).min(MOST_RUN))
    }

    /// A survey leaves.
    pub(super) fn ask(&mut self) {
        self.acks = 0;
    }

    pub(super) fn count_ack(&mut self) {
        self.acks = self.acks.saturating_add(1);
    }

    /// A survey of `sent` segments came in runs, the longest of which had `longest`.
    pub(super) fn on_survey(&mut self, sent: u32, longest: u32) {
        if let Some(recent) = &mut self.recent {
            self.every = (2 * self.every).min(SURVEY_EVERY);
            recent.rotate_left(1);
            recent[RECENT - 1] = longest;
            self.segments = recent.iter().copied().max().unwrap_or(longest);
            return;
        }
        // A longest run of three quarters of the burst counts as the burst: a loss split off the rest.
        let is_whole = 4 * longest >= 3 * sent;
        if longest <= self.segments || !is_whole {
            self.vain += 1;
        }
        self.segments = self.segments.max(longest);
        if self.vain >= ENOUGH || self.segments >= MOST_RUN {
            self.recent = Some([self.segments; RECENT]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Surveys over radios whose aggregates have `most` segments. Returns the segments sent in each.
    fn surveys(aggregate: &mut Aggregate, most: u32) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Some(segments) = aggregate.survey() {
            sent.push(segments);
            aggregate.on_survey(segments, segments.min(most));
        }
        sent
    }

    #[test]
    fn bursts_double_until_they_come_in_pieces() {
        let mut aggregate = Aggregate::default();
        assert_eq!(surveys(&mut aggregate, 28), [10, 20, 40, 56]);
        assert_eq!(aggregate.segments(), 28);
        let mut aggregate = Aggregate::default();
        assert_eq!(surveys(&mut aggregate, 11), [10, 20, 22]);
        assert_eq!(aggregate.segments(), 11);
        let mut aggregate = Aggregate::default();
        assert_eq!(surveys(&mut aggregate, 64), [10, 20, 40, 64]);
        assert_eq!(aggregate.segments(), 64);
    }

    #[test]
    fn one_burst_of_many_asks_again_and_the_longest_of_five_answers_counts() {
        let mut aggregate = Aggregate::default();
        surveys(&mut aggregate, 28);
        let mut ask = |longest| {
            (0..SURVEY_EVERY).for_each(|_| aggregate.count_ack());
            let sent = aggregate.survey().expect("a survey is due");
            aggregate.ask();
            aggregate.on_survey(sent, longest);
            (sent, aggregate.segments())
        };
        assert_eq!([ask(12), ask(12), ask(12), ask(12), ask(12)].last(), Some(&(35, 12)));
        assert_eq!([ask(15), ask(15)], [(15, 15), (18, 15)], "it grows again");
    }

    #[test]
    fn answers_are_asked_for_ever_more_seldom() {
        let mut aggregate = Aggregate::default();
        surveys(&mut aggregate, 28);
        let mut ask = || {
            let mut acks = 0;
            while aggregate.survey().is_none() {
                aggregate.count_ack();
                acks += 1;
            }
            aggregate.ask();
            aggregate.on_survey(35, 28);
            acks
        };
        let asked: Vec<_> = (0..8).map(|_| ask()).collect();
        assert_eq!(asked, [1, 2, 4, 8, 16, 32, 64, 64]);
    }
}
