use hopwise_core::agent::PathEvent;

use super::originators::Originator;
use super::*;
use crate::on_demand::testing::{Ends, LINK, Net, Protocol, address, setup, short};

impl Protocol for Settings {
    fn port(&self) -> u16 {
        PORT
    }

    fn router(&self, setup: RoutingSetup) -> Box<dyn Routing> {
        Box::new(Batman::new(self.clone(), setup))
    }

    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    fn data_hop_limit(&self) -> u8 {
        64
    }

    fn describe(&self, ttl: u8, message: &[u8]) -> String {
        assert_eq!(ttl, 1, "no router passes the packet itself on");
        let ogms = message::read_all(message).expect("what we write is whole");
        let one = |ogm: &Ogm| {
            let (origin, previous) = (short(ogm.originator.into()), short(ogm.previous.into()));
            let direct = if ogm.is_direct_link { " direct" } else { "" };
            let not_best = if ogm.is_not_best { " not best" } else { "" };
            format!(
                "{origin} by {previous} seq {} ttl {} quality {}{direct}{not_best}",
                ogm.seq, ogm.ttl, ogm.quality
            )
        };
        ogms.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    fn boxed(&self) -> Box<dyn Protocol> {
        Box::new(self.clone())
    }
}

fn node(settings: &Settings, address: Ipv4Addr, seed: u64) -> Batman {
    Batman::new(settings.clone(), setup(address, seed))
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn via(net: &Net, node: usize, dst: usize) -> Option<IpAddr> {
    net.routers[node].next_hop(net.now, address(dst).into()).map(|(_, via)| via)
}

fn hops(net: &Net, node: usize, dst: usize) -> Option<u8> {
    net.routers[node].path(address(dst).into()).hops_to_peer.map(|(hops, _)| hops)
}

/// A router alone with made-up neighbours.
struct Alone {
    now: Instant,
    router: Batman,
    ends: Ends,
}

impl Alone {
    /// All neighbours repeat its messages.
    fn new(neighbours: &[usize], settings: &Settings) -> Alone {
        let router = node(settings, address(0), 1);
        let mut alone = Alone { now: Instant::ZERO, router, ends: Ends::default() };
        for seq in 1..=64 {
            alone.second();
            neighbours.iter().for_each(|neighbour| {
                alone.hear(*neighbour, *neighbour, seq, (50, 255));
                alone.echo(*neighbour);
            });
        }
        alone
    }

    fn second(&mut self) {
        self.now += secs(1);
        let cx = Cx { now: self.now, endpoint: &self.ends };
        self.router.send_own(self.now);
        self.router.handle_timeout(&cx);
        while self.router.poll_order(self.now).is_some() {}
    }

    fn echo(&mut self, neighbour: usize) {
        let seq = self.router.seq;
        let own = address(0);
        self.take(
            neighbour,
            &Ogm {
                is_not_best: false,
                is_direct_link: true,
                ttl: 49,
                seq,
                originator: own,
                previous: own,
                quality: 225,
            },
        );
    }

    /// A neighbour brings a message of an originator.
    fn hear(&mut self, neighbour: usize, originator: usize, seq: u16, (ttl, quality): (u8, u8)) {
        let ogm = Ogm {
            is_not_best: false,
            is_direct_link: false,
            ttl,
            seq,
            originator: address(originator),
            previous: address(originator),
            quality,
        };
        self.take(neighbour, &ogm);
    }

    fn take(&mut self, neighbour: usize, ogm: &Ogm) {
        let mut message = Vec::new();
        ogm.write(&mut message);
        self.take_bytes(neighbour, &message);
    }

    fn take_bytes(&mut self, neighbour: usize, message: &[u8]) {
        let control = ControlMessage {
            link: LINK,
            from: Some(address(neighbour).into()),
            cast: hopwise_core::Cast::ToAll,
            src: address(neighbour).into(),
            dst: Ipv4Addr::BROADCAST.into(),
            hop_limit: 1,
            message,
        };
        self.router.handle_control(&Cx { now: self.now, endpoint: &self.ends }, &control);
    }

    fn via(&self, dst: usize) -> Option<Ipv4Addr> {
        self.router.router_to(address(dst).into()).map(|(_, via)| via)
    }
}

#[test]
fn a_chain_finds_itself_and_packets_cross_it() {
    let mut net = Net::chain(5, &Settings::default());
    net.run_for(secs(12));
    assert_eq!(via(&net, 0, 4), Some(address(1).into()));
    assert_eq!(via(&net, 3, 0), Some(address(2).into()));
    assert_eq!([0, 1, 2, 3].map(|node| hops(&net, node, 4)), [Some(4), Some(3), Some(2), Some(1)]);
    assert!(
        net.path_events.contains(&(0, address(4).into(), PathEvent::RouteFound)),
        "{:?}",
        net.path_events
    );
    net.send(0, 4);
    net.send(4, 1);
    net.run_for(secs(1));
    assert_eq!(net.delivered, [(4, 1), (0, 4)]);
}

/// On one radio a hop costs twice its part: it cannot receive while it sends.
#[test]
fn the_quality_of_a_path_falls_by_two_parts_a_hop_and_its_ttl_by_one() {
    let mut net = Net::chain(4, &Settings::default());
    net.run_for(secs(80));
    net.log.clear();
    net.run_for(secs(2));
    for part in ["ttl 49 quality 198 direct", "ttl 48 quality 153", "ttl 47 quality 119"] {
        assert!(net.lines(part).count() > 0, "{part}\n{}", net.log);
    }
}

#[test]
fn a_link_that_works_one_way_is_not_used() {
    // 0 hears 1, which does not hear 0. The other way from 0 to 1 is over 2 and 3.
    let mut net = Net::new(4, &Settings::default(), 1);
    net.connect_one_way(1, 0);
    for (a, b) in [(0, 2), (2, 3), (3, 1)] {
        net.connect(a, b);
    }
    net.run_for(secs(30));
    assert_eq!(via(&net, 0, 1), Some(address(2).into()));
    assert_eq!(hops(&net, 0, 1), Some(3));
}

#[test]
fn another_way_is_taken_when_the_first_one_breaks() {
    // Two ways of two hops.
    let mut net = Net::new(4, &Settings::default(), 1);
    for (a, b) in [(0, 1), (1, 3), (0, 2), (2, 3)] {
        net.connect(a, b);
    }
    net.run_for(secs(30));
    let before = via(&net, 0, 3).expect("a way");
    let (used, other) = if before == IpAddr::V4(address(1)) { (1, 2) } else { (2, 1) };
    net.cut(used, 3);
    net.run_for(secs(10));
    assert_eq!(via(&net, 0, 3), Some(address(other).into()));
    net.send(0, 3);
    net.run_for(secs(1));
    assert_eq!(net.delivered, [(0, 3)]);
}

#[test]
fn a_node_that_starts_again_is_known_at_once() {
    let mut net = Net::chain(3, &Settings::default());
    net.run_for(secs(100));
    net.reboot(2);
    net.log.clear();
    net.run_for(secs(5));
    net.send(0, 2);
    net.send(2, 0);
    net.run_for(secs(1));
    assert_eq!(net.delivered, [(0, 2), (2, 0)], "{}", net.log);
}

#[test]
fn what_is_silent_is_forgotten_after_its_time() {
    let mut net = Net::chain(3, &Settings::default());
    net.run_for(secs(10));
    net.isolate(2);
    net.run_for(PURGE_TIMEOUT - secs(5));
    assert_eq!(via(&net, 0, 2), Some(address(1).into()), "counts alone are believed");
    net.run_for(secs(10));
    assert_eq!([via(&net, 0, 2), via(&net, 1, 2)], [None, None]);
    assert_eq!(net.routers[0].counts(), (0, 1));
    assert!(
        net.path_events.contains(&(0, address(2).into(), PathEvent::RouteFailed)),
        "{:?}",
        net.path_events
    );
}

#[test]
fn messages_share_packets_where_they_may() {
    let packets = |aggregated_ogms| {
        let mut net = Net::chain(6, &Settings { aggregated_ogms, ..Settings::default() });
        net.run_for(secs(60));
        let messages: usize = net.log.lines().map(|line| line.split("; ").count()).sum();
        (net.controls, messages as u64)
    };
    let (shared, alone) = (packets(true), packets(false));
    assert_eq!(alone.0, alone.1, "a message a packet");
    assert!(shared.0 < shared.1 * 9 / 10, "{shared:?}");
    assert!(shared.0 < alone.0, "{shared:?} {alone:?}");
}

#[test]
fn the_neighbour_with_the_best_path_is_the_router() {
    let mut alone = Alone::new(&[1, 2], &Settings::default());
    alone.hear(1, 5, 1, (48, 150));
    assert_eq!(alone.via(5), Some(address(1)));
    // A copy is ranked too.
    alone.hear(2, 5, 1, (48, 160));
    assert_eq!(alone.via(5), Some(address(2)));
    for seq in 2..=3 {
        alone.hear(1, 5, seq, (48, 150));
        alone.hear(2, 5, seq, (48, 150));
    }
    assert_eq!(alone.via(5), Some(address(2)), "the mean of five counts");
    for seq in 4..=9 {
        alone.hear(1, 5, seq, (48, 151));
    }
    assert_eq!(alone.via(5), Some(address(1)), "the other one brings nothing any more");
}

#[test]
fn between_equals_the_one_that_repeats_more_of_our_messages_is_the_router() {
    let mut alone = Alone::new(&[1, 2], &Settings::default());
    alone.second();
    alone.echo(2);
    // 251 of 255 over the first link, which has 63 echoes.
    alone.hear(1, 5, 1, (48, 151));
    assert_eq!(alone.via(5), Some(address(1)));
    alone.hear(2, 5, 1, (48, 148));
    assert_eq!(alone.via(5), Some(address(2)));
}

#[test]
fn messages_that_tell_nothing_are_ignored() {
    let mut alone = Alone::new(&[1, 2], &Settings::default());
    let good = Ogm {
        is_not_best: false,
        is_direct_link: false,
        ttl: 48,
        seq: 1,
        originator: address(5),
        previous: address(7),
        quality: 150,
    };
    for (neighbour, ogm) in [
        (1, Ogm { is_not_best: true, ..good }),
        (1, Ogm { previous: address(0), ..good }),
        (1, Ogm { quality: 0, ..good }),
        (1, Ogm { originator: Ipv4Addr::BROADCAST, ..good }),
        (3, good),
    ] {
        alone.take(neighbour, &ogm);
        assert_eq!(alone.via(5), None, "{neighbour} {ogm:?}");
    }
    alone.take(1, &good);
    assert_eq!(alone.via(5), Some(address(1)));
    // The second neighbour has it from our own router: packets would go back and forth.
    alone.take(2, &Ogm { seq: 2, previous: address(1), quality: 255, ..good });
    assert_eq!(alone.via(5), Some(address(1)));
    alone.take(2, &Ogm { seq: 2, quality: 255, ..good });
    assert_eq!(alone.via(5), Some(address(2)));
}

#[test]
fn any_bytes_are_taken() {
    let settings = Settings::default();
    let mut alone = Alone::new(&[1], &settings);
    alone.router.originators.most = 8;
    let (mut chance, mut most) = (Net::new(0, &settings, 7), 0);
    for _ in 0..20_000 {
        let mut below = |bound| chance.below(bound);
        let mut message = Vec::new();
        let ogm = Ogm {
            is_not_best: below(4) == 0,
            is_direct_link: below(2) == 0,
            ttl: below(256) as u8,
            seq: below(65_536) as u16,
            originator: address(below(16)),
            previous: address(below(16)),
            quality: below(256) as u8,
        };
        ogm.write(&mut message);
        message.truncate(if below(8) == 0 { below(18) } else { 18 });
        alone.take_bytes(below(16), &message);
        if below(8) == 0 {
            alone.second();
        }
        most = most.max((0..16).filter(|node| alone.via(*node).is_some()).count());
    }
    assert!((1..=8).contains(&most), "the table has room for eight: {most}");
}

#[test]
fn numbers_far_behind_are_a_restart_once_in_a_while_and_old_otherwise() {
    let from = (LINK, address(1));
    let mut originator = Originator::new(1_000);
    let mut at = |seconds, seq| originator.note(Instant::from_secs(seconds), from, seq, 50);
    assert_eq!([at(1, 1_000), at(2, 1_001), at(3, 1_001), at(3, 999)], {
        use Novelty::{New, Repeated};
        [New, New, Repeated, New]
    });
    assert_eq!(at(4, 1_001 - 64), Novelty::New, "a restart");
    assert_eq!(at(5, 1_001 - 128), Novelty::Old);
    assert_eq!(at(34, 1_001 - 128), Novelty::New, "another one");
    assert_eq!(at(35, 10_000), Novelty::New);
}
