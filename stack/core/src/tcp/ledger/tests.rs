//! The ledger's own rules, with an agent that does as it is told.

use super::*;
use crate::agent::AckDecided;
use crate::tcp::cx::Memory;
use crate::trace::{TraceEvent, TraceRing};

/// Acknowledges every `every`-th segment, or when `due` has come; never of itself when both are absent.
#[derive(Debug, Default)]
struct Scripted {
    every: Option<u32>,
    due: Option<Instant>,
    heard: Vec<By>,
}

impl ReceiverAgent for Scripted {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn on_arrival(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> AckVerdict {
        let why = Why::new(Rule::Count, view.owed.segments, self.every.unwrap_or(0));
        match (arrival.class, self.every) {
            (Class::OutOfOrder | Class::Duplicate, _) => AckVerdict::Now(Why::plain(Rule::NotInOrder)),
            (_, Some(every)) if view.owed.segments >= every => AckVerdict::Now(why),
            _ => AckVerdict::Hold(why),
        }
    }

    fn on_deadline(&mut self, _: Instant, _: &RecvView<'_>) -> AckVerdict {
        self.due = None;
        AckVerdict::Now(Why::plain(Rule::Deadline))
    }

    fn on_ack(&mut self, ack: &AckDecided, _: &RecvView<'_>) {
        self.heard.push(ack.by);
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn note(&self) -> AckNote {
        AckNote { dup_count: u8::try_from(self.heard.len()).ok() }
    }

    fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

struct Bench {
    ledger: AckLedger,
    ring: TraceRing,
    path: Path,
    rcv_nxt: Seq,
    reads: u64,
}

const MSS: u32 = 1000;

impl Bench {
    fn new(live: Scripted, shadows: Vec<Scripted>) -> Bench {
        let shadows =
            shadows.into_iter().map(|shadow| Box::new(shadow) as Box<dyn ReceiverAgent>).collect::<Vec<_>>();
        let ledger = AckLedger::new(Box::new(live), shadows, Duration::from_millis(490), AckMerge::Off);
        Bench { ledger, ring: TraceRing::new(100), path: Path::default(), rcv_nxt: Seq(0), reads: 0 }
    }

    fn with<T>(&mut self, ms: u64, act: impl FnOnce(&mut AckLedger, &mut Cx<'_>, &Facts<'_>) -> T) -> T {
        let facts = Facts {
            path: &self.path,
            peer_cwnd: None,
            mss: MSS,
            advertised: 65_535,
            holes: 0,
            rcv_nxt: self.rcv_nxt,
            ts_recent: self.rcv_nxt.0 / MSS,
        };
        self.reads += 1;
        let mut cx = Cx {
            now: Instant::from_millis(ms),
            conn: 1,
            packet: self.reads,
            memory: Memory::Plenty,
            ring: &mut self.ring,
        };
        act(&mut self.ledger, &mut cx, &facts)
    }

    fn in_order(&mut self, ms: u64) {
        self.rcv_nxt += MSS;
        self.arrives(ms, Class::InOrder, MSS, 1);
    }

    fn arrives(&mut self, ms: u64, class: Class, bytes: u32, count: u32) {
        let heard = Heard {
            class,
            bytes,
            each: MSS,
            push: false,
            ce: false,
            rate_asked: None,
            told: Some(1),
            rtt: None,
        };
        self.with(ms, |ledger, cx, facts| ledger.on_arrival(cx, &heard, count, facts));
    }

    fn trace(&mut self) -> Vec<TraceKind> {
        let mut kinds = Vec::new();
        self.ring.drain(&mut |event: &TraceEvent| kinds.push(event.kind));
        kinds
    }

    fn numbers(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.ledger.pop()).map(|ack| ack.number.0 / MSS).collect()
    }
}

fn every(n: u32) -> Scripted {
    Scripted { every: Some(n), ..Scripted::default() }
}

// shows: MUST-40
#[test]
fn an_agent_that_holds_for_ever_is_overruled_at_the_ceiling() {
    let mut bench = Bench::new(Scripted::default(), vec![]);
    bench.in_order(100);
    bench.in_order(300);
    assert_eq!(bench.ledger.deadline(), Instant::from_millis(590));
    bench.with(589, AckLedger::on_deadline);
    assert!(!bench.ledger.is_waiting());
    bench.with(590, AckLedger::on_deadline);
    assert_eq!(bench.numbers(), [2]);
    assert_eq!(bench.ledger.deadline(), Instant::FAR);
}

#[test]
fn the_number_and_the_echo_are_those_of_the_decision() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.in_order(0);
    bench.in_order(1);
    let first = bench.ledger.pop().expect("two wait");
    assert_eq!((first.number, first.echo, first.note.dup_count), (Seq(1000), 1, Some(0)));
    assert_eq!(bench.numbers(), [2]);
}

#[test]
fn all_but_the_newest_in_order_ack_go_alone() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.in_order(0);
    assert!(!bench.ledger.goes_alone(), "it may ride");
    bench.in_order(1);
    assert!(bench.ledger.goes_alone());
    bench.ledger.pop();
    assert!(!bench.ledger.goes_alone());
    bench.arrives(2, Class::OutOfOrder, MSS, 1);
    bench.ledger.pop();
    assert!(bench.ledger.goes_alone(), "a duplicate ACK must be seen by itself");
}

