//! `vegas`: keeps one to three segments in the queue of the slowest link.
//!
//! Source: Brakmo and Peterson, *TCP Vegas: End to End Congestion Avoidance on a Global Internet* (IEEE Journal on
//! Selected Areas in Communications 13, 1995).
//!
//! Rule: once a round trip, diff is what the window has more than the path holds at the least RTT: window · (1 −
//! least/RTT), in segments. Below α = 1 the window grows by a segment, above β = 3 it shrinks by one. Slow start
//! doubles the window every other round trip. It ends once diff exceeds γ = 1, and gives an eighth of the window back.
//! A loss leaves three quarters of what was in flight, and a timeout begins again with one segment.
//!
//! Deviations: the RTT is the least sample of the round trip, as in Linux. The paper has one segment's alone, which a
//! held ACK may delay. The connection finds losses itself, by SACK and by time, instead of by the paper's fine-grained
//! timer. Diff is of the window, and not of the bytes that left in the round trip. A mark counts as a loss. A timeout
//! begins with one segment, and not with two. A window that is not filled stays as it is.

use std::time::Duration;

use hopwise_core::agent::{
    Acked, Allowance, Loss, LossKind, Recovered, Reduction, SendView, SenderAgent, Sent,
};
use hopwise_core::{Instant, Seq, ignores};

use super::window::{Growth, IW, SSTHRESH, VALIDATE, Window, by_window, mss_of};
use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Switch, params};

params! {
    iw: u32 = IW,
    ssthresh: Option<u32> = SSTHRESH,
    validate: Switch = VALIDATE,
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "vegas",
    rule: "keeps one to three segments in the queue, by the RTT above the least one",
    source: "TCP Vegas (Brakmo, Peterson)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Owner(|args| Box::new(Vegas::new(args))),
};

const ALPHA: f64 = 1.0;
const BETA: f64 = 3.0;
const GAMMA: f64 = 1.0;

#[derive(Debug)]
pub(crate) struct Vegas {
    window: Window,
    /// The least round trip of the connection.
    base: Option<Duration>,
    /// The least one of this round.
    least: Option<Duration>,
    /// The round ends when this is acknowledged.
    until: Option<Seq>,
    /// True in the rounds in which slow start grows.
    grows: bool,
}

impl Vegas {
    fn new(args: &Args) -> Vegas {
        let set = Params::of(args);
        let window = Window::new(set.iw, set.ssthresh, Switch::Off, set.validate);
        Vegas { window, base: None, least: None, until: None, grows: true }
    }

    fn is_in_slow_start(&self, mss: u64) -> bool {
        self.window.cwnd(mss) < self.window.ssthresh(mss)
    }

    fn end_round(&mut self, growth: Growth, view: &SendView<'_>) {
        let mss = mss_of(view);
        self.until = Some(view.snd_nxt);
        let (Some(base), Some(rtt)) = (self.base, self.least.take()) else { return };
        let cwnd = self.window.cwnd(mss);
        let diff = cwnd as f64 / mss as f64 * (1.0 - base.as_secs_f64() / rtt.as_secs_f64());
        if self.is_in_slow_start(mss) {
            self.grows = !self.grows;
            if diff > GAMMA {
                self.window.shrink(cwnd / 8, mss);
            }
        } else if growth == Growth::Avoidance {
            if diff < ALPHA {
                self.window.grow(mss, mss);
            } else if diff > BETA {
                self.window.shrink(mss, mss);
            }
        }
    }
}

impl SenderAgent for Vegas {
    ignores!(tune, on_dup_ack, on_path, note);
    by_window!(on_recovered, narrow, gauges);

