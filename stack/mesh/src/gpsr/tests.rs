use std::time::Duration;

use hopwise_core::Cast;
use hopwise_core::wire::IpHeader;

use super::header::PerimeterState;
use super::*;
use crate::on_demand::testing::{Ends, LINK, Net, Protocol, address, setup, short};

/// The positions of nodes, in metres, and their settings.
#[derive(Clone, Debug)]
struct Field {
    positions: Vec<(i32, i32)>,
    settings: Settings,
}

#[derive(Debug)]
struct Standing(Vec<(i32, i32)>);

impl Positions for Standing {
    fn locate(&mut self, _now: Instant, node: Ipv4Addr) -> Option<Point> {
        let (x, y) = *self.0.get(usize::from(node.octets()[3]) - 1)?;
        Some(Point { x: 100 * x, y: 100 * y })
    }
}

impl Protocol for Field {
    fn port(&self) -> u16 {
        0
    }

    fn header(&self) -> Option<u8> {
        Some(PROTOCOL)
    }

    fn router(&self, setup: RoutingSetup) -> Box<dyn Routing> {
        let positions = Box::new(Standing(self.positions.clone()));
        Box::new(Gpsr::new(self.settings.clone(), RoutingSetup { positions, ..setup }))
    }

    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    fn data_hop_limit(&self) -> u8 {
        self.settings.data_hop_limit
    }

    fn describe(&self, ttl: u8, message: &[u8]) -> String {
        let (header, _) = Header::parse(message).expect("what we write is a header");
        match header.body {
            Body::Beacon => "beacon".to_owned(),
            Body::Data { around: None, .. } => format!("greedy ttl {ttl}"),
            Body::Data { around: Some(around), .. } => {
                let (a, b) = around.first_edge;
                format!("around from {}-{} ttl {ttl}", short(a.into()), short(b.into()))
            }
        }
    }

    fn boxed(&self) -> Box<dyn Protocol> {
        Box::new(self.clone())
    }
}

impl Field {
    fn new(positions: &[(i32, i32)]) -> Field {
        Field { positions: positions.to_vec(), settings: Settings::default() }
    }

    fn node(&self, address: Ipv4Addr, seed: u64) -> Gpsr {
        let positions = Box::new(Standing(self.positions.clone()));
        Gpsr::new(self.settings.clone(), RoutingSetup { positions, ..setup(address, seed) })
    }

    fn is_in_range(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.positions[a], self.positions[b]);
        (a.0 - b.0).pow(2) + (a.1 - b.1).pow(2) <= 250 * 250
    }

    /// A network where all nodes within 250 m are neighbours and have sent a beacon.
    fn net(&self, seed: u64) -> Net {
        let mut net = Net::new(self.positions.len(), self, seed);
        for a in 0..self.positions.len() {
            (0..a).filter(|b| self.is_in_range(a, *b)).for_each(|b| net.connect(a, b));
        }
        net.run_for(Duration::from_secs(3));
        net
    }
}

/// Sends a packet from 0 to `to`. Returns its hops, and whether it arrived.
fn way(net: &mut Net, to: usize) -> (Vec<String>, bool) {
    let (before, delivered) = (net.log.len(), net.delivered.len());
    net.send(0, to);
    net.run_for(Duration::from_secs(1));
    let lines = net.log[before..].lines().filter(|line| !line.contains("beacon"));
    let said = lines.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "));
    (said.collect(), net.delivered.len() > delivered)
}

#[test]
fn beacons_come_between_half_and_three_halves_of_their_interval() {
    let mut net = Net::new(1, &Field::new(&[(0, 0)]), 3);
    net.run_for(Duration::from_secs(300));
    let at = |line: &str| line.split_whitespace().next().and_then(|ms| ms.parse::<u64>().ok());
    let times: Vec<u64> = net.log.lines().filter_map(at).collect();
    assert!(times.len() > 180, "{}", times.len());
    assert!(times.windows(2).all(|pair| (750..=2_250).contains(&(pair[1] - pair[0]))), "{times:?}");
}

