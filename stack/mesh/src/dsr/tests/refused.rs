//! Options that ask for an acknowledgement, that are unknown, or that are refused.

use super::*;

#[test]
fn who_asks_for_an_acknowledgement_gets_one_and_its_request_goes_no_further() {
    let mut dsr = router_at(address(1), plain(), 1);
    let mut source = router_at(address(0), plain(), 1);
    let route = [address(1), address(2)];
    let Some(RoutingOrder::Send { packet, .. }) =
        source.control(&route, vec![DsrOption::AckRequest { id: 77 }])
    else {
        panic!("a packet")
    };
    hand_in(&mut dsr, address(0), Cast::ToUs, &packet);
    let sent: Vec<_> = std::iter::from_fn(|| dsr.poll_order(Instant::ZERO))
        .filter_map(|order| match order {
            RoutingOrder::Send { packet, .. } => {
                Some(Parcel::read(&packet).unwrap().unwrap().options().to_vec())
            }
            _ => None,
        })
        .collect();
    let ack = DsrOption::Ack { id: 77, src: address(1), dst: address(0) };
    assert!(sent[0].contains(&ack), "{sent:?}");
    assert!(matches!(sent[1][..], [DsrOption::Route(_)]), "{sent:?}");
}

#[test]
fn options_that_nobody_knows_are_refused_in_words_and_removed_as_their_kind_says() {
    let mut source = router_at(address(0), plain(), 1);
    let mut outcome = |kind: u8| {
        let mut dsr = router_at(address(1), plain(), 1);
        let unknown = DsrOption::Unknown { kind, data: vec![0, 0] };
        let route = [address(1), address(2)];
        let Some(RoutingOrder::Send { packet, .. }) = source.control(&route, vec![unknown]) else {
            panic!("a packet")
        };
        hand_in(&mut dsr, address(0), Cast::ToUs, &packet);
        let orders = std::iter::from_fn(|| dsr.poll_order(Instant::ZERO));
        let said = orders.filter_map(|order| match order {
            RoutingOrder::Send { packet, .. } => {
                let parcel = Parcel::read(&packet).unwrap().unwrap();
                Some((parcel.dst.octets()[3] - 1, parcel.options()[1..].to_vec()))
            }
            _ => None,
        });
        said.collect::<Vec<_>>()
    };
    assert!(matches!(&outcome(9)[..], [(2, options)] if options.len() == 1), "passed on as it came");
    assert!(matches!(&outcome(40)[..], [(2, options)] if options.is_empty()), "removed");
    assert!(outcome(100).is_empty(), "dropped");
    let [(0, error), (2, _)] = &outcome(130)[..] else { panic!("an error, and the packet") };
    let problem = RouteErrorReason::NotSupported { option: 130 };
    assert_eq!(
        error[..],
        [DsrOption::Error(RouteError { salvage: 0, src: address(1), dst: address(0), problem })]
    );
}

#[test]
fn messages_from_off_link_or_for_others_and_ways_in_a_circle_are_refused() {
    let mut dsr = router_at(address(1), Settings::default(), 1);
    let mut outcome = |from: usize, packet: &[u8]| {
        let own = hand_in(&mut dsr, address(from), Cast::ToUs, packet);
        let orders: Vec<_> = std::iter::from_fn(|| dsr.poll_order(Instant::ZERO)).collect();
        match orders[..] {
            [RoutingOrder::Dropped { reason, .. }] => Some(reason),
            [] | [RoutingOrder::Send { .. }] if own.is_none() => None,
            _ => panic!("{orders:?}"),
        }
    };
    let refused = Some(DropReason::RoutingRefused);
    assert_eq!(outcome(0, &on_its_way(&[0, 1, 2], 1)), None);
    assert_eq!(outcome(5, &on_its_way(&[0, 1, 2], 1)), refused, "its sender is another one");
    assert_eq!(outcome(0, &on_its_way(&[0, 3, 1, 2], 1)), refused, "it is not our turn");
    assert_eq!(outcome(0, &on_its_way(&[0, 1, 0], 1)), Some(DropReason::RoutingMalformed), "a circle");
    let mut short = on_its_way(&[0, 1, 2], 1);
    short[8] = 2;
    short[10..12].fill(0);
    let sum = hopwise_core::wire::Sum::default().add(&short[..20]).finish();
    short[10..12].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(outcome(0, &short), None);
    crate::shim::take_one_hop(&mut short);
    assert_eq!(outcome(0, &short), Some(DropReason::HopLimit));
}

#[test]
fn a_flood_of_requests_is_passed_on_so_often_and_takes_bounded_memory() {
    let mut dsr = router_at(address(1), Settings::default(), 1);
    for id in 0..2_000 {
        hear_request(&mut dsr, id, 200, &[]);
    }
    let later = Instant::from_secs(1);
    let passed = std::iter::from_fn(|| dsr.poll_order(later))
        .filter(|order| matches!(order, RoutingOrder::Send { .. }));
    assert_eq!(passed.count(), RELAY_RATELIMIT as usize);
    for n in 0..50_000_u32 {
        let route: Vec<_> = (0..4).map(|k| Ipv4Addr::from_bits(0x0b00_0000 + 4 * n + k)).collect();
        dsr.cache.add(Instant::ZERO, &route, RouteOrigin::Overheard);
        dsr.note_link(route[0], LinkId(7));
    }
    let most = dsr.settings.cache_asked + dsr.settings.cache_overheard;
    assert!(dsr.cache.len() <= most as usize && dsr.links.len() <= MOST);
}
