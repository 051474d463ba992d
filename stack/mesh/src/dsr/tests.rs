mod errors;
mod refused;

use std::time::Duration;

use hopwise_core::Cast;
use hopwise_core::agent::PathEvent;
use hopwise_testing::make::ms;

use super::options::{RouteErrorReason, RouteReply, RouteRequest};
use super::*;
use crate::on_demand::testing::{Ends, LINK, Net, Protocol, address, setup, short};

impl Protocol for Settings {
    fn port(&self) -> u16 {
        0
    }

    fn header(&self) -> Option<u8> {
        Some(PROTOCOL)
    }

    fn router(&self, setup: RoutingSetup) -> Box<dyn Routing> {
        Box::new(Dsr::new(self.clone(), setup))
    }

    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    fn data_hop_limit(&self) -> u8 {
        self.data_hop_limit
    }

    fn describe(&self, ttl: u8, message: &[u8]) -> String {
        let read = OptionsHeader::parse(message).expect("what we write is a header");
        let said: Vec<_> = read.header.options.iter().map(|option| text(option, ttl)).collect();
        let carries = if read.header.next == NOTHING { "" } else { " data" };
        said.join(" ") + carries
    }

    fn boxed(&self) -> Box<dyn Protocol> {
        Box::new(self.clone())
    }
}

fn names(addresses: &[Ipv4Addr]) -> String {
    addresses.iter().map(|node| short((*node).into())).collect::<Vec<_>>().join(",")
}

fn text(option: &DsrOption, ttl: u8) -> String {
    match option {
        DsrOption::Request(request) => {
            format!("REQ {} [{}] ttl {ttl}", short(request.target.into()), names(&request.addresses))
        }
        DsrOption::Reply(reply) => format!("REP [{}]", names(&reply.addresses)),
        DsrOption::Error(error) => match error.problem {
            RouteErrorReason::Unreachable(node) => {
                let (src, dst) = (short(error.src.into()), short(error.dst.into()));
                format!("ERR {src}-{} for {dst}", short(node.into()))
            }
            _ => "ERR".to_owned(),
        },
        DsrOption::Route(route) => {
            let salvage =
                if route.salvage > 0 { format!(" salvaged {}", route.salvage) } else { String::new() };
            format!("[{}]{salvage}", names(&route.addresses))
        }
        DsrOption::Ack { id, .. } => format!("ACK {id}"),
        DsrOption::AckRequest { id } => format!("ACK? {id}"),
        DsrOption::Arrivals(said) => format!("ARR {}", short(said.of.into())),
        DsrOption::Unknown { kind, .. } => format!("? {kind}"),
    }
}

fn router_at(address: Ipv4Addr, settings: Settings, seed: u64) -> Dsr {
    Dsr::new(settings, setup(address, seed))
}

/// No replies from caches and no overhearing: discovery alone.
fn plain() -> Settings {
    Settings { reply_from_cache: false, promiscuous: false, ..Settings::default() }
}

fn lines_with<'a>(net: &'a Net, what: &'a str) -> Vec<&'a str> {
    net.lines(what).map(str::trim).collect()
}

#[test]
fn neighbours_are_asked_first_and_then_everybody_with_doubled_patience() {
    let mut net = Net::new(2, &Settings::default(), 1);
    net.send(0, 1);
    net.run_for(Duration::from_secs(29));
    let times: Vec<_> = net.log.lines().map(|line| line.trim().split_once(' ').unwrap().0).collect();
    assert_eq!(times, ["0", "30", "530", "1530", "3530", "7530", "15530", "25530"]);
    assert!(net.log.lines().next().is_some_and(|line| line.ends_with("REQ 1 [] ttl 1")));
    assert!(net.log.lines().skip(1).all(|line| line.ends_with("REQ 1 [] ttl 255")), "{}", net.log);
}

#[test]
fn a_search_ends_when_nobody_waits_any_more() {
    let mut net = Net::new(2, &Settings { max_request_rexmt: 2, ..Settings::default() }, 1);
    net.send(0, 1);
    net.run_for(Duration::from_secs(60));
    assert_eq!(net.controls, 3, "{}", net.log);
    assert_eq!(net.routers[0].poll_timeout(), None, "there is nothing left to do");
}

