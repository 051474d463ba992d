//! `westwood`: after a loss the window is what the path has carried.
//!
//! Source: Mascolo, Casetti, Gerla, Sanadidi and Wang, *TCP Westwood* (MobiCom 2001), with the once-a-round
//! samples of Westwood+ (Grieco and Mascolo).
//!
//! Rule: the window grows as with `newreno`. Once a round trip, the acknowledged bytes over the time that they took are
//! a sample of bandwidth. It changes bw to .9·bw + .05·(sample + last sample). A loss leaves bw·RTT_min of the window,
//! and a timeout begins again with one segment. A loss that the radio caused leaves bw as it is, and therefore the
//! window is not halved.
//!
//! Deviations: a loss leaves at most the window that was really filled. Before the first sample it halves what is in
//! flight. A round in which the application was the limit gives no sample.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{
    Acked, Allowance, Loss, LossKind, Recovered, Reduction, SendView, SenderAgent, Sent,
};
use hopwise_core::ignores;

use super::window::{Growth, IW, Linear, SSTHRESH, VALIDATE, Window, by_window, mss_of};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, OFF, Switch, params};

params! {
    /// count acknowledged bytes, at most two segments an ACK
    abc: Switch = Form::Switch.is(OFF),
    iw: u32 = IW,
    ssthresh: Option<u32> = SSTHRESH,
    validate: Switch = VALIDATE,
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "westwood",
    rule: "grows as newreno; a loss leaves the bandwidth that the path has carried times its least RTT",
    source: "TCP Westwood+ (Grieco, Mascolo)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Owner(|args| Box::new(Westwood::new(args))),
};

#[derive(Debug)]
pub(crate) struct Westwood {
    window: Window,
    growth: Linear,
    bandwidth: BandwidthEstimate,
}

impl Westwood {
    fn new(args: &Args) -> Westwood {
        let set = Params::of(args);
        let window = Window::new(set.iw, set.ssthresh, set.abc, set.validate);
        Westwood { window, growth: Linear::default(), bandwidth: BandwidthEstimate::default() }
    }

    fn reduced(&self, loss: &Loss, view: &SendView<'_>) -> u64 {
        let mss = mss_of(view);
        if matches!(loss.kind, LossKind::Timeout { nth: 2.. }) {
            return self.window.ssthresh(mss);
        }
        let filled = self.window.filled(loss, mss);
        let carried = view.path.rtt.min.and_then(|rtt_min| self.bandwidth.bytes_in(rtt_min));
        carried.map_or(loss.flight_before.bytes.min(filled) / 2, |carried| carried.min(filled))
    }
}

/// The rate that the path delivers, sampled once a round trip.
#[derive(Debug, Default)]
struct BandwidthEstimate {
    began: Option<Instant>,
    bytes: u64,
    bytes_per_s: Option<u64>,
    last_sample: u64,
}

impl BandwidthEstimate {
    fn take(&mut self, acked: &Acked, view: &SendView<'_>) {
        let delivered = acked.newly.bytes + acked.sacked.bytes;
        let began = self.began.filter(|_| !view.app_limited);
        let (Some(began), Some(rtt)) = (began, view.path.rtt.smoothed) else {
            (self.began, self.bytes) = (Some(acked.now), 0);
            return;
        };
        self.bytes += delivered;
        let taken = acked.now.since(began);
        if taken < rtt || taken.is_zero() {
            return;
        }
        let us = u64::try_from(taken.as_micros()).unwrap_or(u64::MAX).max(1);
        let sample = self.bytes.saturating_mul(1_000_000) / us;
        let filtered = |bw: u64| (18 * bw + sample + self.last_sample) / 20;
        self.bytes_per_s = Some(self.bytes_per_s.map_or(sample, filtered));
        self.last_sample = sample;
        (self.began, self.bytes) = (Some(acked.now), 0);
    }

    fn bytes_in(&self, time: Duration) -> Option<u64> {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.bytes_per_s.map(|bw| bw.saturating_mul(us) / 1_000_000)
    }
}

impl SenderAgent for Westwood {
    ignores!(tune, on_dup_ack, on_path, note);
    by_window!(on_sent, on_recovered, narrow);

