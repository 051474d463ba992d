use proptest::prelude::*;

use super::*;
use crate::Seq;
use crate::wire::testing::{self, v4, v6};
use crate::wire::{Checksums, Flags, IpHeader, IpView, RouteKind, SourceRoute, TcpHeader, TcpOptions, udp};

fn families() -> [(IpAddr, IpAddr, u8); 2] {
    [(v4(1), v4(2), protocol::ICMP), (v6(1), v6(2), protocol::ICMPV6)]
}

fn tcp_packet(header: &IpHeader<'_>, payload: &[u8]) -> Vec<u8> {
    let options = TcpOptions::default();
    let tcp = TcpHeader {
        src_port: 1025,
        dst_port: 80,
        seq: Seq(0x0102_0304),
        ack: Seq(9),
        flags: Flags::ACK,
        window: 1,
        urgent: 0,
        options: &options,
    };
    let mut out = Vec::new();
    header.emit(tcp.len() + payload.len(), &mut out);
    tcp.emit(header.src, header.dst, (payload, &[]), Checksums::Verify, &mut out);
    out
}

fn quoted_tcp(src: IpAddr, dst: IpAddr) -> QuotedTcp {
    QuotedTcp { src, dst, src_port: 1025, dst_port: 80, seq: Seq(0x0102_0304) }
}

fn message(src: IpAddr, dst: IpAddr, head: (u8, u8), value: [u8; 4], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    emit(src, dst, head, value, body, &mut out);
    out
}

#[test]
fn types_of_both_families_mean_the_same() {
    let value = [7, 0, 0x05, 0xdc];
    let whole = u32::from_be_bytes(value);
    let error = |kind| IcmpView::Error { kind, quoted: b"quoted" };
    let other = |icmp_type, code| IcmpView::Other { icmp_type, code };
    let of_v4 = [
        ((3, 0), error(IcmpKind::Unreachable { code: 0 })),
        ((3, 3), error(IcmpKind::Unreachable { code: 3 })),
        ((3, 4), error(IcmpKind::PacketTooBig { mtu: 1500 })),
        ((4, 0), error(IcmpKind::SourceQuench)),
        ((5, 1), other(5, 1)),
        ((9, 0), other(9, 0)),
        ((11, 1), error(IcmpKind::TimeExceeded { code: 1 })),
        ((12, 0), error(IcmpKind::ParameterProblem { code: 0, pointer: 7 })),
        ((13, 0), other(13, 0)),
    ];
    let of_v6 = [
        ((1, 4), error(IcmpKind::Unreachable { code: 4 })),
        ((2, 0), error(IcmpKind::PacketTooBig { mtu: whole })),
        ((3, 1), error(IcmpKind::TimeExceeded { code: 1 })),
        ((4, 2), error(IcmpKind::ParameterProblem { code: 2, pointer: whole })),
        ((100, 3), other(100, 3)),
        ((135, 0), other(135, 0)),
    ];
    for (head, expected) in of_v4 {
        let bytes = message(v4(1), v4(2), head, value, b"quoted");
        assert_eq!(IcmpView::parse(v4(1), v4(2), protocol::ICMP, &bytes), Ok(expected));
    }
    for (head, expected) in of_v6 {
        let bytes = message(v6(1), v6(2), head, value, b"quoted");
        assert_eq!(IcmpView::parse(v6(1), v6(2), protocol::ICMPV6, &bytes), Ok(expected));
    }
}

#[test]
fn message_of_the_other_family_is_malformed() {
    for ((src, dst, _), (_, _, wrong)) in families().into_iter().zip(families().into_iter().rev()) {
        let mut bytes = Vec::new();
        emit_echo_request(src, dst, 1, 2, b"", &mut bytes);
        assert_eq!(IcmpView::parse(src, dst, wrong, &bytes), Err(DropReason::IcmpMalformed));
    }
}

#[test]
fn error_with_its_ip_header_fits_what_every_path_takes() {
    let packet = vec![0x45; 3000];
    for ((src, dst, _), largest) in families().into_iter().zip([576, 1280]) {
        let mut bytes = Vec::new();
        emit_error(src, dst, IcmpKind::TimeExceeded { code: 0 }, &packet, &mut bytes);
        assert_eq!(IpHeader::plain(src, dst, 0).len() + bytes.len(), largest);
        let mut bytes = Vec::new();
        emit_error(src, dst, IcmpKind::TimeExceeded { code: 0 }, &packet[..100], &mut bytes);
        assert_eq!(bytes.len(), HEADER_LEN + 100);
    }
}

