//! Messages of strangers: none ends a router, leads out of the network, or is answered without limit.

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::NextHop;
use hopwise_core::trace::DropReason;

use super::messages::{ADDRESS_TYPE, HOP_COUNT, PATH_METRIC, Rerr, RouteMessage, SEQ_NUM, rrep_ack};
use super::tests::{Alone, messages_of, settings, way};
use super::{Cx, HOP_LIMIT, Routing};
use crate::on_demand::testing::scenarios::{self, reasons, seconds};
use crate::on_demand::testing::{Ends, LINK, address};
use crate::on_demand::{OnDemand, Trust};
use crate::rfc5444::{Packet, Rfc5444Message, Tlv};

const OUTSIDE: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);

/// A request with that many metric TLVs without a value.
fn swollen(tlvs: usize) -> Vec<u8> {
    let mut of_addresses = vec![ADDRESS_TYPE, 0x14, 2, 0, 1, PATH_METRIC, 0xd0, HOP_COUNT, 0, 1, 0];
    of_addresses.extend([SEQ_NUM, 0x50, 0, 2, 0, 5]);
    of_addresses.extend([PATH_METRIC, 0x80, HOP_COUNT].repeat(tlvs));
    let mut body = vec![20, 0, 0, 2, 0];
    body.extend([10, 0, 0, 77, 10, 0, 0, 99]);
    body.extend((of_addresses.len() as u16).to_be_bytes());
    body.extend(of_addresses);
    let mut packet = vec![0, 10, 0x43];
    packet.extend((body.len() as u16 + 4).to_be_bytes());
    packet.extend(body);
    packet
}

#[test]
fn a_request_as_long_as_a_datagram_is_refused_and_ends_nobody() {
    let mut alone = Alone::new(settings());
    let packet = swollen(21_800);
    assert_eq!(packet.len(), 65_437);
    let orders = alone.hear(address(66), address(66), HOP_LIMIT, &packet);
    assert_eq!(reasons(&orders), [DropReason::RoutingRefused]);
    // On an interface with room for that much, it goes on without one byte more.
    alone.router.desk.trust = Trust::default();
    let orders = alone.hear(address(66), address(66), HOP_LIMIT, &packet);
    let sent = messages_of(&orders);
    let [(NextHop::All, passed)] = &sent[..] else { panic!("{orders:?}") };
    let bytes = Packet::of(passed.clone()).bytes().expect("it goes on");
    assert!(bytes.len() <= packet.len(), "{} bytes", bytes.len());
}

#[test]
fn a_message_to_which_something_is_added_is_held_against_the_interface() {
    let mut alone = Alone::new(settings());
    alone.router.desk.trust = Trust::default();
    let mut rreq = way(2, 9, 5, 1).rreq();
    alone.hear_message(2, rreq.clone());
    rreq = way(9, 2, 5, 1).rrep();
    // A reply that fits as it came, but not with a request for an acknowledgement behind it.
    let value = vec![0; 65_507 - 70];
    rreq.tlvs.push(Tlv { kind: 99, extension: 0, value });
    let orders = alone.hear_message(3, rreq);
    assert_eq!(reasons(&orders), []);
    assert_eq!(messages_of(&orders).len(), 2);
    alone.router.desk.trust.mtu = 65_500;
    let mut again = way(9, 2, 6, 1).rrep();
    again.tlvs.push(Tlv { kind: 99, extension: 0, value: vec![0; 65_472 - 46] });
    let orders = alone.hear_message(3, again);
    assert_eq!(reasons(&orders), [DropReason::RoutingRefused]);
}

#[test]
fn nothing_outside_of_the_network_is_learned_answered_or_passed_on() {
    let mut alone = Alone::new(settings());
    let to_there = |to, other| RouteMessage { to, other, ..way(9, 0, 7, 1) };
    let rerr = Rerr { hop_limit: 9, pkt_source: Some(OUTSIDE), unreachable: vec![(address(9), None)] };
    for (what, message) in [
        ("a request of a stranger", to_there(OUTSIDE, address(0)).rreq()),
        ("a request for a stranger", to_there(address(9), OUTSIDE).rreq()),
        ("a reply of a stranger", to_there(OUTSIDE, address(0)).rrep()),
        ("a reply to a stranger", to_there(address(9), OUTSIDE).rrep()),
        ("an error for a stranger", rerr.message()),
    ] {
        let orders = alone.hear_message(2, message);
        assert_eq!(
            (messages_of(&orders).len(), reasons(&orders)),
            (0, vec![DropReason::RoutingRefused]),
            "{what}"
        );
        assert!(alone.router.table.get(OUTSIDE).is_none(), "{what}");
    }
    let orders = alone.hear(OUTSIDE, OUTSIDE, HOP_LIMIT, &[0]);
    assert_eq!(reasons(&orders), [DropReason::RoutingRefused], "a neighbour outside");
    assert!(alone.router.routes(alone.now).is_empty());
}

