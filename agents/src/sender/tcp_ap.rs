//! `tcp-ap`: spaces new segments by the time that four hops of the path take.
//!
//! Source: ElRakabawy, Klemm and Lindemann, *TCP with Adaptive Pacing for Multihop Wireless Networks* (MobiHoc
//! 2005).
//!
//! Rule: on a chain, a segment collides with the one before it until that is four hops ahead. Each RTT sample over h
//! hops shows the wait q of a segment at a hop. It is (rtt/h − (D + A)/bw)/2 for data of size D and an ACK of size A. A
//! value of q above `bound` is replaced by the average of q (half old, half new). A hop takes q + D/bw; four hops take
//! 4 times that (one hop if h < 4). Values between 0 and `bound` enter an average that keeps `memory` of the old one,
//! and a ring of the last 50. New data is spaced by (1 + 2 · mean deviation/mean) · average. Retransmissions are not
//! paced, and the RTO does not back off.
//!
//! Deviations: D is the IP packet and 112 octets for preamble and MAC, and A is such 112 octets alone. An IP packet
//! counts as MSS + 40. Without a known rate or length of the path nothing is paced.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{Acked, Allowance, Path, SendView, SenderAgent, Sent, SentKind, Tunables};
use hopwise_core::ignores;

use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, Form, params};

params! {
    /// the rate at which data crosses a hop
    bw: Option<u64> = Form::Rate { min_bps: 1_000, max_bps: 1_000_000_000_000 }.unset("the link's"),
    /// no delay above this is believed
    bound: Duration = Form::millis(1, 4_000).is(500),
    /// part that the average keeps at each sample
    memory: u64 = Form::ratio(0, 999).is(700),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "tcp-ap",
    rule: "spaces new segments by the time that four hops take, as RTT and hops tell it",
    source: "TCP-AP (ElRakabawy, Klemm, Lindemann 2005)",
    params: Params::TABLE,
    shorthand: Some("bw"),
    make: Make::Narrower(|args| Box::new(TcpAp::new(args))),
};

/// Octets of preamble and MAC in a frame.
const FRAME_BYTES: u64 = 112;
/// IP and TCP headers.
const HEADER_BYTES: u64 = 40;
/// A segment disturbs the one before it until that is this many hops ahead.
const SPATIAL_REUSE_HOPS: u64 = 4;
const RING: usize = 50;

#[derive(Debug)]
pub(crate) struct TcpAp {
    set: Params,
    /// The average time that a segment waits at a hop.
    wait_ns: Option<i64>,
    /// The average four-hop delay.
    average_ns: u64,
    recent: Ring,
    interval: Option<Duration>,
    last_new: Option<(Instant, u32)>,
}

impl TcpAp {
    fn new(args: &Args) -> TcpAp {
        TcpAp {
            set: Params::of(args),
            wait_ns: None,
            average_ns: 0,
            recent: Ring { values: [0; RING], len: 0, next: 0, sum: 0 },
            interval: None,
            last_new: None,
        }
    }

    /// The delay of four hops according to this round trip; `None` if it is not believable.
    fn four_hops_ns(&mut self, rtt: Duration, path: &Path, mss: u32) -> Option<u64> {
        let (hops, _) = path.hops_to_peer.or(path.hops_from_peer)?;
        let bw_bps = self.set.bw.or(path.bit_rate()).filter(|bw| *bw > 0)?;
        let hops = u64::from(hops.max(1));
        let airtime_ns = |bytes: u64| signed(bytes * 8 * 1_000_000_000 / bw_bps);
        let data_ns = airtime_ns(u64::from(mss) + HEADER_BYTES + FRAME_BYTES);
        let rtt_ns = signed(u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX));

