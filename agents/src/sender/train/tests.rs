mod turns;

use std::time::Duration;

use hopwise_core::agent::{AckRequest, AckRequestForm, HopSource, LossKind, Recovered, SentKind, Turn};
use hopwise_core::{Instant, Seq};
use proptest::prelude::*;

use crate::testkit::sender::{Bench, MSS};

const RTT: Duration = Duration::from_millis(64);

fn bench() -> Bench {
    let mut bench = Bench::new("train").with_rtt(RTT);
    bench.unsent_bytes = 1_000_000;
    bench
}

fn segments(bench: &Bench) -> u64 {
    bench.gauge("train_segments").expect("a gauge")
}

fn gap_us(bench: &Bench) -> u64 {
    bench.gauge("gap_us").expect("a gauge")
}

/// Returns whether a new segment may leave within a second.
fn may_go_on(bench: &mut Bench) -> bool {
    let now = bench.now;
    bench.allowed().new_from <= now + Duration::from_secs(1)
}

/// The number that the next segment carries: the segments of its train that are still to come.
fn asked(bench: &mut Bench) -> Option<u8> {
    asked_at(bench, bench.snd_nxt())
}

fn asked_at(bench: &mut Bench, first: Seq) -> Option<u8> {
    match bench.note_at(first).ack_request {
        Some(AckRequest::After(left)) => Some(left),
        _ => None,
    }
}

/// The numbers that the segments of the next train carry. The train's ACK comes a round trip after its last segment.
fn train(bench: &mut Bench) -> Vec<u8> {
    let mut asked = Vec::new();
    while may_go_on(bench) {
        bench.now = bench.now.max(bench.allowed().new_from);
        let Some(AckRequest::After(asks) | AckRequest::Rate(asks)) = bench.note().ack_request else {
            panic!("{asked:?} and no request")
        };
        asked.push(asks);
        bench.send(1);
    }
    bench.wait(RTT);
    bench.ack(bench.flight.segments);
    asked
}

#[test]
fn the_first_train_is_a_segment_and_the_next_ones_double_until_they_take_the_span() {
    let mut bench = bench();
    assert_eq!(train(&mut bench), [1]);
    assert_eq!(train(&mut bench), [2, 1]);
    assert_eq!(train(&mut bench), [4, 3, 2, 1]);
    assert_eq!((gap_us(&bench), segments(&bench)), (36_000, 8));
    train(&mut bench);
    assert_eq!((gap_us(&bench), segments(&bench)), (27_000, 16));
    train(&mut bench);
    assert_eq!((gap_us(&bench), segments(&bench)), (20_250, 22), "460 ms of 20.25 ms");
}

#[test]
fn segments_leave_a_gap_apart_and_the_next_train_waits_for_the_ack() {
    let mut bench = bench();
    (0..3).for_each(|_| drop(train(&mut bench)));
    let began = bench.now;
    for nth in 0..8 {
        assert_eq!(bench.allowed().new_from.max(began), began + nth * Duration::from_millis(36));
        bench.now = bench.allowed().new_from.max(began);
        bench.send(1);
        assert_eq!(bench.allowed().burst_bytes, MSS);
        assert_eq!(bench.allowed().resend_from, bench.now + Duration::from_millis(36));
    }
    assert!(!may_go_on(&mut bench));
    bench.ack(3);
    assert!(!may_go_on(&mut bench), "an ACK that was not asked for lets nothing leave");
    bench.ack(5);
    assert!(may_go_on(&mut bench));
}

#[test]
fn what_is_sent_again_tells_what_is_left_behind_it() {
    let mut bench = bench();
    (0..2).for_each(|_| drop(train(&mut bench)));
    (0..4).for_each(|_| bench.send(1));
    let una = bench.snd_una;
    let asked: Vec<_> = (0..4).map(|nth| asked_at(&mut bench, una + nth * MSS)).collect();
    assert_eq!(asked, [Some(4), Some(3), Some(2), Some(1)]);
}

