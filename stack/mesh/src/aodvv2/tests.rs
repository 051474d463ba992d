//! AODVv2's rules, with routers in memory.

use std::time::Duration;

use hopwise_core::agent::PathEvent;
use hopwise_core::{Cast, Seq};

use super::messages::{Rerr, RouteMessage, rrep_ack};
use super::*;
use crate::on_demand::Trust;
use crate::on_demand::testing::scenarios::{self, reasons, seconds};
use crate::on_demand::testing::{Ends, LINK, Net, address, setup};

pub(super) fn settings() -> Settings {
    Settings { jitter: Duration::ZERO, ..Settings::default() }
}

/// Every message of a first packet over three hops, and of the reply.
#[test]
fn a_way_over_three_hops_is_asked_for_answered_and_found_to_work_both_ways() {
    let mut net = Net::chain(4, &settings());
    net.send(0, 3);
    net.run_for(seconds(1));
    let expected = "     0 0 to all: RREQ 0>3 seq 1 hops 0 limit 20
     2 1 to all: RREQ 0>3 seq 1 hops 1 limit 19
     4 2 to all: RREQ 0>3 seq 1 hops 2 limit 18
     6 3 to 2: RREP 0>3 seq 1 hops 0 + RREP_Ack?
     8 2 to 1: RREP 0>3 seq 1 hops 1 + RREP_Ack?
     8 2 to 3: RREP_Ack
    10 1 to 0: RREP 0>3 seq 1 hops 2 + RREP_Ack?
    10 1 to 2: RREP_Ack
    12 0 to 1: RREP_Ack
";
    assert_eq!(net.log, expected);
    assert_eq!(net.delivered, [(0, 3)]);
    assert_eq!(net.path_events, [(0, address(3).into(), PathEvent::RouteFound)]);
    assert_eq!(net.routers[0].path(address(3).into()).hops_to_peer.map(|(hops, _)| hops), Some(3));
    net.log.clear();
    net.send(3, 0);
    net.run_for(seconds(1));
    assert_eq!((net.log.as_str(), net.delivered.len()), ("", 2), "the way back is known");
}

#[test]
fn a_chain_whose_middle_leaves_tells_its_source_who_finds_another_way() {
    let mut net = scenarios::two_ways_around_the_middle(&settings());
    scenarios::another_way_is_found(&mut net);
    let rerr = net.log.lines().next().expect("something is said");
    assert!(rerr.contains(" 1 to all: RERR 4 "), "{}", net.log);
}

#[test]
fn a_destination_that_is_not_found_is_asked_for_three_times_and_then_rests() {
    let mut net = Net::chain(2, &settings());
    for _ in 0..60 {
        net.send(0, 9);
        net.run_for(Duration::from_millis(500));
    }
    let times = net.lines(" 0 to all: RREQ");
    let times: Vec<u64> = times.map(|line| line[..6].trim().parse().expect("ms")).collect();
    // Timeouts of 2, 4 and 8 s, then 10 s of rest.
    assert_eq!(times[..5], [0, 2_000, 6_000, 24_000, 26_000]);
}

#[test]
fn a_neighbour_that_does_not_hear_us_is_not_heard_for_a_while() {
    // 0 reaches 1, but not vice versa, and no link layer reports losses. The other route is 0 - 2 - 1.
    let mut net = Net::new(3, &settings(), 1);
    net.tells = false;
    net.connect_one_way(0, 1);
    net.send(0, 1);
    net.run_for(seconds(5));
    let replies = net.lines(" 1 to 0: RREP 0>1").count();
    assert_eq!(replies, 4, "two requests came, and each was answered once more\n{}", net.log);
    net.log.clear();
    net.connect(0, 2);
    net.connect(2, 1);
    net.send(0, 1);
    net.run_for(seconds(15));
    assert!(!net.log.contains(" 1 to 0: RREP"), "blacklisted for 200 s\n{}", net.log);
    assert_eq!(net.delivered, [(0, 1); 2]);
    assert_eq!(net.routers[0].path(address(1).into()).hops_to_peer.map(|(hops, _)| hops), Some(2));
}

#[test]
fn a_next_hop_in_use_that_falls_silent_is_missed_where_no_link_layer_tells() {
    let protocol = Settings { hello: true, ..settings() };
    let log = scenarios::silence_is_noticed(&protocol, "1 to all: RERR 2");
    assert!(log.contains(" 2 to 1: RREP_Ack\n"), "{log}");
}

