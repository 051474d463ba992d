use std::time::Duration;

use hopwise_core::agent::{Dialect, LinkNews, Rtt};
use proptest::prelude::*;

use crate::base_station::plan::Mode;
use crate::testkit::base_station::Desk;

/// A flow under way: `window` segments were sent and none is acknowledged.
fn under_way(spec: &str, window: u32) -> Desk {
    let mut desk = Desk::new(spec);
    desk.ack(0, 1);
    for nth in 1..=window {
        assert_eq!(desk.data(nth, nth), "forward");
    }
    desk
}

#[test]
fn acks_are_held_while_the_link_goes_down_and_released_by_the_plan_when_it_is_gone() {
    let mut desk = under_way("ack-hold:mode=corrected,margin=1,over=1", 40);
    assert_eq!(desk.going_down(100, 10_000), "");
    for nth in 2..22 {
        let line = desk.ack(100 + nth, nth);
        assert!(line.ends_with("hold (going-down)"), "{line}");
        assert_eq!(desk.data(100 + nth, 39 + nth), "copy (going-down)");
    }
    assert_eq!(desk.gone(150), "");
    assert_eq!(desk.data(160, 61), "hold (gone)");
    let mut released = Vec::new();
    while let Some(due) = desk.deadline() {
        assert_eq!(desk.timer(due), "release 1 mobile (planned)");
        released.push(due);
    }
    assert_eq!(released.len(), 20);
    assert_eq!(released[0], 70, "the last ACK went on at 0, and the sender's RTO is 70 ms");
    assert!(released.last().is_some_and(|last| (10_140..=10_150).contains(last)), "{released:?}");
    assert_eq!(desk.up(10_200), "release all fixed (up); repeat (up)");
    assert_eq!(desk.ack(10_220, 62), "forward");
}

#[test]
fn a_kick_holds_nothing_caches_all_and_says_the_newest_ack_again() {
    let mut desk = under_way("ack-hold:mode=kick", 10);
    assert_eq!(desk.going_down(100, 1_000), "");
    assert_eq!(desk.ack(101, 4), "forward");
    assert_eq!(desk.data(102, 11), "copy (going-down)");
    assert_eq!(desk.gone(110), "");
    assert_eq!(desk.data(120, 12), "hold (gone)");
    assert_eq!(desk.up(1_000), "release all fixed (up); repeat (up)");
    assert_eq!(desk.data(1_010, 13), "forward");
}

#[test]
fn a_sudden_loss_is_answered_with_a_kick_in_every_mode() {
    for mode in Mode::ALL {
        let mut desk = under_way(&format!("ack-hold:mode={}", mode.name()), 10);
        assert_eq!(desk.gone(100), "");
        assert_eq!(desk.data(110, 11), "hold (gone)");
        assert_eq!(desk.up(1_000), "release all fixed (up); repeat (up)");
    }
}

#[test]
fn a_link_that_does_not_go_gives_the_acks_back_before_the_sender_times_out() {
    // An RTO of 250 ms, of which the margin takes 200.
    let mut desk = under_way("ack-hold:mode=cumulative", 10);
    desk.going_down(100, 10_000);
    assert_eq!(desk.ack(110, 3), "hold (going-down)");
    assert_eq!(desk.deadline(), Some(300));
    assert_eq!(desk.timer(300), "release all mobile (false-alarm)");
    assert_eq!(desk.ack(310, 4), "forward");
    assert_eq!(desk.data(311, 12), "copy (going-down)");
    assert_eq!(desk.deadline(), Some(2_300));
    assert_eq!(desk.timer(2_300), "forget 13000");
    assert_eq!(desk.data(2_310, 13), "forward");
    assert_eq!(desk.deadline(), None);
}