#[test]
fn a_neighbour_that_was_asked_nothing_confirms_nothing() {
    let mut alone = Alone::new(settings());
    alone.hear_message(66, rrep_ack(false));
    alone.hear_message(66, way(9, 0, 7, 1).rrep());
    alone.hear_message(66, way(8, 7, 7, 1).rreq());
    assert!(alone.router.routes(alone.now).is_empty(), "{:?}", alone.router.routes(alone.now));
    alone.hear_message(66, rrep_ack(false));
    assert!(alone.router.routes(alone.now).is_empty());
    // A reply to a request that it passed on is taken.
    alone.hear_message(66, way(7, 8, 7, 1).rrep());
    assert_eq!(alone.router.routes(alone.now).len(), 2);
}

#[test]
fn a_packet_full_of_requests_for_an_acknowledgement_gets_one() {
    let mut alone = Alone::new(settings());
    let messages: Vec<Rfc5444Message> = std::iter::repeat_n(rrep_ack(true), 150).collect();
    let packet = Packet { messages, ..Packet::default() }.bytes().expect("short enough");
    let orders = alone.hear(address(2), address(2), HOP_LIMIT, &packet);
    assert_eq!(messages_of(&orders), [(NextHop::Neighbour(address(2).into()), rrep_ack(false))]);
}

#[test]
fn signed_messages_are_heard_once_and_others_are_not() {
    let unsigned = Packet::of(rrep_ack(true)).bytes().expect("short enough");
    scenarios::signed_messages_are_heard_once(&super::Settings { signed: true, ..settings() }, &unsigned);
}

#[test]
fn a_neighbour_that_speaks_without_end_is_heard_and_answered_at_its_rate() {
    let mut alone = Alone::new(settings());
    let asks = rrep_ack(true);
    let orders: Vec<_> = (0..1_000).flat_map(|_| alone.hear_message(2, asks.clone())).collect();
    assert_eq!(messages_of(&orders).len(), 200);
    assert!(reasons(&orders).contains(&DropReason::RoutingRateLimited));
    assert_eq!(messages_of(&alone.hear_message(3, asks)).len(), 1, "another neighbour has its own");
}

/// Addresses that no neighbour has.
fn made_up() -> impl Iterator<Item = Ipv4Addr> {
    (0..4_096).map(|nth| Ipv4Addr::from_bits(0x0a01_0000 + nth))
}

/// Lets a second pass, and returns what the router sends at its end.
fn a_second_later(alone: &mut Alone) -> Vec<(NextHop, Rfc5444Message)> {
    alone.now += seconds(1);
    alone.router.handle_timeout(&Cx { now: alone.now, endpoint: &Ends::default() });
    messages_of(&alone.orders())
}

#[test]
fn made_up_neighbours_are_asked_no_oftener_than_neighbours_are_answered() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    let request = Packet::of(way(9, 30, 7, 1).rreq()).bytes().expect("short enough");
    let in_a_second = |alone: &mut Alone| {
        let again = a_second_later(alone).len();
        let hear = |from| alone.hear(from, from, HOP_LIMIT, &request);
        again + messages_of(&made_up().flat_map(hear).collect::<Vec<_>>()).len()
    };
    let sent = [0; 4].map(|_| in_a_second(&mut alone));
    assert!(sent[0] > 100 && sent.iter().all(|sent| *sent <= 800), "{sent:?}");
}

