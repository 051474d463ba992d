use proptest::prelude::*;

use super::search::{RttSampling, closed};
use super::*;

const STAKES: Stakes = Stakes { window_segments: 40, cache_segments: 1_000 };

fn ask(outage_s: f64, acks: u32, rtt_s: f64, rttvar_s: f64) -> Ask {
    Ask::new(acks, outage_s, rtt_s, rttvar_s).expect("numbers that are some")
}

fn planned(mode: Mode, ask: &Ask) -> Plan {
    plan(mode, ask, Sender::Linux.into(), &STAKES)
}

#[test]
fn the_best_n_of_the_paper_s_numbers_is_nine_and_leaves_an_rto_of_35_seconds() {
    let plan = planned(Mode::Corrected, &ask(1000.0, 30, 1.0, 0.3));
    assert!(plan.feasible);
    assert_eq!((plan.n, plan.release_at_s.len(), plan.timeouts), (9, 30, 0));
    assert!((plan.final_rto_s - 34.97).abs() < 0.005, "{}", plan.final_rto_s);
    assert!((plan.release_at_s[29] - 1000.0).abs() < 1e-6);
}

#[test]
fn the_best_n_of_other_outages() {
    assert_eq!(planned(Mode::Corrected, &ask(500.0, 20, 1.0, 0.3)).n, 8);
    assert_eq!(planned(Mode::Corrected, &ask(250.0, 20, 1.0, 0.3)).n, 7);
    let short = planned(Mode::Corrected, &ask(10.0, 20, 0.2, 0.05));
    assert_eq!((short.n, short.feasible), (4, true));
    assert!((short.final_rto_s - 0.50).abs() < 0.005, "{}", short.final_rto_s);
}

#[test]
fn five_acks_cannot_cover_ten_seconds_and_the_plan_says_for_how_long_they_do() {
    let ask = ask(10.0, 5, 0.1, 0.02);
    let plan = planned(Mode::Corrected, &ask);
    assert!(!plan.feasible);
    let last_s = closed::waited_s(&ask, 5);
    assert!((plan.release_at_s[4] - last_s).abs() < 1e-9);
    assert!((plan.covers_s - last_s - closed::rto_s(&ask, 5)).abs() < 1e-9);
    assert_eq!(plan.timeouts, 2, "{plan:?}");
}

#[test]
fn the_printed_search_stops_at_once_and_its_sender_times_out_at_once() {
    let plan = planned(Mode::Paper, &ask(1000.0, 30, 1.0, 0.3));
    assert_eq!((plan.n, plan.feasible), (0, false));
    assert!((plan.theta_s.expect("evenly spaced") - 33.3333).abs() < 0.001);
    assert!((plan.covers_s - 2.2).abs() < 1e-9, "{}", plan.covers_s);
}

#[test]
fn samples_that_grow_with_the_wait_leave_a_longer_rto_than_the_paper_s() {
    let ask = ask(10.0, 20, 0.05, 0.01);
    let cumulative = planned(Mode::Cumulative, &ask);
    assert!(cumulative.feasible);
    assert_eq!(cumulative.n, 5);
    assert!((cumulative.final_rto_s - 17.058).abs() < 0.001, "{}", cumulative.final_rto_s);
    assert!(planned(Mode::Corrected, &ask).final_rto_s < 1.0);
}

#[test]
fn what_is_left_of_a_plan_goes_on_where_it_was() {
    for mode in [Mode::Corrected, Mode::Cumulative] {
        let whole = planned(mode, &ask(10.0, 20, 0.2, 0.05));
        let (at_s, timer) = (whole.release_at_s[11], whole.timers[11]);
        let rest = planned(mode, &ask(10.0 - at_s, 8, 0.2, 0.05).under_way(timer, at_s));
        // The spacing is even as before: it alone makes the timer shorter in the end.
        assert_eq!((rest.feasible, rest.n), (true, 0), "{mode:?}");
        for (again_s, before_s) in rest.release_at_s.iter().zip(&whole.release_at_s[12..]) {
            assert!((again_s + at_s - before_s).abs() < 1e-9, "{mode:?}");
        }
        assert!((rest.final_rto_s - whole.final_rto_s).abs() < 1e-9, "{mode:?}");
    }
    // The same holds for a sender that would have been kicked.
    let fresh = ask(10.0, 100, 0.05, 0.01);
    let choice = |ask: &Ask| planned(Mode::Hopwise, ask).choice;
    assert_eq!(choice(&fresh), Choice::Kick);
    assert_eq!(choice(&fresh.under_way(Timer::new(Sender::Linux, 0.4, 0.2), 2.0)), Choice::Pace);
}

#[test]
fn no_sender_waits_longer_than_two_minutes() {
    let plan = planned(Mode::Cumulative, &ask(1000.0, 30, 1.0, 0.3));
    assert!(plan.feasible && plan.rto_s.iter().all(|rto_s| *rto_s <= LONGEST_RTO_S));
    assert_eq!(plan.final_rto_s, LONGEST_RTO_S);
}

