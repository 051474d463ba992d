//! `paced`: spreads a window over a round trip.
//!
//! Source: RFC 9438 and RFC 9002 advise to pace. On a chain a burst collides with itself two hops on.
//!
//! Rule: after a segment has left, the next one waits SRTT / max(1, ⌊allowed flight / MSS⌋). The allowed flight is what
//! the agents before it in the list leave. A transmission of k segments is followed by k such waits. New data and
//! retransmissions are spaced alike.
//!
//! Parameters: none.
//! Deviations: nothing is paced before an RTT is known. In fast recovery the allowed flight is what recovery grants.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{Allowance, SendView, SenderAgent, Sent};
use hopwise_core::ignores;

use crate::descriptor::{Descriptor, Make};

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "paced",
    rule: "spaces segments by SRTT / max(1, allowed flight in segments)",
    source: "RFC 9438 §4.2 names the need, RFC 9002 §7.7 the rule",
    params: &[],
    shorthand: None,
    make: Make::Narrower(|_| Box::new(Paced { last: None })),
};

#[derive(Debug)]
pub(crate) struct Paced {
    last: Option<(Instant, u32)>,
}

impl SenderAgent for Paced {
    ignores!(tune, on_acked, on_dup_ack, on_loss, on_recovered, on_path, note);

    hopwise_core::needs!(rtt);

    fn on_sent(&mut self, sent: &Sent, _: &SendView<'_>) {
        self.last = Some((sent.now, sent.carried.segments.max(1)));
    }

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let Some(srtt) = view.path.rtt.smoothed else { return so_far };
        let mss = view.mss.max(1);
        let so_far = Allowance { burst_bytes: so_far.burst_bytes.min(mss), ..so_far };
        let Some((sent_at, segments)) = self.last else { return so_far };
        let window = (so_far.flight_bytes / u64::from(mss)).max(1);
        let srtt_ns = u64::try_from(srtt.as_nanos()).unwrap_or(u64::MAX);
        let wait_ns = srtt_ns.saturating_mul(u64::from(segments)) / window;
        let from = sent_at + Duration::from_nanos(wait_ns);
        Allowance { new_from: so_far.new_from.max(from), resend_from: so_far.resend_from.max(from), ..so_far }
    }

    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::Instant;
    use hopwise_core::agent::{Allowance, LossKind, SentKind};

    use crate::testkit::sender::{Bench, MSS};

    const RTT: Duration = Duration::from_millis(80);

    #[test]
    fn segments_are_spaced_by_a_share_of_the_round_trip() {
        let mut bench = Bench::new("[newreno, limit:4, paced]").with_rtt(RTT);
        bench.wait(Duration::from_millis(7));
        let first = bench.allowed();
        assert_eq!((first.new_from, first.burst_bytes), (Instant::ZERO, MSS), "nothing was sent yet");
        bench.send(1);
        let allowed = bench.allowed();
        assert_eq!(
            (allowed.new_from, allowed.resend_from),
            (Instant::from_millis(27), Instant::from_millis(27))
        );
        assert_eq!(allowed.burst_bytes, MSS);
    }

    #[test]
    fn a_bundle_of_three_segments_is_followed_by_three_waits() {
        let mut bench = Bench::new("[newreno, limit:4, paced]").with_rtt(RTT);
        bench.send(3);
        assert_eq!(bench.allowed().new_from, Instant::from_millis(60));
    }

    #[test]
    fn data_sent_again_is_paced_and_paces() {
        let mut bench = Bench::new("[newreno, paced]").with_rtt(RTT);
        bench.fill();
        bench.wait(Duration::from_secs(1));
        bench.lose(LossKind::Timeout { nth: 1 });
        bench.sent(bench.count(1), SentKind::AfterTimeout);
        // One segment is allowed, so that a whole round trip lies between two.
        assert_eq!(bench.allowed().resend_from, Instant::from_millis(1_080));
    }

    #[test]
    fn nothing_is_paced_before_an_rtt_is_known() {
        let mut bench = Bench::new("[newreno, paced]");
        bench.send(1);
        let allowed = bench.allowed();
        assert_eq!((allowed.new_from, allowed.burst_bytes), (Instant::ZERO, u32::MAX));
    }

    #[test]
    fn a_later_start_that_another_agent_asks_for_is_kept() {
        let mut bench = Bench::new("[newreno, paced]").with_rtt(RTT);
        bench.send(1);
        let so_far = Allowance { new_from: Instant::from_secs(5), ..Allowance::UNLIMITED };
        assert_eq!(bench.narrowed(so_far).new_from, Instant::from_secs(5));
    }
}
