use super::*;
use hopwise_core::agent::{AckRule, Basis, Class};
use hopwise_core::trace::{LostBy, SentWhat, StateName, UndoneBy};

/// The peer's first number, and its SYN.
const PEER: Seq = Seq(3_966_000_000);
const COUNTED: Why = Why::new(AckRule::Count, 2, 2);
const FORCED: Why = Why::plain(AckRule::Forced);

struct Heard(Comments);

impl Heard {
    /// After a handshake, with a known agent.
    fn new() -> Heard {
        let names = ConnNames {
            receiver: "delayed".into(),
            senders: "[cubic]".into(),
            hops: Some(3),
            ..ConnNames::default()
        };
        let mut heard = Heard(Comments::new(Box::new(move |conn| (conn == 1).then(|| names.clone()))));
        heard.came(1, &[received(0, 0, SYN)]);
        heard
    }

    fn at(&mut self, ms: u64, packet: u64, kind: TraceKind) -> Option<Comment> {
        self.0.hear(&TraceEvent { now: Instant::from_millis(ms), conn: 1, packet, kind })
    }

    /// The comment on a packet that came, from its events.
    fn came(&mut self, packet: u64, kinds: &[TraceKind]) -> String {
        self.0.arrives(packet);
        for kind in kinds {
            assert_eq!(self.at(packet, packet, *kind), None);
        }
        self.0.of_arrival().text
    }
}

fn received(from: u32, len: u32, flags: u8) -> TraceKind {
    TraceKind::Received { seq: PEER + from, ack: Seq(1), len, segments: 1, flags }
}

fn decided(number: u32, by: By, why: Why) -> TraceKind {
    TraceKind::AckDecided { number: PEER + number, decision: number as u16, by, why }
}

fn ack_sent(number: u32) -> TraceKind {
    let (number, decision) = (PEER + number, number as u16);
    TraceKind::AckSent { number, decided: number, repeat: false, decision }
}

#[test]
fn an_ack_names_its_number_as_wireshark_counts_and_the_packet_that_it_answers() {
    let mut heard = Heard::new();
    let held = TraceKind::AckHeld { why: Why::new(AckRule::Count, 1, 2), due_us: 99_250, basis: None };
    let said = heard.came(4, &[received(1, 1000, ACK), held]);
    assert_eq!(said, "ACK withheld by delayed: count 1 of 2, for 99.250 ms at most");
    let said = heard.came(9, &[received(1001, 1000, ACK), decided(2001, By::Agent, COUNTED)]);
    assert_eq!(said, "ACK 2001: delayed decided it, count 2 of 2");
    let left = heard.at(9, 1, ack_sent(2001)).expect("it leaves");
    assert_eq!(left.answers, Some(9));
    let known = |packet| (packet == 9).then_some(157);
    assert_eq!(
        left.with_frames(known),
        "ACK 2001: delayed decided it, count 2 of 2, 5.000 ms after the first segment it held; 3 hops; \
         answers frame 157"
    );
    assert!(!left.with_frames(|_| None).contains("answers"));
}

/// No packet came at the deadline: the ACK answers the last one that was held.
#[test]
fn an_ack_at_a_deadline_answers_what_it_held() {
    let mut heard = Heard::new();
    let held = TraceKind::AckHeld { why: Why::new(AckRule::Count, 1, 2), due_us: u32::MAX, basis: None };
    assert_eq!(heard.came(4, &[received(1, 1000, ACK), held]), "ACK withheld by delayed: count 1 of 2");
    heard.at(104, 0, decided(1001, By::Agent, Why::plain(AckRule::Deadline)));
    let left = heard.at(104, 1, ack_sent(1001)).expect("it leaves");
    assert_eq!(left.answers, Some(4));
}

