use super::*;

const STATION: StationAddress = StationAddress([2, 0, 0, 0, 0, 1]);

/// A sound report at the nth twentieth of a second: frames come and go, some are repeated, few fail.
fn sound(nth: u64) -> LinkFacts {
    LinkFacts {
        inactive: Some(Duration::from_millis(nth * 7 % 50)),
        signal_dbm: Some(-61 + (nth % 3) as i8),
        signal_average_dbm: Some(-60),
        tx_packets: Some(10 * nth),
        tx_retries: Some(3 * nth),
        tx_failed: Some(nth / 4),
        rx_packets: Some(8 * nth),
        rx_bytes: Some(9_000 * nth),
        tx_bitrate_bps: Some(54_000_000),
        expected_throughput_bps: Some(30_000_000),
        tx_duration: Some(Duration::from_millis(10 * nth)),
        rx_duration: Some(Duration::from_millis(8 * nth)),
        ..LinkFacts::new(STATION, Instant::from_millis(50 * nth))
    }
}

/// A minute of reports and more: longer than any rule but that of stations that stay looks back.
const LOOKS: u64 = 1_500;

/// The believed part of the last of so many reports, and the rules that were broken by then.
fn judged(looks: u64, report: impl Fn(u64) -> LinkFacts) -> (Option<LinkFacts>, Vec<&'static str>) {
    let mut sanity = Sanity::new(ReporterTrust::Judged);
    let mut believed = Vec::new();
    for nth in 0..looks {
        believed = sanity.judge(&[report(nth)], |_, _| {});
    }
    (believed.pop(), sanity.broken().map(|(rule, _)| rule.name()).collect())
}

/// The believed part of the last report by a driver that breaks one rule.
fn believed(rule: SanityCheck, looks: u64, report: impl Fn(u64) -> LinkFacts) -> LinkFacts {
    let (facts, broken) = judged(looks, report);
    assert_eq!(broken, [rule.name()]);
    facts.expect("the station itself is believed")
}

/// All of a sound report but what `drop` takes.
fn without(looks: u64, drop: impl Fn(&mut LinkFacts)) -> LinkFacts {
    let mut facts = sound(looks - 1);
    drop(&mut facts);
    facts
}

#[test]
fn a_driver_that_tells_the_truth_is_believed_in_all() {
    let (facts, broken) = judged(LOOKS, sound);
    assert_eq!((facts, broken), (Some(sound(LOOKS - 1)), vec![]));
}

#[test]
fn a_station_without_a_received_frame_has_no_signal_yet() {
    let new = |nth| LinkFacts {
        rx_packets: Some(0),
        rx_bytes: Some(0),
        rx_duration: Some(Duration::ZERO),
        signal_dbm: Some(0),
        signal_average_dbm: Some(0),
        ..sound(nth)
    };
    let (facts, broken) = judged(2, new);
    assert_eq!((facts.map(|facts| facts.signal_dbm), broken), (Some(None), vec![]));
}

#[test]
fn signals_that_no_receiver_has_are_dropped() {
    for (dbm, rule) in [
        (0, SanityCheck::SignalZero),
        (70, SanityCheck::SignalPercent),
        (-111, SanityCheck::SignalBelowNoise),
        (-128, SanityCheck::SignalBelowNoise),
    ] {
        let lies = |nth| LinkFacts { signal_dbm: Some(dbm), signal_average_dbm: Some(dbm), ..sound(nth) };
        let wanted = without(2, |facts| (facts.signal_dbm, facts.signal_average_dbm) = (None, None));
        assert_eq!(believed(rule, 2, lies), wanted, "{dbm}");
    }
    let weak = |nth| LinkFacts { signal_dbm: Some(-110), ..sound(nth) };
    assert_eq!(judged(2, weak).1, [""; 0]);
}

#[test]
fn a_signal_that_never_changes_is_dropped_until_it_does() {
    let same = |nth| LinkFacts { signal_dbm: Some(-50), ..sound(nth) };
    let wanted = without(LOOKS, |facts| (facts.signal_dbm, facts.signal_average_dbm) = (None, None));
    assert_eq!(believed(SanityCheck::SignalStands, LOOKS, same), wanted);
    let moves =
        |nth| if nth == LOOKS - 1 { LinkFacts { signal_dbm: Some(-49), ..sound(nth) } } else { same(nth) };
    assert_eq!(judged(LOOKS, moves).0.expect("a station").signal_dbm, Some(-49));
    // Few packets have few signals.
    let idle = |nth| LinkFacts { rx_packets: Some(nth / 2), ..same(nth) };
    assert_eq!(judged(LOOKS, idle).1, [""; 0]);
}

