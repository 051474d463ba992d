//! `daa` (TCP-DAA): two to four segments share an ACK, and fewer after a loss.
//!
//! Source: de Oliveira and Braun, *A Dynamic Adaptive Acknowledgment Strategy for TCP over Multihop Wireless
//! Networks* (INFOCOM 2005). Its sender is `daa-peer`.
//!
//! Rule: a window `dwin` of 2 to 4 begins at 2 and grows with each in-order arrival. It grows by `start` until it has
//! reached 4 or a loss has happened, and by 1 after that. An ACK leaves when ⌊dwin⌋ segments wait. It also leaves when
//! nothing came in order for (`gaps` + `tolerance`) average gaps, or for `first` before a gap is known. No segment
//! waits longer than `hold`. A segment that is out of order or fills a hole is acknowledged at once and sets dwin back
//! to 2. A duplicate is acknowledged at once.
//!
//! Deviations: `start`, `memory` and `tolerance` follow recollections of the original, not its text. They are settings
//! for that reason, and so is `gaps`: the paper of TCP-DCA has it as 1. The average includes the gap that the current
//! arrival ends.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{AckRule, Arrival, Basis, Class, RecvView, Why};

use super::gaps::GapAverage;
use super::hold::{Decision, Holds, LONGEST_MS, host, since};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, params};

params! {
    /// growth of dwin during start-up
    start: u32 = Form::ratio(1, 2_000).is(300),
    /// part that the average gap keeps at each new gap
    memory: u32 = Form::ratio(0, 999).is(750),
    /// average gaps that the timer waits, besides `tolerance`
    gaps: u64 = Form::count("gaps", 1, 10).is(2),
    /// average gaps that the timer adds to them
    tolerance: u64 = Form::ratio(0, 10_000).is(200),
    /// the timer before a gap is known
    first: Duration = Form::millis(1, LONGEST_MS).is(100),
    /// the longest that an in-order segment waits for its ACK
    hold: Duration = Form::millis(1, LONGEST_MS).is(LONGEST_MS),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "daa",
    rule: "acknowledges every second to fourth segment, every second after a loss, or when segments cease to come",
    source: "TCP-DAA (de Oliveira and Braun 2005)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Receiver(|args| host(Daa::new(args))),
};

/// Thousandths of a segment.
const SEGMENT: u32 = 1_000;
const LEAST: u32 = 2 * SEGMENT;
const MOST: u32 = 4 * SEGMENT;

#[derive(Debug)]
pub(crate) struct Daa {
    set: Params,
    dwin: u32,
    in_start_up: bool,
    gaps: GapAverage,
}

impl Daa {
    fn new(args: &Args) -> Daa {
        let set = Params::of(args);
        Daa { set, dwin: LEAST, in_start_up: true, gaps: GapAverage::new(set.memory) }
    }

    fn timer(&self) -> Option<Duration> {
        self.gaps.times_milli(1_000 * self.set.gaps + self.set.tolerance)
    }
}

impl Holds for Daa {
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let step = if self.in_start_up { self.set.start } else { SEGMENT };
        self.dwin = (self.dwin + step).min(MOST);
        self.in_start_up &= self.dwin < MOST;
        self.gaps.take(arrival.gap_in_order);

        let wanted = self.dwin / SEGMENT;
        let why = Why::new(AckRule::Count, view.owed.segments, wanted);
        let wait = self.timer().unwrap_or(self.set.first);
        let latest = since(arrival, view) + self.set.hold;
        Decision::counted_anew(why, (arrival.now + wait).min(latest))
    }

    fn not_in_order(&mut self, arrival: &Arrival, _: &RecvView<'_>) -> Decision {
        if arrival.class != Class::Duplicate {
            self.dwin = LEAST;
            self.in_start_up = false;
        }
        Decision::AT_ONCE
    }

    /// `None` if `first` or `hold` ends the wait.
    fn basis(&self, due: Instant, now: Instant, _: &RecvView<'_>) -> Option<Basis> {
        let wait = self.timer()?;
        self.gaps.basis().filter(|_| due == now + wait)
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("dwin_milli_segments", u64::from(self.dwin));
        self.gaps.gauge(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::{check, scripts};

    scripts! {
        /// dwin after each arrival: 2.3, 2.6, 2.9, 3.2, 3.5, 3.8, 4, 4, 4.
        the_window_grows_by_three_tenths_until_it_is_four: "daa"
            "0ms  in -> hold (count 1 of 2)
             10ms in -> ack 2 (count 2 of 2)
             20ms in -> hold (count 1 of 2)
             30ms in -> hold (count 2 of 3)
             40ms in -> ack 3 (count 3 of 3)
             50ms in -> hold (count 1 of 3)
             60ms in -> hold (count 2 of 4)
             70ms in -> hold (count 3 of 4)
             80ms in -> ack 4 (count 4 of 4)
             900ms wait"

        after_a_loss_the_window_is_two_and_grows_by_one: "daa"
            "0ms  in   -> hold (count 1 of 2)
             10ms ooo  -> ack 1 (not-in-order)
             20ms dup  -> ack 0 (not-in-order)
             30ms fill -> ack 1 (not-in-order)
             40ms in   -> hold (count 1 of 3)
             50ms in   -> hold (count 2 of 4)
             60ms in   -> hold (count 3 of 4)
             70ms in   -> ack 4 (count 4 of 4)
             900ms wait"

        a_timer_that_is_restarted_again_and_again_ends_at_the_hold: "daa:start=2,hold=50ms"
            "0ms  in    -> hold (count 1 of 4)
             24ms in    -> hold (count 2 of 4)
             48ms in    -> hold (count 3 of 4)
             50ms timer -> ack 3 (deadline)
             51ms wait"
    }

    #[test]
    fn the_timer_is_two_gaps_and_a_fifth_from_the_last_in_order_segment() {
        check(
            "daa",
            "0ms   in    -> hold (count 1 of 2)
             100ms timer -> ack 1 (deadline)
             200ms in    -> hold (count 1 of 2)
             640ms timer -> ack 1 (deadline)
             700ms wait",
        );
        // Average gaps: 20, then .75·20 + .25·40 = 25 ms, then .75·25 + .25·20 = 23.75 ms.
        check(
            "daa:start=2",
            "0ms   in    -> hold (count 1 of 4)
             20ms  in    -> hold (count 2 of 4)
             60ms  in    -> hold (count 3 of 4)
             115ms timer -> ack 3 (deadline)
             120ms wait",
        );
    }
}
