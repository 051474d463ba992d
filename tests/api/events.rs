//! The events that an application gets, and their number.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::Seq;
use hopwise_core::endpoint::{ConnectOptions, Event, EventKind, ListenOptions, RecvError};
use hopwise_core::tcp::{BufferLimits, CloseReason, TcpConfig};
use hopwise_core::wire::Flags;
use hopwise_testing::memory::End;

use super::net::{A, B, Net, PORT, Pair, ROUND_TRIP, pattern, secs, segment};

const SMALL: u32 = 8192;
/// A size beyond the send buffer.
const LARGE: u32 = 2 << 20;

fn with_buffers_of(bytes: u32) -> TcpConfig {
    let limits = BufferLimits { initial: bytes, max: bytes };
    TcpConfig { send_buffer: limits, recv_buffer: limits, ..TcpConfig::modern() }
}

#[test]
fn each_stage_of_a_connection_is_told_once_to_each_side() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let client = net.connect();
    assert_eq!(net.events(End::A), []);
    net.settle();
    assert_eq!(net.events(End::A), [Event::Connection(client, EventKind::Connected)]);
    assert_eq!(net.events(End::B), [Event::Incoming(listener)]);
    let server = net.accept(listener);
    assert_eq!(net.events(End::B), [], "accept has said already that it stands");
    let mut pair = Pair { net, client, server };
    pair.send(End::A, b"one");
    pair.send(End::A, b"two");
    pair.net.settle();
    assert_eq!(pair.kinds(End::B), [EventKind::Readable]);
    assert_eq!(pair.read(End::B), b"onetwo");
    pair.shutdown(End::A);
    pair.net.settle();
    assert_eq!(pair.kinds(End::B), [EventKind::Readable, EventKind::PeerClosed], "the end is read as well");
    pair.shutdown(End::B);
    pair.net.settle();
    assert_eq!(
        pair.kinds(End::A),
        [EventKind::Readable, EventKind::PeerClosed, EventKind::Closed(CloseReason::Finished)]
    );
    assert_eq!(pair.kinds(End::B), [EventKind::Closed(CloseReason::Finished)]);
    pair.net.wait(secs(100));
    assert_eq!((pair.kinds(End::A), pair.kinds(End::B)), (vec![], vec![]));
}

#[test]
fn what_arrives_before_accept_is_told_after_it() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let client = net.connect();
    net.settle();
    let now = net.now();
    net.hosts.a.send(now, client, b"early").expect("open");
    net.settle();
    assert_eq!(net.events(End::B), [Event::Incoming(listener)]);
    let server = net.accept(listener);
    assert_eq!(net.events(End::B), [Event::Connection(server, EventKind::Readable)]);
}

#[test]
fn incoming_is_not_told_when_the_last_that_waited_was_accepted() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    net.connect();
    net.connect();
    net.settle();
    net.accept(listener);
    assert_eq!(net.events(End::B).first(), Some(&Event::Incoming(listener)), "one still waits");
    net.accept(listener);
    assert_eq!(net.events(End::B), []);
}

#[test]
fn connections_are_accepted_in_the_order_in_which_they_came_to_stand() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let ports = [4003, 4001, 4002];
    for port in ports {
        net.connect_with(&ConnectOptions { local_port: Some(port), ..ConnectOptions::default() });
        net.settle();
    }
    for port in ports {
        let id = net.accept(listener);
        assert_eq!(net.hosts.b.info(net.now(), id).expect("open").flow.remote, SocketAddr::new(A, port));
    }
    let now = net.now();
    assert_eq!(net.hosts.b.accept(now, listener), None);
}

#[test]
fn back_pressure_reaches_the_sender_and_is_taken_back_once() {
    let mut pair = Pair::with_tcp(&with_buffers_of(SMALL));
    pair.kinds(End::A);
    let data = pattern(64_000, 1);
    let mut given = pair.send(End::A, &data);
    assert!(given < data.len(), "the buffer is bounded");
    assert_eq!(pair.net.hosts.a.writable(pair.client), 0);
    assert_eq!(pair.send(End::A, &data[given..]), 0);
    pair.net.settle();
    assert_eq!(pair.kinds(End::A), [EventKind::Writable]);
    given += pair.send(End::A, &data[given..]);
    // Without a reader both buffers fill, and no more bytes are taken however long one waits.
    pair.net.wait(secs(5));
    given += pair.send(End::A, &data[given..]);
    pair.net.wait(secs(5));
    pair.kinds(End::A);
    assert_eq!(pair.send(End::A, &data[given..]), 0);
    pair.net.wait(secs(60));
    assert_eq!(pair.kinds(End::A), [], "no room, no word");
    let mut got = pair.read(End::B);
    pair.net.wait(secs(61));
    assert_eq!(pair.kinds(End::A), [EventKind::Writable]);
    assert_eq!(pair.kinds(End::A), []);
    while got.len() < data.len() {
        given += pair.send(End::A, &data[given..]);
        pair.net.settle();
        got.extend(pair.read(End::B));
    }
    assert!(got == data);
}