#[test]
fn who_has_no_route_for_a_packet_tells_its_source_and_not_again_so_soon() {
    let mut net = Net::chain(4, &settings());
    net.send(0, 3);
    net.run_for(seconds(1));
    net.reboot(2);
    net.log.clear();
    for _ in 0..5 {
        net.send(0, 3);
        net.send(1, 3);
    }
    net.run_for(Duration::from_millis(100));
    net.send(0, 3);
    net.run_for(Duration::from_millis(100));
    let lines_with = |whose: &str| net.lines(whose).count();
    assert_eq!(
        (lines_with("2 to all: RERR 3 for 0"), lines_with("2 to all: RERR 3 for 1")),
        (1, 1),
        "{}",
        net.log
    );
    assert_eq!(net.routers[0].next_hop(net.now, address(3).into()), None, "{}", net.log);
}

#[test]
fn a_node_that_has_lost_its_number_asks_and_answers_nothing_until_it_is_forgotten() {
    let settings = Settings { max_seqnum_lifetime: seconds(20), max_idletime: seconds(10), ..settings() };
    let mut net = Net::chain(3, &settings);
    for _ in 0..5 {
        net.send(2, 0);
        net.run_for(seconds(12));
    }
    let rebooted = net.now;
    net.reboot(2);
    net.log.clear();
    net.send(0, 2);
    net.send(2, 0);
    net.run_for(seconds(19));
    assert!(!net.log.contains(" 2 to"), "{}", net.log);
    net.run(rebooted + seconds(40), &mut Net::assert_free_of_loops);
    net.delivered.clear();
    net.send(2, 0);
    net.send(0, 2);
    net.run_for(seconds(10));
    assert_eq!(net.delivered.len(), 2, "{}", net.log);
}

#[test]
fn a_partition_heals_and_nothing_counts_to_infinity() {
    scenarios::a_partition_heals(&settings());
}

/// A single router, with its input and its orders.
pub(super) struct Alone {
    pub(super) router: Aodvv2,
    pub(super) now: Instant,
}

impl Alone {
    pub(super) fn new(settings: Settings) -> Alone {
        let network = Some("10.0.0.0/8".parse().expect("a network"));
        let trust = Trust { network, mtu: 1_500, keys: None };
        let setup = RoutingSetup { serves: vec![address(20)], trust, ..setup(address(0), 1) };
        Alone { router: Aodvv2::new(settings, setup), now: Instant::from_secs(1) }
    }

    pub(super) fn hear(
        &mut self,
        from: Ipv4Addr,
        by: Ipv4Addr,
        hop_limit: u8,
        message: &[u8],
    ) -> Vec<RoutingOrder> {
        let control = ControlMessage {
            link: LINK,
            from: Some(by.into()),
            cast: Cast::ToAll,
            src: from.into(),
            dst: ALL_ROUTERS.into(),
            hop_limit,
            message,
        };
        self.router.handle_control(&Cx { now: self.now, endpoint: &Ends::default() }, &control);
        self.orders()
    }

    pub(super) fn orders(&mut self) -> Vec<RoutingOrder> {
        std::iter::from_fn(|| self.router.poll_order(self.now)).collect()
    }

    pub(super) fn hear_message(&mut self, from: usize, message: Rfc5444Message) -> Vec<RoutingOrder> {
        let from = address(from);
        self.hear(from, from, HOP_LIMIT, &Packet::of(message).bytes().expect("short enough"))
    }

    /// A reply to a request of ours, with a route to `dst`.
    pub(super) fn reply(&mut self, from: usize, dst: usize, seq: u16, metric: u8) {
        self.router.desk.note_asked(self.now, (address(0), address(dst)), true, seconds(9));
        self.hear_message(from, way(dst, 0, seq, metric).rrep());
    }

    fn next(&self, dst: usize) -> Option<Ipv4Addr> {
        self.router.next_hop(self.now, address(dst).into()).and_then(|(_, via)| v4(via))
    }
}

pub(super) fn way(to: usize, other: usize, seq: u16, metric: u8) -> RouteMessage {
    let (to, other) = (address(to), address(other));
    RouteMessage { hop_limit: 20, to, seq, metric, validity: None, other, other_seq: None }
}

/// The messages among a router's orders, with their receivers.
pub(super) fn messages_of(orders: &[RoutingOrder]) -> Vec<(NextHop, Rfc5444Message)> {
    let messages = |order: &RoutingOrder| match order {
        RoutingOrder::Send { to, packet, .. } => {
            let packet = Packet::parse(&packet[28..]).ok()?;
            Some(packet.messages.into_iter().map(|message| (*to, message)).collect::<Vec<_>>())
        }
        _ => None,
    };
    orders.iter().filter_map(messages).flatten().collect()
}

