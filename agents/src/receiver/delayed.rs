//! `delayed`: acknowledges every d-th segment, or when a hold runs out.
//!
//! Source: RFC 9293 §3.8.6.3 with d = 2; Gupta and Bhawnani (delayed ACKs on a chain topology) vary d from 2
//! to 4.
//!
//! Rule: an in-order segment is held until d of them are unacknowledged, or until `hold` has passed since the
//! first of them. Segments that are out of order, duplicate, or fill a hole are acknowledged at once.
//!
//! Deviations: segments are counted, not full-sized segments. The hold of 100 ms comes from the papers' simulations;
//! hosts often use 200 ms. With d > 2 SHLD-19 (an ACK for every second full-sized segment) is broken on purpose.

use hopwise_core::agent::{AckRule, Arrival, RecvView, Why};

use super::hold::{Decision, HoldingReceiver, Holds, LONGEST_MS, host, since};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Brief, Form, params};

params! {
    /// acknowledge when so many in-order segments are unacknowledged
    d: u32 = Form::count("segments", 2, 65_535).is(2),
    /// the longest that an in-order segment waits for its ACK
    hold: Brief = Form::millis(1, LONGEST_MS).is(100),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "delayed",
    rule: "acknowledges when d in-order segments wait, or when the hold of the first one runs out",
    source: "RFC 9293 §3.8.6.3",
    params: Params::TABLE,
    shorthand: Some("d"),
    make: Make::Receiver(|args| host(Delayed(Params::of(args)))),
};

/// Most connections have this agent: with the allocator's own bytes it takes 32 bytes of heap.
const _: () = assert!(size_of::<HoldingReceiver<Delayed>>() <= 24);

#[derive(Debug)]
pub(crate) struct Delayed(Params);

impl Holds for Delayed {
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let why = Why::new(AckRule::Count, view.owed.segments, self.0.d);
        Decision::counted(why, since(arrival, view) + self.0.hold.time())
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("d_segments", u64::from(self.0.d));
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::scripts;

    scripts! {
        second_segment_is_not_held_by_default: "delayed"
            "0ms  in  -> hold (count 1 of 2)
             10ms in  -> ack 2 (count 2 of 2)
             20ms in  -> hold (count 1 of 2)
             30ms in  -> ack 2 (count 2 of 2)"

        fourth_segment_is_not_held_when_d_is_four: "delayed:d=4"
            "0ms  in  -> hold (count 1 of 4)
             10ms in  -> hold (count 2 of 4)
             20ms in  -> hold (count 3 of 4)
             30ms in  -> ack 4 (count 4 of 4)"

        hold_runs_from_the_first_segment_held: "delayed:d=3"
            "0ms   in     -> hold (count 1 of 3)
             60ms  in     -> hold (count 2 of 3)
             100ms timer  -> ack 2 (deadline)
             101ms in     -> hold (count 1 of 3)
             201ms timer  -> ack 1 (deadline)
             900ms wait"

        a_segment_that_arrives_with_the_deadline_comes_too_late: "delayed:hold=200ms"
            "0ms   in    -> hold (count 1 of 2)
             200ms timer -> ack 1 (deadline)
             200ms in    -> hold (count 1 of 2)
             400ms timer -> ack 1 (deadline)
             400ms wait"

        what_is_not_in_order_is_acknowledged_at_once_with_what_is_held: "delayed:d=3"
            "0ms  in   -> hold (count 1 of 3)
             5ms  ooo  -> ack 1 (not-in-order)
             6ms  ooo  -> ack 0 (not-in-order)
             7ms  dup  -> ack 0 (not-in-order)
             8ms  fill -> ack 1 (not-in-order)
             9ms  in   -> hold (count 1 of 3)
             109ms timer -> ack 1 (deadline)
             200ms wait"

        an_ack_that_somebody_else_decides_ends_the_hold: "delayed"
            "0ms   in        -> hold (count 1 of 2)
             40ms  piggyback -> ack 1
             50ms  in        -> hold (count 1 of 2)
             60ms  forced    -> ack 1
             140ms in        -> hold (count 1 of 2)
             240ms timer     -> ack 1 (deadline)
             300ms wait"
    }
}