#[test]
fn bytes_put_into_the_send_buffer_itself_find_the_same_bounds() {
    let mut pair = Pair::with_tcp(&with_buffers_of(SMALL));
    pair.kinds(End::A);
    let data = pattern(64_000, 1);
    let (mut given, mut got) = (0, Vec::new());
    while got.len() < data.len() {
        let (now, id) = (pair.net.now(), pair.client);
        let put = |room: &mut [u8]| {
            let bytes = room.len().min(data.len() - given);
            room[..bytes].copy_from_slice(&data[given..given + bytes]);
            bytes
        };
        match pair.net.hosts.a.send_with(now, id, 5000, put) {
            // Either the buffer is full, or all is sent.
            Ok(0) => {
                let is_all = given == data.len();
                let called =
                    pair.net.hosts.a.send_with(now, id, 5000, |_| if is_all { 0 } else { panic!("no room") });
                assert_eq!(called, Ok(0));
                assert_eq!(pair.net.hosts.a.writable(id) == 0, !is_all);
                pair.net.settle();
                assert_eq!(pair.kinds(End::A).contains(&EventKind::Writable), !is_all, "{given}");
                got.extend(pair.read(End::B));
                pair.net.settle();
            }
            taken => given += taken.expect("it is open"),
        }
    }
    assert!(got == data);
}

#[test]
fn a_sender_that_never_found_the_buffer_full_is_not_told_of_room() {
    let mut pair = Pair::with_tcp(&with_buffers_of(SMALL));
    pair.kinds(End::A);
    assert_eq!(pair.send(End::A, &[1; 8000]), 8000);
    pair.net.settle();
    assert_eq!(pair.kinds(End::A), []);
}

/// Ten segments leave at first, and the bytes that wait behind them are bounded however large the buffer.
#[test]
fn what_leaves_makes_room_behind_the_window_before_anything_is_acknowledged() {
    let mut pair = Pair::with_tcp(&with_buffers_of(LARGE));
    pair.kinds(End::A);
    assert_eq!(pair.send(End::A, &pattern(1 << 20, 1)), 512 << 10);
    assert_eq!(pair.net.hosts.a.writable(pair.client), 0);
    pair.net.hosts.flush();
    assert_eq!(pair.info(End::A).stats.bytes_acked, 0);
    assert_eq!(pair.kinds(End::A), [EventKind::Writable]);
    assert_eq!(pair.net.hosts.a.writable(pair.client), 14_480);
    assert_eq!(pair.send(End::A, &pattern(1 << 20, 2)), 14_480);
    pair.net.hosts.flush();
    assert_eq!(pair.kinds(End::A), [], "nothing has left since");
}

/// All bytes given leave at once, and 512 KiB of them were taken.
#[test]
fn a_program_that_hears_of_room_only_now_is_not_what_holds_its_data() {
    let mut pair = Net::with(|_, config| {
        config.tcp = Arc::new(TcpConfig { nagle: false, ..with_buffers_of(LARGE) });
        config.agents.senders = Some("[\"newreno:iw=1000\"]".into());
    })
    .pair();
    // A SYN's window is 64 KiB at most.
    pair.send(End::A, b"1");
    pair.net.wait(secs(1));
    let before = pair.info(End::A).busy_time.busy;
    assert_eq!(pair.send(End::A, &pattern(1 << 20, 1)), 512 << 10);
    pair.net.wait(ROUND_TRIP / 2);
    let info = pair.info(End::A);
    assert_eq!((info.unsent_bytes, info.busy_time.held_by_buffer), (0, Duration::ZERO));
    assert!(info.busy_time.busy > before);
}

