//! The values of `info` for a connection, which must stay true.

use std::net::SocketAddr;

use hopwise_core::Seq;
use hopwise_core::endpoint::{ConnectOptions, ListenOptions, PathSeam};
use hopwise_core::tcp::{Info, TcpConfig};
use hopwise_core::trace::{SentWhat, StateName, TraceKind};
use hopwise_testing::memory::End;

use super::net::{A, B, B2, B6, Net, Pair, ROUND_TRIP, ms, pattern, secs, v4};

/// The rules that every connection keeps at every time.
fn assert_consistent(info: &Info) {
    let outstanding = u64::from(info.snd_nxt.bytes_since(info.snd_una));
    assert!(info.flight.bytes <= outstanding, "{info:?}");
    assert!(info.flight.bytes + info.lost.bytes + info.sacked.bytes <= 2 * outstanding, "{info:?}");
    assert!(info.snd_una <= info.snd_nxt, "{info:?}");
    assert!(u64::from(info.flight.segments) <= info.flight.bytes, "{info:?}");
    let stats = &info.stats;
    assert!(stats.segments_retransmitted <= stats.segments_sent, "{info:?}");
    assert!(stats.bytes_acked + info.bytes_retransmitted <= stats.bytes_sent, "{info:?}");
    assert!(stats.acks_repeated <= stats.acks_sent, "{info:?}");
    let classed = stats.segments_in_order + stats.segments_out_of_order + stats.segments_duplicate;
    assert!(classed <= stats.segments_received, "{info:?}");
    assert!(info.snd_mss > 0 && info.snd_mss <= info.peer_mss, "{info:?}");
    assert!(info.snd_mss <= u32::from(info.path_mtu) - 40, "{info:?}");
    assert!(info.rto >= ms(200) && info.rto <= secs(60), "{info:?}");
    assert!(info.path.rtt.min <= info.path.rtt.smoothed || info.path.rtt.smoothed.is_none(), "{info:?}");
    assert!(info.allowed_bytes > 0, "{info:?}");
}

/// A transfer of `bytes` over a path with this loss; `info` is read after every event.
fn transfer(bytes: usize, loss_ppm: u32) -> (Pair, Vec<Info>) {
    let mut pair = Pair::new();
    for end in [End::A, End::B] {
        pair.net.hosts.path_from(end).impairment.loss_ppm = loss_ppm;
    }
    let data = pattern(bytes, 5);
    let (mut given, mut got, mut seen) = (0, Vec::new(), Vec::new());
    while got.len() < bytes {
        given += pair.send(End::A, &data[given..]);
        let until = pair.net.now() + secs(100);
        assert!(pair.net.hosts.step(until), "it never stands still");
        got.extend(pair.read(End::B));
        let (sender, receiver) = (pair.info(End::A), pair.info(End::B));
        assert_consistent(&sender);
        assert_consistent(&receiver);
        assert!(sender.snd_una <= receiver.rcv_nxt && receiver.rcv_nxt <= sender.snd_nxt);
        seen.push(sender);
    }
    assert!(got == data);
    pair.net.wait(secs(5));
    (pair, seen)
}

#[test]
fn a_transfer_is_seen_as_tcp_info_would_show_it() {
    let (mut pair, seen) = transfer(2_000_000, 0);
    let busiest = seen.iter().max_by_key(|info| info.flight.bytes).expect("some");
    assert!(busiest.flight.segments > 10 && busiest.flight.bytes <= busiest.allowed_bytes + 1448);
    assert!(busiest.allowed_bytes > 10 * 1448, "the window has grown");
    let (sender, receiver) = (pair.info(End::A), pair.info(End::B));
    assert_eq!((sender.state, receiver.state), (StateName::Established, StateName::Established));
    assert_eq!((sender.flow.local, sender.flow.remote), (receiver.flow.remote, receiver.flow.local));
    assert_eq!((sender.snd_mss, sender.peer_mss, sender.path_mtu), (1448, 1460, 1500));
    assert!(sender.has_sack && sender.has_timestamps && sender.has_ecn && sender.window_scales.is_some());
    assert_eq!((receiver.rcv_mss, receiver.told_mss), (1448, 1460));
    assert!(busiest.send_buffer_bytes > TcpConfig::modern().send_buffer.initial, "tuned");
    assert!(receiver.recv_buffer_bytes > TcpConfig::modern().recv_buffer.initial, "and so is this one");
    assert!(
        receiver.recv_buffer_bytes >= receiver.rcv_wnd && busiest.cwnd_bytes == Some(busiest.allowed_bytes)
    );
    let (snd, rcv) = sender.window_scales.expect("agreed");
    assert_eq!(receiver.window_scales, Some((rcv, snd)));
    let smoothed = sender.path.rtt.smoothed.expect("measured");
    assert!(smoothed >= ROUND_TRIP && smoothed < ROUND_TRIP + ms(200), "{smoothed:?}");
    assert_eq!(sender.path.rtt.min, Some(ROUND_TRIP));
    assert!(sender.rto >= smoothed && sender.backoff == 0);
    assert_eq!((sender.stats.bytes_sent, sender.stats.bytes_acked), (2_000_000, 2_000_000));
    assert_eq!(receiver.stats.bytes_received, 2_000_000);
    assert_eq!((sender.stats.segments_retransmitted, sender.stats.timeouts), (0, 0));
    assert_eq!((sender.snd_una, sender.snd_nxt), (receiver.rcv_nxt, receiver.rcv_nxt));
    assert_eq!((sender.flight.bytes, sender.unsent_bytes, receiver.unread_bytes), (0, 0, 0));
    assert!(!sender.is_recovering && !sender.is_frozen && sender.closed.is_none());
    assert!(receiver.rcv_wnd > 0 && sender.snd_wnd > 0);
}

