//! `tack` (TACK): acknowledges at a rate that the path's bandwidth and its RTT bound.
//!
//! Source: Li et al., *TACK: Improving Wireless Transport Performance by Taming Acknowledgments* (SIGCOMM
//! 2020).
//!
//! Rule: ACKs leave at most at the rate f = min(bandwidth/(l·MSS), beta/RTT_min). The first term is one ACK for l
//! segments, for a path that holds little. The second is beta ACKs for a round trip, for a path that holds much. A
//! segment that comes sooner than 1/f after the last ACK waits until then, at most `hold`. Bandwidth is the largest
//! sample of the last ten round trips. A sample is the rate of in-order bytes over max(RTT_min, `span`) or a little
//! longer. Segments that are out of order, duplicate, or fill a hole are acknowledged at once.
//!
//! Deviations: only the ACK rate is TACK's; loss reports are SACK's here. While no RTT is known, l segments share an
//! ACK. A silence that is longer than a sample does not count, and a new sample begins after it.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{AckRule, Arrival, Basis, RecvView, Why};

use super::hold::{Decision, Holds, LONGEST_MS, host, since};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, params};

params! {
    /// segments that share an ACK on a path with a small bandwidth-delay product
    l: u32 = Form::count("segments", 1, 1_000).is(2),
    /// the most ACKs in a round trip
    beta: u32 = Form::count("ACKs", 1, 1_000).is(4),
    /// the shortest time over which bandwidth is measured
    span: Duration = Form::millis(1, 10_000).is(100),
    /// the longest that an in-order segment waits for its ACK
    hold: Duration = Form::millis(1, LONGEST_MS).is(LONGEST_MS),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "tack",
    rule: "acknowledges at min(bandwidth/2 segments, 4/RTT_min), and losses at once",
    source: "TACK (Li et al. 2020)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Receiver(|args| host(Tack::new(args))),
};

/// The largest bandwidth is taken over this many round trips.
const ROUNDS: u32 = 10;
/// A sample takes at least a round trip, so that ten round trips hold no more samples than this.
const SAMPLES: usize = 10;

#[derive(Debug)]
pub(crate) struct Tack {
    set: Params,
    bandwidth: MaxBandwidth,
}

impl Tack {
    fn new(args: &Args) -> Tack {
        let set = Params::of(args);
        Tack { set, bandwidth: MaxBandwidth::new(set.span) }
    }

    /// 1/f, and the quantity that bounds f; `None` while the RTT is unknown.
    fn interval(&self, now: Instant, view: &RecvView<'_>) -> Option<(Duration, Basis)> {
        let rtt_min = view.path.rtt.min?;
        let us = u32::try_from(rtt_min.as_micros()).unwrap_or(u32::MAX);
        let by_rtt = (rtt_min / self.set.beta, Basis::LeastRtt { us });
        let bytes = u64::from(self.set.l) * u64::from(view.mss.max(1));
        let Some(bytes_per_s) = self.bandwidth.largest(now, rtt_min) else { return Some(by_rtt) };
        let time = Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / bytes_per_s.max(1));
        Some(if time > by_rtt.0 { (time, Basis::Rate { bytes_per_s }) } else { by_rtt })
    }
}

impl Holds for Tack {
    const AT_END: AckRule = AckRule::Rate;

    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let now = arrival.now;
        self.bandwidth.take(arrival, view.path.rtt.min.unwrap_or_default());
        let latest = since(arrival, view) + self.set.hold;
        let Some((interval, _)) = self.interval(now, view) else {
            let why = Why::new(AckRule::Count, view.owed.segments, self.set.l);
            return Decision::counted(why, latest);
        };
        let from = view.owed.last_ack.map_or(now, |last| last + interval);
        if from <= now {
            return Decision::Now(Why::plain(AckRule::Rate));
        }
        Decision::Hold { until: from.min(latest), why: Why::plain(AckRule::Rate) }
    }

    hopwise_core::needs!(rtt);

    /// `None` if `hold` ends the wait.
    fn basis(&self, due: Instant, now: Instant, view: &RecvView<'_>) -> Option<Basis> {
        let (interval, basis) = self.interval(now, view)?;
        (due == view.owed.last_ack? + interval).then_some(basis)
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("bandwidth_bytes_per_s", self.bandwidth.newest.map_or(0, |sample| sample.bytes_per_s));
    }
}

#[derive(Clone, Copy, Debug)]
struct BandwidthSample {
    at: Instant,
    bytes_per_s: u64,
}

/// The largest bandwidth of the last ten round trips.
#[derive(Debug)]
struct MaxBandwidth {
    span: Duration,
    began: Option<Instant>,
    bytes: u64,
    samples: [Option<BandwidthSample>; SAMPLES],
    next: usize,
    newest: Option<BandwidthSample>,
}

impl MaxBandwidth {
    fn new(span: Duration) -> MaxBandwidth {
        MaxBandwidth { span, began: None, bytes: 0, samples: [None; SAMPLES], next: 0, newest: None }
    }

