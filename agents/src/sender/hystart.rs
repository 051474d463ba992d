//! HyStart++: an end of slow start before the queue overflows, for the owners of a window.
//!
//! Source: RFC 9406, with its recommended constants.
//!
//! Rule: a round ends when the data is acknowledged that was in flight at its start. A round trip that has grown by an
//! eighth since the last round, but by 4 to 16 ms, shows a queue. The window then grows a quarter as quickly
//! (Conservative Slow Start). A shorter round trip shows that there was no queue, and slow start goes on. After five
//! rounds without one, congestion avoidance begins. Eight samples decide, and only slow start before the first loss
//! counts.
//!
//! Deviations: the limit of an ACK's growth stays the owner's. RFC 9406 has eight segments for senders that count bytes
//! and do not pace; on a chain such a burst collides with itself.

use std::time::Duration;

use crate::param::{Form, OFF, Param};

/// The samples of a round that may decide (`N_RTT_SAMPLE`).
const SAMPLES: u8 = 8;
/// The least growth of the round trip that counts (`MIN_RTT_THRESH`).
const LEAST_GROWTH_US: u32 = 4_000;
/// The most growth that it takes (`MAX_RTT_THRESH`).
const MOST_GROWTH_US: u32 = 16_000;
/// The part of the round trip that lies between the two (`MIN_RTT_DIVISOR`).
const PART: u32 = 8;
/// Conservative Slow Start divides growth by this (`CSS_GROWTH_DIVISOR`).
pub(super) const SLOWER: u64 = 4;
/// The rounds of Conservative Slow Start, with the one in which it began (`CSS_ROUNDS`).
const ROUNDS: u8 = 5;

pub(super) const HYSTART: Param =
    Form::Switch.is(OFF).means("end the first slow start when round trips grow (RFC 9406)");

/// Longer than every round trip.
const NONE: u32 = u32::MAX;

/// Times are in microseconds. Most flows have this, so it takes 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// The shortest round trip of the last round.
    last_us: u32,
    /// The shortest round trip of this round.
    this_us: u32,
    /// The round trip at which Conservative Slow Start began; [`NONE`] in slow start.
    baseline_us: u32,
    /// Counted up to [`SAMPLES`].
    samples: u8,
    /// Rounds that ended in Conservative Slow Start.
    slow_rounds: u8,
}

const _: () = assert!(size_of::<HyStart>() == 16);

/// The verdict of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HyStartVerdict {
    GoesOn,
    /// Congestion avoidance begins.
    Over,
}

impl HyStart {
    pub(super) const NEW: HyStart =
        HyStart { last_us: NONE, this_us: NONE, baseline_us: NONE, samples: 0, slow_rounds: 0 };

    /// True in Conservative Slow Start.
    pub(super) fn is_slow(&self) -> bool {
        self.baseline_us != NONE
    }

    /// Takes an ACK of slow start, with the round trip that it measured. `ends_round` if it is the last of a round.
    pub(super) fn hear(&mut self, rtt: Option<Duration>, ends_round: bool) -> HyStartVerdict {
        if let Some(rtt) = rtt {
            self.this_us = self.this_us.min(u32::try_from(rtt.as_micros()).unwrap_or(NONE - 1));
            self.samples = (self.samples + 1).min(SAMPLES);
        }
        self.judge();
        if !ends_round {
            return HyStartVerdict::GoesOn;
        }
        self.slow_rounds += u8::from(self.is_slow());
        (self.last_us, self.this_us, self.samples) = (self.this_us, NONE, 0);
        if self.slow_rounds < ROUNDS { HyStartVerdict::GoesOn } else { HyStartVerdict::Over }
    }

    fn judge(&mut self) {
        if self.samples < SAMPLES {
            return;
        }
        if self.is_slow() {
            if self.this_us < self.baseline_us {
                (self.baseline_us, self.slow_rounds) = (NONE, 0);
            }
        } else if self.last_us != NONE && self.this_us >= self.last_us.saturating_add(threshold(self.last_us))
        {
            self.baseline_us = self.this_us;
        }
    }
}