        let bound_ns = u64::try_from(self.set.bound.as_nanos()).unwrap_or(u64::MAX);
        let measured = (rtt_ns / signed(hops) - data_ns - airtime_ns(FRAME_BYTES)) / 2;
        let wait_ns = if measured > signed(bound_ns) {
            self.wait_ns?
        } else {
            self.wait_ns = Some(self.wait_ns.map_or(measured, |average| (average + measured) / 2));
            measured
        };
        let hop_ns = u64::try_from(wait_ns + data_ns).ok()?;
        let delay = if hops >= SPATIAL_REUSE_HOPS { SPATIAL_REUSE_HOPS * hop_ns } else { hop_ns };
        (0 < delay && delay < bound_ns).then_some(delay)
    }

    fn take(&mut self, delay_ns: u64) {
        let before = if self.recent.len == 0 { delay_ns } else { self.average_ns };
        self.average_ns = (before * self.set.memory + delay_ns * (1_000 - self.set.memory)) / 1_000;
        self.recent.push(u32::try_from(delay_ns).unwrap_or(u32::MAX));
        let (mean, deviation) = self.recent.mean_and_deviation();
        let spread = u128::from(self.average_ns) * 2 * u128::from(deviation) / u128::from(mean.max(1));
        let spread = u64::try_from(spread).unwrap_or(u64::MAX);
        self.interval = Some(Duration::from_nanos(self.average_ns.saturating_add(spread)));
    }
}

/// No airtime and no round trip is longer than this. Sums of a few of them do not overflow.
const MOST_NS: i64 = i64::MAX / 8;

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(MOST_NS).min(MOST_NS)
}

/// The last values in nanoseconds; the bound keeps each of them below 2^32.
#[derive(Debug)]
struct Ring {
    values: [u32; RING],
    len: usize,
    next: usize,
    sum: u64,
}

impl Ring {
    fn push(&mut self, value: u32) {
        let slot = &mut self.values[self.next];
        self.sum = self.sum - u64::from(*slot) + u64::from(value);
        *slot = value;
        self.next = (self.next + 1) % RING;
        self.len = RING.min(self.len + 1);
    }

    fn mean_and_deviation(&self) -> (u64, u64) {
        let len = self.len.max(1) as u64;
        let mean = self.sum / len;
        let middle = u32::try_from(mean).unwrap_or(u32::MAX);
        let away = self.values[..self.len].iter().map(|value| u64::from(value.abs_diff(middle)));
        (mean, away.sum::<u64>() / len)
    }
}

impl SenderAgent for TcpAp {
    ignores!(on_dup_ack, on_loss, on_recovered, on_path, note);

    hopwise_core::needs!(hops, rtt);

    fn tune(&self, tunables: &mut Tunables) {
        tunables.rto_held = u8::MAX;
    }

