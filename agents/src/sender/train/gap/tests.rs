use super::*;

fn train(rtt_ms: f64, segments: f64) -> TrainOutcome {
    TrainOutcome { rtt_s: Some(rtt_ms / 1_000.0), segments, lost: false }
}

fn begun(rtt_ms: f64) -> Gap {
    let mut gap = Gap::new(Part::Nothing, false);
    gap.on_train(&train(rtt_ms, 1.0));
    gap
}

fn steady(rtt_ms: f64, lowered: u32) -> Gap {
    let mut gap = begun(rtt_ms);
    (0..lowered).for_each(|_| gap.on_train(&train(rtt_ms, 1.0)));
    gap.on_train(&train(rtt_ms + f64::from(FIRST_SEGMENTS) * 1_000.0 * gap.seconds + 0.001, 1e9));
    assert!(!gap.is_starting());
    gap
}

#[test]
fn the_first_round_trip_is_the_gap_and_each_further_train_is_quicker() {
    let mut gap = begun(64.0);
    assert_eq!(gap.seconds, 0.064);
    gap.on_train(&train(64.0, 2.0));
    assert_eq!(gap.seconds, 0.048);
    gap.on_train(&TrainOutcome { rtt_s: None, segments: 2.0, lost: false });
    assert_eq!(gap.seconds, 0.048, "a train without a round trip proves nothing");
}

/// The queue that a train left shows how much too quick it was.
#[test]
fn the_beginning_ends_at_the_rate_that_the_path_showed() {
    let mut gap = begun(64.0);
    (0..3).for_each(|_| gap.on_train(&train(64.0, 4.0)));
    assert!((gap.seconds - 0.027).abs() < 1e-9);
    gap.on_train(&train(64.0 + 160.0, 16.0));
    assert!(!gap.is_starting());
    assert!((gap.seconds - 0.037).abs() < 1e-9, "{gap:?}");
    let mut lost = begun(64.0);
    lost.on_train(&TrainOutcome { lost: true, ..train(64.0, 1.0) });
    assert!(!lost.is_starting() && lost.seconds == 0.064, "{lost:?}");
}

#[test]
fn a_step_is_small_and_down_is_smaller_than_up() {
    let mut gap = steady(64.0, 4);
    let before = gap.seconds;
    gap.on_train(&train(64.0, 1.0));
    assert!((gap.seconds / before - 0.98).abs() < 1e-9, "{gap:?}");
    let before = gap.seconds;
    gap.on_train(&train(10_000.0, 1.0));
    assert!((gap.seconds / before - 1.15).abs() < 1e-9, "{gap:?}");
    let before = gap.seconds;
    gap.on_train(&TrainOutcome { rtt_s: None, segments: 1.0, lost: true });
    assert_eq!(gap.seconds, before, "whose fault it was is not known");
}

/// A link that fades loses segments at any gap, so a slower train would only be slower.
#[test]
fn a_loss_beside_a_short_round_trip_slows_nothing_down() {
    let mut gap = steady(64.0, 4);
    let before = gap.seconds;
    (0..50).for_each(|_| gap.on_train(&TrainOutcome { lost: true, ..train(64.0, 10.0) }));
    assert_eq!(gap.seconds, before);
    gap.on_train(&TrainOutcome { lost: true, ..train(64.0 + 20.0 * 1_000.0 * before, 10.0) });
    assert!(gap.seconds > before * 1.03, "{gap:?}");
}

#[test]
fn each_way_has_a_gap_of_its_own() {
    let mut gap = steady(64.0, 4);
    let waiting = gap.seconds;
    gap.turn(Pausing::Off);
    assert_eq!(gap.seconds, waiting, "as a beginning");
    (0..6).for_each(|_| gap.on_train(&train(64.0, 16.0)));
    assert!(gap.seconds < 0.6 * waiting, "a tenth quicker each time: {gap:?}");
    let flowing = gap.seconds;
    gap.turn(Pausing::On);
    assert_eq!(gap.seconds, waiting);
    gap.turn(Pausing::Off);
    assert_eq!(gap.seconds, flowing);
}

