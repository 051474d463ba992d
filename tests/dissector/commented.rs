//! Fields of their own show what a capture's comments say.

use hopwise_core::agent::{AckRule, By, Class, Why};
use hopwise_core::trace::{DropReason, LostBy, SentWhat, TraceEvent, TraceKind, UndoneBy};
use hopwise_core::wire::{Flags, TcpOptions};
use hopwise_core::{Instant, Seq};
use hopwise_host::{Comment, Comments, ConnNames};

use super::{LINKTYPE_RAW, dissected_fields, packet};

/// pcapng: a section, a link, and like packets, each with a comment.
pub(crate) fn capture(comments: &[String]) -> Vec<u8> {
    let packet = packet(Flags::ACK, &TcpOptions::default());
    let mut file =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    file.extend(block(1, &[&LINKTYPE_RAW.to_le_bytes()[..], &[0; 4]].concat()));
    for (nth, comment) in (1_u32..).zip(comments) {
        let len = packet.len() as u32;
        let head = [0, 0, nth, len, len].map(u32::to_le_bytes).concat();
        let option = [&1_u16.to_le_bytes()[..], &(comment.len() as u16).to_le_bytes()].concat();
        file.extend(block(
            6,
            &[head, padded(&packet), option, padded(comment.as_bytes()), vec![0; 4]].concat(),
        ));
    }
    file
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, body, &len].concat()
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}

fn comments() -> Comments {
    let names = ConnNames {
        receiver: "delayed:d=2,hold=80ms".into(),
        senders: "[cubic, limit:8]".into(),
        shadows: "[]".into(),
        rule: Some("rules.4".into()),
        hops: Some(3),
    };
    Comments::new(Box::new(move |_| Some(names.clone())))
}

fn received(seq: u32, ack: u32, len: u32) -> TraceKind {
    TraceKind::Received { seq: Seq(seq), ack: Seq(ack), len, segments: 1, flags: 16 }
}

fn decided(number: u32, decision: u16, by: By, why: Why) -> TraceKind {
    TraceKind::AckDecided { number: Seq(number), decision, by, why }
}

fn sent(what: SentWhat, decision: u16) -> TraceKind {
    let (seq, ack, allowed) = (Seq(1), Seq(2001), 14_480);
    TraceKind::Sent { seq, ack, len: 1448, segments: 1, flags: 16, what, flight: 2896, allowed, decision }
}

fn count(have: u32) -> Why {
    Why::new(AckRule::Count, have, 2)
}

/// The comments, one text for each packet that came or left.
struct Said {
    comments: Comments,
    words: Vec<String>,
}

impl Said {
    fn new() -> Said {
        Said { comments: comments(), words: Vec::new() }
    }

    fn hear(&mut self, packet: u64, kind: TraceKind) -> Option<Comment> {
        self.comments.hear(&TraceEvent { now: Instant::from_millis(packet), conn: 1, packet, kind })
    }

    /// A packet that comes, with its events.
    fn comes(&mut self, packet: u64, events: &[TraceKind]) {
        self.comments.arrives(packet);
        for kind in events {
            self.hear(packet, *kind);
        }
        self.words.push(self.comments.of_arrival().text);
    }

    /// A segment that leaves; each packet is the frame of its number.
    fn leaves_in_frames(&mut self, packet: u64, kind: TraceKind) {
        let left = self.hear(packet, kind).expect("it leaves");
        self.words.push(left.with_frames(Some));
    }

    /// An event that may let a segment leave.
    fn may_leave(&mut self, packet: u64, kind: TraceKind) {
        let left = self.hear(packet, kind);
        self.words.extend(left.map(|left| left.text));
    }
}

/// The values of fields of ours in packets with these comments, parted by bars. None without tshark.
fn shown(comments: &[String], fields: &str) -> Option<Vec<String>> {
    dissected_fields(&capture(comments), "hopwise.", fields, ["|", ","])
}