/// An ACK for a window that opens answers no packet, even if a segment was held long ago.
#[test]
fn an_ack_that_no_packet_brought_about_answers_none_that_is_acknowledged() {
    let mut heard = Heard::new();
    let held = TraceKind::AckHeld { why: Why::new(AckRule::Count, 1, 2), due_us: u32::MAX, basis: None };
    heard.came(4, &[received(1, 1000, ACK), held]);
    heard.came(5, &[received(1001, 1000, ACK), decided(2001, By::Agent, COUNTED)]);
    heard.at(5, 1, ack_sent(2001)).expect("it leaves");
    let opens = TraceKind::AckDecided {
        number: PEER + 2001,
        decision: 7,
        by: By::Forced,
        why: Why::plain(AckRule::Window),
    };
    heard.at(90, 0, opens);
    let left = TraceKind::AckSent { number: PEER + 2001, decided: PEER + 2001, repeat: false, decision: 7 };
    assert_eq!(heard.at(90, 2, left).expect("it leaves").answers, None);
}

/// Duplicate ACKs of one hole have one number.
#[test]
fn an_ack_that_goes_into_another_of_its_number_leaves_that_ones_reason() {
    let mut heard = Heard::new();
    let decided = |decision, why| TraceKind::AckDecided { number: PEER + 1, decision, by: By::Agent, why };
    for packet in 2..5 {
        let class = if packet == 3 { Class::Duplicate } else { Class::OutOfOrder };
        let why = Why::plain(AckRule::NotInOrder);
        let placed = TraceKind::Placed { class, stretches: 1 };
        heard.came(packet, &[received(2001, 1000, ACK), placed, decided(packet as u16, why)]);
    }
    heard.at(5, 4, TraceKind::AckMerged { number: PEER + 1, decision: 4, into: 3 });
    let left = |decision| TraceKind::AckSent { number: PEER + 1, decided: PEER + 1, repeat: false, decision };
    let first = heard.at(5, 1, left(2)).expect("it leaves");
    assert!(first.answers == Some(2) && !first.text.contains("in place of"), "{first:?}");
    let second = heard.at(5, 2, left(3)).expect("it leaves");
    let expected = "ACK 1: delayed decided it, not-in-order (a duplicate), in place of 1 more that were decided \
                    before it could leave; 3 hops";
    assert_eq!((second.answers, &*second.text), (Some(3), expected));
}

#[test]
fn what_a_hold_was_made_from_is_told() {
    let mut heard = Heard::new();
    let basis = Some(Basis::LeastRtt { us: 62_332 });
    let held = TraceKind::AckHeld { why: Why::plain(AckRule::Rate), due_us: 15_583, basis };
    let said = heard.came(4, &[received(1, 1000, ACK), held]);
    assert_eq!(
        said,
        "ACK withheld by delayed: rate, for 15.583 ms at most, by the least round trip of 62.332 ms"
    );
}

#[test]
fn shadows_are_counted_from_nought_as_in_metrics() {
    let would = TraceKind::ShadowAck { shadow: 0, why: Why::plain(AckRule::Each) };
    let said = Heard::new().came(4, &[received(1, 1000, ACK), would]);
    assert_eq!(said, "shadow 0 of  would acknowledge: each");
}