#[test]
fn mtu_and_pointer_that_do_not_fit_ipv4_are_written_as_the_largest() {
    for (kind, written) in [
        (IcmpKind::PacketTooBig { mtu: 70_000 }, IcmpKind::PacketTooBig { mtu: 65_535 }),
        (
            IcmpKind::ParameterProblem { code: 0, pointer: 300 },
            IcmpKind::ParameterProblem { code: 0, pointer: 255 },
        ),
    ] {
        let mut bytes = Vec::new();
        emit_error(v4(1), v4(2), kind, b"", &mut bytes);
        let view = IcmpView::parse(v4(1), v4(2), protocol::ICMP, &bytes);
        assert_eq!(view, Ok(IcmpView::Error { kind: written, quoted: b"" }));
    }
}

#[test]
#[should_panic(expected = "no source quench")]
fn source_quench_does_not_exist_in_icmpv6() {
    emit_error(v6(1), v6(2), IcmpKind::SourceQuench, b"", &mut Vec::new());
}

#[test]
fn eight_bytes_behind_the_ip_header_name_the_segment() {
    for (src, dst) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let header = IpHeader::plain(src, dst, protocol::TCP);
        let packet = tcp_packet(&header, b"payload");
        let enough = header.len() + 8;
        for len in 0..packet.len() {
            let expected = (len >= enough).then(|| quoted_tcp(src, dst));
            assert_eq!(QuotedTcp::read(&packet[..len]), expected, "{len} bytes");
        }
    }
}

#[test]
fn quoted_packet_needs_no_right_checksum_or_length() {
    let mut packet = tcp_packet(&IpHeader::plain(v4(1), v4(2), protocol::TCP), b"payload");
    packet[2..4].fill(0xff);
    packet[8] = 0;
    packet[10..12].fill(0);
    assert_eq!(QuotedTcp::read(&packet[..28]), Some(quoted_tcp(v4(1), v4(2))));
}

#[test]
fn quoted_packet_on_a_source_route_names_its_last_destination() {
    let hops = [1, 2].map(|last| std::net::Ipv4Addr::new(198, 51, 100, last));
    for kind in [RouteKind::Loose, RouteKind::Strict] {
        let route = SourceRoute::new(kind, &hops).unwrap();
        let header = IpHeader { source_route: Some(&route), ..IpHeader::plain(v4(1), v4(2), protocol::TCP) };
        let mut packet = tcp_packet(&header, b"");
        assert_ne!(packet[16..20], [192, 0, 2, 2]);
        assert_eq!(QuotedTcp::read(&packet), Some(quoted_tcp(v4(1), v4(2))));
        // The route is completed: the destination field has the destination.
        packet[22] = packet[21] + 1;
        packet[16..20].copy_from_slice(&[192, 0, 2, 9]);
        assert_eq!(QuotedTcp::read(&packet), Some(quoted_tcp(v4(1), v4(9))));
    }
}

#[test]
fn quoted_ipv4_options_are_skipped_and_broken_ones_read_as_nothing() {
    let packet = tcp_packet(&IpHeader::plain(v4(1), v4(2), protocol::TCP), b"");
    let with_options = |options: [u8; 4]| {
        let mut packet = packet.clone();
        packet[0] = 0x46;
        packet.splice(20..20, options);
        packet
    };
    for options in [[0x94, 4, 0, 0], [1, 1, 1, 0], [0, 9, 9, 9]] {
        assert_eq!(QuotedTcp::read(&with_options(options)), Some(quoted_tcp(v4(1), v4(2))));
    }
    for options in [[0x94, 5, 0, 0], [0x94, 0, 0, 0], [0x94, 1, 0, 0], [1, 1, 1, 0x94]] {
        assert_eq!(QuotedTcp::read(&with_options(options)), None, "{options:?}");
    }
}

