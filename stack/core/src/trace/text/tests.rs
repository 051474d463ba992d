//! Every event survives a line and back, and a broken line names its place.

use std::time::Duration;

use proptest::prelude::*;

use super::super::{DropReason, Lacking, LostBy, MtuHow, Scarce, SentWhat, StateName, UndoneBy};
use super::*;
use crate::agent::{AckRule, Basis, Because, By, Class, HopSource, Side};

const COUNT: Why = Why::new(AckRule::Count, 3, 5);
const RATE: Why = Why::plain(AckRule::Rate);
const GONE: LinkNews = LinkNews::Gone;
const GOING_DOWN: LinkNews = LinkNews::GoingDown {
    rtt: Duration::from_millis(20),
    outage: Duration::from_secs(10),
    within: Duration::ZERO,
};

fn of_sent() -> [(TraceKind, &'static str); 2] {
    let sent = |len, segments, what, flight, allowed, decision| TraceKind::Sent {
        seq: Seq(1),
        ack: Seq(7),
        len,
        segments,
        flags: 0x10,
        what,
        flight,
        allowed,
        decision,
    };
    [
        (
            sent(0, 1, SentWhat::TailProbe, 9, u32::MAX, 0),
            "seq=1 ack=7 len=0 flags=ack what=tail-probe flight=9",
        ),
        (
            sent(3000, 2, SentWhat::New, 0, 4000, 6),
            "seq=1 ack=7 len=3000 flags=ack what=new segments=2 flight=0 allowed=4000 decision=6",
        ),
    ]
}

/// Events of ACKs, from the decision on.
fn of_acks() -> Vec<(TraceKind, &'static str)> {
    let (ack, number) = (Seq(7), Seq(9));
    vec![
        (TraceKind::AckSent { number, decided: number, repeat: true, decision: 0 }, "number=9 repeat=yes"),
        (
            TraceKind::AckSent { number, decided: ack, repeat: false, decision: 4 },
            "number=9 repeat=no decided=7 decision=4",
        ),
        (
            TraceKind::AckDecided { number, decision: 6, by: By::Piggyback, why: COUNT },
            "number=9 by=piggyback rule=count have=3 want=5 decision=6",
        ),
        (TraceKind::Placed { class: Class::OutOfOrder, stretches: 2 }, "class=out-of-order stretches=2"),
        (
            TraceKind::AckHeld { why: COUNT, due_us: 99_200, basis: None },
            "rule=count have=3 want=5 due_us=99200",
        ),
        (
            TraceKind::AckHeld { why: RATE, due_us: 5, basis: Some(Basis::LeastRtt { us: 20 }) },
            "rule=rate due_us=5 rtt_min_us=20",
        ),
        (
            TraceKind::AckHeld { why: RATE, due_us: 5, basis: Some(Basis::Rate { bytes_per_s: 60_000 }) },
            "rule=rate due_us=5 bytes_per_s=60000",
        ),
        (
            TraceKind::AckHeld { why: RATE, due_us: 5, basis: Some(Basis::MeanGap { us: 20 }) },
            "rule=rate due_us=5 mean_gap_us=20",
        ),
        (
            TraceKind::AckHeld { why: RATE, due_us: 5, basis: Some(Basis::ShortestGap { us: 20 }) },
            "rule=rate due_us=5 shortest_gap_us=20",
        ),
        (
            TraceKind::AckHeld { why: Why::plain(AckRule::NotInOrder), due_us: u32::MAX, basis: None },
            "rule=not-in-order",
        ),
        (TraceKind::AckMerged { number, decision: 4, into: 6 }, "number=9 decision=4 into=6"),
    ]
}

/// One event of every kind with the details that it must print.
fn samples() -> Vec<(TraceKind, &'static str)> {
    let (seq, ack, number) = (Seq(4_294_967_295), Seq(7), Seq(9));
    let [probed, sent] = of_sent();
    let before = vec![
        (TraceKind::State(StateName::FinWait1), "state=fin-wait-1"),
        (TraceKind::GaveWay(Scarce::Orphans), "to=orphans"),
        (
            TraceKind::Received { seq, ack, len: 1000, segments: 1, flags: 0x18 },
            "seq=4294967295 ack=7 len=1000 flags=psh,ack",
        ),
        (
            TraceKind::Received { seq, ack, len: 2500, segments: 3, flags: 0x10 },
            "seq=4294967295 ack=7 len=2500 flags=ack segments=3",
        ),
        probed,
        sent,
    ];
    let after = vec![
        (TraceKind::SecondHeld { count: 12 }, "count=12"),
        (TraceKind::ShadowAck { shadow: 2, why: COUNT }, "seat=2 rule=count have=3 want=5"),
        (
            TraceKind::ShadowHeld { shadow: 7, why: Why::new(AckRule::Window, 0, 1) },
            "seat=7 rule=window have=0 want=1",
        ),
        (TraceKind::Dropped(DropReason::Paws), "reason=paws"),
        (TraceKind::Timeout { nth: 1, rto_us: 200_000 }, "nth=1 rto_us=200000"),
        (TraceKind::Lost { segments: 3, by: LostBy::Rack }, "segments=3 by=rack"),
        (
            TraceKind::RecoveryBegan { by: LostBy::Sack, ssthresh: 4380, flight: 8760, point: number },
            "ssthresh=4380 flight=8760 point=9 by=sack",
        ),
        (TraceKind::RecoveryEnded, ""),
        (TraceKind::Undone(UndoneBy::Dsack), "by=d-sack"),
        (TraceKind::Marked, ""),
        (TraceKind::MarkSeen, ""),
        (TraceKind::Rtt { sample_us: 1, srtt_us: 2, rto_us: 3 }, "sample_us=1 srtt_us=2 rto_us=3"),
        (TraceKind::Window { allowed: 14_600, flight: 0 }, "allowed=14600 flight=0"),
        (TraceKind::PathMtu { bytes: 1280, how: MtuHow::BlackHole }, "bytes=1280 how=black-hole"),
        (TraceKind::Agents(ChosenBy::Rule(3)), "by=rule nth=3"),
        (TraceKind::Agents(ChosenBy::Default), "by=default"),
        (TraceKind::Fallback(Lacking::PeerCwnd), "lacking=peer-cwnd"),
        (TraceKind::IcmpError { kind: 3, code: 4 }, "kind=3 code=4"),
        (TraceKind::Hops { from_peer: 4, source: Some(HopSource::Ttl) }, "from_peer=4 source=ttl"),
        (TraceKind::Hops { from_peer: 0, source: None }, "from_peer=0 source=none"),
        (TraceKind::Frozen, ""),
        (TraceKind::Thawed, ""),
        (TraceKind::HighestAckRaised { to: number }, "to=9"),
        (TraceKind::LinkTold { news: GONE }, "news=gone"),
        (TraceKind::LinkTold { news: GOING_DOWN }, "news=going-down rtt_us=20000 outage_us=10000000"),
        (
            TraceKind::Kept { from: Side::Mobile, number, len: 0, because: Because::GoingDown },
            "from=mobile number=9 len=0 because=going-down",
        ),
        (
            TraceKind::Released { from: Side::Fixed, number, len: 1448, because: Because::Up },
            "from=fixed number=9 len=1448 because=up",
        ),
        (TraceKind::Said { number, window: 0, copies: 1 }, "number=9 window=0 copies=1"),
    ];
    [before, of_acks(), after].concat()
}

fn line_of(event: &TraceEvent) -> String {
    let mut line = String::new();
    write_line(event, &mut line);
    assert_eq!(line.pop(), Some('\n'));
    line
}

#[test]
fn every_event_survives_the_way_into_a_line_and_back() {
    for (kind, details) in samples() {
        let event = TraceEvent { now: Instant(1_500_000_001), conn: 3, packet: u64::MAX, kind };
        let line = line_of(&event);
        let read = parse_line(&line).unwrap();
        let wanted =
            TraceLine { now: event.now, conn: event.conn, packet: event.packet, event: kind.name(), details };
        assert_eq!(read, wanted, "{line}");
        let again: Vec<String> = read.pairs().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(again.join(" "), details);
    }
}

#[test]
fn every_name_has_a_sample_and_every_name_is_used_once() {
    let mut sampled: Vec<_> = samples().iter().map(|(kind, _)| kind.name()).collect();
    sampled.dedup();
    assert_eq!(sampled, EVENT_NAMES);
    for (place, name) in EVENT_NAMES.iter().enumerate() {
        assert!(!EVENT_NAMES[..place].contains(name), "{name}");
    }
}

#[test]
fn every_decision_about_an_ack_and_every_drop_says_why() {
    for (kind, _) in samples() {
        let line = line_of(&TraceEvent { now: Instant::ZERO, conn: 0, packet: 0, kind });
        let read = parse_line(&line).unwrap();
        match kind {
            TraceKind::AckDecided { why, .. }
            | TraceKind::AckHeld { why, .. }
            | TraceKind::ShadowAck { why, .. }
            | TraceKind::ShadowHeld { why, .. } => assert_eq!(read.value("rule"), Some(why.rule.name())),
            TraceKind::Dropped(reason) => assert_eq!(read.value("reason"), Some(reason.name())),
            _ => {}
        }
    }
}

#[test]
fn a_written_trace_reads_from_its_first_line_on() {
    let mut text = TraceText::new();
    text.push(&TraceEvent { now: Instant::from_millis(20), conn: 1, packet: 2, kind: TraceKind::Marked });
    assert_eq!(
        text.as_str(),
        "# hopwise-trace 1\ntime_s\tconn\tpacket\tevent\tdetails\n0.020000000\t1\t2\tmarked\t\n"
    );
    let mut reader = TraceReader::new();
    let events: Vec<_> = text.as_str().lines().filter_map(|line| reader.line(line).unwrap()).collect();
    assert_eq!((events.len(), events[0].event, reader.lines()), (1, "marked", 3));
    text.clear();
    assert_eq!(text.as_str(), "");
}

#[test]
fn a_file_that_is_no_trace_is_refused_at_its_header() {
    let refused = TraceReader::new().line("# hopwise-trace 2").unwrap_err();
    assert_eq!((refused.line, refused.column), (1, 1));
    let mut reader = TraceReader::new();
    reader.line(FIRST_LINE).unwrap();
    assert_eq!(reader.line("time conn").unwrap_err().line, 2);
    reader.line("1.0\t0\t0\tmarked\t").unwrap();
    assert_eq!(reader.line("x").unwrap_err().line, 4);
}

#[test]
fn a_broken_line_names_the_column_and_what_would_be_accepted() {
    for (line, column, expected) in [
        ("", 1, "seconds"),
        ("1.x\t0\t0\tmarked\t", 1, "seconds"),
        ("1.\t0\t0\tmarked\t", 1, "seconds"),
        ("1.0000000000\t0\t0\tmarked\t", 1, "seconds"),
        ("18446744074.0\t0\t0\tmarked\t", 1, "seconds"),
        ("1.5", 4, "connection"),
        ("1.5\t-1\t0\tmarked\t", 5, "connection"),
        ("1.5\t4294967296\t0\tmarked\t", 5, "connection"),
        ("1.5\t1\t+3\tmarked\t", 7, "packet"),
        ("1.5\t1\t3\tMarked\t", 9, "event"),
        ("1.5\t1\t3\tmarked", 15, "key=value"),
        ("1.5\t1\t3\trtt\ta=1  b=2", 17, "key=value"),
        ("1.5\t1\t3\trtt\ta=1 b", 17, "key=value"),
        ("1.5\t1\t3\trtt\ta=", 13, "key=value"),
        ("1.5\t1\t3\trtt\tµ=1", 13, "key=value"),
        ("1.5\t1\t3\trtt\ta=µ \t", 17, "key=value"),
        ("1.5\t1\t3\trtt\ta=1\tmore", 17, "nothing"),
    ] {
        let refused = parse_line(line).unwrap_err();
        assert_eq!(refused.column, column, "{line:?}: {refused}");
        assert!(refused.expected.contains(expected), "{line:?}: {refused}");
    }
}

#[test]
fn a_refusal_prints_its_place() {
    let refused = TraceParseError { line: 0, column: 5, expected: "a word" };
    assert_eq!(refused.to_string(), "column 5: expected a word");
    assert_eq!(TraceParseError { line: 3, ..refused }.to_string(), "line 3, column 5: expected a word");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn numbers_survive_the_way_into_a_line_and_back(
        nanos: u64, conn: u32, packet: u64, seq: u32, len: u32, flags: u8,
    ) {
        let kind = TraceKind::Received { seq: Seq(seq), ack: Seq(!seq), len, segments: 1, flags };
        let event = TraceEvent { now: Instant(nanos), conn, packet, kind };
        let line = line_of(&event);
        let read = parse_line(&line).unwrap();
        prop_assert_eq!((read.now, read.conn, read.packet), (event.now, conn, packet));
        let expected = format!("seq={seq} ack={} len={len} flags=", !seq);
        prop_assert!(read.details.starts_with(&expected), "{}", line);
        let bits = read.value("flags").unwrap().split(',').filter_map(|name| {
            FLAG_NAMES.iter().position(|flag| *flag == name)
        });
        prop_assert_eq!(bits.fold(0, |sum, bit| sum | 1 << bit), flags);
    }

    #[test]
    fn any_text_is_read_or_refused_inside_the_line(text in "\\PC{0,40}|[0-9.\t=a-z ]{0,40}") {
        if let Err(refused) = parse_line(&text) {
            prop_assert!(refused.column <= text.chars().count() + 1);
        }
    }
}
