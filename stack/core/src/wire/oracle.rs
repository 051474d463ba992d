//! etherparse reads our packets, and we read those of etherparse. It shares no code with us or with smoltcp.

use std::net::IpAddr;

use etherparse::{
    IcmpEchoHeader, Icmpv4Type, Icmpv6Type, IpFragOffset, IpHeaders, IpNumber, Ipv4Header, Ipv6Extensions,
    Ipv6FragmentHeader, Ipv6Header, Ipv6RawExtHeader, Ipv6RoutingExtensions, NetHeaders, PacketBuilder,
    PacketHeaders, TcpOptionElement, TransportHeader, icmpv4, icmpv6,
};
use proptest::prelude::*;

use super::testing;
use super::{
    Checksums, Ecn, Flags, FragmentInfo, IcmpKind, IcmpView, IpHeader, IpView, Sum, TcpHeader, TcpOptions,
    TcpView, UdpView, icmp, protocol, udp,
};
use crate::Seq;

fn header(src: IpAddr, dst: IpAddr, protocol: u8) -> IpHeader<'static> {
    IpHeader {
        src,
        dst,
        protocol,
        hop_limit: 61,
        ecn: Ecn::Ect1,
        dscp: 46,
        dont_fragment: true,
        id: 0xbeef,
        source_route: None,
    }
}

fn our_packet(header: &IpHeader<'_>, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    header.emit(payload.len(), &mut out);
    out.extend(payload);
    out
}

/// Their IP header like [`header`], without extensions.
fn their_header(src: IpAddr, dst: IpAddr, protocol: u8) -> IpHeaders {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut header = Ipv4Header::new(0, 61, IpNumber(protocol), src.octets(), dst.octets()).unwrap();
            header.dscp = 46.try_into().unwrap();
            header.ecn = 1.try_into().unwrap();
            header.identification = 0xbeef;
            IpHeaders::Ipv4(header, etherparse::Ipv4Extensions::default())
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => IpHeaders::Ipv6(
            Ipv6Header {
                traffic_class: 46 << 2 | 1,
                next_header: IpNumber(protocol),
                hop_limit: 61,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv6Header::default()
            },
            Ipv6Extensions::default(),
        ),
        _ => unreachable!("the strategy gives both of one family"),
    }
}

fn assert_ip_is_header(net: Option<NetHeaders>, src: IpAddr, dst: IpAddr) {
    match net.expect("there is an IP header") {
        NetHeaders::Ipv4(header, _) => {
            assert_eq!((IpAddr::from(header.source), IpAddr::from(header.destination)), (src, dst));
            assert_eq!((header.dscp.value(), header.ecn.value(), header.time_to_live), (46, 1, 61));
            assert_eq!(
                (header.identification, header.dont_fragment, header.more_fragments),
                (0xbeef, true, false)
            );
            assert_eq!(header.header_checksum, header.calc_header_checksum());
        }
        NetHeaders::Ipv6(header, _) => {
            assert_eq!((IpAddr::from(header.source), IpAddr::from(header.destination)), (src, dst));
            assert_eq!(
                (header.traffic_class, header.flow_label.value(), header.hop_limit),
                (46 << 2 | 1, 0, 61)
            );
        }
        NetHeaders::Arp(_) => panic!("no IP header"),
    }
}

fn their_tcp_checksum(tcp: &etherparse::TcpHeader, src: IpAddr, dst: IpAddr, payload: &[u8]) -> u16 {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            tcp.calc_checksum_ipv4_raw(src.octets(), dst.octets(), payload).unwrap()
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            tcp.calc_checksum_ipv6_raw(src.octets(), dst.octets(), payload).unwrap()
        }
        _ => unreachable!("the strategy gives both of one family"),
    }
}

fn their_flags(tcp: &etherparse::TcpHeader) -> Flags {
    [
        (tcp.fin, Flags::FIN),
        (tcp.syn, Flags::SYN),
        (tcp.rst, Flags::RST),
        (tcp.psh, Flags::PSH),
        (tcp.ack, Flags::ACK),
        (tcp.urg, Flags::URG),
        (tcp.ece, Flags::ECE),
        (tcp.cwr, Flags::CWR),
    ]
    .into_iter()
    .fold(Flags::default(), |flags, (is_set, flag)| if is_set { flags | flag } else { flags })
}

