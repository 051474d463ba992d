//! `limit:n`: at most n segments in flight.
//!
//! Source: the papers compare their own agents with TCP whose window is limited to 4. Fu et al. showed that a chain of
//! h hops carries no more than about h/4 segments at a time. Further segments only collide.
//!
//! Rule: the allowance of the agents before it, but never more than n segments of the current MSS.
//!
//! Deviations: a tail loss probe may be one segment beyond the limit, as it may be beyond cwnd (RFC 8985 §7.3). Without
//! SACK there is no such probe.

use hopwise_core::Instant;
use hopwise_core::agent::{Allowance, SendView, SenderAgent};
use hopwise_core::ignores;

use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};

params! {
    /// the most that may be in flight
    n: u64 = Form::count("segments", 1, 65_535).required(),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "limit",
    rule: "allows at most n segments in flight",
    source: "the papers' window limit",
    params: Params::TABLE,
    shorthand: Some("n"),
    make: Make::Narrower(|args| Box::new(Limit(Params::of(args)))),
};

#[derive(Debug)]
pub(crate) struct Limit(Params);

impl SenderAgent for Limit {
    ignores!(tune, on_sent, on_acked, on_dup_ack, on_loss, on_recovered, on_path, note);

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let most_bytes = self.0.n * u64::from(view.mss.max(1));
        Allowance { flight_bytes: so_far.flight_bytes.min(most_bytes), ..so_far }
    }

    hopwise_core::gauges!(agent => "limit_segments": agent.0.n);
}

#[cfg(test)]
mod tests {
    use hopwise_core::agent::Allowance;

    use crate::testkit::sender::Bench;

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
}
