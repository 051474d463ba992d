//! RFC 3561's rules, with routers in memory.

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::agent::PathEvent;
use hopwise_core::ip::Prefix;
use hopwise_core::trace::DropReason;
use hopwise_core::{Cast, Instant, NextHop, Seq};

use super::super::messages::{Extension, HELLO_INTERVAL, Message, Rerr, Rrep, Rreq, bytes_of};
use super::super::{Config, Interface, Settings, Trust};
use super::*;
use crate::on_demand::testing::scenarios::{self, reasons, seconds};
use crate::on_demand::testing::{Ends, LINK, Net, address};

pub(super) fn settings() -> Settings {
    Settings { jitter: Duration::ZERO, ..Settings::rfc3561() }
}

#[test]
fn a_way_over_five_nodes_is_found_in_rings_and_found_again_when_its_middle_leaves() {
    let mut net = scenarios::two_ways_around_the_middle(&settings());
    let rings: Vec<_> = net.log.lines().filter(|line| line.contains("0 to all: RREQ 0>4")).collect();
    let ttls: Vec<_> = rings.iter().filter_map(|line| line.rsplit(' ').next()).collect();
    assert_eq!(ttls, ["1", "3", "5"], "{}", net.log);
    scenarios::another_way_is_found(&mut net);
}

/// The messages in a chain of five whose middle node leaves.
#[test]
fn a_chain_whose_middle_leaves_tells_its_source() {
    let mut net = Net::chain(5, &settings());
    net.send(0, 4);
    net.run_for(seconds(2));
    net.log.clear();
    net.isolate(2);
    net.send(0, 4);
    net.run_for(Duration::from_millis(800));
    // The request finds no node within its ring; then the source gets an error.
    let expected = "  2011 1 to 0: RERR 2 0
  2011 1 to all: RREQ 1>4 seq Some(1) hops 0 ttl 5
  2013 0 to all: RREQ 1>4 seq Some(1) hops 1 ttl 4
  2571 1 to 0: RERR 4 1
";
    assert_eq!(net.log, expected);
    assert_eq!(net.told.last(), Some(&(0, address(4).into(), PathEvent::RouteFailed)));
}

#[test]
fn a_search_that_finds_nobody_ends_after_its_retries_and_drops_what_waited() {
    let mut net = Net::chain(2, &settings());
    net.send(0, 9);
    net.run_for(seconds(60));
    let ttls: Vec<_> = net
        .log
        .lines()
        .filter(|line| line.contains(" 0 to all: RREQ"))
        .map(|line| (line[..6].trim().parse::<u64>().expect("ms"), line.rsplit(' ').next().expect("ttl")))
        .collect();
    // Rings of 2 × 40 ms × (TTL + 2), then 2.8 s, twice and four times as long.
    let expected =
        [(0, "1"), (240, "3"), (640, "5"), (1_200, "7"), (1_920, "35"), (4_720, "35"), (10_320, "35")];
    assert_eq!(ttls, expected);
}

#[test]
fn a_node_on_the_way_answers_from_its_table_and_tells_the_destination_when_it_is_asked_to() {
    let mut net = Net::chain(4, &Settings { gratuitous: true, ..settings() });
    net.send(1, 3);
    net.run_for(seconds(1));
    net.log.clear();
    net.ends[0].0.push((address(3).into(), (5_001, 40_000), Seq(7)));
    net.send(0, 3);
    net.run_for(seconds(1));
    assert!(net.log.contains("1 to 0: RREP 0>3 seq 0 hops 2"), "{}", net.log);
    assert!(net.log.contains("1 to 2: RREP 3>0 seq 1 hops 1"), "{}", net.log);
    assert!(!net.log.contains("3 to 2: RREP"), "{}", net.log);
    assert_eq!(net.delivered.last(), Some(&(0, 3)));
}

