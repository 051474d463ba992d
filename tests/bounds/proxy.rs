//! The memory of a base station's proxy, whatever crosses it.

use std::net::SocketAddr;

use allocation_counter::measure;
use hopwise_agents::StandardAgents;
use hopwise_agents::registry::{self, Kind};
use hopwise_core::wire::{Flags, SackBlock, TcpOptions, Timestamps};
use hopwise_core::{Instant, LinkEvent, LinkId, Machine, Payload, Rx, Seq};
use hopwise_mesh::{Proxy, ProxyConfig};
use hopwise_testing::make::Segment;

const FIXED: LinkId = LinkId(0);
const MOBILE: LinkId = LinkId(1);
const FLOWS: u32 = 10_000;
const MOST_A_FLOW: i64 = 4 << 10;

fn ends(flow: u32) -> (SocketAddr, SocketAddr) {
    let [_, _, high, low] = flow.to_be_bytes();
    (SocketAddr::from(([10, 8, 0, 1], 5001)), SocketAddr::from(([10, 9, high, low], 40_000)))
}

fn packet(from: SocketAddr, to: SocketAddr, (seq, ack): (u32, u32), flags: Flags, len: usize) -> Vec<u8> {
    let is_syn = flags.contains(Flags::SYN);
    let block = SackBlock { left: Seq(ack + 5_000), right: Seq(ack + 6_000) };
    let options = TcpOptions {
        timestamps: Some(Timestamps { value: seq | 1, echo: ack }),
        mss: is_syn.then_some(1460),
        sack_permitted: is_syn,
        window_scale: is_syn.then_some(7),
        sack: std::iter::repeat_n(block, if len == 0 && !is_syn { 3 } else { 0 }).collect(),
        ..TcpOptions::default()
    };
    let (seq, ack, payload) = (Seq(seq), Seq(ack), &vec![0; len][..]);
    Segment { seq, ack, flags, window: 1_000, options, payload, ..Segment::between(from, to) }.packet()
}

fn drain(proxy: &mut Proxy, now: Instant) {
    let mut out = Vec::new();
    for link in [FIXED, MOBILE] {
        while proxy.poll_transmit(now, link, Payload::Inline, &mut out).is_some() {
            out.clear();
        }
    }
}

/// Passes the SYNs, a segment of data each way of the fade, and an ACK with blocks.
fn cross(proxy: &mut Proxy, flow: u32) {
    let now = Instant::from_millis(flow.into());
    let (fixed, mobile) = ends(flow);
    for (link, packet) in [
        (FIXED, packet(fixed, mobile, (999, 0), Flags::SYN, 0)),
        (MOBILE, packet(mobile, fixed, (0, 1_000), Flags::SYN | Flags::ACK, 0)),
        (FIXED, packet(fixed, mobile, (1_000, 1), Flags::ACK, 1_000)),
        (MOBILE, packet(mobile, fixed, (1, 2_000), Flags::ACK, 0)),
    ] {
        proxy.handle_packet(now, &Rx::new(link, &packet));
    }
    drain(proxy, now);
}

fn proxy(agent: &str, config: impl FnOnce(&mut ProxyConfig)) -> Proxy {
    let mut of_proxy = ProxyConfig::new(FIXED, MOBILE, agent);
    config(&mut of_proxy);
    Proxy::new(of_proxy, Box::new(StandardAgents::default())).expect("an agent that there is")
}

/// The memory of each of 10,000 flows, without data that agents keep.
fn taken(agent: &str) -> i64 {
    let mut crossed = None;
    let used = measure(|| {
        let mut proxy = proxy(agent, |_| {});
        (0..FLOWS).for_each(|flow| cross(&mut proxy, flow));
        crossed = Some(proxy);
    });
    let proxy = crossed.expect("a proxy");
    assert_eq!(proxy.counts().flows, FLOWS as usize);
    let each = (used.bytes_current - proxy.counts().kept_bytes as i64) / i64::from(FLOWS);
    println!("{agent}: {each} bytes a flow");
    each
}

#[test]
fn ten_thousand_flows_take_at_most_4_kib_each_under_every_agent() {
    for agent in registry::names(Kind::BaseStation).filter(|agent| *agent != SPLIT) {
        assert!(taken(agent) <= MOST_A_FLOW, "{agent}");
    }
}

/// Two TCPs and their surroundings in place of an agent.
const SPLIT: &str = "split";
const MOST_A_SPLIT: i64 = 18 << 10;
/// Ours and the opener's are kept until the other end answers: each SYN of the opener becomes one.
const TWO_SYNS: i64 = 256;

#[test]
fn ten_thousand_connections_that_are_cut_in_two_take_at_most_18_kib_and_two_syns_each() {
    let taken = taken(SPLIT);
    assert!(taken <= MOST_A_SPLIT + TWO_SYNS, "{taken} bytes a connection");
}

#[test]
fn a_fade_that_never_ends_fills_no_more_than_was_allowed() {
    let most = 1 << 20;
    let mut proxy = proxy("ack-hold", |config| config.most_kept_bytes = most);
    (0..100).for_each(|flow| cross(&mut proxy, flow));
    for flow in 0..100 {
        let peer = ends(flow).1.ip();
        proxy.handle_link_event(Instant::from_secs(1), MOBILE, &LinkEvent::Gone { peer });
    }
    for nth in 2..200 {
        for flow in 0..100 {
            let (fixed, mobile) = ends(flow);
            let data = packet(fixed, mobile, (nth * 1_000, 1), Flags::ACK, 1_000);
            proxy.handle_packet(Instant::from_secs(2), &Rx::new(FIXED, &data));
        }
        drain(&mut proxy, Instant::from_secs(2));
        assert!(proxy.counts().kept_bytes <= most);
    }
    assert!(proxy.counts().kept_bytes > most / 2, "{:?}", proxy.counts());
}

#[test]
fn links_of_mobiles_that_nobody_knows_are_forgotten_beyond_a_bound() {
    let mut proxy = proxy("ack-hold", |_| {});
    let tell = |proxy: &mut Proxy, from: u32, to: u32| {
        let used = measure(|| {
            for flow in from..to {
                let peer = ends(flow).1.ip();
                proxy.handle_link_event(Instant::ZERO, MOBILE, &LinkEvent::Gone { peer });
            }
        });
        used.bytes_current
    };
    tell(&mut proxy, 0, 10_000);
    assert_eq!(tell(&mut proxy, 10_000, 60_000), 0);
}