#[test]
fn a_transfer_larger_than_what_may_wait_arrives_whole() {
    let mut pair = Pair::with_tcp(&with_buffers_of(LARGE));
    let data = pattern(3 << 20, 3);
    let (mut given, mut got) = (pair.send(End::A, &data), Vec::new());
    while got.len() < data.len() {
        assert_ne!(given, got.len(), "something is under way");
        pair.net.settle();
        got.extend(pair.read(End::B));
        if pair.kinds(End::A).contains(&EventKind::Writable) {
            given += pair.send(End::A, &data[given..]);
        }
    }
    assert!(got == data);
}

#[test]
fn readable_is_told_again_only_for_what_came_after() {
    let mut pair = Pair::new();
    pair.send(End::A, &[1; 100]);
    pair.net.settle();
    assert_eq!(pair.kinds(End::B), [EventKind::Readable]);
    let now = pair.net.now();
    assert_eq!(pair.net.hosts.b.recv(now, pair.server, &mut [0; 40]), Ok(40));
    pair.net.settle();
    assert_eq!(pair.kinds(End::B), []);
    pair.send(End::A, &[2; 1]);
    pair.net.settle();
    assert_eq!(pair.kinds(End::B), [EventKind::Readable]);
    assert_eq!(pair.net.hosts.b.readable(pair.server), 61);
}

// shows: MUST-12
#[test]
fn an_abort_and_an_end_by_agreement_are_told_apart() {
    let mut pair = Pair::new();
    pair.send(End::A, b"read me first");
    pair.net.settle();
    pair.kinds(End::B);
    pair.abort(End::A);
    pair.net.settle();
    assert_eq!(pair.kinds(End::B), [EventKind::Closed(CloseReason::Reset)]);
    assert_eq!(pair.net.events(End::A), [], "who has let go hears nothing more");
    let now = pair.net.now();
    let refusal = pair.net.hosts.b.send(now, pair.server, b"x").expect_err("it is over");
    assert!(refusal.to_string().contains("the connection is over"), "{refusal}");
    let mut out = [0; 100];
    assert_eq!(pair.net.hosts.b.recv(now, pair.server, &mut out), Ok(13), "what was received is kept");
    assert_eq!(pair.net.hosts.b.recv(now, pair.server, &mut out), Err(RecvError::Over));
}

#[test]
fn a_refusal_and_a_silence_have_reasons_of_their_own() {
    let mut net = Net::new();
    let refused = net.connect();
    net.settle();
    let over = |id, reason| [Event::Connection(id, EventKind::Closed(reason))];
    assert_eq!(net.events(End::A), over(refused, CloseReason::Refused));
    net.cut();
    let silent = net.connect();
    net.wait(secs(190));
    let events = net.events(End::A);
    assert_eq!(events.last(), over(silent, CloseReason::TimedOut).first());
    assert_eq!(events.first(), Some(&Event::Connection(silent, EventKind::Struggling)));
    assert_eq!(events.len(), 2);
}

// shows: MUST-20
#[test]
fn many_retransmissions_are_told_and_then_the_connection_ends() {
    let tcp = TcpConfig { user_timeout: secs(60), ..TcpConfig::modern() };
    let mut pair = Pair::with_tcp(&tcp);
    pair.kinds(End::A);
    pair.net.cut();
    pair.send(End::A, b"into the void");
    let begun = pair.net.now();
    pair.net.wait(secs(30));
    assert_eq!(pair.kinds(End::A), [EventKind::Struggling], "R1, once");
    assert!(pair.info(End::A).stats.timeouts > 3);
    pair.net.wait(secs(29));
    assert_eq!(pair.kinds(End::A), []);
    pair.net.wait(secs(2));
    assert_eq!(pair.kinds(End::A), [EventKind::Closed(CloseReason::TimedOut)], "R2");
    assert!(pair.net.sent_by(End::A).iter().all(|sent| sent.at <= begun + secs(61)));
}

#[test]
fn one_read_drains_a_connection_that_its_peer_has_left() {
    let mut pair = Pair::new();
    pair.send(End::A, b"last words");
    pair.close(End::A);
    pair.net.settle();
    assert_eq!(pair.kinds(End::B), [EventKind::Readable, EventKind::PeerClosed]);
    assert_eq!(pair.read(End::B), b"last words");
    let now = pair.net.now();
    assert_eq!(pair.net.hosts.b.recv(now, pair.server, &mut [0; 9]), Err(RecvError::Finished));
}

