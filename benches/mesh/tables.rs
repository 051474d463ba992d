//! Ten thousand routes: the cost to find one, and to forward a packet by it.

use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::{Cast, Instant, LinkId, Seq};
use hopwise_mesh::aodv::messages::{AodvMessage, Rrep};
use hopwise_mesh::aodv::{Interface, Settings, routing};
use hopwise_mesh::constants::RuleSet;
use hopwise_mesh::{ControlMessage, Cx, RoutedPacket, Routing, RoutingSetup, RoutingVerdict};

use crate::cpu;
use crate::row::{Better, Row, median_of};

const ROUTES: u32 = 10_000;
const LOOKUPS: u32 = 4_000_000;
const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The goal of a lookup.
const MOST_NS: f64 = 200.0;

#[derive(Debug)]
struct Nobody;

impl PathSeam for Nobody {
    fn handle_path(&mut self, _: Instant, _: IpAddr, _: Option<(u16, u16)>, _: &PathEvent, _: &Path) {}

    fn ack_hints(&self, _: IpAddr, _: &mut dyn FnMut((u16, u16), Seq)) {}
}

const CX: Cx<'static> = Cx { now: Instant::from_millis(1), endpoint: &Nobody };

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, rules) in [("rfc3561", RuleSet::Standard), ("ns2", RuleSet::Ns2)] {
        let mut router = filled(rules);
        let lookup_ns = median_of(|| ns(|nth| assert!(router.next_hop(CX.now, end(nth)).is_some())));
        let lookup = format!("10,000 routes, {name}, a lookup");
        rows.push(
            Row::beside(lookup, "ns", Better::Less, lookup_ns, ("the limit", MOST_NS)).meant_to_be(1.0),
        );
        let forward_ns = median_of(|| ns(|nth| forward(&mut *router, end(nth))));
        rows.push(Row::alone(format!("10,000 routes, {name}, a packet sent on"), "ns", forward_ns));
    }
    rows
}

fn end(nth: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a01_0000 + nth).into()
}

/// Nanoseconds of each call, in an order that no cache foresees.
fn ns(mut each: impl FnMut(u32)) -> f64 {
    let seconds = cpu::seconds(|| {
        let mut nth = 1_u32;
        for _ in 0..LOOKUPS {
            nth = nth.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            each((nth >> 8) % ROUTES);
        }
    });
    seconds * 1e9 / f64::from(LOOKUPS)
}

fn forward(router: &mut dyn Routing, dst: IpAddr) {
    let src = IpAddr::from([10, 0, 0, 9]);
    let routed = RoutedPacket { src, dst, from: Some(src), hop_limit: 9, id: 1, packet: &[] };
    assert!(matches!(router.route(&CX, &routed), RoutingVerdict::Forward { .. }));
}

/// A router that learnt this many ends from a neighbour.
fn filled(rules: RuleSet) -> Box<dyn Routing> {
    let mut router = routing(
        Settings { gratuitous: true, message_ratelimit: 0, ..Settings::of(rules) },
        RoutingSetup::new(vec![Interface { link: LinkId(0), address: OWN }], 1),
    );
    // No neighbour brings more than its share, and under the RFC's rules none may announce so much at once.
    for nth in 0..ROUTES {
        let IpAddr::V4(dst) = end(nth) else { continue };
        let rrep = AodvMessage::Rrep(Rrep {
            is_repair: false,
            wants_ack: false,
            prefix_size: 0,
            hop_count: 3,
            dst,
            dst_seq: 2,
            origin: OWN,
            lifetime_ms: 10_000,
        });
        let mut message = Vec::new();
        rrep.emit(&mut message);
        let neighbour = IpAddr::from([10, 0, 0, 2 + (nth % 3) as u8]);
        let control = ControlMessage {
            link: LinkId(0),
            from: Some(neighbour),
            cast: Cast::ToUs,
            src: neighbour,
            dst: OWN.into(),
            hop_limit: 255,
            message: &message,
        };
        router.handle_control(&CX, &control);
        while router.poll_order(CX.now).is_some() {}
    }
    router
}
