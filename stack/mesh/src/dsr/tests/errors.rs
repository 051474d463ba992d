//! Links that are lost: errors, saved packets, and other ways.

use super::*;

#[test]
fn who_cannot_pass_a_packet_on_tells_its_source_and_saves_the_packet() {
    // 0 - 1 - 2 - 4, and 1 - 3 - 4
    let mut net = Net::new(5, &plain(), 1);
    [(0, 1), (1, 2), (2, 4), (1, 3), (3, 4)].into_iter().for_each(|(a, b)| net.connect(a, b));
    net.send(1, 4);
    net.run_for(ms(300));
    net.send(0, 4);
    net.run_for(ms(300));
    net.send(0, 4); // Among two routes the one in use stays.
    net.run_for(ms(300));
    let first = lines_with(&net, "0 to 4: [1,").last().map(|line| line.contains("[1,2]")).unwrap();
    let (lost, other) = if first { (2, 3) } else { (3, 2) };
    net.cut(1, lost);
    net.send(0, 4);
    net.run_for(ms(300));
    assert_eq!(net.delivered.len(), 4, "{}", net.log);
    assert!(net.log.contains(&format!("1 to 0: [] ERR 1-{lost} for 0")), "{}", net.log);
    let salvaged = format!("1 to 4: [1,{other}] salvaged 1 data");
    assert_eq!(lines_with(&net, &salvaged).len(), 1, "{}", net.log);
}

#[test]
fn a_packet_is_saved_so_often_and_no_more() {
    let saves = |salvage: u8| {
        let mut dsr = router_at(address(1), Settings { max_salvage_count: 2, ..plain() }, 1);
        dsr.cache.add(Instant::ZERO, &[address(3), address(4)], RouteOrigin::Overheard);
        let (is_first_external, is_last_external) = (false, false);
        let addresses = vec![address(0), address(1), address(2)];
        let route = SourceRoute { is_first_external, is_last_external, salvage, segments_left: 1, addresses };
        let mut source = router_at(address(9), plain(), 1);
        let mut packet = source.packet(address(4), 9, vec![DsrOption::Route(route)]);
        packet[20] = 6;
        let parcel = Parcel::read(&packet).unwrap().unwrap();
        dsr.recover(&Cx { now: Instant::ZERO, endpoint: &Ends::default() }, 1, &parcel) != SalvageResult::Lost
    };
    assert_eq!([saves(1), saves(2), saves(15)], [true, false, false]);
}

#[test]
fn one_loss_is_told_to_each_source_once_and_in_all_not_too_often() {
    let mut dsr = router_at(address(1), plain(), 1);
    let ends = Ends::default();
    let mut lose = |source: usize| {
        let packet = on_its_way(&[source, 1, 2], 2);
        let cx = Cx { now: Instant::ZERO, endpoint: &ends };
        let routed = RoutedPacket {
            src: address(source).into(),
            dst: address(2).into(),
            from: Some(address(source).into()),
            hop_limit: 9,
            id: 1,
            packet: &packet,
        };
        let _ = dsr.on_undelivered(&cx, (LINK, address(2).into()), &routed);
        let orders = std::iter::from_fn(|| dsr.poll_order(Instant::ZERO));
        orders.filter(|order| matches!(order, RoutingOrder::Send { .. })).count()
    };
    assert_eq!([lose(3), lose(3), lose(4)], [1, 0, 1]);
    assert_eq!((5..60).map(lose).sum::<usize>(), RERR_RATELIMIT as usize - 2);
}

#[test]
fn an_error_takes_the_link_out_of_every_cache_that_hears_it() {
    let mut listener = router_at(address(9), Settings::default(), 1);
    hand_in(&mut listener, address(1), Cast::Overheard, &on_its_way(&[0, 1, 2, 3], 2));
    assert_eq!(listener.cache.hops(Instant::ZERO, address(3)), Some(3));
    let error = RouteError {
        salvage: 0,
        src: address(2),
        dst: address(0),
        problem: RouteErrorReason::Unreachable(address(3)),
    };
    let mut sender = router_at(address(2), Settings::default(), 1);
    let route = [address(1), address(0)];
    let Some(RoutingOrder::Send { packet, .. }) = sender.control(&route, vec![DsrOption::Error(error)])
    else {
        panic!("a packet")
    };
    hand_in(&mut listener, address(2), Cast::Overheard, &packet);
    assert_eq!(listener.cache.hops(Instant::ZERO, address(3)), None);
}

#[test]
fn the_next_request_spreads_the_last_error() {
    let mut net = Net::chain(4, &Settings { reply_from_cache: false, ..Settings::default() });
    net.send(0, 3);
    net.run_for(ms(200));
    net.cut(2, 3);
    net.send(0, 3);
    net.run_for(ms(100));
    net.send(0, 3);
    net.run_for(ms(100));
    assert!(net.log.contains("0 to all: REQ 3 [] ttl 1 ERR 2-3 for 0"), "{}", net.log);
}

#[test]
fn a_source_that_loses_its_neighbour_keeps_the_packet_and_asks_again() {
    // 0 - 1 - 3, and 0 - 2 - 3
    let mut net = Net::new(4, &plain(), 1);
    [(0, 1), (1, 3)].into_iter().for_each(|(a, b)| net.connect(a, b));
    net.send(0, 3);
    net.run_for(ms(200));
    net.cut(0, 1);
    [(0, 2), (2, 3)].into_iter().for_each(|(a, b)| net.connect(a, b));
    net.send(0, 3);
    net.run_for(ms(300));
    assert_eq!(net.delivered, [(0, 3), (0, 3)], "{}", net.log);
    assert!(lines_with(&net, "0 to 3: [2] data").len() == 1, "{}", net.log);
}

#[test]
fn a_link_that_works_one_way_only_is_found_out_and_gone_around() {
    // Frames of 0 reach 1, but not the reverse; 0 - 2 - 1 works.
    let mut net = Net::new(3, &plain(), 1);
    net.connect_one_way(0, 1);
    net.connect(0, 2);
    net.connect(2, 1);
    net.send(0, 1);
    net.run_for(Duration::from_secs(3));
    assert_eq!(net.delivered, [(0, 1)], "{}", net.log);
    assert!(lines_with(&net, "data").iter().all(|line| line.ends_with("[2] data")), "{}", net.log);
}

#[test]
fn packets_that_wait_for_a_lost_neighbour_look_for_another_way_at_once() {
    let mut dsr = router_at(address(1), plain(), 1);
    dsr.cache.add(Instant::ZERO, &[address(3), address(4)], RouteOrigin::Overheard);
    let packet = on_its_way(&[0, 1, 2, 4], 2);
    let mut packet = packet;
    packet[20] = 6;
    let routed = RoutedPacket {
        src: address(0).into(),
        dst: address(4).into(),
        from: Some(address(0).into()),
        hop_limit: 9,
        id: 1,
        packet: &packet,
    };
    let verdict = dsr.route(&Cx { now: Instant::ZERO, endpoint: &Ends::default() }, &routed);
    let RoutingVerdict::Wrapped { via, packet, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(via, NextHop::Neighbour(address(3).into()));
    let parcel = Parcel::read(&packet).unwrap().unwrap();
    assert_eq!(parcel.walk().unwrap().unwrap().nodes, [address(1), address(3), address(4)]);
}
