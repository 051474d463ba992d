//! How connections begin and end: RFC 9293 §3.5, §3.6 and §3.10.7, RFC 6191.

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
