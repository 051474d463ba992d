//! The engine itself: a wrong script has to fail, and to report the place and the reason.

use super::{Report, run_script};

const HANDSHAKE: &str = "connect\n> SEW seq 0\n+10ms < S. seq 0 ack 1 [mss 1460]\n> . seq 1 ack 1\n";

fn passes(more: &str) {
    let script = format!("{HANDSHAKE}{more}");
    assert_eq!(run_script("x.pkt", &script), Ok(()), "{more}");
}

fn fails(more: &str, with: &str) {
    let script = format!("{HANDSHAKE}{more}");
    let Err(Report(report)) = run_script("x.pkt", &script) else { panic!("it passed: {more}") };
    assert!(report.contains(with), "{report}\ndoes not say `{with}`");
    assert!(report.starts_with("x.pkt:"), "{report}");
}

#[test]
fn a_right_script_passes() {
    passes(
        "event connected\nsend 100\n> P. seq 1..101 ack 1\n+5ms < . seq 1 ack 101\n< P. seq 1..11 ack 101\nrecv 10",
    );
}

#[test]
fn every_difference_in_a_segment_is_seen() {
    for (line, with) in [
        ("> . seq 1..101 ack 1", "flags is P., not ."),
        ("> P. seq 2..102 ack 1", "seq is 1, not 2"),
        ("> P. seq 1..100 ack 1", "length is 100, not 99"),
        ("> P. seq 1..101 ack 2", "ack is 1, not 2"),
        ("> P. seq 1..101 ack 1 win 3", "win is"),
        ("> P. seq 1..101 ack 1 ttl 3", "ttl is 64, not 3"),
        ("> P. seq 1..101 ack 1 ecn ce", "ecn is none, not ce"),
        ("> P. seq 1..101 ack 1 [nop, sack_ok]", "there is no option `sack_ok`"),
        ("> P. seq 1..101 ack 1 to 192.0.2.9", "destination is 192.0.2.2:9000"),
        ("> icmp 3 3", "of another protocol"),
        ("+1ms > P. seq 1..101 ack 1", "it came at 0.01s, not at 0.011s"),
        ("< . seq 1 ack 1", "nobody expects what left"),
        ("+1ms", "nobody expects what left"),
        ("", "nobody expects what left"),
    ] {
        fails(&format!("send 100\n{line}"), with);
    }
}

#[test]
fn what_does_not_come_or_comes_at_another_time_is_seen() {
    fails("> . seq 1 ack 1", "nothing came until 0.01s");
    fails("+1s > . seq 1 ack 1", "nothing came until 1.01s");
    let sent = "send 10\n> P. seq 1..11 ack 1\n";
    passes(&format!("{sent}+200ms..1s > P. seq 1..11 ack 1"));
    fails(&format!("{sent}+1s..2s > P. seq 1..11 ack 1"), "it came at");
    fails(&format!("{sent}+1h"), "nobody expects what left");
    passes(&format!("{sent}+1s > ..."));
}

#[test]
fn wrong_claims_about_the_rest_are_seen() {
    for (line, with) in [
        ("recv 1", "there were 0 bytes"),
        ("recv -> Finished", "it was done"),
        ("send 1 -> NotOpen", "it was done"),
        ("connect -> NoRoute", "it was refused: InUse"),
        ("event readable", "there is no event `readable`"),
        ("no event connected", "there is an event `connected`"),
        ("info state=closed", "state is established"),
        ("info what=1", "nothing that info tells"),
        ("gone", "it is still there"),
        ("connections 2", "there are 1 connections"),
        ("dropped paws 1", "dropped paws: 0, not 1"),
        ("dropped what 1", "no reason to drop"),
        ("trace timeout nth=1", "the trace does not have it"),
        ("trace what", "no event of a trace"),
        ("no trace state state=established", "the trace has: state"),
        ("trace state state=established times 2", "it is there 1 times"),
        ("frobnicate", "nothing that a script can do"),
        ("shutdown please", "not understood"),
        ("@5ms", "it is 0.01s already"),
        ("<b . seq 1 ack 1", "there is no peer `b`"),
    ] {
        fails(line, with);
    }
}

#[test]
fn drops_and_events_that_no_line_knows_of_are_seen_at_the_end() {
    fails("< . seq 90000 ack 1\n> . seq 1 ack 1", "at the end, dropped out-of-window: 1, not 0");
    passes("< . seq 90000 ack 1\n> . seq 1 ack 1\ndropped out-of-window 1");
    passes("< . seq 90000 ack 1\n> . seq 1 ack 1\ndropped ...");
    fails("< R seq 1", "nobody asked for the event `peer closed reset`");
    passes("< R seq 1\nevent closed reset");
}

#[test]
fn bytes_that_are_not_the_streams_are_seen() {
    fails("< P. seq 1..11 ack 1 junk\nrecv 10", "not those that the peer sent");
    passes("< P. seq 1..11 ack 1\nrecv 10");
}

#[test]
fn what_arrives_spoilt_does_not_count() {
    passes("< P. seq 1..11 ack 1 bad checksum\nrecv -> nothing\ndropped tcp-checksum 1");
    passes("< P. seq 1..11 ack 1 bad ip_checksum\nrecv -> nothing\ndropped ip-checksum 1");
    passes("< P. seq 1..11 ack 1 truncate 30\nrecv -> nothing\ndropped truncated 1");
    passes("< raw 4500\nrecv -> nothing\ndropped truncated 1");
}

#[test]
fn numbers_are_relative_on_both_sides_and_may_be_chosen() {
    let script = "config our_isn=2^32-1 peer_isn=2^31-1\n";
    assert_eq!(run_script("x.pkt", &format!("{script}{HANDSHAKE}trace state state=established")), Ok(()));
    let six = "config ip=6\n";
    assert_eq!(run_script("x.pkt", &format!("{six}{HANDSHAKE}info remote=[2001:db8::2]:9000")), Ok(()));
}

#[test]
fn a_report_shows_the_line_and_the_end_of_the_trace() {
    fails("send 5\n> . seq 1 ack 1", "x.pkt:6: at 0.01s\n    > . seq 1 ack 1\n");
    fails("send 5\n> . seq 1 ack 1", "the trace ends:");
}

#[test]
fn open_stands_for_a_handshake() {
    for line in ["open active", "open passive [mss 536, ts, wscale 2] win 1000 rtt 50ms"] {
        assert_eq!(run_script("x.pkt", &format!("{line}\ninfo state=established")), Ok(()), "{line}");
    }
}
