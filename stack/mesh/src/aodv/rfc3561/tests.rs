//! RFC 3561's rules, with routers in memory.

mod arrivals;
mod limits;
mod replies;

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::agent::PathEvent;
use hopwise_core::ip::Prefix;
use hopwise_core::trace::DropReason;
use hopwise_core::{Cast, Instant, NextHop, Seq};

use super::super::messages::{AodvMessage, Extension, HELLO_INTERVAL, Rerr, Rrep, Rreq, bytes_of};
use super::super::{Settings, Trust};
use super::*;
use crate::on_demand::testing::scenarios::{self, reasons, seconds};
use crate::on_demand::testing::{Ends, LINK, Net, address, setup};
use crate::routing::Purged;

pub(super) fn settings() -> Settings {
    Settings { jitter: Duration::ZERO, ..Settings::rfc3561() }
}

#[test]
fn a_way_over_five_nodes_is_found_in_rings_and_found_again_when_its_middle_leaves() {
    let mut net = scenarios::two_ways_around_the_middle(&settings());
    let rings: Vec<_> = net.lines("0 to all: RREQ 0>4").collect();
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
    assert_eq!(net.path_events.last(), Some(&(0, address(4).into(), PathEvent::RouteFailed)));
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
fn an_error_takes_queued_packets_for_its_destinations_along_where_that_is_asked_for() {
    for (rerr_discards, is_no_delete) in [(true, false), (true, true), (false, false)] {
        let mut alone = Alone::new(Settings { rerr_discards, ..settings() });
        for dst in [4, 5, 6] {
            alone.reply(1, dst, 1, 2);
        }
        let unreachable = [4, 6].map(|dst| (address(dst), 2)).to_vec();
        let orders = alone.hear_message(1, &AodvMessage::Rerr(Rerr { is_no_delete, unreachable }));
        let purged = orders.iter().filter_map(|order| match order {
            RoutingOrder::Purge { via, what: Purged::PassedOn(dst), .. } => Some((*via, *dst)),
            _ => None,
        });
        let expected = [4, 6].map(|dst| (address(1).into(), address(dst).into()));
        let expected = if rerr_discards && !is_no_delete { expected.to_vec() } else { Vec::new() };
        assert_eq!(purged.collect::<Vec<(IpAddr, IpAddr)>>(), expected);
    }
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
    let replies = one_way.lines("1 to 0: RREP").count();
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

#[test]
fn a_node_that_ended_in_order_answers_at_once_and_believes_no_old_number() {
    let mut net = Net::chain(3, &settings());
    net.send(0, 2);
    net.run_for(seconds(1));
    net.restart(1);
    net.log.clear();
    for _ in 0..2 {
        net.send(0, 2);
        net.run_for(seconds(1));
    }
    assert!(net.log.contains(" 1 to 0: RREP"), "{}", net.log);
    assert_eq!(net.delivered.len(), 2, "the packet on the old route is lost\n{}", net.log);

    let mut before = Alone::new(settings());
    before.reply(2, 9, 5, 3);
    before.reply(2, 8, 7, 3);
    before.router.lose(before.now, LINK, address(2));
    before.reply(3, 9, 6, 3);
    let numbers = before.router.numbers();
    assert!(numbers.contains(&(address(9), 7)) && numbers.contains(&(address(8), 8)), "{numbers:?}");
    let mut after = Alone::new(settings());
    assert!(!after.router.go_on_from(after.now, &[(address(9), 7)]), "its own number is not there");
    assert!(after.router.go_on_from(after.now, &numbers));
    after.reply(2, 9, 6, 1);
    assert_eq!(after.next(9), None, "a node that may route through here has that number");
    after.reply(2, 9, 7, 1);
    assert_eq!(after.next(9), Some(address(2)));
}

#[test]
fn a_request_after_an_orderly_end_is_not_taken_for_an_old_one() {
    let mut net = Net::chain(3, &settings());
    for to in [2, 1] {
        net.send(0, to);
        net.run_for(seconds(1));
    }
    net.restart(0);
    net.log.clear();
    net.send(0, 2);
    // The time of two rings. A third one would have a new id in any case.
    net.run_for(Duration::from_millis(500));
    assert_eq!(net.delivered.len(), 3, "{}", net.log);
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
        let trust = Trust { network: Some(network()), mtu: 1_500, keys: None };
        let setup = RoutingSetup { serves: vec![address(served)], trust, ..setup(address(own), 1) };
        Alone { router: Aodv::new(settings, setup), ends: Ends::default(), now: Instant::from_secs(1) }
    }

    pub(super) fn hear(&mut self, from: usize, cast: Cast, bytes: &[u8]) -> Vec<RoutingOrder> {
        let control = ControlMessage {
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

    pub(super) fn hear_message(&mut self, from: usize, message: &AodvMessage) -> Vec<RoutingOrder> {
        self.hear(from, Cast::ToUs, &bytes_of(message, &[]))
    }

    pub(super) fn orders(&mut self) -> Vec<RoutingOrder> {
        std::iter::from_fn(|| self.router.poll_order(self.now)).collect()
    }

    /// The node has sent a request for that destination a while ago.
    pub(super) fn ask(&mut self, dst: usize) {
        self.router.desk.note_asked(self.now, (address(0), address(dst)), true, seconds(9));
    }

    pub(super) fn reply(&mut self, from: usize, dst: usize, seq: u32, hop_count: u8) -> Vec<RoutingOrder> {
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
        self.hear_message(from, &AodvMessage::Rrep(rrep))
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
pub(super) fn messages(orders: &[RoutingOrder]) -> Vec<(NextHop, AodvMessage)> {
    let message = |order: &RoutingOrder| match order {
        RoutingOrder::Send { to, packet, .. } => Some((*to, AodvMessage::parse(&packet[28..]).ok()?.0)),
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
        let orders = alone.hear(2, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(request(id, 2, 0, asked)), &[]));
        let sent = messages(&orders);
        assert!(
            matches!(sent[..], [(_, AodvMessage::Rrep(Rrep { dst_seq, hop_count: 0, .. }))] if dst_seq == answered),
            "{sent:?}"
        );
    }
}

#[test]
fn a_node_answers_for_what_it_serves() {
    let mut alone = Alone::new(settings());
    let orders = alone.hear(2, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(request(1, 2, 20, None)), &[]));
    let sent = messages(&orders);
    assert!(
        matches!(sent[..], [(_, AodvMessage::Rrep(Rrep { dst, hop_count: 0, .. }))] if dst == address(20))
    );
}

#[test]
fn nobody_answers_for_a_route_that_leads_through_who_asks() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    let orders = alone.hear(2, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(request(1, 2, 9, None)), &[]));
    assert!(
        messages(&orders).iter().all(|(_, message)| matches!(message, AodvMessage::Rreq(_))),
        "{orders:?}"
    );
    let orders = alone.hear(3, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(request(1, 3, 9, Some(5))), &[]));
    assert!(matches!(messages(&orders)[..], [(_, AodvMessage::Rrep(Rrep { hop_count: 4, dst_seq: 5, .. }))]));
    let orders = alone.hear(3, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(request(2, 3, 9, Some(6))), &[]));
    assert!(matches!(messages(&orders)[..], [(NextHop::All, AodvMessage::Rreq(_))]), "too old to answer");
}

