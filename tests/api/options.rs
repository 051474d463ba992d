//! Options that change while a connection lives, and the network's errors as a program gets them.

use std::net::SocketAddr;

use hopwise_core::endpoint::EventKind;
use hopwise_core::tcp::{CloseReason, KeepAlive, TcpConfig};
use hopwise_core::wire::{Flags, IcmpKind, icmp, protocol};
use hopwise_testing::memory::End;

use super::net::{A, B, Net, Pair, Sent, ms, packet, secs, v4};

fn lens(sent: &[Sent]) -> Vec<usize> {
    sent.iter().map(|sent| sent.tcp().payload.len()).filter(|len| *len > 0).collect()
}

// shows: MUST-17, SHLD-7
#[test]
fn small_segments_wait_for_the_ack_unless_nagle_is_off() {
    for (nagle, expected) in [(true, vec![3]), (false, vec![3, 3, 3])] {
        let mut pair = Pair::new();
        pair.change(End::A, |options| options.nagle = nagle);
        pair.net.sent();
        for _ in 0..3 {
            pair.send(End::A, b"abc");
            pair.net.hosts.flush();
        }
        assert_eq!(lens(&pair.net.sent_by(End::A)), expected, "nagle {nagle}");
    }
}

#[test]
fn what_nagle_holds_leaves_when_it_is_turned_off() {
    let mut pair = Pair::new();
    pair.net.sent();
    for _ in 0..2 {
        pair.send(End::A, b"abc");
        pair.net.hosts.flush();
    }
    assert_eq!(lens(&pair.net.sent_by(End::A)), [3]);
    pair.change(End::A, |options| options.nagle = false);
    assert_eq!(lens(&pair.net.sent_by(End::A)), [3]);
}

impl Pair {
    fn send_part(&mut self, data: &[u8]) {
        let (now, id) = (self.net.now(), self.id(End::A));
        assert_eq!(self.net.hosts.machine(End::A).send_part(now, id, data), Ok(data.len()));
    }

    fn push(&mut self) {
        let (now, id) = (self.net.now(), self.id(End::A));
        self.net.hosts.machine(End::A).push(now, id).expect("still named");
    }

    /// A pair without Nagle's rule, which waits for other reasons.
    fn prompt() -> Pair {
        let mut pair = Pair::new();
        pair.change(End::A, |options| options.nagle = false);
        pair.net.sent();
        pair
    }
}

#[test]
fn what_is_sent_in_parts_leaves_in_full_segments_and_the_rest_with_what_is_pushed() {
    let mut pair = Pair::prompt();
    pair.send_part(&[7; 2000]);
    assert_eq!(lens(&pair.net.sent_by(End::A)), [1448]);
    pair.send_part(&[7; 1000]);
    assert_eq!(lens(&pair.net.sent_by(End::A)), [1448]);
    pair.send_part(&[7; 100]);
    pair.send(End::A, &[7; 100]);
    assert_eq!(lens(&pair.net.sent_by(End::A)), [304]);
    pair.send_part(&[7; 100]);
    assert_eq!(lens(&pair.net.sent_by(End::A)), [0; 0]);
    pair.push();
    assert_eq!(lens(&pair.net.sent_by(End::A)), [100]);
}

#[test]
fn bytes_put_into_the_send_buffer_itself_are_parts_if_that_is_said() {
    let mut pair = Pair::prompt();
    let (now, id) = (pair.net.now(), pair.id(End::A));
    let put = |room: &mut [u8]| room.len();
    assert_eq!(pair.net.hosts.a.send_part_with(now, id, 1500, put), Ok(1500));
    assert_eq!(lens(&pair.net.sent_by(End::A)), [1448]);
    assert_eq!(pair.net.hosts.a.send_part_with(now, id, 100, |_| 0), Ok(0));
    assert_eq!(lens(&pair.net.sent_by(End::A)), [0; 0]);
    assert_eq!(pair.net.hosts.a.send_with(now, id, 100, put), Ok(100));
    assert_eq!(lens(&pair.net.sent_by(End::A)), [152]);
}

#[test]
fn a_part_that_waits_for_more_holds_up_neither_an_ack_nor_the_end() {
    let mut pair = Pair::prompt();
    pair.send_part(&[7; 100]);
    pair.send(End::B, &[8; 3000]);
    pair.net.settle();
    let sent = pair.net.sent_by(End::A);
    assert!(!sent.is_empty() && lens(&sent).is_empty(), "ACKs go alone");
    pair.shutdown(End::A);
    let sent = pair.net.sent_by(End::A);
    assert_eq!(lens(&sent), [100]);
    assert!(sent[0].tcp().flags.contains(Flags::FIN));
}

const KEEP_ALIVE: KeepAlive = KeepAlive { idle: secs_const(10), interval: secs_const(2), probes: 3 };

const fn secs_const(secs: u64) -> std::time::Duration {
    std::time::Duration::from_secs(secs)
}