/// The comments of a few packets; each event has the number of its packet.
pub(crate) fn words() -> Vec<String> {
    let plain = Why::plain;
    let lost = TraceKind::Lost { segments: 3, by: LostBy::Rack };
    let began = TraceKind::RecoveryBegan { by: LostBy::Rack, ssthresh: 7240, flight: 14_480, point: Seq(9) };
    let arrivals: [&[TraceKind]; 6] = [
        &[received(1, 1, 1000), TraceKind::AckHeld { why: count(1), due_us: 80_000, basis: None }],
        &[received(1001, 1, 1000), TraceKind::MarkSeen, decided(2001, 2, By::Agent, count(2))],
        &[
            received(3001, 1, 1000),
            TraceKind::Placed { class: Class::OutOfOrder, stretches: 1 },
            decided(2001, 3, By::Agent, plain(AckRule::NotInOrder)),
        ],
        &[
            received(1, 1, 1000),
            TraceKind::Dropped(DropReason::OutOfWindow),
            decided(2001, 4, By::Forced, plain(AckRule::Forced)),
        ],
        &[received(2001, 2897, 0), TraceKind::Rtt { sample_us: 12_345, srtt_us: 11_000, rto_us: 213_000 }],
        &[received(2001, 2897, 0), lost, began],
    ];
    let mut said = Said::new();
    for (packet, events) in (1..).zip(arrivals) {
        said.comes(packet, events);
        if packet == 2 {
            let number = Seq(2001);
            let ack = TraceKind::AckSent { number, decided: number, repeat: false, decision: 2 };
            said.leaves_in_frames(packet, ack);
        }
    }
    for (what, decision) in [(SentWhat::New, 3), (SentWhat::Resent, 4)] {
        said.leaves_in_frames(9, sent(what, decision));
    }
    said.words
}

#[test]
fn what_comments_say_is_shown_in_fields() {
    let words = words();
    let (agent, senders) = ("delayed:d=2,hold=80ms", "[cubic, limit:8]");
    let acks = "agent rule have withheld due_ms ack held_ms answers ece_for";
    let Some(lines) = shown(&words, acks) else { return };
    assert_eq!(
        lines,
        [
            format!("{agent}|count|1|1|80||||"),
            format!("{agent}|count|2|||2001|||"),
            format!("{agent}|count|2|||2001|1|2|2"),
            format!("{agent}|not-in-order||||2001|||"),
            format!("{agent}|old-duplicate||||2001|||"),
            "||||||||".into(),
            "||||||||".into(),
            format!("{agent}|not-in-order||||2001||3|2"),
            format!("{agent}|old-duplicate||||2001||4|2"),
        ]
    );
    let rest = "place clause dropped acked rtt_ms lost_by lost sent allowed flight";
    assert_eq!(
        shown(&words, rest).unwrap_or_default(),
        [
            "|||||||||",
            "|||||||||",
            "|||||||||",
            "opens a hole|||||||||",
            "old duplicate|RFC 9293 §3.10.7.4|out-of-window|||||||",
            "|||2896|12.345|||||",
            "|||||RACK (RFC 8985 §6.2)|3|||",
            "opens a hole|||||||new|14480|2896",
            "|RFC 9293 §3.10.7.4||||RACK (RFC 8985 §6.2)||sent again in fast recovery|14480|2896",
        ]
    );
    let chosen = shown(&words, "senders hops agents_by ce").unwrap_or_default();
    assert_eq!((&*chosen[1], &*chosen[7]), ("||rules.4|1", &*format!("{senders}|3|rules.4|")));
}

/// The comments of further packets: recoveries, places, and ACKs that go together.
fn words_of_recoveries() -> Vec<String> {
    let placed = |class| TraceKind::Placed { class, stretches: 1 };
    let rtt = TraceKind::Rtt { sample_us: 12_345, srtt_us: 11_000, rto_us: 213_000 };
    let by = LostBy::Rack;
    let began = TraceKind::RecoveryBegan { by, ssthresh: 7240, flight: 14_480, point: Seq(9) };
    let arrivals: [&[TraceKind]; 10] = [
        &[received(1, 1, 1000), decided(1001, 1, By::Agent, count(2))],
        &[
            received(1001, 1, 1000),
            decided(2001, 2, By::Agent, count(2)),
            TraceKind::AckMerged { number: Seq(1001), decision: 1, into: 2 },
        ],
        &[received(2001, 2897, 0), rtt],
        &[received(2001, 2897, 0), began],
        &[received(2001, 2897, 0), TraceKind::Undone(UndoneBy::Dsack)],
        &[received(2001, 2897, 0), TraceKind::RecoveryEnded],
        &[received(4001, 1, 1000), placed(Class::OutOfOrder)],
        &[received(5001, 1, 1000), placed(Class::OutOfOrder)],
        &[received(5001, 1, 1000), placed(Class::Duplicate)],
        &[received(2001, 1, 1000), placed(Class::FillsHole)],
    ];
    let mut said = Said::new();
    for (packet, events) in (1..).zip(arrivals) {
        said.comes(packet, events);
    }
    let mut leaves = |kind| said.may_leave(20, kind);
    let number = Seq(2001);
    leaves(TraceKind::AckSent { number, decided: number, repeat: false, decision: 2 });
    leaves(decided(2001, 3, By::Repeat, Why::plain(AckRule::Deadline)));
    leaves(TraceKind::AckSent { number, decided: number, repeat: true, decision: 3 });
    leaves(decided(2001, 4, By::Piggyback, Why::plain(AckRule::Forced)));
    leaves(sent(SentWhat::New, 4));
    said.words
}