#[test]
fn a_packet_goes_to_whoever_is_closest_to_its_end() {
    let field = Field::new(&[(0, 0), (150, 100), (200, 0), (400, 0), (600, 0)]);
    let (way, arrived) = way(&mut field.net(1), 4);
    assert!(arrived);
    assert_eq!(way, ["0 to 4: greedy ttl 64", "2 to 4: greedy ttl 63", "3 to 4: greedy ttl 62"]);
}

/// A void between 0 and 6, and an arch of nodes around it.
const VOID: [(i32, i32); 7] = [(0, 0), (0, 200), (150, 360), (350, 380), (550, 340), (640, 160), (640, 0)];

#[test]
fn a_packet_goes_around_where_nobody_is_closer_and_greedily_again_when_somebody_is() {
    let (way, arrived) = way(&mut Field::new(&VOID).net(1), 6);
    assert!(arrived, "{way:?}");
    assert_eq!(way[0], "0 to 6: around from 0-1 ttl 64");
    assert!(way[1].contains("around") && way.last().is_some_and(|line| line.contains("greedy")), "{way:?}");
    let nodes: Vec<_> = way.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(nodes, ["0", "1", "2", "3", "4", "5"]);
}

#[test]
fn without_the_perimeter_a_packet_ends_where_nobody_is_closer() {
    let mut field = Field::new(&VOID);
    field.settings.perimeter = false;
    assert_eq!(way(&mut field.net(1), 6), (vec![], false));
}

#[test]
fn both_planar_graphs_lead_around_a_void_through_a_crowd() {
    // Four nodes for each one of the arch.
    let crowd = |(x, y): &(i32, i32)| [(*x, *y), (x + 20, y + 15), (x - 25, y + 30), (x + 5, y + 45)];
    let mut positions = vec![VOID[0]];
    positions.extend(VOID[1..6].iter().flat_map(crowd));
    positions.push(VOID[6]);
    for planar in [Planar::Gabriel, Planar::RelativeNeighbourhood] {
        let mut field = Field::new(&positions);
        field.settings.planar = planar;
        let (way, arrived) = way(&mut field.net(1), positions.len() - 1);
        assert!(arrived, "{planar:?}: {way:?}");
        assert!(way.iter().any(|line| line.contains("around")), "{planar:?}: {way:?}");
    }
}

#[test]
fn an_end_that_cannot_be_reached_is_given_up_after_one_tour() {
    // Node 6 is out of range of all nodes.
    let mut positions = VOID.to_vec();
    positions[6] = (2_000, 0);
    let (way, arrived) = way(&mut Field::new(&positions).net(1), 6);
    assert!(!arrived);
    assert!((5..=20).contains(&way.len()), "{way:?}");
    // In a net of three the tour is there and back.
    let (short, _) = self::way(&mut Field::new(&[(0, 0), (-200, 0), (-400, 0), (900, 0)]).net(1), 3);
    let nodes: Vec<_> = short.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(nodes, ["0", "1", "2", "1"]);
}

#[test]
fn a_lost_neighbour_is_gone_at_once_and_the_packet_goes_to_the_next_best() {
    let field = Field::new(&[(0, 0), (150, 100), (200, 0), (390, 40)]);
    let mut net = field.net(1);
    net.cut(0, 2);
    let (way, arrived) = way(&mut net, 3);
    assert!(arrived, "{way:?}");
    // A hop less for the attempt that failed.
    assert_eq!(way, ["0 to 3: greedy ttl 64", "0 to 3: greedy ttl 63", "1 to 3: greedy ttl 62"]);
    let mut strict = field.clone();
    strict.settings.resend = false;
    let mut net = strict.net(1);
    net.cut(0, 2);
    assert!(!self::way(&mut net, 3).1);
    assert!(self::way(&mut net, 3).1, "the neighbour was forgotten all the same");
}

