//! `copa`: steers towards a rate at which 1/δ segments of the flow wait in the queue.
//!
//! Source: Arun and Balakrishnan, *Copa: Practical Delay-Based Congestion Control for the Internet* (NSDI 2018).
//!
//! Rule: the standing RTT is the least of half a smoothed RTT. What it has above the least RTT of 10 s is the queueing
//! delay d. The target rate is 1/(δ · d), with δ = .5. While the window over the standing RTT is below it, each
//! acknowledged segment adds v/(δ · window) segments; above it, it takes as much. Velocity v doubles with each window
//! in the same direction from the third one on, and is 1 after a turn. In the beginning the window doubles each round
//! trip, until its rate is above the target. Segments leave at twice the window per standing RTT. The mode is
//! competitive while the queue has not been nearly empty for five round trips: d below a tenth of what the highest RTT
//! of four round trips has above the least. There 1/δ grows by 1 each round trip and halves with a loss, down to 2. A
//! loss changes nothing else.
//!
//! Deviations: a segment adds at most a segment, whatever v is: the window no more than doubles in a round trip. A
//! window that the application does not fill stays as it is. The first window leaves at once, no window is below two
//! segments, and v doubles in the beginning, too. The paper leaves timeouts open: the window begins again with one
//! segment, as in the beginning.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::agent::{
    Acked, Allowance, CWND_GAUGE, Loss, LossKind, Recovered, Reduction, SendView, SenderAgent, Sent,
};
use hopwise_core::{Instant, Seq, ignores};

use super::window::{initial_window, mss_of};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};
use crate::truncate;

params! {
    /// initial window
    iw: u32 = Form::count("segments", 1, 1_000).is(10),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "copa",
    rule: "steers towards a rate at which two of its segments wait in the queue; more beside flows that fill it",
    source: "Copa (Arun, Balakrishnan; NSDI 2018)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Owner(|args| Box::new(Copa::new(Params::of(args).iw))),
};

/// 1/δ of the default mode, and the least one of the competitive mode.
const INVERSE_DELTA: f64 = 2.0;
/// The time for which the least RTT holds.
const MEMORY: Duration = Duration::from_secs(10);
/// Round trips without a nearly empty queue that show other flows.
const EMPTY_WITHIN: u32 = 5;
/// Round trips of the highest RTT.
const HIGHEST_OF: u32 = 4;
/// The part of the highest queueing delay below which a queue is nearly empty.
const NEARLY_EMPTY: f64 = 0.1;
/// Windows in one direction before the velocity doubles.
const STEADY_WINDOWS: u32 = 3;
/// Pacing in windows per standing RTT.
const PACE: f64 = 2.0;
/// Room for round trips that rise one after the other.
const MOST_VALUES: usize = 512;

#[derive(Debug)]
pub(crate) struct Copa {
    iw: u32,
    /// In bytes; none before the first ACK or loss.
    cwnd: Option<f64>,
    before_loss: Option<f64>,
    is_starting: bool,
    least: Lowest,
    standing: Lowest,
    /// Of negated samples.
    highest: Lowest,
    standing_s: Option<f64>,
    inverse_delta: f64,
    emptied: Option<Instant>,
    round: Round,
    next_send: Instant,
}

/// A window of data, at whose end the velocity changes.
#[derive(Debug)]
struct Round {
    until: Option<Seq>,
    cwnd: f64,
    velocity: f64,
    is_up: bool,
    /// Windows in a row in this direction.
    same: u32,
    has_lost: bool,
}

impl Copa {
    fn new(iw: u32) -> Copa {
        let lowest = || Lowest(VecDeque::with_capacity(MOST_VALUES));
        let round = Round { until: None, cwnd: 0.0, velocity: 1.0, is_up: true, same: 0, has_lost: false };
        Copa {
            iw,
            cwnd: None,
            before_loss: None,
            is_starting: true,
            least: lowest(),
            standing: lowest(),
            highest: lowest(),
            standing_s: None,
            inverse_delta: INVERSE_DELTA,
            emptied: None,
            round,
            next_send: Instant::ZERO,
        }
    }

    fn window(&self, mss: u64) -> f64 {
        self.cwnd.unwrap_or(initial_window(self.iw, mss) as f64)
    }

