//! The regime for long paths: parts of aggregates at a steady gap, with an ACK for as many as leave in 100 ms.
//!
//! All flows of a path share the gap and the window. The gap follows what the round trip of a group's last segment has
//! above the least one: the time in the queue. The least one is of bursts, too, since a burst takes longer over each
//! hop than a segment does.

use std::time::Duration;

use hopwise_core::Instant;

use super::constants::{GAIN, GROUP, MEMORY, MOST_DOWN, MOST_PARTS, MOST_UP, QUICKER};
use crate::truncate;

const LEAST_GAP_S: f64 = 0.000_05;
const MOST_GAP_S: f64 = 2.0;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paced {
    /// From one burst to the next; zero before the first one.
    pub(super) gap_s: f64,
    /// Segments of a burst.
    pub(super) burst: u32,
    /// Segments that may queue.
    target: f64,
    least: Least,
    is_steady: bool,
    pub(super) is_over_wire: bool,
    /// The next burst leaves then.
    pub(super) next: Instant,
}

impl Paced {
    /// Bursts have two fifths of an aggregate from now on. In the first gap, half of `round_trip_s`, they carry .8 to 1
    /// of what one whole aggregate does in that time, which is 0 while it is not known.
    pub(super) fn fit(&mut self, aggregate: u32, round_trip_s: f64) {
        let burst = (2 * aggregate).div_ceil(5);
        self.target = f64::from(aggregate);
        if self.gap_s == 0.0 && round_trip_s > 0.0 {
            self.set_gap(round_trip_s / 2.0);
        } else if self.gap_s > 0.0 && burst != self.burst {
            let ratio = f64::from(burst) / f64::from(self.burst);
            self.set_gap(self.gap_s * ratio);
            self.least.scale(ratio);
        }
        self.burst = burst;
    }

    /// An aggregate takes the air for so long, and the path is idle for the rest of its round trip.
    pub(super) fn begin_at(&mut self, busy_s: f64) {
        self.is_over_wire = true;
        self.set_gap(busy_s / 2.0);
    }

    fn set_gap(&mut self, seconds: f64) {
        self.gap_s = seconds.clamp(LEAST_GAP_S, MOST_GAP_S);
    }

    /// The bursts that share an ACK.
    pub(super) fn parts(&self) -> u32 {
        // The number that counts their segments down is a byte.
        let most = MOST_PARTS.min(255 / self.burst.max(1));
        truncate::to_u32(GROUP.as_secs_f64() / self.gap_s.max(LEAST_GAP_S)).clamp(2, most)
    }

    pub(super) fn least_s(&self) -> f64 {
        self.least.get().unwrap_or(0.0)
    }

    pub(super) fn is_starting(&self) -> bool {
        !self.is_steady
    }

    /// Segments that all flows together may have in flight: those that the empty path holds and a burst, or those that
    /// share an ACK and a burst. Behind a wire the path is full beside a group, whose ACK comes a round trip after its
    /// last segment.
    pub(super) fn window(&self) -> u32 {
        let held = self.least_s() / self.gap_s.max(LEAST_GAP_S) * f64::from(self.burst);
        let (held, group) = (truncate::to_u32(held), self.burst * self.parts());
        self.burst + if self.is_over_wire { held + group } else { held.max(group) }
    }

    /// A burst of so many segments begins to leave. One that is late by less than a gap leaves the rhythm as it is.
    pub(super) fn leave(&mut self, now: Instant, segments: u32) {
        let gap = Duration::from_secs_f64(self.gap_s * f64::from(segments) / f64::from(self.burst.max(1)));
        let is_in_time = self.next <= now && now.since(self.next) < gap;
        self.next = if is_in_time { self.next } else { now } + gap;
    }

    /// The ACK of a group is in.
    pub(super) fn on_ack(&mut self, now: Instant, round_trip: Duration) {
        let (round_trip_s, burst) = (round_trip.as_secs_f64(), f64::from(self.burst));
        let least_s = self.least.take(now, round_trip_s);
        let queue = (round_trip_s - least_s) / self.gap_s.max(LEAST_GAP_S) * burst;
        let target = self.target;
        if self.is_steady {
            let error = GAIN * (queue - target) / target;
            self.set_gap(self.gap_s * (1.0 + error.clamp(-MOST_DOWN, MOST_UP)));
        } else if queue > target {
            self.step_back();
            self.is_steady = true;
        } else {
            self.set_gap(self.gap_s * QUICKER);
        }
    }

    /// In the beginning a queue or a loss has come with the gap of a round trip ago. A loss does not end the beginning:
    /// radios lose segments without a queue.
    pub(super) fn step_back(&mut self) {
        if !self.is_steady {
            self.set_gap(self.gap_s / (QUICKER * QUICKER));
        }
    }
}

/// The least of the current and of the last period.
#[derive(Clone, Copy, Debug, Default)]
struct Least {
    now: Option<f64>,
    before: Option<f64>,
    since: Option<Instant>,
}

impl Least {
    /// A burst takes longer over each hop the more segments it has.
    fn scale(&mut self, ratio: f64) {
        (self.now, self.before) = (self.now.map(|s| s * ratio), self.before.map(|s| s * ratio));
    }

    fn take(&mut self, at: Instant, value: f64) -> f64 {
        let since = *self.since.get_or_insert(at);
        if at.since(since) >= MEMORY {
            (self.before, self.now, self.since) = (self.now, None, Some(at));
        }
        self.now = Some(self.now.map_or(value, |least| least.min(value)));
        self.get().unwrap_or(value)
    }

    fn get(&self) -> Option<f64> {
        match (self.now, self.before) {
            (Some(now), Some(before)) => Some(now.min(before)),
            (now, before) => now.or(before),
        }
    }
}
