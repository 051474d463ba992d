//! The scoreboard against its invariants, and its rules one by one.

use proptest::prelude::*;

use super::*;

const MSS: u32 = 100;

fn board(segments: u32) -> Scoreboard {
    let mut board = Scoreboard::default();
    for nth in 0..segments {
        board.push(Seq(nth * MSS), MSS, false, Instant::from_millis(u64::from(nth)));
    }
    board
}

fn states(board: &Scoreboard) -> String {
    (0..board.len())
        .map(|index| match board.get(index).state {
            SegmentState::Flight => 'f',
            SegmentState::Lost => 'L',
            SegmentState::Sacked => 's',
        })
        .collect()
}

fn sack(board: &mut Scoreboard, from: u32, to: u32) -> Delivered {
    let mut delivered = Delivered::default();
    board.sack(Seq(from * MSS), Seq(to * MSS), None, &mut delivered);
    delivered
}

#[test]
fn three_sacked_above_make_a_segment_lost() {
    let mut board = board(5);
    sack(&mut board, 1, 3);
    assert!(!board.mark_lost_by_sack(3, MSS));
    sack(&mut board, 3, 4);
    assert!(board.mark_lost_by_sack(3, MSS));
    assert_eq!(states(&board), "Lsssf");
    assert!(!board.mark_lost_by_sack(3, MSS), "no news");
}

#[test]
fn a_block_that_cuts_a_segment_leaves_it_unmarked() {
    let mut board = board(3);
    let mut delivered = Delivered::default();
    board.sack(Seq(MSS + 1), Seq(3 * MSS), None, &mut delivered);
    assert_eq!(states(&board), "ffs");
    board.sack(Seq(0), Seq(2 * MSS - 1), None, &mut delivered);
    assert_eq!(states(&board), "sfs");
}

#[test]
fn a_cumulative_ack_within_a_segment_shortens_it() {
    let mut board = board(2);
    let mut delivered = Delivered::default();
    board.ack(Seq(MSS + 40), None, &mut delivered);
    assert_eq!((board.len(), board.flight().bytes), (1, 60));
    assert_eq!(board.front().map(|front| front.seq), Some(Seq(MSS + 40)));
    assert_eq!((delivered.acked.segments, delivered.acked.bytes), (1, u64::from(MSS) + 40));
    board.check();
}

// shows: MUST-18
#[test]
fn what_was_sent_again_gives_no_rtt_sample() {
    let mut board = board(2);
    board.mark_all_lost();
    board.resent(0, Instant::from_millis(50));
    let mut delivered = Delivered::default();
    board.ack(Seq(MSS), None, &mut delivered);
    assert_eq!((delivered.first_acked, delivered.last_sent), (None, None));
    board.ack(Seq(2 * MSS), None, &mut delivered);
    assert_eq!(delivered.first_acked, Some(Instant::from_millis(1)));
}

#[test]
fn time_marks_what_was_sent_well_before_what_arrived() {
    let mut board = board(4);
    let delivered = sack(&mut board, 3, 4);
    let newest = delivered.newest.expect("something arrived");
    let window = Duration::from_millis(10);
    let (found, wait) = board.mark_lost_by_time(Instant::from_millis(11), &newest, window);
    assert_eq!((found, wait), (true, Some(Duration::from_millis(1))));
    assert_eq!(states(&board), "LLfs");
    let (found, wait) = board.mark_lost_by_time(Instant::from_millis(12), &newest, window);
    assert_eq!((found, wait), (true, None));
}

#[test]
fn what_was_sent_again_is_judged_by_its_second_departure() {
    let mut board = board(4);
    board.mark_first_lost();
    board.resent(0, Instant::from_millis(20));
    let delivered = sack(&mut board, 1, 4);
    let newest = delivered.newest.expect("something arrived");
    let (found, _) = board.mark_lost_by_time(Instant::from_millis(40), &newest, Duration::ZERO);
    assert!(!found, "it left after everything that has arrived");
}

#[test]
fn new_data_of_the_same_instant_does_not_show_that_a_resent_segment_is_lost() {
    let mut board = board(4);
    board.mark_first_lost();
    board.resent(0, Instant::from_millis(20));
    board.push(Seq(4 * MSS), MSS, false, Instant::from_millis(20));
    board.push(Seq(5 * MSS), MSS, false, Instant::from_millis(21));
    for (segment, is_lost) in [(4, false), (5, true)] {
        let newest = sack(&mut board, segment, segment + 1).newest.expect("something arrived");
        board.mark_lost_by_time(Instant::from_millis(40), &newest, Duration::ZERO);
        assert_eq!(states(&board).starts_with('L'), is_lost, "{segment}");
    }
}