/// The queue of a wire answers a round trip later. Its growth shows how much too quick the last train was.
#[test]
fn a_flowing_gap_settles_where_a_wire_serves() {
    let mut gap = begun(100.0);
    gap.turn(Pausing::Off);
    let (service_s, mut queue_s, mut late) = (0.002, 0.0_f64, [0.1; 3]);
    for _ in 0..300 {
        late = [late[1], late[2], 0.1 + queue_s];
        gap.on_train(&train(late[0] * 1_000.0, 16.0));
        queue_s = (queue_s + 16.0 * (service_s - gap.seconds)).clamp(0.0, 0.2);
    }
    assert!((gap.seconds / service_s - 1.0).abs() < 0.1, "{gap:?}");
}

/// A flow that comes last measures the queue of the earlier flows. Only the handshake bounds its least round trip.
#[test]
fn the_least_round_trip_is_no_longer_than_two_and_a_half_handshakes() {
    let mut gap = Gap::new(Part::Nothing, false);
    gap.hear_path(None, Some(Duration::from_millis(20)));
    gap.on_train(&train(900.0, 1.0));
    assert_eq!(gap.base_s, 0.05);
}

/// Seven tenths of a segment are much for a short train. For a long one they are hardly more than round trips vary.
#[test]
fn a_long_train_may_leave_more_of_a_queue() {
    for (segments, is_slower) in [(20.0, true), (40.0, true), (64.0, false)] {
        let mut gap = steady(28.0, 5);
        let before = gap.seconds;
        assert!((0.006..0.0075).contains(&before), "{gap:?}");
        gap.on_train(&train(28.0 + 700.0 * before, segments));
        assert_eq!(gap.seconds > before, is_slower, "{segments} segments: {gap:?}");
    }
}

/// With 200 ms between segments on a path of 60 ms, one flow more or less is no danger.
#[test]
fn a_gap_far_above_its_place_comes_down_quicker() {
    let mut gap = Gap { seconds: 0.2, ..steady(60.0, 3) };
    gap.on_train(&train(60.0, 2.0));
    assert!((gap.seconds / 0.2 - 0.925).abs() < 1e-9, "{gap:?}");
}

#[test]
fn a_path_is_noisy_when_hardly_a_train_finds_it_empty() {
    let mut gap = steady(64.0, 4);
    (0..40).for_each(|_| gap.on_train(&train(65.0, 20.0)));
    assert!(!gap.is_noisy());
    (0..40).for_each(|_| gap.on_train(&train(84.0, 20.0)));
    assert!(gap.is_noisy());
    gap.turn(Pausing::Off);
    (0..40).for_each(|_| gap.on_train(&train(64.0, 20.0)));
    assert!(gap.is_noisy(), "who does not wait cannot tell");
}

/// Two flows with different gaps see one queue, and their gaps meet.
#[test]
fn flows_of_one_path_come_to_one_gap() {
    let (mut quick, mut slow) = (steady(60.0, 5), steady(60.0, 2));
    assert!(slow.seconds > 2.0 * quick.seconds);
    for _ in 0..400 {
        let rate = 1.0 / quick.seconds + 1.0 / slow.seconds;
        // A queue stands while both together are quicker than 20 ms a segment.
        let rtt_ms = 60.0 + 400.0 * (rate * 0.02 - 0.9).max(0.0);
        quick.on_train(&train(rtt_ms, (0.46 / quick.seconds).floor()));
        slow.on_train(&train(rtt_ms, (0.46 / slow.seconds).floor()));
    }
    assert!(slow.seconds / quick.seconds < 1.1, "{quick:?} {slow:?}");
}

