use proptest::prelude::*;

use super::*;

fn node(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn header(next: u8, options: Vec<DsrOption>) -> OptionsHeader {
    OptionsHeader { next, options }
}

fn route(segments_left: u8, salvage: u8, addresses: Vec<Ipv4Addr>) -> DsrOption {
    let (is_first_external, is_last_external) = (false, false);
    DsrOption::Route(SourceRoute { is_first_external, is_last_external, salvage, segments_left, addresses })
}

#[test]
fn a_request_is_written_as_in_section_6_2() {
    let request = RouteRequest { id: 0x1234, target: node(9), addresses: vec![node(2), node(3)] };
    let bytes = header(NOTHING, vec![DsrOption::Request(request)]).bytes();
    #[rustfmt::skip]
    assert_eq!(bytes, [
        59, 0, 0, 16,
        1, 14, 0x12, 0x34,
        10, 0, 0, 9,
        10, 0, 0, 2,
        10, 0, 0, 3,
    ]);
}

#[test]
fn a_reply_is_preceded_by_a_pad_so_that_addresses_stand_at_multiples_of_four() {
    let reply = RouteReply { is_last_external: true, addresses: vec![node(2), node(9)] };
    let bytes = header(NOTHING, vec![route(1, 0, vec![node(2)]), DsrOption::Reply(reply)]).bytes();
    #[rustfmt::skip]
    assert_eq!(bytes, [
        59, 0, 0, 20,
        96, 6, 0, 1,
        10, 0, 0, 2,
        224, 2, 9, 0x80,
        10, 0, 0, 2,
        10, 0, 0, 9,
    ]);
}

#[test]
fn an_error_names_both_ends_and_who_cannot_be_reached() {
    let problem = RouteErrorReason::Unreachable(node(4));
    let error = RouteError { salvage: 3, src: node(3), dst: node(1), problem };
    let bytes = header(NOTHING, vec![DsrOption::Error(error)]).bytes();
    #[rustfmt::skip]
    assert_eq!(bytes, [
        59, 0, 0, 16,
        3, 14, 1, 3,
        10, 0, 0, 3,
        10, 0, 0, 1,
        10, 0, 0, 4,
    ]);
}

#[test]
fn a_source_route_packs_salvage_and_segments_left_into_ten_bits() {
    let addresses = vec![node(2), node(3), node(4)];
    let all = SourceRoute {
        is_first_external: true,
        is_last_external: true,
        salvage: 0x0f,
        segments_left: 3,
        addresses: addresses.clone(),
    };
    let bytes = header(6, vec![DsrOption::Route(all)]).bytes();
    assert_eq!(bytes[..8], [6, 0, 0, 16, 96, 14, 0b1100_0011, 0b1100_0011]);
    let read = OptionsHeader::parse(&bytes).unwrap();
    assert_eq!((read.segments_at, read.len), (Some(7), 20));
    assert_eq!(read.header.route().map(|route| (route.salvage, route.segments_left)), Some((15, 3)));
}

#[test]
fn acknowledgements_are_written_as_in_sections_6_5_and_6_6() {
    let ack = DsrOption::Ack { id: 7, src: node(2), dst: node(1) };
    let bytes = header(NOTHING, vec![DsrOption::AckRequest { id: 7 }, ack]).bytes();
    assert_eq!(bytes[..8], [59, 0, 0, 16, 160, 2, 0, 7]);
    assert_eq!(bytes[8..], [32, 10, 0, 7, 10, 0, 0, 2, 10, 0, 0, 1]);
}

#[test]
fn what_is_not_known_is_ignored_removed_or_condemns_the_packet_as_its_kind_says() {
    let read = |kind: u8| OptionsHeader::parse(&[6, 0, 0, 4, kind, 2, 1, 2]).unwrap();
    let outcome = |kind: u8| {
        let read = read(kind);
        assert_eq!(read.has_removed, read.header.options.is_empty());
        (read.header.options.len(), read.unsupported, read.is_to_be_dropped)
    };
    assert_eq!(outcome(9), (1, None, false));
    assert_eq!(outcome(40), (0, None, false), "removed");
    assert_eq!(outcome(70), (1, None, false), "marked");
    assert_eq!(outcome(100), (1, None, true));
    assert_eq!(outcome(130), (1, Some(130), false));
    assert_eq!(outcome(230), (1, Some(230), true));
}

#[test]
fn lengths_that_lie_and_addresses_that_no_node_has_are_malformed() {
    for (what, bytes) in [
        ("nothing", &[][..]),
        ("cut short", &[59, 0, 0]),
        ("longer than the packet", &[59, 0, 0, 5, 224, 224, 224, 224]),
        ("flow state", &[59, 0x80, 0, 0]),
        ("an option without a length", &[59, 0, 0, 1, 1]),
        ("an option beyond the header", &[59, 0, 0, 4, 96, 6, 0, 0, 10, 0, 0, 1]),
        ("more segments than addresses", &[59, 0, 0, 4, 96, 2, 0, 1]),
        ("a piece of an address", &[59, 0, 0, 6, 96, 4, 0, 0, 10, 0]),
        ("a request without a target", &[59, 0, 0, 4, 1, 2, 0, 1]),
        ("a reply to nowhere", &[59, 0, 0, 4, 224, 2, 1, 0]),
        ("a broadcast address", &[59, 0, 0, 8, 96, 6, 0, 0, 255, 255, 255, 255]),
        ("a multicast address", &[59, 0, 0, 8, 96, 6, 0, 0, 224, 0, 0, 1]),
        ("a node twice", &[59, 0, 0, 12, 96, 10, 0, 0, 10, 0, 0, 1, 10, 0, 0, 1]),
        ("two source routes", &[59, 0, 0, 8, 96, 2, 0, 0, 96, 2, 0, 0]),
        ("an error that names nobody", &[59, 0, 0, 12, 3, 10, 1, 0, 10, 0, 0, 1, 10, 0, 0, 2]),
    ] {
        assert_eq!(OptionsHeader::parse(bytes).err(), Some(MalformedOptions), "{what}");
    }
}

fn addresses() -> impl Strategy<Value = Vec<Ipv4Addr>> {
    proptest::collection::btree_set(1_u32..0x00ff_ffff, 1..20)
        .prop_map(|set| set.into_iter().map(|n| Ipv4Addr::from_bits(0x0a00_0000 | n)).collect())
}

fn option() -> impl Strategy<Value = DsrOption> {
    prop_oneof![
        (any::<bool>(), addresses()).prop_map(|(is_last_external, addresses)| {
            DsrOption::Reply(RouteReply { is_last_external, addresses })
        }),
        (0_u8..16, addresses(), any::<u8>(), 0..3).prop_map(|(salvage, some, option, kind)| {
            let problem = match kind {
                0 => RouteErrorReason::Unreachable(some[0]),
                1 => RouteErrorReason::NotSupported { option },
                _ => RouteErrorReason::Other { kind: 2 },
            };
            DsrOption::Error(RouteError { salvage, src: some[0], dst: node(200), problem })
        }),
        any::<u16>().prop_map(|id| DsrOption::AckRequest { id }),
        any::<u16>().prop_map(|id| DsrOption::Ack { id, src: node(1), dst: node(2) }),
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(|data| DsrOption::Unknown { kind: 10, data }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_written_reads_the_same(
        next in any::<u8>(),
        id in any::<u16>(),
        hops in addresses(),
        left in 0_u8..20,
        others in proptest::collection::vec(option(), 0..5),
    ) {
        let left = left.min(hops.len() as u8);
        let mut options = vec![route(left, 1, hops.clone())];
        options.extend(others);
        options.push(DsrOption::Request(RouteRequest { id, target: node(77), addresses: hops }));
        let header = header(next, options);
        let bytes = header.bytes();
        prop_assert!(bytes.len().is_multiple_of(4));
        let read = OptionsHeader::parse(&bytes).unwrap();
        prop_assert_eq!(read.len, bytes.len());
        let at = read.segments_at.unwrap();
        prop_assert_eq!(bytes[at] & 0x3f, left);
        prop_assert_eq!(read.header, header);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..96)) {
        let _ = OptionsHeader::parse(&bytes);
    }

    /// Bytes that resemble a header reach deeper into the reader.
    #[test]
    fn no_spoilt_header_makes_the_reader_panic(
        hops in addresses(),
        others in proptest::collection::vec(option(), 0..4),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = header(6, [vec![route(0, 0, hops)], others].concat()).bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len() + 1));
        if let Ok(read) = OptionsHeader::parse(&bytes) {
            let again = read.header.bytes();
            prop_assert_eq!(OptionsHeader::parse(&again).unwrap().header, read.header);
        }
    }
}