#[test]
fn only_the_destination_answers_when_only_it_may() {
    let mut net = Net::chain(4, &Settings { destination_only: true, ..settings() });
    net.send(1, 3);
    net.run_for(seconds(1));
    net.log.clear();
    net.send(0, 3);
    net.run_for(seconds(1));
    assert!(net.log.contains("3 to 2: RREP 0>3"), "{}", net.log);
}

#[test]
fn a_link_that_works_one_way_is_found_by_the_reply_that_does_not_arrive() {
    // 0 receives from 1, but 1 does not receive 0's acknowledgements: 0 to 1 works, 1 to 0 does not. The other route is
    // 0 - 2 - 1.
    let mut net = Net::new(4, &settings(), 1);
    net.connect_one_way(0, 1);
    net.connect(0, 2);
    net.connect(2, 1);
    net.connect(1, 3);
    for _ in 0..20 {
        net.send(0, 3);
        net.run_for(Duration::from_millis(500));
    }
    assert!(net.delivered.len() >= 15, "{} of 20\n{}", net.delivered.len(), net.log);
}

#[test]
fn a_reply_that_is_not_acknowledged_blacklists_whoever_should_have() {
    let mut net = Net::chain(2, &Settings { rrep_ack: true, ..settings() });
    net.tells = false;
    net.send(0, 1);
    net.run_for(Duration::from_millis(100));
    assert!(net.log.contains("0 to 1: RREP-ACK"), "{}", net.log);
    let mut one_way = Net::new(2, &Settings { rrep_ack: true, ..settings() }, 1);
    one_way.tells = false;
    one_way.connect_one_way(0, 1);
    one_way.send(0, 1);
    one_way.run_for(seconds(5));
    let replies = one_way.log.lines().filter(|line| line.contains("1 to 0: RREP")).count();
    assert_eq!(replies, 1, "blacklisted for 5.6 s\n{}", one_way.log);
}

#[test]
fn a_partition_heals_and_nothing_counts_to_infinity() {
    scenarios::a_partition_heals(&settings());
}

#[test]
fn hellos_tell_that_a_neighbour_is_gone_where_no_link_layer_does() {
    let protocol = Settings { hello: true, ..settings() };
    let log = scenarios::silence_is_noticed(&protocol, "1 to 0: RERR 2");
    assert!(log.contains("1 to all: RREP 1>1"), "{log}");
}

#[test]
fn a_next_hop_that_falls_silent_before_its_first_hello_is_missed_too() {
    let mut net = Net::chain(3, &Settings { hello: true, ..settings() });
    net.tells = false;
    net.send(0, 2);
    net.run_for(Duration::from_millis(300));
    assert!(!net.log.contains("2 to all: RREP"), "{}", net.log);
    net.isolate(2);
    net.log.clear();
    for _ in 0..35 {
        net.send(0, 2);
        net.run_for(Duration::from_millis(100));
    }
    assert!(net.log.contains("1 to 0: RERR 2"), "{}", net.log);
}

#[test]
fn a_node_that_starts_again_answers_nobody_until_its_old_routes_are_forgotten() {
    let mut net = Net::chain(3, &settings());
    net.send(0, 2);
    net.run_for(seconds(1));
    net.reboot(1);
    net.log.clear();
    let rebooted = net.now;
    net.send(0, 2);
    net.run_for(seconds(14));
    assert!(!net.log.contains(" 1 to all: RREQ") && !net.log.contains(" 1 to 0: RREP"), "{}", net.log);
    assert!(net.log.contains(" 1 to all: RERR 2 0"), "it says that it has no route\n{}", net.log);
    net.run(rebooted + seconds(31), &mut |_| {});
    net.send(0, 2);
    net.run_for(seconds(2));
    assert_eq!(net.delivered.len(), 2, "{}", net.log);
}

fn network() -> Prefix {
    "10.0.0.0/15".parse().expect("a network")
}

/// A single router, with its input and its orders.
pub(super) struct Alone {
    pub(super) router: Aodv,
    ends: Ends,
    pub(super) now: Instant,
}