/// The fade comes after the end of the sender's timer. ACKs that are held then pace the fade.
#[test]
fn before_a_fade_that_is_foretold_for_later_single_acks_keep_the_senders_timer_from_running_out() {
    let mut desk = under_way("ack-hold:mode=cumulative", 10);
    desk.going_down_within(100, 10_000, 300);
    for nth in 3..9 {
        assert_eq!(desk.ack(110, nth), "hold (going-down)");
    }
    assert_eq!(desk.deadline(), Some(300));
    assert_eq!(desk.timer(300), "release 1 mobile (planned)");
    assert_eq!(desk.data(311, 11), "copy (going-down)");
    assert!(desk.ack(320, 9).ends_with("hold (going-down)"));
    assert_eq!(desk.deadline(), Some(500));
    desk.gone(400);
    let mut released = 0;
    while let Some(due) = desk.deadline().filter(|due| *due < 10_400) {
        assert_eq!(desk.timer(due), "release 1 mobile (planned)");
        released += 1;
    }
    // The outage is taken to be longer than its forecast, and the last ACK waits for that.
    assert_eq!((released, desk.held()), (5, 1));
}

#[test]
fn a_fade_that_is_foretold_and_does_not_come_in_time_is_a_false_alarm() {
    let mut desk = under_way("ack-hold:mode=paper", 10);
    desk.going_down_within(100, 10_000, 300);
    assert_eq!(desk.timer(300), "", "there is none to release");
    for nth in 3..6 {
        assert_eq!(desk.ack(310, nth), "hold (going-down)");
    }
    assert_eq!(desk.deadline(), Some(500));
    assert_eq!(desk.timer(500), "release all mobile (false-alarm)");
    assert_eq!(desk.ack(510, 6), "forward");
}

#[test]
fn no_forecast_is_waited_for_longer_than_patience() {
    let mut desk = under_way("ack-hold:mode=cumulative,patience=450ms", 10);
    desk.going_down_within(100, 10_000, 60_000);
    for nth in 3..6 {
        desk.ack(110, nth);
    }
    assert_eq!(desk.timer(300), "release 1 mobile (planned)");
    assert_eq!(desk.timer(500), "release 1 mobile (planned)");
    assert_eq!(desk.deadline(), Some(550));
    assert_eq!(desk.timer(550), "release all mobile (false-alarm)");
}

#[test]
fn without_the_guard_acks_wait_beyond_the_senders_timer_until_patience_ends() {
    let mut desk = under_way("ack-hold:mode=paper,margin=1,over=1,guard=off", 10);
    desk.going_down(100, 1_000);
    assert_eq!(desk.ack(110, 3), "hold (going-down)");
    assert_eq!(desk.deadline(), Some(2_100), "the sender's RTO is 70 ms");
    assert_eq!(desk.timer(2_100), "release all mobile (false-alarm)");
}

/// The lines of a fade of 1 s, before which this many ACKs were held.
fn fade_of_a_second(spec: &str, acks: u32) -> Vec<String> {
    let mut desk = under_way(spec, 30);
    desk.going_down(100, 1_000);
    (2..2 + acks).for_each(|nth| drop(desk.ack(101, nth)));
    desk.gone(110);
    let mut lines = Vec::new();
    while let Some(due) = desk.deadline() {
        lines.push(desk.timer(due));
    }
    assert_eq!(desk.held(), 0, "{spec}");
    lines
}

#[test]
fn duplicates_leave_ahead_of_their_acks_where_the_acks_alone_cannot_cover_the_fade() {
    let (ack, duplicate) = ("release 1 mobile (planned)", "duplicate (planned)");
    let corrected =
        |duplicates: u32| format!("ack-hold:mode=corrected,margin=1,over=1,duplicates={duplicates}");
    assert_eq!(fade_of_a_second(&corrected(0), 3), [ack; 3]);
    // Three ACKs keep a timer of 70 ms from running out for 0.3 s and an RTO more, six for more than 1 s.
    for duplicates in [1, 2] {
        assert_eq!(fade_of_a_second(&corrected(duplicates), 3), [duplicate, ack].repeat(3));
    }
    assert_eq!(fade_of_a_second(&corrected(2), 2), [duplicate, duplicate, ack].repeat(2));
    assert_eq!(fade_of_a_second(&corrected(2), 20), [ack; 20], "none is needed");
}