/// A flow with little data waits for nothing: the last segment that is ready requests an ACK.
#[test]
fn the_last_segment_that_is_ready_asks_and_more_may_follow_it() {
    let mut bench = bench();
    (0..3).for_each(|_| drop(train(&mut bench)));
    bench.unsent_bytes = 2_500;
    assert_eq!(asked(&mut bench), Some(2), "Nagle's rule may hold the rest");
    bench.unsent_bytes = 1_000;
    assert_eq!(asked(&mut bench), Some(1));
    bench.unsent_bytes = 0;
    bench.send(1);
    bench.unsent_bytes = 9_000;
    assert!(may_go_on(&mut bench));
    assert_eq!(asked(&mut bench), Some(7));
    bench.unsent_bytes = 0;
    bench.send(1);
    bench.ack(2);
    assert_eq!(segments(&bench), 8, "two of eight prove nothing");
    bench.unsent_bytes = 90_000;
    assert_eq!(asked(&mut bench), Some(8), "a train of its own");
}

#[test]
fn a_receivers_window_that_is_smaller_than_a_train_ends_it() {
    let mut bench = bench();
    (0..3).for_each(|_| drop(train(&mut bench)));
    bench.snd_wnd = 3_500;
    assert_eq!(asked(&mut bench), Some(3));
    bench.send(3);
    bench.ack(3);
    assert!(may_go_on(&mut bench));
    bench.snd_wnd = 0;
    assert_eq!(asked(&mut bench), Some(1));
}

#[test]
fn a_peer_that_knows_rate_requests_alone_is_asked_by_them() {
    let mut bench = bench();
    bench.ack_requests = Some(AckRequestForm::Rate);
    train(&mut bench);
    assert_eq!(bench.note().ack_request, Some(AckRequest::Rate(2)));
    bench.send(1);
    assert_eq!(bench.note().ack_request, Some(AckRequest::Rate(0)));
    bench.ack_requests = Some(AckRequestForm::After);
    assert_eq!(asked(&mut bench), Some(1));
}

#[test]
fn under_a_peer_that_cannot_be_asked_a_window_of_one_train_slides() {
    let mut bench = bench();
    bench.ack_requests = None;
    for _ in 0..200 {
        while bench.flight.segments < bench.allowed_segments() as u32 {
            bench.now = bench.now.max(bench.allowed().new_from);
            bench.send(1);
        }
        bench.wait(RTT / 8);
        bench.ack(2.min(bench.flight.segments));
    }
    assert!(segments(&bench) > 8, "{}", segments(&bench));
    assert!(may_go_on(&mut bench));
    // No queue builds up on this path, so that it counts as long as a wire. The segments that it holds may be in flight
    // together with a train.
    let held = RTT.as_micros() as u64 / gap_us(&bench) * 5 / 4;
    assert!(bench.allowed_segments() <= 2 * segments(&bench).max(held), "{}", bench.allowed_segments());
}

#[test]
fn a_lost_segment_ends_the_beginning_and_takes_no_window() {
    let mut bench = bench();
    (0..3).for_each(|_| drop(train(&mut bench)));
    bench.send(8);
    assert_eq!(bench.lose(LossKind::Fast).ssthresh, 8_000);
    bench.sent(bench.count(1), SentKind::Resent);
    bench.recover(Recovered::Full);
    bench.ack(8);
    assert_eq!((gap_us(&bench), segments(&bench)), (36_000, 12));
}

#[test]
fn a_loss_that_was_none_slows_nothing_down() {
    let mut bench = bench();
    (0..3).for_each(|_| drop(train(&mut bench)));
    bench.send(8);
    bench.lose(LossKind::Fast);
    bench.recover(Recovered::Undone);
    bench.wait(RTT);
    bench.ack(8);
    assert_eq!(gap_us(&bench), 27_000);
}

#[test]
fn after_a_timeout_one_segment_goes_and_its_ack_lets_the_rest_follow() {
    let mut bench = bench();
    (0..3).for_each(|_| drop(train(&mut bench)));
    bench.send(8);
    bench.lose(LossKind::Timeout { nth: 1 });
    assert_eq!(bench.allowed_segments(), 1);
    let una = bench.snd_una;
    assert_eq!(asked_at(&mut bench, una), Some(1), "nothing follows that could ask");
    bench.flight = bench.count(8);
    bench.sent(bench.count(1), SentKind::AfterTimeout);
    bench.ack(1);
    assert_eq!(bench.allowed_segments(), 8);
}

