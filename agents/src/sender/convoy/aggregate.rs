//! The length of an aggregate, learnt from bursts whose ACKs tell how many segments came together.

use super::constants::{FIRST_SEGMENTS, LEAST_RUN, MOST_RUN, SURVEY_EVERY};

/// No survey has more segments: queues of 100 packets have to hold it.
const MOST_SURVEY: u32 = MOST_RUN * 3 / 2;

/// The middle one of so many surveys' longest runs is the length. A loss on the air splits a run, and what arrives
/// after it joins two.
const RECENT: usize = 5;
/// So many surveys that bring no longer run end the beginning.
const ENOUGH: u32 = 2;
/// So many surveys in a row that lose a segment do not fit into a queue of the path.
const OVERFULL: u32 = 3;

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
    pub(super) every: u32,
    /// The most segments of a survey, and the surveys in a row that lost one.
    room: u32,
    lost: u32,
}

impl Default for Aggregate {
    fn default() -> Aggregate {
        Aggregate { segments: 0, vain: 0, recent: None, acks: 0, every: 1, room: MOST_SURVEY, lost: 0 }
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
        let twice = (2 * self.segments()).min(self.room);
        match self.recent {
            None if self.segments == 0 => Some(FIRST_SEGMENTS),
            None => Some(twice),
            Some(_) => (self.acks >= self.every).then_some(twice),
        }
    }

    /// A survey of so many segments lost one of them.
    pub(super) fn on_lost(&mut self, planned: u32) {
        self.lost += 1;
        if self.lost == OVERFULL {
            (self.room, self.lost) = ((planned * 3 / 4).max(FIRST_SEGMENTS), 0);
        }
    }

    /// A survey leaves.
    pub(super) fn ask(&mut self) {
        self.acks = 0;
    }

    pub(super) fn count_ack(&mut self) {
        self.acks = self.acks.saturating_add(1);
    }

    /// A survey came in runs, the longest of which had so many segments.
    pub(super) fn on_survey(&mut self, longest: u32) {
        let longest = longest.min(MOST_RUN);
        // Losses on the air are no lack of room.
        (self.room, self.lost) = ((self.room + self.room / 8).min(MOST_SURVEY), 0);
        if let Some(recent) = &mut self.recent {
            self.every = (2 * self.every).min(SURVEY_EVERY);
            recent.rotate_left(1);
            recent[RECENT - 1] = longest;
            let mut sorted = *recent;
            sorted.sort_unstable();
            self.segments = sorted[RECENT / 2];
            return;
        }
        if longest <= self.segments {
            self.vain += 1;
        }
        self.segments = self.segments.max(longest);
        if self.vain >= ENOUGH || self.segments == MOST_RUN {
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
            aggregate.on_survey(segments.min(most));
        }
        sent
    }

    #[test]
    fn bursts_double_until_two_of_them_come_in_no_longer_runs() {
        for (most, bursts) in
            [(28, &[10, 20, 40, 56, 56][..]), (11, &[10, 20, 22, 22]), (64, &[10, 20, 40, 80])]
        {
            let mut aggregate = Aggregate::default();
            assert_eq!(surveys(&mut aggregate, most), bursts);
            assert_eq!(aggregate.segments(), most);
        }
    }

    /// Surveys over radios with aggregates of 28, through a queue with so many places. Returns the segments of each.
    fn through_queue(aggregate: &mut Aggregate, places: u32) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Some(segments) = aggregate.survey().filter(|_| sent.len() < 20) {
            sent.push(segments);
            if segments > places {
                aggregate.on_lost(segments);
            } else {
                aggregate.on_survey(segments.min(28));
            }
        }
        sent
    }

    #[test]
    fn surveys_that_a_queue_has_no_place_for_become_shorter() {
        let mut aggregate = Aggregate::default();
        assert_eq!(through_queue(&mut aggregate, 50), [10, 20, 40, 56, 56, 56, 42, 47]);
        assert_eq!((aggregate.segments(), aggregate.is_starting()), (28, false));
        assert_eq!(through_queue(&mut Aggregate::default(), 25)[..9], [10, 20, 40, 40, 40, 30, 30, 30, 22]);
    }

    /// A survey that is due. Returns its segments, and the length that is known after it.
    fn ask(aggregate: &mut Aggregate, longest: u32) -> (u32, u32) {
        (0..SURVEY_EVERY).for_each(|_| aggregate.count_ack());
        let sent = aggregate.survey().expect("a survey is due");
        aggregate.ask();
        aggregate.on_survey(longest);
        (sent, aggregate.segments())
    }

    #[test]
    fn the_middle_one_of_five_answers_counts() {
        let mut aggregate = Aggregate::default();
        surveys(&mut aggregate, 28);
        assert_eq!([12, 50, 12].map(|longest| ask(&mut aggregate, longest)), [(56, 28); 3]);
        assert_eq!([12, 12].map(|longest| ask(&mut aggregate, longest)), [(56, 12), (24, 12)]);
        let grown = [20, 20, 20].map(|longest| ask(&mut aggregate, longest));
        assert_eq!(grown, [(24, 12), (24, 12), (24, 20)], "it grows again");
    }

    /// A loss splits nearly every run of these surveys. Each is a part of the burst, in thousandths.
    #[test]
    fn where_runs_are_split_the_length_grows_with_the_bursts() {
        let mut aggregate = Aggregate::default();
        for nth in 0..60 {
            let part = [400, 700, 550, 800, 600][nth % 5];
            (0..SURVEY_EVERY).for_each(|_| aggregate.count_ack());
            let sent = aggregate.survey().expect("a survey is due");
            aggregate.on_survey((sent * part / 1_000).min(28));
        }
        assert_eq!(aggregate.segments(), 28);
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
            aggregate.on_survey(28);
            acks
        };
        let asked: Vec<_> = (0..8).map(|_| ask()).collect();
        assert_eq!(asked, [1, 2, 4, 8, 16, 32, 64, 64]);
    }
}
