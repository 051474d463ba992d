//! `altman-jimenez`: the more segments have come, the more of them share an ACK.
//!
//! Source: Altman and Jiménez, *Novel Delayed ACK Techniques for Improving TCP Performance in Multihop
//! Wireless Networks* (2003).
//!
//! Rule: N is the number of in-order segments received since the connection began. An ACK waits for one segment while
//! N < l1, for two while N < l2, for three while N < l3, and then for four. It leaves at the latest when `hold` has
//! passed since the first waiting segment. The window of a young connection is small, and many held ACKs would stop it.
//! Segments that are out of order, duplicate, or fill a hole are acknowledged at once.
//!
//! Deviations: N counts the segments that arrived in order; the paper takes the segment's number. A bound below the one
//! before it skips its step.

use std::time::Duration;

use hopwise_core::agent::{AckRule, Arrival, RecvView, Why};

use super::hold::{Decision, Holds, LONGEST_MS, host, since};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};

const BOUND: Form = Form::count("segments", 0, 1_000_000);

params! {
    /// from this in-order segment on, two share an ACK
    l1: u64 = BOUND.is(2),
    /// from this in-order segment on, three share an ACK
    l2: u64 = BOUND.is(5),
    /// from this in-order segment on, four share an ACK
    l3: u64 = BOUND.is(9),
    /// the longest that an in-order segment waits for its ACK
    hold: Duration = Form::millis(1, LONGEST_MS).is(100),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "altman-jimenez",
    rule: "acknowledges every segment at first, then every second, third and fourth",
    source: "Altman and Jiménez 2003",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Receiver(|args| host(AltmanJimenez(Params::of(args)))),
};

#[derive(Debug)]
pub(crate) struct AltmanJimenez(Params);

impl AltmanJimenez {
    fn wanted(&self, received: u64) -> u32 {
        let Params { l1, l2, l3, .. } = self.0;
        match received {
            n if n < l1 => 1,
            n if n < l2 => 2,
            n if n < l3 => 3,
            _ => 4,
        }
    }
}

impl Holds for AltmanJimenez {
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let wanted = self.wanted(view.owed.in_order_total);
        let why = Why::new(AckRule::Count, view.owed.segments, wanted);
        Decision::counted(why, since(arrival, view) + self.0.hold)
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::scripts;

    scripts! {
        the_first_is_acknowledged_then_two_then_three_then_four_share_an_ack: "altman-jimenez"
            "0ms  in -> ack 1 (count 1 of 1)
             10ms in -> hold (count 1 of 2)
             11ms in -> ack 2 (count 2 of 2)
             20ms in -> hold (count 1 of 2)
             21ms in -> hold (count 2 of 3)
             22ms in -> ack 3 (count 3 of 3)
             30ms in -> hold (count 1 of 3)
             31ms in -> hold (count 2 of 3)
             32ms in -> hold (count 3 of 4)
             33ms in -> ack 4 (count 4 of 4)
             40ms in -> hold (count 1 of 4)
             140ms timer -> ack 1 (deadline)
             900ms wait"

        what_is_not_in_order_is_acknowledged_at_once_and_only_a_filled_hole_counts: "altman-jimenez"
            "0ms ooo  -> ack 0 (not-in-order)
             1ms dup  -> ack 0 (not-in-order)
             2ms fill -> ack 1 (not-in-order)
             3ms in   -> hold (count 1 of 2)
             5ms ooo  -> ack 1 (not-in-order)
             9ms in   -> hold (count 1 of 2)
             10ms forced -> ack 1
             900ms wait"

        the_bounds_are_settings: "altman-jimenez:l1=0,l2=0,l3=0,hold=50ms"
            "0ms in -> hold (count 1 of 4)
             1ms in -> hold (count 2 of 4)
             50ms timer -> ack 2 (deadline)
             50ms wait"
    }
}
