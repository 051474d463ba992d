//! The ledger's own rules, with a scripted agent.

use super::*;
use crate::agent::{AckDecided, AckRequest, Path, RecvView};
use crate::tcp::cx::Memory;
use crate::trace::{TraceEvent, TraceRing};

/// Acknowledges every `every`-th segment, or when `due` has come; never by itself if both are absent.
#[derive(Debug, Default)]
struct Scripted {
    every: Option<u32>,
    due: Option<Instant>,
    heard: Vec<By>,
    /// The gaps before the segments, which are its gauges.
    gaps: Vec<Duration>,
}

impl ReceiverAgent for Scripted {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn on_arrival(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> AckVerdict {
        self.gaps.extend(arrival.gap);
        let why = Why::new(AckRule::Count, view.owed.segments, self.every.unwrap_or(0));
        match (arrival.class, self.every) {
            (Class::OutOfOrder | Class::Duplicate, _) => AckVerdict::Now(Why::plain(AckRule::NotInOrder)),
            (_, Some(every)) if view.owed.segments >= every => AckVerdict::Now(why),
            _ => AckVerdict::Hold(why),
        }
    }

    fn on_deadline(&mut self, _: Instant, _: &RecvView<'_>) -> AckVerdict {
        self.due = None;
        AckVerdict::Now(Why::plain(AckRule::Deadline))
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

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.gaps.iter().for_each(|gap| sink("gap_ms", gap.as_millis() as u64));
    }
}

struct Bench {
    ledger: AckLedger,
    ring: TraceRing,
    path: Path,
    rcv_nxt: Seq,
    holes: u32,
    last_decided: Seq,
    reads: u64,
}

const MSS: u32 = 1000;

/// An ACK's number, its echo, its duplicate range and its stretch, all in segments.
type Left = (u32, Option<u32>, Option<(u32, u32)>, Option<(u32, u32)>);

/// One segment.
fn segment(ms: u64, class: Class, bytes: u32) -> Arrival {
    let now = Instant::from_millis(ms);
    Arrival { ack_request: Some(AckRequest::After(1)), ..Arrival::new(now, class, bytes) }
}

fn segments((from, to): (u32, u32)) -> Stretch {
    (Seq(from * MSS), Seq(to * MSS))
}

impl Bench {
    fn new(live: Scripted, shadows: Vec<Scripted>) -> Bench {
        let shadows =
            shadows.into_iter().map(|shadow| Box::new(shadow) as Box<dyn ReceiverAgent>).collect::<Vec<_>>();
        let ledger = AckLedger::new(Box::new(live), shadows, Duration::from_millis(490), AckMerge::Off);
        Bench {
            ledger,
            ring: TraceRing::new(100),
            path: Path::default(),
            rcv_nxt: Seq(0),
            holes: 0,
            last_decided: Seq(0),
            reads: 0,
        }
    }

    fn with_sack(live: Scripted, merge: AckMerge) -> Bench {
        let mut bench = Bench::new(live, vec![]);
        bench.ledger.merging = Merging { merge, has_sack: true };
        bench
    }

    fn with<T>(&mut self, ms: u64, act: impl FnOnce(&mut AckLedger, &mut Cx<'_>, &Facts<'_>) -> T) -> T {
        let facts = Facts {
            view: RecvView { holes: self.holes, ..RecvView::new(Owed::default(), &self.path, MSS, 65_535) },
            rcv_nxt: self.rcv_nxt,
            last_decided: self.last_decided,
            ts_recent: self.rcv_nxt.0 / MSS,
            timestamp: None,
            part_of: None,
        };
        self.reads += 1;
        let mut cx = Cx {
            now: Instant::from_millis(ms),
            conn: 1,
            packet: self.reads,
            memory: Memory::Plenty,
            ring: &mut self.ring,
        };
        let done = act(&mut self.ledger, &mut cx, &facts);
        if self.ledger.owed().segments == 0 {
            self.last_decided = self.rcv_nxt;
        }
        done
    }

    fn in_order(&mut self, ms: u64) {
        self.rcv_nxt += MSS;
        self.arrives(ms, Class::InOrder, MSS, 1);
    }

    fn arrives(&mut self, ms: u64, class: Class, bytes: u32, count: u32) {
        let read = segment(ms, class, bytes);
        self.with(ms, |ledger, cx, facts| ledger.on_arrival(cx, &read, (count, MSS), facts).is_some());
    }

    /// One segment above a hole, which makes this stretch of segments.
    fn above(&mut self, ms: u64, stretch: (u32, u32)) {
        self.holes = 1;
        let read = segment(ms, Class::OutOfOrder, MSS);
        self.with(ms, |ledger, cx, facts| {
            let facts = Facts { part_of: Some(segments(stretch)), ..*facts };
            ledger.on_arrival(cx, &read, (1, MSS), &facts).is_some()
        });
    }

