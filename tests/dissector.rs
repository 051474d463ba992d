//! The Wireshark dissector reads our bytes: TCP options, captures' comments, GPSR's header.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Command;

use hopwise_core::agent::{AckRule, By, Class, Why};
use hopwise_core::trace::comments::{Comments, ConnNames};
use hopwise_core::trace::{DropReason, LostBy, SentWhat, TraceEvent, TraceKind, UndoneBy};
use hopwise_core::wire::{
    Checksums, Ecn, Flags, HopwiseOption, IpHeader, Notes, OfferFlags, RateRequest, SackBlock, TcpHeader,
    TcpOptions, Timestamps, protocol,
};
use hopwise_core::{Instant, Seq};

const FIELDS: [&str; 10] = [
    "hopwise.offer",
    "hopwise.offer.tell_cwnd",
    "hopwise.offer.use_ack_after",
    "hopwise.rate_offer",
    "hopwise.cwnd",
    "hopwise.dup_count",
    "hopwise.ack_after",
    "hopwise.rate",
    // Wireshark's own name of the same request.
    "tcp.options.tarr.rate",
    "hopwise.malformed",
];

/// Captures whose link layer is IP itself.
const LINKTYPE_RAW: u32 = 101;

fn packet(flags: Flags, options: &TcpOptions) -> Vec<u8> {
    let [src, dst] = [1, 2].map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
    let header = TcpHeader {
        src_port: 40_000,
        dst_port: 7,
        seq: Seq(1),
        ack: Seq(1),
        flags,
        window: 1_000,
        urgent: 0,
        options,
    };
    let ip = IpHeader {
        src,
        dst,
        protocol: protocol::TCP,
        hop_limit: 64,
        ecn: Ecn::NotEct,
        dscp: 0,
        dont_fragment: true,
        id: 0,
        source_route: None,
    };
    let mut packet = Vec::new();
    ip.emit(header.len() + 3, &mut packet);
    header.emit(src, dst, (b"abc", &[]), Checksums::Verify, &mut packet);
    packet
}

fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend([0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, LINKTYPE_RAW].map(u32::to_le_bytes).concat());
    for (packet, second) in packets.iter().zip(0_u32..) {
        let len = packet.len() as u32;
        file.extend([second, 0, len, len].map(u32::to_le_bytes).concat());
        file.extend_from_slice(packet);
    }
    file
}