/// The round trip of a segment that left twice may belong to its first copy. It would stay the least of all.
#[test]
fn a_round_trip_that_may_be_of_another_copy_is_not_taken() {
    let mut bench = bench();
    train(&mut bench);
    bench.send(2);
    bench.sent(bench.count(1), SentKind::Probe);
    bench.path.rtt.smoothed = Some(Duration::from_micros(10));
    bench.ack(2);
    assert_eq!(bench.gauge("least_rtt_us"), Some(64_000));
}

/// The length of a train that is held is in every sample of the timer. A dead path must not be flooded.
#[test]
fn the_retransmission_timer_doubles_from_the_fourth_timeout_on() {
    assert_eq!(Bench::new("train").tunables().rto_held, 3);
}

/// RFC 8985 §7.3 sends new data as a probe if there is some. Such data belongs to the train.
#[test]
fn a_tail_probe_of_new_data_spoils_no_round_trip() {
    let mut bench = bench();
    (0..2).for_each(|_| drop(train(&mut bench)));
    bench.send(1);
    let carried = bench.count(1);
    (bench.flight.segments, bench.flight.bytes) = (2, 2 * u64::from(MSS));
    bench.sent(carried, SentKind::Probe);
    bench.send(2);
    bench.path.rtt.smoothed = Some(Duration::from_millis(50));
    bench.ack(4);
    assert_eq!(bench.gauge("least_rtt_us"), Some(50_000));
}

/// Sends until there is no pause, or for this many trains. Returns whether there is none.
fn flows_within(bench: &mut Bench, trains: u32) -> bool {
    (0..trains).any(|_| {
        train(bench);
        bench.allowed_segments() > segments(bench)
    })
}

/// A gap of which the empty path holds two segments or more belongs to a lone flow.
#[test]
fn on_a_short_path_the_pause_is_left_out_where_nobody_else_sends() {
    let mut bench = bench();
    bench.path.hops_to_peer = Some((3, HopSource::Routing));
    // A queue of twelve segments on an empty path ends the beginning.
    (0..6).for_each(|_| drop(train(&mut bench)));
    bench.path.rtt.smoothed = Some(RTT * 4);
    train(&mut bench);
    bench.path.rtt.smoothed = Some(RTT * 14);
    assert!(!flows_within(&mut bench, 100), "others send");
    bench.path.rtt.smoothed = Some(RTT);
    assert!(flows_within(&mut bench, 200));
}

#[test]
fn a_lost_syn_is_no_loss() {
    let mut bench = bench();
    bench.lose(LossKind::Timeout { nth: 1 });
    bench.recover(Recovered::Full);
    assert_eq!(bench.allowed_segments(), 1);
    bench.now = Instant::ZERO + RTT;
    assert_eq!(train(&mut bench), [1]);
    assert_eq!(gap_us(&bench), 64_000);
}

#[test]
fn trains_go_on_where_numbers_wrap_and_segments_change_their_size() {
    let mut bench = bench();
    bench.snd_una = Seq(u32::MAX - 2_000);
    // This test ignores the window, and sixteen hundred segments of 9000 bytes are ahead in the end.
    bench.snd_wnd = 100_000_000;
    for mss in [1_000, 1_460, 536, 9_000, 48] {
        bench.mss = mss;
        for _ in 0..6 {
            let asked = train(&mut bench);
            // Each train counts down. Without a pause the next train follows it.
            let is_next = |pair: &[u8]| pair[1] == pair[0] - 1 || pair[0] == 1 && pair[1] == 64;
            assert!(asked[0] <= 64 && asked.windows(2).all(is_next), "{asked:?}");
        }
    }
}

