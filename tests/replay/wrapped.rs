//! Any bytes, taken as events of a router whose packets have a header of its own: headers from neighbours, overheard
//! ones, packets, lost links, time. The router's actions are sound, its memory is bounded, and its timers end.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::wire::{IpHeader, IpView};
use hopwise_core::{Cast, Instant, LinkId, Rx, Seq};
use hopwise_mesh::aodv::Interface;
use hopwise_mesh::dsr::options::{DsrOption, OptionsHeader};
use hopwise_mesh::gpsr::{Planar, Point, Positions};
use hopwise_mesh::{Cx, RoutedPacket, Routing, RoutingOrder, RoutingSetup, RoutingVerdict, dsr, gpsr};

use crate::routers::data_of;

const LINK: LinkId = LinkId(0);

#[derive(Debug)]
struct Nobody;

impl PathSeam for Nobody {
    fn handle_path(&mut self, _: Instant, _: IpAddr, _: Option<(u16, u16)>, _: &PathEvent, _: &Path) {}

    fn ack_hints(&self, _: IpAddr, _: &mut dyn FnMut((u16, u16), Seq)) {}
}

/// Sixteen nodes on a grid.
#[derive(Debug)]
struct Grid;

impl Positions for Grid {
    fn locate(&mut self, _: Instant, node: Ipv4Addr) -> Option<Point> {
        let n = i32::from(node.octets()[3]);
        (n < 18).then_some(Point { x: n % 4 * 20_000, y: n / 4 * 20_000 })
    }
}

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

/// The router, and the number of its header.
fn router(byte: u8) -> (Box<dyn Routing>, u8) {
    let setup = RoutingSetup::new(vec![Interface { link: LINK, address: address(1) }], 1);
    if byte & 1 == 0 {
        let settings = dsr::Settings {
            nonprop_request: byte & 2 == 0,
            reply_from_cache: byte & 4 == 0,
            max_salvage_count: byte >> 4,
            cache_overheard: 8,
            ..dsr::Settings::default()
        };
        return (Box::new(dsr::Dsr::new(settings, setup)), dsr::PROTOCOL);
    }
    let settings = gpsr::Settings {
        planar: if byte & 2 == 0 { Planar::Gabriel } else { Planar::RelativeNeighbourhood },
        perimeter: byte & 4 == 0,
        most_neighbours: 32,
        ..gpsr::Settings::default()
    };
    let setup = RoutingSetup { positions: Box::new(Grid), ..setup };
    (Box::new(gpsr::Gpsr::new(settings, setup)), gpsr::PROTOCOL)
}

pub(crate) fn replay(bytes: &[u8]) {
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let (mut router, header) = router(*first);
    let mut now = Instant::from_millis(1);
    while let [what, who, len, behind @ ..] = rest {
        let (data, behind) = data_of(*len, behind);
        rest = behind;
        act(&mut *router, header, &mut now, (*what, *who), data);
        drain(&mut *router, now);
    }
    // Without input a router comes to rest, except for its periodic actions.
    for _ in 0..1_000 {
        let Some(at) = router.poll_timeout() else { return };
        assert!(at > now, "a timer that stays due");
        now = at;
        router.handle_timeout(&Cx { now, endpoint: &Nobody });
        drain(&mut *router, now);
    }
}

/// A packet between these two whose payload is the fuzzer's.
fn packet(protocol: u8, (src, dst): (Ipv4Addr, Ipv4Addr), hop_limit: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let ip = IpHeader { hop_limit, ..IpHeader::plain(src.into(), dst.into(), protocol) };
    ip.emit(payload.len(), &mut packet);
    packet.extend_from_slice(payload);
    packet
}