    fn take(&mut self, arrival: &Arrival, rtt_min: Duration) {
        let span = rtt_min.max(self.span);
        let is_after_silence = arrival.gap_in_order.is_none_or(|gap| gap > span);
        let began = self.began.filter(|_| !is_after_silence);
        let Some(began) = began else {
            self.began = Some(arrival.now);
            self.bytes = 0;
            return;
        };
        self.bytes += u64::from(arrival.bytes);
        let taken = arrival.now.since(began);
        if taken < span {
            return;
        }
        let us = u64::try_from(taken.as_micros()).unwrap_or(u64::MAX).max(1);
        let sample =
            BandwidthSample { at: arrival.now, bytes_per_s: self.bytes.saturating_mul(1_000_000) / us };
        self.samples[self.next] = Some(sample);
        self.next = (self.next + 1) % SAMPLES;
        self.newest = Some(sample);
        self.began = Some(arrival.now);
        self.bytes = 0;
    }

    /// The largest bandwidth in bytes per second, once there is a sample.
    fn largest(&self, now: Instant, rtt_min: Duration) -> Option<u64> {
        let newest = self.newest?.bytes_per_s;
        let lately = rtt_min.saturating_mul(ROUNDS);
        let recent = self.samples.iter().flatten().filter(|sample| now.since(sample.at) <= lately);
        Some(recent.map(|sample| sample.bytes_per_s).fold(newest, u64::max))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::Instant;
    use hopwise_core::agent::Basis;

    use crate::testkit::receiver::{ReceiverBench, scripts};

    scripts! {
        four_acks_share_a_round_trip_on_a_path_that_holds_much: "tack"
            "0ms   set rtt=400ms
             0ms   in    -> ack 1 (rate)
             30ms  in    -> hold (rate)
             60ms  in    -> hold (rate)
             100ms timer -> ack 2 (rate)
             130ms in    -> hold (rate)
             200ms timer -> ack 1 (rate)
             350ms in    -> ack 1 (rate)
             900ms wait"

        /// 1000 bytes each 20 ms are 50 kB/s. Two segments take 40 ms, and a quarter of the RTT is 5 ms.
        two_segments_share_an_ack_on_a_path_that_holds_little: "tack"
            "0ms   set rtt=20ms
             0ms   in -> ack 1 (rate)
             20ms  in -> ack 1 (rate)
             40ms  in -> ack 1 (rate)
             60ms  in -> ack 1 (rate)
             80ms  in -> ack 1 (rate)
             100ms in -> hold (rate)
             120ms timer -> ack 1 (rate)
             120ms in -> hold (rate)
             140ms in -> hold (rate)
             160ms timer -> ack 2 (rate)
             900ms wait"

        without_an_rtt_two_segments_share_an_ack: "tack:hold=100ms"
            "0ms   in    -> hold (count 1 of 2)
             10ms  in    -> ack 2 (count 2 of 2)
             20ms  in    -> hold (count 1 of 2)
             120ms timer -> ack 1 (rate)
             900ms wait"

        a_silence_says_nothing_of_the_bandwidth_and_the_segment_after_it_is_not_held: "tack"
            "0ms   set rtt=20ms
             0ms   in -> ack 1 (rate)
             500ms in -> ack 1 (rate)
             999ms in -> ack 1 (rate)
             5s    wait"

        a_loss_is_acknowledged_at_once: "tack"
            "0ms  set rtt=400ms
             0ms  in   -> ack 1 (rate)
             10ms in   -> hold (rate)
             20ms ooo  -> ack 1 (not-in-order)
             21ms dup  -> ack 0 (not-in-order)
             22ms fill -> ack 1 (not-in-order)
             900ms wait"
    }

    /// The basis of each hold on a path of this RTT, with a segment each `gap_ms`.
    fn basis(spec: &str, rtt_ms: u64, gap_ms: u64) -> Vec<Option<Basis>> {
        let mut bench = ReceiverBench::new(spec);
        bench.show(None, None, Some(Duration::from_millis(rtt_ms)));
        let mut found = Vec::new();
        for nth in 0..8 {
            bench.now = Instant::from_millis(nth * gap_ms);
            if bench.play_line("in").starts_with("hold") {
                found.push(bench.basis());
            }
        }
        found
    }

    #[test]
    fn a_hold_is_made_from_the_least_rtt_or_from_the_rate_unless_the_longest_ends_it() {
        let rtt = Some(Basis::LeastRtt { us: 400_000 });
        assert_eq!(basis("tack", 400, 10), [rtt; 7]);
        let rate = Some(Basis::Rate { bytes_per_s: 50_000 });
        assert_eq!(basis("tack", 20, 20), [rate; 2]);
        assert_eq!(basis("dup-count(tack)", 20, 20), [rate; 2]);
        assert_eq!(basis("tack:hold=1ms", 400, 10)[..3], [None; 3]);
    }
}