#[test]
fn loss_is_seen_in_the_counters_and_taken_back_from_them() {
    let (mut pair, seen) = transfer(2_000_000, 10_000);
    assert!(seen.iter().any(|info| info.is_recovering && info.sacked.bytes > 0));
    assert!(seen.iter().any(|info| info.lost.segments > 0));
    assert!(seen.iter().any(|info| info.ssthresh_bytes < u64::MAX));
    let sender = pair.info(End::A);
    let lost = pair.net.hosts.lost_from(End::A);
    assert!(lost > 0 && sender.stats.segments_retransmitted >= lost.saturating_sub(1), "{lost} {sender:?}");
    assert!(sender.stats.fast_retransmits > 0);
    assert!(!sender.is_recovering && sender.lost.segments == 0 && sender.sacked.segments == 0);
    let resent: Vec<_> = seen.iter().map(|info| info.stats.segments_retransmitted).collect();
    assert!(resent.is_sorted(), "counters only grow");
}

#[test]
fn what_waits_to_be_sent_and_to_be_read_is_counted() {
    let mut pair = Pair::new();
    pair.send(End::A, &[1; 40_000]);
    let before = pair.info(End::A);
    assert_eq!((before.unsent_bytes, before.flight.bytes), (40_000, 0));
    pair.net.hosts.flush();
    let during = pair.info(End::A);
    assert_eq!(
        (during.unsent_bytes, during.flight.bytes),
        (40_000 - 14_480, 14_480),
        "ten segments to begin with"
    );
    assert_eq!((during.flight.segments, during.allowed_bytes), (10, 14_480));
    pair.net.wait(secs(1));
    let receiver = pair.info(End::B);
    assert_eq!((receiver.unread_bytes, receiver.out_of_order_bytes), (40_000, 0));
    assert_eq!(pair.net.hosts.b.readable(pair.server), 40_000);
    assert_eq!(pair.info(End::A).unsent_bytes, 0);
}

#[test]
fn info_says_how_long_each_side_has_been_silent() {
    let mut pair = Pair::new();
    pair.send(End::A, b"x");
    pair.net.wait(secs(7));
    let (sender, receiver) = (pair.info(End::A), pair.info(End::B));
    assert_eq!(sender.since_last_sent, Some(secs(7)));
    assert_eq!(receiver.since_last_received, Some(secs(7) - ROUND_TRIP / 2));
}

#[test]
fn options_that_one_side_does_not_want_are_used_by_neither() {
    for plain in [End::A, End::B] {
        let mut pair = Net::with(|end, config| {
            if end == plain {
                let off = TcpConfig {
                    sack: false,
                    timestamps: false,
                    window_scale: false,
                    ecn: false,
                    ..TcpConfig::modern()
                };
                config.tcp = std::sync::Arc::new(off);
            }
        })
        .pair();
        for end in [End::A, End::B] {
            let info = pair.info(end);
            assert_eq!((info.has_sack, info.has_timestamps, info.has_ecn), (false, false, false));
            assert_eq!((info.window_scales, info.snd_mss), (None, 1460));
        }
        pair.send(End::A, &[7; 30_000]);
        pair.net.wait(secs(1));
        assert_eq!(pair.read(End::B), [7; 30_000]);
    }
}