    hopwise_core::needs!(rtt);

    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.until.get_or_insert(view.snd_nxt);
        self.window.on_sent(sent, view);
    }

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        if let Some(rtt) = acked.rtt.filter(|rtt| !rtt.is_zero()) {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        }
        let mut seen = *acked;
        if !self.grows && self.is_in_slow_start(mss_of(view)) {
            seen.newly.bytes = 0;
        }
        let growth = self.window.on_acked(&seen, view);
        if self.until.is_some_and(|until| until <= view.snd_una) {
            self.end_round(growth, view);
        }
    }

    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction> {
        let mss = mss_of(view);
        let flight = loss.flight_before.bytes.min(self.window.cwnd(mss));
        let reduced = match loss.kind {
            LossKind::Timeout { nth: 2.. } => self.window.ssthresh(mss),
            LossKind::Timeout { .. } => flight / 2,
            LossKind::Fast | LossKind::Marked => flight * 3 / 4,
        };
        Some(self.window.on_loss(loss, view, reduced))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::agent::{LossKind, Recovered};

    use crate::testkit::sender::{Bench, Bottleneck};

    const BASE: Duration = Duration::from_millis(100);

    fn at(rtt: Duration, rounds: u32, bench: &mut Bench) {
        bench.path.rtt.smoothed = Some(rtt);
        (0..rounds).for_each(|_| bench.round(1));
    }

    fn segments(bench: &Bench) -> u64 {
        bench.gauge("cwnd_bytes").expect("an owner has a window") / 1_000
    }

    /// A flow with a window of 20 that has left slow start, on a path without a queue.
    fn steady() -> Bench {
        let mut bench = Bench::new("vegas:iw=20,ssthresh=20").with_rtt(BASE);
        bench.round(1);
        bench
    }

    #[test]
    fn one_flow_keeps_one_to_three_segments_in_the_queue_of_a_bottleneck() {
        for path_segments in [4, 20, 50] {
            let mut bench = Bench::new("vegas").with_rtt(BASE);
            let mut path = Bottleneck::new(BASE, BASE / path_segments);
            path.carry(&mut bench, 20_000);
            // The empty path holds its segments, and the one that the link is sending.
            let holds = u64::from(path_segments) + 1;
            for _ in 0..50 {
                path.carry(&mut bench, 20);
                let queued = segments(&bench).saturating_sub(holds);
                assert!((1..=3).contains(&queued), "{path_segments}: {queued}");
            }
        }
    }

    #[test]
    fn the_window_grows_below_alpha_and_shrinks_above_beta_by_a_segment_in_a_round() {
        let mut bench = steady();
        // The first ACK at another RTT ends a round of the RTT before.
        let mut change = |rtt, rounds| {
            at(rtt, 1, &mut bench);
            let before = segments(&bench);
            at(rtt, rounds, &mut bench);
            i64::try_from(segments(&bench)).expect("small") - i64::try_from(before).expect("small")
        };
        assert_eq!(change(BASE, 3), 3);
        // Of about 25 segments, two are queued where the RTT is 25/23 of the least.
        assert_eq!(change(BASE * 25 / 23, 5), 0);
        assert_eq!(change(BASE * 2, 4), -4);
    }

    #[test]
    fn slow_start_doubles_every_other_round_and_ends_with_the_first_queue() {
        let mut bench = Bench::new("vegas:iw=4").with_rtt(BASE);
        at(BASE, 6, &mut bench);
        let window = segments(&bench);
        assert!((24..=40).contains(&window), "{window}: three times in six rounds");
        at(BASE * 3 / 2, 2, &mut bench);
        let ended = segments(&bench);
        assert!(bench.gauge("ssthresh_bytes") < Some(u64::MAX));
        at(BASE * 3 / 2, 3, &mut bench);
        assert!(segments(&bench) <= ended, "{ended}");
    }

    #[test]
    fn a_loss_leaves_three_quarters_and_a_timeout_half_as_threshold() {
        let mut bench = steady();
        bench.fill();
        let flight = bench.flight.bytes;
        assert_eq!(bench.lose(LossKind::Fast).ssthresh, flight * 3 / 4);
        bench.recover(Recovered::Undone);
        assert_eq!(bench.lose(LossKind::Timeout { nth: 1 }).ssthresh, flight / 2);
        assert_eq!(bench.allowed_segments(), 1);
    }
}