#[test]
fn no_plan_for_a_real_sender_has_duplicates() {
    for mode in ["cumulative", "kick", "hopwise"] {
        let lines = fade_of_a_second(&format!("ack-hold:mode={mode},sender=rfc6298,duplicates=2"), 3);
        assert!(lines.iter().all(|line| !line.contains("duplicate")), "{mode}: {lines:?}");
    }
}

#[test]
fn an_ack_whose_duplicate_has_left_is_planned_for_once_less() {
    let mut desk = under_way("ack-hold:mode=corrected,margin=1,over=1,duplicates=1", 30);
    desk.going_down(100, 1_000);
    (2..5).for_each(|nth| drop(desk.ack(101, nth)));
    desk.gone(110);
    let due = desk.deadline().expect("a plan");
    assert_eq!(desk.timer(due), "duplicate (planned)");
    desk.going_down(u32::try_from(due).expect("soon"), 1_000);
    let mut lines = Vec::new();
    while let Some(due) = desk.deadline() {
        lines.push(desk.timer(due));
    }
    let (ack, duplicate) = ("release 1 mobile (planned)", "duplicate (planned)");
    assert_eq!(lines, [ack, duplicate, ack, duplicate, ack]);
}

#[test]
fn a_link_that_is_up_again_before_it_was_gone_gives_everything_back() {
    let mut desk = under_way("ack-hold:mode=cumulative", 10);
    desk.going_down(100, 10_000);
    desk.ack(110, 3);
    desk.data(111, 11);
    assert_eq!(desk.up(120), "release all mobile (up); forget 12000");
    assert_eq!(desk.up(121), "");
}

#[test]
fn what_may_not_wait_goes_on_also_while_acks_are_held() {
    let mut desk = under_way("ack-hold:mode=cumulative", 10);
    desk.going_down(100, 10_000);
    assert_eq!(desk.ack(110, 3), "hold (going-down)");
    assert_eq!(desk.ack(111, 2), "forward", "an ACK that says less");
    desk.ack(112, 4);
    assert_eq!(desk.window(113, 4, 10), "hold (going-down)", "a window that shrinks");
    assert_eq!(desk.fin(114, 4), "forward");
    assert_eq!(desk.held(), 0, "the FIN takes along what was held");
}

#[test]
fn an_ack_that_still_comes_through_is_planned_for_too() {
    let mut desk = under_way("ack-hold:mode=cumulative,margin=1,over=1", 10);
    desk.going_down(100, 10_000);
    desk.ack(110, 3);
    desk.gone(120);
    let before = desk.deadline();
    assert_eq!(desk.ack(130, 4), "hold (gone)");
    assert!(desk.deadline().is_some() && before.is_some());
    assert_eq!(desk.held(), 2);
}

#[test]
fn another_forecast_changes_the_plan() {
    let mut desk = under_way("ack-hold:mode=corrected,margin=1,over=1", 10);
    desk.going_down(5, 100);
    (2..10).for_each(|nth| drop(desk.ack(4 + nth, nth)));
    desk.gone(20);
    let soon = desk.deadline();
    desk.going_down(21, 5_000);
    assert!(desk.deadline() > soon, "{soon:?} {:?}", desk.deadline());
}

/// The longest part of an RTO that a gap took. The sender's timer is the paper's, with an RTO of 70 ms at first.
fn longest_of_an_rto(released_ms: &[u64]) -> f64 {
    let (mut srtt, mut rttvar, mut before, mut longest) = (50.0_f64, 5.0_f64, 0.0, 0.0_f64);
    for at in released_ms.iter().map(|at| *at as f64) {
        let gap = at - before;
        longest = longest.max(gap / (srtt + 4.0 * rttvar));
        rttvar += ((gap - srtt).abs() - rttvar) / 4.0;
        srtt += (gap - srtt) / 8.0;
        before = at;
    }
    longest
}