#[test]
fn packets_that_wait_for_a_lost_neighbour_look_for_another_one() {
    let field = Field::new(&[(0, 0), (150, 100), (200, 0), (390, 40)]);
    let mut gpsr = field.node(address(0), 1);
    let ends = Ends::default();
    let cx = Cx { now: Instant::ZERO, endpoint: &ends };
    hear_beacon(&mut gpsr, &field, 1);
    hear_beacon(&mut gpsr, &field, 2);
    let verdict = gpsr.route(&cx, &routed(&data(0, 3), 0, 3));
    let RoutingVerdict::Wrapped { via, packet, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(via, NextHop::Neighbour(address(2).into()));
    gpsr.neighbours.lose(address(2));
    let verdict = gpsr.route(&cx, &routed(&packet, 0, 3));
    let RoutingVerdict::Wrapped { via, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(via, NextHop::Neighbour(address(1).into()));
    gpsr.neighbours.lose(address(1));
    assert_eq!(gpsr.route(&cx, &routed(&packet, 0, 3)), RoutingVerdict::Drop(DropReason::NoRoute));
}

fn data(from: usize, to: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    IpHeader::plain(address(from).into(), address(to).into(), 253).emit(0, &mut packet);
    packet
}

fn routed(packet: &[u8], from: usize, to: usize) -> RoutedPacket<'_> {
    let (src, dst) = (address(from).into(), address(to).into());
    RoutedPacket { src, dst, from: None, hop_limit: 64, id: 1, packet }
}

fn beacon_of(field: &Field, node: usize) -> Vec<u8> {
    let mut sender = field.node(address(node), 1);
    sender.send_beacon(Instant::ZERO);
    match sender.poll_order(Instant::ZERO) {
        Some(RoutingOrder::Send { packet, .. }) => packet,
        other => panic!("{other:?}"),
    }
}

fn hear_beacon(gpsr: &mut Gpsr, field: &Field, node: usize) {
    hand_in(gpsr, node, Cast::ToAll, &beacon_of(field, node));
}

fn hand_in(gpsr: &mut Gpsr, from: usize, cast: Cast, packet: &[u8]) -> Option<DropReason> {
    let (now, ends) = (Instant::ZERO, Ends::default());
    let from = Some(address(from).into());
    let rx = Rx { link: LINK, from, cast, segment_bytes: None, packet };
    if cast == Cast::Overheard {
        gpsr.on_overheard(now, &rx);
    } else {
        gpsr.handle_wrapped(&Cx { now, endpoint: &ends }, &rx);
    }
    match gpsr.poll_order(now) {
        Some(RoutingOrder::Dropped { reason, .. }) => Some(reason),
        _ => None,
    }
}

#[test]
fn whoever_is_heard_is_a_neighbour_until_it_has_been_silent_for_four_and_a_half_intervals() {
    let field = Field::new(&[(0, 0), (100, 0), (200, 0)]);
    let mut gpsr = field.node(address(0), 1);
    hear_beacon(&mut gpsr, &field, 1);
    // A packet between other nodes shows its sender's position as well.
    let mut other = field.node(address(2), 1);
    hear_beacon(&mut other, &field, 1);
    let cx = Cx { now: Instant::ZERO, endpoint: &Ends::default() };
    let RoutingVerdict::Wrapped { packet, .. } = other.route(&cx, &routed(&data(2, 1), 2, 1)) else {
        panic!("a way")
    };
    hand_in(&mut gpsr, 2, Cast::Overheard, &packet);
    assert_eq!(gpsr.neighbours.len(), 2);
    assert_eq!(gpsr.neighbours.next(), Some(Instant::from_millis(6_750)));
    gpsr.neighbours.forget(Instant::from_millis(6_750));
    assert_eq!(gpsr.neighbours.len(), 0);
}

#[test]
fn a_node_that_sends_data_need_not_say_where_it_is() {
    let field = Field::new(&[(0, 0), (100, 0)]);
    let mut net = field.net(1);
    let before = net.log.matches("beacon").count();
    for _ in 0..200 {
        net.send(0, 1);
        net.run_for(Duration::from_millis(100));
    }
    let of_0 = net.lines(" 0 to all").count();
    assert!(of_0 <= 3, "{of_0} beacons of a node that sent all the time");
    assert!(net.log.matches("beacon").count() > before + 8, "the other one sent none");
}

#[test]
fn messages_that_lie_are_refused_and_neighbours_take_bounded_memory() {
    let mut field = Field::new(&[(0, 0), (100, 0), (200, 0)]);
    field.settings.most_neighbours = 2;
    let mut gpsr = field.node(address(0), 1);
    let beacon = beacon_of(&field, 1);
    assert_eq!(hand_in(&mut gpsr, 2, Cast::ToAll, &beacon), Some(DropReason::RoutingRefused), "from another");
    assert_eq!(hand_in(&mut gpsr, 0, Cast::ToAll, &beacon_of(&field, 0)), Some(DropReason::RoutingRefused));
    let mut spoilt = beacon.clone();
    spoilt[20] = 9;
    assert_eq!(hand_in(&mut gpsr, 1, Cast::ToAll, &spoilt), Some(DropReason::RoutingMalformed));
    assert_eq!(hand_in(&mut gpsr, 1, Cast::ToAll, &beacon), None);
    for node in 2..40 {
        gpsr.neighbours.heard(address(node), LINK, Point::default(), Instant::FAR);
    }
    assert_eq!(gpsr.neighbours.len(), 2);
    // A packet of another node does not go on without hops.
    let around = PerimeterState {
        entered: Point::default(),
        face: Point::default(),
        first_edge: (address(0), address(1)),
    };
    let body = Body::Data { destination: Point { x: 90_000, y: 0 }, around: Some(around) };
    let header = Header { next: 253, sender: Point { x: 100, y: 0 }, body };
    let mut packet = Vec::new();
    let ip = IpHeader { hop_limit: 1, ..IpHeader::plain(address(1).into(), address(9).into(), PROTOCOL) };
    ip.emit(header.bytes().len(), &mut packet);
    packet.extend(header.bytes());
    assert_eq!(hand_in(&mut gpsr, 1, Cast::ToUs, &packet), Some(DropReason::HopLimit));
}

#[test]
fn in_connected_fields_every_packet_arrives_within_its_hops() {
    for seed in 0..20 {
        let mut chance = Net::new(0, &Field::new(&[]), seed);
        let positions: Vec<_> =
            (0..30).map(|_| (chance.below(1_200) as i32, chance.below(900) as i32)).collect();
        let mut field = Field::new(&positions);
        field.settings.data_hop_limit = 255;
        if seed % 2 == 1 {
            field.settings.planar = Planar::RelativeNeighbourhood;
        }
        let mut net = field.net(seed);
        let reached = reached(&field);
        for to in 1..positions.len() {
            let (way, arrived) = way(&mut net, to);
            assert_eq!(
                arrived, reached[to],
                "seed {seed}: from {:?} to {:?}: {way:#?}",
                positions[0], positions[to]
            );
            assert!(way.len() < 200, "seed {seed}: {way:?}");
        }
    }
}

/// For each node, whether a path leads to it from the first.
fn reached(field: &Field) -> Vec<bool> {
    let mut reached = vec![false; field.positions.len()];
    reached[0] = true;
    let mut edge = vec![0];
    while let Some(at) = edge.pop() {
        for (other, is_reached) in reached.iter_mut().enumerate() {
            if !*is_reached && field.is_in_range(at, other) {
                *is_reached = true;
                edge.push(other);
            }
        }
    }
    reached
}

#[test]
fn in_fields_that_change_no_packet_goes_on_for_ever() {
    for seed in 0..8 {
        let mut chance = Net::new(0, &Field::new(&[]), seed);
        let positions: Vec<_> =
            (0..20).map(|_| (chance.below(1_000) as i32, chance.below(800) as i32)).collect();
        let field = Field::new(&positions);
        let mut net = field.net(seed);
        for _ in 0..40 {
            let (a, b) = (net.below(20), net.below(20));
            if net.below(2) == 0 {
                net.cut(a, b);
            } else if a != b {
                net.connect(a, b);
            }
            if net.below(6) == 0 {
                net.reboot(a);
            }
            let before = net.packets.len();
            let (from, to) = (net.below(20), net.below(20));
            if from != to {
                net.send(from, to);
            }
            net.run_for(Duration::from_millis(1_200));
            let is_data = |packet: &&Vec<u8>| packet[20] != 1;
            let sent = net.packets[before..].iter().filter(is_data).count();
            assert!(sent <= 64, "seed {seed}: {sent} times sent");
        }
    }
}