#[test]
fn an_outage_shows_as_backoff_and_heals() {
    let mut pair = Pair::new();
    pair.net.cut();
    pair.send(End::A, b"x");
    pair.net.wait(secs(10));
    let info = pair.info(End::A);
    assert!(info.backoff >= 4 && info.rto >= ms(200) * 16, "{info:?}");
    assert!(info.stats.timeouts >= 4 && info.stats.segments_retransmitted >= 4);
    for end in [End::A, End::B] {
        pair.net.hosts.path_from(end).is_down = false;
    }
    pair.net.wait(secs(30));
    assert_eq!(pair.read(End::B), b"x");
    assert!(pair.info(End::A).backoff > 0, "what was sent again measures nothing");
    pair.send(End::A, b"y");
    pair.net.wait(secs(1));
    assert_eq!(pair.info(End::A).backoff, 0);
}

#[test]
fn each_connection_has_a_number_of_its_own_in_the_trace() {
    let mut net = Net::new();
    let ids = [net.connect(), net.connect(), net.connect()];
    let mut numbers: Vec<_> = ids.iter().map(|id| net.hosts.a.trace_number(*id).expect("open")).collect();
    net.settle();
    let mut seen = Vec::new();
    net.hosts.drain_trace(End::A, &mut |event| seen.push(event.conn));
    numbers.retain(|number| *number > 0 && seen.contains(number));
    numbers.dedup();
    assert_eq!(numbers.len(), 3);
    assert_eq!(net.hosts.a.ids().collect::<Vec<_>>(), ids);
    assert!(net.hosts.a.allocated(ids[0]).is_some_and(|bytes| bytes > 0));
}

/// RFC 7323 §5.4: a clock that began with the host would reveal its age. A clock common to all peers would reveal its
/// other connections.
#[test]
fn timestamps_begin_somewhere_else_for_each_peer() {
    let mut net = Net::new();
    let mut first_to = |to| {
        let now = net.now();
        net.hosts.a.connect(now, SocketAddr::new(to, 7), &ConnectOptions::default()).expect("a route");
        let syn = net.sent_by(End::A).pop().expect("a SYN");
        syn.tcp().options.timestamps.expect("on a SYN").value
    };
    let mut values = [B, B2, v4(77), B6].map(&mut first_to).to_vec();
    values.push(0);
    values.sort_unstable();
    assert!(values.windows(2).all(|pair| pair[1] - pair[0] > 100_000), "{values:?}");
}

/// The comments of a capture are made from these events.
#[test]
fn each_segment_that_leaves_tells_what_was_in_flight_before_it_and_what_was_allowed() {
    let mut pair = Pair::new();
    pair.net.settle();
    pair.net.hosts.drain_trace(End::A, &mut |_| {});
    let mut rest = pattern(300_000, 3);
    let (mut acked, mut told) = (None, 0);
    for _ in 0..100 {
        let taken = pair.send(End::A, &rest);
        rest.drain(..taken);
        pair.net.wait(ms(5));
        pair.read(End::B);
        pair.net.hosts.drain_trace(End::A, &mut |event| match event.kind {
            TraceKind::Received { ack, .. } => acked = Some(acked.map_or(ack, |acked: Seq| acked.max(ack))),
            TraceKind::Sent { seq, len, what: SentWhat::New, flight, allowed, .. } => {
                let oldest = *acked.get_or_insert(seq);
                assert_eq!(flight, seq.bytes_since(oldest), "nothing was lost");
                assert!(flight + len <= allowed, "{flight} and {len} of {allowed}");
                told += len;
            }
            _ => {}
        });
    }
    assert_eq!((rest.len(), told), (0, 300_000));
}

/// Routing tells the other end of them, most of all of one that stands still.
#[test]
fn flows_that_have_received_data_are_known_to_routing_and_the_latest_come_first() {
    let mut net = Net::new();
    let listener = net.listen(ListenOptions::default());
    let mut latest_first = Vec::new();
    for _ in 0..9 {
        let mut pair = net.pair_on(listener, &ConnectOptions::default());
        assert_eq!(known_to_routing(&pair.net), latest_first, "no data has come on it");
        pair.send(End::A, &pattern(1_000, 5));
        pair.net.wait(secs(3_600));
        let info = pair.info(End::B);
        latest_first.insert(0, ((info.flow.remote.port(), info.flow.local.port()), info.rcv_nxt));
        latest_first.truncate(8);
        assert_eq!(known_to_routing(&pair.net), latest_first, "a message has room for eight");
        net = pair.net;
    }
}

fn known_to_routing(net: &Net) -> Vec<((u16, u16), Seq)> {
    let mut flows = Vec::new();
    net.hosts.b.ack_hints(A, &mut |ports, seq| flows.push((ports, seq)));
    flows
}