    /// Queueing delay and standing RTT after this sample, in seconds.
    fn measure(&mut self, now: Instant, rtt: Duration, view: &SendView<'_>) -> (f64, f64) {
        let (rtt_s, smoothed) = (rtt.as_secs_f64(), view.path.rtt.smoothed.unwrap_or(rtt));
        let least = self.least.take(now, rtt_s, MEMORY);
        let standing = self.standing.take(now, rtt_s, smoothed / 2);
        let highest = -self.highest.take(now, -rtt_s, HIGHEST_OF * smoothed);
        self.standing_s = Some(standing);
        let queued = standing - least;
        if queued <= NEARLY_EMPTY * (highest - least) || self.emptied.is_none() {
            self.emptied = Some(now);
        }
        let is_competitive = self.emptied.is_some_and(|at| now.since(at) > EMPTY_WITHIN * smoothed);
        if !is_competitive {
            self.inverse_delta = INVERSE_DELTA;
        } else if self.round.until.is_some_and(|until| until <= view.snd_una) && !self.round.has_lost {
            self.inverse_delta += 1.0;
        }
        (queued, standing)
    }

    fn end_round(&mut self, view: &SendView<'_>) {
        let cwnd = self.window(mss_of(view));
        let is_up = cwnd > self.round.cwnd;
        self.round.same = if is_up == self.round.is_up { self.round.same + 1 } else { 0 };
        self.round.velocity = if self.round.same < STEADY_WINDOWS { 1.0 } else { 2.0 * self.round.velocity };
        (self.round.is_up, self.round.cwnd, self.round.has_lost) = (is_up, cwnd, false);
        self.round.until = Some(view.snd_nxt);
    }
}

impl SenderAgent for Copa {
    ignores!(tune, on_dup_ack, on_path, note);

    hopwise_core::needs!(rtt);

    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.round.until.get_or_insert(view.snd_nxt);
        let Some(standing_s) = self.standing_s else { return };
        let takes_s = sent.carried.bytes as f64 * standing_s / (PACE * self.window(mss_of(view)));
        self.next_send = self.next_send.max(sent.now) + Duration::from_secs_f64(takes_s);
    }

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        let Some(rtt) = acked.rtt.filter(|rtt| !rtt.is_zero()) else { return };
        let mss = mss_of(view) as f64;
        let (queued_s, standing_s) = self.measure(acked.now, rtt, view);
        let cwnd = self.window(mss_of(view));
        let is_below = cwnd / mss * queued_s <= self.inverse_delta * standing_s;
        let newly = (acked.newly.bytes + acked.sacked.bytes) as f64;
        let step = newly * (self.round.velocity * self.inverse_delta * mss / cwnd).min(1.0);
        self.is_starting &= is_below;
        let change = match (self.is_starting, is_below) {
            (_, true) if view.app_limited => 0.0,
            (true, _) => newly,
            (false, true) => step,
            (false, false) => -step,
        };
        self.cwnd = Some((cwnd + change).max(2.0 * mss));
        if self.round.until.is_some_and(|until| until <= view.snd_una) {
            self.end_round(view);
        }
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        let mss = mss_of(view);
        let cwnd = self.window(mss);
        self.before_loss = Some(cwnd);
        self.round.has_lost = true;
        self.inverse_delta = (self.inverse_delta / 2.0).max(INVERSE_DELTA);
        if let LossKind::Timeout { .. } = loss.kind {
            (self.cwnd, self.is_starting) = (Some(mss as f64), true);
        }
        Some(Reduction { ssthresh: truncate::to_u64(cwnd).max(2 * mss) })
    }

    fn on_recovered(&mut self, end: Recovered, _: &SendView<'_>) {
        let before = self.before_loss.take().filter(|_| end == Recovered::Undone);
        self.cwnd = before.map_or(self.cwnd, |before| self.cwnd.map(|cwnd| cwnd.max(before)));
    }

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let mss = mss_of(view);
        let window = truncate::to_u64(self.window(mss)).max(mss);
        so_far.narrowed(window, self.next_send, view.mss.max(1))
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        if let Some(cwnd) = self.cwnd {
            sink(CWND_GAUGE, truncate::to_u64(cwnd));
        }
        sink("inverse_delta", truncate::to_u64(self.inverse_delta));
    }
}

