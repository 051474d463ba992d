mod endings;

use hopwise_core::agent::PathEvent;

use super::frames::{Perr, Preq};
use super::*;
use crate::on_demand::testing::{Ends, KBPS, LINK, Net, Protocol, address, setup, short};

impl Protocol for Settings {
    fn port(&self) -> u16 {
        PORT
    }

    fn router(&self, setup: RoutingSetup) -> Box<dyn Routing> {
        Box::new(Hwmp::new(self.clone(), RoutingSetup { first_kbps: KBPS, ..setup }))
    }

    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    fn data_hop_limit(&self) -> u8 {
        31
    }

    fn describe(&self, ttl: u8, message: &[u8]) -> String {
        assert_eq!(ttl, 1, "no router passes the packet itself on");
        let name = |node: Ipv4Addr| short(node.into());
        match Frame::read(message).expect("what we write is whole") {
            Frame::Beacon { peers, .. } => format!("beacon with {peers} peers"),
            Frame::Open(_) => "open".to_owned(),
            Frame::Confirm(_) => "confirm".to_owned(),
            Frame::Close(said) => format!("close for {}", said.reason),
            Frame::Preq(preq) => {
                let only = if preq.target_only { " itself" } else { "" };
                let (from, to) = (name(preq.originator), name(preq.target));
                format!("request of {from} for {to}{only} hops {} metric {}", preq.hop_count, preq.metric)
            }
            Frame::Prep(prep) => {
                let (from, to) = (name(prep.target), name(prep.originator));
                format!("reply of {from} for {to} hops {} metric {}", prep.hop_count, prep.metric)
            }
            Frame::Perr(perr) => format!("error for {} reason {}", name(perr.destination), perr.reason),
        }
    }

    fn boxed(&self) -> Box<dyn Protocol> {
        Box::new(self.clone())
    }
}

