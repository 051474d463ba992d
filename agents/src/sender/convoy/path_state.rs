//! The knowledge that all flows between two hosts have in common: what kind of radio lies between them, how long its
//! aggregates are, and how bursts follow each other (RFC 9040).

use std::time::Duration;

use hopwise_core::agent::{Acked, Path};
use hopwise_core::{Instant, Seq};

use super::aggregate::Aggregate;
use super::comparison::{Comparison, Regime};
use super::constants::LEAST_RUN;
use super::paced::Paced;
use super::wire::Wire;

/// Rate control begins at rates at which an aggregate has two packets, and a loss splits it. It has found better rates
/// after so many bursts.
const MOST_DOUBTS: u32 = 8;
/// A burst whose segments all came alone counts as so many bursts in doubt.
const ALONE_DOUBTS: u32 = 3;

/// The way in which segments of a burst arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// No burst has shown it yet.
    #[default]
    Unknown,
    /// Together.
    Aggregates,
    /// One by one.
    Singles,
}

/// A burst, before its first segment leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) regime: Regime,
    pub(super) segments: u32,
    /// The bursts that share an ACK.
    pub(super) parts: u32,
    /// True if the end of each run is to be acknowledged.
    pub(super) is_survey: bool,
}

/// A burst in which each segment asks for an ACK at the end of its run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    pub(super) began: Seq,
    pub(super) end: Seq,
    /// Segments that were to leave, that have left, and that came in the longest run.
    pub(super) planned: u32,
    pub(super) sent: u32,
    pub(super) longest: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathState {
    pub(super) kind: Kind,
    /// Bursts that came in short runs.
    doubts: u32,
    pub(super) aggregate: Aggregate,
    pub(super) paced: Paced,
    pub(super) comparison: Comparison,
    /// The round trip of a whole aggregate.
    round_trip_s: f64,
    pub(super) wire: Wire,
    /// The bytes that all flows have in flight.
    pub(super) in_flight: u64,
}

impl PathState {
    pub(super) fn plan(&self) -> Plan {
        let regime = self.comparison.regime;
        match (self.aggregate.survey(), regime) {
            (Some(segments), _) => Plan { regime, segments, parts: 1, is_survey: true },
            (None, Regime::Whole) => {
                Plan { regime, segments: self.aggregate.segments(), parts: 1, is_survey: false }
            }
            (None, Regime::Paced) => {
                let (segments, parts) = (self.paced.burst, self.paced.parts());
                Plan { regime, segments, parts, is_survey: false }
            }
        }
    }

    /// The ACK of a whole aggregate or of a group is in, after a round trip that shows the path.
    pub(super) fn on_ack(&mut self, now: Instant, regime: Regime, round_trip: Duration) {
        self.aggregate.count_ack();
        match regime {
            Regime::Whole => {
                self.round_trip_s = round_trip.as_secs_f64();
                self.wire.on_whole(round_trip);
                self.paced.fit(self.aggregate.segments(), self.round_trip_s);
            }
            Regime::Paced => {
                let was_starting = self.paced.is_starting();
                self.paced.on_ack(now, round_trip);
                // A wire spreads the bursts that arrive at the first radio. Behind a queue they show longer aggregates.
                if was_starting && !self.paced.is_starting() && self.paced.is_over_wire {
                    // The next surveys come as quickly as the first ones did.
                    self.aggregate.every = 1;
                }
            }
        }
    }

    /// A burst whose runs were asked for has arrived without a loss, its last segment after the round trip of `acked`.
    /// With `is_one_way` no data has come from the peer since the last survey.
    pub(super) fn on_survey(&mut self, survey: &Survey, acked: &Acked, path: &Path, is_one_way: bool) {
        if self.kind == Kind::Unknown && survey.sent >= LEAST_RUN {
            self.doubts += if survey.longest == 1 { ALONE_DOUBTS } else { 1 };
            if survey.longest >= LEAST_RUN {
                self.kind = Kind::Aggregates;
            } else if self.doubts > MOST_DOUBTS {
                self.kind = Kind::Singles;
            }
        }
        // A burst that was shorter than planned does not show that aggregates are.
        if self.kind != Kind::Aggregates || survey.sent < survey.planned {
            return;
        }
        let aggregate = self.aggregate.segments();
        let busy_s = acked.rtt.and_then(|rtt| self.wire.on_survey(survey.sent, aggregate, rtt, is_one_way));
        if let Some(busy_s) = busy_s.filter(|_| self.comparison.is_untried()) {
            self.comparison.begin_over_wire();
            self.paced.begin_at(busy_s);
        }
        let was_starting = self.aggregate.is_starting();
        self.aggregate.on_survey(survey.longest);
        if was_starting && !self.aggregate.is_starting() {
            let hops = path.hops_to_peer.or(path.hops_from_peer).map(|(hops, _)| hops);
            self.comparison.begin(acked.now, hops);
        }
        self.paced.fit(self.aggregate.segments(), self.round_trip_s);
    }

    /// Data of any flow has arrived.
    pub(super) fn on_bytes(&mut self, now: Instant, bytes: u64) {
        let is_seeking = self.comparison.regime == Regime::Paced && self.paced.is_starting();
        self.comparison.on_bytes(now, bytes, is_seeking);
    }
}
