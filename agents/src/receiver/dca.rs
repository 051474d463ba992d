//! `dca` (TCP-DCA): a whole window shares an ACK on a short path, a few segments on a long one.
//!
//! Source: Chen, Lee, Gerla and Sanadidi, *TCP with Delayed Ack for Wireless Networks* (TCP-DCA).
//!
//! Rule: an ACK leaves when w in-order segments wait. `rule=hops` takes w from the hops h that data crosses. Up to
//! `near` hops w is the sender's window, from `far` hops on it is `far-limit`, and between them `mid-limit`. It never
//! exceeds the sender's window, and it is 2 while h is unknown. `rule=rtt` takes the sender's window, but at most
//! `mid-limit` of it if the least RTT is above `rtt-limit`. `rule=hybrid` takes the smaller of both. `rule=burst` takes
//! the largest w by equation 6: P(w)^(h − 3) is at least `whole`. If the sender does not report its window, w is 2 on a
//! short path and the limit on a long one. The hold is `factor`·w average gaps, or `first` before there is one, and at
//! most `hold`. It begins with the first held segment and does not move after that. Any two segments have a gap. With
//! `again`, an ACK is repeated if no data follows it within an RTO (SRTT + 4·RTTVAR, at least 1 s). It is repeated at
//! most twice, and each wait is twice the one before. SRTT and RTTVAR begin with the handshake, and follow the
//! timestamps that come back with data. Without timestamps they keep their values. Segments that are out of order,
//! duplicate, or fill a hole are acknowledged at once.
//!
//! Deviations: a sender that may send less than w (`limit`, `cwl`) should report its limit, or each ACK waits for the
//! hold. The paper's misprint "SRTO" means "SRTT". The window comes in our own TCP option. It comes in the window field
//! of data segments, as in the paper, only if both ends agreed (`tell-cwnd:window`). A path of 10 hops has an RTT of
//! about 80 ms of its own. `hybrid` therefore lets the RTT lower a limit and never raise one. An unmeasured RTT limits
//! nothing in `hybrid`; in `rtt` w is then 2. The handshake measures the RTT unless a SYN was lost. Timestamps measure
//! it then, and without them `receiver_lacks` lists `rtt`. Equation 5 means the product P(w) = ∏ f(i), i = 2..w:
//! P(6)² = .926 and P(7)² = .810. The printed product ends at w − 1.
//!
//! `burst` is what the paper leaves for the future: w from MAC, rate and size. It has the backoffs of 802.11b alone,
//! and T_x is the time of a full segment's payload at the rate of the own link or `bw`, as in the paper. While rate or
//! hops are unknown, w is that of `hops`: simulated radios tell no rate. The paper calls 90 % enough for 6 segments
//! over 5 hops.

use std::sync::LazyLock;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{AckRule, Arrival, Basis, Needs, Path, RecvView, Why};

use super::gaps::GapAverage;
use super::hold::{Decision, Holds, LONGEST_MS, since};
use super::repeat::repeating;
use crate::descriptor::{Descriptor, Make};
use crate::param::{Form, ON, Switch, choices, params};

choices! {
    LimitBy { Hops = "hops", Rtt = "rtt", Both = "hybrid", Burst = "burst" }
}