// shows: MUST-24, MUST-25, MUST-27
#[test]
fn keep_alives_are_turned_on_and_off_for_one_connection() {
    let mut pair = Pair::new();
    pair.net.settle();
    pair.net.sent();
    pair.net.wait(secs(20_000));
    assert!(pair.net.sent().is_empty(), "off unless asked for");
    pair.change(End::A, |options| options.keep_alive = Some(KEEP_ALIVE));
    pair.net.wait(secs(35));
    let probes = pair.net.sent_by(End::A);
    assert_eq!(probes.len(), 3, "every 10 s, as the peer answers");
    let nxt = pair.info(End::A).snd_nxt;
    assert!(probes.iter().all(|probe| probe.tcp().seq == nxt - 1 && probe.tcp().flags == Flags::ACK));
    pair.net.settle();
    pair.net.sent();
    pair.change(End::A, |options| options.keep_alive = None);
    pair.net.wait(secs(1000));
    assert!(pair.net.sent().is_empty());
    assert_eq!(pair.net.hosts.next_at(), None, "not even a timer is left");
}

// shows: MUST-29
#[test]
fn a_connection_ends_when_every_keep_alive_went_unanswered() {
    let mut pair = Pair::new();
    pair.kinds(End::A);
    pair.change(End::A, |options| options.keep_alive = Some(KEEP_ALIVE));
    pair.net.cut();
    pair.net.wait(secs(15));
    assert_eq!(pair.kinds(End::A), [], "10 s idle, 2 s each for 3 probes");
    pair.net.wait(secs(2));
    assert_eq!(pair.kinds(End::A), [EventKind::Closed(CloseReason::TimedOut)]);
}

// shows: MUST-48, MUST-49, SHLD-21, SHLD-22
#[test]
fn hop_limit_and_dscp_are_set_for_one_connection_and_changed_while_it_lives() {
    let tcp = TcpConfig { dscp: 10, hop_limit: 33, ..TcpConfig::modern() };
    let mut pair = Pair::with_tcp(&tcp);
    let marks = |sent: &[Sent]| {
        let mut marks: Vec<_> = sent.iter().map(|sent| (sent.ip().dscp, sent.ip().hop_limit)).collect();
        marks.dedup();
        marks
    };
    assert_eq!(marks(&pair.net.sent()), [(10, 33)], "from the SYN on");
    pair.change(End::A, |options| (options.dscp, options.hop_limit) = (46, 5));
    pair.send(End::A, &[1; 5000]);
    pair.net.settle();
    let sent = pair.net.sent();
    let (ours, theirs): (Vec<_>, Vec<_>) = sent.into_iter().partition(|sent| sent.from == End::A);
    assert_eq!((marks(&ours), marks(&theirs)), (vec![(46, 5)], vec![(10, 33)]));
    let other = pair.net.connect();
    assert_eq!(marks(&pair.net.sent_by(End::A)), [(10, 33)], "others keep theirs: {other:?}");
}

// shows: MUST-49
#[test]
fn the_hop_limit_is_64_unless_set() {
    let mut pair = Pair::new();
    assert!(pair.net.sent().iter().all(|sent| (sent.ip().hop_limit, sent.ip().dscp) == (64, 0)));
}

// shows: MUST-21
#[test]
fn the_user_timeout_is_set_for_one_connection_also_while_it_waits() {
    let mut pair = Pair::new();
    let other = pair.net.connect();
    pair.net.settle();
    pair.kinds(End::A);
    pair.net.cut();
    let now = pair.net.now();
    pair.send(End::A, b"x");
    pair.net.hosts.a.send(now, other, b"x").expect("open");
    pair.net.wait(secs(10));
    pair.change(End::A, |options| options.user_timeout = secs(30));
    pair.net.wait(secs(19));
    assert_eq!(pair.info(End::A).closed, None);
    pair.net.wait(secs(2));
    assert_eq!(pair.info(End::A).closed, Some(CloseReason::TimedOut), "30 s after the first byte left");
    assert_eq!(pair.net.hosts.a.info(pair.net.now(), other).expect("open").closed, None);
}

/// An ICMP error about the latest segment with data that A sent.
fn unreachable(pair: &mut Pair, code: u8) -> Vec<u8> {
    pair.net.sent();
    pair.send(End::A, b"who is there");
    let about = pair.net.sent_by(End::A).pop().expect("a segment");
    let mut message = Vec::new();
    icmp::emit_error(v4(99), A, IcmpKind::Unreachable { code }, &about.packet, &mut message);
    packet(v4(99), A, protocol::ICMP, &message)
}