impl Alone {
    pub(super) fn new(settings: Settings) -> Alone {
        Alone::at((0, 20), settings)
    }

    fn at((own, served): (usize, usize), settings: Settings) -> Alone {
        let interfaces = vec![Interface { link: LINK, address: address(own) }];
        let serves = vec![address(served)];
        let (wakes_at, trust) = (Instant::ZERO, Trust { network: Some(network()), mtu: 1_500, keys: None });
        let config = Config { settings, interfaces, serves, seed: 1, counter: 0, wakes_at, trust };
        Alone { router: Aodv::new(config), ends: Ends::default(), now: Instant::from_secs(1) }
    }

    pub(super) fn hear(&mut self, from: usize, cast: Cast, bytes: &[u8]) -> Vec<Order> {
        let control = Control {
            link: LINK,
            from: Some(address(from).into()),
            cast,
            src: address(from).into(),
            dst: address(0).into(),
            hop_limit: if cast == Cast::ToAll { 9 } else { 255 },
            message: bytes,
        };
        self.router.handle_control(&Cx { now: self.now, endpoint: &self.ends }, &control);
        self.orders()
    }

    pub(super) fn hear_message(&mut self, from: usize, message: &Message) -> Vec<Order> {
        self.hear(from, Cast::ToUs, &bytes_of(message, &[]))
    }

    pub(super) fn orders(&mut self) -> Vec<Order> {
        std::iter::from_fn(|| self.router.poll_order(self.now)).collect()
    }

    /// The node has sent a request for that destination a while ago.
    pub(super) fn ask(&mut self, dst: usize) {
        self.router.desk.note_asked(self.now, (address(0), address(dst)), true, seconds(9));
    }

    pub(super) fn reply(&mut self, from: usize, dst: usize, seq: u32, hop_count: u8) -> Vec<Order> {
        self.ask(dst);
        let rrep = Rrep {
            is_repair: false,
            wants_ack: false,
            prefix_size: 0,
            hop_count,
            dst: address(dst),
            dst_seq: seq,
            origin: address(0),
            lifetime_ms: 3_000,
        };
        self.hear_message(from, &Message::Rrep(rrep))
    }

    pub(super) fn next(&self, dst: usize) -> Option<Ipv4Addr> {
        self.router.next_hop(self.now, address(dst).into()).and_then(|(_, via)| v4(via))
    }
}

pub(super) fn request(id: u32, origin: usize, dst: usize, dst_seq: Option<u32>) -> Rreq {
    Rreq {
        is_join: false,
        is_repair: false,
        is_gratuitous: false,
        is_destination_only: false,
        hop_count: 0,
        id,
        dst: address(dst),
        dst_seq,
        origin: address(origin),
        origin_seq: id,
    }
}

/// The messages among a router's orders, with their receivers.
pub(super) fn messages(orders: &[Order]) -> Vec<(NextHop, Message)> {
    let message = |order: &Order| match order {
        Order::Send { to, packet, .. } => Some((*to, Message::parse(&packet[28..]).ok()?.0)),
        _ => None,
    };
    orders.iter().filter_map(message).collect()
}

#[test]
fn numbers_go_on_across_the_wrap() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, u32::MAX, 3);
    alone.reply(3, 9, 0, 5);
    assert_eq!(alone.next(9), Some(address(3)), "0 is newer than the highest");
    alone.reply(2, 9, u32::MAX, 1);
    assert_eq!(alone.next(9), Some(address(3)));
}

#[test]
fn the_destination_answers_with_a_number_no_older_than_the_one_asked_for() {
    let mut alone = Alone::new(settings());
    for (id, asked, answered) in [(1, None, 0), (2, Some(7), 7), (3, Some(3), 7), (4, Some(0x8000_0010), 7)] {
        let orders = alone.hear(2, Cast::ToAll, &bytes_of(&Message::Rreq(request(id, 2, 0, asked)), &[]));
        let sent = messages(&orders);
        assert!(
            matches!(sent[..], [(_, Message::Rrep(Rrep { dst_seq, hop_count: 0, .. }))] if dst_seq == answered),
            "{sent:?}"
        );
    }
}

