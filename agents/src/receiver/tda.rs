//! `tda` (TCP-TDA): one ACK for the sender's whole window.
//!
//! Source: Chen, Marsic and Miller, *Issues and Improvements in TCP Performance over Multihop Wireless
//! Networks* (TCP-TDA).
//!
//! Rule: an ACK leaves when the waiting in-order segments fill the sender's window, less `early` but at least one. It
//! also leaves when `most` segments wait, or when `hold` has passed since the first of them. With `repeat`, the last
//! ACK is repeated once if no data follows it within an RTO (SRTT + 4·RTTVAR, at least 1 s). Segments that are out of
//! order, duplicate, or fill a hole are acknowledged at once. A sender that does not report its window gets the ACKs of
//! `delayed:d=2`, within `hold` and `most`.
//!
//! Deviations: the paper asks whether the number of waiting segments is cwnd. Here a window that shrank while they
//! waited counts as reached, too. The paper leaves `early` and `repeat` for the future. Its printed capture distance of
//! 15.82 m is 15.96 m by its own equation.

use std::time::Duration;

use hopwise_core::agent::{AckRule, Arrival, Needs, RecvView, Why};

use super::hold::{Decision, Holds, LONGEST_MS, since};
use super::repeat::repeating;
use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, OFF, Switch, params};

params! {
    /// acknowledge so many segments before the window is complete
    early: u32 = Form::count("segments", 0, 65_535).is(0),
    /// say the last ACK once more when no data follows
    repeat: Switch = Form::Switch.is(OFF),
    /// the most in-order segments that share an ACK
    most: u32 = Form::count("segments", 1, 65_535).is(25),
    /// the longest that an in-order segment waits for its ACK
    hold: Duration = Form::millis(1, LONGEST_MS).is(200),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "tda",
    rule: "acknowledges when the sender's whole window has come, or when the hold of its first segment runs out",
    source: "TCP-TDA (Chen, Marsic, Miller)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Receiver(|args| {
        let set = Params::of(args);
        repeating(u32::from(set.repeat == Switch::On), LEAST_RTO, Tda(set))
    }),
};

/// The window of a sender that does not report one.
const UNTOLD: u32 = 2;
const LEAST_RTO: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Tda(Params);

impl Holds for Tda {
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let (rule, wanted) = match view.peer_cwnd {
            Some(cwnd) => {
                (AckRule::Window, u32::from(cwnd).saturating_sub(self.0.early).clamp(1, self.0.most))
            }
            None => (AckRule::Count, UNTOLD.min(self.0.most)),
        };
        let why = Why::new(rule, view.owed.segments, wanted);
        Decision::counted(why, since(arrival, view) + self.0.hold)
    }

    fn needs(&self) -> Needs {
        Needs { peer_cwnd: true, ..Needs::default() }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("most_segments", u64::from(self.0.most));
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::{check, scripts};

    scripts! {
        a_whole_window_gets_one_ack: "tda"
            "0ms set cwnd=4
             0ms in -> hold (window 1 of 4)
             1ms in -> hold (window 2 of 4)
             2ms in -> hold (window 3 of 4)
             3ms in -> ack 4 (window 4 of 4)
             900ms wait"

        the_window_limit_holds_also_where_no_window_is_told: "tda:most=1"
            "0ms in -> ack 1 (count 1 of 1)
             1ms in -> ack 1 (count 1 of 1)
             900ms wait"

        /// Waiting for more than the sender may send would stop it.
        windows_of_one_and_two_segments_are_not_waited_beyond: "tda"
            "0ms set cwnd=1
             0ms in -> ack 1 (window 1 of 1)
             1ms in -> ack 1 (window 1 of 1)
             1ms set cwnd=2
             2ms in -> hold (window 1 of 2)
             3ms in -> ack 2 (window 2 of 2)
             3ms set cwnd=0
             4ms in -> ack 1 (window 1 of 1)
             900ms wait"

        what_waits_is_acknowledged_200_ms_after_its_first_segment: "tda"
            "0ms   set cwnd=40
             0ms   in    -> hold (window 1 of 25)
             150ms in    -> hold (window 2 of 25)
             200ms timer -> ack 2 (deadline)
             900ms wait"

        a_window_that_shrinks_while_segments_wait_counts_as_reached: "tda"
            "0ms set cwnd=10
             0ms in -> hold (window 1 of 10)
             1ms in -> hold (window 2 of 10)
             2ms in -> hold (window 3 of 10)
             2ms set cwnd=2
             3ms in -> ack 4 (window 4 of 2)
             900ms wait"

        a_window_that_is_not_told_is_two_segments: "tda"
            "0ms   in    -> hold (count 1 of 2)
             1ms   in    -> ack 2 (count 2 of 2)
             10ms  in    -> hold (count 1 of 2)
             210ms timer -> ack 1 (deadline)
             900ms wait"

        early_acknowledges_before_the_window_is_complete_and_never_before_a_segment: "tda:early=2"
            "0ms set cwnd=5
             0ms in -> hold (window 1 of 3)
             1ms in -> hold (window 2 of 3)
             2ms in -> ack 3 (window 3 of 3)
             2ms set cwnd=2
             3ms in -> ack 1 (window 1 of 1)
             900ms wait"

        what_is_not_in_order_is_acknowledged_at_once_with_what_waits: "tda"
            "0ms set cwnd=9
             0ms in   -> hold (window 1 of 9)
             1ms ooo  -> ack 1 (not-in-order)
             2ms dup  -> ack 0 (not-in-order)
             3ms fill -> ack 1 (not-in-order)
             900ms wait"
    }

    #[test]
    fn no_more_than_25_segments_share_an_ack() {
        let mut script = String::from("0ms set cwnd=40\n");
        for n in 1..25 {
            script += &format!("{n}ms in -> hold (window {n} of 25)\n");
        }
        check("tda", &(script + "25ms in -> ack 25 (window 25 of 25)"));
    }

    #[test]
    fn repeat_says_the_last_ack_once_more_after_an_rto() {
        check(
            "tda:repeat",
            "0ms    set cwnd=1 srtt=400ms rttvar=200ms
             0ms    in    -> ack 1 (window 1 of 1)
             1200ms timer -> repeat (lost-ack)
             1300ms in    -> ack 1 (window 1 of 1)
             2000ms in    -> ack 1 (window 1 of 1)
             2500ms dup   -> ack 0 (not-in-order)
             3700ms timer -> repeat (lost-ack)
             99s    wait",
        );
        check(
            "tda:repeat",
            "0ms set cwnd=1 srtt=10ms rttvar=2ms
             0ms in   -> ack 1 (window 1 of 1)
             1s timer -> repeat (lost-ack)
             99s wait",
        );
        check("tda", "0ms in 1000B -> hold (count 1 of 2)\n200ms timer -> ack 1 (deadline)\n99s wait");
    }
}