#[test]
fn an_error_goes_on_to_those_who_use_the_route_and_to_nobody_else() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    alone.reply(2, 8, 5, 3);
    alone.hear(3, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(request(1, 3, 9, Some(5))), &[]));
    let unreachable = vec![(address(9), 6), (address(8), 6), (address(7), 6)];
    let from_stranger = AodvMessage::Rerr(Rerr { is_no_delete: false, unreachable: unreachable.clone() });
    alone.hear_message(4, &from_stranger);
    assert_eq!(alone.next(9), Some(address(2)), "only the next hop is believed");
    let orders = alone.hear_message(2, &AodvMessage::Rerr(Rerr { is_no_delete: false, unreachable }));
    assert_eq!((alone.next(9), alone.next(8)), (None, None));
    let only = Rerr { is_no_delete: false, unreachable: vec![(address(9), 6)] };
    let expected = [(NextHop::Neighbour(address(3).into()), AodvMessage::Rerr(only))];
    assert_eq!(messages(&orders), expected);
    alone.reply(2, 9, 5, 1);
    assert_eq!(alone.next(9), None, "what was known before the error is too old now");
}

#[test]
fn a_route_that_was_mended_is_kept() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    alone.hear(3, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(request(1, 3, 9, Some(5))), &[]));
    let mended = Rerr { is_no_delete: true, unreachable: vec![(address(9), 5)] };
    let orders = alone.hear_message(2, &AodvMessage::Rerr(mended.clone()));
    assert_eq!(alone.next(9), Some(address(2)));
    assert_eq!(messages(&orders), [(NextHop::Neighbour(address(3).into()), AodvMessage::Rerr(mended))]);
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
    let heard: Vec<_> =
        net.path_events.iter().filter(|(node, ..)| *node == 0).map(|(_, _, event)| *event).collect();
    assert_eq!(heard.first(), Some(&PathEvent::RouteFound));
    assert_eq!(heard.last(), Some(&PathEvent::RouteFailed));
    assert!(
        !net.path_events.iter().any(|(node, ..)| *node == 1),
        "who only forwards has no connections: {:?}",
        net.path_events
    );
}

#[test]
fn no_loop_ever_forms_whatever_moves_breaks_and_starts_again() {
    for seed in 0_u64..60 {
        let (search_at_once, rerr_to_source) = (seed.is_multiple_of(4), seed.is_multiple_of(2));
        let local_repair = !seed.is_multiple_of(3);
        let protocol = Settings { local_repair, search_at_once, rerr_to_source, ..Settings::rfc3561() };
        scenarios::no_loop_forms(&protocol, seed);
    }
}
