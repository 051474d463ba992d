//! Scenarios that every protocol with routes on demand has to pass.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::trace::DropReason;
use hopwise_core::wire::IpHeader;
use hopwise_core::{Cast, Instant, QueueClass};

use super::{Ends, LINK, Net, Protocol, address, behind};
use crate::on_demand::OnDemand;
use crate::routing::{ControlMessage, Cx, RoutedPacket, Routing, RoutingOrder, RoutingVerdict};

pub(crate) fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

pub(crate) fn reasons(orders: &[RoutingOrder]) -> Vec<DropReason> {
    let reason = |order: &RoutingOrder| match order {
        RoutingOrder::Dropped { reason, .. } => Some(*reason),
        _ => None,
    };
    orders.iter().filter_map(reason).collect()
}

/// Node 0 sends to 4 over 1 and 3, with 2 and 5 as alternatives between these two.
pub(crate) fn two_ways_around_the_middle(protocol: &dyn Protocol) -> Net {
    let mut net = Net::new(6, protocol, 1);
    (1..5).for_each(|node| net.connect(node - 1, node));
    net.connect(1, 5);
    net.connect(5, 3);
    net.send(0, 4);
    net.run_for(seconds(2));
    assert_eq!(net.delivered, [(0, 4)]);
    net
}

/// Signed messages find a route. Repeated messages and unsigned ones are refused.
pub(crate) fn signed_messages_are_heard_once(protocol: &dyn Protocol, unsigned: &[u8]) {
    let mut net = Net::chain(4, protocol);
    net.send(0, 3);
    net.run_for(seconds(1));
    assert_eq!(net.delivered, [(0, 3)], "{}", net.log);
    let said: Vec<_> = net.packets.iter().map(|packet| packet[28..].to_vec()).collect();
    let (from, others) = (address(0).into(), address(1));
    for message in said.iter().map(Vec::as_slice).chain([unsigned]) {
        for (cast, dst) in [(Cast::ToAll, Ipv4Addr::BROADCAST), (Cast::ToUs, others)] {
            let control = ControlMessage {
                link: LINK,
                from: Some(from),
                cast,
                src: from,
                dst: dst.into(),
                hop_limit: 255,
                message,
            };
            let cx = Cx { now: net.now, endpoint: &net.ends[1] };
            net.routers[1].handle_control(&cx, &control);
            let orders: Vec<_> = std::iter::from_fn(|| net.routers[1].poll_order(net.now)).collect();
            assert!(
                matches!(orders[..], [RoutingOrder::Dropped { reason: DropReason::RoutingRefused, .. }]),
                "{orders:?}"
            );
        }
    }
}

/// The middle node in use leaves; the log holds the messages about it.
pub(crate) fn another_way_is_found(net: &mut Net) {
    let (_, middle) = net.routers[1].next_hop(net.now, address(4).into()).expect("a route");
    net.isolate(if middle == address(2) { 2 } else { 5 });
    net.log.clear();
    send_often(net, 30, (0, 4), Duration::from_millis(100));
    assert!(net.delivered.len() > 25, "{} of 31 arrived\n{}", net.delivered.len(), net.log);
    net.assert_free_of_loops();
}

/// A chain of six is cut in its middle while it is used, and mended ten seconds later.
pub(crate) fn a_partition_heals(protocol: &dyn Protocol) {
    let mut net = Net::chain(6, protocol);
    net.send(0, 5);
    net.run_for(seconds(2));
    net.cut(2, 3);
    for _ in 0..20 {
        send_often(&mut net, 1, (0, 5), Duration::from_millis(500));
        net.assert_free_of_loops();
    }
    let hops =
        net.log.lines().filter_map(|line| line.split(" hops ").nth(1)?.split(' ').next()?.parse().ok());
    assert!(hops.max() <= Some(6_u32), "{}", net.log);
    assert_eq!(net.delivered.len(), 1);
    net.connect(2, 3);
    // The search under way is in its longest wait.
    send_often(&mut net, 60, (0, 5), Duration::from_millis(500));
    assert!(net.delivered.len() > 10, "{}", net.delivered.len());
}

