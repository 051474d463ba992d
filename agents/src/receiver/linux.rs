//! `linux`: acknowledges as the kernel's receiver does, once for the segments that its radio hands up together.
//!
//! Source: Linux 6.12, `net/ipv4/tcp_input.c`, `net/ipv4/tcp_output.c`, `net/ipv4/tcp_timer.c` and `net/core/gro.c`.
//!
//! Rule: segments that arrive together are a batch. The kernel sends an ACK for two segments at once only while the
//! window can move on, which it cannot before the program has read. The burst of an aggregate so shares the ACK of that
//! read. A batch has at most 64 KiB. An ACK leaves at the end of a batch if two segments are unacknowledged, if the
//! last one has the PSH flag, or in quick-ACK mode. A lone segment waits for the adaptive time A, but no longer than
//! the round trip or 40 ms, whichever is longer, and 200 ms at the most. A is 40 ms in the beginning. At a gap of up to
//! 20 ms it becomes half of itself and 20 ms, and at a longer gap below A half of itself and the gap. Each wait that
//! ends so doubles it. Quick-ACK mode covers the first 16 ACKs, or half as many as the window has segments if that is
//! less. It begins anew after a duplicate, and if more than 200 ms pass without data in order, as behind a hole. It
//! covers two ACKs after a mark.
//! Batches behind a hole are acknowledged one by one up to the third. Further ones share an ACK for 1 ms, or a
//! twentieth of the round trip if that is shorter. What fills a hole is acknowledged at the end of its batch.
//!
//! Deviations: an ACK that rides on data leaves quick-ACK mode as it is; the kernel then takes the connection for an
//! interactive one, and waits. Pauses are held against 200 ms in place of the receiver's own RTO. A program reads at
//! once, so that the kernel's ACK for a PSH flag leaves at the end of the batch. The window is not looked at: the
//! program reads when a batch ends. So a slow reader's fewer ACKs are missing, and the ACKs of a quick one that reads
//! an aggregate in parts. The same instant, within 20 µs, stands for one burst of an aggregate.

use std::time::Duration;

use hopwise_core::agent::{AckRule, Arrival, Class, RecvView, Why};

use super::hold::{Decision, Holds, host, since};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};

params! {
    /// the ACKs of quick-ACK mode at the most
    quick: u32 = Form::count("ACKs", 0, 1_000).is(16),
    /// the most bytes of a batch
    gro: u32 = Form::count("bytes", 1, 1_000_000).is(65_536),
    /// the shortest wait of a lone segment, and the first one
    least: Duration = Form::millis(1, 200).is(40),
    /// the longest wait of a lone segment
    hold: Duration = Form::millis(1, 490).is(200),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "linux",
    rule: "acknowledges as Linux does: each batch of a radio once, and a lone segment after 40 to 200 ms",
    source: "Linux 6.12",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Receiver(|args| {
        let set = Params::of(args);
        host(Linux {
            set,
            ato: set.least,
            quick: 0,
            batch_bytes: 0,
            told: 0,
            is_begun: false,
            is_lone: false,
        })
    }),
};

/// Segments no further apart are of one poll.
const POLL: Duration = Duration::from_micros(20);
/// The kernel's limits for ACKs of what lies behind a hole.
const DUPLICATES: u32 = 3;
const COMPRESSED: Duration = Duration::from_millis(1);
const MARKED_QUICK: u32 = 2;

#[derive(Debug)]
pub(crate) struct Linux {
    set: Params,
    /// The wait that gaps have taught, A of the rule.
    ato: Duration,
    /// ACKs that are left of quick-ACK mode.
    quick: u32,
    /// The bytes of the batch so far.
    batch_bytes: u32,
    /// Batches behind a hole since something last came in order.
    told: u32,
    is_begun: bool,
    /// True while a lone segment waits for the adaptive time.
    is_lone: bool,
}

impl Linux {
    fn hurry(&mut self, view: &RecvView<'_>) {
        let half = view.advertised / (2 * view.mss.max(1));
        self.quick = self.quick.max(half.max(MARKED_QUICK).min(self.set.quick));
    }

