//! A second reading of the rules of `dca`, `tda`, `tcp-ap`, `pgy` and `elfn`, as simple as possible. Tests compare it
//! with the agents decision by decision. Each difference means that one of the two misreads its paper.

use std::time::Duration;

use hopwise_core::agent::{AckRule, AckVerdict, Class, HopSource, PathEvent, PathReaction};
use hopwise_core::{Instant, Seq};
use proptest::prelude::*;

use super::receiver::{Carried, ReceiverBench};
use super::sender::Bench;

/// The next arrival at a receiver, seen from outside.
#[derive(Clone, Debug)]
struct Step {
    after_us: u64,
    class: Class,
    cwnd: Option<u16>,
    hops: Option<u8>,
}

fn any_step() -> impl Strategy<Value = Step> {
    let class = prop_oneof![
        12 => Just(Class::InOrder),
        1 => Just(Class::OutOfOrder),
        1 => Just(Class::Duplicate),
        1 => Just(Class::FillsHole),
    ];
    let after = prop_oneof![8 => 0..40_000u64, 1 => 40_000..900_000u64, 1 => 900_000..20_000_000u64];
    let hops = prop::option::of(prop_oneof![1..15u8, 1..=255u8]);
    (after, class, prop::option::of(0..30u16), hops).prop_map(|(after_us, class, cwnd, hops)| Step {
        after_us,
        class,
        cwnd,
        hops,
    })
}

/// An ACK: its time, and how many segments it newly covers; `None` for a repeat.
type Ack = (u64, Option<u32>);

/// A receiver in microseconds and floating point.
#[derive(Debug)]
struct Plain {
    rule: Plainly,
    held: Vec<u64>,
    timer: Option<f64>,
    average_us: Option<f64>,
    last_us: Option<u64>,
    /// The next repeat of an ACK: its time, the wait before it, and how many repeats are left.
    again: Option<(u64, u64, u32)>,
    acks: Vec<Ack>,
}

#[derive(Clone, Copy, Debug)]
enum Plainly {
    Dca,
    Tda,
}

impl Plain {
    fn new(rule: Plainly) -> Plain {
        Plain { rule, held: vec![], timer: None, average_us: None, last_us: None, again: None, acks: vec![] }
    }

    /// The number of segments that an ACK waits for.
    fn window(&self, step: &Step) -> u32 {
        let cwnd = step.cwnd.map(|cwnd| u32::from(cwnd.max(1)));
        match (self.rule, step.hops) {
            (Plainly::Dca, None) => 2,
            (Plainly::Dca, Some(0..=3)) => cwnd.unwrap_or(2),
            (Plainly::Dca, Some(4..=9)) => cwnd.unwrap_or(5).min(5),
            (Plainly::Dca, Some(10..)) => cwnd.unwrap_or(3).min(3),
            (Plainly::Tda, _) => cwnd.unwrap_or(2).min(25),
        }
    }

    fn run_until(&mut self, now_us: u64) {
        loop {
            let timer = self.timer.map(|at| at.floor() as u64).filter(|at| *at <= now_us);
            let again = self.again.map(|(at, ..)| at).filter(|at| *at <= now_us);
            match (timer, again) {
                (Some(at), _) => self.acknowledge(at),
                (None, Some(at)) => {
                    self.acks.push((at, None));
                    self.again = self.again.and_then(|(_, wait, left)| {
                        (left > 1).then_some((at + 2 * wait, 2 * wait, left - 1))
                    });
                }
                (None, None) => return,
            }
        }
    }

    fn acknowledge(&mut self, at_us: u64) {
        self.acks.push((at_us, Some(self.held.len() as u32)));
        self.held.clear();
        self.timer = None;
        let repeats = match self.rule {
            Plainly::Dca => 2,
            Plainly::Tda => 0,
        };
        self.again = (repeats > 0).then_some((at_us + 1_000_000, 1_000_000, repeats));
    }

