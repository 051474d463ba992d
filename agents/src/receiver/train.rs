//! `train`: one ACK for a train of segments, when its last one has come.
//!
//! Source: our own; `docs/train.md` says why it works. The sender agent `train` decides how long a train is.
//!
//! Rule: each segment carries the number of segments of its train that are still to come, itself included. A segment
//! with the number 1 is acknowledged at once. Duplicates are, too, and so are segments that fill a hole or open a
//! further hole, and the first `dups` behind a hole. Further segments behind a reported hole wait like segments in
//! order. The hold is twice the time that the rest of the train should need after the first held segment, at most
//! `hold`. The time comes from the average gap, which keeps `memory` of itself at each gap. A sender without such
//! numbers gets the ACKs of `delayed:d=2,hold=100ms`.
//!
//! Deviations: a number of 0 counts as 1. RFC 5681 §4.2 wants an ACK at once for every segment behind a hole. Three are
//! all that a sender without SACK needs, and one is enough with SACK.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{AckRequest, AckRule, Arrival, Class, RecvView, Why};

use super::gaps::GapAverage;
use super::hold::{Decision, Holds, LONGEST_MS, host, since};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, Param, params};

params! {
    /// the longest that a segment waits for its ACK
    hold: Duration = Form::millis(1, LONGEST_MS).is(485),
    /// segments behind a new hole that are acknowledged at once
    dups: u32 = Form::count("segments", 1, 65_535).is(3),
    /// part that the average gap keeps at each new gap
    memory: u32 = Form::ratio(0, 999).is(800),
}

/// The parameters of `convoy`, too.
pub(super) const PARAMS: &[Param] = Params::TABLE;

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "train",
    rule: "acknowledges once a train, when the segment has come that its sender `train` marks as the last",
    source: "our own, see `docs/train.md`",
    params: PARAMS,
    shorthand: None,
    make: Make::Receiver(|args| host(TrainReceiver::new(args))),
};

/// For a sender that marks no trains.
const UNTOLD_SEGMENTS: u32 = 2;
const UNTOLD_HOLD: Duration = Duration::from_millis(100);
/// A train may take this many thousandths of its expected time before its received part is acknowledged.
const PATIENCE_MILLI: u64 = 2_000;

#[derive(Debug)]
pub(crate) struct TrainReceiver {
    set: Params,
    gap: GapAverage,
    /// Segments behind the first hole that were acknowledged at once since something last came in order.
    reported: u32,
    /// The received stretches behind the first hole at the last arrival.
    holes: u32,
    /// True if that arrival opened another hole.
    is_new_hole: bool,
}

impl TrainReceiver {
    pub(super) fn new(args: &Args) -> TrainReceiver {
        let set = Params::of(args);
        TrainReceiver { set, gap: GapAverage::new(set.memory), reported: 0, holes: 0, is_new_hole: false }
    }

    /// Decides by the train's number alone, in order or behind a hole.
    fn take(&self, left: u8, since: Instant) -> Decision {
        let why = Why::new(AckRule::Asked, left.into(), 1);
        if left <= 1 {
            return Decision::Now(why);
        }
        let expected = self.gap.times_milli(PATIENCE_MILLI * u64::from(left));
        Decision::Join { until: since + expected.unwrap_or(self.set.hold).min(self.set.hold), why }
    }

    fn behind_hole(&mut self, arrival: &Arrival) -> Decision {
        match arrival.ack_request {
            Some(AckRequest::After(left)) if !self.is_new_hole && self.reported >= self.set.dups => {
                self.take(left, arrival.now)
            }
            _ => {
                self.reported = self.reported.saturating_add(1);
                Decision::AT_ONCE
            }
        }
    }
}