#[test]
fn a_kick_holds_nothing_and_lets_the_timer_back_off() {
    // The timeouts come after 0.25 s, and then 0.5, 1, 2 and 4 s later.
    let plan = planned(Mode::Kick, &ask(10.0, 20, 0.05, 0.01));
    assert_eq!((plan.choice, plan.timeouts, plan.feasible), (Choice::Kick, 5, false));
    assert!(plan.release_at_s.is_empty());
    assert!((plan.final_rto_s - 8.0).abs() < 1e-9, "{}", plan.final_rto_s);
    assert!(planned(Mode::Kick, &ask(0.2, 20, 0.05, 0.01)).feasible);
}

#[test]
fn a_sender_that_takes_timeouts_back_is_kicked_and_one_that_does_not_is_paced() {
    let ask = ask(10.0, 100, 0.05, 0.01);
    let stakes = Stakes { window_segments: 200, cache_segments: 1_000 };
    assert_eq!(plan(Mode::Hopwise, &ask, Sender::Linux.into(), &stakes).choice, Choice::Kick);
    assert_eq!(plan(Mode::Hopwise, &ask, Sender::Rfc6298.into(), &stakes).choice, Choice::Pace);
    assert_eq!(plan(Mode::Hopwise, &ask, Sender::FreeBsd.into(), &stakes).choice, Choice::Pace);
    let short = Ask::new(100, 0.2, 0.05, 0.01).expect("numbers that are some");
    assert_eq!(plan(Mode::Hopwise, &short, Sender::Rfc6298.into(), &stakes).choice, Choice::Kick);
}

#[test]
fn a_sender_of_no_known_kind_waits_no_longer_than_one_that_times_a_segment_a_round_trip_can() {
    // 200 ACKs for 30 s: such a sender needs even spacing, whatever other senders would make of them.
    let ask = ask(30.0, 200, 0.4, 0.02);
    let stakes = Stakes { window_segments: 400, cache_segments: 400 };
    let plan = plan(Mode::Hopwise, &ask, Sender::Textbook.into(), &stakes);
    assert_eq!((plan.choice, plan.feasible), (Choice::Pace, true));
    let mut timer = Timer::new(Sender::Textbook, 0.4, 0.02);
    let mut before_s = 0.0;
    for (nth, at_s) in plan.release_at_s.iter().enumerate() {
        assert!(at_s - before_s <= timer.rto_s() + 1e-9, "ACK {nth} at {at_s}");
        if nth == 0 {
            timer.take(0.4 + at_s);
        }
        before_s = *at_s;
    }
}

#[test]
fn the_last_rto_by_n_is_the_curve_of_the_paper_s_second_figure() {
    let ask = ask(1_000.0, 30, 1.0, 0.3);
    let all = every_n(Mode::Corrected, &ask, Sender::Linux);
    assert!(all.iter().zip(0..).all(|(plan, n)| plan.n == n));
    // The curve falls to its least and rises again. The search finds that least.
    let least = all.iter().filter(|plan| plan.feasible).map(|plan| plan.final_rto_s).fold(f64::MAX, f64::min);
    assert!((least - planned(Mode::Corrected, &ask).final_rto_s).abs() < 1e-9);
    assert!(all[9].feasible && (all[9].final_rto_s - least).abs() < 1e-9);
    assert!(all.last().is_some_and(|last| last.final_rto_s > least), "{}", all.len());
    assert!(every_n(Mode::Kick, &ask, Sender::Linux).is_empty());
}

#[test]
fn what_a_sender_has_beside_its_timer_decides_too() {
    // A kick costs three timeouts. F-RTO takes back only one, so that both senders are paced here.
    let long = ask(10.0, 100, 0.05, 0.01);
    let stakes = Stakes { window_segments: 200, cache_segments: 1_000 };
    let choice = |ask: &Ask, model: Model| plan(Mode::Hopwise, ask, model, &stakes).choice;
    let plain = Model::from(Sender::Rfc6298);
    let frto = plain.but(None, None, Some(true));
    assert_eq!([choice(&long, plain), choice(&long, frto)], [Choice::Pace; 2]);
    // With F-RTO one timeout costs nothing.
    let short = ask(2.0, 100, 0.05, 0.01);
    assert_eq!([choice(&short, plain), choice(&short, frto)], [Choice::Pace, Choice::Kick]);
    // After a minute the timer is so long that a loss which only it finds costs more than a halved window.
    let minute = ask(60.0, 100, 0.05, 0.01);
    let stakes = Stakes { window_segments: 100, ..stakes };
    let choice = |model: Model| plan(Mode::Hopwise, &minute, model, &stakes).choice;
    let bsd = Model::from(Sender::FreeBsd);
    assert_eq!([choice(bsd), choice(bsd.but(Some(true), Some(true), None))], [Choice::Kick, Choice::Pace]);
}

