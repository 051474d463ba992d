//! 10,000 flows, a segment and an ACK of each in turn: no flow's state is in the cache when its packet comes.

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Duration;

use allocation_counter::measure;
use hopwise_agents::StandardAgents;
use hopwise_core::wire::{TcpOptions, Timestamps};
use hopwise_core::{Instant, LinkId, Machine, Payload, Rx, Seq};
use hopwise_mesh::{Proxy, ProxyConfig};
use hopwise_testing::make::Segment;

use crate::row::{Better, Row, median_of};
use crate::usage::thread_seconds;

const FIXED: LinkId = LinkId(0);
const MOBILE: LinkId = LinkId(1);
const FLOWS: u32 = 10_000;
const SEGMENT: u32 = 1_448;
/// The goals.
const MOST_NS: f64 = 5_000.0;
const MOST_BYTES: f64 = 4_096.0;
const AGENTS: [&str; 3] = ["none", "ack-hold", "snoop"];

pub(crate) fn rows() -> Vec<Row> {
    let rounds: Vec<_> = (0..4).map(round).collect();
    let mut rows = Vec::new();
    for agent in AGENTS {
        let cost = median_of(|| {
            let mut proxy = proxy(agent);
            carry(&mut proxy, &rounds[0]);
            let before = thread_seconds();
            rounds[1..].iter().for_each(|round| carry(&mut proxy, round));
            (thread_seconds() - before) * 1e9 / f64::from(3 * 2 * FLOWS)
        });
        let name = format!("packet of 10000 flows with {agent}");
        rows.push(
            Row::beside(name, "ns/packet", Better::Less, cost, ("the limit", MOST_NS)).meant_to_be(1.0),
        );
    }
    for agent in AGENTS {
        let mut proxy = None;
        let taken = measure(|| {
            let mut made = crate::crowd::proxy(agent);
            rounds[..2].iter().for_each(|round| carry(&mut made, round));
            proxy = Some(made);
        });
        drop(proxy);
        let each = taken.bytes_current as f64 / f64::from(FLOWS);
        let name = format!("memory of 10000 flows with {agent}");
        rows.push(
            Row::beside(name, "bytes/flow", Better::Less, each, ("the limit", MOST_BYTES)).meant_to_be(1.0),
        );
    }
    rows
}

fn proxy(agent: &str) -> Proxy {
    let proxy = Proxy::new(ProxyConfig::new(FIXED, MOBILE, agent), Box::new(StandardAgents::default()));
    proxy.expect("an agent that there is")
}

fn carry(proxy: &mut Proxy, round: &[(LinkId, Vec<u8>)]) {
    let mut out = Vec::new();
    for (nth, (link, packet)) in (0..).zip(round) {
        let now = Instant::ZERO + Duration::from_micros(nth);
        proxy.handle_packet(now, &Rx::new(*link, packet));
        for link in [FIXED, MOBILE] {
            while proxy.poll_transmit(now, link, Payload::Inline, &mut out).is_some() {
                black_box(&out);
                out.clear();
            }
        }
    }
}

/// The nth segment of every flow, and its ACK.
fn round(nth: u32) -> Vec<(LinkId, Vec<u8>)> {
    let of = |flow: u32| {
        let [_, _, high, low] = flow.to_be_bytes();
        let fixed = SocketAddr::from(([10, 8, 0, 1], 5001));
        let mobile = SocketAddr::from(([10, 9, high, low], 40_000));
        let seq = 1 + nth * SEGMENT;
        let data = packet(fixed, mobile, (seq, 1), nth + 1, SEGMENT as usize);
        [(FIXED, data), (MOBILE, packet(mobile, fixed, (1, seq + SEGMENT), nth + 1, 0))]
    };
    (0..FLOWS).flat_map(of).collect()
}

fn packet(from: SocketAddr, to: SocketAddr, (seq, ack): (u32, u32), clock: u32, len: usize) -> Vec<u8> {
    let timestamps = Some(Timestamps { value: clock, echo: clock });
    let options = TcpOptions { timestamps, ..TcpOptions::default() };
    let (seq, ack, payload) = (Seq(seq), Seq(ack), &vec![0; len][..]);
    Segment { seq, ack, window: 60_000, options, payload, ..Segment::between(from, to) }.packet()
}
