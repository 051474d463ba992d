//! The time in which a path carries nothing of ours: a wire behind the radios. A whole aggregate and a survey, each of
//! them alone on the path, differ by the air that the survey's further segments take.

use std::mem;
use std::time::Duration;

/// An aggregate that is on the air for less of its round trip than this leaves the rest of it to further bursts.
const MOST_BUSY: f64 = 0.6;
/// So many surveys in a row show it: one may meet free air after aggregates that waited for other flows, and the least
/// round trip is of many aggregates.
const SURVEYS: u32 = 5;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wire {
    /// The least round trip of a whole aggregate beside the surveys that count.
    whole: Option<Duration>,
    /// Surveys in a row that showed idle air, and the longest time that one gave for an aggregate on the air.
    surveys: u32,
    busy_s: f64,
}

impl Wire {
    pub(super) fn on_whole(&mut self, round_trip: Duration) {
        self.whole = Some(self.whole.map_or(round_trip, |least| least.min(round_trip)));
    }

    /// A survey of so many segments has come. Returns the time in seconds for which an aggregate takes the air, once
    /// surveys in a row have shown that the air is idle for the rest of its round trip.
    pub(super) fn on_survey(&mut self, segments: u32, aggregate: u32, round_trip: Duration) -> Option<f64> {
        let whole_s = self.whole?.as_secs_f64();
        let further = segments.checked_sub(aggregate).filter(|further| *further > 0)?;
        let longer_s = (round_trip.as_secs_f64() - whole_s).max(0.0);
        self.busy_s = self.busy_s.max(longer_s * f64::from(aggregate) / f64::from(further));
        self.surveys += 1;
        if self.busy_s >= MOST_BUSY * whole_s {
            *self = Wire::default();
        }
        (self.surveys == SURVEYS).then(|| mem::take(self).busy_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// What the last survey tells, with whole aggregates of these round trips before each.
    fn surveyed(wholes: &[u64], surveys: [u64; SURVEYS as usize]) -> Option<f64> {
        let mut wire = Wire::default();
        let mut told = surveys.map(|survey| {
            wholes.iter().for_each(|whole| wire.on_whole(ms(*whole)));
            wire.on_survey(56, 28, ms(survey))
        });
        let last = told.last_mut().and_then(Option::take);
        assert!(told.iter().all(Option::is_none), "{told:?}: fewer surveys tell nothing");
        last
    }

    #[test]
    fn surveys_tell_the_air_of_an_aggregate_from_the_wire() {
        let busy_s = surveyed(&[60, 46, 80], [52, 50, 51, 50, 51]).expect("40 ms of wire");
        assert!(
            (busy_s - 0.006).abs() < 1e-9,
            "{busy_s}: the quickest aggregate and the slowest survey count"
        );
    }

    #[test]
    fn surveys_of_which_one_met_another_flow_tell_nothing() {
        assert_eq!(surveyed(&[40], [41, 80, 41, 41, 41]), None);
        assert_eq!(surveyed(&[40], [80, 41, 41, 41, 41]), None);
    }

    #[test]
    fn a_survey_without_a_whole_aggregate_beside_it_tells_nothing() {
        let mut wire = Wire::default();
        assert!((0..9).all(|_| wire.on_survey(56, 28, ms(47)).is_none()));
    }

    #[test]
    fn where_there_is_no_wire_it_finds_none() {
        assert_eq!(surveyed(&[7], [12; 5]), None);
        assert_eq!(surveyed(&[20], [40; 5]), None);
    }
}