    fn on_sent(&mut self, sent: &Sent, _: &SendView<'_>) {
        if sent.kind == SentKind::New {
            self.last_new = Some((sent.now, sent.carried.segments.max(1)));
        }
    }

    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) {
        let delay = acked.rtt.and_then(|rtt| self.four_hops_ns(rtt, view.path, view.mss));
        if let Some(delay_ns) = delay {
            self.take(delay_ns);
        }
    }

    fn narrow(&self, _: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
        let (Some(interval), Some((sent_at, segments))) = (self.interval, self.last_new) else {
            return so_far;
        };
        let from = sent_at + interval.saturating_mul(segments);
        Allowance {
            new_from: so_far.new_from.max(from),
            burst_bytes: so_far.burst_bytes.min(view.mss.max(1)),
            ..so_far
        }
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("four_hop_delay_us", self.average_ns / 1_000);
        let interval = self.interval.unwrap_or_default();
        sink("interval_us", u64::try_from(interval.as_micros()).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::Instant;
    use hopwise_core::agent::{Allowance, HopSource, LossKind, SentKind};

    use crate::testkit::sender::{Bench, MSS};

    /// D = (1000 + 40 + 112) · 8 / 2 Mbit/s = 4.608 ms, A = 112 · 8 / 2 Mbit/s = 0.448 ms.
    fn bench(hops: u8) -> Bench {
        let mut bench = Bench::new("[newreno:iw=200, tcp-ap:2Mbps]");
        bench.path.hops_to_peer = Some((hops, HopSource::Routing));
        bench.send(100);
        bench
    }

    fn sample(bench: &mut Bench, rtt_us: u64) {
        bench.path.rtt.smoothed = Some(Duration::from_micros(rtt_us));
        bench.ack(1);
    }

    fn interval_us(bench: &Bench) -> u64 {
        bench.gauge("interval_us").expect("a gauge")
    }

    #[test]
    fn the_first_sample_is_the_four_hop_delay() {
        // q = (80/8 − 5.056)/2 = 2.472 ms; a hop takes 7.08 ms, four of them 28.32 ms.
        let mut long = bench(8);
        sample(&mut long, 80_000);
        assert_eq!(interval_us(&long), 28_320);
        // q = (30/3 − 5.056)/2: one hop, since three hops leave no room for two segments.
        let mut short = bench(3);
        sample(&mut short, 30_000);
        assert_eq!(interval_us(&short), 7_080);
    }

    #[test]
    fn new_segments_are_spaced_and_those_sent_again_are_not() {
        let mut bench = bench(8);
        sample(&mut bench, 80_000);
        bench.wait(Duration::from_millis(100));
        bench.send(1);
        let from = Instant::from_millis(100) + Duration::from_micros(28_320);
        let allowed = bench.allowed();
        assert_eq!((allowed.new_from, allowed.resend_from), (from, Instant::ZERO));
        assert_eq!(allowed.burst_bytes, MSS);
        bench.wait(Duration::from_millis(5));
        bench.sent(bench.count(1), SentKind::Resent);
        assert_eq!(bench.allowed().new_from, from);
    }

    #[test]
    fn the_spread_of_the_samples_widens_the_spacing() {
        let mut bench = bench(8);
        sample(&mut bench, 80_000);
        // q = 4.972 ms, a hop 9.58 ms, four of them 38.32 ms. The average is .7 · 28.32 + .3 · 38.32 = 31.32 ms, the
        // mean 33.32 ms and the mean deviation 5 ms. The interval is (1 + 10/33.32) · 31.32 = 40.72 ms.
        sample(&mut bench, 120_000);
        assert_eq!(bench.gauge("four_hop_delay_us"), Some(31_320));
        assert_eq!(interval_us(&bench), 40_719);
    }

    #[test]
    fn a_steady_path_is_paced_at_its_delay_and_only_fifty_samples_count() {
        let mut bench = bench(8);
        sample(&mut bench, 400_000);
        (0..50).for_each(|_| sample(&mut bench, 80_000));
        assert_eq!(interval_us(&bench), 28_320);
    }

    #[test]
    fn what_is_not_believable_is_left_out() {
        // A round trip that is shorter than its airtimes: q = (0.25 − 5.056)/2, a hop 2.205 ms.
        let mut quick = bench(4);
        sample(&mut quick, 1_000);
        assert_eq!(interval_us(&quick), 8_820);
        // Four hops of 113 ms and more are too long together.
        sample(&mut quick, 1_100_000);
        assert_eq!(interval_us(&quick), 8_820);
        // q = (0.01 − 5.056)/2 leaves a hop of 2.085 ms; with a slower link nothing is left of it.
        let mut slow = Bench::new("[newreno, tcp-ap:10kbps]");
        slow.path.hops_to_peer = Some((4, HopSource::Routing));
        slow.send(5);
        sample(&mut slow, 40);
        assert_eq!(interval_us(&slow), 0);
    }

    #[test]
    fn a_wait_above_the_bound_counts_as_the_average_wait() {
        let mut one_hop = bench(1);
        sample(&mut one_hop, 25_056);
        assert_eq!(interval_us(&one_hop), 10_000 + 4_608);
        sample(&mut one_hop, 2_000_000);
        assert_eq!(interval_us(&one_hop), 14_608);
    }

    #[test]
    fn nothing_is_paced_while_hops_or_rate_are_unknown() {
        let mut no_rate = Bench::new("[newreno, tcp-ap]").with_rtt(Duration::from_millis(80));
        no_rate.path.hops_to_peer = Some((8, HopSource::Routing));
        no_rate.send(5);
        no_rate.ack(1);
        assert_eq!(no_rate.allowed().new_from, Instant::ZERO);
        no_rate.path.link_bps = std::num::NonZeroU64::new(2_000_000);
        no_rate.ack(1);
        assert_eq!(interval_us(&no_rate), 28_320, "the link's rate stands in");
        let mut no_hops = Bench::new("[newreno, tcp-ap:2Mbps]").with_rtt(Duration::from_millis(80));
        no_hops.send(5);
        no_hops.ack(1);
        assert_eq!(no_hops.allowed().new_from, Instant::ZERO);
    }

    #[test]
    fn the_rto_does_not_back_off() {
        let mut bench = bench(8);
        assert_eq!(bench.tunables().rto_held, u8::MAX);
        bench.lose(LossKind::Timeout { nth: 1 });
        let so_far = Allowance { new_from: Instant::from_secs(9), ..Allowance::UNLIMITED };
        assert_eq!(bench.narrowed(so_far).new_from, Instant::from_secs(9));
    }
}
