//! `tack` (TACK): paces at the rate at which the receiver gets data, so that few ACKs suffice.
//!
//! Source: Li et al., *TACK: Improving Wireless Transport Performance by Taming Acknowledgments* (SIGCOMM
//! 2020). Its sender is BBR (Cardwell et al., *BBR: Congestion-Based Congestion Control*, ACM Queue 2016),
//! with figures that the receiver computes. The receiver agent `tack` has the paper's rule for ACKs.
//!
//! Rule: the path's bandwidth is the largest of ten samples of the delivery rate. Its RTT_min is the least
//! round trip of ten seconds. The sender paces at a gain times the bandwidth, and has two products of both in
//! flight at most: with beta ACKs in a round trip, beta/(beta - 1) products keep a path busy. As in Linux's
//! BBR, the bytes that ACKs deliver at once, beyond what the rate explains, come on top of it: without them a
//! radio that aggregates would send segment by segment. Startup has the gain 2/ln 2 until three samples in a
//! row have brought less than a quarter more, and Drain its inverse until one product is in flight. Then the
//! gains go round: 1.25 until 1.25 products are in flight or data is lost, .75 until one product is, and six
//! samples of 1. When RTT_min is ten seconds old, four segments are in flight for 200 ms. A loss changes
//! neither rate nor window.
//!
//! Deviations: the wire has no field for the receiver's figures, so that the sender computes them from ACKs.
//! A sample is the rate of the bytes that ACKs newly report, over max(RTT_min, `span`) or a little longer, as
//! in the receiver agent `tack`; a delay of ACKs on their way is in it. Aggregates make such samples uneven,
//! and the largest of ten is above the path's rate. A gain lasts for a sample, and not for RTT_min, since a
//! shorter one would show in no sample. A silence that is longer than a sample does not count. The paper
//! takes RTT_min from the segment with the least one-way delay, less the wait for its ACK. Here it is from
//! the newest segment of each ACK, with that wait. The handshake's round trip is left out, and single losses
//! are SACK's and RACK's, as for all agents. The gain that follows Drain is not random: the connection's
//! first sequence number draws it.

use std::time::Duration;

use hopwise_core::agent::{
    Acked, Allowance, CWND_GAUGE, Loss, LossKind, Recovered, Reduction, SendView, SenderAgent, Sent,
};
use hopwise_core::{Instant, ignores};

use super::bbr::MOST_EXTRA;
use super::bbr::filter::ExtraAcked;
use super::window::{initial_window, mss_of};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};
use crate::truncate;

params! {
    /// initial window
    iw: u32 = Form::count("segments", 1, 1_000).is(10),
    /// the shortest time over which bandwidth is measured
    span: Duration = Form::millis(1, 10_000).is(100),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "tack",
    rule: "paces at the rate at which the receiver gets data, and has two products of it and RTT_min in flight",
    source: "TACK (Li et al. 2020), BBR (Cardwell et al. 2016)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Owner(|args| {
        let set = Params::of(args);
        Box::new(Tack { iw: set.iw, span: set.span, ..Tack::default() })
    }),
};

/// 2/ln 2, which doubles the rate in a round trip.
const STARTUP_GAIN: f64 = 2.885;
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const UP: usize = 0;
const DOWN: usize = 1;
/// Products of bandwidth and RTT_min in flight.
const PRODUCTS: f64 = 2.0;
/// The path is full when this many samples in a row have not brought `GROWTH`.
const FLAT_SAMPLES: u32 = 3;
const GROWTH: f64 = 1.25;
/// The largest of this many samples is the bandwidth.
const SAMPLES: usize = 10;
/// The time for which a least round trip holds.
const MEMORY: Duration = Duration::from_secs(10);
/// The time with `LEAST_SEGMENTS` in flight that shows a new one.
const PROBE_TIME: Duration = Duration::from_millis(200);
const LEAST_SEGMENTS: u64 = 4;

#[derive(Debug, Default)]
pub(crate) struct Tack {
    iw: u32,
    span: Duration,
    state: State,
    delivery: Delivery,
    extra: ExtraAcked,
    /// RTT_min, and when it was measured.
    least: Option<(Duration, Instant)>,
    /// The last bandwidth that was a quarter more than the one before, in bytes per second.
    best: f64,
    /// Samples since then.
    flat: u32,
    /// In bytes; none before the first ACK or loss.
    cwnd: Option<u64>,
    before_loss: Option<u64>,
    next_send: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Startup,
    Drain,
    /// The place among `GAINS`.
    Cruise(usize),
    /// Until this time, once few segments are in flight.
    ProbeRtt(Option<Instant>),
}