    fn is_new_batch(arrival: &Arrival) -> bool {
        arrival.gap.is_none_or(|gap| gap > POLL)
    }

    fn learn(&mut self, arrival: &Arrival, view: &RecvView<'_>) {
        if !self.is_begun {
            self.is_begun = true;
            return self.hurry(view);
        }
        let gap = arrival.gap_in_order.unwrap_or_default();
        if gap <= self.set.least / 2 {
            self.ato = self.ato / 2 + self.set.least / 2;
        } else if gap < self.ato {
            self.ato = self.ato / 2 + gap;
        } else if gap > self.set.hold {
            self.hurry(view);
        }
    }

    fn delay(&self, view: &RecvView<'_>) -> Duration {
        let round_trip = view.path.rtt.smoothed.unwrap_or(self.set.hold);
        self.ato.min(round_trip.max(self.set.least)).min(self.set.hold)
    }

    /// The batch is acknowledged at its end, or at once if it has room for no further segment.
    fn at_batch_end(&mut self, arrival: &Arrival, why: Why, mss: u32) -> Decision {
        if self.batch_bytes + mss > self.set.gro {
            self.batch_bytes = 0;
            self.quick = self.quick.saturating_sub(1);
            return Decision::Now(why);
        }
        Decision::Hold { until: arrival.now + POLL, why }
    }
}

