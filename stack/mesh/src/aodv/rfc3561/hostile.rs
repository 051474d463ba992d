//! Messages of strangers: none leads out of the network, is believed unrequested, or comes from afar.

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::trace::DropReason;
use hopwise_core::{Cast, NextHop};

use super::super::messages::{AodvMessage, Rerr, Rrep, Rreq, bytes_of};
use super::tests::{Alone, messages, request, settings};
use super::{ControlMessage, Cx, OnDemand, Routing};
use crate::on_demand::MessageReceiver;
use crate::on_demand::rates::Cause;
use crate::on_demand::testing::scenarios::{self, reasons, seconds};
use crate::on_demand::testing::{Ends, LINK, address};

const OUTSIDE: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);
const REFUSED: [DropReason; 1] = [DropReason::RoutingRefused];

fn reply(dst: Ipv4Addr, origin: Ipv4Addr) -> AodvMessage {
    AodvMessage::Rrep(Rrep {
        is_repair: false,
        wants_ack: true,
        prefix_size: 0,
        hop_count: 0,
        dst,
        dst_seq: 7,
        origin,
        lifetime_ms: 3_600_000,
    })
}

#[test]
fn nothing_outside_of_the_network_is_learned_answered_or_passed_on() {
    let mut alone = Alone::new(settings());
    alone.ask(9);
    let rreq = request(1, 2, 9, None);
    for (what, cast, message) in [
        ("a request of a stranger", Cast::ToAll, AodvMessage::Rreq(Rreq { origin: OUTSIDE, ..rreq })),
        ("a request for a stranger", Cast::ToAll, AodvMessage::Rreq(Rreq { dst: OUTSIDE, ..rreq })),
        ("a reply of a stranger", Cast::ToUs, reply(OUTSIDE, address(0))),
        ("a reply to a stranger", Cast::ToUs, reply(address(9), OUTSIDE)),
    ] {
        let orders = alone.hear(2, cast, &bytes_of(&message, &[]));
        assert_eq!((messages(&orders).len(), reasons(&orders)), (0, REFUSED.to_vec()), "{what}");
    }
    assert!(alone.router.routes(alone.now).is_empty());
}

#[test]
fn a_reply_that_nobody_asked_for_is_neither_taken_nor_acknowledged() {
    let mut alone = Alone::new(settings());
    let unasked = bytes_of(&reply(address(9), address(0)), &[]);
    let orders = alone.hear(66, Cast::ToUs, &unasked);
    assert_eq!((messages(&orders).len(), reasons(&orders)), (0, REFUSED.to_vec()));
    assert_eq!(alone.next(9), None);
    alone.ask(9);
    let orders = alone.hear(66, Cast::ToUs, &unasked);
    assert_eq!(messages(&orders), [(NextHop::Neighbour(address(66).into()), AodvMessage::RrepAck)]);
    assert_eq!(alone.next(9), Some(address(66)));
}

#[test]
fn what_may_come_from_beyond_a_neighbour_is_refused() {
    let rreq = AodvMessage::Rreq(request(1, 2, 0, None));
    let rerr = AodvMessage::Rerr(Rerr { is_no_delete: false, unreachable: vec![(address(9), 1)] });
    let said = |gtsm, cast, hop_limit, message: &AodvMessage| {
        let mut alone = Alone::new(super::Settings { gtsm, ..settings() });
        let dst = if cast == Cast::ToAll { Ipv4Addr::BROADCAST } else { address(0) };
        let control = ControlMessage {
            link: LINK,
            from: None,
            cast,
            src: address(2).into(),
            dst: dst.into(),
            hop_limit,
            message: &bytes_of(message, &[]),
        };
        alone.router.handle_control(&Cx { now: alone.now, endpoint: &Ends::default() }, &control);
        reasons(&alone.orders())
    };
    for message in [&rreq, &rerr] {
        assert_eq!(said(true, Cast::ToAll, 1, message), [], "no router passes a broadcast on");
        assert_eq!(said(true, Cast::ToUs, 254, message), REFUSED, "{message:?}");
        assert_eq!(said(false, Cast::ToUs, 254, message), [], "where others speak that leave the TTL open");
    }
    assert_eq!(said(true, Cast::ToUs, 255, &rreq), REFUSED, "a request is for everybody");
    assert_eq!(said(true, Cast::ToUs, 255, &rerr), []);
}

