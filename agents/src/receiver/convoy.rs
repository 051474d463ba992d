//! `convoy`: one ACK for a burst, or one for each aggregate of it if the sender wants to know them.
//!
//! Source: our own; `docs/notebook/edge.md` says what it brings. The sender agent `convoy` decides what a burst is.
//!
//! Rule: each segment carries the number of segments that are still to come before an ACK is due, itself included. The
//! rule of `train` holds, with two differences. A segment with the number 0 is acknowledged at the end of its run, once
//! for all segments that arrive at one instant, since they came in one aggregate. A sender that writes 0 into a whole
//! burst learns from the ACKs how long aggregates are. And the average gap leaves out the gaps of nothing within a run.
//!
//! Deviations: from `train` alone, as told. That sender writes no 0, and where segments arrive one by one it gets from
//! this receiver what it gets from its own.

use std::time::Duration;

use hopwise_core::agent::{AckRequest, AckRule, Arrival, Needs, RecvView, Why};

use super::hold::{Decision, Holds, host};
use super::train::{PARAMS, TrainReceiver};
use crate::descriptor::{Descriptor, Make};

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "convoy",
    rule: "acknowledges once a burst, or once an aggregate where its sender `convoy` wants to know its length",
    source: "our own, see `docs/notebook/edge.md`",
    params: PARAMS,
    shorthand: None,
    make: Make::Receiver(|args| host(ConvoyReceiver(TrainReceiver::new(args)))),
};

/// A run has ended if nothing came for this long. Clocks of drivers are no finer.
const RUN_END: Duration = Duration::from_micros(50);

#[derive(Debug)]
pub(crate) struct ConvoyReceiver(TrainReceiver);

/// The end of the run decides for a segment that carries 0.
fn at_run_end(arrival: &Arrival, decision: Decision) -> Decision {
    match (arrival.ack_request, decision) {
        (Some(AckRequest::After(0)), Decision::Now(why)) if why.rule == AckRule::Asked => {
            Decision::Hold { until: arrival.now + RUN_END, why: Why::plain(AckRule::Asked) }
        }
        _ => decision,
    }
}

impl Holds for ConvoyReceiver {
    fn hear(&mut self, arrival: &Arrival, view: &RecvView<'_>) {
        let mut heard = *arrival;
        heard.gap = arrival.gap.filter(|gap| !gap.is_zero());
        self.0.hear(&heard, view);
    }

    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        at_run_end(arrival, self.0.in_order(arrival, view))
    }

    fn not_in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        at_run_end(arrival, self.0.not_in_order(arrival, view))
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.0.gauges(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::scripts;

    scripts! {
        a_run_of_zeros_gets_one_ack_at_its_end: "convoy"
            "0ms     in after=0 -> hold (asked)
             0ms     in after=0 -> hold (asked)
             0ms     in after=0 -> hold (asked)
             50us    timer      -> ack 3 (deadline)
             7ms     in after=0 -> hold (asked)
             7ms     in after=0 -> hold (asked)
             7050us  timer      -> ack 2 (deadline)
             900ms   wait"

        segments_that_come_one_by_one_get_an_ack_each: "convoy"
            "0ms     in after=0 -> hold (asked)
             50us    timer      -> ack 1 (deadline)
             9ms     in after=0 -> hold (asked)
             9050us  timer      -> ack 1 (deadline)
             900ms   wait"

        a_burst_is_acknowledged_when_its_last_segment_has_come: "convoy"
            "0ms  in after=4 -> hold (asked 4 of 1)
             0ms  in after=3 -> hold (asked 3 of 1)
             9ms  in after=2 -> hold (asked 2 of 1)
             9ms  in after=1 -> ack 4 (asked 1 of 1)
             900ms wait"

        /// The gaps of nothing within a run would end the hold at once.
        a_burst_whose_end_is_lost_waits_for_twice_what_the_rest_needs_at_the_gap_of_runs: "convoy"
            "0ms   in after=6 -> hold (asked 6 of 1)
             0ms   in after=5 -> hold (asked 5 of 1)
             10ms  in after=4 -> hold (asked 4 of 1)
             10ms  in after=3 -> hold (asked 3 of 1)
             485ms timer      -> ack 4 (deadline)
             500ms in after=6 -> hold (asked 6 of 1)
             500ms wait"

        a_run_behind_a_hole_is_told_of_three_times_and_at_its_end: "convoy"
            "0ms  ooo after=0 -> ack 0 (not-in-order)
             0ms  ooo after=0 -> ack 0 (not-in-order)
             0ms  ooo after=0 -> ack 0 (not-in-order)
             0ms  ooo after=0 -> hold (asked)
             0ms  ooo after=0 -> hold (asked)
             50us timer       -> ack 0 (deadline)
             9ms  fill after=0 -> ack 1 (not-in-order)
             900ms wait"

        a_sender_that_tells_nothing_is_answered_as_by_delayed: "convoy"
            "0ms   in    -> hold (count 1 of 2)
             1ms   in    -> ack 2 (count 2 of 2)
             10ms  in    -> hold (count 1 of 2)
             110ms timer -> ack 1 (deadline)
             900ms wait"
    }
}
