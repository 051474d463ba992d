//! Chains of mesh nodes with radios, where data and ACKs of one connection collide.

use std::net::IpAddr;
use std::time::Duration;

use hopwise_air::channel::Channel;
use hopwise_air::dcf::MacConfig;
use hopwise_air::frames::Framing;
use hopwise_air::medium::{Position, Radio};
use hopwise_air::phy::Phy;
use hopwise_air::{Arp, RadioWorld, StationConfig, WorldConfig};
use hopwise_core::endpoint::{
    AgentChoice, ConnId, ConnectOptions, EndpointConfig, LinkConfig, ListenOptions, RecvError, Route,
};
use hopwise_core::ip::Prefix;
use hopwise_core::{Endpoint, Instant, LinkId, NextHop};
use hopwise_mesh::{FirstStep, Interface, Node, NodeConfig, OWN_LINK, QueueConfig, StaticRoutes, WhenFull};

use super::{receivers, sender_lists};

const RADIO: LinkId = LinkId(0);
const PORT: u16 = 7;
/// The bytes in one direction; an eighth of them goes back.
const BYTES: usize = 24_000;
const SPACING_M: f64 = 200.0;
/// The interval at which the programs look.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LIMIT: Instant = Instant::from_secs(300);

fn address(node: u32) -> IpAddr {
    IpAddr::from([10, 0, 0, node as u8 + 1])
}

fn node(number: u32, hops: u32) -> Node {
    let link = LinkConfig::wire(OWN_LINK.0, 1500, vec![Prefix::host(address(number))]);
    let everywhere = Prefix::new(IpAddr::from([0, 0, 0, 0]), 0).expect("a prefix");
    let config = EndpointConfig {
        routes: vec![Route { to: everywhere, link: OWN_LINK, via: NextHop::Link }],
        ..EndpointConfig::new(link, [number as u8; 32])
    };
    let endpoint = hopwise_testing::make::endpoint(config);
    let hop = |to: u32| {
        let next = if to > number { number + 1 } else { number - 1 };
        let hops = to.abs_diff(number) as u8;
        (address(to), FirstStep { link: RADIO, via: NextHop::Neighbour(address(next)), hops })
    };
    let routes: Vec<_> = (0..=hops).filter(|to| *to != number).map(hop).collect();
    let radio = Interface {
        link: RADIO,
        queue: QueueConfig::DropTail { packets: 50 },
        when_full: WhenFull::Drop,
        is_shared: true,
    };
    let config = NodeConfig {
        interfaces: vec![radio],
        addresses: vec![address(number)],
        routing: Box::new(StaticRoutes::new(routes)),
        trace_events: 0,
    };
    Node::new(config, endpoint)
}

fn chain(hops: u32) -> RadioWorld<Node> {
    let station = |number: u32| {
        let position = Some(Position { x: f64::from(number) * SPACING_M, y: 0.0 });
        StationConfig {
            position,
            radio: RADIO,
            address: address(number),
            hears_all: false,
            framing: Framing::Packet,
        }
    };
    let config = WorldConfig {
        phy: Phy::named("dsss-11mbps").expect("a profile"),
        mac: MacConfig::default(),
        radio: Radio::default(),
        channel: Channel::default(),
        stations: (0..=hops).map(station).collect(),
        wires: Vec::new(),
        arp: Arp::Known,
        seed: 1,
    };
    RadioWorld::new(config, (0..=hops).map(|number| node(number, hops)).collect())
}

/// One end: the bytes that it sends, and the bytes that it must get.
struct End {
    node: u32,
    id: Option<ConnId>,
    sends: usize,
    sent: usize,
    gets: usize,
    got: usize,
    is_done: bool,
}

fn byte(from: u32, at: usize) -> u8 {
    (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ (from as u8).wrapping_mul(0x55)
}

impl End {
    fn act(&mut self, now: Instant, endpoint: &mut Endpoint, other: u32) {
        let Some(id) = self.id else { return };
        if self.sent < self.sends {
            let chunk: Vec<u8> = (self.sent..self.sends).map(|at| byte(self.node, at)).collect();
            self.sent += endpoint.send(now, id, &chunk).expect("open");
            if self.sent == self.sends {
                endpoint.shutdown(now, id).expect("open");
            }
        }
        let mut buffer = [0; 4096];
        while !self.is_done {
            match endpoint.recv(now, id, &mut buffer) {
                Ok(0) => return,
                Ok(len) => {
                    for got in &buffer[..len] {
                        assert_eq!(*got, byte(other, self.got), "at {}", self.got);
                        self.got += 1;
                    }
                }
                Err(RecvError::Finished) => {
                    assert_eq!(self.got, self.gets);
                    self.is_done = true;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn exchange(receiver: &str, senders: &str, hops: u32) {
    let mut world = chain(hops);
    let agents = AgentChoice {
        receiver: Some(receiver.to_owned()),
        senders: Some(senders.to_owned()),
        ..AgentChoice::default()
    };
    let options = ListenOptions { agents: agents.clone(), ..ListenOptions::default() };
    let listener = world.with(hops, |now, node| {
        node.with_endpoint(now, |endpoint| endpoint.listen(None, PORT, options).expect("the port is free"))
    });
    let to = (address(hops), PORT).into();
    let options = ConnectOptions { agents, ..ConnectOptions::default() };
    let client = world.with(0, |now, node| {
        node.with_endpoint(now, |endpoint| endpoint.connect(now, to, &options).expect("a route"))
    });
    let end = |node, id, sends, gets| End { node, id, sends, sent: 0, gets, got: 0, is_done: false };
    let mut ends = [end(0, Some(client), BYTES, BYTES / 8), end(hops, None, BYTES / 8, BYTES)];
    while ends.iter().any(|end| !end.is_done) {
        let next = world.now() + LOOK_EVERY;
        let got = ends.each_ref().map(|end| end.got);
        assert!(next < LIMIT, "{receiver} with {senders} over {hops} hops: {got:?}");
        world.run_until(next);
        for (end, other) in ends.iter_mut().zip([hops, 0]) {
            world.with(end.node, |now, node| {
                node.with_endpoint(now, |endpoint| {
                    end.id = end.id.or_else(|| endpoint.accept(now, listener));
                    end.act(now, endpoint, other);
                });
            });
        }
    }
}

fn for_each_pair(hops: u32) {
    for receiver in receivers() {
        for senders in sender_lists() {
            exchange(&receiver, &senders, hops);
        }
    }
}

#[test]
fn every_pair_finishes_over_one_hop() {
    for_each_pair(1);
}

#[test]
fn every_pair_finishes_over_four_hops() {
    for_each_pair(4);
}

#[test]
fn every_pair_finishes_over_eight_hops() {
    for_each_pair(8);
}
