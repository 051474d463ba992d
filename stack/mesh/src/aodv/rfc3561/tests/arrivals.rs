//! Requests and replies carry the news of what has arrived at a node.

use super::*;

#[test]
fn what_has_arrived_travels_with_the_request_and_with_the_reply() {
    for key in [None, Some(crate::aodv::Key::new([3; 32]))] {
        let mut net = Net::chain(3, &Settings { ack_seq: true, key, ..settings() });
        net.ends[2].0.push((address(0).into(), (40_000, 5_001), Seq(77)));
        net.send(0, 2);
        net.run_for(seconds(1));
        let of_ack = |(node, peer, event): &(usize, IpAddr, PathEvent)| {
            matches!(event, PathEvent::AckSeq(_)).then_some((*node, *peer, *event))
        };
        let expected = (0, IpAddr::V4(address(2)), PathEvent::AckSeq(Seq(77)));
        assert_eq!(net.path_events.iter().filter_map(of_ack).collect::<Vec<_>>(), [expected]);
    }
}

/// A peer, the ports (the peer's, ours) and the number that has arrived there.
type Arrival = (IpAddr, Option<(u16, u16)>, Seq);

/// The arrivals among the orders.
fn arrivals(orders: &[RoutingOrder]) -> Vec<Arrival> {
    let arrival = |order: &RoutingOrder| match order {
        RoutingOrder::Tell { peer, ports, event: PathEvent::AckSeq(seq), .. } => Some((*peer, *ports, *seq)),
        _ => None,
    };
    orders.iter().filter_map(arrival).collect()
}

/// The first message among a router's orders, as bytes.
fn bytes(orders: &[RoutingOrder]) -> &[u8] {
    let sent = orders.iter().find_map(|order| match order {
        RoutingOrder::Send { packet, .. } => Some(&packet[28..]),
        _ => None,
    });
    sent.expect("something is said")
}

/// Two neighbours, with connections behind the addresses that they serve.
#[test]
fn what_has_arrived_at_an_address_that_is_served_travels_in_its_name() {
    let with_key = |key: u8| {
        let key = Some(crate::aodv::Key::new([key; 32]));
        Settings { ack_seq: true, key, ..settings() }
    };
    for (key, is_believed) in [(3, true), (4, false)] {
        let mut near = Alone::at((0, 20), with_key(3));
        let mut far = Alone::at((1, 21), with_key(key));
        near.ends.0.push((address(21).into(), (5_001, 40_000), Seq(99)));
        far.ends.0.push((address(20).into(), (40_000, 5_001), Seq(77)));
        let (src, dst) = (IpAddr::V4(address(20)), IpAddr::V4(address(21)));
        let packet = RoutedPacket { src, dst, from: None, hop_limit: 64, id: 1, packet: &[] };
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
