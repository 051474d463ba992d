//! RACK (RFC 8985 §6): a segment is lost if one that was sent sufficiently later has arrived.

use std::time::Duration;

use crate::agent::Recovered;
use crate::tcp::scoreboard::Newest;
use crate::{Instant, Seq};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rack {
    /// The most recently sent segment of all that were delivered.
    pub(crate) newest: Option<Newest>,
    pub(crate) rtt: Duration,
    reordering_seen: bool,
    /// Reordering window in quarters of the least RTT.
    quarters: u8,
    /// Recoveries for which a widened window is kept.
    persist: u8,
    /// `snd_nxt` at the last widening, which happens once a round trip at most.
    widened_at: Option<Seq>,
}

/// Recoveries without a D-SACK after which the window returns to a quarter (RFC 8985 §6.2 step 4).
const PERSIST: u8 = 16;

impl Rack {
    /// Steps 1 to 3: takes the newest segment that an ACK delivered.
    pub(crate) fn on_delivered(
        &mut self,
        now: Instant,
        newest: Option<Newest>,
        reordered: bool,
        min_rtt: Option<Duration>,
    ) {
        self.reordering_seen |= reordered;
        let Some(newest) = newest else { return };
        let rtt = now.since(newest.sent_at);
        // An early ACK of a retransmitted segment belongs to its first copy, and is no evidence.
        if newest.was_resent && min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        if self.newest.is_none_or(|last| newest.is_after(last.sent_at, last.end)) {
            self.newest = Some(newest);
            self.rtt = rtt;
        }
    }

    /// A D-SACK reports a needless retransmission, so the window grows (step 4).
    pub(crate) fn on_dsack(&mut self, snd_una: Seq, snd_nxt: Seq) {
        if self.widened_at.is_none_or(|at| at <= snd_una) {
            self.widened_at = Some(snd_nxt);
            self.quarters = self.quarters.max(1).saturating_add(1);
            self.persist = PERSIST;
        }
    }

    /// Ends the round trip of the last widening.
    pub(crate) fn passed(&mut self, una: Seq) {
        self.widened_at = self.widened_at.filter(|at| una < *at);
    }

    /// A needless recovery shows reordering, just as a late segment does. Without this rule, a path that reorders by
    /// more than a few segments would cause a recovery each time.
    pub(crate) fn on_recovered(&mut self, end: Recovered) {
        self.reordering_seen |= end == Recovered::Undone;
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// The time by which the delivered segment must have been sent later. It is zero while nothing was ever reordered,
    /// if recovery runs or enough segments are SACKed for the classic rule.
    pub(crate) fn window(
        &self,
        certain: Certainty,
        min_rtt: Option<Duration>,
        srtt: Option<Duration>,
    ) -> Duration {
        if !self.reordering_seen && certain == Certainty::Enough {
            return Duration::ZERO;
        }
        let quarter = min_rtt.unwrap_or_default() / 4;
        let window = quarter * u32::from(self.quarters.max(1));
        srtt.map_or(window, |srtt| window.min(srtt))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// Recovery runs, or the duplicate threshold is reached.
    Enough,
    Little,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RTT: Option<Duration> = Some(Duration::from_millis(40));
    const SRTT: Option<Duration> = Some(Duration::from_millis(100));

    fn window_ms(rack: &Rack) -> u128 {
        rack.window(Certainty::Little, MIN_RTT, SRTT).as_millis()
    }

    #[test]
    fn every_round_with_a_dsack_waits_a_quarter_longer_up_to_an_srtt() {
        let mut rack = Rack::default();
        assert_eq!(window_ms(&rack), 10);
        for (una, expected) in [(0, 20), (100, 30), (150, 30), (200, 40)] {
            rack.passed(Seq(una));
            rack.on_dsack(Seq(una), Seq(una + 100));
            assert_eq!(window_ms(&rack), expected, "at {una}: a round ends at 100, at 200");
        }
        (3..20).for_each(|round| rack.on_dsack(Seq(round * 100), Seq(round * 100 + 100)));
        assert_eq!(window_ms(&rack), 100);
    }

    #[test]
    fn sixteen_recoveries_without_a_dsack_end_the_longer_wait() {
        let mut rack = Rack::default();
        rack.on_dsack(Seq(0), Seq(100));
        (1..16).for_each(|_| rack.on_recovered(Recovered::Full));
        assert_eq!(window_ms(&rack), 20);
        rack.on_recovered(Recovered::Full);
        assert_eq!(window_ms(&rack), 10);
    }
}