#[test]
fn neighbours_that_answered_nothing_keep_no_place_from_a_new_one() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    let request = Packet::of(way(9, 30, 7, 1).rreq()).bytes().expect("short enough");
    let all: Vec<_> = made_up().collect();
    for some in all.chunks(256) {
        some.iter().for_each(|from| drop(alone.hear(*from, *from, HOP_LIMIT, &request)));
        a_second_later(&mut alone);
    }
    (0..3).for_each(|_| drop(a_second_later(&mut alone)));
    alone.reply(3, 8, 5, 3);
    assert_eq!(
        alone.router.next_hop(alone.now, address(8).into()).map(|(_, via)| via),
        Some(address(3).into())
    );
}

/// Made-up neighbours ask, and acknowledge that they are reached.
fn made_up_neighbours_are_confirmed(alone: &mut Alone) {
    let request = Packet::of(way(9, 30, 7, 1).rreq()).bytes().expect("short enough");
    let ack = Packet::of(rrep_ack(false)).bytes().expect("short enough");
    for some in made_up().collect::<Vec<_>>().chunks(256) {
        for from in some {
            alone.hear(*from, *from, HOP_LIMIT, &request);
            alone.hear(*from, *from, HOP_LIMIT, &ack);
        }
        a_second_later(alone);
    }
}

#[test]
fn made_up_neighbours_that_acknowledge_keep_no_place_from_a_new_one() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    made_up_neighbours_are_confirmed(&mut alone);
    alone.reply(3, 8, 5, 3);
    assert_eq!(
        alone.router.next_hop(alone.now, address(8).into()).map(|(_, via)| via),
        Some(address(3).into())
    );
}

#[test]
fn the_silence_of_a_next_hop_that_made_room_for_others_is_noticed() {
    let mut alone = Alone::new(super::Settings { hello: true, ..settings() });
    alone.reply(2, 9, 5, 3);
    made_up_neighbours_are_confirmed(&mut alone);
    alone.reply(3, 8, 5, 3);
    assert!(alone.router.next_hop(alone.now, address(9).into()).is_some());
    for _ in 0..6 {
        alone.router.note_use(alone.now, address(0), address(9));
        a_second_later(&mut alone);
    }
    assert_eq!(alone.router.next_hop(alone.now, address(9).into()), None);
}

#[test]
fn a_destination_is_found_beside_a_flood_of_made_up_ones() {
    // Routers on the path delay requests at random.
    let protocol = super::Settings { jitter: Duration::from_millis(10), ..settings() };
    scenarios::a_destination_is_found_beside_a_flood_of_made_up_ones(&protocol);
}

#[test]
fn a_destination_is_found_beside_others_that_are_wanted_as_much() {
    scenarios::a_destination_is_found_beside_others_that_are_wanted_as_much(&settings());
}

#[test]
fn each_finds_its_destination_beside_floods_of_others() {
    // Routers on the path delay requests at random.
    let protocol = super::Settings { jitter: Duration::from_millis(10), ..settings() };
    scenarios::each_finds_its_destination_beside_floods_of_others(&protocol);
}

#[test]
fn a_program_finds_its_destination_beside_what_strangers_name() {
    let fresh = || Alone::new(settings()).router;
    scenarios::a_program_finds_its_destination_beside_what_strangers_name(fresh, &settings());
}

#[test]
fn no_message_makes_a_route_to_an_address_that_is_served() {
    let mut alone = Alone::new(settings());
    let asks = Packet::of(way(20, 9, 7, 0).rreq()).bytes().expect("short enough");
    let orders = alone.hear(address(20), address(20), HOP_LIMIT, &asks);
    assert_eq!(reasons(&orders), [DropReason::RoutingRefused], "it speaks in that name");
    alone.hear_message(2, way(20, 9, 7, 1).rreq());
    alone.hear_message(2, way(9, 0, 7, 1).rreq());
    alone.hear_message(2, rrep_ack(false));
    assert!(alone.router.table.get(address(20)).is_none());
}

#[test]
fn that_a_link_broke_is_told_also_beside_a_flood_of_data() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    alone.router.note_use(alone.now, address(3), address(9));
    scenarios::data_to_made_up_addresses(&mut alone.router, alone.now);
    assert_eq!(messages_of(&alone.orders()).len(), 5, "half of the rate");
    alone.router.lose(alone.now, LINK, address(2));
    let sent = messages_of(&alone.orders());
    let [(NextHop::All, rerr)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(Rerr::parse(rerr).map(|rerr| rerr.unreachable), Ok(vec![(address(9), Some(5))]));
}