fn act(router: &mut dyn Routing, header: u8, now: &mut Instant, (what, who): (u8, u8), data: &[u8]) {
    let cx = Cx { now: *now, endpoint: &Nobody };
    let (from, kind) = (address(who % 8 + 2), what % 6);
    let dst = match what / 6 % 3 {
        0 => address(1),
        1 => address(who / 8 % 16 + 2),
        _ => Ipv4Addr::BROADCAST,
    };
    // Many packets come from the neighbour that sends them; some come from farther away.
    let src = if who & 0x80 == 0 { from } else { address(who / 8 % 8 + 2) };
    let routed = |packet: &[u8], src: Ipv4Addr, dst: Ipv4Addr| {
        let back = (src != address(1)).then(|| from.into());
        let routed =
            RoutedPacket { src: src.into(), dst: dst.into(), from: back, hop_limit: 20, id: 1, packet: &[] };
        (routed, packet.to_vec())
    };
    match kind {
        0 | 1 => {
            let cast = [Cast::ToUs, Cast::Overheard][usize::from(kind)];
            let packet = packet(header, (src, dst), what | 1, data);
            let rx = Rx { link: LINK, from: Some(from.into()), cast, segment_bytes: None, packet: &packet };
            if cast == Cast::Overheard {
                router.on_overheard(*now, &rx);
            } else if let Some(own) = router.handle_wrapped(&cx, &rx) {
                let view = IpView::parse(&own).expect("what is for us is a packet");
                assert_eq!(view.dst, IpAddr::V4(address(1)));
            }
        }
        2 => {
            let to = address(who % 16 + 2);
            let (routed, packet) = routed(&packet(6, (address(1), to), 64, data), address(1), to);
            let verdict = router.route(&cx, &RoutedPacket { packet: &packet, ..routed });
            check_verdict(&verdict);
        }
        3 => {
            let (routed, packet) = routed(&packet(header, (src, dst), 9, data), src, dst);
            check_verdict(&router.route(&cx, &RoutedPacket { packet: &packet, ..routed }));
        }
        4 => {
            let src = if who & 0x40 == 0 { src } else { address(1) };
            let (routed, packet) = routed(&packet(header, (src, dst), 9, data), src, dst);
            let _ =
                router.on_undelivered(&cx, (LINK, from.into()), &RoutedPacket { packet: &packet, ..routed });
        }
        _ => {
            let until = *now + Duration::from_millis(u64::from(who) * 40);
            while let Some(at) = router.poll_timeout().filter(|at| *at <= until) {
                assert!(at > *now, "a timer that stays due");
                *now = at;
                router.handle_timeout(&Cx { now: *now, endpoint: &Nobody });
                drain(router, *now);
            }
            *now = until;
            router.handle_timeout(&Cx { now: *now, endpoint: &Nobody });
        }
    }
}

fn drain(router: &mut dyn Routing, now: Instant) {
    for _ in 0..10_000 {
        match router.poll_order(now) {
            Some(RoutingOrder::Send { packet, .. }) => check(&packet),
            Some(_) => {}
            None => return,
        }
    }
    panic!("orders without end");
}

fn check_verdict(verdict: &RoutingVerdict) {
    if let RoutingVerdict::Wrapped { packet, .. } = verdict {
        check(packet);
    }
}

/// Checks that a sent packet has hops left and a readable header, and that no source route leads in a circle.
fn check(packet: &[u8]) {
    let view = IpView::parse(packet).expect("a packet of ours");
    assert!(view.hop_limit >= 1);
    match view.protocol {
        dsr::PROTOCOL => {
            let read = OptionsHeader::parse(view.payload).expect("a header of ours");
            for option in &read.header.options {
                let DsrOption::Route(route) = option else { continue };
                let mut nodes = route.addresses.clone();
                let count = nodes.len();
                nodes.sort_unstable();
                nodes.dedup();
                assert_eq!(nodes.len(), count, "a circle");
            }
        }
        gpsr::PROTOCOL => drop(gpsr::header::Header::parse(view.payload).expect("a header of ours")),
        other => panic!("a packet without our header: {other}"),
    }
}