impl Holds for Linux {
    fn hear(&mut self, arrival: &Arrival, _: &RecvView<'_>) {
        if Linux::is_new_batch(arrival) {
            self.batch_bytes = 0;
        }
        self.batch_bytes = self.batch_bytes.saturating_add(arrival.bytes);
        if arrival.ce {
            self.quick = self.quick.max(MARKED_QUICK);
        }
    }

    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        self.told = 0;
        self.is_lone = false;
        if Linux::is_new_batch(arrival) {
            self.learn(arrival, view);
        }
        let why = Why::new(AckRule::Count, view.owed.segments, 2);
        if view.owed.bytes > view.mss || self.quick > 0 || arrival.push {
            return self.at_batch_end(arrival, why, view.mss);
        }
        self.is_lone = true;
        Decision::Join { until: since(arrival, view) + self.delay(view), why }
    }

    fn not_in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let why = Why::plain(AckRule::NotInOrder);
        match arrival.class {
            Class::Duplicate => {
                self.hurry(view);
                return Decision::AT_ONCE;
            }
            Class::OutOfOrder => {}
            Class::FillsHole | Class::InOrder => {
                self.told = 0;
                self.learn(arrival, view);
                return self.at_batch_end(arrival, why, view.mss);
            }
        }
        if Linux::is_new_batch(arrival) {
            self.told = self.told.saturating_add(1);
        }
        if self.told <= DUPLICATES {
            return self.at_batch_end(arrival, why, view.mss);
        }
        let wait = view.path.rtt.smoothed.map_or(COMPRESSED, |rtt| COMPRESSED.min(rtt / 20));
        Decision::Join { until: arrival.now + wait.max(POLL), why }
    }

    fn ran_out(&mut self, _: &RecvView<'_>) {
        self.batch_bytes = 0;
        self.quick = self.quick.saturating_sub(1);
        if std::mem::take(&mut self.is_lone) {
            self.ato = (self.ato * 2).min(self.set.hold);
        }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("quick_acks", self.quick.into());
        sink("wait_us", u64::try_from(self.ato.as_micros()).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::scripts;

    scripts! {
        segments_of_one_instant_share_an_ack: "linux:quick=0"
            "0ms     in  -> hold (count 1 of 2)
             0ms     in  -> hold (count 2 of 2)
             0ms     in  -> hold (count 3 of 2)
             20us    timer -> ack 3 (deadline)
             5ms     in  -> hold (count 1 of 2)
             5ms     in  -> hold (count 2 of 2)
             5020us  timer -> ack 2 (deadline)
             900ms   wait"

        segments_apart_are_acknowledged_two_by_two: "linux:quick=0"
            "0ms     in    -> hold (count 1 of 2)
             1ms     in    -> hold (count 2 of 2)
             1020us  timer -> ack 2 (deadline)
             2ms     in    -> hold (count 1 of 2)
             3ms     in    -> hold (count 2 of 2)
             3020us  timer -> ack 2 (deadline)
             2000ms  wait"

        the_first_acks_do_not_wait_for_a_second_segment: "linux:quick=2"
            "0ms     in    -> hold (count 1 of 2)
             20us    timer -> ack 1 (deadline)
             9ms     in    -> hold (count 1 of 2)
             9020us  timer -> ack 1 (deadline)
             18ms    in    -> hold (count 1 of 2)
             58ms    timer -> ack 1 (deadline)
             2000ms  wait"

        a_lone_segment_waits_longer_each_time_until_gaps_are_short: "linux:quick=0"
            "0ms     in    -> hold (count 1 of 2)
             40ms    timer -> ack 1 (deadline)
             90ms    in    -> hold (count 1 of 2)
             170ms   timer -> ack 1 (deadline)
             171ms   in    -> hold (count 1 of 2)
             332ms   timer -> ack 1 (deadline)
             337ms   in    -> hold (count 1 of 2)
             338ms   in    -> hold (count 2 of 2)
             338020us timer -> ack 2 (deadline)
             900ms   wait"

        a_round_trip_shorter_than_the_wait_ends_it: "linux:quick=0"
            "0ms     set srtt=60ms
             0ms     in    -> hold (count 1 of 2)
             40ms    timer -> ack 1 (deadline)
             110ms   in    -> hold (count 1 of 2)
             170ms   timer -> ack 1 (deadline)
             2000ms  wait"

        a_pushed_segment_is_read_and_acknowledged: "linux:quick=0"
            "0ms     in push -> hold (count 1 of 2)
             20us    timer   -> ack 1 (deadline)
             2000ms  wait"

        a_pause_brings_quick_acks_back: "linux:quick=1"
            "0ms     in    -> hold (count 1 of 2)
             20us    timer -> ack 1 (deadline)
             10ms    in    -> hold (count 1 of 2)
             50ms    timer -> ack 1 (deadline)
             900ms   in    -> hold (count 1 of 2)
             900020us timer -> ack 1 (deadline)
             2000ms  wait"

        gro_makes_no_more_than_64_kib_of_a_batch: "linux:quick=0,gro=3000"
            "0ms     in -> hold (count 1 of 2)
             0ms     in -> hold (count 2 of 2)
             0ms     in -> ack 3 (count 3 of 2)
             0ms     in -> hold (count 1 of 2)
             40ms    timer -> ack 1 (deadline)
             2000ms  wait"

        batches_behind_a_hole_are_told_of_up_to_the_third_and_then_for_a_millisecond: "linux:quick=0"
            "0ms     ooo   -> hold (not-in-order)
             0ms     ooo   -> hold (not-in-order)
             20us    timer -> ack 0 (deadline)
             5ms     ooo   -> hold (not-in-order)
             5020us  timer -> ack 0 (deadline)
             6ms     ooo   -> hold (not-in-order)
             6020us  timer -> ack 0 (deadline)
             7ms     ooo   -> hold (not-in-order)
             7500us  ooo   -> hold (not-in-order)
             8ms     timer -> ack 0 (deadline)
             9ms     fill  -> hold (not-in-order)
             9ms     in    -> hold (count 2 of 2)
             9020us  timer -> ack 2 (deadline)
             10ms    dup   -> ack 0 (not-in-order)"

        a_hole_that_lasts_brings_quick_acks_back: "linux:quick=2"
            "0ms     in    -> hold (count 1 of 2)
             20us    timer -> ack 1 (deadline)
             1ms     in    -> hold (count 1 of 2)
             1020us  timer -> ack 1 (deadline)
             10ms    ooo   -> hold (not-in-order)
             10020us timer -> ack 0 (deadline)
             300ms   fill  -> hold (not-in-order)
             300020us timer -> ack 1 (deadline)
             310ms   in    -> hold (count 1 of 2)
             310020us timer -> ack 1 (deadline)
             320ms   in    -> hold (count 1 of 2)
             360ms   timer -> ack 1 (deadline)
             2000ms  wait"
    }
}