#[test]
fn the_ninth_waiting_ack_swallows_the_oldest_in_order_one() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.arrives(0, Class::OutOfOrder, MSS, 1);
    for ms in 1..=8 {
        bench.in_order(ms);
    }
    assert!(bench.trace().contains(&TraceKind::AckMerged { number: Seq(1000) }));
    assert_eq!(bench.numbers(), [0, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn data_that_leaves_carries_what_is_held_and_everyone_hears_of_it() {
    let mut bench = Bench::new(every(5), vec![every(9)]);
    bench.in_order(0);
    let ride = bench.with(1, AckLedger::ride);
    assert_eq!(ride.map(|ack| ack.number), Some(Seq(1000)));
    assert_eq!(bench.ledger.owed().segments, 0);
    assert_eq!(bench.ledger.shadows[0].owed.segments, 0);
    let none = bench.with(2, AckLedger::ride);
    assert!(none.is_none(), "nothing was owed");
}

#[test]
fn a_shadow_has_a_seat_of_its_own() {
    let mut bench = Bench::new(every(2), vec![every(3)]);
    for ms in 0..6 {
        bench.in_order(ms);
    }
    assert_eq!(bench.numbers(), [2, 4, 6]);
    assert_eq!(bench.ledger.shadow_acks().collect::<Vec<_>>(), [2]);
    let shadows =
        bench.trace().into_iter().filter(|kind| matches!(kind, TraceKind::ShadowAck { .. })).count();
    assert_eq!(shadows, 2);
}

#[test]
fn a_forced_ack_settles_every_seat() {
    let mut bench = Bench::new(every(5), vec![every(5)]);
    bench.in_order(0);
    bench.with(1, |ledger, cx, facts| ledger.force(cx, AckKind::Duplicate, Why::plain(Rule::Forced), facts));
    assert_eq!((bench.ledger.owed().segments, bench.ledger.shadows[0].owed.segments), (0, 0));
    assert_eq!(bench.ledger.owed().in_order_total, 1, "the count since the beginning stays");
}

#[test]
fn a_coalesced_read_reaches_the_agent_as_its_segments() {
    let mut bench = Bench::new(every(2), vec![]);
    bench.in_order(0);
    bench.ledger.pop();
    bench.rcv_nxt += 3 * MSS - 500;
    bench.arrives(30, Class::InOrder, 3 * MSS - 500, 3);
    // One was owed before: the first of the three completes a pair, the next two are another.
    assert_eq!(bench.ledger.owed().in_order_total, 4);
    let numbers: Vec<u32> = std::iter::from_fn(|| bench.ledger.pop()).map(|ack| ack.number.0).collect();
    assert_eq!(numbers, [2000, 3500], "each names its own segment");
}

#[test]
fn every_segment_of_a_read_out_of_order_gets_its_duplicate_ack() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.in_order(0);
    bench.ledger.pop();
    bench.arrives(1, Class::OutOfOrder, 3 * MSS, 3);
    assert_eq!(bench.numbers(), [1, 1, 1], "a sender without SACK counts them");
    bench.rcv_nxt += 5 * MSS;
    bench.arrives(2, Class::FillsHole, 5 * MSS, 2);
    assert_eq!(bench.numbers(), [2, 6], "the last one names what was there already");
}

#[test]
fn acks_that_wait_together_merge_into_the_last_when_asked_to() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.ledger.merge = AckMerge::Read;
    bench.rcv_nxt += 3 * MSS;
    bench.arrives(0, Class::InOrder, 3 * MSS, 3);
    bench.in_order(0);
    assert_eq!(bench.numbers(), [4], "two reads in a row are answered once");
    bench.in_order(1);
    assert_eq!(bench.numbers(), [5], "what has left is no part of it");
}

// shows: SHLD-19
#[test]
fn second_segments_left_open_are_counted() {
    let mut bench = Bench::new(every(5), vec![]);
    for ms in 0..5 {
        bench.in_order(ms);
    }
    assert_eq!(bench.ledger.seconds_held(), 2);
    let mut diligent = Bench::new(every(2), vec![]);
    for ms in 0..5 {
        diligent.in_order(ms);
    }
    assert_eq!(diligent.ledger.seconds_held(), 0);
}

#[test]
#[should_panic(expected = "L2")]
fn an_agent_whose_deadline_stays_due_is_a_bug() {
    #[derive(Debug)]
    struct Stuck;
    impl ReceiverAgent for Stuck {
        fn needs(&self) -> Needs {
            Needs::default()
        }
        fn on_arrival(&mut self, _: &Arrival, _: &RecvView<'_>) -> AckVerdict {
            AckVerdict::Hold(Why::plain(Rule::Each))
        }
        fn on_deadline(&mut self, _: Instant, _: &RecvView<'_>) -> AckVerdict {
            AckVerdict::Hold(Why::plain(Rule::Each))
        }
        crate::ignores!(on_ack);
        fn deadline(&self) -> Option<Instant> {
            Some(Instant::ZERO)
        }
        fn note(&self) -> AckNote {
            AckNote::default()
        }
        fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
    }
    let mut bench = Bench::new(Scripted::default(), vec![]);
    bench.ledger = AckLedger::new(Box::new(Stuck), vec![], Duration::from_millis(490), AckMerge::Off);
    bench.with(1, AckLedger::on_deadline);
}
