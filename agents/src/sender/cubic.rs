//! `cubic`: the window as a cubic function of the time since the last loss.
//!
//! Source: RFC 9438, with RFC 9406 (HyStart++) for the end of slow start.
//!
//! Rule: after a loss the window is β of what it was. It then rises steeply, flattens after K seconds where the loss
//! happened (W_max), and steepens again beyond. W(t) = C·(t − K)³ + W_max segments, with K = ∛((W_max − cwnd)/C). If a
//! standard sender with the same β would have a larger window (W_est), the window follows W_est. A loss below the last
//! W_max lowers W_max further, which leaves room for new flows (fast convergence). With `hystart` the first slow start
//! ends when round trips grow (`hystart.rs`), and the curve begins at its plateau.
//!
//! Deviations: (target − cwnd)/cwnd is added for each acknowledged segment, not for each ACK, since receiver agents
//! thin out ACKs. A loss leaves β of the most data in flight during the last two rounds, at most cwnd. RFC 9438 §4.6
//! takes the flight size, but the current flight lacks what duplicate ACKs took off. Time in which the window is not
//! filled does not count (§5.8).

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{
    Acked, Allowance, Loss, LossKind, Recovered, Reduction, SendView, SenderAgent, Sent,
};
use hopwise_core::ignores;

use super::hystart::HYSTART;
use super::seldom::Seldom;
use super::window::{Growth, IW, SSTHRESH, VALIDATE, Window, by_window, is_without_flight, mss_of};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, ON, Profile, Switch, params};
use crate::truncate;

params! {
    /// segments per second cubed
    c: u32 = Form::ratio(1, 10_000).is(400),
    /// part of the window that is left after a loss
    beta: u32 = Form::ratio(100, 950).is(700),
    /// lower W_max when a loss comes below the last one
    fast_convergence as "fast-convergence": Switch = Form::Switch.is(ON),
    /// slow start counts acknowledged bytes, at most two segments an ACK
    abc: Switch = Form::Switch.is(ON),
    iw: u32 = IW,
    ssthresh: Option<u32> = SSTHRESH,
    validate: Switch = VALIDATE,
    hystart: Switch = HYSTART,
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "cubic",
    rule: "grows as a cubic function of the time since the last loss, which leaves β of the window",
    source: "RFC 9438, RFC 9406",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Owner(|args| Box::new(Cubic::new(args))),
};

/// RFC 9438 §4.2: the window grows by at most half in one round trip.
const MOST_GROWTH: f64 = 1.5;

/// Most flows have this owner, and most are idle most of the time. It takes 208 bytes of heap with the allocator's own.
const _: () = assert!(size_of::<Cubic>() <= 200);

#[derive(Debug)]
pub(crate) struct Cubic {
    window: Window,
    /// In thousandths, as β.
    c: u32,
    beta: u32,
    fast_convergence: Switch,
    curve: Curve,
    /// The curve before the last loss, in case that turns out to be no loss.
    curve_before: Seldom<Curve>,
}

/// The windows are in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    w_max: f64,
    /// cwnd before the last reduction.
    w_prior: f64,
    /// After a timeout, or a slow start that ended without loss, the curve begins at its plateau.
    at_plateau: bool,
    stage: Option<AvoidanceStage>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct AvoidanceStage {
    /// The time when it began, moved by all the time in which the window was not filled.
    began: Instant,
    heard: Instant,
    k_s: f64,
    w_est: f64,
    /// Growth that is less than a byte.
    left_over_bytes: f64,
}

impl Cubic {
    /// One with the parameters that a spec leaves out.
    pub(super) fn standard(profile: Profile) -> Cubic {
        Cubic::new(&Args::standard(Params::TABLE, profile))
    }

    fn new(args: &Args) -> Cubic {
        let set = Params::of(args);
        let curve = Curve { at_plateau: true, ..Curve::default() };
        Cubic {
            window: Window::new(set.iw, set.ssthresh, set.abc, set.validate).with_hystart(set.hystart),
            c: set.c,
            beta: set.beta,
            fast_convergence: set.fast_convergence,
            curve,
            curve_before: Seldom::NONE,
        }
    }

    fn c(&self) -> f64 {
        f64::from(self.c) / 1_000.0
    }

    fn beta(&self) -> f64 {
        f64::from(self.beta) / 1_000.0
    }

    /// The stage for an ACK at `now`; a new stage begins if there is none (§4.2, and §4.8 at a plateau).
    fn stage(&mut self, now: Instant, cwnd: f64) -> AvoidanceStage {
        if let Some(stage) = self.curve.stage {
            return stage;
        }
        let c = self.c();
        let curve = &mut self.curve;
        if std::mem::take(&mut curve.at_plateau) || curve.w_max < cwnd {
            curve.w_max = cwnd;
        }
        let k_s = cube_root((curve.w_max - cwnd) / c);
        AvoidanceStage { began: now, heard: now, k_s, w_est: cwnd, left_over_bytes: 0.0 }
    }