#[test]
fn an_outage_that_runs_long_spreads_the_acks_that_are_left() {
    let released = |lasts_ms: u64| {
        let mut desk = under_way("ack-hold:mode=corrected", 60);
        desk.going_down(0, 5_000);
        (2..52).for_each(|nth| drop(desk.ack(1, nth)));
        desk.gone(10);
        let mut released = Vec::new();
        while let Some(due) = desk.deadline().filter(|due| *due <= lasts_ms) {
            let held = desk.held();
            desk.timer(due);
            released.extend(std::iter::repeat_n(due, held - desk.held()));
        }
        (released, desk.held())
    };
    // The forecast is five seconds, and the plan is for six.
    let (in_time, left) = released(5_010);
    assert!(left >= 3, "{left}");
    let (long, left) = released(9_000);
    assert_eq!((&long[..in_time.len()], left > 0), (&in_time[..], true), "some are left after nine");
    assert!(longest_of_an_rto(&long) < 0.85, "{long:?}");
}

#[test]
fn a_forecast_in_the_middle_of_a_plan_knows_how_far_it_has_come() {
    let mut desk = under_way("ack-hold:mode=corrected,margin=1,over=1", 40);
    desk.going_down(0, 3_000);
    (2..22).for_each(|nth| drop(desk.ack(1, nth)));
    desk.gone(10);
    let mut released = Vec::new();
    while desk.held() > 6 {
        let due = desk.deadline().expect("a plan");
        desk.timer(due);
        released.push(due);
    }
    desk.going_down(*released.last().expect("some") as u32, 60_000);
    while let Some(due) = desk.deadline() {
        desk.timer(due);
        released.push(due);
    }
    // The ACKs wait as long as they can, by the timer that the first fourteen have left. It is longer than at first.
    assert!((0.9..1.05).contains(&longest_of_an_rto(&released)), "{released:?}");
    let first_gap = released[14] - released[13];
    assert!(first_gap > 140, "twice the first RTO and more: {released:?}");
}

#[test]
fn a_round_trip_of_nothing_and_outages_of_nothing_or_for_ever_come_to_a_plan_and_an_end() {
    let nothing = Rtt { smoothed: Some(Duration::ZERO), ..Rtt::default() };
    for (mode, rtt) in Mode::ALL.into_iter().flat_map(|mode| [(mode, nothing), (mode, Rtt::default())]) {
        for outage_ms in [0, u64::MAX] {
            let mut desk = under_way(&format!("ack-hold:mode={}", mode.name()), 40);
            (desk.view.whole, desk.view.to_mobile) = (rtt, rtt);
            desk.tell(
                1,
                LinkNews::GoingDown {
                    rtt: Duration::ZERO,
                    outage: Duration::from_millis(outage_ms),
                    within: Duration::ZERO,
                },
            );
            (2..22).for_each(|nth| drop(desk.ack(1, nth)));
            desk.gone(2);
            let mut steps = 0;
            while let Some(due) = desk.deadline().filter(|_| steps < 1_000) {
                desk.timer(due);
                steps += 1;
            }
            assert!(steps <= 40, "{} {outage_ms}: {steps}", mode.name());
            desk.up(100_000);
            assert_eq!(desk.held(), 0);
        }
    }
}

#[test]
fn data_beyond_the_promised_window_is_not_cached() {
    let mut desk = under_way("ack-hold:mode=kick", 3);
    desk.window(50, 2, 5_000);
    desk.view.promised = Some(hopwise_core::Seq(7_000));
    desk.gone(60);
    assert_eq!(desk.data(70, 6), "hold (gone)");
    assert_eq!(desk.data(71, 7), "forward");
}