    hopwise_core::needs!(rtt);

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        self.bandwidth.take(acked, view);
        if self.window.on_acked(acked, view) == Growth::Avoidance {
            self.growth.avoid(&mut self.window, acked.newly.bytes, mss_of(view));
        }
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        self.growth.on_loss();
        let reduced = self.reduced(loss, view);
        Some(self.window.on_loss(loss, view, reduced))
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.window.gauges(sink);
        sink("bandwidth_bytes_per_s", self.bandwidth.bytes_per_s.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::agent::{LossKind, Recovered};

    use crate::testkit::sender::Bench;

    const RTT: Duration = Duration::from_millis(100);

    /// A flow of 20 segments in each round trip of 100 ms: 200 kB/s.
    fn steady() -> Bench {
        let mut bench = Bench::new("westwood:iw=20,ssthresh=20").with_rtt(RTT);
        bench.path.rtt.min = Some(RTT);
        for _ in 0..3 {
            bench.wait(RTT);
            bench.ack(20);
            bench.send(20);
        }
        bench
    }

    fn bandwidth(bench: &Bench) -> u64 {
        bench.gauge("bandwidth_bytes_per_s").expect("a gauge")
    }

    #[test]
    fn a_loss_leaves_what_the_path_carries_in_its_least_rtt() {
        let mut bench = steady();
        assert_eq!(bandwidth(&bench), 200_000);
        assert_eq!(bench.lose(LossKind::Fast).ssthresh, 20_000);
        bench.recover(Recovered::Full);
        assert!(bench.allowed_segments() >= 20);
        let mut queued = steady();
        queued.path.rtt.min = Some(RTT / 2);
        assert_eq!(queued.lose(LossKind::Fast).ssthresh, 10_000, "half of it stood in queues");
    }

    #[test]
    fn a_timeout_begins_again_with_one_segment_below_that_threshold() {
        let mut bench = steady();
        assert_eq!(bench.lose(LossKind::Timeout { nth: 1 }).ssthresh, 20_000);
        assert_eq!(bench.allowed_segments(), 1);
        bench.send(1);
        assert_eq!(bench.lose(LossKind::Timeout { nth: 2 }).ssthresh, 20_000);
    }

    #[test]
    fn a_sample_counts_a_twentieth_and_once_more_as_the_last_one() {
        let mut bench = steady();
        bench.wait(RTT);
        bench.ack(10);
        // .9 · 200 + .05 · (100 + 200)
        assert_eq!(bandwidth(&bench), 195_000);
        bench.wait(RTT);
        bench.ack(10);
        assert_eq!(bandwidth(&bench), 185_500);
    }

    #[test]
    fn acks_within_a_round_trip_share_a_sample() {
        let mut bench = steady();
        for _ in 0..5 {
            bench.wait(RTT / 5);
            bench.ack(4);
        }
        assert_eq!(bandwidth(&bench), 200_000);
    }

    #[test]
    fn a_loss_never_leaves_more_than_was_filled_and_halves_while_nothing_is_known() {
        let mut bench = steady();
        bench.path.rtt.min = Some(RTT * 10);
        assert_eq!(bench.lose(LossKind::Fast).ssthresh, 20_000);
        let mut young = Bench::new("westwood:iw=20").with_rtt(RTT);
        young.fill();
        assert_eq!(young.lose(LossKind::Fast).ssthresh, 10_000);
    }

    #[test]
    fn a_pause_of_the_application_is_no_sample() {
        let mut bench = steady();
        bench.app_limited = true;
        bench.wait(Duration::from_secs(30));
        bench.ack(1);
        assert_eq!(bandwidth(&bench), 200_000);
    }

    #[test]
    fn the_window_grows_as_with_newreno() {
        let cwnd = |spec: &str| {
            let mut bench = Bench::new(spec).with_rtt(RTT);
            (0..12).for_each(|_| bench.round(2));
            bench.gauge("cwnd_bytes")
        };
        assert_eq!(cwnd("westwood:ssthresh=30"), cwnd("newreno:ssthresh=30"));
        assert_eq!(cwnd("westwood:ssthresh=30,abc"), cwnd("newreno:ssthresh=30,abc"));
    }
}