    fn arrive(&mut self, now_us: u64, step: &Step) {
        self.again = None;
        if let Some(last) = self.last_us.replace(now_us) {
            let gap = (now_us - last) as f64;
            self.average_us = Some(self.average_us.map_or(gap, |average| 0.8 * average + 0.2 * gap));
        }
        if step.class == Class::InOrder || step.class == Class::FillsHole {
            self.held.push(now_us);
        }
        let window = self.window(step);
        if step.class != Class::InOrder || self.held.len() as u32 >= window {
            return self.acknowledge(now_us);
        }
        if self.timer.is_none() {
            let wait = match (self.rule, self.average_us) {
                (Plainly::Tda, _) | (Plainly::Dca, None) => 200_000.0,
                (Plainly::Dca, Some(average)) => (1.5 * f64::from(window) * average).min(490_000.0),
            };
            self.timer = Some(now_us as f64 + wait);
        }
    }
}

/// The ACKs of the agent itself, in a ledger.
fn acks_of(spec: &str, steps: &[Step]) -> Vec<Ack> {
    let mut bench = ReceiverBench::new(spec);
    let mut acks = Vec::new();
    let until = |bench: &mut ReceiverBench, at: Instant, acks: &mut Vec<Ack>| {
        while let Some((due, who)) = bench.next_deadline().filter(|(due, _)| *due <= at) {
            bench.now = bench.now.max(due);
            assert_eq!(who, "timer", "the agent's own hold ends in time");
            let outcome = bench.time_out();
            acks.extend(read(bench.now, &outcome));
        }
        bench.now = at;
    };
    for step in steps {
        let at = bench.now + Duration::from_micros(step.after_us);
        until(&mut bench, at, &mut acks);
        bench.show(step.cwnd, step.hops, None);
        let outcome = bench.arrive(step.class, Carried::PLAIN);
        acks.extend(read(bench.now, &outcome));
    }
    let end = bench.now + Duration::from_secs(60);
    until(&mut bench, end, &mut acks);
    acks
}

fn read(now: Instant, outcome: &str) -> Option<Ack> {
    let us = now.0 / 1_000;
    match outcome.split(' ').collect::<Vec<_>>()[..] {
        ["ack", segments, ..] => Some((us, Some(segments.parse().expect("a number")))),
        ["repeat", ..] => Some((us, None)),
        _ => None,
    }
}

/// Averages in whole nanoseconds and in floating point differ by less than this.
const DRIFT_US: u64 = 3;

fn agree(spec: &str, rule: Plainly, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut plain = Plain::new(rule);
    let mut now_us = 0;
    for step in steps {
        now_us += step.after_us;
        // If a timer and an arrival lie within the drift, either may come first.
        let is_close = plain.timer.is_some_and(|at| (at - now_us as f64).abs() < 2.0 * DRIFT_US as f64);
        prop_assume!(!is_close || matches!(rule, Plainly::Tda));
        plain.run_until(now_us);
        plain.arrive(now_us, step);
    }
    plain.run_until(now_us + 60_000_000);
    let agents = acks_of(spec, steps);
    prop_assert_eq!(agents.len(), plain.acks.len(), "{:?}\nplainly {:?}", &agents, &plain.acks);
    for (agent, plainly) in agents.iter().zip(&plain.acks) {
        prop_assert_eq!(agent.1, plainly.1, "{:?}\nplainly {:?}", &agents, &plain.acks);
        prop_assert!(agent.0.abs_diff(plainly.0) <= 3 * DRIFT_US, "{:?} and {:?}", agent, plainly);
    }
    Ok(())
}

/// The interval of `tcp-ap` after these round trips, in seconds.
fn spacing_s(rtts_us: &[u64], hops: u32, bits_per_s: f64) -> Option<f64> {
    let (data, ack) = (f64::from((1_000 + 40 + 112) * 8), f64::from(112 * 8));
    let (mut average_q, mut average, mut ring) = (None::<f64>, None::<f64>, Vec::new());
    for rtt_us in rtts_us {
        let rtt = *rtt_us as f64 / 1e6;
        let mut q = (rtt / f64::from(hops) - (data + ack) / bits_per_s) / 2.0;
        if q > 0.5 {
            let Some(average_q) = average_q else { continue };
            q = average_q;
        } else {
            average_q = Some(average_q.map_or(q, |average| 0.5 * average + 0.5 * q));
        }
        let hop = q + data / bits_per_s;
        let delay = if hops >= 4 { 4.0 * hop } else { hop };
        if delay > 0.0 && delay < 0.5 {
            average = Some(average.map_or(delay, |average| 0.7 * average + 0.3 * delay));
            ring.push(delay);
        }
    }
    let recent = &ring[ring.len().saturating_sub(50)..];
    let mean = recent.iter().sum::<f64>() / recent.len() as f64;
    let deviation = recent.iter().map(|x| (x - mean).abs()).sum::<f64>() / recent.len() as f64;
    average.map(|average| (1.0 + 2.0 * deviation / mean) * average)
}