/// The options that etherparse knows, in its order; it stops at the experimental ones.
fn known_elements(options: &TcpOptions) -> Vec<TcpOptionElement> {
    let mut elements = Vec::new();
    elements.extend(options.mss.map(TcpOptionElement::MaximumSegmentSize));
    elements.extend(options.sack_permitted.then_some(TcpOptionElement::SelectiveAcknowledgementPermitted));
    elements.extend(options.timestamps.map(|ts| TcpOptionElement::Timestamp(ts.value, ts.echo)));
    elements.extend(options.window_scale.map(TcpOptionElement::WindowScale));
    if let Some((first, rest)) = options.sack.split_first() {
        let edges = |block: &super::SackBlock| (block.left.0, block.right.0);
        let mut more = [None; 3];
        for (place, block) in more.iter_mut().zip(rest) {
            *place = Some(edges(block));
        }
        elements.push(TcpOptionElement::SelectiveAcknowledgement(edges(first), more));
    }
    elements
}

fn without_experiments(options: &TcpOptions) -> TcpOptions {
    TcpOptions { hopwise: None, rate_request: None, ..options.clone() }
}

proptest! {
    #![proptest_config(testing::cases(256))]

    // shows: MUST-2
    #[test]
    fn etherparse_reads_our_segments(
        (src, dst) in testing::addresses(),
        (flags, options) in testing::flags_and_options(),
        (src_port, dst_port, seq, ack) in any::<(u16, u16, u32, u32)>(),
        (window, urgent) in any::<(u16, u16)>(),
        payload in testing::bytes(200),
        experiments: bool,
    ) {
        let mut options = if experiments { options } else { without_experiments(&options) };
        let tcp = TcpHeader {
            src_port, dst_port, seq: Seq(seq), ack: Seq(ack), flags, window, urgent, options: &options,
        };
        let mut segment = Vec::new();
        tcp.emit(src, dst, payload.split_at(payload.len() / 3), Checksums::Verify, &mut segment);
        let bytes = our_packet(&header(src, dst, protocol::TCP), &segment);

        let packet = PacketHeaders::from_ip_slice(&bytes).expect("etherparse reads the packet");
        assert_ip_is_header(packet.net, src, dst);
        let Some(TransportHeader::Tcp(theirs)) = packet.transport else { panic!("no TCP header") };
        prop_assert_eq!((theirs.source_port, theirs.destination_port), (src_port, dst_port));
        prop_assert_eq!((theirs.sequence_number, theirs.acknowledgment_number), (seq, ack));
        prop_assert_eq!(their_flags(&theirs), flags);
        prop_assert_eq!((theirs.window_size, theirs.urgent_pointer), (window, urgent));
        prop_assert_eq!(packet.payload.slice(), payload.as_slice());
        prop_assert_eq!(theirs.checksum, their_tcp_checksum(&theirs, src, dst, &payload));
        if !experiments {
            let read: Vec<TcpOptionElement> = theirs
                .options_iterator()
                .map(|element| element.expect("etherparse reads the option"))
                .filter(|element| *element != TcpOptionElement::Noop)
                .collect();
            if options.timestamps.is_some() {
                options.sack.truncate(3);
            }
            prop_assert_eq!(read, known_elements(&options));
        }
    }

    // shows: MUST-4
    #[test]
    fn we_read_segments_of_etherparse(
        (src, dst) in testing::addresses(),
        (flags, options) in testing::flags_and_options(),
        (src_port, dst_port, seq, ack) in any::<(u16, u16, u32, u32)>(),
        (window, urgent) in any::<(u16, u16)>(),
        payload in testing::bytes(200),
    ) {
        let mut options = without_experiments(&options);
        if options.timestamps.is_some() {
            options.sack.truncate(3);
        }
        let mut tcp = etherparse::TcpHeader::new(src_port, dst_port, seq, window);
        tcp.acknowledgment_number = ack;
        tcp.urgent_pointer = urgent;
        (tcp.fin, tcp.syn, tcp.rst) =
            (flags.contains(Flags::FIN), flags.contains(Flags::SYN), flags.contains(Flags::RST));
        (tcp.psh, tcp.ack, tcp.urg) =
            (flags.contains(Flags::PSH), flags.contains(Flags::ACK), flags.contains(Flags::URG));
        (tcp.ece, tcp.cwr) = (flags.contains(Flags::ECE), flags.contains(Flags::CWR));
        tcp.set_options(&known_elements(&options)).expect("etherparse has room for the options");

        let mut bytes = Vec::new();
        PacketBuilder::ip(their_header(src, dst, protocol::TCP))
            .tcp_header(tcp)
            .write(&mut bytes, &payload)
            .expect("etherparse writes the packet");
        let ip = IpView::parse(&bytes).expect("we read the packet");
        prop_assert_eq!((ip.src, ip.dst, ip.protocol), (src, dst, protocol::TCP));
        prop_assert_eq!((ip.hop_limit, ip.ecn, ip.dscp), (61, Ecn::Ect1, 46));
        let view =
            TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("we read the segment");
        let payload = payload.as_slice();
        let (seq, ack) = (Seq(seq), Seq(ack));
        prop_assert_eq!(
            view,
            TcpView { src_port, dst_port, seq, ack, flags, window, urgent, options, payload }
        );
    }

    #[test]
    fn etherparse_reads_our_datagrams_and_we_read_its(
        (src, dst) in testing::addresses(),
        (src_port, dst_port) in any::<(u16, u16)>(),
        payload in testing::bytes(200),
    ) {
        let mut datagram = Vec::new();
        udp::emit(src, dst, (src_port, dst_port), &payload, &mut datagram);
        let ours = our_packet(&header(src, dst, protocol::UDP), &datagram);
        let mut theirs = Vec::new();
        PacketBuilder::ip(their_header(src, dst, protocol::UDP))
            .udp(src_port, dst_port)
            .write(&mut theirs, &payload)
            .expect("etherparse writes the packet");
        let header_len = theirs.len() - datagram.len();
        prop_assert_eq!(&theirs[header_len..], &datagram);

        let packet = PacketHeaders::from_ip_slice(&ours).expect("etherparse reads the packet");
        let Some(TransportHeader::Udp(udp)) = packet.transport else { panic!("no UDP header") };
        prop_assert_eq!((udp.source_port, udp.destination_port), (src_port, dst_port));
        prop_assert_eq!(packet.payload.slice(), payload.as_slice());

        let ip = IpView::parse(&theirs).expect("we read the packet");
        let view = UdpView::parse(ip.src, ip.dst, ip.payload);
        prop_assert_eq!(view, Ok(UdpView { src_port, dst_port, payload: &payload }));
    }

    #[test]
    fn echoes_are_the_same_bytes(
        (src, dst) in testing::addresses(),
        (id, seq) in any::<(u16, u16)>(),
        data in testing::bytes(100),
    ) {
        let echo = IcmpEchoHeader { id, seq };
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        icmp::emit_echo_request(src, dst, id, seq, &data, &mut request);
        icmp::emit_echo_reply(src, dst, id, seq, &data, &mut reply);
        let (v4, v6) = (
            [Icmpv4Type::EchoRequest(echo), Icmpv4Type::EchoReply(echo)],
            [Icmpv6Type::EchoRequest(echo), Icmpv6Type::EchoReply(echo)],
        );
        for ((ours, v4), v6) in [request, reply].into_iter().zip(v4).zip(v6) {
            prop_assert_eq!(ours, their_icmp(src, dst, v4, v6, &data));
        }
    }

    #[test]
    fn errors_are_the_same_bytes_and_we_read_theirs(
        (src, dst) in testing::addresses(),
        mtu: u16,
        pointer: u8,
        quoted in testing::bytes(100),
    ) {
        let too_big = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu };
        let problem = icmpv6::ParameterProblemHeader {
            code: icmpv6::ParameterProblemCode::ErroneousHeaderField,
            pointer: u32::from(pointer),
        };
        for (kind, v4, v6) in [
            (
                IcmpKind::port_unreachable(src),
                Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Port),
                Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Port),
            ),
            (
                IcmpKind::PacketTooBig { mtu: u32::from(mtu) },
                Icmpv4Type::DestinationUnreachable(too_big),
                Icmpv6Type::PacketTooBig { mtu: u32::from(mtu) },
            ),
            (
                IcmpKind::TimeExceeded { code: 1 },
                Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::FragmentReassemblyTimeExceeded),
                Icmpv6Type::TimeExceeded(icmpv6::TimeExceededCode::FragmentReassemblyTimeExceeded),
            ),
            (
                IcmpKind::ParameterProblem { code: 0, pointer: u32::from(pointer) },
                Icmpv4Type::ParameterProblem(icmpv4::ParameterProblemHeader::PointerIndicatesError(pointer)),
                Icmpv6Type::ParameterProblem(problem),
            ),
        ] {
            let mut ours = Vec::new();
            icmp::emit_error(src, dst, kind, &quoted, &mut ours);
            let theirs = their_icmp(src, dst, v4, v6, &quoted);
            prop_assert_eq!(&ours, &theirs);
            let protocol = if src.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
            let view = IcmpView::parse(src, dst, protocol, &theirs);
            prop_assert_eq!(view, Ok(IcmpView::Error { kind, quoted: &quoted }));
        }
    }

    #[test]
    fn checksum_is_that_of_etherparse(bytes in testing::bytes(300)) {
        let theirs = etherparse::checksum::Sum16BitWords::new().add_slice(&bytes).ones_complement().to_be();
        prop_assert_eq!(Sum::default().add(&bytes).finish(), theirs);
    }
}