// shows: MUST-47, MUST-56, SHLD-20
#[test]
fn soft_errors_are_told_unless_the_program_turns_them_off() {
    let heard = EventKind::SoftError { icmp_type: 3, code: 1 };
    for (report_errors, expected) in [(true, vec![heard]), (false, vec![])] {
        let mut pair = Pair::new();
        pair.kinds(End::A);
        pair.change(End::A, |options| options.report_errors = report_errors);
        let error = unreachable(&mut pair, 1);
        pair.net.hosts.inject(End::A, &error);
        assert_eq!(pair.kinds(End::A), expected, "report_errors {report_errors}");
        pair.net.settle();
        assert_eq!(pair.read(End::B), b"who is there", "and the connection lives on");
    }
}

// shows: SHLD-20
#[test]
fn struggling_is_not_told_where_errors_are_turned_off() {
    let mut pair = Pair::new();
    pair.kinds(End::A);
    pair.change(End::A, |options| options.report_errors = false);
    pair.net.cut();
    pair.send(End::A, b"x");
    pair.net.wait(secs(100));
    assert!(pair.info(End::A).stats.timeouts > 3);
    assert_eq!(pair.kinds(End::A), []);
}

/// The port in an error is believed only while the peer has not answered (RFC 5927).
#[test]
fn a_hard_error_ends_the_opening_and_not_what_stands() {
    let mut pair = Pair::new();
    pair.kinds(End::A);
    let error = unreachable(&mut pair, 3);
    pair.net.hosts.inject(End::A, &error);
    assert_eq!(pair.kinds(End::A), [EventKind::SoftError { icmp_type: 3, code: 3 }]);

    let mut net = Net::new();
    let id = net.connect();
    let syn = net.sent().remove(0);
    let mut message = Vec::new();
    icmp::emit_error(B, A, IcmpKind::Unreachable { code: 3 }, &syn.packet, &mut message);
    net.hosts.inject(End::A, &packet(B, A, protocol::ICMP, &message));
    assert_eq!(net.hosts.a.info(net.now(), id).expect("held").closed, Some(CloseReason::Unreachable));
}

#[test]
fn an_error_that_quotes_no_segment_under_way_is_not_told() {
    let mut pair = Pair::new();
    pair.kinds(End::A);
    let error = unreachable(&mut pair, 1);
    pair.net.wait(ms(500)); // By now it is acknowledged.
    pair.net.hosts.inject(End::A, &error);
    assert_eq!(pair.kinds(End::A), []);
    assert_eq!(pair.net.hosts.a.drops(hopwise_core::trace::DropReason::IcmpUnverified), 1);
}

#[test]
fn keep_alives_of_no_length_are_not_a_flood() {
    let mut pair = Pair::new();
    let none = KeepAlive { idle: ms(0), interval: ms(0), probes: 200 };
    let (now, id) = (pair.net.now(), pair.client);
    let mut options = pair.net.hosts.a.options(id).expect("open");
    options.keep_alive = Some(none);
    pair.net.hosts.a.set_options(now, id, options).expect("open");
    pair.net.sent();
    pair.net.wait(secs(1));
    assert!(pair.net.sent_by(End::A).len() <= 100);
}

#[test]
fn options_are_those_of_the_configuration_until_they_are_changed() {
    let tcp = TcpConfig {
        nagle: false,
        keep_alive: Some(KEEP_ALIVE),
        user_timeout: secs(77),
        hop_limit: 3,
        dscp: 4,
        ..TcpConfig::modern()
    };
    let pair = Pair::with_tcp(&tcp);
    let options = pair.net.hosts.b.options(pair.server).expect("open");
    assert_eq!(
        (options.nagle, options.keep_alive, options.user_timeout),
        (false, Some(KEEP_ALIVE), secs(77))
    );
    assert_eq!((options.hop_limit, options.dscp, options.report_errors), (3, 4, true));
}

/// Settings given at connect are that connection's alone.
#[test]
fn a_connection_may_have_a_configuration_of_its_own() {
    let own = TcpConfig { sack: false, timestamps: false, dscp: 8, ..TcpConfig::modern() };
    let options = hopwise_core::endpoint::ConnectOptions {
        tcp: Some(std::sync::Arc::new(own)),
        ..hopwise_core::endpoint::ConnectOptions::default()
    };
    let mut pair = Net::new().pair_with(&options);
    let (ours, theirs) = (pair.info(End::A), pair.info(End::B));
    assert_eq!((ours.has_sack, ours.has_timestamps), (false, false));
    assert_eq!(
        (theirs.has_sack, theirs.has_timestamps),
        (false, false),
        "what both sides want, or not at all"
    );
    let syn = pair.net.sent().remove(0);
    assert_eq!(syn.ip().dscp, 8);
    assert!(!syn.tcp().options.sack_permitted && syn.tcp().options.timestamps.is_none());
    let other = pair.net.connect();
    pair.net.settle();
    let info = pair.net.hosts.a.info(pair.net.now(), other).expect("open");
    assert!(info.has_sack && info.has_timestamps);
    assert_eq!(info.flow.remote, SocketAddr::new(B, super::net::PORT));
}