params! {
    /// limit of the segments that share an ACK
    rule: LimitBy = LimitBy::FORM.is(0),
    /// send an ACK again that no data follows
    again: Switch = Form::Switch.is(ON),
    /// up to so many hops a whole window shares an ACK
    near: u8 = HOPS.is(3).below("far"),
    /// from so many hops on far-limit segments do
    far: u8 = HOPS.is(10),
    /// the most between near and far, and of a long RTT
    mid_limit as "mid-limit": u32 = LIMIT.is(5),
    /// the most on a long path
    far_limit as "far-limit": u32 = LIMIT.is(3),
    /// a least RTT above this allows mid-limit
    rtt_limit as "rtt-limit": Duration = Form::millis(1, 10_000).is(80),
    /// least chance that a burst arrives whole, of rule=burst
    whole: f64 = Form::ratio(1, 999).is(900),
    /// the rate at which data crosses a hop, of rule=burst
    bw: Option<u64> = Form::Rate { min_bps: 1_000, max_bps: 1_000_000_000_000 }.unset("the link's"),
    /// average gaps that the hold is long, for each segment that shares the ACK
    factor: u64 = Form::ratio(100, 10_000).is(1_500),
    /// part that the average gap keeps at each new gap
    memory: u32 = Form::ratio(0, 999).is(800),
    /// the hold before a gap is known
    first: Duration = Form::millis(1, LONGEST_MS).is(200),
    /// the longest hold
    hold: Duration = Form::millis(1, LONGEST_MS).is(LONGEST_MS),
}

pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    name: "dca",
    rule: "acknowledges once a sender's window up to 3 hops, every 5 segments up to 9, every 3 beyond",
    source: "TCP-DCA (Chen, Lee, Gerla, Sanadidi)",
    params: Params::TABLE,
    shorthand: Some("rule"),
    make: Make::Receiver(|args| {
        let set = Params::of(args);
        let most = if set.again == Switch::On { MOST_REPEATS } else { 0 };
        repeating(most, LEAST_RTO, Dca { set, gaps: GapAverage::new(set.memory), last_wanted: 0 })
    }),
};

const HOPS: Form = Form::count("hops", 0, 255);
const LIMIT: Form = Form::count("segments", 1, 65_535);
/// The window while it is unknown: RFC 9293 §3.8.6.3.
const UNKNOWN: u32 = 2;
/// A burst that is longer than the window of a fast link would need.
const MOST_IN_BURST: u32 = 255;
/// Of 802.11b.
const SLOT_US: u64 = 20;
const MOST_REPEATS: u32 = 2;
const LEAST_RTO: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Dca {
    set: Params,
    gaps: GapAverage,
    /// The last w.
    last_wanted: u32,
}

impl Dca {
    /// w: the number of in-order segments that share an ACK.
    fn wanted(&self, view: &RecvView<'_>) -> u32 {
        let cwnd = view.peer_cwnd.map(|cwnd| u32::from(cwnd).max(1));
        match self.set.rule {
            LimitBy::Hops => self.by_hops(view.path, cwnd),
            LimitBy::Rtt => self.by_rtt(view.path, cwnd).unwrap_or(UNKNOWN),
            LimitBy::Both => {
                let by_hops = self.by_hops(view.path, cwnd);
                self.by_rtt(view.path, cwnd).map_or(by_hops, |by_rtt| by_rtt.min(by_hops))
            }
            LimitBy::Burst => self.by_burst(view, cwnd).unwrap_or_else(|| self.by_hops(view.path, cwnd)),
        }
    }

    fn by_hops(&self, path: &Path, cwnd: Option<u32>) -> u32 {
        let Some((hops, _)) = path.hops_from_peer.or(path.hops_to_peer) else { return UNKNOWN };
        if hops <= self.set.near {
            cwnd.unwrap_or(UNKNOWN)
        } else if hops < self.set.far {
            limited(self.set.mid_limit, cwnd)
        } else {
            limited(self.set.far_limit, cwnd)
        }
    }

    /// Equation 6 has no factor up to 3 hops, where a window shares an ACK.
    fn by_burst(&self, view: &RecvView<'_>, cwnd: Option<u32>) -> Option<u32> {
        let (hops, _) = view.path.hops_from_peer.or(view.path.hops_to_peer)?;
        let packet_us = u64::from(view.mss) * 8_000_000 / self.set.bw.or(view.path.bit_rate())?;
        if hops <= 3 {
            return Some(cwnd.unwrap_or(UNKNOWN));
        }
        let chances = (0..cwnd.unwrap_or(MOST_IN_BURST).min(MOST_IN_BURST)).scan(1.0, |chance, before| {
            *chance *= backs_off_longer(u64::from(before) * packet_us);
            Some(chance.powi(i32::from(hops - 3)))
        });
        let w = chances.take_while(|chance| *chance >= self.set.whole).count();
        u32::try_from(w).ok().map(|w| w.max(1))
    }