fn their_icmp(src: IpAddr, dst: IpAddr, v4: Icmpv4Type, v6: Icmpv6Type, body: &[u8]) -> Vec<u8> {
    let mut bytes = match (src, dst) {
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let header = etherparse::Icmpv6Header::with_checksum(v6, src.octets(), dst.octets(), body);
            header.expect("etherparse sums the message").to_bytes().to_vec()
        }
        _ => etherparse::Icmpv4Header::with_checksum(v4, body).to_bytes().to_vec(),
    };
    bytes.extend(body);
    bytes
}

/// One of each extension header that both support, in the order of RFC 8200.
#[test]
fn we_walk_the_extension_headers_of_etherparse() {
    let padding = [1, 4, 0, 0, 0, 0];
    let raw = || Ipv6RawExtHeader::new_raw(IpNumber::TCP, &padding).unwrap();
    let routing = Ipv6RawExtHeader::new_raw(IpNumber::TCP, &[0; 14]).unwrap();
    let mut extensions = Ipv6Extensions {
        hop_by_hop_options: Some(raw()),
        destination_options: Some(raw()),
        routing: Some(Ipv6RoutingExtensions { routing, final_destination_options: Some(raw()) }),
        fragment: None,
        auth: None,
    };
    let (src, dst) = (testing::v6(1), testing::v6(2));
    let packet_with = |extensions: Ipv6Extensions| {
        let IpHeaders::Ipv6(header, _) = their_header(src, dst, protocol::TCP) else { unreachable!() };
        let tcp = etherparse::TcpHeader::new(1, 2, 3, 4);
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ip(IpHeaders::Ipv6(header, extensions)).tcp_header(tcp);
        builder.write(&mut bytes, b"payload").unwrap();
        bytes
    };

    let bytes = packet_with(extensions.clone());
    let view = IpView::parse(&bytes).unwrap();
    assert_eq!((view.protocol, view.header_len), (protocol::TCP, 40 + 8 + 8 + 16 + 8));
    let segment = TcpView::parse(src, dst, view.payload, Checksums::Verify).unwrap();
    assert_eq!(segment.payload, b"payload");

    let offset = IpFragOffset::try_new(3).unwrap();
    extensions.fragment = Some(Ipv6FragmentHeader::new(IpNumber::TCP, offset, true, 77));
    extensions.routing = None;
    let bytes = packet_with(extensions);
    let view = IpView::parse(&bytes).unwrap();
    assert_eq!(view.fragment, Some(FragmentInfo { id: 77, offset: 24, more: true }));
    assert_eq!((view.protocol, view.header_len), (protocol::TCP, 40 + 8 + 8 + 8));
}