#[test]
fn round_trips_of_nothing_and_of_minutes_leave_a_gap_within_its_bounds() {
    let mut gap = begun(0.0);
    assert_eq!(gap.seconds, LEAST_S);
    (0..99).for_each(|_| gap.on_train(&train(0.0, 64.0)));
    assert_eq!(gap.seconds, LEAST_S);
    (0..99).for_each(|_| gap.on_train(&train(600_000.0, 1.0)));
    assert!(gap.seconds > LEAST_S && gap.seconds <= MOST_S && gap.seconds.is_finite(), "{gap:?}");
    let gap = begun(600_000.0);
    assert_eq!(gap.seconds, MOST_S);
}

/// Ten hops of 6 ms: a segment comes out of such a path every 24 ms.
#[test]
fn beside_a_queue_that_others_fill_it_takes_a_share_and_then_goes_on_from_there() {
    let mut gap = Gap { crowd: Some(CrowdShare::default()), ..steady(60.0, 3) };
    gap.hear_path(Some(10), Some(Duration::from_millis(30)));
    (0..8).for_each(|_| gap.on_train(&train(60.0 + 40.0 * 24.0, 3.0)));
    let share = gap.share().expect("a crowd");
    assert!((share - 0.8 * 37.0).abs() < 0.1, "{gap:?}");
    assert!((gap.seconds - gap.smoothed_s / share).abs() < 1e-9);
    let before = gap.seconds;
    gap.on_train(&TrainOutcome { rtt_s: None, segments: 9.0, lost: true });
    assert_eq!(gap.seconds, before, "others lose segments there too");
    (0..40).for_each(|_| gap.on_train(&train(70.0, 20.0)));
    assert_eq!(gap.share(), None);
    assert!(gap.seconds < 0.06, "{gap:?}");
}

/// This many segments queue if many flows of the own kind share a path.
#[test]
fn a_queue_of_its_own_kind_is_no_crowd() {
    let mut gap = Gap { crowd: Some(CrowdShare::default()), ..steady(60.0, 3) };
    gap.hear_path(Some(10), Some(Duration::from_millis(30)));
    (0..200).for_each(|_| gap.on_train(&train(60.0 + 12.0 * 24.0, 6.0)));
    assert_eq!(gap.share(), None);
    let mut gentle = steady(60.0, 3);
    (0..200).for_each(|_| gentle.on_train(&train(6_000.0, 6.0)));
    assert_eq!(gentle.share(), None, "compete=off");
}

/// A path of 100 ms with a gap of 2 ms, without pauses.
fn filled() -> Gap {
    let mut gap = Gap { seconds: 0.002, ..steady(100.0, 3) };
    gap.turn(Pausing::Off);
    assert!(gap.is_long() && gap.seconds == 0.002);
    gap
}

/// Four trains are in flight before the first one's round trip is known.
#[test]
fn a_gap_does_not_swing_where_a_wire_holds_several_trains() {
    let mut gap = Gap { seconds: 0.0017, ..steady(400.0, 3) };
    gap.turn(Pausing::Off);
    let (service_s, mut queue_s, mut late) = (0.0016, 0.0_f64, [0.4; 4]);
    let mut is_empty = false;
    for nth in 0..600 {
        late = [late[1], late[2], late[3], 0.4 + queue_s];
        gap.on_train(&train(late[0] * 1_000.0, 64.0));
        queue_s = (queue_s + 64.0 * (service_s - gap.seconds)).max(0.0);
        is_empty |= nth > 300 && queue_s == 0.0;
    }
    assert!(!is_empty, "{gap:?}");
}

/// A queue that overflows at ten segments must not be offered twenty-four again and again.
#[test]
fn what_a_long_path_loses_leaves_less_room_for_a_while() {
    let mut gap = filled();
    gap.on_train(&TrainOutcome { lost: true, ..train(120.0, 16.0) });
    assert!((gap.room - 10.0).abs() < 1e-9, "{gap:?}");
    let before = gap.seconds;
    gap.on_train(&train(130.0, 16.0));
    assert!(gap.seconds > before, "fifteen of ten: {gap:?}");
    (0..2_000).for_each(|_| gap.on_train(&train(100.0 + 7_000.0 * gap.seconds, 64.0)));
    assert_eq!(gap.room, FLOWING_QUEUE);
    let mut flooded = filled();
    (0..99).for_each(|_| flooded.on_train(&TrainOutcome { lost: true, ..train(100.0, 16.0) }));
    assert_eq!(flooded.room, 1.0);
}