/// The last of a chain of three leaves while 0 sends to it, and no link layer reports it. `tells_that_it_is_gone` is
/// the message that 1 then sends. Returns the log of earlier messages.
pub(crate) fn silence_is_noticed(protocol: &dyn Protocol, tells_that_it_is_gone: &str) -> String {
    let mut net = Net::chain(3, protocol);
    net.tells = false;
    send_often(&mut net, 50, (0, 2), Duration::from_millis(100));
    assert_eq!(net.delivered.len(), 50);
    let before = net.log.clone();
    net.isolate(2);
    let cut_at = net.now;
    while !net.log.contains(tells_that_it_is_gone) {
        send_often(&mut net, 1, (0, 2), Duration::from_millis(100));
        assert!(net.now.since(cut_at) < seconds(4), "{}", net.log);
    }
    before
}

/// Strangers ping node 0 from made-up addresses, `rate` times a second, and it answers each ping.
fn flood(net: &mut Net, rate: u64, time: Duration, addresses: u32) {
    for n in 0..rate * time.as_secs() {
        let made_up = Ipv4Addr::from_bits(0x0900_0000 + n as u32 % addresses);
        net.send_packet(0, made_up, 1, &[0; 8]);
        net.run_for(Duration::from_secs(1) / rate as u32);
    }
}

/// A destination three hops away is found during answers to made-up addresses, few repeated ones and ever new ones. Its
/// packet is not lost either.
pub(crate) fn a_destination_is_found_beside_a_flood_of_made_up_ones(protocol: &dyn Protocol) {
    for (rate, addresses) in [(10, 246), (20, 246), (100, 246), (600, u32::MAX)] {
        let mut net = Net::chain(4, protocol);
        flood(&mut net, rate, seconds(30), addresses);
        net.send(0, 3);
        flood(&mut net, rate, seconds(4), addresses);
        assert_eq!(net.delivered, [(0, 3)], "{rate} a second");
        let asked = |made_up: &str| net.lines(made_up).count();
        assert!(asked(" 0 to all: RREQ") <= 10 * 35, "{rate} a second: {}", asked(" 0 to all: RREQ"));
    }
}

/// Answers of programs over UDP look like the beginning of an exchange. The program that sends ten a second of them
/// still finds its own destination some seconds later.
pub(crate) fn a_destination_is_found_beside_others_that_are_wanted_as_much(protocol: &dyn Protocol) {
    let mut net = Net::chain(4, protocol);
    for n in 0..300 {
        net.send_packet(0, Ipv4Addr::from_bits(0x0900_0000 + n), 17, &[0; 8]);
        // Not in step with the turns, of which every other one is a retry's.
        if n >= 200 && n % 7 == 0 {
            net.send_packet(0, address(3), 17, &[0; 8]);
        }
        net.run_for(Duration::from_millis(100));
        if !net.delivered.is_empty() {
            assert!(net.delivered.starts_with(&[(0, 3)]) && n < 260, "found after {n}");
            return;
        }
    }
    panic!("not found\n{}", net.log);
}

/// During a flood of answers to made-up addresses a packet finds its route within four tries, one a second. Both the
/// flood and the packet come from the router or from the node behind it.
pub(crate) fn each_finds_its_destination_beside_floods_of_others(protocol: &dyn Protocol) {
    let segment = |flags| [vec![0; 13], vec![flags], vec![0; 6]].concat();
    let (reply, reset, syn) = ((1, vec![0; 8]), (6, segment(0x04)), (6, segment(0x02)));
    let datagram = |port: u8| (17, vec![0, port, 0, 9, 0, 8, 0, 0]);
    let (router, node) = (address(0), behind(address(0)));
    let mut floods = Vec::new();
    for flood in [reply, reset, datagram(53)] {
        floods.extend([router, node].map(|src| vec![(src, flood.clone())]));
    }
    floods.push(floods.concat());
    for flood in floods {
        for (src, wanted) in
            [(node, syn.clone()), (node, datagram(40)), (router, datagram(40)), (router, syn.clone())]
        {
            let mut net = Net::chain(4, protocol);
            for n in 0..13 * 300 {
                if n >= 9 * 300 && n % 300 == 0 {
                    net.send_packet_of(0, src, address(3), &wanted);
                }
                let (flood_src, answer) = &flood[n % flood.len()];
                let made_up = Ipv4Addr::from_bits(0x0900_0000 + n as u32);
                net.send_packet_of(0, *flood_src, made_up, answer);
                net.run_for(seconds(1) / 300);
            }
            assert!(net.delivered.contains(&(0, 3)), "{src}: {wanted:?} beside {flood:?}");
        }
    }
}