fn node(settings: &Settings, address: Ipv4Addr, seed: u64) -> Hwmp {
    Hwmp::new(settings.clone(), RoutingSetup { first_kbps: KBPS, ..setup(address, seed) })
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A chain whose nodes are peers. Its log is empty.
fn chain(nodes: usize, settings: &Settings) -> Net {
    let mut net = Net::chain(nodes, settings);
    peer(&mut net);
    net
}

fn peer(net: &mut Net) {
    net.run_for(ms(3_000));
    net.log.clear();
}

fn via(net: &Net, node: usize, dst: usize) -> Option<IpAddr> {
    net.routers[node].next_hop(net.now, address(dst).into()).map(|(_, via)| via)
}

fn count(net: &Net, part: &str) -> usize {
    net.lines(part).count()
}

#[test]
fn neighbours_open_and_confirm_a_peering_once_a_beacon_was_heard() {
    let mut net = Net::chain(2, &Settings::default());
    net.run_for(ms(3_000));
    assert!(count(&net, "beacon with 1 peers") >= 2, "{}", net.log);
    assert_eq!([count(&net, "open"), count(&net, "confirm")], [2, 2], "{}", net.log);
}

#[test]
fn a_node_that_is_not_heard_gets_no_peer_and_is_asked_four_times() {
    // The second hears the first, and its frames are lost.
    let mut net = Net::new(2, &Settings { beacon_interval: ms(4_000), ..Settings::default() }, 1);
    net.connect_one_way(0, 1);
    net.run_for(ms(3_900));
    let opens: Vec<_> = net.lines("open").filter(|line| line.contains(" 1 to 0")).collect();
    assert_eq!(opens.len(), 4, "{}", net.log);
    assert_eq!(count(&net, "close for 56"), 1, "{}", net.log);
}

#[test]
fn a_full_node_takes_no_more_peers_and_its_beacons_say_so() {
    let mut net = Net::new(4, &Settings { max_peer_links: 2, ..Settings::default() }, 1);
    (1..4).for_each(|other| net.connect(0, other));
    net.run_for(ms(20_000));
    assert!(count(&net, " 0 to all: beacon with 2 peers") > 0);
    assert_eq!(count(&net, " 0 to all: beacon with 3 peers"), 0);
}

#[test]
fn strangers_are_not_believed() {
    let mut router = node(&Settings::default(), address(0), 1);
    let perr = Frame::Perr(Perr { ttl: 9, destination: address(5), sn: 9, reason: selection::UNREACHABLE });
    let preq = Frame::Preq(request(address(1), address(0)));
    for frame in [perr, preq] {
        hear(&mut router, Instant::ZERO, 1, &frame.bytes());
        let refused = RoutingOrder::Dropped { reason: DropReason::RoutingRefused, id: 0 };
        let order = router.poll_order(Instant::ZERO).map(|order| format!("{order:?}"));
        assert_eq!(order, Some(format!("{refused:?}")));
    }
}

fn request(originator: Ipv4Addr, target: Ipv4Addr) -> Preq {
    Preq {
        hop_count: 0,
        ttl: 31,
        id: 1,
        originator,
        originator_sn: 1,
        lifetime: 4_882,
        metric: 0,
        target_only: false,
        target,
        target_sn: 0,
    }
}

/// Makes a made-up neighbour a peer.
fn befriend(router: &mut Hwmp, now: Instant, from: usize) {
    let theirs = frames::Peering { own: from as u16, peer: 0, reason: 0 };
    hear(router, now, from, &Frame::Open(theirs).bytes());
    let ours = router.peers.identity((LINK, address(from)));
    hear(router, now, from, &Frame::Confirm(frames::Peering { peer: ours, ..theirs }).bytes());
}

fn hear(router: &mut Hwmp, now: Instant, from: usize, message: &[u8]) {
    let control = ControlMessage {
        link: LINK,
        from: Some(address(from).into()),
        cast: hopwise_core::Cast::ToAll,
        src: address(from).into(),
        dst: Ipv4Addr::BROADCAST.into(),
        hop_limit: 1,
        message,
    };
    router.handle_control(&Cx { now, endpoint: &Ends::default() }, &control);
}

#[test]
fn a_request_crosses_a_chain_and_the_reply_brings_the_path() {
    let mut net = chain(5, &Settings::default());
    net.send(0, 4);
    net.run_for(ms(1_000));
    assert_eq!(net.delivered, [(0, 4)], "{}", net.log);
    let requests: Vec<_> = net.lines("request of 0 for 4").map(|line| &line[line.len() - 20..]).collect();
    assert_eq!(requests.len(), 4, "{}", net.log);
    assert!(net.log.contains("reply of 4 for 0 hops 3"), "{}", net.log);
    assert_eq!(via(&net, 0, 4), Some(address(1).into()));
    assert_eq!(via(&net, 4, 0), Some(address(3).into()), "and the way back");
    assert!(net.path_events.contains(&(0, address(4).into(), PathEvent::RouteFound)));
    assert_eq!(net.routers[0].counts(), (1, 0));
}

#[test]
fn the_path_of_the_least_airtime_is_taken_and_not_that_of_the_fewest_hops() {
    for (kbps, expected) in [(1_000, 1), (11_000, 2)] {
        let mut net = Net::new(3, &Settings::default(), 1);
        for (a, b) in [(0, 1), (1, 2), (0, 2)] {
            net.connect(a, b);
        }
        net.kbps.extend([((0, 2), kbps), ((2, 0), kbps)]);
        peer(&mut net);
        // Frames teach the rates. Peering has sent some, and these are more.
        for _ in 0..200 {
            net.send(0, 2);
            net.send(2, 0);
            net.run_for(ms(100));
        }
        assert_eq!(via(&net, 0, 2), Some(address(expected).into()), "{kbps}");
    }
}

#[test]
fn a_path_in_use_is_asked_for_again_before_its_end_and_loses_no_packet() {
    let mut net = chain(3, &Settings::default());
    net.send(0, 2);
    net.run_for(ms(1_000));
    net.log.clear();
    for _ in 0..200 {
        net.send(0, 2);
        net.run_for(ms(100));
        assert!(via(&net, 0, 2).is_some());
    }
    assert_eq!(net.delivered.len(), 201);
    let refreshes = count(&net, " 0 to all: request of 0 for 2 itself");
    assert!((4..=6).contains(&refreshes), "one each 4 s or so: {refreshes}\n{}", net.log);
    net.run_for(ms(6_000));
    assert_eq!(via(&net, 0, 2), None, "nobody has asked for it");
}

#[test]
fn a_node_with_a_path_answers_for_the_target_unless_it_is_told_not_to() {
    let mut net = chain(4, &Settings::default());
    net.send(1, 3);
    net.run_for(ms(500));
    net.log.clear();
    net.send(0, 3);
    net.run_for(ms(500));
    assert_eq!(count(&net, " 1 to 0: reply of 3 for 0 hops 0"), 1, "{}", net.log);
    assert_eq!(count(&net, " 1 to all: request of 0 for 3 itself"), 1, "{}", net.log);
}

#[test]
fn a_search_without_an_answer_waits_twice_as_long_each_time_and_drops_what_waits() {
    let mut net = chain(2, &Settings::default());
    (0..3).for_each(|_| net.send(0, 7));
    let begin = net.now.as_millis();
    net.run_for(ms(9_000));
    let times: Vec<u64> = net
        .lines("0 to all: request of 0 for 7")
        .map(|line| {
            line.split_whitespace().next().and_then(|ms| ms.parse::<u64>().ok()).expect("a time") - begin
        })
        .collect();
    assert_eq!(times, [0, 100, 300, 700, 1_500]);
    assert_eq!(net.delivered, []);
}

#[test]
fn the_oldest_packet_gives_way_where_too_many_wait_for_a_path() {
    let mut router = node(&Settings::default(), address(0), 1);
    let cx = Cx { now: Instant::ZERO, endpoint: &Ends::default() };
    let (src, dst) = (address(0).into(), address(5).into());
    let mut send = |id| {
        let packet = RoutedPacket { src, dst, from: None, hop_limit: 31, id, packet: &[1, 2, 3] };
        assert_eq!(router.route(&cx, &packet), RoutingVerdict::Keep);
    };
    (1..=u64::from(FRAME_QUEUE) + 1).for_each(&mut send);
    let orders: Vec<_> = std::iter::from_fn(|| router.poll_order(Instant::ZERO)).collect();
    let dropped = |order: &RoutingOrder| {
        matches!(order, RoutingOrder::Dropped { reason: DropReason::RouteBufferFull, id: 1 })
    };
    assert_eq!(orders.iter().filter(|order| dropped(order)).count(), 1, "{orders:?}");
}

#[test]
fn a_neighbour_that_is_gone_takes_its_paths_along_and_an_error_tells_the_source() {
    let mut net = chain(4, &Settings::default());
    for _ in 0..40 {
        net.send(0, 3);
        net.run_for(ms(20));
    }
    net.cut(2, 3);
    net.log.clear();
    for _ in 0..60 {
        net.send(0, 3);
        net.run_for(ms(20));
    }
    assert!(net.log.contains(" 2 to all: error for 3 reason 63"), "{}", net.log);
    assert!(net.log.contains(" 1 to all: error for 3 reason 63"), "{}", net.log);
    assert!(net.path_events.contains(&(0, address(3).into(), PathEvent::RouteFailed)));
    assert_eq!(via(&net, 0, 3), None);
}

#[test]
fn another_way_is_taken_when_the_first_one_breaks() {
    let mut net = Net::new(4, &Settings::default(), 1);
    for (a, b) in [(0, 1), (1, 3), (0, 2), (2, 3)] {
        net.connect(a, b);
    }
    peer(&mut net);
    net.send(0, 3);
    net.run_for(ms(500));
    let used = if via(&net, 0, 3) == Some(address(1).into()) { 1 } else { 2 };
    net.cut(used, 3);
    for _ in 0..100 {
        net.send(0, 3);
        net.run_for(ms(50));
    }
    assert_eq!(via(&net, 0, 3), Some(address(3 - used).into()));
}

#[test]
fn a_packet_that_a_router_cannot_pass_on_is_told_to_the_one_before() {
    let mut net = chain(3, &Settings::default());
    net.send(0, 2);
    net.run_for(ms(500));
    // The router loses its path, and nobody hears the error.
    net.lost_permille = 1_000;
    net.cut(1, 2);
    for _ in 0..40 {
        net.send(1, 2);
        net.run_for(ms(20));
    }
    net.log.clear();
    net.send(0, 2);
    net.run_for(ms(100));
    assert!(net.log.contains(" 1 to 0: error for 2 reason 62"), "{}", net.log);
}

#[test]
fn a_node_that_starts_again_is_found_again() {
    let mut net = chain(3, &Settings::default());
    for _ in 0..10 {
        net.send(0, 2);
        net.run_for(ms(100));
    }
    net.reboot(2);
    net.delivered.clear();
    net.run_for(ms(9_000));
    net.send(0, 2);
    net.run_for(ms(2_000));
    assert_eq!(net.delivered, [(0, 2)], "{}", net.log);
}

#[test]
fn errors_leave_at_a_bounded_rate() {
    let mut net = Net::new(6, &Settings::default(), 1);
    (1..6).for_each(|other| net.connect(0, other));
    peer(&mut net);
    for other in 2..6 {
        net.send(1, other);
    }
    net.run_for(ms(500));
    net.isolate(1);
    net.log.clear();
    for _ in 0..30 {
        (2..6).for_each(|other| net.send(other, 1));
        net.run_for(ms(10));
    }
    let errors = count(&net, " 0 to all: error");
    assert!((1..=4).contains(&errors), "{errors}\n{}", net.log);
}

/// Any frame of few nodes, few numbers, and few identities.
fn any_frame(below: &mut dyn FnMut(usize) -> usize) -> Frame {
    let peering = frames::Peering { own: below(4) as u16, peer: below(4) as u16, reason: 0 };
    let preq = Preq {
        ttl: below(3) as u8,
        originator: address(below(16)),
        originator_sn: below(9) as u32,
        metric: below(1 << 20) as u32,
        target_only: below(2) == 0,
        ..request(address(1), address(below(16)))
    };
    let perr = Perr { ttl: 2, destination: address(below(16)), sn: below(9) as u32, reason: 63 };
    let frames = [
        Frame::Beacon { interval: 1_000, peers: 0, accepts: below(4) > 0 },
        Frame::Open(peering),
        Frame::Confirm(peering),
        Frame::Close(peering),
        Frame::Preq(preq),
        Frame::Perr(perr),
    ];
    frames[below(frames.len())]
}

#[test]
fn any_bytes_are_taken() {
    let settings = Settings::default();
    let mut router = node(&settings, address(0), 1);
    router.paths = Paths::new(8);
    let (mut chance, mut now, mut most) = (Net::new(0, &settings, 7), Instant::ZERO, 0);
    for _ in 0..20_000 {
        let mut below = |bound| chance.below(bound);
        if below(64) == 0 {
            befriend(&mut router, now, 1 + below(4));
        }
        let from = 1 + below(15);
        let mut message = any_frame(&mut below).bytes();
        if below(8) == 0 {
            message.truncate(below(60));
        }
        if below(4) == 0 {
            let at = below(message.len().max(1));
            message.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= below(256) as u8);
        }
        hear(&mut router, now, from, &message);
        now += ms(below(40) as u64);
        router.handle_timeout(&Cx { now, endpoint: &Ends::default() });
        while router.poll_order(now).is_some() {}
        most = most.max((0..16).filter(|node| router.paths.get(address(*node)).is_some()).count());
    }
    assert!((1..=8).contains(&most), "the table has room for eight: {most}");
}