#[test]
fn a_time_since_the_last_frame_that_stands_gives_way_to_that_of_the_counters() {
    // It was heard for a second, then never again.
    let stands =
        |nth: u64| LinkFacts { inactive: Some(Duration::ZERO), at: sound(nth).at, ..sound(nth.min(20)) };
    let facts = believed(SanityCheck::InactiveStands, 100, stands);
    assert_eq!(facts.inactive, Some(Duration::from_millis(50 * 79)));
    // Beacons keep a true one young, and it then changes with each look.
    let beacons =
        |nth: u64| LinkFacts { inactive: Some(Duration::from_millis(nth * 50 % 102)), ..stands(nth) };
    assert_eq!(judged(100, beacons).1, [""; 0]);
}

#[test]
fn a_last_frame_that_becomes_older_than_it_was_is_not_believed() {
    let back =
        |nth: u64| LinkFacts { inactive: Some(Duration::from_millis(50 * nth * (nth % 2))), ..sound(nth) };
    let facts = believed(SanityCheck::InactiveRunsBack, 100, back);
    assert_eq!(facts.inactive, Some(Duration::ZERO), "the counters moved with the last report");
    // Whole seconds run back by less than one.
    let seconds =
        |nth: u64| LinkFacts { inactive: Some(Duration::from_secs(nth / 20)), at: sound(nth).at, ..sound(0) };
    assert_eq!(judged(200, seconds).1, [""; 0]);
}

#[test]
fn a_thousand_packets_without_a_retry_say_that_nothing_is_known_of_acknowledgements() {
    // The driver reports each packet as acknowledged, and the station as heard by it. The station is gone since 1 s.
    let acks = |nth: u64| LinkFacts {
        tx_retries: Some(0),
        tx_failed: Some(0),
        inactive: Some(Duration::from_millis(nth % 9)),
        rx_packets: Some(8 * nth.min(20)),
        rx_bytes: Some(9_000 * nth.min(20)),
        ..sound(nth)
    };
    let facts = believed(SanityCheck::NoTxStatus, 201, acks);
    assert_eq!((facts.tx_retries, facts.tx_failed), (None, None));
    assert_eq!(facts.inactive, Some(Duration::from_secs(9)));
    // The first failure shows that it counts.
    let counts = |nth| if nth == 200 { LinkFacts { tx_failed: Some(1), ..acks(nth) } } else { acks(nth) };
    assert_eq!(judged(201, counts).0.expect("a station").tx_failed, Some(1));
}

#[test]
fn retries_that_never_count_are_dropped_beside_failures() {
    let never = |nth| LinkFacts { tx_retries: Some(0), ..sound(nth) };
    assert_eq!(
        believed(SanityCheck::RetriesNeverCount, 200, never),
        without(200, |facts| facts.tx_retries = None)
    );
}

#[test]
fn failures_that_never_count_to_a_silent_station_are_dropped_until_they_do() {
    let silent = |nth: u64| LinkFacts {
        inactive: Some(Duration::from_millis(50 * nth)),
        tx_failed: Some(0),
        ..sound(nth)
    };
    let facts = believed(SanityCheck::FailedNeverCounts, 100, silent);
    assert_eq!(facts.tx_failed, None);
    let counts = |nth| if nth == 99 { LinkFacts { tx_failed: Some(1), ..silent(nth) } } else { silent(nth) };
    assert_eq!(judged(100, counts).0.expect("a station").tx_failed, Some(1));
    // An idle station gets no packets, and none fails.
    let idle = |nth| LinkFacts { tx_packets: Some(9), tx_retries: Some(1), ..silent(nth) };
    assert_eq!(judged(100, idle).1, [""; 0]);
}

#[test]
fn more_failures_than_packets_or_than_retries_are_dropped() {
    let many = |nth: u64| LinkFacts { tx_failed: Some(12 * nth), tx_retries: Some(60 * nth), ..sound(nth) };
    assert_eq!(
        believed(SanityCheck::FailedExceedsSent, 200, many),
        LinkFacts { tx_failed: None, ..many(199) }
    );
    // As a driver of 802.11ac has it: all packets failed, and hardly any was repeated.
    let at_once = |nth: u64| LinkFacts { tx_failed: Some(9 * nth), tx_retries: Some(8 * nth), ..sound(nth) };
    let wanted = without(200, |facts| (facts.tx_failed, facts.tx_retries) = (None, None));
    assert_eq!(believed(SanityCheck::FailedExceedsRetries, 200, at_once), wanted);
}

#[test]
fn counters_that_fall_or_leap_are_dropped_alone() {
    let falls = |nth: u64| LinkFacts { tx_failed: Some((nth / 4) % 5), ..sound(nth) };
    assert_eq!(believed(SanityCheck::CounterFalls, 100, falls), without(100, |facts| facts.tx_failed = None));
    // One retry less than none, at first sight and later.
    let least = |nth: u64| LinkFacts { tx_retries: Some(u64::from(u32::MAX) - 9 * nth), ..sound(nth) };
    assert_eq!(judged(1, least).0.expect("a station").tx_retries, None);
    let later = |nth: u64| if nth < 50 { sound(nth) } else { least(nth) };
    assert_eq!(
        believed(SanityCheck::CounterLeaps, 100, later),
        without(100, |facts| facts.tx_retries = None)
    );
}