    fn by_rtt(&self, path: &Path, cwnd: Option<u32>) -> Option<u32> {
        let is_long = path.rtt.min? > self.set.rtt_limit;
        Some(if is_long { limited(self.set.mid_limit, cwnd) } else { cwnd.unwrap_or(UNKNOWN) })
    }
}

/// The chance that all 8 tries of a packet back off for longer in sum (eq. 3 and 4).
fn backs_off_longer(us: u64) -> f64 {
    /// By slots.
    static LONGER: LazyLock<Vec<f64>> = LazyLock::new(|| {
        let windows = (0..8).map(|tries| (32usize << tries).min(1024));
        let mut chances = windows.fold(vec![1.0], |before, window| {
            let add = |sum: &mut f64, slots: usize| {
                *sum += before.get(slots).unwrap_or(&0.0);
                *sum -= slots.checked_sub(window).map_or(0.0, |gone| before[gone]);
                Some(*sum / window as f64)
            };
            (0..before.len() + window - 1).scan(0.0, add).collect()
        });
        chances.iter_mut().rev().fold(0.0, |longer, chance| longer + std::mem::replace(chance, longer));
        chances
    });
    let slots = usize::try_from(us / SLOT_US).unwrap_or(usize::MAX);
    LONGER.get(slots).copied().unwrap_or(0.0)
}

fn limited(limit: u32, cwnd: Option<u32>) -> u32 {
    cwnd.map_or(limit, |cwnd| cwnd.min(limit))
}