/// An event for `pgy` or `elfn`. Sequence numbers count from the beginning of the stream and do not wrap.
#[derive(Clone, Debug)]
enum PathNews {
    Sends(u32),
    Acks(u32),
    DupAck(Option<u8>),
    RouteFails,
    RouteIsFound,
    HopsChange(Option<u8>),
    /// Routing reports that the peer has everything up to this distance from snd_una or snd_nxt.
    PeerHas(i64, From),
}

#[derive(Clone, Copy, Debug)]
enum From {
    SndUna,
    SndNxt,
}

fn any_news() -> impl Strategy<Value = PathNews> {
    let near = prop_oneof![8 => -3..=3i64, 4 => -20_000..20_000i64, 1 => -(1 << 30)..1i64 << 30];
    prop_oneof![
        3 => (1..9u32).prop_map(PathNews::Sends),
        2 => (0..9u32).prop_map(PathNews::Acks),
        3 => any::<Option<u8>>().prop_map(PathNews::DupAck),
        2 => prop_oneof![Just(None), (0..6u8).prop_map(Some)].prop_map(PathNews::DupAck),
        1 => Just(PathNews::RouteFails),
        1 => Just(PathNews::RouteIsFound),
        1 => any::<Option<u8>>().prop_map(PathNews::HopsChange),
        4 => (near, prop::sample::select(vec![From::SndUna, From::SndNxt]))
            .prop_map(|(off, from)| PathNews::PeerHas(off, from)),
    ]
}

/// The answers of the two papers. `dups` and `probe_s` are the settings.
#[derive(Debug)]
struct PlainSender {
    dups: u8,
    probe_s: u64,
    /// A position in the stream, in octets.
    acknowledged: i64,
    sent: i64,
    raised: u64,
    failures: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Nothing,
    SendsAgain,
    Freezes { probe_s: u64 },
    BelievesUpTo(i64),
}

impl PlainSender {
    fn hear(&mut self, news: &PathNews) -> Answer {
        match *news {
            PathNews::Sends(segments) => self.sent += i64::from(segments) * 1_000,
            PathNews::Acks(segments) => {
                self.acknowledged = self.sent.min(self.acknowledged + i64::from(segments) * 1_000);
            }
            // S2: one ACK with a high enough count is a loss, however many ACKs came before it.
            PathNews::DupAck(Some(count)) if count >= self.dups => return Answer::SendsAgain,
            PathNews::RouteFails => {
                self.failures += 1;
                return Answer::Freezes { probe_s: self.probe_s };
            }
            // S1: only data in flight can have arrived.
            PathNews::PeerHas(..) => {
                let number = self.number(news);
                if self.acknowledged < number && number <= self.sent {
                    self.raised += 1;
                    return Answer::BelievesUpTo(number);
                }
            }
            PathNews::DupAck(_) | PathNews::RouteIsFound | PathNews::HopsChange(_) => {}
        }
        Answer::Nothing
    }

    fn number(&self, news: &PathNews) -> i64 {
        match *news {
            PathNews::PeerHas(off, From::SndUna) => self.acknowledged + off,
            PathNews::PeerHas(off, From::SndNxt) => self.sent + off,
            _ => self.acknowledged,
        }
    }
}

