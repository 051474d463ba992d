//! Acts that a guessing stranger must not achieve: RFC 5961, RFC 7323 §5, RFC 5927.

use std::collections::BTreeSet;

use hopwise_core::endpoint::ListenOptions;
use hopwise_core::tcp::TcpConfig;
use hopwise_core::wire::{Flags, TcpOptions, Timestamps};

use super::peer::{ACK, Host, plain};

fn stamped(value: u32) -> TcpOptions {
    TcpOptions { timestamps: Some(Timestamps { value, echo: 0 }), ..TcpOptions::default() }
}

/// RFC 5961 §5: a segment with an unacceptable ACK has no effect at all; a timestamp from the future would silence the
/// peer.
#[test]
fn a_timestamp_is_not_taken_from_a_segment_whose_ack_is_not_believed() {
    let mut host = Host::new(TcpConfig { timestamps: true, ..plain() });
    let listener = host.listen(ListenOptions::default());
    host.options = stamped(1000);
    host.open();
    let id = host.endpoint.accept(host.now, listener).expect("a connection");
    let (seq, ack) = (host.seq, host.ack);
    host.options = stamped(1_000_000_000);
    host.ack = ack + 1_000_000_000;
    host.say_at(seq, ACK, b"guess");
    (host.options, host.ack) = (stamped(1001), ack);
    host.say_at(seq, ACK, b"data");
    assert_eq!(host.endpoint.readable(id), 4);
}

/// RFC 9293 §3.10.7.4: only a segment that acknowledges `snd_una` or more updates the window.
#[test]
fn an_old_ack_does_not_move_the_window() {
    let (mut host, id) = Host::accepted(plain());
    host.endpoint.send(host.now, id, &[1; 100]).expect("open");
    host.hear();
    host.ack += 100;
    host.say(ACK, &[]);
    let window = |host: &Host| host.endpoint.info(host.now, id).expect("known").snd_wnd;
    let before = window(&host);
    (host.ack, host.window) = (host.ack - 50, 1);
    host.say(ACK | Flags::PSH, b"new");
    host.say(ACK | Flags::PSH, b"newer");
    assert_eq!((window(&host), host.endpoint.readable(id)), (before, 8));
}

/// RFC 7739 §3: one's own identifications reveal nothing of another connection's, even if sequence numbers are known.
#[test]
fn identifications_begin_elsewhere_for_each_connection_and_key() {
    let mut offsets = BTreeSet::new();
    for key in 1..=8 {
        let mut host = Host::with(plain(), |config| config.key = [key; 32]);
        host.listen(ListenOptions::default());
        for port in 5000..5008 {
            host.ports.0 = port;
            let syn_ack = host.open();
            offsets.insert(syn_ack.id.wrapping_sub((syn_ack.seq.0 >> 8) as u16));
        }
    }
    // 64 values of 65,536: two of them agree in one of 32 such tests.
    assert!(offsets.len() > 61, "{} of 64", offsets.len());
}
