//! The time in which a path carries nothing of ours: a wire behind the radios. A whole aggregate and a survey, each of
//! them alone on the path, differ by the air that the survey's further segments take.

use std::time::Duration;

/// An aggregate that is on the air for less of its round trip than this leaves the rest of it to further bursts.
const MOST_BUSY: f64 = 0.6;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wire {
    /// The least round trip of a whole aggregate since the last survey.
    whole: Option<Duration>,
}

impl Wire {
    pub(super) fn on_whole(&mut self, round_trip: Duration) {
        self.whole = Some(self.whole.map_or(round_trip, |least| least.min(round_trip)));
    }

    /// A survey of so many segments has come. Returns the time in seconds for which an aggregate takes the air, if the
    /// air is idle for the rest of its round trip.
    pub(super) fn on_survey(&mut self, segments: u32, aggregate: u32, round_trip: Duration) -> Option<f64> {
        let whole_s = self.whole.take()?.as_secs_f64();
        let further = segments.checked_sub(aggregate).filter(|further| *further > 0)?;
        let longer_s = (round_trip.as_secs_f64() - whole_s).max(0.0);
        let busy_s = longer_s * f64::from(aggregate) / f64::from(further);
        (busy_s < MOST_BUSY * whole_s).then_some(busy_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_survey_tells_the_air_of_an_aggregate_from_the_wire() {
        let mut wire = Wire::default();
        assert_eq!(wire.on_survey(56, 28, ms(47)), None, "no whole aggregate to compare with");
        [60, 46, 80].into_iter().for_each(|whole| wire.on_whole(ms(whole)));
        let busy_s = wire.on_survey(56, 28, ms(52)).expect("40 ms of wire");
        assert!((busy_s - 0.006).abs() < 1e-9, "{busy_s}: the quickest aggregate counts");
        assert_eq!(wire.on_survey(56, 28, ms(52)), None, "the path may have changed since");
    }

    #[test]
    fn where_there_is_no_wire_it_finds_none() {
        for (segments, aggregate, whole, survey) in [(56, 28, 7, 12), (56, 28, 20, 40), (96, 64, 10, 14)] {
            let mut wire = Wire::default();
            wire.on_whole(ms(whole));
            assert_eq!(wire.on_survey(segments, aggregate, ms(survey)), None);
        }
    }
}
