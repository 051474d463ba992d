//! Source routes, and the way back.

use super::*;

#[test]
fn completed_source_route_gives_the_way_back() {
    for (kind, number) in [(RouteKind::Loose, 131), (RouteKind::Strict, 137)] {
        let option = [number, 11, 12, 198, 51, 100, 1, 198, 51, 100, 2];
        let bytes = with_options(&option, b"payload");
        let view = IpView::parse(&bytes).unwrap();
        let route = view.source_route.unwrap();
        assert_eq!(route.kind(), kind);
        assert_eq!(route.hops(), [address(2), address(1)]);
        assert_eq!(view.payload, b"payload");
    }
}

#[test]
fn sender_recorded_as_a_hop_is_no_hop_of_the_way_back() {
    let option = [131, 11, 12, 192, 0, 2, 1, 198, 51, 100, 2];
    let bytes = with_options(&option, b"");
    let route = IpView::parse(&bytes).unwrap().source_route.unwrap();
    assert_eq!(route.hops(), [address(2)]);
    let only_the_sender = with_options(&[131, 7, 8, 192, 0, 2, 1], b"");
    assert_eq!(IpView::parse(&only_the_sender).map(|view| view.source_route), Ok(None));
    let empty = with_options(&[131, 3, 4], b"");
    assert_eq!(IpView::parse(&empty).map(|view| view.source_route), Ok(None));
}

#[test]
fn source_route_with_hops_left_is_not_ours_to_forward() {
    for pointer in [4, 8] {
        let option = [131, 11, pointer, 198, 51, 100, 1, 198, 51, 100, 2];
        assert_eq!(IpView::parse(&with_options(&option, b"")), Err(DropReason::SourceRoute));
    }
}

#[test]
fn packet_on_a_source_route_goes_to_the_first_hop_and_lists_the_rest() {
    let route = SourceRoute::new(RouteKind::Loose, &[address(1), address(2), address(3)]).unwrap();
    let header = IpHeader { source_route: Some(&route), ..header(v4(1), v4(2)) };
    assert_eq!(header.len(), 36);
    let bytes = packet(&header, b"payload");
    assert_eq!(bytes.len(), 36 + 7);
    assert_eq!(bytes[16..20], address(1).octets());
    let option = [131, 15, 4, 198, 51, 100, 2, 198, 51, 100, 3, 192, 0, 2, 2, 0];
    assert_eq!(bytes[20..36], option);
}

/// The changes that the hops make to a packet, so that the other end sees its route.
fn travel(packet: &[u8]) -> Vec<u8> {
    mended(packet, |bytes| {
        let stations = usize::from(bytes[21] - 3) / 4;
        for index in 0..stations {
            let place = 23 + 4 * index;
            let hop = <[u8; 4]>::try_from(&bytes[16..20]).unwrap();
            bytes.copy_within(place..place + 4, 16);
            bytes[place..place + 4].copy_from_slice(&hop);
            bytes[22] += 4;
        }
    })
}

#[test]
fn answer_goes_back_by_the_route_that_the_packet_came() {
    for count in 1..=SourceRoute::MAX_HOPS as u8 {
        let there: Vec<Ipv4Addr> = (1..=count).map(address).collect();
        let route = SourceRoute::new(RouteKind::Strict, &there).unwrap();
        let bytes = packet(&IpHeader { source_route: Some(&route), ..header(v4(1), v4(2)) }, b"x");
        let arrived = travel(&bytes);
        let view = IpView::parse(&arrived).unwrap();
        assert_eq!((view.src, view.dst), (v4(1), v4(2)));
        let back: Vec<Ipv4Addr> = there.into_iter().rev().collect();
        assert_eq!(view.source_route.as_deref(), SourceRoute::new(RouteKind::Strict, &back).as_ref());
    }
}

#[test]
fn route_has_one_to_nine_hops() {
    assert_eq!(SourceRoute::new(RouteKind::Loose, &[]), None);
    assert!(SourceRoute::new(RouteKind::Loose, &[address(1); 9]).is_some());
    assert_eq!(SourceRoute::new(RouteKind::Loose, &[address(1); 10]), None);
}
