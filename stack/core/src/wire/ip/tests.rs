mod source_route;

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::wire::Sum;
use crate::wire::testing::{self, v4, v6};

const TCP: u8 = protocol::TCP;

fn header(src: IpAddr, dst: IpAddr) -> IpHeader<'static> {
    IpHeader {
        src,
        dst,
        protocol: TCP,
        hop_limit: 64,
        ecn: Ecn::Ect0,
        dscp: 10,
        dont_fragment: true,
        id: 0x1234,
        source_route: None,
    }
}

fn packet(header: &IpHeader<'_>, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    header.emit(payload.len(), &mut out);
    out.extend(payload);
    out
}

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, 51, 100, last)
}

/// Changes a valid IPv4 packet and corrects its checksum.
fn mended(packet: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut packet = packet.to_vec();
    change(&mut packet);
    let header_len = usize::from(packet[0] & 0xf) * 4;
    packet[10..12].fill(0);
    let checksum = Sum::default().add(&packet[..header_len.min(packet.len())]).finish();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

fn with_options(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut packet = packet(&header(v4(1), v4(2)), payload);
    let padded = options.len().next_multiple_of(4);
    let padding = vec![0; padded - options.len()];
    packet.splice(20..20, options.iter().copied().chain(padding));
    mended(&packet, |bytes| {
        bytes[0] += (padded / 4) as u8;
        let total_len = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&total_len.to_be_bytes());
    })
}

/// An IPv6 packet whose payload begins with extension headers; `first` is the first one's number.
fn with_extensions(first: u8, payload: &[u8]) -> Vec<u8> {
    packet(&IpHeader { protocol: first, ..header(v6(1), v6(2)) }, payload)
}

/// An extension header with options, padded with Pad1 to its length.
fn options_header(next: u8, options: &[u8]) -> Vec<u8> {
    let len = (2 + options.len()).next_multiple_of(8);
    let mut header = vec![next, (len / 8 - 1) as u8];
    header.extend(options);
    header.resize(len, 0);
    header
}

fn fragment_header(next: u8, offset: u16, more: bool) -> Vec<u8> {
    let [high, low] = (offset | u16::from(more)).to_be_bytes();
    vec![next, 0, high, low, 1, 2, 3, 4]
}

#[test]
fn ipv4_header_is_laid_out_as_in_rfc_791() {
    let bytes = packet(&header(v4(1), v4(2)), b"abc");
    assert_eq!(bytes[..10], [0x45, 10 << 2 | 2, 0, 23, 0x12, 0x34, 0x40, 0, 64, 6]);
    assert_eq!(bytes[12..20], [192, 0, 2, 1, 192, 0, 2, 2]);
}

#[test]
fn ipv6_header_is_laid_out_as_in_rfc_8200() {
    let bytes = packet(&header(v6(1), v6(2)), b"abc");
    let class = 10 << 2 | 2;
    assert_eq!(bytes[..8], [0x60 | class >> 4, class << 4, 0, 0, 0, 3, 6, 64]);
    assert_eq!(bytes[22..24], [0, 1]);
    assert_eq!(bytes[38..], *b"\0\x02abc");
}

#[test]
fn other_versions_and_nothing_are_dropped() {
    assert_eq!(IpView::parse(&[]), Err(DropReason::Truncated));
    for version in (0..16).filter(|version| ![4, 6].contains(version)) {
        assert_eq!(IpView::parse(&[version << 4; 60]), Err(DropReason::IpVersion));
    }
}

#[test]
fn every_truncation_is_told() {
    for (src, dst) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let bytes = packet(&header(src, dst), b"payload");
        for len in 0..bytes.len() {
            assert_eq!(IpView::parse(&bytes[..len]), Err(DropReason::Truncated), "{len}");
        }
    }
}

#[test]
fn padding_of_the_link_is_cut_off() {
    for (src, dst) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let mut bytes = packet(&header(src, dst), b"payload");
        bytes.extend([0; 13]);
        assert_eq!(IpView::parse(&bytes).map(|view| view.payload), Ok(b"payload".as_slice()));
    }
}

