//! The time in which a path carries nothing of ours: a wire behind the radios, or a slow host. A whole aggregate and a
//! survey, each of them alone on the path, differ by the air that the survey's further segments take. Beside other data
//! a survey may meet free air where the aggregates before it had to wait. A wire holds up each segment, and the
//! handshake too.

use std::time::Duration;

/// An aggregate that is on the air for less of its round trip than this leaves the rest of it to further bursts.
/// Between quick hosts the air is busy for nine tenths of the round trip: a segment alone takes the rest.
const MOST_BUSY: f64 = 0.87;
/// The bound while data comes from the peer, too: aggregates that wait for that data look as behind a slow host.
const MOST_BUSY_BOTH_WAYS: f64 = 0.6;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wire {
    /// The whole aggregates since the last survey, and the sum of their round trips. A host that is late at times
    /// leaves the air idle then: the mean tells it, where the least round trip would not.
    wholes: u32,
    round_trips: Duration,
    /// The least round trip of any segment: the wire's, at the most.
    least: Option<Duration>,
}

impl Wire {
    pub(super) fn on_whole(&mut self, round_trip: Duration) {
        self.wholes += 1;
        self.round_trips += round_trip;
    }

    /// A flow has seen this least round trip so far.
    pub(super) fn on_least(&mut self, round_trip: Option<Duration>) {
        self.least = self.least.into_iter().chain(round_trip).min();
    }

    /// A survey of so many segments has come. Returns the time in seconds for which an aggregate takes the air, if the
    /// air is idle for the rest of its round trip.
    pub(super) fn on_survey(
        &mut self,
        segments: u32,
        aggregate: u32,
        round_trip: Duration,
        is_one_way: bool,
    ) -> Option<f64> {
        let wholes = std::mem::take(&mut self.wholes);
        let whole_s = std::mem::take(&mut self.round_trips).checked_div(wholes)?.as_secs_f64();
        let further = segments.checked_sub(aggregate).filter(|further| *further > 0)?;
        let longer_s = (round_trip.as_secs_f64() - whole_s).max(0.0);
        let beside_wire_s = whole_s - self.least?.as_secs_f64();
        let busy_s = (longer_s * f64::from(aggregate) / f64::from(further)).max(beside_wire_s);
        let most = if is_one_way { MOST_BUSY } else { MOST_BUSY_BOTH_WAYS };
        (busy_s < most * whole_s).then_some(busy_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A path over which the least segment takes so many milliseconds.
    fn path(least: u64) -> Wire {
        let mut wire = Wire::default();
        [least + 9, least, least + 1].into_iter().for_each(|round_trip| wire.on_least(Some(ms(round_trip))));
        wire.on_least(None);
        wire
    }

    #[test]
    fn a_survey_tells_the_air_of_an_aggregate_from_the_wire() {
        let mut wire = path(41);
        assert_eq!(wire.on_survey(56, 28, ms(47), false), None, "no whole aggregate to compare with");
        [47, 45, 46].into_iter().for_each(|whole| wire.on_whole(ms(whole)));
        let busy_s = wire.on_survey(56, 28, ms(52), false).expect("40 ms of wire");
        assert!((busy_s - 0.006).abs() < 1e-9, "{busy_s}: the mean of the aggregates counts");
        assert_eq!(wire.on_survey(56, 28, ms(52), false), None, "the path may have changed since");
    }

    #[test]
    fn where_there_is_no_wire_it_finds_none() {
        for (segments, aggregate, whole, survey) in [(56, 28, 7, 12), (56, 28, 20, 40), (96, 64, 10, 14)] {
            let mut wire = path(5);
            wire.on_whole(ms(whole));
            assert_eq!(wire.on_survey(segments, aggregate, ms(survey), false), None);
        }
    }

    #[test]
    fn a_survey_that_meets_free_air_is_no_wire_where_the_handshake_was_quick() {
        let mut wire = path(5);
        wire.on_whole(ms(36));
        assert_eq!(
            wire.on_survey(56, 28, ms(36), false),
            None,
            "the aggregates waited for a flow the other way"
        );
    }

    #[test]
    fn a_slow_host_leaves_the_air_idle_as_a_short_wire_does() {
        for is_one_way in [true, false] {
            let mut wire = path(2);
            wire.on_whole(ms(8));
            let busy_s = wire.on_survey(56, 28, ms(14), is_one_way);
            assert_eq!(busy_s.is_some(), is_one_way, "the air is busy for 6 ms of 8");
        }
        let mut late = path(2);
        [8, 8, 14].into_iter().for_each(|whole| late.on_whole(ms(whole)));
        assert!(
            late.on_survey(56, 28, ms(16), true).is_some(),
            "a host that is late at times: 10 ms in the mean"
        );
        let mut quick = path(1);
        quick.on_whole(ms(8));
        assert_eq!(quick.on_survey(56, 28, ms(15), true), None, "the air is busy for 7 ms of 8");
    }

    #[test]
    fn an_aggregate_takes_the_air_for_what_its_round_trip_has_above_the_least_one() {
        let mut wire = path(41);
        wire.on_whole(ms(50));
        let busy_s = wire.on_survey(56, 28, ms(50), false).expect("40 ms of wire");
        assert!((busy_s - 0.009).abs() < 1e-9, "{busy_s}");
    }
}