/// The lowest value within a time that may change: each value that a later and lower one does not hide. Of more values
/// than there is room for, a new one takes the place of the latest.
#[derive(Debug)]
struct Lowest(VecDeque<(Instant, f64)>);

impl Lowest {
    fn take(&mut self, now: Instant, value: f64, within: Duration) -> f64 {
        while self.0.len() == MOST_VALUES || self.0.back().is_some_and(|(_, last)| *last >= value) {
            self.0.pop_back();
        }
        self.0.push_back((now, value));
        while self.0.len() > 1 && self.0.front().is_some_and(|(at, _)| now.since(*at) > within) {
            self.0.pop_front();
        }
        self.0.front().map_or(value, |(_, lowest)| *lowest)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::agent::{LossKind, Recovered};

    use crate::testkit::sender::{Bench, Bottleneck};

    const BASE: Duration = Duration::from_millis(100);

    fn gauge(bench: &Bench, name: &str) -> u64 {
        bench.gauge(name).expect("a gauge")
    }

    /// A flow that has found the rate of a path that holds this many segments.
    fn settled(path_segments: u32) -> (Bench, Bottleneck) {
        let mut bench = Bench::new("copa").with_rtt(BASE);
        let mut path = Bottleneck::new(BASE, BASE / path_segments);
        path.carry(&mut bench, 20_000);
        (bench, path)
    }

    /// The paper: between none and 2.5/δ.
    #[test]
    fn about_two_segments_of_a_flow_wait_on_average_and_the_queue_empties() {
        let (mut bench, mut path) = settled(100);
        let queued: Vec<_> = (0..2_000).map(|_| path.carry(&mut bench, 1)).collect();
        let mean = f64::from(queued.iter().sum::<u32>()) / queued.len() as f64;
        assert!((1.0..3.0).contains(&mean), "{mean}");
        assert!(queued.contains(&0) && queued.iter().all(|queued| *queued <= 5), "{queued:?}");
        assert_eq!(gauge(&bench, "inverse_delta"), 2, "no other flow");
    }

    #[test]
    fn the_rate_is_that_of_the_bottleneck() {
        let (mut bench, mut path) = settled(50);
        let began = bench.now;
        path.carry(&mut bench, 5_000);
        let took = bench.now.since(began).as_secs_f64();
        assert!((9.9..10.5).contains(&took), "5000 segments at 500 a second took {took} s");
    }

    #[test]
    fn a_queue_takes_two_segments_in_a_round_trip_and_ever_more_after_some() {
        let (mut bench, _) = settled(50);
        bench.path.rtt.smoothed = Some(BASE * 2);
        bench.round(1);
        let window = gauge(&bench, "cwnd_bytes");
        bench.round(1);
        let lost = window - gauge(&bench, "cwnd_bytes");
        assert!((1_800..=2_200).contains(&lost), "{lost} bytes");
        let halved = (2..20).find(|_| {
            bench.round(1);
            gauge(&bench, "cwnd_bytes") < window / 2
        });
        assert!(halved.is_some_and(|rounds| rounds < 9), "13 at a steady velocity: {halved:?}");
    }

    #[test]
    fn beside_a_queue_that_never_empties_one_over_delta_grows_until_a_loss_halves_it() {
        let (mut bench, _) = settled(50);
        for nth in 0..40 {
            bench.path.rtt.smoothed = Some(BASE * 2 + BASE / 100 * (nth % 3));
            bench.round(1);
        }
        let grown = gauge(&bench, "inverse_delta");
        assert!(grown > 10, "{grown}");
        bench.fill();
        bench.lose(LossKind::Fast);
        assert_eq!(gauge(&bench, "inverse_delta"), grown / 2);
    }

    #[test]
    fn a_loss_takes_no_window_and_a_timeout_begins_again_unless_it_was_none() {
        let (mut bench, _) = settled(20);
        let window = bench.allowed_segments();
        assert_eq!(bench.lose(LossKind::Fast).ssthresh / 1_000, window);
        bench.recover(Recovered::Full);
        assert_eq!(bench.allowed_segments(), window);
        bench.lose(LossKind::Timeout { nth: 1 });
        assert_eq!(bench.allowed_segments(), 1);
        bench.recover(Recovered::Undone);
        assert_eq!(bench.allowed_segments(), window);
    }
}
