//! Refused messages, and limits on how often messages leave.

use super::*;

#[test]
fn what_comes_from_off_the_link_or_from_no_host_is_refused() {
    let mut alone = Alone::new(settings());
    let bytes = bytes_of(&AodvMessage::Rreq(request(1, 2, 9, None)), &[]);
    let mut refused = |from: [u8; 4], by: [u8; 4], bytes: &[u8]| {
        let control = ControlMessage {
            link: LINK,
            from: Some(by.into()),
            cast: Cast::ToAll,
            src: from.into(),
            dst: Ipv4Addr::BROADCAST.into(),
            hop_limit: 9,
            message: bytes,
        };
        alone.router.handle_control(&Cx { now: alone.now, endpoint: &Ends::default() }, &control);
        reasons(&alone.orders())
    };
    assert_eq!(refused([10, 9, 9, 9], [10, 0, 0, 3], &bytes), [DropReason::RoutingRefused]);
    assert_eq!(refused([224, 0, 0, 1], [224, 0, 0, 1], &bytes), [DropReason::RoutingRefused]);
    assert_eq!(refused([10, 0, 0, 1], [10, 0, 0, 1], &bytes), [DropReason::RoutingRefused], "our own");
    assert_eq!(refused([10, 0, 0, 3], [10, 0, 0, 3], &[1, 2, 3]), [DropReason::RoutingMalformed]);
    let far = AodvMessage::Rreq(Rreq { hop_count: 255, ..request(1, 2, 9, None) });
    assert_eq!(refused([10, 0, 0, 3], [10, 0, 0, 3], &bytes_of(&far, &[])), [DropReason::RoutingMalformed]);
}

#[test]
fn a_flood_of_requests_is_passed_on_at_a_bounded_rate_and_fills_no_memory() {
    let mut alone = Alone::new(Settings { most_routes: 100, ..settings() });
    let mut passed = 0;
    for id in 0..5_000 {
        let orders = alone.hear(2, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(request(id, 2, 9, None)), &[]));
        passed += messages(&orders).len();
    }
    assert_eq!(passed, 20);
    for origin in 0..5_000 {
        let rreq = Rreq { origin: Ipv4Addr::from_bits(0x0a01_0000 + origin), ..request(1, 2, 9, None) };
        alone.hear(2, Cast::ToAll, &bytes_of(&AodvMessage::Rreq(rreq), &[]));
    }
    assert!(alone.router.routes(alone.now).len() <= 100);
}

#[test]
fn requests_and_errors_of_our_own_are_rate_limited() {
    let mut net = Net::new(1, &settings(), 1);
    (10..60).for_each(|dst| net.send(0, dst));
    net.run(Instant::from_millis(900), &mut |_| {});
    assert_eq!(net.lines("RREQ").count(), 10);
    net.run(Instant::from_millis(1_900), &mut |_| {});
    assert_eq!(net.lines("RREQ").count(), 20);
}

#[test]
fn a_hello_says_how_often_it_comes() {
    let mut alone = Alone::new(Settings { hello: true, ..settings() });
    let hello = Rrep {
        is_repair: false,
        wants_ack: false,
        prefix_size: 0,
        hop_count: 0,
        dst: address(2),
        dst_seq: 4,
        origin: address(2),
        lifetime_ms: 2_000,
    };
    let mut extension = Vec::new();
    Extension { kind: HELLO_INTERVAL, data: &100_u32.to_be_bytes() }.emit(&mut extension);
    alone.hear(2, Cast::ToAll, &bytes_of(&AodvMessage::Rrep(hello), &extension));
    assert_eq!(alone.router.links.next(&settings()), Some(alone.now + Duration::from_millis(200)));
    let foreign = Rrep { dst: address(5), ..hello };
    let orders = alone.hear(2, Cast::ToAll, &bytes_of(&AodvMessage::Rrep(foreign), &[]));
    assert_eq!(reasons(&orders), [DropReason::RoutingRefused], "nobody says hello for another");
}
