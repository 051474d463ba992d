//! `limit:n`: at most n segments in flight.
//!
//! Source: the papers compare their own agents with TCP whose window is limited to 4. Fu et al. showed that a chain of
//! h hops carries no more than about h/4 segments at a time. Further segments only collide.
//!
//! Rule: the allowance of the agents before it, but never more than n segments of the current MSS. With `burst`, an ACK
//! lets at most so many segments leave: the flight that it finds and `burst` more are allowed until the next ACK. What
//! it holds back, the next ACK may let leave. TCP-DCA (section VI) asks for such a limit and names no number.
//!
//! Deviations: what leaves before the first ACK is no burst of an ACK, and only n limits it. A tail loss probe may be
//! one segment beyond the limit, as it may be beyond cwnd (RFC 8985 §7.3). Without SACK there is no such probe.

use hopwise_core::Instant;
use hopwise_core::agent::{Acked, Allowance, DupAck, FastRetransmit, SendView, SenderAgent};
use hopwise_core::ignores;

use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};

params! {
    /// the most that may be in flight
    n: u64 = Form::count("segments", 1, 65_535).required(),
    /// the most that one ACK lets leave
    burst: Option<u64> = Form::count("segments", 1, 65_535).unset("unlimited"),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "limit",
    rule: "allows at most n segments in flight, and at most a burst to leave for an ACK",
    source: "the papers' window limit",
    params: Params::TABLE,
    shorthand: Some("n"),
    make: Make::Narrower(|args| Box::new(Limit { set: Params::of(args), found_bytes: None })),
};

#[derive(Debug)]
pub(crate) struct Limit {
    set: Params,
    /// The flight that the last ACK found; `None` before the first.
    found_bytes: Option<u64>,
}

impl SenderAgent for Limit {
    ignores!(tune, on_sent, on_loss, on_recovered, on_path, note);

    fn on_acked(&mut self, _: &Acked, view: &SendView<'_>) {
        self.found_bytes = Some(view.flight.bytes);
    }

    fn on_dup_ack(&mut self, _: &DupAck, view: &SendView<'_>) -> Option<FastRetransmit> {
        self.found_bytes = Some(view.flight.bytes);
        None
    }

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let mss = u64::from(view.mss.max(1));
        let of_burst = self.found_bytes.zip(self.set.burst).map(|(found, burst)| found + burst * mss);
        let most_bytes = (self.set.n * mss).min(of_burst.unwrap_or(u64::MAX));
        Allowance { flight_bytes: so_far.flight_bytes.min(most_bytes), ..so_far }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("limit_segments", self.set.n);
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::agent::{Allowance, CWND_GAUGE, LossKind};
    use proptest::prelude::*;

    use crate::testkit::sender::{Bench, MSS};

    #[test]
    fn the_window_opens_to_the_limit_and_no_further() {
        let mut bench = Bench::new("[newreno, limit:4]");
        assert_eq!(bench.allowed_segments(), 4);
        assert_eq!(bench.fill(), 4);
        assert_eq!(bench.fill(), 0);
        bench.ack(1);
        assert_eq!(bench.fill(), 1);
    }

    #[test]
    fn a_narrower_window_stays_as_it_is() {
        let mut bench = Bench::new("[newreno:iw=3, limit:4]");
        assert_eq!(bench.allowed_segments(), 3);
    }

    #[test]
    fn the_limit_follows_the_mss_and_leaves_pacing_alone() {
        let mut bench = Bench::new("[newreno, limit:4]");
        bench.mss = 500;
        let so_far = Allowance { new_from: hopwise_core::Instant(7), ..Allowance::UNLIMITED };
        assert_eq!(bench.narrowed(so_far), Allowance { flight_bytes: 2_000, ..so_far });
    }

    #[test]
    fn an_ack_lets_a_burst_leave_and_the_next_one_lets_what_was_held_back() {
        let mut bench = Bench::new("[newreno:iw=8, \"limit:20,burst=2\"]");
        assert_eq!(bench.fill(), 8, "no ACK has come");
        bench.ack(5);
        assert_eq!((bench.fill(), bench.fill()), (2, 0));
        bench.ack(1);
        assert_eq!(bench.fill(), 2);
        bench.flight.bytes -= u64::from(bench.mss);
        bench.dup_ack(1, None);
        assert_eq!(
            bench.allowed().flight_bytes,
            bench.flight.bytes + 2 * u64::from(bench.mss),
            "a duplicate"
        );
    }

    #[test]
    fn after_a_timeout_and_an_idle_time_a_burst_may_leave() {
        let mut bench = Bench::new("[newreno:iw=8, \"limit:20,burst=3\"]");
        bench.fill();
        bench.ack(8);
        assert_eq!(bench.fill(), 3);
        bench.lose(LossKind::Timeout { nth: 1 });
        assert_eq!(bench.allowed_segments(), 1, "newreno begins again");
        bench.send(1);
        bench.ack(1);
        assert_eq!(bench.fill(), 2, "newreno allows two");
    }

    proptest! {
        /// Whatever an ACK covers, at most a burst leaves, and less only where the limit or cwnd is reached.
        #[test]
        fn no_ack_lets_more_leave_than_a_burst(
            acks in prop::collection::vec(0..12u32, 1..60),
            n in 1..40u64,
            burst in 1..12u64,
        ) {
            let mut bench = Bench::new(&format!("[newreno:iw=30, \"limit:{n},burst={burst}\"]"));
            prop_assert_eq!(u64::from(bench.fill()), n.min(30));
            for segments in acks {
                bench.ack(segments);
                let left = u64::from(bench.fill());
                prop_assert!(left <= burst, "{} segments", left);
                let window = bench.gauge(CWND_GAUGE).expect("a gauge") / u64::from(MSS);
                let flight = u64::from(bench.flight.segments);
                prop_assert!(left == burst || flight >= window.min(n), "{left} of {burst}: {flight} in flight");
            }
        }
    }
}