/// The growth that shows a queue (`RttThresh`).
fn threshold(last_us: u32) -> u32 {
    (last_us / PART).clamp(LEAST_GROWTH_US, MOST_GROWTH_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a round of this many ACKs with one round trip. Returns the verdict of the last.
    fn round(start: &mut HyStart, acks: u8, rtt_us: u64) -> HyStartVerdict {
        let rtt = Some(Duration::from_micros(rtt_us));
        (1..acks).for_each(|_| assert_eq!(start.hear(rtt, false), HyStartVerdict::GoesOn));
        start.hear(rtt, true)
    }

    fn after(rounds: &[(u8, u64)]) -> HyStart {
        let mut start = HyStart::NEW;
        rounds.iter().for_each(|(acks, rtt_us)| {
            round(&mut start, *acks, *rtt_us);
        });
        start
    }

    #[test]
    fn an_eighth_of_the_round_trip_counts_but_at_least_4_and_at_most_16_ms() {
        // 10 ms / 8 = 1.25, so 4; 64 ms / 8 = 8; 200 ms / 8 = 25, so 16.
        for (last_ms, grown_us) in [(10, 14_000), (64, 72_000), (200, 216_000)] {
            let last = (8, last_ms * 1_000);
            assert!(after(&[last, (8, grown_us)]).is_slow(), "{last_ms} ms");
            assert!(!after(&[last, (8, grown_us - 1)]).is_slow(), "{last_ms} ms");
        }
    }

    #[test]
    fn a_round_decides_with_its_eighth_sample_and_by_the_shortest() {
        assert!(!after(&[(8, 20_000), (7, 90_000)]).is_slow(), "seven samples show nothing");
        let mut start = after(&[(1, 20_000)]);
        let at = |ms| Some(Duration::from_millis(ms));
        (0..7).for_each(|_| {
            start.hear(at(90), false);
        });
        assert!(!start.is_slow());
        start.hear(at(90), false);
        assert!(start.is_slow(), "one sample is enough of the round before");
        let mut mixed = after(&[(8, 20_000)]);
        mixed.hear(at(21), false);
        round(&mut mixed, 9, 90_000);
        assert!(!mixed.is_slow(), "one was as short as before");
    }

    #[test]
    fn a_round_without_a_sample_leaves_the_next_one_nothing_to_compare() {
        let mut start = after(&[(8, 20_000)]);
        assert_eq!(start.hear(None, true), HyStartVerdict::GoesOn);
        round(&mut start, 8, 90_000);
        assert!(!start.is_slow());
    }

    #[test]
    fn five_slow_rounds_are_the_end_and_the_one_in_which_they_began_counts() {
        let mut start = after(&[(8, 20_000)]);
        for _ in 0..4 {
            assert_eq!(round(&mut start, 20, 40_000), HyStartVerdict::GoesOn);
        }
        assert_eq!(round(&mut start, 20, 40_000), HyStartVerdict::Over);
    }

    /// RFC 9406 §4.2: too few samples show no end of the queue, but their round is one of the five.
    #[test]
    fn a_slow_round_with_few_samples_counts_and_takes_nothing_back() {
        let mut start = after(&[(8, 20_000), (8, 40_000)]);
        for acks in [7, 1, 20] {
            assert_eq!(round(&mut start, acks, 40_000), HyStartVerdict::GoesOn);
        }
        assert_eq!(start.hear(None, true), HyStartVerdict::Over);
    }

    #[test]
    fn a_round_trip_below_the_baseline_resumes_slow_start_and_forgets_slow_rounds() {
        let mut start = after(&[(8, 20_000), (8, 40_000), (8, 40_000), (8, 40_000)]);
        assert!(start.is_slow());
        assert_eq!(round(&mut start, 7, 39_999), HyStartVerdict::GoesOn);
        assert!(start.is_slow(), "seven samples show nothing");
        round(&mut start, 8, 39_999);
        assert!(!start.is_slow());
        for _ in 0..4 {
            assert_eq!(round(&mut start, 8, 50_000), HyStartVerdict::GoesOn);
        }
        assert_eq!(round(&mut start, 8, 50_000), HyStartVerdict::Over, "five rounds begin anew");
    }
}