#[test]
fn when_memory_ends_nothing_more_is_held_until_the_link_is_up() {
    let mut desk = under_way("ack-hold:mode=cumulative", 10);
    desk.going_down(100, 10_000);
    desk.ack(110, 3);
    desk.overflow(111);
    assert_eq!(desk.ack(112, 4), "forward");
    desk.gone(120);
    assert_eq!(desk.ack(130, 5), "forward");
}

#[test]
fn hopwise_kicks_a_sender_that_takes_timeouts_back_and_holds_for_one_that_does_not() {
    let mut desk = under_way("ack-hold", 90);
    desk.going_down(100, 10_000);
    assert_eq!(desk.ack(110, 3), "forward");
    let mut desk = under_way("ack-hold", 90);
    desk.view.dialect = Dialect::Other;
    desk.going_down(100, 1_000);
    assert_eq!(desk.ack(110, 3), "hold (going-down)");
    // Half a window of ACKs cannot cover that, if the sender's timer does not grow with each of them.
    let mut desk = under_way("ack-hold", 90);
    desk.view.dialect = Dialect::Other;
    desk.going_down(100, 10_000);
    assert_eq!(desk.ack(110, 3), "forward");
}

#[test]
fn hopwise_learns_from_what_a_sender_does_after_a_fade() {
    let mut desk = under_way("ack-hold", 40);
    desk.view.dialect = Dialect::Other;
    desk.gone(100);
    assert_eq!(desk.data(400, 1), "hold (gone)", "it comes again: a timeout");
    desk.up(1_000);
    assert_eq!(desk.deadline(), Some(1_200), "four round trips");
    // The sender sends a window in each of three round trips, so it has not halved it.
    (41..=160).for_each(|nth| drop(desk.data(1_060, nth)));
    desk.timer(1_200);
    desk.ack(1_210, 150);
    desk.going_down(2_000, 10_000);
    assert_eq!(desk.ack(2_010, 152), "forward");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Data(u32),
    Ack(u32, u32),
    Fin(u32),
    Down(u64),
    Gone,
    Up,
    Overflow,
    Timer,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1_u32..60).prop_map(Step::Data),
        (1_u32..60, prop::sample::select(&[0_u32, 5_000, 100_000][..])).prop_map(|(n, w)| Step::Ack(n, w)),
        (1_u32..60).prop_map(Step::Fin),
        prop::sample::select(&[0_u64, 1, 200, 10_000, u64::MAX][..]).prop_map(Step::Down),
        Just(Step::Gone),
        Just(Step::Up),
        Just(Step::Overflow),
        Just(Step::Timer),
    ]
}

proptest! {
    #[test]
    fn news_in_any_order_and_of_any_size_leave_nothing_behind_once_the_link_is_up(
        mode in prop::sample::select(&Mode::ALL[..]),
        steps in prop::collection::vec((any_step(), 0_u32..500), 1..60),
    ) {
        let mut desk = Desk::new(&format!("ack-hold:mode={}", mode.name()));
        let mut now_ms = 0;
        for (step, later_ms) in steps {
            now_ms += later_ms;
            match step {
                Step::Data(nth) => drop(desk.data(now_ms, nth)),
                Step::Ack(nth, window) => drop(desk.window(now_ms, nth, window)),
                Step::Fin(nth) => drop(desk.fin(now_ms, nth)),
                Step::Down(outage_ms) => drop(desk.going_down(now_ms, outage_ms)),
                Step::Gone => drop(desk.gone(now_ms)),
                Step::Up => drop(desk.up(now_ms)),
                Step::Overflow => desk.overflow(now_ms),
                Step::Timer => drop(desk.timer(now_ms.into())),
            }
        }
        let endless = LinkNews::GoingDown { rtt: Duration::ZERO, outage: Duration::MAX, within: Duration::MAX };
        desk.tell(now_ms, endless);
        desk.gone(now_ms);
        desk.up(now_ms);
        prop_assert_eq!(desk.held(), 0);
        prop_assert_eq!(desk.view.cached_packets, 0);
    }
}