impl Tack {
    fn is_full(&self) -> bool {
        self.flat >= FLAT_SAMPLES
    }

    fn window(&self, mss: u64) -> u64 {
        self.cwnd.unwrap_or_else(|| initial_window(self.iw, mss))
    }

    /// Bytes per second: the largest sample, or what the initial window makes of the first round trip.
    fn bandwidth(&self, view: &SendView<'_>) -> f64 {
        self.delivery.largest().unwrap_or_else(|| {
            let rtt = view.path.rtt.smoothed.unwrap_or_default().max(Duration::from_millis(1));
            initial_window(self.iw, mss_of(view)) as f64 / rtt.as_secs_f64()
        })
    }

    fn gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_GAIN,
            State::Drain => 1.0 / STARTUP_GAIN,
            State::Cruise(nth) => GAINS[nth],
            State::ProbeRtt(_) => 1.0,
        }
    }

    /// So many products of bandwidth and RTT_min in bytes, once both are known.
    fn products(&self, count: f64) -> Option<u64> {
        let (least, _) = self.least?;
        Some(truncate::to_u64(count * self.delivery.largest()? * least.as_secs_f64()))
    }

    /// Returns whether the least round trip was too old.
    fn take_rtt(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let is_old = self.least.is_some_and(|(_, at)| now.since(at) > MEMORY);
        let is_less = |rtt: &Duration| self.least.is_none_or(|(least, _)| *rtt <= least || is_old);
        self.least = rtt.filter(is_less).map(|rtt| (rtt, now)).or(self.least);
        is_old
    }

    fn end_sample(&mut self, flight: u64, view: &SendView<'_>) {
        self.extra.end_round(!self.is_full());
        let largest = self.delivery.largest().unwrap_or(0.0);
        match self.state {
            State::Startup if largest >= GROWTH * self.best => (self.best, self.flat) = (largest, 0),
            State::Startup => self.flat += 1,
            State::Cruise(UP)
                if self.products(GAINS[UP]).is_some_and(|up| flight < up && !view.app_limited) => {}
            State::Cruise(nth) => self.state = State::Cruise((nth + 1) % GAINS.len()),
            State::Drain | State::ProbeRtt(_) => {}
        }
    }

    /// What the flight and the time decide at each ACK.
    fn advance(&mut self, now: Instant, is_old: bool, view: &SendView<'_>) {
        let (flight, few) = (view.flight.bytes, LEAST_SEGMENTS * mss_of(view));
        let is_drained = self.products(1.0).is_none_or(|one| flight <= one);
        // All but the gain .75 may come first.
        let drawn = (DOWN + 1 + view.snd_una.0 as usize % (GAINS.len() - 1)) % GAINS.len();
        self.state = match self.state {
            State::ProbeRtt(None) if flight <= few => State::ProbeRtt(Some(now + PROBE_TIME)),
            State::ProbeRtt(Some(until)) if now >= until => {
                self.least = self.least.map(|(least, _)| (least, now));
                if self.is_full() { State::Cruise(drawn) } else { State::Startup }
            }
            state @ State::ProbeRtt(_) => state,
            _ if is_old => State::ProbeRtt(None),
            State::Startup if self.is_full() => State::Drain,
            State::Drain if is_drained => State::Cruise(drawn),
            State::Cruise(DOWN) if is_drained => State::Cruise(DOWN + 1),
            state => state,
        };
    }
}

impl SenderAgent for Tack {
    ignores!(tune, on_dup_ack, on_path, note);