#[test]
fn numbers_go_on_across_the_wrap_and_are_never_nothing() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, u16::MAX, 3);
    alone.reply(3, 9, 1, 5);
    assert_eq!(alone.next(9), Some(address(3)), "1 is newer than the highest");
    alone.reply(2, 9, u16::MAX, 1);
    assert_eq!(alone.next(9), Some(address(3)));
    alone.router.seq = u16::MAX;
    let rreq = RouteMessage { other_seq: None, ..way(2, 0, 1, 0) };
    let sent = messages_of(&alone.hear_message(2, rreq.rreq()));
    let rrep = RouteMessage::of_rrep(&sent[0].1).expect("an answer");
    assert_eq!((rrep.seq, rrep.to, rrep.metric), (1, address(0), 0));
}

#[test]
fn the_target_answers_with_a_number_newer_than_the_one_asked_for_and_for_what_it_serves() {
    let mut alone = Alone::new(settings());
    for (seq, asked, target, answered) in [(1, None, 0, 1), (2, Some(500), 0, 501), (3, Some(7), 20, 502)] {
        let rreq = RouteMessage { other_seq: asked, ..way(2, target, seq, 0) };
        let sent = messages_of(&alone.hear_message(2, rreq.rreq()));
        let rrep = RouteMessage::of_rrep(&sent[0].1).expect("an answer");
        assert_eq!((rrep.seq, rrep.to), (answered, address(target)));
    }
}