/// The answer of the list of agents, with numbers from the beginning of the stream.
fn answer_of(bench: &mut Bench, begin: Seq, news: &PathNews, number: i64) -> Answer {
    let event = match *news {
        PathNews::Sends(segments) => {
            bench.send(segments);
            return Answer::Nothing;
        }
        PathNews::Acks(segments) => {
            bench.ack(segments);
            return Answer::Nothing;
        }
        PathNews::DupAck(count) => {
            let asks = bench.dup_ack(1, count).is_some();
            return if asks { Answer::SendsAgain } else { Answer::Nothing };
        }
        PathNews::RouteFails => PathEvent::RouteFailed,
        PathNews::RouteIsFound => PathEvent::RouteFound,
        PathNews::HopsChange(hops) => {
            bench.path.hops_to_peer = hops.map(|hops| (hops, HopSource::Routing));
            PathEvent::HopsChanged
        }
        PathNews::PeerHas(..) => PathEvent::AckSeq(begin + (number.rem_euclid(1 << 32) as u32)),
    };
    let reactions = bench.path_event(&event);
    let said: Vec<_> = reactions.iter().filter(|reaction| **reaction != PathReaction::None).collect();
    match said[..] {
        [] => Answer::Nothing,
        [PathReaction::Freeze { probe_every }] => Answer::Freezes { probe_s: probe_every.as_secs() },
        [PathReaction::RaiseHighestAck(seq)] => {
            assert_eq!(PathEvent::AckSeq(*seq), event, "routing's own number");
            Answer::BelievesUpTo(number)
        }
        _ => panic!("two agents answer: {reactions:?}"),
    }
}

proptest! {
    #[test]
    fn dca_decides_as_its_paper_reads(steps in prop::collection::vec(any_step(), 0..60)) {
        agree("dca", Plainly::Dca, &steps)?;
    }

    #[test]
    fn tda_decides_as_its_paper_reads(steps in prop::collection::vec(any_step(), 0..60)) {
        agree("tda", Plainly::Tda, &steps)?;
    }

    #[test]
    fn pgy_and_elfn_answer_news_as_their_papers_read(
        news in prop::collection::vec(any_news(), 0..80),
        dups in 1..=255u8,
        probe_s in 1..60u64,
    ) {
        let mut bench = Bench::new(&format!("[newreno, \"elfn:{probe_s}s\", \"pgy:dups={dups}\"]"));
        let begin = bench.snd_una;
        let mut plain = PlainSender { dups, probe_s, acknowledged: 0, sent: 0, raised: 0, failures: 0 };
        for news in &news {
            let number = plain.number(news);
            let expected = plain.hear(news);
            prop_assert_eq!(answer_of(&mut bench, begin, news, number), expected, "{:?} {:?}", news, &plain);
        }
        prop_assert_eq!(bench.gauge("ack_seq_taken"), Some(plain.raised));
        prop_assert_eq!(bench.gauge("route_failures"), Some(plain.failures));
    }

    #[test]
    fn tcp_ap_spaces_segments_as_its_paper_reads(
        rtts_us in prop::collection::vec(prop_oneof![9 => 2_000..400_000u64, 1 => 400_000..9_000_000u64], 1..120),
        hops in 1..20u8,
        kbps in 1_000..54_000u64,
    ) {
        let mut bench = Bench::new(&format!("[newreno:iw=200, tcp-ap:{kbps}kbps]"));
        bench.path.hops_to_peer = Some((hops, HopSource::Routing));
        bench.send(rtts_us.len() as u32);
        for rtt_us in &rtts_us {
            bench.path.rtt.smoothed = Some(Duration::from_micros(*rtt_us));
            bench.ack(1);
        }
        let expected_us = spacing_s(&rtts_us, hops.into(), kbps as f64 * 1e3).map_or(0.0, |s| s * 1e6);
        let agents_us = bench.gauge("interval_us").expect("a gauge") as f64;
        prop_assert!((agents_us - expected_us).abs() <= 2.0 + expected_us / 1e4, "{agents_us} for {expected_us}");
    }
}

#[test]
fn a_verdict_says_the_rule_that_the_paper_would_name() {
    let mut bench = ReceiverBench::new("tda");
    bench.show(Some(3), None, None);
    assert_eq!(bench.arrive(Class::InOrder, Carried::PLAIN), "hold (window 1 of 3)");
    let due = bench.next_deadline().expect("a hold").0;
    let verdict = bench.asked(|agent, view| agent.on_deadline(due, view));
    assert!(matches!(verdict, AckVerdict::Now(why) if why.rule == AckRule::Deadline));
}
