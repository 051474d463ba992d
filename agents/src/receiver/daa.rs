//! `daa` (TCP-DAA): two to four segments share an ACK, and fewer after a loss.
//!
//! Source: de Oliveira and Braun, *A Dynamic Adaptive Acknowledgment Strategy for TCP over Multihop Wireless
//! Networks* (INFOCOM 2005). Its sender is `daa-peer`.
//!
//! Rule: a window `dwin` of 2 to 4 begins at 2 and grows with each in-order arrival: by `start` while it has
//! not reached 4 and nothing was lost, by 1 after that. An ACK leaves when ⌊dwin⌋ segments wait, or when
//! nothing came in order for (2 + `tolerance`) average gaps, `first` before a gap is known. A segment out of
//! order or one that fills a hole is acknowledged at once and sets dwin back to 2; a duplicate is acknowledged
//! at once.
//!
//! | parameter | unit | default | meaning |
//! |---|---|---|---|
//! | start | segments | 0.3 | growth of dwin at each arrival during start-up |
//! | memory | fraction | 0.75 | what the average gap keeps at each new one |
//! | tolerance | gaps | 0.2 | how much the timer adds to two average gaps |
//! | first | time | 100ms | the timer before a gap is known |
//! | hold | time | 490ms | the longest that an in-order segment waits |
//!
//! Deviations: `start`, `memory` and `tolerance` follow recollections of the original, not its text, and are
//! settings for that reason. The average takes in the gap that the arrival at hand ends.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{Arrival, Basis, Class, RecvView, Rule, Why};

use super::gap_average::GapAverage;
use super::hold::{Decision, Holds, LONGEST_MS, host, since};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, Param, Value};

pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "daa",
    rule: "acknowledges every second to fourth segment, every second after a loss, or when segments cease to come",
    source: "TCP-DAA (de Oliveira and Braun 2005)",
    params: &[
        Param::new("start", Form::ratio(1, 2_000), Value::Ratio(300), "growth of dwin during start-up"),
        Param::new(
            "memory",
            Form::ratio(0, 999),
            Value::Ratio(750),
            "what the average gap keeps at each new one",
        ),
        Param::new(
            "tolerance",
            Form::ratio(0, 10_000),
            Value::Ratio(200),
            "how many average gaps the timer adds to two of them",
        ),
        Param::new(
            "first",
            Form::millis(1, LONGEST_MS),
            Value::millis(100),
            "the timer before a gap is known",
        ),
        Param::new(
            "hold",
            Form::millis(1, LONGEST_MS),
            Value::millis(LONGEST_MS),
            "the longest that an in-order segment waits for its ACK",
        ),
    ],
    shorthand: None,
    make: Make::Receiver(|args| host(Daa::new(args))),
};

/// Thousandths of a segment.
const SEGMENT: u32 = 1_000;
const LEAST: u32 = 2 * SEGMENT;
const MOST: u32 = 4 * SEGMENT;

#[derive(Debug)]
pub struct Daa {
    start: u32,
    timer_milli: u64,
    first: Duration,
    longest: Duration,
    dwin: u32,
    in_start_up: bool,
    gaps: GapAverage,
}

impl Daa {
    fn new(args: &Args) -> Daa {
        Daa {
            start: args.ratio_milli("start"),
            timer_milli: 2_000 + u64::from(args.ratio_milli("tolerance")),
            first: args.time("first"),
            longest: args.time("hold"),
            dwin: LEAST,
            in_start_up: true,
            gaps: GapAverage::new(1_000 - args.ratio_milli("memory")),
        }
    }
}

impl Holds for Daa {
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let step = if self.in_start_up { self.start } else { SEGMENT };
        self.dwin = (self.dwin + step).min(MOST);
        self.in_start_up &= self.dwin < MOST;
        self.gaps.take(arrival.gap_in_order);

        let wanted = self.dwin / SEGMENT;
        let why = Why::new(Rule::Count, view.owed.segments, wanted);
        let wait = self.gaps.times_milli(self.timer_milli).unwrap_or(self.first);
        let latest = since(arrival, view) + self.longest;
        Decision::counted_anew(why, (arrival.now + wait).min(latest))
    }

    fn not_in_order(&mut self, arrival: &Arrival, _: &RecvView<'_>) -> Decision {
        if arrival.class != Class::Duplicate {
            self.dwin = LEAST;
            self.in_start_up = false;
        }
        Decision::AT_ONCE
    }

    /// Nothing where `first` or `hold` ends it.
    fn basis(&self, due: Instant, now: Instant, _: &RecvView<'_>) -> Option<Basis> {
        let wait = self.gaps.times_milli(self.timer_milli)?;
        self.gaps.basis().filter(|_| due == now + wait)
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("dwin_milli_segments", u64::from(self.dwin));
        self.gaps.gauge(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::check;

    /// dwin after each arrival: 2.3, 2.6, 2.9, 3.2, 3.5, 3.8, 4, 4, 4.
    #[test]
    fn the_window_grows_by_three_tenths_until_it_is_four() {
        check(
            "daa",
            "0ms  in -> hold (count 1 of 2)
             10ms in -> ack 2 (count 2 of 2)
             20ms in -> hold (count 1 of 2)
             30ms in -> hold (count 2 of 3)
             40ms in -> ack 3 (count 3 of 3)
             50ms in -> hold (count 1 of 3)
             60ms in -> hold (count 2 of 4)
             70ms in -> hold (count 3 of 4)
             80ms in -> ack 4 (count 4 of 4)
             900ms wait",
        );
    }

    #[test]
    fn after_a_loss_the_window_is_two_and_grows_by_one() {
        check(
            "daa",
            "0ms  in   -> hold (count 1 of 2)
             10ms ooo  -> ack 1 (not-in-order)
             20ms dup  -> ack 0 (not-in-order)
             30ms fill -> ack 1 (not-in-order)
             40ms in   -> hold (count 1 of 3)
             50ms in   -> hold (count 2 of 4)
             60ms in   -> hold (count 3 of 4)
             70ms in   -> ack 4 (count 4 of 4)
             900ms wait",
        );
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

    #[test]
    fn a_timer_that_is_restarted_again_and_again_ends_at_the_hold() {
        check(
            "daa:start=2,hold=50ms",
            "0ms  in    -> hold (count 1 of 4)
             24ms in    -> hold (count 2 of 4)
             48ms in    -> hold (count 3 of 4)
             50ms timer -> ack 3 (deadline)
             51ms wait",
        );
    }
}
