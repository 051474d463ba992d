use std::time::Duration;

use hopwise_core::Cast;
use hopwise_core::Seq;
use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::wire::{IpHeader, protocol, udp};

use super::*;
use crate::aodv::messages::{AodvMessage, Rrep, Rreq, bytes_of};
use crate::aodv::rfc3561::Aodv;
use crate::aodv::{PORT, Settings};
use crate::on_demand::testing::{LINK, address, setup};
use crate::protocol::RoutingSetup;
use crate::{RouteChange, Trust};

const TUN: LinkId = LinkId(1);
const SERVED: usize = 20;
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);

/// The news that the nodes got.
#[derive(Debug, Default)]
struct Seam(Vec<(IpAddr, PathEvent)>);

impl PathSeam for Seam {
    fn handle_path(&mut self, _: Instant, peer: IpAddr, _: Option<(u16, u16)>, event: &PathEvent, _: &Path) {
        self.0.push((peer, *event));
    }

    fn ack_hints(&self, _: IpAddr, _: &mut dyn FnMut((u16, u16), Seq)) {}
}

/// A router of node 0, with its owner.
struct Owner {
    router: Router<Seam>,
    now: Instant,
}

impl Owner {
    fn new() -> Owner {
        let network: Prefix = "10.0.0.0/24".parse().expect("a network");
        let serves = vec![address(SERVED)];
        let settings = Settings { jitter: Duration::ZERO, hello: false, ..Settings::rfc3561() };
        let trust = Trust { network: Some(network), mtu: 1_500, keys: None };
        let setup = RoutingSetup { serves: serves.clone(), trust, ..setup(address(0), 1) };
        let protocol = Aodv::new(settings, setup);
        let config = RouterConfig { address: address(0), serves, network, unrouted: TUN };
        let now = Instant::from_secs(1);
        let mut router = Router::new(config, Box::new(protocol), Seam::default());
        router.protocol().changes(now);
        Owner { router, now }
    }

    fn hear(&mut self, from: Ipv4Addr, port: u16, cast: Cast, message: &AodvMessage) {
        let to = if cast == Cast::ToAll { Ipv4Addr::BROADCAST } else { address(0) };
        let (bytes, mut packet) = (bytes_of(message, &[]), Vec::new());
        let header = IpHeader { hop_limit: 255, ..IpHeader::plain(from.into(), to.into(), protocol::UDP) };
        header.emit(8 + bytes.len(), &mut packet);
        udp::emit(header.src, header.dst, (port, PORT), &bytes, &mut packet);
        self.router.handle_packet(self.now, &Rx { cast, ..Rx::new(LINK, &packet) });
    }

    fn hear_reply(&mut self, from: usize, dst: usize, dst_seq: u32) {
        let rrep = Rrep {
            is_repair: false,
            wants_ack: false,
            prefix_size: 0,
            hop_count: 1,
            dst: address(dst),
            dst_seq,
            origin: address(0),
            lifetime_ms: 3_000,
        };
        self.hear(address(from), PORT, Cast::ToUs, &AodvMessage::Rrep(rrep));
    }

    fn send(&mut self, src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
        let mut packet = Vec::new();
        IpHeader::plain(src.into(), dst.into(), protocol::UDP).emit(4, &mut packet);
        packet.extend(b"data");
        self.router.handle_packet(self.now, &Rx::new(TUN, &packet));
        packet
    }

    fn forwards(&mut self) -> Vec<Forward> {
        std::iter::from_fn(|| self.router.poll_forward(self.now)).collect()
    }

    fn messages(&mut self) -> Vec<(NextHop, AodvMessage)> {
        let mut out = Vec::new();
        std::iter::from_fn(|| {
            out.clear();
            let transmit = self.router.poll_transmit(self.now, LINK, Payload::Inline, &mut out)?;
            assert_eq!(transmit.class, QueueClass::Routing);
            Some((transmit.to, AodvMessage::parse(&out[28..]).expect("a message").0))
        })
        .collect()
    }

    /// The destinations of requests that leave.
    fn requests(&mut self) -> Vec<Ipv4Addr> {
        assert_eq!(self.forwards(), []);
        let wanted = |(_, message)| match message {
            AodvMessage::Rreq(rreq) => Some(rreq.dst),
            _ => None,
        };
        self.messages().into_iter().filter_map(wanted).collect()
    }

    fn changes(&mut self) -> Vec<RouteChange> {
        self.router.protocol().changes(self.now)
    }

    /// A route to node 9 by node 2, and the packet that waited for it.
    fn with_route() -> (Owner, Forward) {
        let mut owner = Owner::new();
        let packet = owner.send(address(0), address(9));
        assert_eq!(owner.requests(), [address(9)]);
        owner.hear_reply(2, 9, 7);
        let forward = Forward { link: LINK, via: address(2), dst: address(9), has_waited: true, packet };
        assert_eq!(owner.forwards(), std::slice::from_ref(&forward));
        assert!(owner.changes().contains(&(address(9), Some((address(2), LINK, 2)))));
        (owner, forward)
    }
}