/// A program finds a new destination within four tries, one a second, while strangers name made-up addresses 300 times
/// a second. It answers each of them, or they send in its node's name from ever other ports. The program is on the
/// router `fresh()`, or on the served node 20.
pub(crate) fn a_program_finds_its_destination_beside_what_strangers_name<R: OnDemand>(
    fresh: impl Fn() -> R,
    protocol: &dyn Protocol,
) {
    let datagram = |from: usize, port: usize, to: Ipv4Addr| {
        let mut packet = Vec::new();
        IpHeader::plain(address(from).into(), to.into(), 17).emit(8, &mut packet);
        packet.extend([(port >> 8) as u8, port as u8, 0, 9, 0, 8, 0, 0]);
        packet
    };
    for (from, is_forged) in [(0, false), (20, false), (20, true)] {
        let (mut router, mut asked) = (fresh(), String::new());
        for n in 0..13 * 300 {
            let now = Instant::from_secs(1) + seconds(1) / 300 * n;
            // The log names nodes by their last byte.
            let made_up = Ipv4Addr::new(10, 1, (n / 200) as u8, (n % 200) as u8 + 50);
            let (src, dst) = if is_forged { (address(from), made_up) } else { (made_up, address(from)) };
            router.note_came(now, src, dst);
            let port = if is_forged { 1_000 + n as usize } else { 53 };
            let mut packets = vec![(made_up, datagram(from, port, made_up))];
            if n >= 9 * 300 && n % 300 == 0 {
                packets.push((address(3), datagram(from, 53, address(3))));
            }
            let cx = Cx { now, endpoint: &Ends::default() };
            for (dst, packet) in &packets {
                let (src, dst) = (address(from).into(), (*dst).into());
                router.route(&cx, &RoutedPacket { src, dst, from: None, hop_limit: 64, id: 0, packet });
            }
            router.handle_timeout(&cx);
            while let Some(order) = router.poll_order(now) {
                if let RoutingOrder::Send { class: QueueClass::Routing, packet, .. } = order {
                    asked += &protocol.describe(packet[8], &packet[28..]);
                    asked.push('\n');
                }
            }
        }
        let wanted = format!("RREQ {from}>3 ");
        assert!(asked.contains(&wanted), "{from}, is_forged: {is_forged}\n{asked}");
    }
}

/// A stranger's data to unknown destinations, more than there may be errors.
pub(crate) fn data_to_made_up_addresses(router: &mut dyn Routing, now: Instant) {
    for n in 0..100 {
        let (src, dst) = (address(66).into(), IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0100 + n)));
        let packet = RoutedPacket { src, dst, from: Some(src), hop_limit: 9, id: 0, packet: &[] };
        let verdict = router.route(&Cx { now, endpoint: &Ends::default() }, &packet);
        assert_eq!(verdict, RoutingVerdict::Drop(DropReason::NoRoute));
    }
}

/// Moves, losses, one-way links, restarts and packets of nine nodes, drawn from a seed.
pub(crate) fn no_loop_forms(protocol: &dyn Protocol, seed: u64) {
    const NODES: usize = 9;
    let mut net = Net::new(NODES, protocol, seed);
    net.lost_permille = [0, 50, 200][(seed % 3) as usize];
    net.tells = !seed.is_multiple_of(5);
    net.stir();
    net.heal();
}

fn send_often(net: &mut Net, times: usize, (from, to): (usize, usize), every: Duration) {
    for _ in 0..times {
        net.send(from, to);
        net.run_for(every);
    }
}