#[test]
fn a_neighbour_is_found_without_a_flood() {
    let mut net = Net::chain(3, &plain());
    net.send(0, 1);
    net.run_for(ms(25));
    assert_eq!(lines_with(&net, "REQ"), ["0 0 to all: REQ 1 [] ttl 1"]);
    assert_eq!(net.delivered, [(0, 1)]);
}

#[test]
fn packets_carry_their_whole_way_and_answers_come_back_on_it() {
    let mut net = Net::chain(5, &plain());
    net.send(0, 4);
    net.run_for(ms(200));
    assert_eq!(net.delivered, [(0, 4)]);
    assert_eq!(lines_with(&net, "data").len(), 4, "{}", net.log);
    assert!(lines_with(&net, "data").iter().all(|line| line.ends_with("[1,2,3] data")), "{}", net.log);
    assert_eq!(lines_with(&net, "REP [1,2,3,4]").len(), 4, "{}", net.log);
    // The route back is known from the request.
    net.send(4, 0);
    let requests = lines_with(&net, "REQ").len();
    net.run_for(ms(200));
    assert_eq!((net.delivered.len(), lines_with(&net, "REQ").len()), (2, requests));
    assert_eq!(net.routers[0].path(address(4).into()).hops_to_peer.map(|hops| hops.0), Some(4));
}

#[test]
fn connections_hear_when_a_way_is_found_gets_longer_and_is_gone() {
    let mut net = Net::chain(3, &plain());
    net.send(0, 2);
    net.run_for(ms(200));
    net.cut(1, 2);
    net.send(0, 2);
    net.run_for(ms(100));
    let heard: Vec<_> =
        net.path_events.iter().filter(|(node, ..)| *node == 0).map(|(.., event)| *event).collect();
    assert_eq!(heard, [PathEvent::RouteFound, PathEvent::RouteFailed]);
}

#[test]
fn each_node_passes_a_request_on_once_and_the_target_answers_every_copy() {
    // 0 - 1, 2 - 3
    let mut net = Net::new(4, &plain(), 1);
    [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)].into_iter().for_each(|(a, b)| net.connect(a, b));
    net.send(0, 3);
    net.run_for(ms(300));
    for node in ["1", "2"] {
        let passed = lines_with(&net, &format!(" {node} to all")).len();
        assert_eq!(passed, 1, "{}", net.log);
    }
    assert_eq!(lines_with(&net, "3 to 0: ").len(), 2, "{}", net.log);
    assert!(lines_with(&net, "3 to all").is_empty(), "{}", net.log);
}

#[test]
fn who_knows_a_way_answers_and_passes_nothing_on() {
    let settings = Settings { reply_from_cache: true, ..plain() };
    let mut net = Net::chain(5, &settings);
    net.send(1, 4);
    net.run_for(ms(300));
    let before = net.log.len();
    net.send(0, 4);
    net.run_for(ms(300));
    let after = &net.log[before..];
    assert!(after.contains("1 to 0: [] REP [1,2,3,4]"), "{after}");
    assert_eq!(after.matches("REQ").count(), 1, "the neighbour's answer was enough\n{after}");
    assert_eq!(net.delivered, [(1, 4), (0, 4)]);
}

#[test]
fn an_answer_from_the_cache_waits_the_longer_the_farther_the_target_is() {
    let mut dsr = router_at(address(1), Settings { promiscuous: false, ..Settings::default() }, 3);
    dsr.cache.add(Instant::ZERO, &[address(2), address(3), address(4)], RouteOrigin::Overheard);
    hear_request(&mut dsr, 7, 4, &[]);
    let due = dsr.poll_timeout().expect("the answer waits");
    // Four hops from the origin: three units, and less than one by chance.
    assert!((Instant::from_millis(3)..Instant::from_millis(4)).contains(&due), "{due:?}");
}

#[test]
fn no_answer_from_the_cache_leads_in_a_circle() {
    let settings = Settings { promiscuous: false, ..Settings::default() };
    let mut dsr = router_at(address(1), settings, 3);
    dsr.cache.add(Instant::ZERO, &[address(2), address(0), address(4)], RouteOrigin::Overheard);
    hear_request(&mut dsr, 7, 4, &[]);
    assert!(dsr.pending.is_empty(), "the origin is on that way");
    dsr.cache.add(Instant::ZERO, &[address(5), address(6), address(4)], RouteOrigin::Overheard);
    hear_request(&mut dsr, 8, 4, &[]);
    assert_eq!(dsr.pending.len(), 1);
}