    /// Congestion avoidance for one ACK (§4.2 to §4.5).
    fn avoid(&mut self, acked: &Acked, view: &SendView<'_>) {
        let mss = mss_of(view);
        let cwnd = segments(self.window.cwnd(mss), mss);
        let newly = segments(acked.newly.bytes, mss);
        let mut stage = self.stage(acked.now, cwnd);
        stage.heard = acked.now;

        let reno = 3.0 * (1.0 - self.beta()) / (1.0 + self.beta());
        stage.w_est += newly / cwnd * if stage.w_est < self.curve.w_prior { reno } else { 1.0 };

        let t_s = seconds(acked.now.since(stage.began));
        let srtt_s = view.path.rtt.smoothed.map_or(0.0, seconds);
        let wanted = if self.w_cubic(&stage, t_s) < stage.w_est {
            stage.left_over_bytes = 0.0;
            stage.w_est - cwnd
        } else {
            let target = self.w_cubic(&stage, t_s + srtt_s).clamp(cwnd, MOST_GROWTH * cwnd);
            (target - cwnd) / cwnd * newly
        };
        let bytes = stage.left_over_bytes + (wanted * mss as f64).max(0.0);
        let whole = truncate::to_u64(bytes);
        stage.left_over_bytes = bytes - whole as f64;
        self.curve.stage = Some(stage);
        self.window.grow(whole, mss);
    }

    fn w_cubic(&self, stage: &AvoidanceStage, t_s: f64) -> f64 {
        let x = t_s - stage.k_s;
        self.c() * x * x * x + self.curve.w_max
    }

    /// §5.8: the curve stands still while the window is not filled.
    fn stand_still(&mut self, now: Instant) {
        if let Some(stage) = &mut self.curve.stage {
            stage.began += now.since(stage.heard);
            stage.heard = now;
        }
    }

    /// Sets where the curve will flatten, and returns what is left of the window (§4.6 to §4.8).
    fn reduced(&mut self, loss: &Loss, mss: u64) -> u64 {
        let filled = self.window.filled(loss, mss);
        let lost_at = segments(filled, mss);
        let lower = self.fast_convergence == Switch::On && lost_at < self.curve.w_max;
        self.curve_before.set((loss.kind != LossKind::Marked).then_some(self.curve));
        self.curve = Curve {
            w_max: if lower { lost_at * (1.0 + self.beta()) / 2.0 } else { lost_at },
            w_prior: lost_at,
            at_plateau: matches!(loss.kind, LossKind::Timeout { .. }),
            stage: None,
        };
        truncate::to_u64(filled as f64 * self.beta())
    }
}

impl SenderAgent for Cubic {
    ignores!(tune, on_dup_ack, on_path, note);
    by_window!(on_sent, narrow);

    hopwise_core::needs!(rtt);

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        match self.window.on_acked(acked, view) {
            Growth::Avoidance => self.avoid(acked, view),
            Growth::SlowStart => self.curve.stage = None,
            Growth::None => self.stand_still(acked.now),
        }
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        let mss = mss_of(view);
        let kept = matches!(loss.kind, LossKind::Timeout { nth: 2.. }) || is_without_flight(loss);
        let reduced = if kept { self.window.ssthresh(mss) } else { self.reduced(loss, mss) };
        Some(self.window.on_loss(loss, view, reduced))
    }

    fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>) {
        self.window.on_recovered(end, view);
        if end == Recovered::Undone {
            self.curve = self.curve_before.take().unwrap_or(self.curve);
        }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.window.gauges(sink);
        sink("w_max_milli_segments", truncate::to_u64(self.curve.w_max * 1_000.0));
    }
}

fn segments(bytes: u64, mss: u64) -> f64 {
    bytes as f64 / mss as f64
}

