//! `newreno`: the window of standard TCP.
//!
//! Source: RFC 5681 for the window, RFC 6582 for the recovery that it serves, RFC 3465 for counting bytes, RFC 9406 for
//! the end of slow start.
//!
//! Rule: below ssthresh each ACK adds a segment; above it a window of ACKs adds one. A loss halves what was in flight,
//! and a timeout begins again with one segment. The connection decides which segment is sent again, and how many leave
//! in fast recovery. `window.rs` has the rules that all owners share. With `hystart` the first slow start ends when
//! round trips grow (`hystart.rs`).
//!
//! Deviations: `half=window` is ns-2's rule. It halves the least of cwnd, the receiver's window and what other agents
//! let into the network, in whole segments. Every timeout of a series halves it. RFC 5681 keeps ssthresh after the
//! first timeout, as `half=flight` does. The amount to halve never exceeds cwnd, which leaves out the segments that
//! limited transmit added.

use hopwise_core::Instant;
use hopwise_core::agent::{
    Acked, Allowance, FastEnd, Loss, LossKind, Recovered, Reduction, SendView, SenderAgent, Sent, Tunables,
};
use hopwise_core::ignores;

use super::hystart::HYSTART;
use super::window::{Growth, IW, Linear, SSTHRESH, VALIDATE, Window, by_window, mss_of};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, OFF, Param, Switch, choices, params};

params! {
    /// count acknowledged bytes, at most two segments an ACK
    abc: Switch = Form::Switch.is(OFF),
    iw: u32 = IW,
    ssthresh: Option<u32> = SSTHRESH,
    half: Half = HALF,
    validate: Switch = VALIDATE,
    hystart: Switch = HYSTART,
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "newreno",
    rule: "adds a segment per window, halves on a loss, begins again with one segment after a timeout",
    source: "RFC 5681, RFC 6582, RFC 3465, RFC 9406",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Owner(|args| Box::new(newreno(args))),
};

/// The window of `newreno` and of `reno`, which differ in the ACK that ends fast recovery.
#[derive(Debug)]
pub(super) struct Standard {
    window: Window,
    half: Half,
    growth: Linear,
    fast_end: FastEnd,
}

fn newreno(args: &Args) -> Standard {
    let set = Params::of(args);
    let window = Window::new(set.iw, set.ssthresh, set.abc, set.validate).with_hystart(set.hystart);
    Standard::new(window, set.half, FastEnd::FullAck)
}

impl Standard {
    pub(super) fn new(window: Window, half: Half, fast_end: FastEnd) -> Standard {
        Standard { window, half, growth: Linear::default(), fast_end }
    }
}

impl SenderAgent for Standard {
    ignores!(on_dup_ack, on_path, note);
    by_window!(on_sent, on_recovered, narrow, gauges);

    fn tune(&self, tunables: &mut Tunables) {
        tunables.fast_end = self.fast_end;
    }

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        if self.window.on_acked(acked, view) == Growth::Avoidance {
            self.growth.avoid(&mut self.window, acked.newly.bytes, mss_of(view));
        }
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        self.growth.on_loss();
        let reduced = self.half.reduced(&self.window, loss, view);
        Some(self.window.on_loss(loss, view, reduced))
    }
}

// The half of a window that standard TCP leaves after a loss, for `newreno` and `reno`.
choices! {
    Half { Flight = "flight", Window = "window" }
}

pub(super) const HALF: Param =
    Half::FORM.is(0).ns2(1).means("quantity that a loss halves: bytes in flight, or the window");

