//! The endpoint of the story, and its honest peer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::endpoint::{
    AgentChoice, Cookies, EndpointConfig, LinkConfig, ListenOptions, Neighbours, Offload, Route, SourceRoutes,
};
use hopwise_core::ip::{Limits, Prefix, UdpLimits};
use hopwise_core::tcp::{AckMerge, BufferLimits, KeepAlive, TcpConfig};
use hopwise_core::{Endpoint, LinkId, NextHop};

use super::whims::Whims;
use crate::input::{Bits, Input};

pub(super) const LINK: LinkId = LinkId(0);
pub(super) const HTTP: u16 = 80;
pub(super) const MOST_CONNECTIONS: usize = 24;

pub(super) const HOST_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(super) const HOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
pub(super) const PEER_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub(super) const PEER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
/// The addresses of the stranger who forges packets.
pub(super) const STRANGER_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
pub(super) const STRANGER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 3));
pub(super) const FAR_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));

const RECEIVERS: [&str; 5] =
    ["delayed", "immediate", "delayed:d=8,hold=400ms", "dup-count(delayed)", "dup-count(immediate)"];
const SENDERS: [&str; 5] =
    ["[cubic]", "[newreno]", "[newreno, limit:2]", "[cubic, paced]", "[newreno, paced, limit:9]"];
const SHADOWS: [&str; 3] = ["[]", "[immediate]", "[delayed, immediate, dup-count(delayed)]"];

/// An endpoint with the settings that some checks need.
pub(super) struct Made {
    pub(super) endpoint: Endpoint,
    pub(super) tcp: TcpConfig,
    pub(super) mtu: u16,
}

pub(super) fn make(v4: IpAddr, v6: IpAddr, key: u8, input: &mut Input<'_>) -> Made {
    let tcp = tcp(input);
    let mtu = input.pick([1500, 1280, 9000, 576, 65_535, 128, 296]);
    let mut addresses = vec![prefix(v4, 24)];
    // RFC 8200 §5: IPv6 is not for smaller links.
    if mtu >= 1280 {
        addresses.push(prefix(v6, 64));
    }
    let shape = Bits(input.octet());
    let link = LinkConfig {
        neighbours: if shape.has(0) { Neighbours::Named } else { Neighbours::Implied },
        offload: if shape.has(6) { Offload::Cut { most_bytes: 16_384 } } else { Offload::None },
        ..LinkConfig::wire(LINK.0, mtu, addresses)
    };
    let mut config = EndpointConfig::new(link, [key; 32]);
    config.tcp = Arc::new(tcp.clone());
    config.agents = AgentChoice {
        receiver: Some(input.pick(RECEIVERS).into()),
        senders: Some(input.pick(SENDERS).into()),
        shadows: Some(input.pick(SHADOWS).into()),
    };
    config.source_routes = if shape.has(1) { SourceRoutes::Accept } else { SourceRoutes::Refuse };
    config.trace_events = if shape.has(2) { 0 } else { 32 };
    config.most_connections = if shape.has(3) { 3 } else { MOST_CONNECTIONS };
    let any = if shape.has(4) { prefix(Ipv4Addr::UNSPECIFIED.into(), 0) } else { prefix(FAR_V4, 16) };
    config.routes = vec![Route { to: any, link: LINK, via: NextHop::Neighbour(STRANGER_V4) }];
    config.fragments = Limits { datagrams: 4, bytes: 8192, ..Limits::default() };
    config.udp = UdpLimits { sockets: 4, groups_per_socket: 2, queue_datagrams: 4, queue_bytes: 4096 };
    let whims = Whims::new(if shape.has(5) { input.octet() } else { 0 });
    let endpoint = Endpoint::new(config, Box::new(whims)).expect("the specs above are in the registry");
    Made { endpoint, tcp, mtu }
}

fn prefix(address: IpAddr, len: u8) -> Prefix {
    Prefix::new(address, len).expect("shorter than the address")
}

fn tcp(input: &mut Input<'_>) -> TcpConfig {
    let (first, second) = (Bits(input.octet()), Bits(input.octet()));
    let mut tcp = if first.has(0) { TcpConfig::ns2(512) } else { TcpConfig::modern() };
    let sizes = [(4096, 16_384), (65_535, 65_535), (512, 512), (2000, 100_000), (16, 70_000)];
    let limits = |(initial, max)| BufferLimits { initial, max };
    tcp.recv_buffer = limits(input.pick(sizes));
    tcp.send_buffer = limits(input.pick(sizes));
    tcp.sack ^= first.has(1);
    tcp.timestamps ^= first.has(2);
    tcp.window_scale ^= first.has(3);
    tcp.ecn ^= first.has(4);
    tcp.rack ^= first.has(5);
    tcp.undo ^= first.has(6);
    tcp.nagle ^= first.has(7);
    tcp.path_mtu_discovery ^= second.has(0);
    tcp.limited_transmit ^= second.has(1);
    tcp.ack_merge = if second.has(2) { AckMerge::Read } else { AckMerge::Off };
    tcp.keep_alive = second.has(3).then_some(KeepAlive {
        idle: Duration::from_secs(10),
        interval: Duration::from_secs(1),
        probes: 3,
    });
    if second.has(4) {
        tcp.user_timeout = Duration::from_secs(5);
        tcp.syn_timeout = Duration::from_secs(9);
    }
    if second.has(5) {
        tcp.segment_bytes = 100;
    }
    if second.has(6) {
        tcp.recovery = TcpConfig::ns2(512).recovery;
    }
    tcp
}

pub(super) fn listen_options(input: &mut Input<'_>) -> ListenOptions {
    let shape = Bits(input.octet());
    ListenOptions {
        backlog: if shape.has(0) { 1 } else { 8 },
        half_open: if shape.has(1) { 1 } else { 8 },
        cookies: match shape.0 >> 2 & 3 {
            0 | 3 => Cookies::WhenFull,
            1 => Cookies::Always,
            _ => Cookies::Never,
        },
        ..ListenOptions::default()
    }
}