#[test]
fn what_comments_say_of_recoveries_and_of_acks_together_is_shown_in_fields() {
    let fields = "rule want merged repeated place srtt_ms rto_ms recovery";
    let Some(lines) = shown(&words_of_recoveries(), fields) else { return };
    assert_eq!(
        lines,
        [
            "count|2||||||",
            "count|2||||||",
            "|||||11|213|",
            "|||||||begins",
            "|||||||undone by d-sack",
            "|||||||ends",
            "||||opens a hole|||",
            "||||above a hole|||",
            "||||a duplicate|||",
            "||||fills a hole|||",
            "count|2|1|||||",
            "deadline|||1||||",
            "piggyback|||||||",
        ]
    );
}

#[test]
fn what_is_told_of_a_link_is_shown_in_fields() {
    let comments = [
        "link to 02:00:00:00:00:01; signal -61 dBm; 5.5 Mbit/s; 40 packets, 12 retries, 1 lost, airtime 18.2 % in 51 \
         ms; heard 9.250 ms ago; told 7.000 ms ago",
        "link to 02:00:00:00:00:01; 7 packets in 1060 ms; told 0.500 ms ago",
        "link to 02:00:00:00:00:01; airtime 3.0 % in 50 ms; told 0.000 ms ago",
    ];
    let fields = "to signal_dbm mbps packets retries lost airtime over_ms heard_ms told_ms";
    let capture = capture(&comments.map(str::to_owned));
    let Some(shown) = dissected_fields(&capture, "hopwise.link.", fields, ["|", ","]) else { return };
    assert_eq!(
        shown,
        [
            "02:00:00:00:00:01|-61|5.5|40|12|1|18.2|51|9.25|7",
            "02:00:00:00:00:01|||7||||1060||0.5",
            "02:00:00:00:00:01||||||3|50||0",
        ]
    );
}

#[test]
fn what_the_mac_did_and_shadows_would_have_done_is_shown_in_fields() {
    let comments = [
        "for n1, try 3 of at most 7, contention window 127, backoff 54 slots; no answer: lost at n1 to an RTS of n2; \
         the packet is given up",
        "for n1, try 1 of at most 4, SIFS after the CTS; n1 answered, but that was lost here to several frames \
         together",
        "for n1, try 1 of at most 7, without backoff on an idle medium; no answer: the channel did not carry it to n1",
        "for n1, try 1 of at most 7, without backoff on an idle medium; no answer: n1 sent an ACK meanwhile",
        "for everyone, sent once, contention window 31, backoff 0 slots",
        "in answer to an RTS of n0",
        "ACK withheld by tack: rate, for 15.583 ms at most, by the least round trip of 62.332 ms; shadow 0 of \
         [immediate, dca] would acknowledge: each; shadow 1 of [immediate, dca] would withhold: count 1 of 2",
        "ACK withheld by tack: rate, for 40.000 ms at most, by the rate of 50000 bytes/s; agents by rules.4",
    ]
    .map(str::to_owned);
    let mac = "to try most cw backoff lost_to given_up";
    let Some(lines) = dissected_fields(&capture(&comments), "hopwise.mac.", mac, ["|", ","]) else { return };
    assert_eq!(
        lines,
        [
            "n1|3|7|127|54|an RTS of n2|1",
            "n1|1|4|||several frames together|",
            "n1|1|7|||the channel|",
            "n1|1|7|||n1 sent an ACK meanwhile|",
            "everyone|||31|0||",
            "||||||",
            "||||||",
            "||||||",
        ]
    );
    let lines = shown(&comments, "shadow due_ms by_rtt_ms by_rate").unwrap_or_default();
    assert_eq!(lines[6], "0: acknowledge, each,1: withhold, count 1 of 2|15.583|62.332|");
    assert_eq!(lines[7], "|40||50000");
}
