//! The filter, both output formats, and refused input.

use clap::Parser;
use hopwise_core::agent::{AckRule, Why};
use hopwise_core::trace::text::TraceText;
use hopwise_core::trace::{DropReason, TraceEvent, TraceKind};

use proptest::prelude::*;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn trace() -> String {
    let mut text = TraceText::new();
    let held = TraceKind::AckHeld { why: Why::new(AckRule::Count, 1, 2), due_us: u32::MAX, basis: None };
    let kinds = [(1, held), (2, TraceKind::Dropped(DropReason::Paws)), (0, TraceKind::Marked), (1, held)];
    for (tick, (conn, kind)) in (1..).zip(kinds) {
        text.push(&TraceEvent { now: Instant::from_millis(tick * 100), conn, packet: tick, kind });
    }
    text.as_str().to_owned()
}

fn printed(options: &[&str], input: &str) -> Result<String, String> {
    let words = ["trace", "t.txt"].iter().chain(options);
    let Line { arguments } = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    copy(&arguments, "t.txt", &mut input.as_bytes(), &mut out).map_err(|failure| failure.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn events_are_printed_aligned_and_reasons_as_they_are_said() {
    let wanted = "        time_s  conn   packet  event              details\n   \
                  0.100000000     1        1  ack-held           count 1 of 2\n   \
                  0.200000000     2        2  dropped            paws\n   \
                  0.300000000     -        3  marked\n   \
                  0.400000000     1        4  ack-held           count 1 of 2\n";
    assert_eq!(printed(&[], &trace()).unwrap(), wanted);
}

#[test]
fn only_what_was_asked_for_is_kept() {
    let times = |options: &[&str]| -> Vec<String> {
        let text = printed(options, &trace()).unwrap();
        text.lines().skip(1).map(|line| line.trim_start()[2..3].to_owned()).collect()
    };
    assert_eq!(times(&["--conn", "1"]), ["1", "4"]);
    assert_eq!(times(&["--conn", "0"]), ["3"]);
    assert_eq!(times(&["--since", "200ms", "--until", "0.3s"]), ["2", "3"]);
    assert_eq!(times(&["--event", "marked", "--event", "dropped"]), ["2", "3"]);
    assert_eq!(times(&["--event", "marked", "--conn", "1"]), [""; 0]);
}

#[test]
fn programs_get_an_object_a_line() {
    let text = printed(&["--json"], &trace()).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&first["time_s"], &first["conn"]), (&0.1.into(), &1.into()));
    let details = &first["details"];
    assert_eq!(
        (&details["rule"], &details["have"], &details["want"]),
        (&"count".into(), &1.into(), &2.into())
    );
    assert_eq!(text.lines().count(), 4);
}

#[test]
fn a_broken_line_is_refused_with_its_place_and_what_would_be_accepted() {
    let input = trace() + "0.5\tx\t0\tmarked\t\n";
    let refused = printed(&[], &input).unwrap_err();
    assert_eq!(refused, "t.txt: line 7, column 5: expected the number of a connection, 0 for none");
}

#[test]
fn what_is_no_trace_is_refused() {
    for (input, words) in
        [("", "expected a trace"), ("hello\n", "line 1, column 1"), ("# hopwise-trace 1", "expected")]
    {
        let refused = printed(&[], input).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
    let endless = "x".repeat(100_000);
    assert!(printed(&[], &endless).unwrap_err().contains("line 1: expected a line"));
}

#[test]
fn a_last_line_without_newline_and_carriage_returns_are_read() {
    let input = trace().trim_end().replace('\n', "\r\n");
    assert_eq!(printed(&[], &input), printed(&[], &trace()));
}

#[test]
fn wrong_options_are_refused_with_what_would_be_accepted() {
    for (options, words) in [
        (["--event", "droped"], "possible values"),
        (["--since", "soon"], "such as 1.5s, 200ms"),
        (["--conn", "first"], "invalid"),
    ] {
        let refused = printed(&options, &trace()).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn every_unit_and_plain_seconds_are_understood() {
    for (text, nanos) in [
        ("1.5s", 1_500_000_000),
        ("1.5", 1_500_000_000),
        ("2", 2_000_000_000),
        ("200ms", 200_000_000),
        ("0.5ms", 500_000),
        ("300us", 300_000),
        ("7ns", 7),
        ("0.0000000019s", 1),
    ] {
        assert_eq!(parse_time(text), Ok(Instant(nanos)), "{text}");
    }
}

#[test]
fn anything_else_is_refused() {
    for text in
        ["", "s", "-1s", "+1", "1,5s", "1.5.0", "1.", ".5", "1 s", "1m", "1e3", "18446744074s", "1.5h"]
    {
        assert_eq!(parse_time(text), Err(NoTime), "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9.]{0,24}[mun]?s?") {
        let _ = parse_time(&text);
    }

    #[test]
    fn what_an_instant_prints_is_read_back(nanos in 0..u64::MAX) {
        prop_assert_eq!(parse_time(&Instant(nanos).to_string()), Ok(Instant(nanos)));
    }
}