#[test]
fn a_small_window_is_not_worth_a_long_timer() {
    let ask = ask(60.0, 4, 0.05, 0.01);
    let stakes = Stakes { window_segments: 8, cache_segments: 1_000 };
    assert_eq!(plan(Mode::Hopwise, &ask, Sender::Rfc6298.into(), &stakes).choice, Choice::Kick);
}

#[test]
fn what_cannot_be_cached_is_held_instead() {
    let ask = ask(10.0, 100, 0.05, 0.01);
    let stakes = Stakes { window_segments: 200, cache_segments: 0 };
    assert_eq!(plan(Mode::Hopwise, &ask, Sender::Linux.into(), &stakes).choice, Choice::Hold);
}

#[test]
fn numbers_that_are_none_are_refused_by_name() {
    let bad = [0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300];
    for value in bad {
        assert_eq!(Ask::new(9, value, 1.0, 0.3).expect_err("refused").what, "the outage");
        assert_eq!(Ask::new(9, 9.0, value, 0.3).expect_err("refused").what, "the RTT");
        assert_eq!(Ask::new(9, 9.0, 1.0, value).expect_err("refused").what, "the RTT's variation");
        assert_eq!(ask(9.0, 9, 1.0, 0.3).with_margin(value).expect_err("refused").what, "the margin");
    }
    for acks in [0, MOST_ACKS + 1, u32::MAX] {
        assert_eq!(Ask::new(acks, 9.0, 1.0, 0.3).expect_err("refused").what, "the number of ACKs");
    }
}

fn any_ask() -> impl Strategy<Value = Ask> {
    (1_u32..200, 1_u32..2_000_000, 1_u32..5_000, 1_u32..3_000, 1_u32..=10).prop_map(
        |(acks, outage_ms, rtt_ms, rttvar_ms, tenths)| {
            let seconds = |ms: u32| f64::from(ms) / 1_000.0;
            let ask = Ask::new(acks, seconds(outage_ms), seconds(rtt_ms), seconds(rttvar_ms));
            let ask = ask.expect("numbers that are some");
            ask.with_margin(f64::from(tenths) / 10.0).expect("a margin")
        },
    )
}

proptest! {
    #[test]
    fn closed_forms_and_the_walk_agree(outage_ms in 1_u32..2_000_000, acks in 2_u32..60) {
        let ask = ask(f64::from(outage_ms) / 1e3, acks, 1.0, 0.3);
        let plan = planned(Mode::Corrected, &ask);
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-9 * one.abs().max(1.0);
        for k in 0..plan.n {
            prop_assert!(near(plan.release_at_s[k as usize], closed::waited_s(&ask, k + 1)));
            prop_assert!(near(plan.rto_s[k as usize], closed::rto_s(&ask, k + 1)));
        }
        if plan.theta_s.is_some() {
            prop_assert!(near(plan.final_rto_s, closed::rto_last_s(&ask, plan.n)));
        }
    }

    #[test]
    fn the_best_plan_is_the_one_of_all_that_leaves_the_shortest_rto(
        ask in any_ask(),
        sender in prop::sample::select(&Sender::ALL[..]),
        samples in prop::sample::select(&[RttSampling::Gaps, RttSampling::SinceSent, RttSampling::Once][..]),
    ) {
        let mode = Mode::Cumulative;
        let mut feasible = search::every(mode, &ask, sender, samples);
        feasible.retain(|plan| plan.feasible);
        // The first of equals, as there are fewer long waits in it.
        let shorter = |best: Plan, plan: Plan| if plan.final_rto_s < best.final_rto_s { plan } else { best };
        let wanted = feasible.into_iter().reduce(shorter);
        let found = search::best(mode, &ask, sender, samples);
        prop_assert_eq!(wanted.is_some(), found.feasible);
        prop_assert!(wanted.is_none_or(|wanted| wanted == found));
    }

    #[test]
    fn a_feasible_plan_never_lets_the_timer_run_out_and_none_releases_backwards(
        ask in any_ask(),
        mode in prop::sample::select(&Mode::ALL[..]),
        sender in prop::sample::select(&Sender::ALL[..]),
    ) {
        let plan = plan(mode, &ask, sender.into(), &STAKES);
        prop_assert!(plan.release_at_s.len() <= ask.acks() as usize);
        prop_assert!(plan.release_at_s.is_sorted());
        prop_assert!(plan.release_at_s.iter().chain(&plan.rto_s).all(|value| value.is_finite() && *value > 0.0));
        prop_assert!(!plan.feasible || plan.timeouts == 0);
        prop_assert!(!plan.feasible || plan.covers_s + 1e-6 >= ask.outage_s());
    }
}