fn request(origin: usize, dst: usize) -> AodvMessage {
    AodvMessage::Rreq(Rreq {
        is_join: false,
        is_repair: false,
        is_gratuitous: false,
        is_destination_only: false,
        hop_count: 0,
        id: 1,
        dst: address(dst),
        dst_seq: None,
        origin: address(origin),
        origin_seq: 1,
    })
}

const REFUSED: &str = DropReason::RoutingRefused.name();

#[test]
fn a_message_leaves_no_sooner_than_the_owner_can_give_the_kernel_the_routes_that_it_tells_of() {
    let mut owner = Owner::new();
    owner.hear(address(2), PORT, Cast::ToAll, &request(2, 0));
    assert_eq!(owner.messages(), []);
    assert_eq!(owner.forwards(), []);
    assert_eq!(owner.changes(), [(address(2), Some((address(2), LINK, 1)))]);
    let answers = owner.messages();
    assert!(matches!(&answers[..], [(NextHop::Neighbour(to), AodvMessage::Rrep(_))] if *to == address(2)));
}

#[test]
fn messages_of_programs_and_of_other_networks_are_refused_and_our_own_ones_ignored() {
    for (from, port, news) in [
        (address(2), PORT, vec![]),
        (address(0), PORT, vec![]),
        (address(2), 40_000, vec![(REFUSED, 1)]),
        (OUTSIDE, PORT, vec![(REFUSED, 1)]),
    ] {
        let mut owner = Owner::new();
        owner.hear(from, port, Cast::ToAll, &request(2, 0));
        assert_eq!(owner.forwards(), []);
        assert_eq!(owner.router.drops().news(), news, "{from}:{port}");
        assert_eq!(owner.messages().len(), usize::from(from == address(2) && port == PORT));
    }
}

#[test]
fn a_packet_waits_for_its_route_and_later_ones_do_not() {
    let (mut owner, waited) = Owner::with_route();
    let packet = owner.send(address(0), address(9));
    assert_eq!(owner.forwards(), [Forward { has_waited: false, packet, ..waited }]);
    assert_eq!(owner.router.seam().0, [(address(9).into(), PathEvent::RouteFound)]);
}

#[test]
fn routes_are_searched_for_packets_of_this_machine_to_the_network() {
    for (src, dst, searched) in [
        (address(0), address(9), vec![address(9)]),
        (address(SERVED), address(9), vec![address(9)]),
        (address(3), address(9), vec![]),
        (address(0), OUTSIDE, vec![]),
    ] {
        let mut owner = Owner::new();
        owner.send(src, dst);
        assert_eq!(owner.requests(), searched, "{src} > {dst}");
    }
}

#[test]
fn a_packet_that_routing_refuses_at_once_is_a_counted_drop() {
    let (mut owner, waited) = Owner::with_route();
    owner.send(address(3), address(8));
    owner.send(address(3), address(8));
    assert_eq!(owner.forwards(), [], "another machine should have searched");
    assert_eq!(owner.router.drops().news(), [(DropReason::NoRoute.name(), 2)]);
    owner.send(address(0), waited.dst);
    owner.send(address(0), address(7));
    owner.send(address(0), OUTSIDE);
    assert_eq!(owner.forwards().len(), 1);
    assert_eq!(owner.router.drops().news(), [], "it was forwarded, kept, or is for another network");
}

#[test]
fn a_packet_whose_next_hop_is_lost_waits_once_more_and_no_third_time() {
    let (mut owner, _) = Owner::with_route();
    owner.send(address(0), address(9));
    let forward = owner.forwards().remove(0);
    owner.router.lose(owner.now, &forward);
    assert!(owner.changes().contains(&(address(9), None)));
    assert_eq!(owner.requests(), [address(9)]);
    assert_eq!(owner.router.drops().news(), []);
    owner.hear_reply(3, 9, 9);
    let again = owner.forwards().remove(0);
    assert_eq!((again.via, again.has_waited), (address(3), true));
    owner.router.lose(owner.now, &again);
    assert!(owner.requests().is_empty());
    assert_eq!(owner.router.drops().news(), [(DropReason::Undelivered.name(), 1)]);
    assert!(owner.changes().contains(&(address(9), None)));
}

#[test]
fn a_neighbour_that_the_link_layer_has_lost_is_no_next_hop() {
    let (mut owner, _) = Owner::with_route();
    let gone = LinkEvent::Gone { peer: address(2).into() };
    owner.router.handle_link_event(owner.now, LINK, &gone);
    assert_eq!(owner.forwards(), []);
    assert!(owner.changes().contains(&(address(9), None)));
}

#[test]
fn a_reason_is_said_again_when_there_are_more_and_with_the_sum() {
    let mut drops = Drops::default();
    assert_eq!(drops.news(), []);
    let (refused, malformed) = (DropReason::RoutingRefused, DropReason::RoutingMalformed);
    [refused, malformed, refused].into_iter().for_each(|reason| drops.count(reason));
    assert_eq!(drops.news(), [(malformed.name(), 1), (refused.name(), 2)]);
    assert_eq!(drops.news(), []);
    drops.count(refused);
    assert_eq!(drops.news(), [(refused.name(), 3)]);
}
