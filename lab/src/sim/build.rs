//! Builds a world from a plan.

use std::collections::BTreeSet;
use std::error::Error;
use std::mem;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use hopwise_agents::StandardAgents;
use hopwise_air::frames::Framing;
use hopwise_air::medium;
use hopwise_air::random::{NumberStream, Purpose};
use hopwise_air::{RadioWorld, StationConfig, WireConfig, WorldConfig};
use hopwise_core::endpoint::{AgentChoice, EndpointConfig, LinkConfig, Route};
use hopwise_core::ip::Prefix;
use hopwise_core::narrow::as_u32;
use hopwise_core::queue::FqCodelConfig;
use hopwise_core::tcp::TcpConfig;
use hopwise_core::wire::Checksums;
use hopwise_core::{Endpoint, LinkId, NextHop};
use hopwise_mesh::{
    FirstStep, Gateway, Interface, LiveRouter, Node, NodeConfig, OWN_LINK, Proxy, ProxyConfig, QueueConfig,
    Routing, RoutingSetup, StaticNeighbour, Trust, aodv,
};

use super::gateway;
use super::host::SimHost;
use super::loads;
use super::plan::{Arm, Plan, RoutingPlan};
use super::positions::Oracle;
use super::{RADIO, address_of};
use crate::programs::Programs;

const MTU: u16 = 1500;

/// The reason why a plan cannot be built.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unbuildable(Box<dyn Error + Send + Sync>);

pub(crate) fn world(plan: &Plan) -> Result<RadioWorld<SimHost>, Unbuildable> {
    let count = as_u32(plan.positions.len());
    let mut hosts = Vec::new();
    for (node, routing) in (0..count).zip(routing(plan)) {
        let endpoint = endpoint(plan, node).map_err(Unbuildable)?;
        let config = NodeConfig {
            interfaces: interfaces(plan, node),
            addresses: vec![address_of(node)],
            routing,
            trace_events: plan.trace_events,
        };
        let mut own = Node::new(config, endpoint);
        if plan.phy.is_ht() {
            own.divide(RADIO);
        }
        hosts.push(SimHost::new(own, Programs::of(plan, node, address_of)));
    }
    if let Some(gateway) = &plan.gateway {
        let news = gateway::source(plan, address_of);
        let serving = serving(plan, gateway.node).map_err(Unbuildable)?;
        hosts[gateway.node as usize].serve(serving, Box::new(news));
    }
    let mut world = RadioWorld::new(air(plan, Framing::Packet, &address_of), hosts);
    world.loads = loads::of;
    world.queued_at = |host| host.node().queued_at();
    world.more = SimHost::poll_beside;
    if plan.phy.is_ht() {
        world.categories = Some(SimHost::poll_in);
    }
    if plan.linux_queue.is_some() {
        world.spent = Some(SimHost::on_spent);
    }
    if !plan.tracks.is_empty() {
        world.set_motion(plan.tracks.clone());
    }
    Ok(world)
}

/// The world around the machines; `name` gives their addresses.
pub(crate) fn air(plan: &Plan, framing: Framing, name: &dyn Fn(u32) -> IpAddr) -> WorldConfig {
    let hears_all = plan.routing.is_on("promiscuous");
    let station =
        |(position, node)| StationConfig { position, radio: RADIO, address: name(node), hears_all, framing };
    WorldConfig {
        phy: plan.phy,
        mac: plan.mac,
        radio: plan.radio,
        channel: plan.channel.clone(),
        stations: plan.positions.iter().copied().zip(0..).map(station).collect(),
        wires: wires(plan),
        arp: plan.arp,
        seed: plan.seed,
    }
}

/// The proxy before the gateway's node, for an arm that has an agent for it.
fn serving(plan: &Plan, node: u32) -> Result<Option<Gateway>, Box<dyn Error + Send + Sync>> {
    let Some(agent) = &plan.arm.base_station else { return Ok(None) };
    let wire = wire_links(plan, node).next().map_or(RADIO, |(_, link)| link);
    let config = ProxyConfig {
        checksums: Checksums::Trust,
        trace_events: plan.trace_events,
        key: key(plan, node),
        ..ProxyConfig::new(wire, RADIO, agent)
    };
    let proxy = Proxy::new(config.clone(), Box::new(StandardAgents::new(plan.profile)))?;
    Ok(Some(Gateway::new(proxy, &config, vec![address_of(node)])))
}

/// A wire has the same name at both ends: the radio's is 0, wires count on from 1.
fn wire_links(plan: &Plan, node: u32) -> impl Iterator<Item = (usize, LinkId)> + '_ {
    let mine = plan.wires.iter().enumerate().filter(move |(_, w)| w.ends.0 == node || w.ends.1 == node);
    mine.zip(1..).map(|((wire, _), link)| (wire, LinkId(link)))
}

fn link_of(plan: &Plan, node: u32, wire: usize) -> LinkId {
    wire_links(plan, node).find(|(index, _)| *index == wire).map_or(RADIO, |(_, link)| link)
}

fn wires(plan: &Plan) -> Vec<WireConfig> {
    let config = |(index, wire): (usize, &super::WirePlan)| WireConfig {
        ends: [wire.ends.0, wire.ends.1].map(|node| (node, link_of(plan, node, index))),
        bits_per_second: wire.bits_per_second,
        delay: wire.delay,
    };
    plan.wires.iter().enumerate().map(config).collect()
}