#[test]
fn a_node_answers_for_what_it_serves() {
    let mut alone = Alone::new(settings());
    let orders = alone.hear(2, Cast::ToAll, &bytes_of(&Message::Rreq(request(1, 2, 20, None)), &[]));
    let sent = messages(&orders);
    assert!(matches!(sent[..], [(_, Message::Rrep(Rrep { dst, hop_count: 0, .. }))] if dst == address(20)));
}

#[test]
fn nobody_answers_for_a_route_that_leads_through_who_asks() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    let orders = alone.hear(2, Cast::ToAll, &bytes_of(&Message::Rreq(request(1, 2, 9, None)), &[]));
    assert!(messages(&orders).iter().all(|(_, message)| matches!(message, Message::Rreq(_))), "{orders:?}");
    let orders = alone.hear(3, Cast::ToAll, &bytes_of(&Message::Rreq(request(1, 3, 9, Some(5))), &[]));
    assert!(matches!(messages(&orders)[..], [(_, Message::Rrep(Rrep { hop_count: 4, dst_seq: 5, .. }))]));
    let orders = alone.hear(3, Cast::ToAll, &bytes_of(&Message::Rreq(request(2, 3, 9, Some(6))), &[]));
    assert!(matches!(messages(&orders)[..], [(NextHop::All, Message::Rreq(_))]), "too old to answer");
}

#[test]
fn an_error_goes_on_to_those_who_use_the_route_and_to_nobody_else() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    alone.reply(2, 8, 5, 3);
    alone.hear(3, Cast::ToAll, &bytes_of(&Message::Rreq(request(1, 3, 9, Some(5))), &[]));
    let unreachable = vec![(address(9), 6), (address(8), 6), (address(7), 6)];
    let from_stranger = Message::Rerr(Rerr { is_no_delete: false, unreachable: unreachable.clone() });
    alone.hear_message(4, &from_stranger);
    assert_eq!(alone.next(9), Some(address(2)), "only the next hop is believed");
    let orders = alone.hear_message(2, &Message::Rerr(Rerr { is_no_delete: false, unreachable }));
    assert_eq!((alone.next(9), alone.next(8)), (None, None));
    let only = Rerr { is_no_delete: false, unreachable: vec![(address(9), 6)] };
    let expected = [(NextHop::Neighbour(address(3).into()), Message::Rerr(only))];
    assert_eq!(messages(&orders), expected);
    alone.reply(2, 9, 5, 1);
    assert_eq!(alone.next(9), None, "what was known before the error is too old now");
}

#[test]
fn a_route_that_was_mended_is_kept() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    alone.hear(3, Cast::ToAll, &bytes_of(&Message::Rreq(request(1, 3, 9, Some(5))), &[]));
    let mended = Rerr { is_no_delete: true, unreachable: vec![(address(9), 5)] };
    let orders = alone.hear_message(2, &Message::Rerr(mended.clone()));
    assert_eq!(alone.next(9), Some(address(2)));
    assert_eq!(messages(&orders), [(NextHop::Neighbour(address(3).into()), Message::Rerr(mended))]);
}

