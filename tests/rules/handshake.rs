//! The beginnings and ends of connections: RFC 9293 §3.5, §3.6 and §3.10.7, RFC 6191.

use std::time::Duration;

use hopwise_core::endpoint::{Event, EventKind, ListenOptions};
use hopwise_core::tcp::{CloseReason, TcpConfig};
use hopwise_core::wire::{Flags, TcpOptions};

use super::peer::{ACK, Host, RST, SYN, plain};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// RFC 9293 §3.10.7.4, first: an unacceptable segment is answered with an ACK, in SYN-RECEIVED too. A client that
/// has forgotten its first SYN answers that with a RST and may begin anew.
#[test]
fn a_half_open_connection_answers_a_syn_of_another_life() {
    let mut host = Host::new(plain());
    host.listen(ListenOptions::default());
    host.say(SYN, &[]);
    let first = host.hear_one();
    let elsewhere = host.seq + 1_000_000_000;
    host.say_at(elsewhere, SYN, &[]);
    let answer = host.hear_one();
    assert_eq!((answer.flags, answer.ack), (ACK, first.ack));
    host.say_at(answer.ack, RST, &[]);
    host.hear();
    assert_eq!(host.endpoint.connections(), 0);
}

// shows: MUST-23
#[test]
fn a_syn_is_given_up_after_three_minutes() {
    let (mut host, id) = Host::connecting(plain());
    host.wait(secs(179));
    assert_eq!(host.endpoint.info(host.now, id).expect("known").closed, None);
    host.wait(secs(2));
    assert_eq!(host.endpoint.info(host.now, id).expect("known").closed, Some(CloseReason::TimedOut));
}

#[test]
fn a_half_open_connection_is_given_up_after_three_minutes() {
    let mut host = Host::new(plain());
    host.listen(ListenOptions::default());
    host.say(SYN, &[]);
    host.wait(secs(181));
    assert_eq!(host.endpoint.connections(), 0);
}

/// Our side closes first and ends in TIME-WAIT.
fn in_time_wait(tcp: TcpConfig, options: TcpOptions) -> (Host, hopwise_core::endpoint::ConnId) {
    let mut host = Host::new(tcp);
    host.options = options;
    let listener = host.listen(ListenOptions::default());
    host.open();
    let id = host.endpoint.accept(host.now, listener).expect("a connection");
    host.say(ACK | Flags::PSH, b"unread");
    host.endpoint.shutdown(host.now, id).expect("open");
    host.hear();
    host.ack += 1;
    host.say(ACK | Flags::FIN, &[]);
    host.hear();
    (host, id)
}

fn stamped(value: u32) -> TcpOptions {
    let timestamps = Some(hopwise_core::wire::Timestamps { value, echo: 0 });
    TcpOptions { timestamps, ..TcpOptions::default() }
}

// shows: SHLD-4
#[test]
fn time_wait_gives_way_to_a_syn_that_is_surely_new() {
    let (mut host, _) = in_time_wait(plain(), TcpOptions::default());
    let last = host.ack;
    host.seq += 1_000_000_000;
    host.say(SYN, &[]);
    let answer = host.hear_one();
    assert_eq!((answer.flags, answer.ack), (SYN | ACK, host.seq));
    assert!(last < answer.seq, "our own numbers begin above the old ones");
}

/// RFC 6191 §2: a newer timestamp is enough, whatever the number; without timestamps the number decides.
#[test]
fn time_wait_judges_a_syn_by_its_timestamp_where_there_is_one() {
    let tcp = TcpConfig { timestamps: true, ..plain() };
    for (options, seq, taken) in [
        (stamped(2000), -1_000_000_000_i32, true),
        (stamped(500), 1_000_000_000, false),
        (TcpOptions::default(), 1_000_000_000, true),
        (TcpOptions::default(), -1_000_000_000, false),
    ] {
        let (mut host, _) = in_time_wait(tcp.clone(), stamped(1000));
        let seq = host.seq + seq as u32;
        host.options = options.clone();
        host.say_at(seq, SYN, &[]);
        assert_eq!(host.hear_one().flags.contains(SYN), taken, "{options:?} {seq}");
    }
}