impl Half {
    /// The new ssthresh.
    pub(super) fn reduced(self, window: &Window, loss: &Loss, view: &SendView<'_>) -> u64 {
        let mss = mss_of(view);
        match (self, loss.kind) {
            // RFC 5681 §3.1: a segment that timed out before shows nothing new of the path.
            (Half::Flight, LossKind::Timeout { nth: 2.. }) => window.ssthresh(mss),
            (Half::Flight, _) => loss.flight_before.bytes.min(window.cwnd(mss)) / 2,
            (Half::Window, _) => {
                let filled = window.filled(loss, mss).min(u64::from(view.snd_wnd));
                filled / 2 / mss * mss
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::agent::{Count, LossKind, Recovered};

    use crate::Profile;
    use crate::testkit::sender::{Bench, MSS};

    const RTT: Duration = Duration::from_millis(100);

    /// A flow with this window that has just left slow start.
    fn in_avoidance(options: &str, segments: u32) -> Bench {
        let mut bench =
            Bench::new(&format!("newreno:iw={segments},ssthresh={segments}{options}")).with_rtt(RTT);
        bench.fill();
        bench
    }

    fn cwnd(bench: &Bench) -> u64 {
        bench.gauge("cwnd_bytes").expect("an owner has a window")
    }

    #[test]
    fn slow_start_adds_a_segment_for_each_ack_however_much_it_covers() {
        let mut bench = Bench::new("newreno").with_rtt(RTT);
        assert_eq!(bench.fill(), 10);
        bench.ack(1);
        assert_eq!(bench.allowed_segments(), 11);
        bench.ack(4);
        assert_eq!(bench.allowed_segments(), 12);
        bench.ack_bytes(500);
        assert_eq!(cwnd(&bench), 12_500);
    }

    #[test]
    fn slow_start_with_byte_counting_adds_two_segments_at_most() {
        let mut bench = Bench::new("newreno:abc=1").with_rtt(RTT);
        bench.fill();
        bench.ack(1);
        assert_eq!(bench.allowed_segments(), 11);
        bench.ack(4);
        assert_eq!(bench.allowed_segments(), 13);
    }

    #[test]
    fn growing_round_trips_slow_the_first_slow_start_down_and_end_it() {
        let grown = |spec: &str, profile| {
            let mut bench = Bench::with_profile(spec, profile).with_rtt(RTT);
            (0..2).for_each(|_| bench.round(1));
            let before = cwnd(&bench);
            bench.path.rtt.smoothed = Some(RTT + RTT / 8);
            (0..8).for_each(|_| bench.round(1));
            (before, cwnd(&bench), bench.gauge("ssthresh_bytes") < Some(u64::MAX))
        };
        let (before, after, is_over) = grown("newreno:hystart=on", Profile::Modern);
        assert_eq!(before, 40_000);
        // The round after the one in which they grew shows it: 80 segments and eight, then five rounds of a quarter.
        let quarters = 88_000.0 * 1.25_f64.powi(5);
        let after = f64::from(u32::try_from(after).expect("a small window"));
        assert!(is_over && (0.8 * quarters..1.1 * quarters).contains(&after), "{after}, about {quarters}");
        let old = [("newreno", Profile::Modern), ("newreno:iw=10,ssthresh=99999,validate=on", Profile::Ns2)];
        for (spec, profile) in old {
            assert_eq!(grown(spec, profile).1, 40_000 << 8, "{spec}");
        }
    }

    #[test]
    fn round_trips_that_grow_after_a_loss_leave_slow_start_as_it_is() {
        let mut bench = Bench::new("newreno:hystart=on").with_rtt(RTT);
        (0..4).for_each(|_| bench.round(1));
        bench.lose(LossKind::Timeout { nth: 1 });
        bench.recover(Recovered::Full);
        let sizes: Vec<_> = (0..5_u32)
            .map(|nth| {
                bench.path.rtt.smoothed = Some(RTT * (nth + 1));
                bench.round(1);
                cwnd(&bench)
            })
            .collect();
        assert_eq!(sizes, [2_000, 4_000, 8_000, 16_000, 32_000]);
    }

    #[test]
    fn avoidance_adds_a_segment_for_a_window_of_acks() {
        let mut bench = in_avoidance("", 10);
        bench.round(1);
        let grown = cwnd(&bench);
        assert!((10_900..=11_000).contains(&grown), "{grown}");
    }

    #[test]
    fn avoidance_with_byte_counting_adds_a_segment_for_a_window_of_bytes() {
        let mut bench = in_avoidance(",abc=1", 10);
        bench.round(5);
        assert_eq!(cwnd(&bench), 11_000);
        let mut per_ack = in_avoidance("", 10);
        per_ack.round(5);
        assert_eq!(cwnd(&per_ack), 10_100 + 1_000 * 1_000 / 10_100);
    }

    #[test]
    fn a_loss_halves_what_is_in_flight() {
        let mut bench = in_avoidance("", 10);
        assert_eq!(bench.lose(LossKind::Fast).ssthresh, 5_000);
        bench.recover(Recovered::Full);
        assert_eq!(bench.allowed_segments(), 5);
    }

    #[test]
    fn segments_that_limited_transmit_added_are_not_halved_with_the_rest() {
        let mut bench = in_avoidance("", 10);
        bench.send(2);
        assert_eq!(bench.lose(LossKind::Fast).ssthresh, 5_000);
    }

    #[test]
    fn ssthresh_is_never_below_two_segments() {
        let mut bench = in_avoidance("", 2);
        assert_eq!(bench.lose(LossKind::Fast).ssthresh, 2_000);
    }

    #[test]
    fn fast_recovery_is_left_to_the_connection_and_grows_nothing() {
        let mut bench = in_avoidance("", 10);
        bench.lose(LossKind::Fast);
        assert_eq!(bench.allowed().flight_bytes, u64::MAX);
        bench.ack(3);
        assert_eq!(cwnd(&bench), 5_000);
    }

    #[test]
    fn recovery_that_ends_with_little_in_flight_does_not_end_in_a_burst() {
        let mut bench = in_avoidance("", 20);
        bench.lose(LossKind::Fast);
        bench.ack(19);
        bench.recover(Recovered::Full);
        assert_eq!(bench.allowed_segments(), 2);
        bench.fill();
        bench.ack(1);
        assert_eq!(bench.allowed_segments(), 3, "slow start goes on to ssthresh");
    }

    #[test]
    fn a_timeout_begins_again_with_one_segment_up_to_half() {
        let mut bench = in_avoidance("", 10);
        assert_eq!(bench.lose(LossKind::Timeout { nth: 1 }).ssthresh, 5_000);
        assert_eq!(bench.allowed_segments(), 1);
        bench.send(1);
        bench.ack(1);
        assert_eq!(bench.allowed_segments(), 2);
    }

    #[test]
    fn second_timeout_of_a_series_keeps_ssthresh() {
        let mut bench = in_avoidance("", 10);
        bench.lose(LossKind::Timeout { nth: 1 });
        bench.send(1);
        assert_eq!(bench.lose(LossKind::Timeout { nth: 2 }).ssthresh, 5_000);
    }

    #[test]
    fn byte_counting_after_a_timeout_adds_one_segment_an_ack() {
        let mut bench = in_avoidance(",abc=1", 20);
        bench.lose(LossKind::Timeout { nth: 1 });
        bench.send(4);
        bench.ack(4);
        assert_eq!(bench.allowed_segments(), 2);
    }

    #[test]
    fn a_timeout_without_data_in_flight_was_a_syns_and_keeps_ssthresh() {
        let mut bench = Bench::new("newreno").with_rtt(RTT);
        assert_eq!(bench.lose(LossKind::Timeout { nth: 1 }).ssthresh, u64::MAX);
        bench.recover(Recovered::Full);
        assert_eq!(bench.allowed_segments(), 1);
        let mut bench = Bench::new("newreno:ssthresh=2").with_rtt(RTT);
        assert_eq!(bench.lose(LossKind::Timeout { nth: 1 }).ssthresh, 2_000);
    }

    #[test]
    fn a_timeout_of_data_that_has_arrived_begins_again_and_keeps_ssthresh() {
        for options in ["", ",half=window"] {
            let mut bench = in_avoidance(options, 10);
            bench.ack(10);
            assert_eq!(bench.lose(LossKind::Timeout { nth: 1 }).ssthresh, 10_000, "{options}");
            assert_eq!(bench.allowed_segments(), 1, "{options}");
            bench.send(1);
            bench.ack(1);
            assert_eq!(bench.allowed_segments(), 2, "{options}: it grows by slow start");
        }
    }

    #[test]
    fn a_mark_takes_effect_at_once() {
        let mut bench = in_avoidance("", 10);
        bench.lose(LossKind::Marked);
        assert_eq!(bench.allowed_segments(), 5);
        bench.lose(LossKind::Timeout { nth: 1 });
        bench.send(1);
        bench.lose(LossKind::Marked);
        assert_eq!(bench.allowed_segments(), 1, "a mark never raises a window");
    }

    #[test]
    fn an_ack_that_echoes_a_mark_grows_nothing() {
        let mut bench = Bench::new("newreno").with_rtt(RTT);
        bench.fill();
        bench.ece = true;
        bench.ack(1);
        assert_eq!(bench.allowed_segments(), 10);
        bench.ece = false;
        bench.ack(1);
        assert_eq!(bench.allowed_segments(), 11);
    }

    #[test]
    fn what_a_loss_took_is_given_back_when_it_was_none() {
        for kind in [LossKind::Fast, LossKind::Timeout { nth: 1 }] {
            let mut bench = in_avoidance("", 10);
            bench.lose(kind);
            bench.recover(Recovered::Undone);
            assert_eq!(
                (bench.gauge("cwnd_bytes"), bench.gauge("ssthresh_bytes")),
                (Some(10_000), Some(10_000))
            );
        }
        let mut bench = in_avoidance("", 10);
        (1..4).for_each(|nth| {
            bench.lose(LossKind::Timeout { nth });
        });
        bench.recover(Recovered::Undone);
        assert_eq!(bench.allowed_segments(), 10, "from before the first timeout of the series");
        bench.recover(Recovered::Undone);
        assert_eq!(bench.allowed_segments(), 10, "given back once");
    }

    #[test]
    fn what_a_mark_took_is_not_given_back() {
        let mut bench = in_avoidance("", 20);
        bench.lose(LossKind::Fast);
        bench.lose(LossKind::Marked);
        let marked = cwnd(&bench);
        bench.recover(Recovered::Undone);
        assert_eq!(cwnd(&bench), marked);
    }

    #[test]
    fn a_window_that_the_application_does_not_fill_stays() {
        let mut bench = Bench::new("newreno").with_rtt(RTT);
        bench.app_limited = true;
        bench.round(1);
        assert_eq!(bench.allowed_segments(), 10);
    }

    #[test]
    fn a_window_that_another_agent_keeps_closed_stops_at_twice_what_is_used() {
        let mut bench = Bench::new("[newreno, limit:4]").with_rtt(RTT);
        bench.lose(LossKind::Timeout { nth: 1 });
        (0..50).for_each(|_| bench.round(1));
        let grown = cwnd(&bench);
        assert!((4_000..=9_000).contains(&grown), "{grown}");
    }

    #[test]
    fn an_idle_time_longer_than_an_rto_ends_in_the_initial_window() {
        let mut bench = Bench::new("newreno").with_rtt(RTT);
        (0..3).for_each(|_| bench.round(1));
        bench.ack(bench.flight.segments);
        let (before, flown) = (bench.allowed_segments(), cwnd(&bench));
        bench.wait(Duration::from_millis(200));
        assert_eq!(bench.allowed_segments(), before, "RTO is srtt + 4 × 12.5 ms, at least 200 ms");
        bench.wait(Duration::from_millis(1));
        assert_eq!(bench.allowed_segments(), 10);
        assert_eq!(cwnd(&bench), flown, "asking decides nothing");
        bench.send(1);
        assert_eq!(cwnd(&bench), 10_000);
        assert_eq!(bench.gauge("ssthresh_bytes"), Some(u64::MAX));
    }

    #[test]
    fn how_long_idle_is_grows_with_the_rtt_and_its_variance() {
        let mut bench = Bench::new("newreno").with_rtt(Duration::from_millis(400));
        bench.round(1);
        bench.ack(bench.flight.segments);
        let flown = bench.allowed_segments();
        bench.wait(Duration::from_millis(600));
        assert_eq!(bench.allowed_segments(), flown, "400 ms + 4 × 50 ms");
        bench.wait(Duration::from_millis(1));
        assert_eq!(bench.allowed_segments(), 10);
    }

    #[test]
    fn ssthresh_remembers_the_window_that_an_idle_time_took() {
        let mut bench = Bench::new("newreno:ssthresh=12").with_rtt(RTT);
        (0..20).for_each(|_| bench.round(1));
        bench.ack(bench.flight.segments);
        let flown = cwnd(&bench);
        assert!(flown > 25_000, "{flown}");
        bench.wait(Duration::from_secs(9));
        bench.send(1);
        assert_eq!(cwnd(&bench), 10_000);
        assert_eq!(bench.gauge("ssthresh_bytes"), Some(flown / 4 * 3));
    }

    #[test]
    fn the_initial_window_of_large_segments_has_few_of_them() {
        let mut bench = Bench::new("newreno");
        bench.mss = 8_960;
        assert_eq!(bench.allowed().flight_bytes, 2 * 8_960);
        bench.mss = 1_460;
        assert_eq!(bench.allowed().flight_bytes, 14_600);
    }

    #[test]
    fn under_ns2_every_timeout_halves_the_window_and_idle_times_cost_nothing() {
        let mut bench = Bench::with_profile("newreno", Profile::Ns2).with_rtt(RTT);
        assert_eq!(bench.allowed_segments(), 2);
        assert_eq!(bench.gauge("ssthresh_bytes"), None, "no event has named the MSS yet");
        bench.fill();
        assert_eq!(bench.gauge("cwnd_bytes"), Some(2 * u64::from(MSS)));
        assert_eq!(bench.gauge("ssthresh_bytes"), Some(2_000 * u64::from(MSS)));
        (0..5).for_each(|_| bench.round(1));
        assert_eq!(bench.allowed_segments(), 64);
        bench.flight = Count::default();
        bench.wait(Duration::from_secs(60));
        assert_eq!(bench.allowed_segments(), 64);

        bench.fill();
        assert_eq!(bench.lose(LossKind::Timeout { nth: 1 }).ssthresh, 32_000);
        bench.send(1);
        assert_eq!(bench.lose(LossKind::Timeout { nth: 2 }).ssthresh, 2_000);
    }

    #[test]
    fn under_ns2_the_window_that_is_halved_is_the_least_of_three() {
        let ssthresh_of = |spec: &str, snd_wnd: u32| {
            let mut bench = Bench::with_profile(spec, Profile::Ns2).with_rtt(RTT);
            bench.snd_wnd = snd_wnd;
            (0..5).for_each(|_| bench.round(1));
            bench.flight = Count::default();
            bench.lose(LossKind::Fast).ssthresh
        };
        assert_eq!(ssthresh_of("newreno", 1_000_000), 32_000);
        assert_eq!(ssthresh_of("newreno", 21_500), 10_000, "whole segments");
        assert_eq!(ssthresh_of("[newreno, limit:7]", 1_000_000), 3_000);
    }
}
