//! `aad`: waits as long as segments keep coming quickly, without counting them.
//!
//! Source: TCP-AAD, TCP with adaptive delay for links that aggregate frames.
//!
//! Rule: an ACK leaves when no segment has come in order for 3·(¾ base + ¼ gap), or for `hold` if that is shorter. Base
//! is the shortest gap of the last `memory`; a gap counts as at least 50 µs. Only the ledger's ceiling limits how many
//! segments share an ACK. Before a gap is known the timer is `first`. Segments that are out of order, duplicate, or
//! fill a hole are acknowledged at once.
//!
//! Deviations: `first` is ours.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{AckRule, Arrival, Basis, RecvView, Why};

use super::gaps::QuickGaps;
use super::hold::{Decision, Holds, LONGEST_MS, host};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};

params! {
    /// the shortest gap is forgotten after this
    memory: Duration = Form::millis(1, 60_000).is(1_000),
    /// the timer before a gap is known
    first: Duration = Form::millis(1, LONGEST_MS).is(100),
    /// the longest timer
    hold: Duration = Form::millis(1, LONGEST_MS).is(LONGEST_MS),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "aad",
    rule: "acknowledges when segments cease to come as quickly as the quickest of the last second",
    source: "TCP-AAD",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Receiver(|args| {
        let set = Params::of(args);
        host(Aad { set, gaps: QuickGaps::new(Some(set.memory)) })
    }),
};

#[derive(Debug)]
pub(crate) struct Aad {
    set: Params,
    gaps: QuickGaps,
}

impl Holds for Aad {
    fn in_order(&mut self, arrival: &Arrival, _: &RecvView<'_>) -> Decision {
        self.gaps.take(arrival.now, arrival.gap_in_order);
        let wait = self.gaps.timer(arrival.gap_in_order).unwrap_or(self.set.first);
        Decision::Hold { until: arrival.now + wait.min(self.set.hold), why: Why::plain(AckRule::Deadline) }
    }

    /// `None` if `first` or `hold` ends the wait.
    fn basis(&self, due: Instant, now: Instant, _: &RecvView<'_>) -> Option<Basis> {
        self.gaps.basis().filter(|_| due < now + self.set.hold)
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.gaps.gauge(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::{check, scripts};

    scripts! {
        the_ack_leaves_when_segments_cease_to_come: "aad"
            "0ms     in    -> hold (deadline)
             10ms    in    -> hold (deadline)
             20ms    in    -> hold (deadline)
             40ms    in    -> hold (deadline)
             77500us timer -> ack 4 (deadline)
             900ms   wait"

        before_a_gap_is_known_the_timer_is_the_hold_and_never_longer_after_that: "aad:hold=100ms"
            "0ms   in    -> hold (deadline)
             100ms timer -> ack 1 (deadline)
             400ms in    -> hold (deadline)
             500ms timer -> ack 1 (deadline)
             900ms wait"

        the_shortest_gap_is_forgotten_after_a_second: "aad"
            "0ms    in    -> hold (deadline)
             1ms    in    -> hold (deadline)
             4ms    timer -> ack 2 (deadline)
             21ms   in    -> hold (deadline)
             38250us timer -> ack 1 (deadline)
             981ms  ooo   -> ack 0 (not-in-order)
             1000ms in    -> hold (deadline)
             1010ms in    -> hold (deadline)
             1040ms timer -> ack 2 (deadline)
             2000ms wait"
    }

    #[test]
    fn a_stream_that_never_ceases_is_acknowledged_at_the_ceiling() {
        let mut script = String::from("0ms in -> hold (deadline)\n");
        for n in 1..=9 {
            script += &format!("{}ms in -> hold (deadline)\n", 50 * n);
        }
        check("aad", &(script + "490ms ceiling -> ack 10\n495ms wait"));
    }
}