    hopwise_core::needs!(rtt);

    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        let takes_s = sent.carried.bytes as f64 / (self.gain() * self.bandwidth(view)).max(1.0);
        self.next_send = self.next_send.max(sent.now) + Duration::from_secs_f64(takes_s);
    }

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        let (mss, newly) = (mss_of(view), acked.newly.bytes + acked.sacked.bytes);
        let is_old = self.take_rtt(acked.now, acked.rtt);
        let span = self.least.map_or(self.span, |(least, _)| least.max(self.span));
        let is_limited = view.app_limited || matches!(self.state, State::ProbeRtt(_));
        if self.delivery.take(acked.now, newly, is_limited, span) {
            self.end_sample(acked.flight_before.bytes, view);
        }
        self.advance(acked.now, is_old, view);
        let bandwidth = self.delivery.largest().unwrap_or(0.0);
        let expected = |time: Duration| truncate::to_u64(bandwidth * time.as_secs_f64());
        let window = self.window(mss);
        self.extra.take(acked.now, newly, expected, expected(MOST_EXTRA).min(window));
        let most = self.products(PRODUCTS).map_or(u64::MAX, |two| two + self.extra.highest());
        let most = if self.is_full() { most } else { most.max(window) };
        self.cwnd = Some((window + newly).min(most).max(LEAST_SEGMENTS * mss));
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        let window = self.window(mss_of(view));
        if self.state == State::Cruise(UP) {
            self.state = State::Cruise(DOWN);
        }
        if let LossKind::Timeout { .. } = loss.kind {
            self.before_loss = Some(window.max(self.before_loss.unwrap_or(0)));
            self.cwnd = Some(mss_of(view));
        }
        Some(Reduction { ssthresh: window.max(2 * mss_of(view)) })
    }

    fn on_recovered(&mut self, _: Recovered, view: &SendView<'_>) {
        let before = self.before_loss.take().unwrap_or(0);
        self.cwnd = Some(self.window(mss_of(view)).max(before));
    }

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let mss = mss_of(view);
        let few = matches!(self.state, State::ProbeRtt(_)).then_some(LEAST_SEGMENTS * mss);
        let window = self.window(mss).max(mss).min(few.unwrap_or(u64::MAX));
        so_far.narrowed(window, self.next_send, view.mss.max(1))
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.cwnd.into_iter().for_each(|cwnd| sink(CWND_GAUGE, cwnd));
        sink("bandwidth_bytes_per_s", truncate::to_u64(self.delivery.largest().unwrap_or(0.0)));
        sink("gain_percent", truncate::to_u64(100.0 * self.gain()));
        let least_s = self.least.map_or(0.0, |(least, _)| least.as_secs_f64());
        sink("min_rtt_us", truncate::to_u64(least_s * 1e6));
    }
}

/// The receiver's figure, as ACKs show it.
#[derive(Debug, Default)]
struct Delivery {
    began: Option<Instant>,
    newest: Instant,
    bytes: u64,
    is_limited: bool,
    /// In bytes per second.
    samples: [Option<f64>; SAMPLES],
    next: usize,
}

impl Delivery {
    /// Returns whether this ACK ends a sample. A sample that the application limits counts if it is the largest.
    fn take(&mut self, now: Instant, bytes: u64, is_limited: bool, span: Duration) -> bool {
        let began = self.began.filter(|_| now.since(self.newest) <= span);
        self.newest = now;
        (self.bytes, self.is_limited) = (self.bytes + bytes, self.is_limited || is_limited);
        if began.is_some_and(|began| now.since(began) < span) {
            return false;
        }
        let rate = began.map(|began| self.bytes as f64 / now.since(began).as_secs_f64());
        let is_largest = rate.is_some_and(|rate| self.largest().is_some_and(|largest| rate > largest));
        let counted = rate.filter(|_| !self.is_limited || is_largest);
        (self.began, self.bytes, self.is_limited) = (Some(now), 0, is_limited);
        if counted.is_some() {
            self.samples[self.next] = counted;
            self.next = (self.next + 1) % SAMPLES;
        }
        counted.is_some()
    }