#[test]
fn later_fragments_and_other_protocols_name_nothing() {
    let mut packet = tcp_packet(&IpHeader::plain(v4(1), v4(2), protocol::TCP), b"");
    packet[6] = 0x20;
    assert!(QuotedTcp::read(&packet).is_some(), "a first fragment has the ports");
    packet[7] = 1;
    assert_eq!(QuotedTcp::read(&packet), None);

    let segment = &tcp_packet(&IpHeader::plain(v6(1), v6(2), protocol::TCP), b"")[40..];
    for (offset, expected) in [(0, Some(quoted_tcp(v6(1), v6(2)))), (8, None)] {
        let mut packet = Vec::new();
        IpHeader::plain(v6(1), v6(2), protocol::FRAGMENT).emit(8 + segment.len(), &mut packet);
        packet.extend([protocol::TCP, 0, 0, offset | 1, 0, 0, 0, 1]);
        packet.extend(segment);
        assert_eq!(QuotedTcp::read(&packet), expected);
    }
}

#[test]
fn a_quoted_datagram_names_no_connection() {
    for (src, dst) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let header = IpHeader::plain(src, dst, protocol::UDP);
        let mut packet = Vec::new();
        header.emit(8 + 3, &mut packet);
        udp::emit(src, dst, (654, 269), b"abc", &mut packet);
        assert_eq!(QuotedTcp::read(&packet), None);
    }
}

proptest! {
    #![proptest_config(testing::cases(128))]

    #[test]
    fn echoes_come_back_and_any_flipped_bit_is_found(
        (src, dst) in testing::addresses(),
        (id, seq) in any::<(u16, u16)>(),
        data in testing::bytes(40),
    ) {
        let number = if src.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
        let (mut request, mut reply) = (b"odd".to_vec(), Vec::new());
        emit_echo_request(src, dst, id, seq, &data, &mut request);
        emit_echo_reply(src, dst, id, seq, &data, &mut reply);
        let expected = IcmpView::EchoRequest { id, seq, data: &data };
        prop_assert_eq!(IcmpView::parse(src, dst, number, &request[3..]), Ok(expected));
        let expected = IcmpView::EchoReply { id, seq, data: &data };
        prop_assert_eq!(IcmpView::parse(src, dst, number, &reply), Ok(expected));
        for bit in 0..reply.len() * 8 {
            reply[bit / 8] ^= 1 << (bit % 8);
            let result = IcmpView::parse(src, dst, number, &reply);
            prop_assert_eq!(result, Err(DropReason::IcmpMalformed));
            reply[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn errors_come_back(
        (src, dst) in testing::addresses(),
        (code, mtu, pointer) in any::<(u8, u16, u8)>(),
        quoted in testing::bytes(200),
    ) {
        let number = if src.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
        let (mtu, pointer) = (u32::from(mtu), u32::from(pointer));
        // In IPv4 this code of "unreachable" means a packet that is too big.
        let unreachable = if src.is_ipv4() && code == 4 { 5 } else { code };
        for kind in [
            IcmpKind::Unreachable { code: unreachable },
            IcmpKind::PacketTooBig { mtu },
            IcmpKind::TimeExceeded { code },
            IcmpKind::ParameterProblem { code, pointer },
        ] {
            let mut bytes = Vec::new();
            emit_error(src, dst, kind, &quoted, &mut bytes);
            let view = IcmpView::parse(src, dst, number, &bytes);
            prop_assert_eq!(view, Ok(IcmpView::Error { kind, quoted: &quoted }));
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        (src, dst) in testing::addresses(),
        head in any::<(u8, u8)>(),
        bytes in testing::bytes(100),
        version in prop::sample::select(vec![4u8, 6]),
    ) {
        for number in [protocol::ICMP, protocol::ICMPV6] {
            let _ = IcmpView::parse(src, dst, number, &bytes);
            let _ = IcmpView::parse(src, dst, number, &message(src, dst, head, [1, 2, 3, 4], &bytes));
        }
        let mut quoted = bytes;
        if let Some(first) = quoted.first_mut() {
            *first = version << 4 | *first & 0xf;
        }
        for number in [protocol::TCP, protocol::UDP] {
            if let Some(place) = quoted.get_mut(if version == 4 { 9 } else { 6 }) {
                *place = number;
            }
            let tcp = QuotedTcp::read(&quoted);
            prop_assert!(number == protocol::TCP || tcp.is_none());
        }
        let _ = IpView::parse(&quoted);
    }
}