    /// All segments up to this one have come, and none beyond.
    fn fills(&mut self, ms: u64, to: u32) {
        let bytes = Seq(to * MSS).bytes_since(self.rcv_nxt);
        (self.rcv_nxt, self.holes) = (Seq(to * MSS), 0);
        self.arrives(ms, Class::FillsHole, bytes, 1);
    }

    fn again(&mut self, ms: u64, stretch: (u32, u32)) {
        self.ledger.twice = Some(segments(stretch));
        self.arrives(ms, Class::Duplicate, MSS, 1);
    }

    fn pop(&mut self) -> Option<DecidedAck> {
        self.with(0, AckLedger::pop)
    }

    /// Each ACK that leaves.
    fn leaves(&mut self) -> Vec<Left> {
        let counted = |stretch: Option<Stretch>| stretch.map(|(from, to)| (from.0 / MSS, to.0 / MSS));
        let acks = std::iter::from_fn(|| self.pop());
        acks.map(|ack| (ack.number.0 / MSS, ack.echo, counted(ack.twice), counted(ack.part_of))).collect()
    }

    fn trace(&mut self) -> Vec<TraceKind> {
        let mut kinds = Vec::new();
        self.ring.drain(&mut |event: &TraceEvent| kinds.push(event.kind));
        kinds
    }

    fn numbers(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.pop()).map(|ack| ack.number.0 / MSS).collect()
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
    assert_eq!(bench.ledger.due, Instant::from_millis(590));
    bench.with(589, AckLedger::on_deadline);
    assert!(!bench.ledger.is_waiting());
    bench.with(590, AckLedger::on_deadline);
    assert_eq!(bench.numbers(), [2]);
    assert_eq!(bench.ledger.due, Instant::FAR);
}

#[test]
fn the_number_and_the_echo_are_those_of_the_decision() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.in_order(0);
    bench.in_order(1);
    let first = bench.pop().expect("two wait");
    assert_eq!((first.number, first.echo, first.note.dup_count), (Seq(1000), Some(1), Some(0)));
    assert_eq!(bench.numbers(), [2]);
}

#[test]
fn all_but_the_newest_in_order_ack_go_alone() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.in_order(0);
    assert!(!bench.ledger.goes_alone(), "it may ride");
    bench.in_order(1);
    assert!(bench.ledger.goes_alone());
    bench.pop();
    assert!(!bench.ledger.goes_alone());
    bench.arrives(2, Class::OutOfOrder, MSS, 1);
    bench.pop();
    assert!(bench.ledger.goes_alone(), "a duplicate ACK must be seen by itself");
}

#[test]
fn the_ninth_waiting_ack_swallows_the_oldest_in_order_one() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.arrives(0, Class::OutOfOrder, MSS, 1);
    for ms in 1..=8 {
        bench.in_order(ms);
    }
    assert!(bench.trace().contains(&TraceKind::AckMerged { number: Seq(1000), decision: 2, into: 3 }));
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
fn a_forced_ack_settles_every_agent() {
    let mut bench = Bench::new(every(5), vec![every(5)]);
    bench.in_order(0);
    bench.with(1, |ledger, cx, facts| {
        ledger.force(cx, AckKind::Duplicate, Why::plain(AckRule::Forced), facts);
    });
    assert_eq!((bench.ledger.owed().segments, bench.ledger.shadows[0].owed.segments), (0, 0));
    assert_eq!(bench.ledger.owed().in_order_total, 1, "the count since the beginning stays");
}

#[test]
fn a_coalesced_read_reaches_the_agent_as_its_segments() {
    let mut bench = Bench::new(every(2), vec![]);
    bench.in_order(0);
    bench.pop();
    bench.rcv_nxt += 3 * MSS - 500;
    bench.arrives(30, Class::InOrder, 3 * MSS - 500, 3);
    // One was owed before: the first of the three completes a pair, the next two form another.
    assert_eq!(bench.ledger.owed().in_order_total, 4);
    let numbers: Vec<u32> = std::iter::from_fn(|| bench.pop()).map(|ack| ack.number.0).collect();
    assert_eq!(numbers, [2000, 3500], "each names its own segment");
}

/// An agent's average gap must not grow with the segments that a link joins.
#[test]
fn the_segments_of_a_read_share_the_time_since_the_last_one() {
    let mut bench = Bench::new(every(9), vec![]);
    bench.in_order(0);
    bench.rcv_nxt += 3 * MSS;
    bench.arrives(30, Class::InOrder, 3 * MSS, 3);
    bench.in_order(34);
    let mut gaps = Vec::new();
    bench.ledger.gauges(&mut |_, gap| gaps.push(gap));
    assert_eq!(gaps, [10, 10, 10, 4]);
}