#[test]
fn what_comes_from_off_the_link_or_from_no_host_is_refused() {
    let mut alone = Alone::new(settings());
    let bytes = bytes_of(&Message::Rreq(request(1, 2, 9, None)), &[]);
    let mut refused = |from: [u8; 4], by: [u8; 4], bytes: &[u8]| {
        let control = Control {
            link: LINK,
            from: Some(by.into()),
            cast: Cast::ToAll,
            src: from.into(),
            dst: Ipv4Addr::BROADCAST.into(),
            hop_limit: 9,
            message: bytes,
        };
        alone.router.handle_control(&Cx { now: alone.now, endpoint: &Ends::default() }, &control);
        reasons(&alone.orders())
    };
    assert_eq!(refused([10, 9, 9, 9], [10, 0, 0, 3], &bytes), [DropReason::RoutingRefused]);
    assert_eq!(refused([224, 0, 0, 1], [224, 0, 0, 1], &bytes), [DropReason::RoutingRefused]);
    assert_eq!(refused([10, 0, 0, 1], [10, 0, 0, 1], &bytes), [DropReason::RoutingRefused], "our own");
    assert_eq!(refused([10, 0, 0, 3], [10, 0, 0, 3], &[1, 2, 3]), [DropReason::RoutingMalformed]);
    let far = Message::Rreq(Rreq { hop_count: 255, ..request(1, 2, 9, None) });
    assert_eq!(refused([10, 0, 0, 3], [10, 0, 0, 3], &bytes_of(&far, &[])), [DropReason::RoutingMalformed]);
}

#[test]
fn a_flood_of_requests_is_passed_on_at_a_bounded_rate_and_fills_no_memory() {
    let mut alone = Alone::new(Settings { most_routes: 100, ..settings() });
    let mut passed = 0;
    for id in 0..5_000 {
        let orders = alone.hear(2, Cast::ToAll, &bytes_of(&Message::Rreq(request(id, 2, 9, None)), &[]));
        passed += messages(&orders).len();
    }
    assert_eq!(passed, 20);
    for origin in 0..5_000 {
        let rreq = Rreq { origin: Ipv4Addr::from_bits(0x0a01_0000 + origin), ..request(1, 2, 9, None) };
        alone.hear(2, Cast::ToAll, &bytes_of(&Message::Rreq(rreq), &[]));
    }
    assert!(alone.router.routes(alone.now).len() <= 100);
}

#[test]
fn requests_and_errors_of_our_own_are_rate_limited() {
    let mut net = Net::new(1, &settings(), 1);
    (10..60).for_each(|dst| net.send(0, dst));
    net.run(Instant::from_millis(900), &mut |_| {});
    assert_eq!(net.log.lines().filter(|line| line.contains("RREQ")).count(), 10);
    net.run(Instant::from_millis(1_900), &mut |_| {});
    assert_eq!(net.log.lines().filter(|line| line.contains("RREQ")).count(), 20);
}

#[test]
fn a_hello_says_how_often_it_comes() {
    let mut alone = Alone::new(Settings { hello: true, ..settings() });
    let hello = Rrep {
        is_repair: false,
        wants_ack: false,
        prefix_size: 0,
        hop_count: 0,
        dst: address(2),
        dst_seq: 4,
        origin: address(2),
        lifetime_ms: 2_000,
    };
    let mut extension = Vec::new();
    Extension { kind: HELLO_INTERVAL, data: &100_u32.to_be_bytes() }.emit(&mut extension);
    alone.hear(2, Cast::ToAll, &bytes_of(&Message::Rrep(hello), &extension));
    assert_eq!(alone.router.links.next(&settings()), Some(alone.now + Duration::from_millis(200)));
    let foreign = Rrep { dst: address(5), ..hello };
    let orders = alone.hear(2, Cast::ToAll, &bytes_of(&Message::Rrep(foreign), &[]));
    assert_eq!(reasons(&orders), [DropReason::RoutingRefused], "nobody says hello for another");
}

#[test]
fn connections_hear_when_their_route_comes_gets_longer_and_goes() {
    let mut net = Net::new(4, &settings(), 1);
    (1..3).for_each(|node| net.connect(node - 1, node));
    net.send(0, 2);
    net.run_for(seconds(1));
    net.cut(1, 2);
    net.connect(1, 3);
    net.connect(3, 2);
    for _ in 0..30 {
        net.send(0, 2);
        net.run_for(Duration::from_millis(100));
    }
    net.isolate(0);
    net.send(0, 2);
    net.run_for(seconds(1));
    let heard: Vec<_> = net.told.iter().filter(|(node, ..)| *node == 0).map(|(_, _, event)| *event).collect();
    assert_eq!(heard.first(), Some(&PathEvent::RouteFound));
    assert_eq!(heard.last(), Some(&PathEvent::RouteFailed));
    assert!(
        !net.told.iter().any(|(node, ..)| *node == 1),
        "who only forwards has no connections: {:?}",
        net.told
    );
}