    fn largest(&self) -> Option<f64> {
        self.samples.iter().flatten().copied().reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::agent::{LossKind, Recovered};

    use crate::testkit::sender::{Bench, Bottleneck, MSS};

    const BASE: Duration = Duration::from_millis(100);

    fn gauge(bench: &Bench, name: &str) -> u64 {
        bench.gauge(name).expect("a gauge")
    }

    /// A flow over a path of a thousand segments a second that holds a hundred, with four ACKs in a round trip.
    fn begun() -> (Bench, Bottleneck) {
        let bench = Bench::new("tack").with_rtt(BASE);
        (bench, Bottleneck::new(BASE, BASE / 100).with_an_ack_for(25))
    }

    /// It has found the rate.
    fn settled() -> (Bench, Bottleneck) {
        let (mut bench, mut path) = begun();
        path.carry(&mut bench, 5_000);
        (bench, path)
    }

    /// Bytes per second at which the next segment is spaced.
    fn pace(bench: &mut Bench) -> f64 {
        bench.now = bench.now.max(bench.allowed().new_from);
        let before = bench.now;
        bench.send(1);
        f64::from(MSS) / bench.allowed().new_from.since(before).as_secs_f64()
    }

    #[test]
    fn four_acks_in_a_round_trip_suffice_for_the_rate_of_the_bottleneck() {
        let (mut bench, mut path) = settled();
        let began = bench.now;
        path.carry(&mut bench, 5_000);
        let took = bench.now.since(began).as_secs_f64();
        assert!((4.9..5.2).contains(&took), "5000 segments at 1000 a second took {took} s");
        let bandwidth = gauge(&bench, "bandwidth_bytes_per_s");
        assert!((1_000_000..1_300_000).contains(&bandwidth), "{bandwidth}");
    }

    #[test]
    fn the_first_rate_is_the_initial_window_in_a_round_trip_times_two_over_ln_two() {
        let (mut bench, _) = begun();
        assert_eq!(bench.allowed_segments(), 10);
        let pace = pace(&mut bench);
        assert!((288_000.0..289_000.0).contains(&pace), "{pace}");
    }

    #[test]
    fn two_products_of_bandwidth_and_the_least_round_trip_are_in_flight_at_most() {
        let (mut bench, mut path) = settled();
        let least = gauge(&bench, "min_rtt_us");
        assert!((100_000..160_000).contains(&least), "{least}");
        for _ in 0..1_000 {
            path.carry(&mut bench, 10);
            let product = gauge(&bench, "bandwidth_bytes_per_s") * gauge(&bench, "min_rtt_us") / 1_000_000;
            assert!(bench.flight.bytes <= 2 * product + u64::from(MSS), "{} {product}", bench.flight.bytes);
        }
    }

    /// The gains that follow each other while so many segments arrive.
    fn gains(bench: &mut Bench, path: &mut Bottleneck, segments: u32) -> Vec<u64> {
        let seen = (0..segments / 5).map(|_| {
            path.carry(bench, 5);
            gauge(bench, "gain_percent")
        });
        let mut gains: Vec<_> = seen.collect();
        gains.dedup();
        gains
    }

    #[test]
    fn startup_ends_in_a_drain_and_the_gains_go_round_then() {
        let (mut bench, mut path) = begun();
        let gains = gains(&mut bench, &mut path, 10_000);
        assert_eq!(gains[..3], [288, 34, 100]);
        assert!(gains[3..].chunks_exact(3).all(|round| round == [125, 75, 100]), "{gains:?}");
        assert!(gains.len() > 12, "{gains:?}");
    }

    #[test]
    fn a_round_trip_of_ten_seconds_ago_is_measured_anew_with_four_segments_in_flight() {
        let (mut bench, _) = settled();
        let least = gauge(&bench, "min_rtt_us");
        bench.path.rtt.smoothed = Some(BASE * 2);
        let windows: Vec<_> = (0..60)
            .map(|_| {
                bench.round(25);
                bench.allowed_segments()
            })
            .collect();
        let few = windows.iter().filter(|window| **window == 4).count();
        assert!((1..=3).contains(&few), "two round trips: {windows:?}");
        assert!(windows[..45].iter().all(|window| *window > 100), "{windows:?}");
        assert!(least < 200_000 && gauge(&bench, "min_rtt_us") == 200_000, "{least}");
        assert!(bench.allowed_segments() > 100, "{windows:?}");
    }

    #[test]
    fn a_loss_changes_neither_rate_nor_window_and_a_timeout_leaves_a_segment_until_it_is_over() {
        let (mut bench, _) = settled();
        let (window, bandwidth) = (bench.allowed_segments(), gauge(&bench, "bandwidth_bytes_per_s"));
        assert_eq!(bench.lose(LossKind::Fast).ssthresh / u64::from(MSS), window);
        bench.recover(Recovered::Full);
        assert_eq!((bench.allowed_segments(), gauge(&bench, "bandwidth_bytes_per_s")), (window, bandwidth));
        bench.lose(LossKind::Timeout { nth: 1 });
        bench.lose(LossKind::Timeout { nth: 2 });
        assert_eq!(bench.allowed_segments(), 1);
        bench.recover(Recovered::Undone);
        assert_eq!(bench.allowed_segments(), window);
    }

    #[test]
    fn a_loss_ends_the_gain_that_tries_for_more() {
        let (mut bench, mut path) = settled();
        while gauge(&bench, "gain_percent") != 125 {
            path.carry(&mut bench, 1);
        }
        bench.lose(LossKind::Fast);
        assert_eq!(gauge(&bench, "gain_percent"), 75);
    }

    #[test]
    fn what_the_program_does_not_send_and_silences_lower_no_rate() {
        let (mut bench, mut path) = settled();
        let bandwidth = gauge(&bench, "bandwidth_bytes_per_s");
        bench.app_limited = true;
        for _ in 0..100 {
            bench.wait(BASE / 2);
            path.carry(&mut bench, 5);
        }
        bench.app_limited = false;
        for _ in 0..30 {
            bench.wait(BASE * 3);
            path.carry(&mut bench, 20);
        }
        assert_eq!(gauge(&bench, "bandwidth_bytes_per_s"), bandwidth);
    }
}
