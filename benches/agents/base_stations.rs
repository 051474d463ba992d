//! Base-station agents in their proxy on a bulk transfer without a fade: data one way, an ACK for every second segment
//! the other. The proxy reads, checks, decides on and hands out each packet.

use std::hint::black_box;
use std::net::SocketAddr;

use hopwise_agents::StandardAgents;
use hopwise_agents::registry::{self, Kind};
use hopwise_core::wire::{TcpOptions, Timestamps};
use hopwise_core::{Instant, LinkId, Machine, Payload, Rx, Seq};
use hopwise_mesh::{Proxy, ProxyConfig};
use hopwise_testing::make::Segment;

use crate::clock::cost_ns;
use crate::row::Row;
use crate::{least_in_turn, more};

const FIXED: LinkId = LinkId(0);
const MOBILE: LinkId = LinkId(1);
const ROUNDS: u32 = 2_000;
/// Two segments and their ACK.
const PACKETS: u64 = 3 * ROUNDS as u64;
const SEGMENT: usize = 1_448;

pub(crate) fn rows() -> Vec<Row> {
    let packets = packets();
    let plainest = || cost("none", &packets);
    let mut rows = vec![Row::alone("proxy with none", "ns/packet", least_in_turn(plainest, plainest).0)];
    // `split` acts on connections whose beginning it saw; its cost is a TCP's, not an agent's.
    for name in registry::names(Kind::BaseStation).filter(|name| !["none", "split"].contains(name)) {
        rows.push(Row::alone(
            format!("proxy with {name}"),
            "ns more",
            more(|| cost(name, &packets), plainest),
        ));
    }
    rows
}

fn packets() -> Vec<(LinkId, Vec<u8>)> {
    let fixed = SocketAddr::from(([10, 8, 0, 1], 5001));
    let mobile = SocketAddr::from(([10, 9, 0, 2], 40_000));
    let packet = |from: SocketAddr, to: SocketAddr, seq, ack, clock, len| {
        let timestamps = Some(Timestamps { value: clock, echo: clock });
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        let (seq, ack, payload) = (Seq(seq), Seq(ack), &vec![0; len][..]);
        Segment { seq, ack, window: 60_000, options, payload, ..Segment::between(from, to) }.packet()
    };
    let segment = SEGMENT as u32;
    let round = |nth: u32| {
        let seq = 2 * nth * segment;
        [
            (FIXED, packet(fixed, mobile, seq, 1, nth + 1, SEGMENT)),
            (FIXED, packet(fixed, mobile, seq + segment, 1, nth + 1, SEGMENT)),
            (MOBILE, packet(mobile, fixed, 1, seq + 2 * segment, nth + 1, 0)),
        ]
    };
    (0..ROUNDS).flat_map(round).collect()
}

fn cost(agent: &str, packets: &[(LinkId, Vec<u8>)]) -> f64 {
    let config = ProxyConfig::new(FIXED, MOBILE, agent);
    let proxy = Proxy::new(config, Box::new(StandardAgents::default()));
    let mut proxy = proxy.expect("an agent that there is");
    let mut out = Vec::new();
    let mut now = Instant::ZERO;
    cost_ns(PACKETS, || {
        for (link, packet) in packets {
            now += std::time::Duration::from_micros(100);
            proxy.handle_packet(now, &Rx::new(*link, packet));
            for link in [FIXED, MOBILE] {
                while proxy.poll_transmit(now, link, Payload::Inline, &mut out).is_some() {
                    black_box(&out);
                    out.clear();
                }
            }
            if proxy.poll_timeout().is_some_and(|due| due <= now) {
                proxy.handle_timeout(now);
            }
        }
    })
}