#[test]
fn contradicting_ipv4_lengths_are_malformed() {
    let bytes = packet(&header(v4(1), v4(2)), b"payload");
    for words in 0..5 {
        let bad = mended(&bytes, |bytes| bytes[0] = 0x40 | words);
        assert_eq!(IpView::parse(&bad), Err(DropReason::IpMalformed), "{words} words");
    }
    for total_len in 0..20 {
        let bad = mended(&bytes, |bytes| bytes[2..4].copy_from_slice(&[0, total_len]));
        assert_eq!(IpView::parse(&bad), Err(DropReason::IpMalformed), "{total_len} bytes");
    }
    let short = mended(&bytes, |bytes| bytes[0] = 0x4f);
    assert_eq!(IpView::parse(&short), Err(DropReason::Truncated));
}

#[test]
fn any_flipped_bit_of_an_ipv4_header_is_found() {
    for bytes in
        [packet(&header(v4(1), v4(2)), b"payload"), with_options(&[1, 1, 1, 0x94, 4, 0, 0], b"payload")]
    {
        let header_len = usize::from(bytes[0] & 0xf) * 4;
        for bit in 0..header_len * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(IpView::parse(&bad).is_err(), "bit {} of byte {}", bit % 8, bit / 8);
        }
    }
}

#[test]
fn ipv4_options_are_skipped() {
    for options in [
        [1, 1, 1, 1].as_slice(),
        // Router alert, timestamp, record route, an unknown one.
        &[0x94, 4, 0, 0],
        &[68, 12, 5, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[7, 7, 4, 0, 0, 0, 0],
        &[0x99, 2, 1, 0x9a, 3, 0xff],
        // Bytes after the end are ignored.
        &[0, 0x99, 1, 0xff],
        &[1; 40],
    ] {
        let bytes = with_options(options, b"payload");
        let view = IpView::parse(&bytes).unwrap();
        assert_eq!(view.payload, b"payload", "{options:?}");
        assert_eq!(view.header_len, 20 + options.len().next_multiple_of(4));
        assert_eq!(view.source_route, None);
        assert_eq!(view.protocol, TCP);
    }
}

#[test]
fn ipv4_options_of_impossible_length_are_malformed() {
    for options in [
        [0x99, 0, 0, 0].as_slice(),
        &[0x99, 1, 0, 0],
        &[0x99, 5, 0, 0],
        &[0x99, 255, 0, 0],
        &[1, 1, 1, 0x99],
        // Source routes: too short, addresses cut, pointer before or between them.
        &[131, 2, 1, 1],
        &[131, 6, 8, 1, 2, 3],
        &[131, 7, 0, 1, 2, 3, 4],
        &[131, 7, 3, 1, 2, 3, 4],
        &[131, 7, 5, 1, 2, 3, 4],
        &[131, 7, 9, 1, 2, 3, 4],
        // Two source routes.
        &[131, 7, 8, 1, 2, 3, 4, 137, 7, 8, 1, 2, 3, 4],
    ] {
        assert_eq!(IpView::parse(&with_options(options, b"")), Err(DropReason::IpMalformed), "{options:?}");
    }
}

#[test]
fn ipv4_fragments_keep_their_place() {
    let bytes = packet(&IpHeader { dont_fragment: false, ..header(v4(1), v4(2)) }, b"12345678");
    for (field, expected) in
        [(0x0000, None), (0x2000, Some((0, true))), (0x2001, Some((8, true))), (0x1fff, Some((65528, false)))]
    {
        let bytes = mended(&bytes, |bytes| bytes[6..8].copy_from_slice(&u16::to_be_bytes(field)));
        let view = IpView::parse(&bytes).unwrap();
        let expected = expected.map(|(offset, more)| FragmentInfo { id: 0x1234, offset, more });
        assert_eq!(view.fragment, expected);
        assert_eq!(view.payload, b"12345678");
    }
}

#[test]
fn extension_headers_are_walked_to_the_protocol_behind_them() {
    // Router alert, an unknown option that may be skipped, padding.
    let hop_by_hop = options_header(protocol::ROUTING, &[5, 2, 0, 0, 0x1e, 1, 9, 1, 3, 0, 0, 0]);
    let routing = [protocol::DESTINATION_OPTIONS, 2, 0, 0].into_iter().chain([7; 20]).collect::<Vec<u8>>();
    // An unknown option and padding byte by byte, an odd number of them.
    let destination = options_header(TCP, &[0x1e, 1, 9, 0, 0, 0]);
    let payload = [hop_by_hop.as_slice(), &routing, &destination, b"payload"].concat();
    let bytes = with_extensions(protocol::HOP_BY_HOP, &payload);
    let view = IpView::parse(&bytes).unwrap();
    assert_eq!((view.protocol, view.payload), (TCP, b"payload".as_slice()));
    assert_eq!(view.header_len, 40 + payload.len() - 7);
}

#[test]
fn protocols_that_hide_the_rest_are_final() {
    for last in [protocol::AH, protocol::ESP, protocol::NO_NEXT_HEADER, protocol::ICMPV6, 135] {
        let bytes = with_extensions(protocol::DESTINATION_OPTIONS, &options_header(last, &[]));
        let view = IpView::parse(&bytes).unwrap();
        assert_eq!((view.protocol, view.payload), (last, [].as_slice()));
    }
}

#[test]
fn hop_by_hop_options_come_first_or_not_at_all() {
    let payload = [options_header(protocol::HOP_BY_HOP, &[]), options_header(TCP, &[])].concat();
    let bytes = with_extensions(protocol::DESTINATION_OPTIONS, &payload);
    assert_eq!(IpView::parse(&bytes), Err(DropReason::IpMalformed));
}

#[test]
fn routing_header_with_segments_left_is_not_ours_to_forward() {
    for (kind, segments_left) in [(0, 1), (4, 255)] {
        let bytes = with_extensions(protocol::ROUTING, &[TCP, 0, kind, segments_left, 0, 0, 0, 0]);
        assert_eq!(IpView::parse(&bytes), Err(DropReason::SourceRoute));
    }
}

#[test]
fn unknown_options_are_skipped_only_when_their_high_bits_allow_it() {
    for first in [protocol::HOP_BY_HOP, protocol::DESTINATION_OPTIONS] {
        for kind in 2..=255 {
            let bytes = with_extensions(first, &options_header(TCP, &[kind, 2, 0, 0]));
            let expected = if kind < 0x40 { Ok(TCP) } else { Err(DropReason::IpMalformed) };
            assert_eq!(IpView::parse(&bytes).map(|view| view.protocol), expected, "kind {kind:#x}");
        }
    }
}

#[test]
fn options_that_leave_their_header_are_malformed() {
    for options in [[0x1e, 5, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0x1e], [1, 255, 0, 0, 0, 0]] {
        let bytes = with_extensions(protocol::HOP_BY_HOP, &options_header(TCP, &options));
        assert_eq!(IpView::parse(&bytes), Err(DropReason::IpMalformed), "{options:?}");
    }
}

#[test]
fn extension_headers_that_leave_the_packet_are_truncated() {
    let whole = options_header(TCP, &[1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for first in [protocol::HOP_BY_HOP, protocol::ROUTING, protocol::DESTINATION_OPTIONS, protocol::FRAGMENT]
    {
        for len in 0..8 {
            let bytes = with_extensions(first, &whole[..len]);
            assert_eq!(IpView::parse(&bytes), Err(DropReason::Truncated), "{first}, {len} bytes");
        }
    }
    let bytes = with_extensions(protocol::HOP_BY_HOP, &whole[..15]);
    assert_eq!(IpView::parse(&bytes), Err(DropReason::Truncated));
}

#[test]
fn walk_is_bounded_in_headers_and_bytes() {
    let chain = |count: usize| {
        let mut payload = Vec::new();
        for index in 1..=count {
            let next = if index == count { TCP } else { protocol::DESTINATION_OPTIONS };
            payload.extend(options_header(next, &[]));
        }
        with_extensions(protocol::DESTINATION_OPTIONS, &payload)
    };
    assert_eq!(IpView::parse(&chain(8)).map(|view| view.protocol), Ok(TCP));
    assert_eq!(IpView::parse(&chain(9)), Err(DropReason::IpExtensions));

    let long =
        |len: usize| with_extensions(protocol::DESTINATION_OPTIONS, &options_header(TCP, &vec![0; len - 2]));
    assert_eq!(IpView::parse(&long(512)).map(|view| view.header_len), Ok(552));
    assert_eq!(IpView::parse(&long(520)), Err(DropReason::IpExtensions));
}

#[test]
fn ipv6_fragments_keep_their_place_and_are_not_looked_into() {
    for (offset, more) in [(0, true), (8, true), (65528, false)] {
        let payload = [fragment_header(protocol::DESTINATION_OPTIONS, offset, more), vec![0xff; 16]].concat();
        let bytes = with_extensions(protocol::FRAGMENT, &payload);
        let view = IpView::parse(&bytes).unwrap();
        assert_eq!(view.fragment, Some(FragmentInfo { id: 0x0102_0304, offset, more }));
        assert_eq!((view.protocol, view.payload), (protocol::DESTINATION_OPTIONS, [0xff; 16].as_slice()));
        assert_eq!(view.header_len, 48);
    }
}

#[test]
fn reserved_fields_of_a_fragment_header_are_ignored() {
    let bytes = with_extensions(protocol::FRAGMENT, &[TCP, 0xff, 0, 8 | 0b111, 0, 0, 0, 1, b'x']);
    let view = IpView::parse(&bytes).unwrap();
    assert_eq!(view.fragment, Some(FragmentInfo { id: 1, offset: 8, more: true }));
    assert_eq!(view.payload, b"x");
}

#[test]
fn fragment_that_is_the_whole_datagram_is_none() {
    let payload = [
        fragment_header(protocol::DESTINATION_OPTIONS, 0, false),
        options_header(TCP, &[]),
        b"payload".to_vec(),
    ];
    let bytes = with_extensions(protocol::FRAGMENT, &payload.concat());
    let view = IpView::parse(&bytes).unwrap();
    assert_eq!((view.fragment, view.protocol, view.payload), (None, TCP, b"payload".as_slice()));
}

#[test]
fn reassembled_datagram_is_walked_on_from_where_its_fragments_began() {
    let whole = [options_header(TCP, &[]), b"payload".to_vec()].concat();
    let first = [fragment_header(protocol::DESTINATION_OPTIONS, 0, true), whole[..8].to_vec()].concat();
    let bytes = with_extensions(protocol::FRAGMENT, &first);
    let fragment = IpView::parse(&bytes).unwrap();
    let view = fragment.reassembled(&whole).unwrap();
    assert_eq!((view.fragment, view.protocol, view.payload), (None, TCP, b"payload".as_slice()));
    assert_eq!((view.src, view.dst, view.header_len), (v6(1), v6(2), 56));

    let hidden = options_header(protocol::HOP_BY_HOP, &[]);
    assert_eq!(fragment.reassembled(&hidden), Err(DropReason::IpMalformed));
    let hop_by_hop = FragmentInfo { id: 0, offset: 0, more: true };
    let fragment = IpView { protocol: protocol::HOP_BY_HOP, fragment: Some(hop_by_hop), ..fragment };
    assert_eq!(fragment.reassembled(&options_header(TCP, &[])), Err(DropReason::IpMalformed));
}

#[test]
fn fragment_within_a_reassembled_datagram_is_refused() {
    let whole = [fragment_header(TCP, 5, true), b"12345678".to_vec()].concat();
    let bytes =
        with_extensions(protocol::FRAGMENT, &[fragment_header(protocol::FRAGMENT, 0, true), whole].concat());
    let fragment = IpView::parse(&bytes).unwrap();
    assert_eq!(fragment.reassembled(fragment.payload), Err(DropReason::FragmentInvalid));
    let alone = [fragment_header(TCP, 0, false), b"12345678".to_vec()].concat();
    assert_eq!(fragment.reassembled(&alone).map(|view| view.payload), Ok(b"12345678".as_slice()));
}

#[test]
fn reassembled_ipv4_datagram_keeps_its_header() {
    let bytes = packet(&header(v4(1), v4(2)), b"12345678");
    let bytes = mended(&bytes, |bytes| bytes[6] = 0x20);
    let fragment = IpView::parse(&bytes).unwrap();
    let view = fragment.reassembled(b"12345678abc").unwrap();
    assert_eq!(view, IpView { fragment: None, payload: b"12345678abc", ..fragment });
}

#[test]
#[should_panic(expected = "of one family")]
fn families_do_not_mix() {
    header(v4(1), v6(1)).emit(0, &mut Vec::new());
}

proptest! {
    #![proptest_config(testing::cases(256))]

    #[test]
    fn header_comes_back_as_it_was_sent(
        (src, dst) in testing::addresses(),
        (protocol, hop_limit, id, dont_fragment) in any::<(u8, u8, u16, bool)>(),
        (ecn, dscp) in (testing::ecn(), 0..64u8),
        payload in testing::bytes(100),
    ) {
        prop_assume!(src.is_ipv4() || !matches!(protocol, 0 | 43 | 44 | 60));
        let header =
            IpHeader { src, dst, protocol, hop_limit, ecn, dscp, dont_fragment, id, source_route: None };
        let bytes = packet(&header, &payload);
        let header_len = header.len();
        prop_assert_eq!(bytes.len(), header_len + payload.len());
        let view = IpView::parse(&bytes).expect("what we write we can read");
        let dont_fragment = dont_fragment || src.is_ipv6();
        prop_assert_eq!(view, IpView {
            src, dst, protocol, hop_limit, ecn, dscp, dont_fragment,
            fragment: None, source_route: None, header_len, payload: &payload,
        });
    }

    #[test]
    fn any_bytes_are_parsed_without_a_panic(bytes in testing::bytes(120), version in 4..=6u8) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = version << 4 | *first & 0xf;
        }
        let _ = IpView::parse(&bytes);
        // Also with a correct checksum.
        if bytes.len() >= 20 && version == 4 {
            let total_len = bytes.len() as u8;
            let bytes = mended(&bytes, |bytes| bytes[2..4].copy_from_slice(&[0, total_len]));
            if let Ok(view) = IpView::parse(&bytes) {
                prop_assert_eq!(view.header_len + view.payload.len(), bytes.len());
            }
        }
    }

    #[test]
    fn any_chain_of_extension_headers_is_walked_without_a_panic(
        first in prop::sample::select(vec![0u8, 43, 44, 60]),
        headers in prop::collection::vec(
            (prop::sample::select(vec![0u8, 6, 43, 44, 60]), 0..4u8, testing::bytes(40)), 0..10),
    ) {
        let mut payload = Vec::new();
        for (next, units, rest) in headers {
            payload.extend([next, units]);
            payload.extend(rest);
        }
        let bytes = with_extensions(first, &payload);
        let parsed = IpView::parse(&bytes);
        if let Some((view, fault)) = IpView::faulty(&bytes) {
            prop_assert_eq!(view.header_len + view.payload.len(), bytes.len());
            prop_assert!((fault.pointer as usize) < bytes.len());
            prop_assert_eq!(&parsed, &Err(fault.reason));
        }
        prop_assert!((IpView::protocol_at(&bytes) as usize) < bytes.len());
        if let Ok(view) = parsed {
            prop_assert_eq!(view.header_len + view.payload.len(), bytes.len());
            let _ = view.fault_of_fragment();
            let _ = view.reassembled(&payload);
        }
    }
}

#[test]
fn ecn_bits_are_those_of_rfc_3168() {
    let codes = [(0, Ecn::NotEct), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce), (7, Ecn::Ce)];
    for (bits, ecn) in codes {
        assert_eq!(Ecn::from_bits(bits), ecn);
        assert_eq!(ecn.bits(), bits & 3);
    }
}

#[test]
fn addresses_of_ipv6_are_whole() {
    let src: Ipv6Addr = "2001:db8:1:2:3:4:5:6".parse().unwrap();
    let dst: Ipv6Addr = "fe80::a:b:c:d".parse().unwrap();
    let bytes = packet(&header(src.into(), dst.into()), b"");
    assert_eq!(bytes[8..24], src.octets());
    assert_eq!(bytes[24..40], dst.octets());
}
