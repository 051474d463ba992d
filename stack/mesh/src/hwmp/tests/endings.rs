//! Searches without room or answer, errors, and peerings that end.

use super::*;

/// Sends a packet of the router itself.
fn send_own(router: &mut Hwmp, now: Instant, dst: Ipv4Addr) -> RoutingVerdict {
    let (src, dst) = (address(0).into(), dst.into());
    let packet = RoutedPacket { src, dst, from: None, hop_limit: 31, id: 1, packet: &[1, 2, 3] };
    router.route(&Cx { now, endpoint: &Ends::default() }, &packet)
}

fn drops(router: &mut Hwmp, now: Instant) -> usize {
    let orders = std::iter::from_fn(|| router.poll_order(now));
    orders.filter(|order| matches!(order, RoutingOrder::Dropped { reason: DropReason::NoRoute, .. })).count()
}

#[test]
fn a_packet_whose_request_finds_no_room_is_dropped_and_a_search_goes_on_later() {
    let settings = Settings { preq_min_interval: ms(1_000), ..Settings::default() };
    let (mut router, now) = (node(&settings, address(0), 1), Instant::ZERO);
    let dst = |n: u32| Ipv4Addr::from_bits(0x0a01_0000 + n);
    // The first request leaves at once, and 64 wait.
    for n in 0..65 {
        assert_eq!(send_own(&mut router, now, dst(n)), RoutingVerdict::Keep);
    }
    assert_eq!(drops(&mut router, now), 0);
    send_own(&mut router, now, dst(65));
    assert_eq!(drops(&mut router, now), 1, "there is no room for its request");
    // The first search has its retry between other searches, and all end.
    let mut dropped = 0;
    while let Some(now) = router.poll_timeout().filter(|at| *at < Instant::from_secs(600)) {
        router.handle_timeout(&Cx { now, endpoint: &Ends::default() });
        dropped += drops(&mut router, now);
        assert!(router.poll_timeout() > Some(now), "a timer stays due");
    }
    assert_eq!(dropped, 65);
}

#[test]
fn a_path_that_is_lost_again_while_its_search_ends_is_asked_for_anew() {
    let mut net = chain(3, &Settings { min_discovery_timeout: ms(400), ..Settings::default() });
    net.send(0, 2);
    net.run_for(ms(100));
    assert_eq!(net.delivered, [(0, 2)]);
    // An error comes before the end of the answered search, and a packet after it.
    let perr = Frame::Perr(Perr { ttl: 9, destination: address(2), sn: 0, reason: 63 });
    let control = ControlMessage {
        link: LINK,
        from: Some(address(1).into()),
        cast: hopwise_core::Cast::ToAll,
        src: address(1).into(),
        dst: Ipv4Addr::BROADCAST.into(),
        hop_limit: 1,
        message: &perr.bytes(),
    };
    net.routers[0].handle_control(&Cx { now: net.now, endpoint: &Ends::default() }, &control);
    assert_eq!(via(&net, 0, 2), None);
    net.send(0, 2);
    net.run_for(ms(1_000));
    assert_eq!(net.delivered, [(0, 2), (0, 2)], "{}", net.log);
}

#[test]
fn an_error_counts_from_the_next_hop_alone_and_only_if_it_is_newer() {
    let mut net = chain(3, &Settings::default());
    net.send(0, 2);
    net.run_for(ms(300));
    let mut error = |from: usize, sn, ttl| {
        let perr = Frame::Perr(Perr { ttl, destination: address(2), sn, reason: 63 }).bytes();
        let control = ControlMessage {
            link: LINK,
            from: Some(address(from).into()),
            cast: hopwise_core::Cast::ToAll,
            src: address(from).into(),
            dst: Ipv4Addr::BROADCAST.into(),
            hop_limit: 1,
            message: &perr,
        };
        net.routers[0].handle_control(&Cx { now: net.now, endpoint: &Ends::default() }, &control);
        via(&net, 0, 2).is_some()
    };
    let kept = [error(2, 0, 9), error(1, 1, 9), error(1, 0, 1), error(1, 0, 9)];
    assert_eq!(kept, [true, true, true, false]);
}

#[test]
fn the_end_of_a_peering_takes_paths_and_waiting_packets_along() {
    let mut router = node(&Settings::default(), address(0), 1);
    let now = Instant::ZERO;
    befriend(&mut router, now, 1);
    let preq = Preq { originator: address(5), ..request(address(5), address(0)) };
    hear(&mut router, now, 1, &Frame::Preq(preq).bytes());
    let neighbour = (LINK, address(1));
    assert_eq!(
        send_own(&mut router, now, address(5)),
        RoutingVerdict::Forward { link: LINK, via: NextHop::Neighbour(address(1).into()) }
    );
    router.paths.lose(now, neighbour);
    assert_eq!(send_own(&mut router, now, address(5)), RoutingVerdict::Keep);
    hear(&mut router, now, 1, &Frame::Close(frames::Peering { own: 1, peer: 0, reason: 52 }).bytes());
    assert_eq!(drops(&mut router, now), 1);
    assert!(router.paths.get(address(5)).is_none());
}

#[test]
fn a_peer_that_is_silent_for_long_is_none_any_more() {
    let mut net = chain(2, &Settings { plink_timeout: ms(30_000), ..Settings::default() });
    net.isolate(1);
    net.run_for(ms(120_000));
    assert!(net.lines(" 0 to 1: close for 52").count() == 1, "{}", net.log);
    assert!(net.lines(" 0 to all: beacon with 0 peers").count() > 0);
}