#[test]
fn every_segment_of_a_read_out_of_order_gets_its_duplicate_ack() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.in_order(0);
    bench.pop();
    bench.arrives(1, Class::OutOfOrder, 3 * MSS, 3);
    assert_eq!(bench.numbers(), [1, 1, 1], "a sender without SACK counts them");
    bench.rcv_nxt += 5 * MSS;
    bench.arrives(2, Class::FillsHole, 5 * MSS, 2);
    assert_eq!(bench.numbers(), [2, 6], "the last one names what was there already");
}

#[test]
fn acks_that_wait_together_merge_into_the_last_when_asked_to() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.ledger.merging.merge = AckMerge::Read;
    bench.rcv_nxt += 3 * MSS;
    bench.arrives(0, Class::InOrder, 3 * MSS, 3);
    bench.in_order(0);
    assert_eq!(bench.numbers(), [4], "two reads in a row are answered once");
    bench.in_order(1);
    assert_eq!(bench.numbers(), [5], "what has left is no part of it");
}

#[test]
fn what_merges_echoes_the_earliest_segment() {
    let mut bench = Bench::new(every(1), vec![]);
    bench.ledger.merging.merge = AckMerge::Read;
    for ms in 0..3 {
        bench.in_order(ms);
    }
    assert_eq!(bench.leaves(), [(3, Some(1), None, None)]);
    bench.in_order(3);
    assert_eq!(bench.leaves(), [(4, Some(4), None, None)], "what has left waits no longer");
}

#[test]
fn an_ack_that_gives_way_in_a_full_queue_leaves_its_echo_behind() {
    let mut bench = Bench::new(every(1), vec![]);
    for ms in 1..=10 {
        bench.in_order(ms);
    }
    assert_eq!(bench.leaves()[..2], [(3, Some(1), None, None), (4, Some(4), None, None)]);
}

#[test]
fn data_that_takes_an_ack_along_with_what_is_held_echoes_the_earlier() {
    let mut bench = Bench::new(every(2), vec![]);
    for ms in 0..3 {
        bench.in_order(ms);
    }
    let ride = bench.with(3, AckLedger::ride).expect("one waits, and one is owed");
    assert_eq!((ride.number, ride.echo), (Seq(3000), Some(2)));
}

#[test]
fn data_that_takes_an_ack_along_with_what_is_held_reports_what_came_twice() {
    for teller in [2, 3] {
        let mut bench = Bench::new(every(2), vec![]);
        for nth in 1..=3 {
            if nth == teller {
                bench.ledger.twice = Some(segments((0, 1)));
            }
            bench.in_order(nth);
        }
        let ride = bench.with(3, AckLedger::ride).expect("one waits, and one is owed");
        assert_eq!(ride.twice, Some(segments((0, 1))), "{teller}");
    }
}

#[test]
fn an_ack_that_gives_way_to_the_one_before_it_leaves_its_number_its_note_and_its_echo() {
    let mut bench = Bench::with_sack(every(1), AckMerge::Off);
    bench.in_order(0);
    bench.pop();
    bench.again(0, (0, 1));
    bench.in_order(1);
    let left = bench.pop().expect("the report of what came twice");
    assert_eq!((left.number, left.echo, left.note.dup_count), (Seq(2000), Some(2), Some(2)));
    assert!(bench.pop().is_none());
}

/// A block beside an older number would report a false hole, with merged ACKs and without.
#[test]
fn a_report_of_what_came_twice_tells_all_that_has_come_since() {
    for merge in [AckMerge::Off, AckMerge::Read] {
        let mut bench = Bench::with_sack(every(1), merge);
        bench.in_order(0);
        bench.again(0, (0, 1));
        bench.in_order(1);
        bench.in_order(2);
        assert_eq!(bench.leaves(), [(3, Some(1), Some((0, 1)), None)], "{merge:?}");
        assert_eq!(bench.ledger.owed().segments, 0);
    }
}

#[test]
fn each_report_of_what_came_twice_leaves_by_itself() {
    let mut bench = Bench::with_sack(every(1), AckMerge::Read);
    bench.in_order(0);
    bench.again(0, (0, 1));
    bench.in_order(0);
    bench.again(0, (1, 2));
    assert_eq!(bench.leaves(), [(2, Some(1), Some((0, 1)), None), (2, None, Some((1, 2)), None)]);
}