/// Trains of several flows in turn are under way in one round trip. If each halved the gap, the queue would overflow.
#[test]
fn in_the_beginning_of_a_long_path_a_short_train_takes_a_short_step() {
    let mut gap = begun(100.0);
    while !gap.is_long() {
        gap.on_train(&train(100.0, 4.0));
    }
    gap.turn(Pausing::Off);
    let before = gap.seconds;
    gap.on_train(&train(100.0, 0.025 / before));
    assert!((gap.seconds / before - 0.875).abs() < 1e-9, "a quarter of a round trip: {gap:?}");
    let before = gap.seconds;
    gap.on_train(&train(100.0, 0.2 / before));
    assert!((gap.seconds / before - 0.5).abs() < 1e-9, "two round trips: {gap:?}");
}

/// Three hops of radios cannot hold seven segments, but nine hops may.
#[test]
fn how_many_segments_make_a_path_long_depends_on_its_hops() {
    let of = |hops| {
        let mut gap = Gap { seconds: 0.01, base_s: 0.07, ..steady(70.0, 3) };
        gap.hear_path(hops, None);
        gap.is_long()
    };
    assert_eq!([of(Some(3)), of(Some(4)), of(Some(9)), of(None)], [true, false, false, false]);
    let mut guessed = Gap { seconds: 0.01, base_s: 0.07, ..begun(70.0) };
    guessed.hear_path(Some(3), None);
    assert!(!guessed.is_long(), "the beginning tries gaps that no radio serves");
}

/// A wire takes equally long for a segment with and without pauses.
#[test]
fn on_a_long_path_both_ways_have_one_gap() {
    let mut gap = filled();
    (0..5).for_each(|_| gap.on_train(&train(110.0, 64.0)));
    let before = gap.seconds;
    assert!(before < 0.002);
    gap.turn(Pausing::On);
    assert_eq!(gap.seconds, before);
}

#[test]
fn a_share_is_taken_after_eight_trains_that_met_a_queue_of_others() {
    let mut crowd = CrowdShare::default();
    (0..7).for_each(|_| crowd.take(43.0, 3.0));
    assert_eq!(crowd.share, None);
    crowd.take(15.0, 3.0);
    (0..7).for_each(|_| crowd.take(43.0, 3.0));
    assert_eq!(crowd.share, None, "eight in a row");
    crowd.take(43.0, 3.0);
    assert_eq!(crowd.share, Some(32.0), "0.8 of the forty that are not its own");
}

/// The flow's own segments in the queue do not keep its share alive.
#[test]
fn a_share_ends_when_the_others_have_gone() {
    let mut crowd = CrowdShare::default();
    (0..8).for_each(|_| crowd.take(43.0, 3.0));
    (0..50).for_each(|_| crowd.take(40.0 + crowd.share.expect("a share"), 3.0));
    (0..8).for_each(|_| crowd.take(2.0 + crowd.share.expect("a share"), 3.0));
    assert_eq!(crowd.share, None);
}

#[test]
fn flows_that_took_shares_beside_others_let_each_other_go() {
    let mut crowds = [CrowdShare::default(); 2];
    for crowd in &mut crowds {
        (0..8).for_each(|_| crowd.take(63.0, 3.0));
    }
    for _ in 0..120 {
        let queued = crowds.iter().map(|crowd| crowd.share.unwrap_or(4.0)).sum();
        crowds.iter_mut().for_each(|crowd| crowd.take(queued, 4.0));
    }
    assert!(crowds.iter().all(|crowd| crowd.share.is_none()), "{crowds:?}");
}

#[test]
fn a_share_is_never_more_than_a_train() {
    let mut crowd = CrowdShare::default();
    (0..12).for_each(|_| crowd.take(1e12, 3.0));
    assert_eq!(crowd.share, Some(MOST_SHARE));
}
