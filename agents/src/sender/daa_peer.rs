//! `daa-peer`: what TCP-DAA's receiver needs of its sender.
//!
//! Source: de Oliveira and Braun, *A Dynamic Adaptive Acknowledgment Strategy for TCP over Multihop Wireless
//! Networks* (INFOCOM 2005). The receiver is `daa`.
//!
//! Rule: at most `n` segments are in flight, `dups` duplicate ACKs are a loss, and the RTO is `rto-factor`
//! times as long, after its floor: with so few ACKs each of them says more, and comes later.
//!
//! | parameter | unit | default | meaning |
//! |---|---|---|---|
//! | n | segments | 4 | the most that may be in flight |
//! | dups | ACKs | 2 | duplicate ACKs that are a loss |
//! | rto-factor | times | 5 | what the RTO is multiplied by |
//!
//! Deviations: none.

use hopwise_core::Instant;
use hopwise_core::agent::{Allowance, Needs, SendView, SenderAgent, Tunables};
use hopwise_core::ignores;

use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, Param, Value};

pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "daa-peer",
    rule: "allows 4 segments in flight, takes 2 duplicate ACKs for a loss, and waits 5 RTOs",
    source: "TCP-DAA (de Oliveira and Braun 2005)",
    params: &[
        Param::new(
            "n",
            Form::count("segments", 1, 65_535),
            Value::Count(4),
            "the most that may be in flight",
        ),
        Param::new("dups", Form::count("ACKs", 1, 255), Value::Count(2), "duplicate ACKs that are a loss"),
        Param::new(
            "rto-factor",
            Form::count("RTOs", 1, 100),
            Value::Count(5),
            "what the RTO is multiplied by",
        ),
    ],
    shorthand: None,
    make: Make::Narrower(|args| Box::new(DaaPeer::new(args))),
};

#[derive(Debug)]
pub struct DaaPeer {
    segments: u64,
    dup_threshold: u8,
    rto_factor: u8,
}

impl DaaPeer {
    fn new(args: &Args) -> DaaPeer {
        let small = |name: &str| u8::try_from(args.count(name)).unwrap_or(u8::MAX);
        DaaPeer { segments: args.count("n"), dup_threshold: small("dups"), rto_factor: small("rto-factor") }
    }
}

impl SenderAgent for DaaPeer {
    ignores!(on_sent, on_acked, on_dup_ack, on_loss, on_recovered, on_path, note, turn, share);

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn tune(&self, tunables: &mut Tunables) {
        tunables.dup_threshold = self.dup_threshold;
        tunables.rto_factor = self.rto_factor;
    }

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let most_bytes = self.segments * u64::from(view.mss.max(1));
        Allowance { flight_bytes: so_far.flight_bytes.min(most_bytes), ..so_far }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("limit_segments", self.segments);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::agent::Tunables;

    use crate::testkit::sender::Bench;

    #[test]
    fn it_is_a_window_of_four_two_duplicate_acks_and_five_rtos() {
        let mut bench = Bench::new("[newreno, daa-peer]");
        assert_eq!(bench.fill(), 4);
        let rto_min = Duration::from_millis(200);
        assert_eq!(bench.tunables(), Tunables { dup_threshold: 2, rto_min, rto_factor: 5, rto_held: 0 });
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