#[test]
fn what_an_agent_holds_is_told_by_an_ack_with_blocks_and_settled() {
    let mut bench = Bench::with_sack(every(5), AckMerge::Off);
    bench.in_order(0);
    bench.again(0, (0, 1));
    bench.in_order(1);
    assert_eq!(bench.ledger.owed().segments, 1);
    assert_eq!(bench.leaves(), [(2, Some(1), Some((0, 1)), None)]);
    assert_eq!(bench.ledger.owed().segments, 0, "its deadline must not send a copy");
}

/// RFC 7323 §4.3: the echo is that of the earliest segment that the ACK is the first to acknowledge.
#[test]
fn what_is_held_and_an_ack_that_waits_leave_with_the_earlier_echo_and_either_report() {
    let mut bench = Bench::with_sack(every(5), AckMerge::Off);
    bench.in_order(0);
    bench.above(1, (3, 4));
    bench.ledger.twice = Some(segments((0, 1)));
    bench.in_order(2);
    assert_eq!(bench.ledger.owed().segments, 1);
    assert_eq!(bench.leaves(), [(2, Some(1), Some((0, 1)), Some((3, 4)))]);
    assert_eq!(bench.ledger.owed().segments, 0);
}

#[test]
fn of_the_acks_for_one_stretch_above_a_hole_the_newest_leaves() {
    for merge in [AckMerge::Off, AckMerge::Read] {
        let mut bench = Bench::with_sack(every(1), merge);
        bench.in_order(0);
        bench.pop();
        bench.above(1, (2, 3));
        bench.above(1, (2, 4));
        bench.above(1, (6, 7));
        assert_eq!(
            bench.leaves(),
            [(1, None, None, Some((2, 4))), (1, None, None, Some((6, 7)))],
            "{merge:?}"
        );
    }
}

#[test]
fn no_ack_leaves_for_a_hole_that_is_filled() {
    for merge in [AckMerge::Off, AckMerge::Read] {
        let mut bench = Bench::with_sack(every(1), merge);
        bench.in_order(0);
        bench.pop();
        bench.above(1, (2, 3));
        bench.above(1, (4, 5));
        bench.fills(2, 5);
        assert_eq!(bench.leaves(), [(5, Some(5), None, None)], "{merge:?}");
    }
}

#[test]
fn a_filled_hole_whose_ack_is_held_is_told_by_the_one_that_waits() {
    let mut bench = Bench::with_sack(every(5), AckMerge::Off);
    bench.in_order(0);
    bench.with(0, AckLedger::ride);
    bench.above(1, (2, 3));
    bench.fills(2, 3);
    let left = bench.leaves();
    assert_eq!((left.len(), left[0].0), (1, 3));
    assert_eq!(bench.ledger.owed().segments, 0);
}

#[test]
fn without_merging_acks_in_order_keep_their_numbers() {
    let mut bench = Bench::with_sack(every(1), AckMerge::Off);
    bench.in_order(0);
    bench.in_order(1);
    assert_eq!(bench.leaves(), [(1, Some(1), None, None), (2, Some(2), None, None)]);
}

#[test]
fn forced_answers_of_one_read_are_one() {
    let mut bench = Bench::with_sack(every(1), AckMerge::Read);
    bench.in_order(0);
    for _ in 0..2 {
        let why = Why::plain(AckRule::Forced);
        bench.with(0, |ledger, cx, facts| ledger.force(cx, AckKind::Duplicate, why, facts));
        bench.in_order(0);
    }
    assert_eq!(bench.leaves(), [(3, Some(1), None, None)]);
}

/// SHLD-19 is about full-sized segments.
#[test]
fn second_segments_that_are_small_may_be_left_open() {
    let mut bench = Bench::new(every(5), vec![]);
    for (ms, bytes) in (0..).zip([MSS, MSS - 1, 1, MSS]) {
        bench.rcv_nxt += bytes;
        bench.arrives(ms, Class::InOrder, bytes, 1);
    }
    assert_eq!(bench.ledger.seconds_held, 1, "the fourth");
}

// shows: SHLD-19
#[test]
fn second_segments_left_open_are_counted() {
    let mut bench = Bench::new(every(5), vec![]);
    for ms in 0..5 {
        bench.in_order(ms);
    }
    assert_eq!(bench.ledger.seconds_held, 2);
    let mut diligent = Bench::new(every(2), vec![]);
    for ms in 0..5 {
        diligent.in_order(ms);
    }
    assert_eq!(diligent.ledger.seconds_held, 0);
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
            AckVerdict::Hold(Why::plain(AckRule::Each))
        }
        fn on_deadline(&mut self, _: Instant, _: &RecvView<'_>) -> AckVerdict {
            AckVerdict::Hold(Why::plain(AckRule::Each))
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