impl Holds for TrainReceiver {
    fn hear(&mut self, arrival: &Arrival, view: &RecvView<'_>) {
        self.gap.take(arrival.gap);
        self.is_new_hole = view.holes > self.holes;
        self.holes = view.holes;
    }

    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        self.reported = 0;
        let since = since(arrival, view);
        if let Some(AckRequest::After(left)) = arrival.ack_request {
            return self.take(left, since);
        }
        let why = Why::new(AckRule::Count, view.owed.segments, UNTOLD_SEGMENTS);
        Decision::counted(why, since + UNTOLD_HOLD.min(self.set.hold))
    }

    fn not_in_order(&mut self, arrival: &Arrival, _: &RecvView<'_>) -> Decision {
        match arrival.class {
            Class::OutOfOrder => return self.behind_hole(arrival),
            Class::FillsHole => self.reported = 0,
            Class::InOrder | Class::Duplicate => {}
        }
        Decision::AT_ONCE
    }

    hopwise_core::needs!(ack_after);

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.gap.gauge(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::scripts;

    scripts! {
        a_train_gets_one_ack_when_its_last_segment_has_come: "train"
            "0ms  in after=3 -> hold (asked 3 of 1)
             20ms in after=2 -> hold (asked 2 of 1)
             40ms in after=1 -> ack 3 (asked 1 of 1)
             90ms in after=1 -> ack 1 (asked 1 of 1)
             99s wait"

        /// A number of 0 requests an ACK as 1 does: it must not hold anything.
        a_number_of_zero_asks_for_an_ack: "train"
            "0ms in after=0 -> ack 1 (asked 0 of 1)
             9s wait"

        a_train_whose_end_is_lost_is_acknowledged_after_twice_the_time_that_it_should_take: "train"
            "0ms   in after=1 -> ack 1 (asked 1 of 1)
             20ms  in after=4 -> hold (asked 4 of 1)
             40ms  in after=3 -> hold (asked 3 of 1)
             180ms timer     -> ack 2 (deadline)
             9s    wait"

        /// The number stays at 255, or even rises. The waiting segments are acknowledged all the same.
        no_number_holds_anything_for_longer_than_the_hold: "train"
            "0ms   in after=255 -> hold (asked 255 of 1)
             200ms in after=255 -> hold (asked 255 of 1)
             400ms in after=255 -> hold (asked 255 of 1)
             485ms timer       -> ack 3 (deadline)
             500ms in after=7   -> hold (asked 7 of 1)
             600ms in after=9   -> hold (asked 9 of 1)
             985ms timer       -> ack 2 (deadline)
             9s    wait"

        a_clock_that_stands_still_holds_nothing_for_longer_either: "train"
            "5ms   in after=9 -> hold (asked 9 of 1)
             5ms   in after=8 -> hold (asked 8 of 1)
             5ms   in after=8 -> hold (asked 8 of 1)
             490ms timer     -> ack 3 (deadline)
             9s    wait"

        three_segments_behind_a_hole_are_acknowledged_at_once_and_the_rest_with_the_train: "train"
            "0ms  in after=9   -> hold (asked 9 of 1)
             20ms ooo after=7  -> ack 1 (not-in-order)
             40ms ooo after=6  -> ack 0 (not-in-order)
             60ms ooo after=5  -> ack 0 (not-in-order)
             80ms ooo after=4  -> hold (asked 4 of 1)
             90ms fill after=8 -> ack 1 (not-in-order)
             95ms ooo after=2  -> ack 0 (not-in-order)
             99ms dup after=5  -> ack 0 (not-in-order)
             9s   wait"

        what_waits_behind_a_hole_is_told_of_when_the_train_ends_or_should_have: "train:dups=1"
            "0ms   ooo after=4 -> ack 0 (not-in-order)
             20ms  ooo after=3 -> hold (asked 3 of 1)
             40ms  ooo after=1 -> ack 0 (asked 1 of 1)
             60ms  ooo after=5 -> hold (asked 5 of 1)
             260ms timer      -> ack 0 (deadline)
             9s    wait"

        a_sender_that_tells_nothing_is_answered_as_by_delayed: "train"
            "0ms   in    -> hold (count 1 of 2)
             1ms   in    -> ack 2 (count 2 of 2)
             10ms  in    -> hold (count 1 of 2)
             110ms timer -> ack 1 (deadline)
             120ms ooo   -> ack 0 (not-in-order)
             121ms ooo   -> ack 0 (not-in-order)
             122ms ooo   -> ack 0 (not-in-order)
             123ms ooo   -> ack 0 (not-in-order)
             900ms wait"
    }
}
