//! A thousand moving nodes, a hundred flows: the cost of a control packet with the radio, and in the router alone.

use std::cell::RefCell;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use hopwise_air::dcf::{EVERYONE, FrameKind};
use hopwise_air::frames::FrameEffect;
use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::wire::{IpView, UdpView, protocol};
use hopwise_core::{Cast, Instant, LinkId, Rx, Seq};
use hopwise_lab::scenario::Scenario;
use hopwise_lab::sim::{Plan, Simulation, address_of};
use hopwise_mesh::aodv::{self, Interface};
use hopwise_mesh::constants::ConstantValues;
use hopwise_mesh::gpsr::{Point, Positions};
use hopwise_mesh::{ControlMessage, Cx, Routing, RoutingProtocol, RoutingSetup, dsr, gpsr};

use crate::cpu;
use crate::row::{Row, median_of};

const NODES: u32 = 1_000;
const FLOWS: u32 = 100;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for name in ["aodv", "dsr", "gpsr"] {
        let plan = plan(name);
        let heard = heard(&plan);
        let seconds = cpu::seconds(|| drop(hopwise_lab::sim::run(&plan).expect("a sound plan")));
        let world_us = seconds * 1e6 / heard.everywhere.max(1) as f64;
        rows.push(Row::alone(format!("1000 nodes, 100 flows, {name}"), "us/control packet", world_us));
        let router_ns = median_of(|| replayed_ns(name, &heard.at_one));
        rows.push(Row::alone(format!("the same, {name}'s router alone"), "ns/control packet", router_ns));
    }
    rows
}

/// Sixteen neighbours each; flows run between neighbours of neighbours, and some cross the field.
fn plan(protocol: &str) -> Plan {
    let mut text = format!(
        "topology: {{ kind: random, nodes: {NODES}, width_m: 5000, height_m: 2500 }}\n\
         mobility: {{ speed_mps: [1, 20] }}\nrouting: {{ protocol: {protocol} }}\n\
         arms: {{ x: {{ receiver: delayed, sender: [newreno] }} }}\nrun: {{ duration: 5s }}\ntraffic:\n"
    );
    for flow in 0..FLOWS {
        let (from, to) = (flow * 7 % NODES, (flow * 13 + 500) % NODES);
        writeln!(text, "  - {{ from: n{from}, to: n{to}, kind: cbr, every: 250ms, start: {}ms }}", flow * 5)
            .expect("a String grows");
    }
    let scenario = Scenario::parse("crowd", &text, &[]).expect("a scenario");
    scenario.plan(None, 1).expect("a plan").plan
}

/// A control packet as one node received it.
#[derive(Debug)]
struct Got {
    at: Instant,
    from: IpAddr,
    cast: Cast,
    packet: Vec<u8>,
}

#[derive(Debug, Default)]
struct Heard {
    /// Control packets that any node received.
    everywhere: u64,
    /// Control packets of the node whose router is replayed.
    at_one: Vec<Got>,
}

const ONE: u32 = 0;

/// Runs the plan once and notes the receivers of control packets.
fn heard(plan: &Plan) -> Heard {
    let mut simulation = Simulation::new(plan).expect("a sound plan");
    let heard = Rc::new(RefCell::new(Heard::default()));
    let into = Rc::clone(&heard);
    simulation.world().set_frames(Box::new(move |event, packet| {
        let is_for_it = event.frame.to == event.station || event.frame.to == EVERYONE;
        let is_data = event.sees == FrameEffect::Decodes && event.frame.kind == FrameKind::Data;
        if !is_data || !is_for_it || !is_control(packet) {
            return;
        }
        let mut heard = into.borrow_mut();
        heard.everywhere += 1;
        if event.station == ONE {
            let cast = if event.frame.to == EVERYONE { Cast::ToAll } else { Cast::ToUs };
            let (at, from) = (Instant(event.until_ns), address_of(event.sender));
            heard.at_one.push(Got { at, from, cast, packet: packet.to_vec() });
        }
    }));
    simulation.run_until(plan.end());
    simulation.world().set_frames(Box::new(|_, _| {}));
    heard.take()
}

/// True if the packet carries nothing for a program.
fn is_control(packet: &[u8]) -> bool {
    let Ok(ip) = IpView::parse(packet) else { return false };
    match ip.protocol {
        protocol::UDP => ip.payload.get(2..4) == Some(&aodv::PORT.to_be_bytes()[..]),
        dsr::PROTOCOL | gpsr::PROTOCOL => hopwise_mesh::behind_routing(ip.protocol, ip.payload).0 == 59,
        _ => false,
    }
}

#[derive(Debug)]
struct Nobody;

impl PathSeam for Nobody {
    fn handle_path(&mut self, _: Instant, _: IpAddr, _: Option<(u16, u16)>, _: &PathEvent, _: &Path) {}

    fn ack_hints(&self, _: IpAddr, _: &mut dyn FnMut((u16, u16), Seq)) {}
}

#[derive(Debug)]
struct Corner;

impl Positions for Corner {
    fn locate(&mut self, _: Instant, _: Ipv4Addr) -> Option<Point> {
        Some(Point::default())
    }
}

fn router(name: &str) -> Box<dyn Routing> {
    let IpAddr::V4(address) = address_of(ONE) else { unreachable!("nodes have IPv4 addresses") };
    let positions = Box::new(Corner);
    let setup = RoutingSetup::new(vec![Interface { link: LinkId(0), address }], 1);
    let protocol = RoutingProtocol::named(name).expect("a protocol of the scenario");
    (protocol.make)(&ConstantValues::default(), RoutingSetup { positions, ..setup })
}

/// The kernel counts CPU time in ticks of milliseconds; this many packets take a hundred ticks and more.
const REPLAYED: usize = 2_000_000;

/// CPU nanoseconds for each of these packets, with the timers between them.
fn replayed_ns(name: &str, packets: &[Got]) -> f64 {
    assert!(!packets.is_empty(), "{name}: the node heard nothing that could be replayed");
    let replays = REPLAYED.div_ceil(packets.len());
    let seconds = cpu::seconds(|| {
        for _ in 0..replays {
            let mut router = router(name);
            packets.iter().for_each(|got| hand_in(&mut *router, got));
        }
    });
    seconds * 1e9 / (replays * packets.len()) as f64
}

fn hand_in(router: &mut dyn Routing, got: &Got) {
    let cx = Cx { now: got.at, endpoint: &Nobody };
    if router.poll_timeout().is_some_and(|at| at <= got.at) {
        router.handle_timeout(&cx);
    }
    let (link, from, cast) = (LinkId(0), Some(got.from), got.cast);
    if router.header().is_some() {
        let rx = Rx { link, from, cast, segment_bytes: None, packet: &got.packet };
        router.handle_wrapped(&cx, &rx);
    } else {
        let view = IpView::parse(&got.packet).expect("it came over the air");
        let udp = UdpView::parse(view.src, view.dst, view.payload).expect("it came over the air");
        let (src, dst, hop_limit, message) = (view.src, view.dst, view.hop_limit, udp.payload);
        router.handle_control(&cx, &ControlMessage { link, from, cast, src, dst, hop_limit, message });
    }
    while router.poll_order(got.at).is_some() {}
}
