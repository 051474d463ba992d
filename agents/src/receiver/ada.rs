//! `ada` (TCP-ADA): one ACK for all segments that come in a row.
//!
//! Source: Singh and Kankipati, *TCP-ADA: TCP with Adaptive Delayed Acknowledgement for Mobile Ad Hoc
//! Networks* (WCNC 2004).
//!
//! Rule: an ACK leaves when no in-order segment has come for `factor` average gaps. The sender's window is used up
//! then. It leaves at the latest when `hold` has passed since the first waiting segment. Segments that are out of
//! order, duplicate, or fill a hole are acknowledged at once.
//!
//! Deviations: the paper's 500 ms are 490, so that the ACK leaves in time. Only in-order segments have gaps. `memory`
//! and `first` are ours.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{AckRule, Arrival, Basis, RecvView, Why};

use super::gaps::GapAverage;
use super::hold::{Decision, Holds, LONGEST_MS, host, since};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};

params! {
    /// average gaps of silence that end the wait
    factor: u64 = Form::ratio(1_000, 10_000).is(1_200),
    /// part that the average gap keeps at each new gap
    memory: u32 = Form::ratio(0, 999).is(750),
    /// the timer before a gap is known
    first: Duration = Form::millis(1, LONGEST_MS).is(100),
    /// the longest that an in-order segment waits for its ACK
    hold: Duration = Form::millis(1, LONGEST_MS).is(LONGEST_MS),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "ada",
    rule: "acknowledges when no segment came for 1.2 average gaps: once a window",
    source: "TCP-ADA (Singh and Kankipati 2004)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Receiver(|args| {
        let set = Params::of(args);
        host(Ada { set, gaps: GapAverage::new(set.memory) })
    }),
};

#[derive(Debug)]
pub(crate) struct Ada {
    set: Params,
    gaps: GapAverage,
}

impl Holds for Ada {
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        self.gaps.take(arrival.gap_in_order);
        let wait = self.gaps.times_milli(self.set.factor).unwrap_or(self.set.first);
        let latest = since(arrival, view) + self.set.hold;
        Decision::Hold { until: (arrival.now + wait).min(latest), why: Why::plain(AckRule::Deadline) }
    }

    /// `None` if `first` or `hold` ends the wait.
    fn basis(&self, due: Instant, now: Instant, _: &RecvView<'_>) -> Option<Basis> {
        let wait = self.gaps.times_milli(self.set.factor)?;
        self.gaps.basis().filter(|_| due == now + wait)
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.gaps.gauge(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::scripts;

    scripts! {
        a_window_that_comes_in_a_row_gets_one_ack_when_it_is_over: "ada"
            "0ms  in    -> hold (deadline)
             10ms in    -> hold (deadline)
             20ms in    -> hold (deadline)
             30ms in    -> hold (deadline)
             42ms timer -> ack 4 (deadline)
             900ms wait"

        a_steady_stream_is_acknowledged_when_the_hold_of_its_first_segment_is_over: "ada:hold=25ms"
            "0ms  in    -> hold (deadline)
             10ms in    -> hold (deadline)
             20ms in    -> hold (deadline)
             25ms timer -> ack 3 (deadline)
             30ms in    -> hold (deadline)
             42ms timer -> ack 1 (deadline)
             50ms wait"

        // 10 ms, then .75·10 + .25·30 = 15 ms.
        the_timer_follows_the_average_gap: "ada:factor=4"
            "0ms  in     -> hold (deadline)
             10ms in     -> hold (deadline)
             40ms in     -> hold (deadline)
             100ms timer -> ack 3 (deadline)
             900ms wait"

        what_is_not_in_order_is_acknowledged_at_once: "ada"
            "0ms   in   -> hold (deadline)
             5ms   ooo  -> ack 1 (not-in-order)
             6ms   dup  -> ack 0 (not-in-order)
             7ms   fill -> ack 1 (not-in-order)
             9ms   wait
             107ms in   -> hold (deadline)
             207ms piggyback -> ack 1
             900ms wait"
    }
}