/// ACKs come byte by byte or all at once. An ACK that was not requested lets nothing leave, and a segment counts once.
#[test]
fn acks_that_are_divided_let_nothing_leave_before_the_last_one() {
    let mut bench = bench();
    (0..3).for_each(|_| drop(train(&mut bench)));
    (0..8).for_each(|_| bench.send(1));
    for _ in 0..79 {
        bench.ack_bytes(100);
        assert!(!may_go_on(&mut bench), "{} bytes are still to come", bench.flight.bytes);
    }
    bench.ack_bytes(100);
    assert!(may_go_on(&mut bench));
    assert_eq!(segments(&bench), 16, "as after one ACK");
}

/// A peer that acknowledges too early gets the shortest gap there is, and no more than one train at a time.
#[test]
fn acks_that_come_too_early_open_no_more_than_the_longest_train() {
    let mut bench = bench();
    bench.path.rtt.smoothed = Some(Duration::ZERO);
    for _ in 0..300 {
        let mut sent = 0;
        while may_go_on(&mut bench) && bench.flight.bytes + u64::from(MSS) <= bench.allowed().flight_bytes {
            bench.now = bench.now.max(bench.allowed().new_from);
            bench.send(1);
            sent += 1;
        }
        assert!((1..=128).contains(&sent), "{sent}");
        bench.ack(bench.flight.segments);
    }
    assert_eq!((segments(&bench), gap_us(&bench)), (64, 50));
}

#[test]
fn under_a_clock_that_stands_still_one_segment_leaves_and_the_next_has_a_time() {
    let mut bench = bench();
    (0..3).for_each(|_| drop(train(&mut bench)));
    bench.now = bench.now.max(bench.allowed().new_from);
    bench.send(1);
    let next = bench.now + Duration::from_millis(36);
    for _ in 0..100 {
        bench.ack_bytes(10);
        assert_eq!(bench.allowed().new_from, next);
    }
}

/// Events that a lying peer, a clock or a path may cause.
#[derive(Clone, Debug)]
enum Bad {
    Waits(u64),
    /// Segments that the allowance lets leave, at most this many.
    Sends(u32),
    /// Bytes that are acknowledged, requested or not; 0 repeats the last ACK.
    Acks(u64),
    Rtt(u64),
    Window(u32),
    Mss(u32),
    Unsent(u64),
    Loses(LossKind),
    Recovers,
    Asking(Option<AckRequestForm>),
    /// Other flows begin and end, and take their turns.
    Stands(Turn),
    Hops(Option<u8>),
}

fn bad() -> impl Strategy<Value = Bad> {
    prop_oneof![
        3 => prop_oneof![Just(0), 0..2_000_000_000u64, Just(600_000_000_000)].prop_map(Bad::Waits),
        8 => (1..90u32).prop_map(Bad::Sends),
        8 => prop_oneof![Just(0), Just(1), 0..3_000u64, Just(u64::MAX)].prop_map(Bad::Acks),
        1 => prop_oneof![Just(0), 1..400_000u64, Just(600_000_000)].prop_map(Bad::Rtt),
        1 => prop_oneof![Just(0), 1..3_000u32, Just(10_000_000)].prop_map(Bad::Window),
        1 => (48..9_000u32).prop_map(Bad::Mss),
        1 => prop_oneof![Just(0), 1..5_000u64, Just(1_000_000)].prop_map(Bad::Unsent),
        1 => prop_oneof![Just(LossKind::Fast), (1..9u32).prop_map(|nth| LossKind::Timeout { nth })]
            .prop_map(Bad::Loses),
        1 => Just(Bad::Recovers),
        1 => prop::sample::select(vec![None, Some(AckRequestForm::Rate), Some(AckRequestForm::After)])
            .prop_map(Bad::Asking),
        1 => prop::sample::select(vec![Turn::Free, Turn::Alone, Turn::Waiting, Turn::Holding])
            .prop_map(Bad::Stands),
        1 => any::<Option<u8>>().prop_map(Bad::Hops),
    ]
}