/// A request of node 0 for a target, passed on by these nodes.
fn hear_request(dsr: &mut Dsr, id: u16, target: usize, through: &[usize]) {
    let addresses: Vec<_> = through.iter().map(|node| address(*node)).collect();
    let from = *addresses.last().unwrap_or(&address(0));
    let request = DsrOption::Request(RouteRequest { id, target: address(target), addresses });
    let mut origin = router_at(address(0), Settings::default(), 1);
    let packet = origin.packet(Ipv4Addr::BROADCAST, 9, vec![request]);
    hand_in(dsr, from, Cast::ToAll, &packet);
}

fn hand_in(dsr: &mut Dsr, from: Ipv4Addr, cast: Cast, packet: &[u8]) -> Option<Vec<u8>> {
    let (now, ends) = (Instant::ZERO, Ends::default());
    let rx = Rx { link: LINK, from: Some(from.into()), cast, segment_bytes: None, packet };
    if cast == Cast::Overheard {
        dsr.on_overheard(now, &rx);
        return None;
    }
    dsr.handle_wrapped(&Cx { now, endpoint: &ends }, &rx)
}

/// Data of `nodes[0]` for the last of them, as the node before `to` sends it.
fn on_its_way(nodes: &[usize], to: usize) -> Vec<u8> {
    let route: Vec<_> = nodes[1..].iter().map(|node| address(*node)).collect();
    let mut source = router_at(address(nodes[0]), Settings::default(), 1);
    let Some(RoutingOrder::Send { mut packet, .. }) = source.control(&route, Vec::new()) else {
        panic!("a packet")
    };
    for _ in 1..to {
        packet = Parcel::read(&packet).unwrap().unwrap().passed_on();
    }
    packet
}

#[test]
fn an_answer_that_who_asked_needs_no_more_is_not_sent() {
    let mut dsr = router_at(address(1), Settings::default(), 3);
    dsr.cache.add(Instant::ZERO, &[address(2), address(3), address(4)], RouteOrigin::Overheard);
    hear_request(&mut dsr, 7, 4, &[]);
    hand_in(&mut dsr, address(0), Cast::Overheard, &on_its_way(&[0, 5, 6, 7, 8, 4], 1));
    assert_eq!(dsr.pending.len(), 1, "five hops are more than four");
    hand_in(&mut dsr, address(0), Cast::Overheard, &on_its_way(&[0, 5, 6, 4], 1));
    assert!(dsr.pending.is_empty());
}

#[test]
fn a_node_that_a_packet_could_reach_sooner_tells_its_source_once_in_a_while() {
    let mut net = Net::chain(4, &Settings { reply_from_cache: false, ..Settings::default() });
    net.send(0, 3);
    net.run_for(ms(200));
    net.connect(1, 3);
    for _ in 0..5 {
        net.send(0, 3);
        net.run_for(ms(50));
    }
    assert_eq!(lines_with(&net, "3 to 0: [1] REP [1,3]").len(), 1, "{}", net.log);
    assert!(lines_with(&net, "data").last().is_some_and(|line| line.ends_with("[1] data")), "{}", net.log);
    assert_eq!(net.delivered.len(), 6);
}

#[test]
fn routes_are_learned_from_frames_between_others() {
    // The listener is in range of 1 alone.
    let mut net = Net::chain(4, &Settings { reply_from_cache: false, ..Settings::default() });
    net.send(0, 3);
    net.run_for(ms(200));
    net.connect(4 - 3, 0);
    let mut listener = router_at(address(9), Settings::default(), 1);
    hand_in(&mut listener, address(1), Cast::Overheard, &on_its_way(&[0, 1, 2, 3], 2));
    let hop = |dst: usize| listener.next_hop(Instant::ZERO, address(dst).into()).map(|(_, via)| via);
    for dst in [0, 1, 2, 3] {
        assert_eq!(hop(dst), Some(address(1).into()), "{dst}");
    }
    assert_eq!(listener.cache.hops(Instant::ZERO, address(3)), Some(3));
    assert_eq!(listener.cache.hops(Instant::ZERO, address(0)), Some(2));
}