#[test]
fn what_the_protocol_demands_is_named_with_its_clause() {
    let forced = |number| decided(number, By::Forced, FORCED);
    let after =
        |(seq, len, flags), reason| vec![received(seq, len, flags), TraceKind::Dropped(reason), forced(1001)];
    let (window, ceiling) = (Why::plain(AckRule::Window), Why::plain(AckRule::Ceiling));
    let shapes = [
        ("old-duplicate (RFC 9293 §3.10.7.4)", after((1, 1000, ACK), DropReason::OutOfWindow)),
        ("beyond-window (RFC 9293 §3.10.7.4)", after((900_001, 1000, ACK), DropReason::OutOfWindow)),
        ("keep-alive (RFC 9293 §3.8.4)", after((1000, 0, ACK), DropReason::OutOfWindow)),
        ("window-probe (RFC 9293 §3.8.6.1)", after((1001, 1, ACK), DropReason::NoBuffer)),
        ("old-timestamp (RFC 7323 §5.3)", after((1001, 100, ACK), DropReason::Paws)),
        ("challenge-to-rst (RFC 5961 §3.2)", after((1003, 0, RST), DropReason::RstNotExact)),
        ("challenge-to-syn (RFC 5961 §4.2)", after((1003, 0, SYN), DropReason::SynInConnection)),
        ("challenge-to-ack (RFC 5961 §5.2)", after((1001, 0, ACK), DropReason::AckOfUnsent)),
        ("too-many-holes (RFC 5681 §4.2)", after((9001, 9, ACK), DropReason::TooManyHoles)),
        ("no-memory (RFC 9293 §3.10.7.4)", after((1001, 9, ACK), DropReason::NoMemory)),
        ("after-its-fin (RFC 9293 §3.10.7.4)", after((1001, 9, ACK), DropReason::DataAfterClose)),
        ("fin (RFC 9293 §3.10.7.4)", vec![received(1001, 0, ACK | FIN), forced(1002)]),
        (
            "early-fin (RFC 5681 §4.2)",
            vec![received(2001, 0, ACK | FIN), decided(1001, By::Forced, Why::plain(AckRule::NotInOrder))],
        ),
        ("window-opens (RFC 9293 §3.8.6.2.2)", vec![decided(1001, By::Forced, window)]),
        ("ceiling (RFC 9293 MUST-40)", vec![decided(1001, By::Forced, ceiling)]),
    ];
    for (must, kinds) in shapes {
        let mut heard = Heard::new();
        let said = heard.came(7, &kinds);
        let expected = format!("the protocol demands it, {must}, whatever delayed says");
        assert!(said.ends_with(&expected), "{said}");
        let left = heard.at(7, 1, ack_sent(if must.starts_with("fin") { 1002 } else { 1001 }));
        assert!(left.expect("it leaves").text.contains(&expected), "{must}");
    }
    // A SYN starts a new count of the peer's numbers.
    let said = Heard::new().came(7, &[received(0, 0, SYN | ACK), decided(1, By::Forced, FORCED)]);
    assert_eq!(said, "ACK 1: the protocol demands it, handshake (RFC 9293 §3.10.7.3), whatever delayed says");
}