fn suffer(bench: &mut Bench, bad: &Bad) {
    match *bad {
        Bad::Waits(ns) => bench.wait(Duration::from_nanos(ns)),
        Bad::Sends(most) => {
            for _ in 0..most {
                let allowed = bench.allowed();
                let fits = bench.flight.bytes + u64::from(bench.mss) <= allowed.flight_bytes;
                if allowed.new_from > bench.now + Duration::from_secs(1) || !fits {
                    break;
                }
                bench.now = bench.now.max(allowed.new_from);
                assert_ne!(asked(bench), Some(0));
                bench.send(1);
            }
        }
        Bad::Acks(bytes) => bench.ack_bytes(bytes),
        Bad::Rtt(us) => bench.path.rtt.smoothed = Some(Duration::from_micros(us)),
        Bad::Window(bytes) => bench.snd_wnd = bytes,
        Bad::Mss(mss) => bench.mss = mss,
        Bad::Unsent(bytes) => bench.unsent_bytes = bytes,
        Bad::Loses(kind) => drop(bench.lose(kind)),
        Bad::Recovers => bench.recover(Recovered::Full),
        Bad::Asking(form) => bench.ack_requests = form,
        Bad::Stands(turn) => bench.turn = turn,
        Bad::Hops(hops) => bench.path.hops_to_peer = hops.map(|hops| (hops, HopSource::Ttl)),
    }
}

proptest! {

    /// Two trains bound the flight, or a train and what a long path holds. With nothing in flight, a segment may leave
    /// within the longest gap.
    #[test]
    fn a_peer_that_lies_neither_stops_it_nor_opens_it(
        handshake_us in prop::option::of(0..900_000u64),
        events in prop::collection::vec(bad(), 1..200),
    ) {
        let mut bench = bench();
        bench.path.rtt.latest = handshake_us.map(Duration::from_micros);
        for event in &events {
            suffer(&mut bench, event);
            let gap_us = gap_us(&bench);
            prop_assert!(gap_us <= 2_000_000);
            let held = bench.gauge("least_rtt_us").unwrap_or(0) * 5 / 4 / gap_us.max(50) + 1;
            let most = 64 + held.max(64);
            let allowed = bench.allowed();
            prop_assert!(allowed.flight_bytes <= most * u64::from(bench.mss), "{allowed:?} of {most}");
            if bench.flight.bytes == 0 {
                let soon = bench.now + Duration::from_secs(2);
                prop_assert!(allowed.new_from <= soon && allowed.resend_from <= soon, "{allowed:?}");
            }
        }
    }
}

/// A flow with little data must not begin with one segment per round trip.
#[test]
fn the_handshake_tells_with_what_to_begin() {
    let mut bench = bench();
    bench.path.rtt.latest = Some(Duration::from_millis(30));
    assert_eq!(train(&mut bench), [4, 3, 2, 1]);
    assert_eq!(
        (gap_us(&bench).div_ceil(10), segments(&bench)),
        (1_350, 8),
        "0.6 of 30 ms, a quarter quicker"
    );
}

/// A path as long as a wire, on which nothing ever queues.
fn wire(snd_wnd: u32) -> Bench {
    let mut bench = bench();
    bench.snd_wnd = snd_wnd;
    (0..60).for_each(|_| drop(train(&mut bench)));
    assert!(bench.allowed_segments() > segments(&bench), "it does not wait");
    bench
}

/// If one train took half of such a window, the next one would wait for its ACK.
#[test]
fn trains_that_follow_each_other_leave_room_for_each_other_in_a_window() {
    assert_eq!(segments(&wire(65_000)), 21);
    assert_eq!(segments(&wire(10_000_000)), 64);
}

#[test]
fn what_a_wire_loses_brings_no_pause_back() {
    let mut bench = wire(10_000_000);
    for _ in 0..40 {
        bench.send(64);
        bench.lose(LossKind::Fast);
        bench.recover(Recovered::Full);
        bench.ack(64);
    }
    assert!(bench.allowed_segments() > segments(&bench));
}

/// Trains in flight have the length with which they left.
#[test]
fn where_trains_follow_each_other_an_ack_for_most_of_one_ends_it() {
    let mut bench = wire(10_000_000);
    bench.path.rtt.smoothed = Some(RTT * 2);
    let before = gap_us(&bench);
    bench.send(128);
    bench.ack(32);
    assert_eq!(gap_us(&bench), before, "half of it");
    bench.ack(1);
    assert!(gap_us(&bench) > before);
}