#[test]
fn an_error_about_many_routes_is_told_in_packets_that_the_interface_carries() {
    let mut alone = Alone::new(settings());
    alone.router.desk.trust.mtu = 100;
    let gone: Vec<_> = (0..20).map(|n| (address(100 + n), 1)).collect();
    alone.router.send_error((alone.now, Cause::Break), MessageReceiver::Everyone, None, &gone, false);
    let sent = messages(&alone.orders());
    let told = |message: &AodvMessage| match message {
        AodvMessage::Rerr(rerr) => rerr.unreachable.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(sent.iter().map(|(_, message)| told(message)).collect::<Vec<_>>(), [8, 8, 4]);
}

fn hello(from: Ipv4Addr) -> AodvMessage {
    let AodvMessage::Rrep(rrep) = reply(from, from) else { unreachable!("a hello is a RREP") };
    AodvMessage::Rrep(Rrep { wants_ack: false, ..rrep })
}

/// Made-up neighbours say hello, as many as the tables of neighbours hold, as fast as all neighbours may.
fn hellos_of_made_up_neighbours(alone: &mut Alone) {
    for nth in 0..4_096 {
        if nth % 2_000 == 0 {
            alone.now += seconds(1);
            alone.router.note_use(alone.now, address(0), address(9));
        }
        let from = Ipv4Addr::from_bits(0x0a01_0000 + nth);
        let message = bytes_of(&hello(from), &[]);
        let control = ControlMessage {
            link: LINK,
            from: None,
            cast: Cast::ToAll,
            src: from.into(),
            dst: Ipv4Addr::BROADCAST.into(),
            hop_limit: 1,
            message: &message,
        };
        alone.router.handle_control(&Cx { now: alone.now, endpoint: &Ends::default() }, &control);
    }
}

/// Lets seconds pass while data goes to 9, and returns whether there is a route to it at their end.
fn is_known_after(alone: &mut Alone, for_seconds: u64) -> bool {
    for _ in 0..for_seconds {
        alone.now += seconds(1);
        alone.router.note_use(alone.now, address(0), address(9));
        alone.router.handle_timeout(&Cx { now: alone.now, endpoint: &Ends::default() });
    }
    alone.next(9).is_some()
}

#[test]
fn the_silence_of_a_new_neighbour_is_noticed_beside_made_up_ones() {
    let mut alone = Alone::new(super::Settings { hello: true, ..settings() });
    hellos_of_made_up_neighbours(&mut alone);
    alone.reply(2, 9, 5, 3);
    assert!(is_known_after(&mut alone, 2), "it need not have spoken yet");
    assert!(!is_known_after(&mut alone, 2));
}

#[test]
fn the_silence_of_a_neighbour_in_use_is_noticed_beside_made_up_ones() {
    let mut alone = Alone::new(super::Settings { hello: true, ..settings() });
    alone.reply(2, 9, 5, 3);
    assert!(is_known_after(&mut alone, 1));
    hellos_of_made_up_neighbours(&mut alone);
    assert!(!is_known_after(&mut alone, 1), "it has been silent for four seconds");
}

#[test]
fn made_up_neighbours_keep_none_from_the_blacklist() {
    let mut alone = Alone::new(settings());
    let (links, until) = (&mut alone.router.links, alone.now + seconds(5));
    (0..4_096).for_each(|nth| links.blacklist(Ipv4Addr::from_bits(0x0a01_0000 + nth), until));
    links.blacklist(address(2), until + seconds(1));
    assert!(links.is_blacklisted(alone.now, address(2)));
}

#[test]
fn a_message_longer_than_the_interface_carries_is_refused() {
    let mut alone = Alone::new(settings());
    let extension = [[0x30, 255].to_vec(), vec![0; 255]].concat().repeat(6);
    let long = bytes_of(&AodvMessage::Rreq(request(1, 2, 9, None)), &extension);
    assert_eq!(reasons(&alone.hear(2, Cast::ToAll, &long)), REFUSED);
}

#[test]
fn signed_messages_are_heard_once_and_others_are_not() {
    let protocol = super::Settings { signed: true, ..settings() };
    scenarios::signed_messages_are_heard_once(&protocol, &bytes_of(&AodvMessage::RrepAck, &[]));
}

#[test]
fn neighbours_that_ask_without_end_are_answered_at_the_rate_of_one_and_of_all() {
    let mut alone = Alone::new(settings());
    let mut id = 0;
    let mut answers = |from: usize| {
        let of_each: Vec<_> = (0..1_000)
            .flat_map(|_| {
                id += 1;
                // Each is of another origin, so that the rate of origins stops none.
                let origin = Ipv4Addr::from_bits(0x0a01_0000 + id);
                let rreq = AodvMessage::Rreq(Rreq { origin, ..request(id, from, 0, None) });
                alone.hear(from, Cast::ToAll, &bytes_of(&rreq, &[]))
            })
            .collect();
        (messages(&of_each).len(), reasons(&of_each).len())
    };
    assert_eq!(answers(2), (200, 800));
    let of_others: usize = (3..9).map(|from| answers(from).0).sum();
    assert_eq!(of_others, 600, "four times as many in all");
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
    let mut message = bytes_of(&AodvMessage::Rreq(request(1, 20, 9, None)), &[]);
    assert_eq!(reasons(&alone.hear(20, Cast::ToAll, &message)), REFUSED, "it speaks in that name");
    alone.ask(20);
    for message in [AodvMessage::Rreq(request(2, 20, 9, None)), reply(address(20), address(0))] {
        alone.hear_message(2, &message);
    }
    let rreq = AodvMessage::Rreq(request(3, 2, 9, None));
    message = bytes_of(&rreq, &[]);
    alone.hear(2, Cast::ToAll, &message);
    let routes: Vec<_> = alone.router.routes(alone.now).into_iter().map(|(dst, ..)| dst).collect();
    assert_eq!(routes, [address(2)]);
}

#[test]
fn that_a_link_broke_is_told_also_beside_a_flood_of_data() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    alone.hear(3, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(request(1, 3, 9, Some(5))), &[]));
    scenarios::data_to_made_up_addresses(&mut alone.router, alone.now);
    let told = messages(&alone.orders());
    assert_eq!(told.len(), 5, "half of the rate");
    alone.router.lose(alone.now, LINK, address(2));
    let told = messages(&alone.orders());
    assert!(
        matches!(&told[..], [(_, AodvMessage::Rerr(rerr))] if rerr.unreachable == [(address(9), 6)]),
        "{told:?}"
    );
}

#[test]
fn data_of_strangers_keeps_no_node_silent_for_ever() {
    let mut alone = Alone::new(settings());
    alone.router.desk.wakes_at = alone.now + settings().delete_period();
    alone.router.wakes_by = alone.router.desk.wakes_at + settings().delete_period() * super::MOST_PUT_OFF;
    let began = alone.now;
    let answers = |alone: &mut Alone, id| {
        let rreq = AodvMessage::Rreq(request(id, 2, 0, None));
        let said = messages(&alone.hear(2, Cast::ToAll, &bytes_of(&rreq, &[])));
        said.iter().any(|(_, message)| matches!(message, AodvMessage::Rrep(_)))
    };
    // A packet every ten seconds, and DELETE_PERIOD is fifteen.
    for n in 0..6 {
        alone.now = began + seconds(10 * n);
        assert!(!answers(&mut alone, n as u32), "it waits as long as the data shows that somebody uses it");
        scenarios::data_to_made_up_addresses(&mut alone.router, alone.now);
    }
    alone.now = began + seconds(60);
    scenarios::data_to_made_up_addresses(&mut alone.router, alone.now);
    assert!(answers(&mut alone, 7), "four DELETE_PERIODs are enough");
}