#[test]
fn what_others_wrote_into_a_request_goes_on_with_it() {
    let mut alone = Alone::new(settings());
    let mut rreq = way(3, 9, 1, 2).rreq();
    rreq.tlvs.push(crate::rfc5444::Tlv { kind: 250, extension: 3, value: vec![1, 2] });
    let sent = messages_of(&alone.hear_message(2, rreq));
    let [(NextHop::All, passed)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(passed.tlv(250, 3), Some(&[1, 2][..]));
    let read = RouteMessage::of_rreq(passed).expect("a request");
    assert_eq!((read.metric, read.hop_limit), (3, 19));
}

#[test]
fn a_request_that_has_come_far_enough_goes_no_further() {
    let mut alone = Alone::new(settings());
    let last = RouteMessage { hop_limit: 1, ..way(3, 9, 1, 2) };
    assert!(messages_of(&alone.hear_message(2, last.rreq())).is_empty());
    let far = way(4, 9, 1, 20);
    assert!(messages_of(&alone.hear_message(2, far.rreq())).is_empty());
    assert!(alone.router.table.get(address(4)).is_none(), "no way is longer than 20 hops");
}

#[test]
fn an_error_is_believed_of_the_next_hop_and_goes_on_to_everyone_when_the_route_was_in_use() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    alone.reply(2, 8, 5, 3);
    let gone = |seq| Rerr {
        hop_limit: 9,
        pkt_source: None,
        unreachable: vec![(address(9), seq), (address(8), seq)],
    };
    alone.hear_message(4, gone(Some(6)).message());
    assert_eq!(alone.next(9), Some(address(2)), "it is not the next hop");
    alone.hear_message(2, gone(Some(4)).message());
    assert_eq!(alone.next(9), Some(address(2)), "that was another time");
    alone.router.note_use(alone.now, address(3), address(9));
    let sent = messages_of(&alone.hear_message(2, gone(None).message()));
    assert_eq!((alone.next(9), alone.next(8)), (None, None));
    let [(NextHop::All, rerr)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(Rerr::parse(rerr).map(|rerr| rerr.unreachable), Ok(vec![(address(9), Some(5))]));
    alone.reply(2, 9, 5, 4);
    assert_eq!(alone.next(9), None, "farther away than before with the same number");
}

#[test]
fn an_error_about_somebodys_packet_goes_back_the_way_it_came() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    alone.reply(3, 7, 5, 1);
    alone.router.note_use(alone.now, address(7), address(9));
    let rerr = |src| Rerr { hop_limit: 9, pkt_source: Some(src), unreachable: vec![(address(9), None)] };
    let sent = messages_of(&alone.hear_message(2, rerr(address(7)).message()));
    let [(NextHop::Neighbour(to), _)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(*to, address(3));
    alone.reply(2, 9, 6, 3);
    alone.router.note_use(alone.now, address(0), address(9));
    assert!(messages_of(&alone.hear_message(2, rerr(address(0)).message())).is_empty(), "it was ours");
    assert_eq!(alone.next(9), None);
}

#[test]
fn what_comes_from_off_the_link_from_no_host_or_of_another_kind_is_refused() {
    let mut alone = Alone::new(settings());
    let rreq = Packet::of(way(2, 9, 1, 0).rreq()).bytes().expect("short enough");
    let near = address(2);
    for (what, from, by, hop_limit) in [
        ("passed on by a router", near, near, 254),
        ("another's address", Ipv4Addr::new(10, 9, 9, 9), near, 255),
        ("no host's address", ALL_ROUTERS, ALL_ROUTERS, 255),
        ("our own address", address(0), address(0), 255),
    ] {
        let orders = alone.hear(from, by, hop_limit, &rreq);
        assert_eq!(reasons(&orders), [DropReason::RoutingRefused], "{what}");
    }
    assert_eq!(reasons(&alone.hear(near, near, 255, &rreq[..20])), [DropReason::RoutingMalformed]);
    let mut foreign = way(2, 9, 1, 0).rreq();
    foreign.blocks[0].tlvs[1].extension = 9;
    assert_eq!(reasons(&alone.hear_message(2, foreign)), [DropReason::RoutingRefused], "another metric");
    let other = Rfc5444Message { hop_limit: Some(1), ..Rfc5444Message::new(0, 4) };
    assert!(alone.hear_message(2, other).is_empty(), "another protocol's message is none of ours");
}

#[test]
fn floods_take_bounded_memory_and_are_not_passed_on() {
    let mut alone = Alone::new(Settings { most_routes: 100, ..settings() });
    let (mut passed, mut refused) = (0, 0);
    for seq in 1..200 {
        let orders = alone.hear_message(2, way(2, 30 + usize::from(seq % 50), seq, 0).rreq());
        passed += messages_of(&orders).len();
        refused += reasons(&orders).len();
    }
    assert_eq!((passed, refused), (20, 179), "20 a second of each origin");
    for origin in 0..10_000_u32 {
        let to = Ipv4Addr::from_bits(0x0b00_0001 + origin);
        alone.hear_message(3, RouteMessage { to, ..way(3, 9, 1, 0) }.rreq());
    }
    assert!(alone.router.routes(alone.now).len() <= 100);
}

#[test]
fn own_requests_and_errors_keep_to_their_rates() {
    let mut net = Net::chain(2, &settings());
    (0..30).for_each(|n| net.send(0, 100 + n));
    net.run_for(Duration::from_millis(900));
    assert_eq!(net.lines(" 0 to all: RREQ").count(), 10, "{}", net.log);
}

#[test]
fn a_request_of_who_may_not_hear_us_waits_while_an_older_route_is_in_use() {
    let mut alone = Alone::new(settings());
    alone.reply(2, 9, 5, 3);
    let request = way(9, 7, 6, 1).rreq();
    let sent = messages_of(&alone.hear_message(3, request));
    assert_eq!(sent, [(NextHop::Neighbour(address(3).into()), rrep_ack(true))]);
    assert_eq!(alone.next(9), Some(address(2)));
    let sent = messages_of(&alone.hear_message(3, rrep_ack(false)));
    let [(NextHop::All, passed)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(RouteMessage::of_rreq(passed).map(|rreq| rreq.metric), Ok(2));
    assert_eq!(alone.next(9), Some(address(3)));
}

#[test]
fn a_request_for_an_acknowledgement_is_answered_to_who_asks() {
    let mut alone = Alone::new(settings());
    let sent = messages_of(&alone.hear_message(2, rrep_ack(true)));
    assert_eq!(sent, [(NextHop::Neighbour(address(2).into()), rrep_ack(false))]);
    assert_eq!(
        reasons(&alone.hear_message(2, rrep_ack(false))),
        [DropReason::RoutingRefused],
        "not asked for"
    );
}

#[test]
fn requests_and_replies_say_what_has_arrived_and_are_believed_where_the_key_is_right() {
    for key in [None, Some(Key::new([3; 32]))] {
        let mut net = Net::chain(4, &Settings { ack_seq: true, key, ..settings() });
        net.ends[0].0.push((address(3).into(), (5_001, 40_000), Seq(77)));
        net.ends[3].0.push((address(0).into(), (40_000, 5_001), Seq(99)));
        net.send(0, 3);
        net.run_for(seconds(1));
        let seqs = net.path_events.iter().filter_map(|(node, _, event)| match event {
            PathEvent::AckSeq(seq) => Some((*node, *seq)),
            _ => None,
        });
        assert_eq!(seqs.collect::<Vec<_>>(), [(3, Seq(77)), (0, Seq(99))]);
    }
}

#[test]
fn no_loop_ever_forms_whatever_moves_breaks_and_starts_again() {
    for seed in 0_u64..60 {
        let protocol = Settings {
            active_interval: seconds(2),
            max_idletime: seconds(6),
            max_seqnum_lifetime: seconds(12),
            max_blacklist_time: seconds(3),
            rreq_holddown_time: seconds(2),
            rreq_wait_time: Duration::from_millis(500),
            hello: seed.is_multiple_of(5),
            ..Settings::default()
        };
        scenarios::no_loop_forms(&protocol, seed);
    }
}