pub(crate) fn interfaces(plan: &Plan, node: u32) -> Vec<Interface> {
    let drop_tail = |packets| QueueConfig::DropTail { packets };
    let key = plan.seed.rotate_left(32) ^ u64::from(node);
    let linux = plan.linux_queue.map(|queue| QueueConfig::FqCodel(FqCodelConfig { key, ..queue }));
    let interface = |link, queue, is_shared| Interface { link, queue, when_full: plan.when_full, is_shared };
    let radio = plan.positions[node as usize]
        .map(|_| interface(RADIO, linux.unwrap_or(drop_tail(plan.queue_packets)), true));
    let wires = wire_links(plan, node).map(|(wire, link)| {
        let packets = plan.wires[wire].queue_packets.unwrap_or(plan.queue_packets);
        interface(link, drop_tail(packets), false)
    });
    radio.into_iter().chain(wires).collect()
}

/// The nodes that each node reaches in one step: over wires, and by radio where frames can be decoded.
pub(crate) fn neighbours(plan: &Plan) -> Vec<Vec<StaticNeighbour>> {
    let by_radio = medium::neighbours(&plan.radio, &plan.channel, &plan.positions, plan.seed);
    let of = |(node, by_radio): (u32, Vec<u32>)| {
        let by_wire = wire_links(plan, node).map(|(wire, link)| {
            let ends = plan.wires[wire].ends;
            let other = if ends.0 == node { ends.1 } else { ends.0 };
            StaticNeighbour { node: other as usize, link, via: NextHop::Link }
        });
        let by_radio = by_radio.into_iter().map(|other| StaticNeighbour {
            node: other as usize,
            link: RADIO,
            via: NextHop::Neighbour(address_of(other)),
        });
        by_wire.chain(by_radio).collect()
    };
    (0..).zip(by_radio).map(of).collect()
}

/// Each node's part of the routing protocol.
fn routing(plan: &Plan) -> Vec<Box<dyn Routing>> {
    let RoutingPlan { protocol, constants } = &plan.routing;
    let has_routes = protocol.live == LiveRouter::Nobody;
    let mut routes = if has_routes { routes(plan) } else { vec![Vec::new(); plan.positions.len()] };
    let oracle = Oracle::of(plan);
    let trust = Trust::simulated(plan.routing.is_on("signed"));
    // Until a frame was acknowledged, a node believes in the least rate.
    let first_kbps = plan.mac.rate.slowest(&plan.phy).kbps();
    let of = |(node, routes): (u32, &mut Vec<_>)| {
        let seed = NumberStream::new(plan.seed, node, Purpose::Routing).next_u64();
        let (positions, routes, trust) = (Box::new(oracle.clone()), mem::take(routes), trust.clone());
        let setup = RoutingSetup::new(spoken_on(plan, node), seed);
        (protocol.make)(constants, RoutingSetup { positions, routes, trust, first_kbps, ..setup })
    };
    (0..).zip(&mut routes).map(of).collect()
}

/// The interfaces that routing uses.
fn spoken_on(plan: &Plan, node: u32) -> Vec<aodv::Interface> {
    let [a, b, c, d] = (0x0a00_0001 + node).to_be_bytes();
    let address = Ipv4Addr::new(a, b, c, d);
    let interface = |interface: Interface| aodv::Interface { link: interface.link, address };
    interfaces(plan, node).into_iter().map(interface).collect()
}

/// Each node's first step towards every end of a flow.
fn routes(plan: &Plan) -> Vec<Vec<(IpAddr, FirstStep)>> {
    let neighbours = neighbours(plan);
    let mut routes = vec![Vec::new(); plan.positions.len()];
    let ends: BTreeSet<u32> = plan.flows.iter().flat_map(|flow| [flow.from, flow.to]).collect();
    for end in ends {
        for (node, hop) in hopwise_mesh::towards(end as usize, &neighbours) {
            routes[node].push((address_of(end), hop));
        }
    }
    routes
}

/// The agents of connections that no rule matches, and those that rules do not name.
pub(crate) fn agents_of(arm: &Arm) -> AgentChoice {
    AgentChoice {
        receiver: Some(arm.receiver.clone()),
        senders: Some(arm.senders.clone()),
        shadows: Some(arm.shadows.clone()),
    }
}

/// A node's own key, the same in every run of the seed.
fn key(plan: &Plan, node: u32) -> [u8; 32] {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&plan.seed.to_be_bytes());
    key[8..12].copy_from_slice(&node.to_be_bytes());
    key
}

fn endpoint(plan: &Plan, node: u32) -> Result<Endpoint, Box<dyn Error + Send + Sync>> {
    let address = Prefix::host(address_of(node));
    let everywhere = Prefix::new(IpAddr::from([0, 0, 0, 0]), 0)?;
    let link = LinkConfig::wire(OWN_LINK.0, MTU, vec![address]);
    let key = key(plan, node);
    let config = EndpointConfig {
        tcp: Arc::new(plan.routing.limit_hops(TcpConfig::modern())),
        routes: vec![Route { to: everywhere, link: OWN_LINK, via: NextHop::Link }],
        rules: plan.rules.clone(),
        agents: agents_of(&plan.arm),
        trace_events: plan.trace_events,
        // Frames that were not understood never reach the endpoint.
        checksums: Checksums::Trust,
        ..EndpointConfig::new(link, key)
    };
    Endpoint::new(config, Box::new(StandardAgents::new(plan.profile)))
}