impl Holds for Dca {
    fn hear(&mut self, arrival: &Arrival, _: &RecvView<'_>) {
        self.gaps.take(arrival.gap);
    }

    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let wanted = self.wanted(view);
        self.last_wanted = wanted;
        let why = Why::new(AckRule::Count, view.owed.segments, wanted);
        let gaps = self.set.factor * u64::from(wanted);
        let wait = self.gaps.times_milli(gaps).unwrap_or(self.set.first).min(self.set.hold);
        Decision::counted(why, since(arrival, view) + wait)
    }

    fn needs(&self) -> Needs {
        let hops = self.set.rule != LimitBy::Rtt;
        Needs { peer_cwnd: true, hops, rtt: true, ..Needs::default() }
    }

    /// The basis of the hold that this segment began; `None` if `first` or `hold` ends it.
    fn basis(&self, due: Instant, now: Instant, view: &RecvView<'_>) -> Option<Basis> {
        let wait = self.gaps.times_milli(self.set.factor * u64::from(self.last_wanted))?;
        let is_of_gaps = due == view.owed.since.unwrap_or(now) + wait && wait < self.set.hold;
        self.gaps.basis().filter(|_| is_of_gaps)
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("w_segments", u64::from(self.last_wanted));
        self.gaps.gauge(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::receiver::{CEILING, ReceiverBench, check, scripts};

    scripts! {
        up_to_three_hops_a_whole_window_shares_an_ack: "dca"
            "0ms set cwnd=4 hops=3
             0ms in -> hold (count 1 of 4)
             1ms in -> hold (count 2 of 4)
             2ms in -> hold (count 3 of 4)
             3ms in -> ack 4 (count 4 of 4)
             3ms set cwnd=1
             9ms in -> ack 1 (count 1 of 1)
             900ms wait"

        /// Gaps of 10 ms at w = 5: 1.5 · 5 · 10 ms from the first held segment, whatever follows it.
        the_hold_is_set_once_with_the_window_and_the_gap_of_that_moment: "dca"
            "0ms  set cwnd=9 hops=5
             0ms  ooo    -> ack 0 (not-in-order)
             10ms in     -> hold (count 1 of 5)
             40ms in     -> hold (count 2 of 5)
             50ms set cwnd=4
             60ms in     -> hold (count 3 of 4)
             85ms timer  -> ack 3 (deadline)
             99ms wait"

        // 10 ms, then .8·10 + .2·20 = 12 ms; 1.5 · 2 · 12 = 36 ms.
        the_average_gap_is_that_of_any_two_segments: "dca:again=off"
            "0ms  ooo   -> ack 0 (not-in-order)
             10ms dup   -> ack 0 (not-in-order)
             30ms in    -> hold (count 1 of 2)
             66ms timer -> ack 1 (deadline)
             99s wait"

        before_the_first_gap_the_hold_is_200_ms: "dca:again=off"
            "0ms in -> hold (count 1 of 2)
             200ms timer -> ack 1 (deadline)
             99s wait"

        before_the_first_gap_too_the_hold_is_no_longer_than_the_longest: "dca:again=off,first=400ms,hold=100ms"
            "0ms in -> hold (count 1 of 2)
             100ms timer -> ack 1 (deadline)
             99s wait"

        /// A window that is reported too late, or exceeds the flight, costs the hold and no more.
        a_stale_window_never_stalls_beyond_the_hold: "dca:again=off"
            "0ms  set cwnd=20 hops=2
             0ms  dup   -> ack 0 (not-in-order)
             1ms  in    -> hold (count 1 of 20)
             2ms  in    -> hold (count 2 of 20)
             3ms  in    -> hold (count 3 of 20)
             31ms timer -> ack 3 (deadline)
             99s wait"

        a_route_that_changes_while_segments_wait_changes_how_many: "dca:again=off"
            "0ms  set cwnd=20 hops=2
             0ms  in  -> hold (count 1 of 20)
             10ms in  -> hold (count 2 of 20)
             20ms in  -> hold (count 3 of 20)
             20ms set hops=12
             30ms in  -> ack 4 (count 4 of 3)
             99s wait"

        what_is_not_in_order_is_acknowledged_at_once_with_what_waits: "dca:again=off"
            "0ms set cwnd=9 hops=2
             0ms in   -> hold (count 1 of 9)
             1ms ooo  -> ack 1 (not-in-order)
             2ms dup  -> ack 0 (not-in-order)
             3ms fill -> ack 1 (not-in-order)
             99s wait"

        /// SRTT 200 ms + 4 · 300 ms; the second wait is twice the first.
        an_ack_that_no_data_follows_is_said_again_twice: "dca"
            "0ms    set srtt=200ms rttvar=300ms
             0ms    ooo   -> ack 0 (not-in-order)
             1400ms timer -> repeat (lost-ack)
             4200ms timer -> repeat (lost-ack)
             999s   wait"

        any_data_ends_the_repeats_and_their_rto_is_a_second_at_least: "dca"
            "0ms    set srtt=20ms rttvar=3ms
             0ms    ooo    -> ack 0 (not-in-order)
             999ms  dup    -> ack 0 (not-in-order)
             1999ms timer  -> repeat (lost-ack)
             2050ms in     -> hold (count 1 of 2)
             2540ms timer  -> ack 1 (deadline)
             3540ms timer  -> repeat (lost-ack)
             3600ms forced -> ack 0
             4600ms timer  -> repeat (lost-ack)
             6600ms timer  -> repeat (lost-ack)
             999s   wait"

        /// From 20 ms by the handshake, SRTT becomes (7·20 + 1,620)/8 = 220 ms, and RTTVAR (3·10 + 1,400)/4 = 357.5 ms.
        the_wait_for_data_follows_the_round_trips_that_come_back_with_it: "dca:again=on"
            "0ms    set srtt=20ms rttvar=10ms
             0ms    ooo rtt=1620ms -> ack 0 (not-in-order)
             1650ms timer -> repeat (lost-ack)
             2s     dup   -> ack 0 (not-in-order)
             3650ms timer -> repeat (lost-ack)
             6950ms timer -> repeat (lost-ack)
             99s    wait"
    }

    /// Table I, with a window above every limit, with a small one, and with none.
    #[test]
    fn the_limits_are_those_of_table_1() {
        let wanted = |spec: &str, cwnd: Option<u16>, hops: Option<u8>| {
            let mut bench = ReceiverBench::new(spec);
            bench.show(cwnd, hops, None);
            bench.play_line("in")
        };
        for (hops, large, small, untold) in
            [(1, 40, 2, 2), (3, 40, 2, 2), (4, 5, 2, 5), (9, 5, 2, 5), (10, 3, 2, 3)]
        {
            let held = |w: u32| format!("hold (count 1 of {w})");
            assert_eq!(wanted("dca", Some(40), Some(hops)), held(large), "{hops} hops");
            assert_eq!(wanted("dca", Some(2), Some(hops)), held(small), "{hops} hops");
            assert_eq!(wanted("dca", None, Some(hops)), held(untold), "{hops} hops");
        }
        assert_eq!(wanted("dca", Some(40), None), "hold (count 1 of 2)", "hops unknown");
        assert_eq!(wanted("dca", None, None), "hold (count 1 of 2)", "nothing known");
        assert_eq!(wanted("dca", Some(0), Some(1)), "ack 1 (count 1 of 1)", "no window is empty");
    }

    #[test]
    fn a_long_rtt_limits_what_shares_an_ack_and_hybrid_takes_the_smaller_limit() {
        let wanted = |spec: &str, cwnd: Option<u16>, hops: Option<u8>, rtt_ms: Option<u64>| {
            let mut bench = ReceiverBench::new(spec);
            bench.show(cwnd, hops, rtt_ms.map(std::time::Duration::from_millis));
            bench.play_line("in").trim_start_matches("hold (count 1 of ").trim_end_matches(')').to_owned()
        };
        for (cwnd, rtt, expected) in [
            (Some(40), Some(80), "40"),
            (Some(40), Some(81), "5"),
            (Some(3), Some(81), "3"),
            (None, Some(81), "5"),
            (None, Some(80), "2"),
            (Some(40), None, "2"),
        ] {
            assert_eq!(wanted("dca:rtt", cwnd, Some(12), rtt), expected, "{cwnd:?} {rtt:?}");
        }
        for (cwnd, hops, rtt, expected) in [
            (Some(40), Some(2), Some(20), "40"),
            (Some(40), Some(2), Some(120), "5"),
            (Some(40), Some(10), Some(120), "3"),
            (Some(40), Some(10), Some(20), "3"),
            (Some(40), Some(6), None, "5"),
            (Some(40), None, Some(120), "2"),
        ] {
            assert_eq!(wanted("dca:hybrid", cwnd, hops, rtt), expected, "{cwnd:?} {hops:?} {rtt:?}");
        }
    }

    /// As the law below has it: 5 segments of 1,000 octets at 2 Mbit/s over 8 hops, 4 over 14, and 19 at 11 Mbit/s.
    #[test]
    fn by_equation_6_a_burst_follows_rate_size_and_hops() {
        let wanted = |spec: &str, bps: u64, hops: u8, cwnd: Option<u16>| {
            let mut bench = ReceiverBench::new(spec);
            bench.path.link_bps = std::num::NonZeroU64::new(bps);
            bench.show(cwnd, Some(hops), None);
            bench.play_line("in").trim_start_matches("hold (count 1 of ").trim_end_matches(')').to_owned()
        };
        for (bps, hops, expected) in [
            (2_000_000, 3, "200"),
            (2_000_000, 4, "6"),
            (2_000_000, 5, "6"),
            (2_000_000, 8, "5"),
            (2_000_000, 14, "4"),
            (2_000_000, 60, "3"),
            (1_000_000, 14, "3"),
            (11_000_000, 4, "27"),
            (11_000_000, 8, "21"),
            (11_000_000, 14, "19"),
            (0, 14, "3"),
        ] {
            assert_eq!(wanted("dca:burst", bps, hops, Some(200)), expected, "{bps} bit/s, {hops} hops");
        }
        assert_eq!(wanted("dca:burst,whole=0.5", 2_000_000, 14, Some(200)), "6");
        assert_eq!(wanted("dca:burst,bw=11Mbps", 0, 14, Some(200)), "19", "a rate in the spec");
        assert_eq!(wanted("dca:burst", 2_000_000, 5, Some(2)), "2", "no more than the window");
        assert_eq!(wanted("dca:burst", 2_000_000, 5, None), "6", "not told");
        assert_eq!(wanted("dca:burst", 2_000_000, 2, None), "2", "not told, and short");
    }

    /// Both ways to sum the law agree at each slot of 20 µs.
    #[test]
    fn the_agent_has_the_papers_law_of_backoffs() {
        let law = slots_of_backoff();
        let mut longer = 1.0;
        for (slots, chance) in (0..).zip(&law) {
            longer -= chance;
            let agents = super::backs_off_longer(slots * 20 + 19);
            assert!((agents - longer).abs() < 1e-9, "{slots} slots: {agents} and {longer}");
        }
        assert!(super::backs_off_longer(law.len() as u64 * 20).abs() < 1e-12);
    }

    #[test]
    fn no_hold_is_longer_than_the_ledger_allows() {
        assert_eq!(CEILING.as_millis(), 490);
        check(
            "dca:again=off",
            "0ms    set cwnd=9 hops=1
             0ms    ooo   -> ack 0 (not-in-order)
             100ms  in    -> hold (count 1 of 9)
             590ms  timer -> ack 1 (deadline)
             99s wait",
        );
    }

    /// The probability that the backoffs of one packet, over all its 8 tries, sum up to each number of slots.
    fn slots_of_backoff() -> Vec<f64> {
        let windows = (0..8).map(|tries| (32usize << tries).min(1024));
        windows.fold(vec![1.0], |before, window| {
            let mut after = vec![0.0; before.len() + window - 1];
            for (slots, chance) in before.iter().enumerate() {
                (slots..slots + window).for_each(|slots| after[slots] += chance / window as f64);
            }
            after
        })
    }

    /// The loss law of the paper: packet n of a burst crosses if it backs off for longer than those before it take (f).
    /// A burst of w crosses with probability f(1)⋯f(w). Errata: eq. 5 ends one factor early. The path has 5 hops, so
    /// that two stations may interfere.
    #[test]
    fn the_arithmetic_of_the_docs_is_that_of_the_paper() {
        let law = slots_of_backoff();
        let mean: f64 = law.iter().enumerate().map(|(slots, chance)| slots as f64 * chance).sum();
        assert!((mean - 2028.0).abs() < 1e-6 && (mean * 20e-6 - 40.56e-3).abs() < 1e-9, "{mean} slots");
        // A packet of 1,000 octets takes 4 ms at 2 Mbit/s: 200 slots.
        let f = |n: usize| law[(n - 1) * 200 + 1..].iter().sum::<f64>();
        let printed = [0.999_999, 0.999_846, 0.998_215, 0.991_262, 0.972_701, 0.935_198, 0.871_609];
        for (n, printed) in (2..).zip(printed) {
            assert!((f(n) - printed).abs() < 6e-7, "f({n}) = {}", f(n));
        }
        let crosses = |w: usize| (1..=w).map(f).product::<f64>().powi(5 - 3);
        assert!((crosses(6) - 0.926).abs() < 5e-4, "{}", crosses(6));
        assert!((crosses(7) - 0.810).abs() < 5e-4, "{}", crosses(7));
        // The limits of the agent rest on this: nothing is lost with 3, little with 5.
        assert!(crosses(3) > 0.999 && crosses(5) > 0.97 && crosses(8) < 0.7);
    }
}