#[test]
fn lost_segments_go_again_in_order_and_above_the_floor_only() {
    let mut board = board(4);
    board.mark_all_lost();
    assert_eq!(board.next_lost(Seq(0)), Some(0));
    assert_eq!(board.next_lost(Seq(2 * MSS)), Some(2));
    assert_eq!(board.at_or_before(Seq(4 * MSS)), Some(3));
    board.resent(0, Instant::ZERO);
    assert_eq!(board.next_lost(Seq(0)), Some(1));
}

#[test]
fn a_split_keeps_the_fin_at_the_end() {
    let mut board = Scoreboard::default();
    board.push(Seq(0), 301, true, Instant::ZERO);
    board.split(0, 200);
    assert_eq!((board.get(0).fin, board.get(0).len), (false, 200));
    assert_eq!((board.get(1).fin, board.get(1).payload_len()), (true, 100));
    board.check();
}

#[derive(Clone, Debug)]
enum Op {
    Push(u32),
    Bundle(u32),
    Ack(u32),
    Sack(u32, u32),
    FirstLost,
    AllLost,
    Resend,
    Unmark,
    Forget,
    BySack,
    ByTime,
    Split,
    Unsend,
    Larger,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1u32..300).prop_map(Op::Push),
        2 => (0u32..9).prop_map(Op::Bundle),
        3 => (0u32..2000).prop_map(Op::Ack),
        3 => (0u32..2000, 1u32..600).prop_map(|(from, len)| Op::Sack(from, len)),
        1 => Just(Op::FirstLost),
        1 => Just(Op::AllLost),
        3 => Just(Op::Resend),
        1 => Just(Op::Unmark),
        1 => Just(Op::Forget),
        2 => Just(Op::BySack),
        2 => Just(Op::ByTime),
        1 => Just(Op::Split),
        1 => Just(Op::Unsend),
        1 => Just(Op::Larger),
    ]
}

/// One ACK has the same effect as one for each segment.
fn assert_each_tells_the_same(board: &mut Scoreboard, una: Seq) -> Delivered {
    let highest_sacked = (0..board.len())
        .rev()
        .map(|index| board.get(index))
        .find_map(|segment| (segment.state == SegmentState::Sacked).then_some(segment.end()));
    let (mut one_by_one, mut summed) = (board.clone(), Delivered::default());
    while let Some(end) = one_by_one.front().map(SentSegment::end).filter(|end| *end <= una) {
        one_by_one.ack(end, highest_sacked, &mut summed);
    }
    one_by_one.ack(una, highest_sacked, &mut summed);
    let mut delivered = Delivered::default();
    board.ack(una, highest_sacked, &mut delivered);
    assert_eq!(format!("{delivered:?} {board:?}"), format!("{summed:?} {one_by_one:?}"));
    delivered
}

fn apply(
    board: &mut Scoreboard,
    (una, nxt): (&mut Seq, &mut Seq),
    now: Instant,
    newest: &mut Option<Newest>,
    op: Op,
) {
    let mut delivered = Delivered::default();
    match op {
        Op::Push(len) => {
            board.push(*nxt, len, false, now);
            *nxt += len;
        }
        Op::Bundle(count) => {
            board.push_alike(*nxt, MSS, count, now);
            *nxt += count * MSS;
        }
        Op::Ack(by) => {
            *una = (*una + by).min(*nxt);
            delivered = assert_each_tells_the_same(board, *una);
        }
        Op::Sack(from, len) => board.sack(*una + from, *una + from + len, None, &mut delivered),
        Op::FirstLost => drop(board.mark_first_lost()),
        Op::AllLost => board.mark_all_lost(),
        Op::Resend => {
            if let Some(index) = board.next_lost(*una) {
                board.resent(index, now);
            }
        }
        Op::Unmark => board.unmark_lost(),
        Op::Forget => board.forget_sacks(),
        Op::BySack => drop(board.mark_lost_by_sack(3, MSS)),
        Op::ByTime => {
            if let Some(newest) = newest {
                board.mark_lost_by_time(now, newest, Duration::from_millis(3));
            }
        }
        Op::Split => {
            if let Some(index) = (0..board.len()).find(|index| board.get(*index).len > 1) {
                board.split(index, board.get(index).len / 2);
            }
        }
        Op::Unsend => {
            if let Some(last) = board.unsend_last() {
                *nxt = last.seq;
                *una = (*una).min(*nxt);
            }
        }
        Op::Larger => board.mark_larger_lost(150),
    }
    *newest = delivered.newest.or(*newest);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_counts_are_those_of_the_segments_whatever_happens(
        start: u32,
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut board = Scoreboard::default();
        let (mut una, mut nxt, mut newest) = (Seq(start), Seq(start), None);
        for (ms, op) in (0u64..).zip(ops) {
            apply(&mut board, (&mut una, &mut nxt), Instant::from_millis(ms), &mut newest, op);
            board.check();
            prop_assert_eq!(board.is_empty(), una == nxt);
            prop_assert!(board.next_lost(una).is_some() == (board.lost().segments > 0));
        }
    }
}