#[test]
fn peek_and_consume_come_to_the_same_as_recv() {
    let (mut by_peek, mut by_recv) = (Pair::new(), Pair::new());
    let data = pattern(150_000, 3);
    let (mut seen, mut read): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut given = [0, 0];
    while seen.len() < data.len() || read.len() < data.len() {
        for (pair, given) in [&mut by_peek, &mut by_recv].into_iter().zip(&mut given) {
            *given += pair.send(End::A, &data[*given..]);
            pair.net.settle();
        }
        let (now, id, b) = (by_peek.net.now(), by_peek.server, &mut by_peek.net.hosts.b);
        let (first, second) = b.peek(id);
        assert_eq!(first.len() + second.len(), b.readable(id) as usize);
        // Reads all but the last byte: each round then meets the ring at another place.
        let all = [first, second].concat();
        let taken =
            if seen.len() + all.len() == data.len() { all.len() } else { all.len().saturating_sub(1) };
        seen.extend(&all[..taken]);
        b.consume(now, id, taken as u32).expect("open");
        read.extend(by_recv.read(End::B));
    }
    assert!(seen == data && read == data);
    assert_eq!(by_peek.net.hosts.b.peek(by_peek.server), (&[][..], &[][..]));
    for pair in [&mut by_peek, &mut by_recv] {
        let info = pair.info(End::B);
        assert_eq!((info.unread_bytes, info.stats.bytes_received), (0, data.len() as u64));
    }
}

#[test]
fn consuming_more_than_there_is_takes_what_there_is() {
    let mut pair = Pair::new();
    pair.send(End::A, b"abc");
    pair.net.settle();
    let now = pair.net.now();
    pair.net.hosts.b.consume(now, pair.server, 1000).expect("open");
    pair.send(End::A, b"def");
    pair.net.settle();
    assert_eq!(pair.read(End::B), b"def");
}

// shows: MUST-30, MUST-31, MUST-32, MUST-33
#[test]
fn urgent_data_is_announced_once_and_counted_down_as_it_is_read() {
    let mut pair = Pair::new();
    pair.kinds(End::B);
    pair.send(End::A, b"calm ");
    let now = pair.net.now();
    let urgent = vec![b'!'; 5000];
    assert_eq!(pair.net.hosts.a.send_urgent(now, pair.client, &urgent), Ok(5000));
    pair.send(End::A, b" calm again");
    pair.net.wait(secs(1));
    assert_eq!(pair.kinds(End::B), [EventKind::Urgent, EventKind::Readable]);
    let (id, b) = (pair.server, &mut pair.net.hosts.b);
    assert_eq!(b.urgent_unread(id), 5005);
    let now = pair.net.hosts.now();
    let b = &mut pair.net.hosts.b;
    assert_eq!(b.recv(now, id, &mut [0; 1005]), Ok(1005));
    assert_eq!(b.urgent_unread(id), 4000);
    assert_eq!(b.recv(now, id, &mut [0; 4005]), Ok(4005));
    assert_eq!(b.urgent_unread(id), 0);
    assert_eq!(pair.read(End::B), b" again");
    assert_eq!(pair.kinds(End::B), []);
}

#[test]
fn urgent_data_that_finds_no_room_makes_nothing_else_urgent() {
    let mut pair = Pair::with_tcp(&with_buffers_of(SMALL));
    pair.kinds(End::B);
    pair.send(End::A, &pattern(8192, 1));
    let now = pair.net.now();
    assert_eq!(pair.net.hosts.a.send_urgent(now, pair.client, b"!"), Ok(0));
    pair.net.settle();
    assert_eq!(pair.kinds(End::B), [EventKind::Readable]);
}

/// A segment that no connection and no listener wants is refused, a RST is not.
#[test]
fn a_stray_segment_is_refused_and_a_stray_rst_is_not() {
    let mut net = Net::new();
    let (from, to) = (SocketAddr::new(A, 4000), SocketAddr::new(B, PORT));
    net.hosts.inject(End::B, &segment(from, to, Flags::ACK, Seq(1), Seq(77)));
    let sent = net.sent_by(End::B);
    assert_eq!((sent.len(), sent[0].tcp().flags, sent[0].tcp().seq), (1, Flags::RST, Seq(77)));
    net.hosts.inject(End::B, &segment(from, to, Flags::RST, Seq(1), Seq(0)));
    assert!(net.sent_by(End::B).is_empty());
    assert_eq!(net.events(End::B), []);
}
