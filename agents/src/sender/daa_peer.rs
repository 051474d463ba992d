//! `daa-peer`: the settings that TCP-DAA's receiver needs at the sender.
//!
//! Source: de Oliveira and Braun, *A Dynamic Adaptive Acknowledgment Strategy for TCP over Multihop Wireless
//! Networks* (INFOCOM 2005). The receiver is `daa`.
//!
//! Rule: at most `n` segments are in flight, and `dups` duplicate ACKs are a loss. The RTO, its floor included, is
//! multiplied by `rto-factor`. With so few ACKs each one matters more, and comes later.
//!
//! Deviations: none.

use hopwise_core::Instant;
use hopwise_core::agent::{Allowance, SendView, SenderAgent, Tunables};
use hopwise_core::ignores;

use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, params};

params! {
    /// the most that may be in flight
    n: u64 = Form::count("segments", 1, 65_535).is(4),
    /// duplicate ACKs that are a loss
    dups: u8 = Form::count("ACKs", 1, 255).is(2),
    /// factor of the RTO
    rto_factor as "rto-factor": u8 = Form::count("RTOs", 1, 100).is(5),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "daa-peer",
    rule: "allows 4 segments in flight, takes 2 duplicate ACKs for a loss, and waits 5 RTOs",
    source: "TCP-DAA (de Oliveira and Braun 2005)",
    params: Params::TABLE,
    shorthand: None,
    make: Make::Narrower(|args| Box::new(DaaPeer(Params::of(args)))),
};

#[derive(Debug)]
pub(crate) struct DaaPeer(Params);

impl SenderAgent for DaaPeer {
    ignores!(on_sent, on_acked, on_dup_ack, on_loss, on_recovered, on_path, note);

    fn tune(&self, tunables: &mut Tunables) {
        tunables.dup_threshold = self.0.dups;
        tunables.rto_factor = self.0.rto_factor;
    }

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let most_bytes = self.0.n * u64::from(view.mss.max(1));
        Allowance { flight_bytes: so_far.flight_bytes.min(most_bytes), ..so_far }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("limit_segments", self.0.n);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::agent::{FastEnd, Tunables};

    use crate::testkit::sender::Bench;

    #[test]
    fn it_is_a_window_of_four_two_duplicate_acks_and_five_rtos() {
        let mut bench = Bench::new("[newreno, daa-peer]");
        assert_eq!(bench.fill(), 4);
        let rto_min = Duration::from_millis(200);
        let fast_end = FastEnd::FullAck;
        let tuned = Tunables { dup_threshold: 2, rto_min, rto_factor: 5, rto_held: 0, fast_end };
        assert_eq!(bench.tunables(), tuned);
    }

    #[test]
    fn each_of_them_is_a_setting() {
        let mut bench = Bench::new("[newreno, \"daa-peer:n=6,dups=3,rto-factor=1\"]");
        assert_eq!(bench.fill(), 6);
        assert_eq!((bench.tunables().dup_threshold, bench.tunables().rto_factor), (3, 1));
    }

    #[test]
    fn a_narrower_window_stays_as_it_is() {
        assert_eq!(Bench::new("[newreno, limit:3, daa-peer]").allowed_segments(), 3);
    }
}