#[test]
fn a_station_that_came_anew_between_two_reports_is_believed() {
    let anew = |nth: u64| LinkFacts { at: sound(nth).at, ..sound(nth % 90) };
    let (facts, broken) = judged(120, anew);
    assert_eq!((facts.expect("a station").tx_packets, broken), (Some(10 * 89 + 10 * 29), vec![]));
}

#[test]
fn airtime_beyond_the_clock_is_dropped() {
    let overruns = |nth| LinkFacts { tx_duration: Some(Duration::from_millis(500 * nth)), ..sound(nth) };
    assert_eq!(
        believed(SanityCheck::AirtimeOverruns, 100, overruns),
        without(100, |facts| facts.tx_duration = None)
    );
}

#[test]
fn packets_without_airtime_are_those_of_a_driver_that_does_not_count_it() {
    let never = |nth| LinkFacts { rx_duration: Some(Duration::ZERO), ..sound(nth) };
    let wanted = without(50, |facts| facts.rx_duration = None);
    assert_eq!(believed(SanityCheck::AirtimeNeverCounts, 50, never), wanted);
    // No packet, no airtime.
    let idle = |nth| LinkFacts { tx_packets: Some(0), tx_duration: Some(Duration::ZERO), ..sound(nth) };
    assert_eq!(judged(2, idle).0, Some(idle(1)));
}

#[test]
fn rates_that_no_radio_has_are_dropped() {
    for bps in [0, MOST_BPS + 1] {
        let absurd = |nth| LinkFacts { tx_bitrate_bps: Some(bps), ..sound(nth) };
        assert_eq!(
            believed(SanityCheck::BitrateAbsurd, 2, absurd),
            without(2, |facts| facts.tx_bitrate_bps = None)
        );
    }
    let above = |nth| LinkFacts { expected_throughput_bps: Some(54_001_000), ..sound(nth) };
    let wanted = without(2, |facts| facts.expected_throughput_bps = None);
    assert_eq!(believed(SanityCheck::ThroughputAboveBitrate, 2, above), wanted);
}

#[test]
fn a_station_that_is_listed_for_ever_is_there_no_more() {
    let silent = |nth: u64| LinkFacts {
        inactive: Some(Duration::from_secs(10 * nth)),
        at: Instant::from_secs(10 * nth),
        ..sound(0)
    };
    assert!(judged(60, silent).0.is_some());
    assert_eq!(judged(61, silent), (None, vec!["station-stays"]));
    let ageless = |nth| LinkFacts { inactive: None, ..silent(nth) };
    assert_eq!(judged(61, ageless), (None, vec!["station-stays"]));
}

#[test]
fn without_a_time_of_the_last_frame_a_station_was_heard_when_its_counters_moved() {
    let ageless = |nth: u64| LinkFacts { inactive: None, at: sound(nth).at, ..sound(nth.min(20)) };
    let (facts, broken) = judged(41, ageless);
    assert_eq!((facts.expect("a station").inactive, broken), (Some(Duration::from_secs(1)), vec![]));
    // It may have been silent for long before the first report.
    assert_eq!(judged(1, ageless).0.expect("a station").inactive, None);
}

#[test]
fn a_rule_is_told_once_for_an_interface_and_a_simulated_radio_is_not_judged() {
    let mut sanity = Sanity::new(ReporterTrust::Judged);
    let other = StationAddress([2, 0, 0, 0, 0, 2]);
    let zero = |station, nth| LinkFacts { station, signal_dbm: Some(0), ..sound(nth) };
    let mut told = Vec::new();
    for nth in 0..5 {
        sanity.judge(&[zero(STATION, nth), zero(other, nth)], |rule, station| told.push((rule, station)));
    }
    assert_eq!(told, [(SanityCheck::SignalZero, STATION)]);
    let mut known = Sanity::new(ReporterTrust::Known);
    assert_eq!(known.judge(&[zero(STATION, 3)], |_, _| unreachable!("it knows")), [zero(STATION, 3)]);
}

#[test]
fn stations_that_have_left_are_forgotten_and_so_is_one_that_came_anew() {
    let mut sanity = Sanity::new(ReporterTrust::Judged);
    sanity.judge(&[sound(9)], |_, _| {});
    sanity.judge(&[], |_, _| {});
    assert!(sanity.known.is_empty());
    sanity.judge(&[sound(90)], |_, _| {});
    sanity.forget(STATION);
    let again = LinkFacts { at: sound(91).at, ..sound(3) };
    assert_eq!(sanity.judge(&[again], |_, _| unreachable!("it is sound")), [again]);
}

#[test]
fn each_rule_has_a_line_in_the_guide() {
    let guide = include_str!("../../../../../docs/mesh.md");
    for rule in SanityCheck::ALL {
        assert!(guide.contains(&format!("| `{}` |", rule.name())), "{} is missing", rule.name());
    }
}