#[test]
fn no_packet_ever_carries_a_circle_and_all_arrive_when_the_links_are_back() {
    for seed in 0..12 {
        let settings = Settings::default();
        let nodes = 9;
        let mut net = Net::new(nodes, &settings, seed);
        net.lost_permille = 50;
        for _ in 0..60 {
            net.clear_links();
            for _ in 0..14 {
                let (a, b) = (net.below(nodes), net.below(nodes));
                if a != b {
                    if net.below(10) == 0 { net.connect_one_way(a, b) } else { net.connect(a, b) }
                }
            }
            for _ in 0..4 {
                let (from, to) = (net.below(nodes), net.below(nodes));
                if from != to {
                    net.send(from, to);
                }
            }
            if net.below(8) == 0 {
                let node = net.below(nodes);
                net.reboot(node);
            }
            net.run_for(ms(250));
        }
        for packet in &net.packets {
            assert_sound(packet, seed);
        }
        // Healed: a ring that contains every node.
        net.clear_links();
        net.lost_permille = 0;
        (0..nodes).for_each(|node| net.connect(node, (node + 1) % nodes));
        net.run_for(Duration::from_secs(40));
        net.delivered.clear();
        // Single packets may be lost to stale caches; every loss corrects them.
        for to in 1..nodes {
            for _ in 0..12 {
                net.send(0, to);
                net.run_for(Duration::from_secs(1));
            }
            assert!(net.delivered.contains(&(0, to)), "seed {seed}: {to}\n{}", tail(&net));
        }
    }
}

fn tail(net: &Net) -> String {
    let lines: Vec<_> = net.log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

fn assert_sound(packet: &[u8], seed: u64) {
    let parcel = Parcel::read(packet).expect("sound").expect("ours");
    let walk = parcel.walk().expect("no circle");
    assert!(walk.is_none_or(|walk| walk.salvage <= 15), "seed {seed}");
    for option in parcel.options() {
        if let DsrOption::Reply(RouteReply { addresses, .. }) = option {
            assert!(!addresses.contains(&parcel.dst), "seed {seed}: a route through its own source");
        }
    }
}

/// The arrivals that nodes learned: the node, its peer, and the sequence number.
fn arrivals(net: &Net) -> Vec<(usize, IpAddr, u32)> {
    let arrival = |(node, peer, event): &(usize, IpAddr, PathEvent)| match event {
        PathEvent::AckSeq(seq) => Some((*node, *peer, seq.0)),
        _ => None,
    };
    net.path_events.iter().filter_map(arrival).collect()
}

fn with_ack_seq(settings: Settings) -> Settings {
    Settings { ack_seq: true, ..settings }
}

#[test]
fn what_has_arrived_travels_with_the_request_and_with_the_reply() {
    for (is_on, ack_seq_in_replies) in [(true, true), (true, false), (false, true)] {
        let mut net = Net::chain(3, &Settings { ack_seq: is_on, ack_seq_in_replies, ..plain() });
        net.ends[0].0.push((address(2).into(), (5_001, 40_000), hopwise_core::Seq(99)));
        net.ends[2].0.push((address(0).into(), (40_000, 5_001), hopwise_core::Seq(77)));
        net.send(0, 2);
        net.run_for(ms(200));
        let arrived = arrivals(&net);
        let of = |node: usize, peer: usize, seq| arrived.contains(&(node, address(peer).into(), seq));
        let in_reply = is_on && ack_seq_in_replies;
        assert_eq!((of(2, 0, 99), of(0, 2, 77)), (is_on, in_reply), "{arrived:?}");
        assert!(arrived.iter().all(|(node, ..)| *node != 1), "it is not for who passes it on: {arrived:?}");
        assert_eq!(!lines_with(&net, "ARR 2").is_empty(), in_reply, "{}", net.log);
    }
}

/// A node on the route replies, so that the request never reaches its target. The arrivals in it do.
#[test]
fn what_has_arrived_reaches_the_target_when_a_cache_answers() {
    let mut net = Net::chain(4, &with_ack_seq(Settings { promiscuous: false, ..Settings::default() }));
    net.send(1, 3);
    net.run_for(ms(200));
    net.ends[0].0.push((address(3).into(), (5_001, 40_000), hopwise_core::Seq(99)));
    net.send(0, 3);
    net.run_for(ms(200));
    assert!(net.delivered.contains(&(0, 3)), "{}", net.log);
    assert_eq!(lines_with(&net, "0 to all: REQ 3 []").len(), 1, "the neighbour answered: {}", net.log);
    assert_eq!(arrivals(&net), [(3, address(0).into(), 99)], "{}", net.log);
}