#[test]
fn what_a_connection_in_time_wait_has_left_unread_survives_its_successor() {
    let (mut host, id) = in_time_wait(plain(), TcpOptions::default());
    host.seq += 1_000_000_000;
    host.say(SYN, &[]);
    host.hear();
    let mut out = [0; 10];
    assert_eq!(host.endpoint.recv(host.now, id, &mut out), Ok(6));
    assert_eq!(&out[..6], b"unread");
    assert_eq!(host.endpoint.connections(), 2);
    host.endpoint.close(host.now, id).expect("still named");
    assert_eq!(host.endpoint.connections(), 1);
    host.ack += 1;
    host.say(ACK, &[]);
    assert_eq!(host.endpoint.connections(), 1, "the successor lives on");
}

/// A connection that is over does not exist, though the application still holds its name (RFC 9293 §3.3.2).
#[test]
fn a_peer_may_come_back_while_the_application_holds_the_old_name() {
    let (mut host, id) = Host::accepted(plain());
    host.say(RST, &[]);
    host.hear();
    host.seq += 5000;
    host.say(SYN, &[]);
    assert_eq!(host.hear_one().flags, SYN | ACK);
    assert_eq!(host.endpoint.info(host.now, id).expect("known").closed, Some(CloseReason::Reset));
}

#[test]
fn the_end_is_told_once() {
    let (mut host, id) = in_time_wait(plain(), TcpOptions::default());
    host.wait(secs(100));
    let mut closed = 0;
    while let Some(event) = host.endpoint.poll_event() {
        closed += usize::from(event == Event::Connection(id, EventKind::Closed(CloseReason::Finished)));
    }
    let (mut host, id) = in_time_wait(plain(), TcpOptions::default());
    while let Some(event) = host.endpoint.poll_event() {
        closed += usize::from(event == Event::Connection(id, EventKind::Closed(CloseReason::Finished)));
    }
    host.wait(secs(100));
    assert_eq!((closed, host.endpoint.poll_event()), (2, None));
}

const MSS_1000: fn() -> TcpOptions = || TcpOptions { mss: Some(1000), ..TcpOptions::default() };

/// RFC 5681 §3.1: after a lost SYN one segment opens the window; RFC 6298 §5.7: and its RTO is 3 s.
#[test]
fn a_lost_syn_leaves_one_segment_to_begin_with() {
    let (mut host, id) = Host::connecting(plain());
    host.wait(Duration::from_millis(1500));
    host.options = MSS_1000();
    host.say(SYN | ACK, &[]);
    host.options = TcpOptions::default();
    host.endpoint.send(host.now, id, &[1; 20_000]).expect("open");
    let lens: Vec<_> = host.hear().iter().map(|heard| heard.len).filter(|len| *len > 0).collect();
    assert_eq!(lens, [1000]);
    assert_eq!(host.endpoint.info(host.now, id).expect("known").rto, secs(3));
}

/// Two SYNs that cross make us send ours twice; nothing was lost.
#[test]
fn a_simultaneous_open_is_no_lost_syn() {
    let (mut host, id) = Host::connecting(plain());
    host.options = MSS_1000();
    host.say(SYN, &[]);
    assert_eq!(host.hear_one().flags, SYN | ACK);
    host.say_at(host.seq - 1, SYN | ACK, &[]);
    host.options = TcpOptions::default();
    host.endpoint.send(host.now, id, &[1; 20_000]).expect("open");
    assert_eq!(host.hear().iter().filter(|heard| heard.len == 1000).count(), 10);
    assert!(host.endpoint.info(host.now, id).expect("known").rto <= secs(1));
}