#[test]
fn what_has_arrived_travels_with_the_request_and_with_the_reply() {
    for key in [None, Some(super::super::Key::new([3; 32]))] {
        let mut net = Net::chain(3, &Settings { ack_seq: true, key, ..settings() });
        net.ends[2].0.push((address(0).into(), (40_000, 5_001), Seq(77)));
        net.send(0, 2);
        net.run_for(seconds(1));
        let of_ack = |(node, peer, event): &(usize, IpAddr, PathEvent)| {
            matches!(event, PathEvent::AckSeq(_)).then_some((*node, *peer, *event))
        };
        let expected = (0, IpAddr::V4(address(2)), PathEvent::AckSeq(Seq(77)));
        assert_eq!(net.told.iter().filter_map(of_ack).collect::<Vec<_>>(), [expected]);
    }
}

/// A peer, the ports (the peer's, ours) and the number that has arrived there.
type Arrival = (IpAddr, Option<(u16, u16)>, Seq);

/// The arrivals among the orders.
fn arrivals(orders: &[Order]) -> Vec<Arrival> {
    let arrival = |order: &Order| match order {
        Order::Tell { peer, ports, event: PathEvent::AckSeq(seq), .. } => Some((*peer, *ports, *seq)),
        _ => None,
    };
    orders.iter().filter_map(arrival).collect()
}

/// The first message among a router's orders, as bytes.
fn bytes(orders: &[Order]) -> &[u8] {
    let sent = orders.iter().find_map(|order| match order {
        Order::Send { packet, .. } => Some(&packet[28..]),
        _ => None,
    });
    sent.expect("something is said")
}

/// Two neighbours, with connections behind the addresses that they serve.
#[test]
fn what_has_arrived_at_an_address_that_is_served_travels_in_its_name() {
    let with_key = |key: u8| {
        let key = Some(super::super::Key::new([key; 32]));
        Settings { ack_seq: true, key, ..settings() }
    };
    for (key, is_believed) in [(3, true), (4, false)] {
        let mut near = Alone::at((0, 20), with_key(3));
        let mut far = Alone::at((1, 21), with_key(key));
        near.ends.0.push((address(21).into(), (5_001, 40_000), Seq(99)));
        far.ends.0.push((address(20).into(), (40_000, 5_001), Seq(77)));
        let (src, dst) = (IpAddr::V4(address(20)), IpAddr::V4(address(21)));
        let packet = Routed { src, dst, from: None, hop_limit: 64, id: 1, packet: &[] };
        near.router.route(&Cx { now: near.now, endpoint: &near.ends }, &packet);
        let asked = near.orders();
        let answered = far.hear(0, Cast::ToAll, bytes(&asked));
        let heard = near.hear(1, Cast::ToUs, bytes(&answered));
        let told = |peer, ports, seq| if is_believed { vec![(peer, Some(ports), Seq(seq))] } else { vec![] };
        assert_eq!(arrivals(&answered), told(src, (40_000, 5_001), 99));
        assert_eq!(arrivals(&heard), told(dst, (5_001, 40_000), 77));
        for orders in [answered, heard] {
            assert_eq!(reasons(&orders).contains(&DropReason::RoutingRefused), !is_believed);
        }
    }
}

#[test]
fn no_loop_ever_forms_whatever_moves_breaks_and_starts_again() {
    for seed in 0_u64..60 {
        let protocol = Settings { local_repair: !seed.is_multiple_of(3), ..Settings::rfc3561() };
        scenarios::no_loop_forms(&protocol, seed);
    }
}