/// tshark's values for each packet, joined by commas. None without tshark.
fn dissected(name: &str, packets: &[Vec<u8>]) -> Option<Vec<String>> {
    let fields: Vec<_> = FIELDS.iter().flat_map(|field| ["-e", field]).collect();
    tshark(name, &capture(packets), &[&["-T", "fields", "-E", "separator=,"][..], &fields].concat())
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/wireshark");

/// The lines that tshark prints. None without tshark.
fn tshark(name: &str, capture: &[u8], options: &[&str]) -> Option<Vec<String>> {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcap"));
    std::fs::write(&file, capture).expect("the build folder takes files");
    let mut tshark = Command::new("tshark");
    tshark.args(["-X", &format!("lua_script:{FOLDER}/hopwise.lua"), "-r"]).arg(&file).args(options);
    let Ok(done) = tshark.output() else {
        println!("skipped: {name}: tshark is not installed");
        return None;
    };
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && !errors.contains("Lua"), "{errors}");
    Some(String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn offers_notes_and_rate_requests_are_shown() {
    let offer = OfferFlags::TELL_CWND | OfferFlags::USE_CWND | OfferFlags::USE_ACK_AFTER;
    let syn = TcpOptions {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        hopwise: Some(HopwiseOption::Offer(offer)),
        rate_request: Some(RateRequest::Offer),
        ..TcpOptions::default()
    };
    let notes = |cwnd, dup_count, ack_after| TcpOptions {
        timestamps: Some(Timestamps { value: 2, echo: 1 }),
        sack: [SackBlock { left: Seq(9), right: Seq(19) }].into_iter().collect(),
        hopwise: Some(HopwiseOption::Notes(Notes { cwnd, dup_count, ack_after })),
        ..TcpOptions::default()
    };
    let asks = TcpOptions { rate_request: Some(RateRequest::Ask(5)), ..TcpOptions::default() };
    let packets = [
        packet(Flags::SYN, &syn),
        packet(Flags::ACK, &notes(Some(1_000), Some(3), Some(7))),
        packet(Flags::ACK, &notes(None, Some(255), None)),
        packet(Flags::ACK, &asks),
        packet(Flags::ACK, &TcpOptions::default()),
    ];
    let Some(lines) = dissected("offers_notes_and_rate_requests_are_shown", &packets) else { return };
    assert_eq!(lines, ["0x23,1,1,1,,,,,,", ",,,,1000,3,7,,,", ",,,,,255,,,,", ",,,,,,,5,5,", ",,,,,,,,,"]);
}

#[test]
fn an_option_that_is_not_well_formed_is_called_so() {
    let whole = TcpOptions {
        hopwise: Some(HopwiseOption::Notes(Notes { cwnd: Some(4), dup_count: None, ack_after: None })),
        ..TcpOptions::default()
    };
    let mut packet = packet(Flags::ACK, &whole);
    let place = packet.windows(4).position(|bytes| bytes == [0xfd, 7, 0x48, 0x57]).expect("our option");
    packet[place + 4] = 0xff; // Announces more than there is.
    let Some(lines) = dissected("an_option_that_is_not_well_formed_is_called_so", &[packet]) else { return };
    assert_eq!(lines, [",,,,4,,,,,1"]);
}

/// pcapng: a section, a link, and each packet with a comment.
fn commented(packets: &[(Vec<u8>, String)]) -> Vec<u8> {
    let mut file =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    file.extend(block(1, &[&LINKTYPE_RAW.to_le_bytes()[..], &[0; 4]].concat()));
    for (nth, (packet, comment)) in (1_u32..).zip(packets) {
        let len = packet.len() as u32;
        let head = [0, 0, nth, len, len].map(u32::to_le_bytes).concat();
        let option = [&1_u16.to_le_bytes()[..], &(comment.len() as u16).to_le_bytes()].concat();
        file.extend(block(
            6,
            &[head, padded(packet), option, padded(comment.as_bytes()), vec![0; 4]].concat(),
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

/// The comments of a few packets; each event belongs to the packet with the number beside it.
fn words() -> Vec<String> {
    let (mut comments, plain) = (comments(), Why::plain);
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
    let mut words = Vec::new();
    let frame = |packet| Some(packet);
    for (packet, events) in (1..).zip(arrivals) {
        let event = |kind| TraceEvent { now: Instant::from_millis(packet), conn: 1, packet, kind };
        comments.arrives(packet);
        for kind in events {
            comments.hear(&event(*kind));
        }
        words.push(comments.of_arrival().with_frames(frame));
        if packet == 2 {
            let left = comments.hear(&event(TraceKind::AckSent {
                number: Seq(2001),
                decided: Seq(2001),
                repeat: false,
                decision: 2,
            }));
            words.push(left.expect("it leaves").with_frames(frame));
        }
    }
    for (what, decision) in [(SentWhat::New, 3), (SentWhat::Resent, 4)] {
        let event =
            TraceEvent { now: Instant::from_millis(9), conn: 1, packet: 9, kind: sent(what, decision) };
        words.push(comments.hear(&event).expect("it leaves").with_frames(frame));
    }
    words
}

#[test]
fn what_comments_say_is_shown_in_fields() {
    let packets: Vec<_> =
        words().into_iter().map(|words| (packet(Flags::ACK, &TcpOptions::default()), words)).collect();
    let shown = |fields: &[&str]| {
        let fields = fields.iter().flat_map(|field| ["-e", field]).collect::<Vec<_>>();
        let options = [&["-T", "fields", "-E", "separator=|"][..], &fields].concat();
        tshark("what_comments_say_is_shown_in_fields", &commented(&packets), &options)
    };
    let (agent, senders) = ("delayed:d=2,hold=80ms", "[cubic, limit:8]");
    let acks = ["agent", "rule", "have", "withheld", "due_ms", "ack", "held_ms", "answers", "ece_for"];
    let acks = acks.map(|field| format!("hopwise.{field}"));
    let Some(lines) = shown(&acks.each_ref().map(String::as_str)) else { return };
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
    let rest =
        ["place", "clause", "dropped", "acked", "rtt_ms", "lost_by", "lost", "sent", "allowed", "flight"];
    let rest = rest.map(|field| format!("hopwise.{field}"));
    let lines = shown(&rest.each_ref().map(String::as_str)).unwrap_or_default();
    assert_eq!(
        lines,
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
    let chosen =
        shown(&["hopwise.senders", "hopwise.hops", "hopwise.agents_by", "hopwise.ce"]).unwrap_or_default();
    assert_eq!((&*chosen[1], &*chosen[7]), ("||rules.4|1", &*format!("{senders}|3|rules.4|")));
}

/// The comments of further packets: recoveries, places, and ACKs that go together.
fn more_words() -> Vec<String> {
    let mut comments = comments();
    let mut words = Vec::new();
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
    for (packet, events) in (1..).zip(arrivals) {
        comments.arrives(packet);
        for kind in events {
            comments.hear(&TraceEvent { now: Instant::from_millis(packet), conn: 1, packet, kind: *kind });
        }
        words.push(comments.of_arrival().text);
    }
    let mut leaves = |kind| {
        let said = comments.hear(&TraceEvent { now: Instant::from_millis(20), conn: 1, packet: 20, kind });
        words.extend(said.map(|said| said.text));
    };
    let number = Seq(2001);
    leaves(TraceKind::AckSent { number, decided: number, repeat: false, decision: 2 });
    leaves(decided(2001, 3, By::Repeat, Why::plain(AckRule::Deadline)));
    leaves(TraceKind::AckSent { number, decided: number, repeat: true, decision: 3 });
    leaves(decided(2001, 4, By::Piggyback, Why::plain(AckRule::Forced)));
    leaves(sent(SentWhat::New, 4));
    words
}

#[test]
fn what_comments_say_of_recoveries_and_of_acks_together_is_shown_in_fields() {
    let packets: Vec<_> =
        more_words().into_iter().map(|words| (packet(Flags::ACK, &TcpOptions::default()), words)).collect();
    let fields = ["rule", "want", "merged", "repeated", "place", "srtt_ms", "rto_ms", "recovery"];
    let fields = fields.iter().flat_map(|field| ["-e".to_owned(), format!("hopwise.{field}")]);
    let options = [
        vec!["-T".to_owned(), "fields".to_owned(), "-E".to_owned(), "separator=|".to_owned()],
        fields.collect(),
    ];
    let options = options.concat();
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let name = "what_comments_say_of_recoveries_and_of_acks_together_is_shown_in_fields";
    let Some(lines) = tshark(name, &commented(&packets), &options) else { return };
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
fn what_the_mac_did_and_shadows_would_have_done_is_shown_in_fields() {
    let packets = [
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
    .map(|words| (packet(Flags::ACK, &TcpOptions::default()), words.to_owned()));
    let name = "what_the_mac_did_and_shadows_would_have_done_is_shown_in_fields";
    let shown = |fields: &[&str]| {
        let fields: Vec<_> = fields.iter().flat_map(|field| ["-e", field]).collect();
        tshark(name, &commented(&packets), &[&["-T", "fields", "-E", "separator=|"][..], &fields].concat())
    };
    let mac = ["to", "try", "most", "cw", "backoff", "lost_to", "given_up"]
        .map(|field| format!("hopwise.mac.{field}"));
    let Some(lines) = shown(&mac.each_ref().map(String::as_str)) else { return };
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
    let rest = shown(&["hopwise.shadow", "hopwise.due_ms", "hopwise.by_rtt_ms", "hopwise.by_rate"]);
    let lines = rest.unwrap_or_default();
    assert_eq!(lines[6], "0: acknowledge, each,1: withhold, count 1 of 2|15.583|62.332|");
    assert_eq!(lines[7], "|40||50000");
}

#[test]
fn what_gpsrs_header_hides_is_seen() {
    let whole = packet(Flags::ACK, &TcpOptions::default());
    let mut header = vec![2, protocol::TCP, 0, 20];
    header.extend([100_i32, -200, 300, 400].map(i32::to_be_bytes).concat());
    let mut hidden = Vec::new();
    let (ip, tcp) = whole.split_at(20);
    hidden.extend([ip, &header, tcp].concat());
    hidden[9] = 254;
    let len = hidden.len() as u16;
    hidden[2..4].copy_from_slice(&len.to_be_bytes());
    let fields = ["gpsr.kind", "gpsr.sender_y", "gpsr.destination_x", "tcp.srcport", "tcp.len"];
    let fields: Vec<_> = fields.iter().flat_map(|field| ["-e", field]).collect();
    let options = [&["-T", "fields", "-E", "separator=,"][..], &fields].concat();
    let beacon = [&hidden[..20], &[1, 59, 0, 12], &[0; 8]].concat();
    let Some(lines) = tshark("what_gpsrs_header_hides_is_seen", &capture(&[hidden, beacon]), &options) else {
        return;
    };
    assert_eq!(lines[0], "2,-200,300,40000,3");
}

/// A profile's filters are of no use where a field has another name.
#[test]
fn the_profile_is_one_that_wireshark_takes() {
    let colours = std::fs::read_to_string(format!("{FOLDER}/Hopwise/colorfilters")).expect("it is there");
    let packets = commented(&[(packet(Flags::ACK, &TcpOptions::default()), words().remove(4))]);
    let mut matched = Vec::new();
    for line in colours.lines() {
        let [_, name, filter, _] = line.split('@').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let Some(lines) = tshark("the_profile_is_one_that_wireshark_takes", &packets, &["-Y", filter]) else {
            return;
        };
        if !lines.is_empty() {
            matched.push(name);
        }
    }
    assert_eq!(matched, ["Dropped", "ACK that the protocol demands", "ACK by an agent"]);
    let preferences = std::fs::read_to_string(format!("{FOLDER}/Hopwise/preferences")).expect("it is there");
    let script = std::fs::read_to_string(format!("{FOLDER}/hopwise.lua")).expect("it is there");
    let settings =
        preferences.lines().filter_map(|line| line.split_once(": ")).filter(|(_, value)| !value.is_empty());
    let settings: Vec<_> = settings
        .filter(|(name, _)| !name.starts_with('#'))
        .map(|(name, value)| format!("{name}:{value}"))
        .collect();
    assert!(settings.iter().any(|setting| setting == "wlan_radio.tsf_at_end:FALSE"), "{settings:?}");
    let options: Vec<_> = settings.iter().flat_map(|setting| ["-o", setting]).collect();
    tshark("the_profile_is_one_that_wireshark_takes", &packets, &options);
    for field in preferences.split("%Cus:").skip(1).filter_map(|rest| rest.split(':').next()) {
        assert!(script.contains(&format!("\"{field}\"")), "no field is named {field}");
    }
}