#[test]
fn a_drop_outside_the_window_says_on_which_side() {
    let mut heard = Heard::new();
    let (drop, forced) = (TraceKind::Dropped(DropReason::OutOfWindow), decided(1001, By::Forced, FORCED));
    heard.came(2, &[received(1, 1000, ACK), decided(1001, By::Agent, COUNTED)]);
    for (from, len, expected) in [
        (1, 1000, "dropped: out-of-window (old duplicate); "),
        (501, 400, "dropped: out-of-window (old duplicate); "),
        (501, 900, "dropped: out-of-window (old duplicate); "),
        (1000, 0, "dropped: out-of-window (a keep-alive, or a probe); "),
        (900_001, 1000, "dropped: out-of-window (beyond the window); "),
    ] {
        let said = heard.came(3, &[received(from, len, ACK), drop, forced]);
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn data_that_is_not_in_order_says_what_it_does_to_the_holes() {
    let why = Why::plain(AckRule::NotInOrder);
    let mut heard = Heard::new();
    let mut came = |packet, class, stretches| {
        let placed = TraceKind::Placed { class, stretches };
        let said = heard.came(packet, &[received(2001, 1000, ACK), placed, decided(1, By::Agent, why)]);
        let left = heard.at(packet, packet, ack_sent(1)).expect("it leaves");
        let (place, rest) = said.split_once("; ").expect("its place and the ACK");
        assert_eq!(rest, "ACK 1: delayed decided it, not-in-order");
        assert_eq!(left.text, format!("ACK 1: delayed decided it, not-in-order ({place}); 3 hops"));
        place.to_owned()
    };
    assert_eq!(came(2, Class::OutOfOrder, 1), "opens a hole");
    assert_eq!(came(3, Class::OutOfOrder, 1), "above a hole");
    assert_eq!(came(4, Class::OutOfOrder, 2), "opens a hole");
    assert_eq!(came(5, Class::Duplicate, 2), "a duplicate");
    assert_eq!(came(6, Class::FillsHole, 1), "fills a hole");
}

#[test]
fn an_arrival_without_data_says_what_it_tells_of_the_path() {
    let acks = |ack| TraceKind::Received { seq: PEER + 1, ack: Seq(ack), len: 0, segments: 1, flags: ACK };
    let mut heard = Heard::new();
    heard.came(2, &[acks(1)]);
    let rtt = TraceKind::Rtt { sample_us: 12_345, srtt_us: 11_000, rto_us: 213_000 };
    assert_eq!(
        heard.came(3, &[acks(2001), rtt]),
        "acknowledges 2000 bytes; round trip 12.345 ms, smoothed 11.000 ms, RTO 213.000 ms"
    );
    assert_eq!(heard.came(4, &[acks(2001)]), "acknowledges nothing new");
    let lost = TraceKind::Lost { segments: 3, by: LostBy::Rack };
    let began = TraceKind::RecoveryBegan { by: LostBy::Rack, ssthresh: 7000, flight: 14_000, point: Seq(9) };
    assert_eq!(
        heard.came(5, &[acks(2001), lost, began]),
        "3 segments lost by RACK (RFC 8985 §6.2); fast recovery begins: 14000 bytes were in flight, ssthresh 7000"
    );
    let window = TraceKind::Window { allowed: 14_600, flight: 100 };
    assert_eq!(
        heard.came(6, &[acks(9001), TraceKind::RecoveryEnded, window]),
        "acknowledges 7000 bytes; recovery ends; [cubic] allows 14600 bytes in flight"
    );
    assert_eq!(heard.came(7, &[TraceKind::Undone(UndoneBy::Dsack)]), "nothing was lost, by d-sack");
    assert_eq!(heard.came(8, &[TraceKind::Marked]), "ECE: the window is reduced for a mark");
}

#[test]
fn what_is_sent_again_names_what_found_it_lost() {
    let sent = |what| TraceKind::Sent {
        seq: Seq(1),
        ack: PEER + 1,
        len: 1000,
        segments: 1,
        flags: ACK,
        what,
        flight: 500,
        allowed: 9000,
        decision: 0,
    };
    let mut heard = Heard::new();
    for by in *LostBy::ALL {
        heard.came(3, &[TraceKind::Lost { segments: 1, by }]);
        let text = heard.at(3, 1, sent(SentWhat::Resent)).expect("it leaves").text;
        let expected = format!("1000 bytes, sent again in fast recovery, lost by {}: ", in_words(by));
        assert!(text.starts_with(&expected), "{text}");
    }
    heard.came(4, &[TraceKind::RecoveryEnded]);
    let text = heard.at(4, 1, sent(SentWhat::Resent)).expect("it leaves").text;
    assert_eq!(text, "1000 bytes, sent again: [cubic] allows 9000 bytes in flight, 500 were; 3 hops");
    for (what, expected) in [
        (SentWhat::AfterTimeout, "sent again after a timeout"),
        (SentWhat::TailProbe, "a probe for the loss of the window's tail"),
    ] {
        let text = heard.at(4, 1, sent(what)).expect("it leaves").text;
        assert!(text.starts_with(&format!("1000 bytes, {expected}: ")), "{text}");
    }
}

#[test]
fn a_mark_is_named_where_it_comes_and_where_it_is_echoed() {
    let mut heard = Heard::new();
    let said =
        heard.came(16, &[received(1, 1000, ACK), TraceKind::MarkSeen, decided(1001, By::Agent, COUNTED)]);
    assert_eq!(said, "CE: the network marked it; ACK 1001: delayed decided it, count 2 of 2");
    let left = heard.at(16, 1, ack_sent(1001)).expect("it leaves");
    assert_eq!((left.answers, left.echoes), (Some(16), Some(16)));
    let known = |packet| (packet == 16).then_some(20);
    assert!(left.with_frames(known).ends_with("; answers frame 20; ECE for the mark of frame 20"));
    assert!(left.with_frames(|_| None).ends_with("; 3 hops; ECE"));
    heard.came(17, &[received(1001, 1000, ACK | CWR), decided(2001, By::Agent, COUNTED)]);
    assert_eq!(heard.at(17, 2, ack_sent(2001)).expect("it leaves").echoes, None);
}

/// Packets that leave have their own numbers: the same number means another packet.
#[test]
fn what_is_traced_of_a_packet_that_leaves_is_not_said_of_one_that_came() {
    let mut heard = Heard::new();
    heard.0.arrives(2);
    heard.at(2, 2, received(1, 1000, ACK));
    heard.at(2, 2, decided(1001, By::Piggyback, FORCED));
    heard.at(2, 2, TraceKind::State(StateName::FinWait1));
    assert_eq!(heard.0.of_arrival().text, "");
    assert_eq!(heard.0.of_arrival().text, "", "it is said once");
}

#[test]
fn what_is_dropped_acknowledges_nothing() {
    let acks = |ack| TraceKind::Received { seq: PEER + 1, ack: Seq(ack), len: 0, segments: 1, flags: ACK };
    let mut heard = Heard::new();
    heard.came(2, &[acks(1)]);
    assert_eq!(heard.came(3, &[acks(2001), TraceKind::Dropped(DropReason::Paws)]), "dropped: paws");
}

#[test]
fn what_another_connection_may_send_is_not_said_of_an_arrival() {
    let mut heard = Heard::new();
    heard.0.arrives(2);
    let allowed = |conn| TraceEvent {
        now: Instant::ZERO,
        conn,
        packet: 0,
        kind: TraceKind::Window { allowed: conn * 1000, flight: 0 },
    };
    heard.at(2, 2, received(1, 1000, ACK));
    for conn in [2, 1] {
        assert_eq!(heard.0.hear(&allowed(conn)), None);
    }
    assert_eq!(heard.0.of_arrival().text, "[cubic] allows 1000 bytes in flight");
}

/// A capture may begin in the middle; a SYN starts anew.
#[test]
fn numbers_count_from_the_first_that_was_seen_or_from_a_syn() {
    let mut heard = Heard(Comments::new(Box::new(|_| None)));
    let said = heard.came(2, &[received(1, 1000, ACK), decided(1001, By::Agent, COUNTED)]);
    assert!(said.starts_with("ACK 1001: "), "{said}");
    let said = heard.came(3, &[received(70_000, 0, SYN), decided(70_001, By::Forced, FORCED)]);
    assert!(said.starts_with("ACK 1: "), "{said}");
}

#[test]
fn an_ack_in_place_of_others_counts_them_all_and_has_held_the_first_segment() {
    let mut heard = Heard::new();
    let held = TraceKind::AckHeld { why: COUNTED, due_us: u32::MAX, basis: None };
    heard.came(4, &[received(1, 1000, ACK), held]);
    for (packet, number) in [(6, 1001), (7, 2001), (8, 3001)] {
        heard.came(packet, &[received(number - 1000, 1000, ACK), decided(number, By::Agent, COUNTED)]);
        if number > 1001 {
            let (number, decision, into) = (PEER + (number - 1000), number as u16 - 1000, number as u16);
            heard.at(packet, packet, TraceKind::AckMerged { number, decision, into });
        }
    }
    let left = heard.at(9, 1, ack_sent(3001)).expect("it leaves").text;
    assert!(left.contains("2.000 ms after the first segment it held, in place of 2 more"), "{left}");
}

#[test]
fn a_syn_echoes_no_mark() {
    let mut heard = Heard::new();
    heard.came(4, &[received(1, 1000, ACK), TraceKind::MarkSeen]);
    let sent = |flags| TraceKind::Sent {
        seq: Seq(0),
        ack: PEER + 1001,
        len: 0,
        segments: 1,
        flags,
        what: SentWhat::Control,
        flight: 0,
        allowed: 0,
        decision: 0,
    };
    assert_eq!(heard.at(5, 1, sent(SYN | ACK)).expect("it leaves").echoes, None);
    assert_eq!(heard.at(6, 2, sent(FIN | ACK)).expect("it leaves").echoes, Some(4));
}