fn seconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// ∛x by Newton's method, from + − × ÷ and sqrt alone, so that every target computes equal bits. One third is 1/4 +
/// 1/16 + 1/64 + …, and each of these powers is two square roots more.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let fourth_root = |x: f64| x.sqrt().sqrt();
    let (first, second) = (fourth_root(x), fourth_root(fourth_root(x)));
    let mut root = first * second * fourth_root(second);
    for _ in 0..4 {
        root = (2.0 * root + x / (root * root)) / 3.0;
    }
    root
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::agent::{LossKind, Recovered};

    use super::cube_root;
    use crate::testkit::sender::Bench;

    /// A flow with this window that has just lost a segment and recovered. No data is in flight.
    fn after_loss(segments: u32, rtt: Duration) -> Bench {
        let mut bench = Bench::new(&format!("cubic:iw={segments},ssthresh={segments}")).with_rtt(rtt);
        bench.fill();
        bench.lose(LossKind::Fast);
        bench.recover(Recovered::Full);
        bench
    }

    fn cwnd(bench: &Bench) -> f64 {
        bench.gauge("cwnd_bytes").expect("an owner has a window") as f64 / 1_000.0
    }

    fn run(bench: &mut Bench, time: Duration) {
        let end = bench.now + time;
        while bench.now < end {
            bench.round(2);
        }
    }

    #[test]
    fn cube_roots_are_exact_to_a_billionth() {
        assert_eq!(cube_root(0.0), 0.0);
        let mut x = 1e-9;
        while x < 1e18 {
            let root = cube_root(x);
            assert!((root * root * root / x - 1.0).abs() < 1e-9, "{x}: {root}");
            x *= 1.37;
        }
    }

    #[test]
    fn a_loss_leaves_seven_tenths() {
        let mut bench = Bench::new("cubic:iw=100,ssthresh=100").with_rtt(Duration::from_millis(100));
        bench.fill();
        assert_eq!(bench.lose(LossKind::Fast).ssthresh, 70_000);
        bench.recover(Recovered::Full);
        assert_eq!(bench.allowed_segments(), 70);
    }

    #[test]
    fn the_window_is_back_where_it_was_after_k_seconds_and_flat_there() {
        // K = ∛(0.3 · 1000 / 0.4) = 9.086 s; with an RTT of 200 ms W_est stays far below.
        let mut bench = after_loss(1_000, Duration::from_millis(200));
        run(&mut bench, Duration::from_millis(4_543));
        let half_way = cwnd(&bench);
        assert!((955.0..972.0).contains(&half_way), "{half_way}: 1000 - 0.4 · 4.54³ = 962.5");
        run(&mut bench, Duration::from_millis(4_543));
        let plateau = cwnd(&bench);
        assert!((997.0..1_003.0).contains(&plateau), "{plateau}");
        run(&mut bench, Duration::from_secs(5));
        let beyond = cwnd(&bench);
        assert!((1_045.0..1_070.0).contains(&beyond), "{beyond}: 1000 + 0.4 · 5³ = 1050, an RTT ahead");
    }

    #[test]
    fn on_a_short_path_it_is_no_slower_than_a_standard_sender() {
        // α = 0.529 segments a round trip while W_est is below the window that lost.
        let mut bench = after_loss(20, Duration::from_millis(10));
        assert_eq!(bench.allowed_segments(), 14);
        let rounds = 8;
        (0..rounds).for_each(|_| bench.round(1));
        let grown = cwnd(&bench) - 14.0;
        assert!((3.5..5.0).contains(&grown), "{grown}: 8 · 0.529 = 4.2");
    }

    /// RFC 9438 §4.3: until it reaches the window of the loss, a standard sender with this β gains α = 0.529 segments
    /// in a round trip, and a whole one from there on. K is 2.5 s, so that the curve stays far below.
    #[test]
    fn above_the_window_of_the_last_loss_a_standard_sender_gains_a_segment_a_round() {
        let mut bench = after_loss(20, Duration::from_millis(10));
        let mut grown_in = |rounds: usize| {
            let before = cwnd(&bench);
            (0..rounds).for_each(|_| bench.round(1));
            cwnd(&bench) - before
        };
        let (below, _, above) = (grown_in(8), grown_in(5), grown_in(10));
        assert!(below < 5.0, "{below}");
        assert!((9.0..10.1).contains(&above), "{above}");
    }

    /// RFC 9438 §4.2 bounds the target by cwnd and 1.5 · cwnd.
    #[test]
    fn the_window_grows_by_half_in_a_round_trip_at_the_most() {
        let mut bench = Bench::new("cubic:c=10,iw=20,ssthresh=20").with_rtt(Duration::from_secs(2));
        bench.fill();
        bench.lose(LossKind::Fast);
        bench.recover(Recovered::Full);
        bench.ack(20);
        let growths: Vec<f64> = (0..6)
            .map(|_| {
                let before = cwnd(&bench);
                bench.round(1);
                cwnd(&bench) / before
            })
            .collect();
        assert!(growths.iter().all(|growth| *growth < 1.501), "{growths:?}");
        assert!(growths.iter().any(|growth| *growth > 1.49), "{growths:?}");
    }

    #[test]
    fn a_loss_below_the_last_one_makes_room() {
        let w_max = |bench: &Bench| bench.gauge("w_max_milli_segments").expect("a gauge");
        let mut bench = after_loss(100, Duration::from_millis(100));
        assert_eq!(w_max(&bench), 100_000);
        bench.ack(100);
        (0..3).for_each(|_| bench.round(1));
        let lost_at = (bench.flight.bytes as f64).min(cwnd(&bench) * 1_000.0);
        bench.lose(LossKind::Fast);
        assert!(w_max(&bench).abs_diff((lost_at * 0.85) as u64) <= 1);
    }

    #[test]
    fn after_a_timeout_the_curve_begins_at_its_plateau() {
        let mut bench = after_loss(100, Duration::from_millis(50));
        bench.lose(LossKind::Timeout { nth: 1 });
        bench.recover(Recovered::Full);
        assert_eq!(bench.allowed_segments(), 1);
        (0..12).for_each(|_| bench.round(1));
        assert!(cwnd(&bench) > 49.0, "slow start is over");
        let w_max = bench.gauge("w_max_milli_segments").expect("a gauge") as f64 / 1_000.0;
        assert!(w_max <= cwnd(&bench), "{w_max} is not above the window that slow start ended with");
    }

    #[test]
    fn second_timeout_of_a_series_and_a_lost_syn_leave_the_curve_alone() {
        let w_max = |bench: &Bench| bench.gauge("w_max_milli_segments").expect("a gauge");
        let mut bench = after_loss(100, Duration::from_millis(50));
        assert_eq!(bench.lose(LossKind::Timeout { nth: 1 }).ssthresh, 49_000);
        let curve = w_max(&bench);
        bench.send(1);
        assert_eq!(bench.lose(LossKind::Timeout { nth: 2 }).ssthresh, 49_000);
        assert_eq!(w_max(&bench), curve);

        let mut bench = Bench::new("cubic");
        assert_eq!(bench.lose(LossKind::Timeout { nth: 1 }).ssthresh, u64::MAX);
        assert_eq!(w_max(&bench), 0);
    }

    #[test]
    fn slow_start_counts_bytes() {
        let mut bench = Bench::new("cubic").with_rtt(Duration::from_millis(50));
        bench.fill();
        bench.ack(2);
        assert_eq!(bench.allowed_segments(), 12);
    }

    #[test]
    fn after_growing_round_trips_the_curve_begins_at_its_plateau() {
        let mut bench = Bench::new("cubic:hystart=on").with_rtt(Duration::from_millis(50));
        (0..2).for_each(|_| bench.round(2));
        bench.path.rtt.smoothed = Some(Duration::from_millis(60));
        (0..8).for_each(|_| bench.round(2));
        let ssthresh = bench.gauge("ssthresh_bytes").expect("an owner has a threshold");
        assert!((100_000..300_000).contains(&ssthresh), "{ssthresh}");
        let w_max = bench.gauge("w_max_milli_segments").expect("a gauge");
        assert!(w_max.abs_diff(ssthresh) <= 1_000, "{w_max} and {ssthresh}");
    }

    #[test]
    fn the_curve_stands_still_while_the_application_is_the_limit() {
        let rtt = Duration::from_millis(200);
        let mut busy = after_loss(1_000, rtt);
        run(&mut busy, Duration::from_secs(3));
        let mut paused = after_loss(1_000, rtt);
        run(&mut paused, Duration::from_secs(1));
        paused.app_limited = true;
        run(&mut paused, Duration::from_secs(60));
        paused.app_limited = false;
        run(&mut paused, Duration::from_secs(2));
        let (busy, paused) = (cwnd(&busy), cwnd(&paused));
        assert!((busy - paused).abs() < 10.0, "{busy} and {paused}");
    }

    #[test]
    fn a_loss_that_was_none_gives_window_and_curve_back() {
        let mut bench = after_loss(100, Duration::from_millis(100));
        bench.ack(100);
        (0..5).for_each(|_| bench.round(1));
        let curve = |bench: &Bench| (bench.gauge("cwnd_bytes"), bench.gauge("w_max_milli_segments"));
        let before = curve(&bench);
        bench.lose(LossKind::Timeout { nth: 1 });
        bench.lose(LossKind::Timeout { nth: 2 });
        assert_ne!(curve(&bench), before);
        bench.recover(Recovered::Undone);
        assert_eq!(curve(&bench), before);
    }

    #[test]
    fn what_a_mark_took_is_not_given_back() {
        let mut bench = after_loss(100, Duration::from_millis(100));
        bench.lose(LossKind::Marked);
        let curve = |bench: &Bench| (bench.gauge("cwnd_bytes"), bench.gauge("w_max_milli_segments"));
        let marked = curve(&bench);
        bench.recover(Recovered::Undone);
        assert_eq!(curve(&bench), marked);
    }

    #[test]
    fn another_agents_limit_is_the_window_that_a_loss_takes_from() {
        let mut bench = Bench::new("[cubic, limit:10]").with_rtt(Duration::from_millis(100));
        (0..20).for_each(|_| bench.round(1));
        assert_eq!(bench.lose(LossKind::Fast).ssthresh, 7_000);
    }
}
