//! Any bytes are read as each kind of packet, or refused; a packet that is written again reads as before.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopwise_core::ip::Prefix;
use hopwise_core::wire::{
    Checksums, Flags, IcmpView, IpHeader, IpView, QuotedTcp, SackBlock, Sum, TcpHeader, TcpOptions, TcpView,
    UdpView, icmp, protocol, udp,
};

use crate::input::Bits;
use crate::made_right::make_right;

const V4: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2))];
const V6: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
];

pub(crate) fn replay(bytes: &[u8]) {
    ip(bytes);
    let mut right = bytes.to_vec();
    make_right(&mut right, Bits(u8::MAX));
    ip(&right);
    for [src, dst] in [V4, V6] {
        tcp(src, dst, bytes);
        udp(src, dst, bytes);
        icmp(src, dst, bytes);
    }
    quotes(bytes);
    prefix(bytes);
}

fn ip(bytes: &[u8]) {
    let Ok(view) = IpView::parse(bytes) else { return };
    assert!(view.header_len + view.payload.len() <= bytes.len());
    let Ok(whole) = view.reassembled(view.payload) else { return };
    let IpView { src, dst, protocol, hop_limit, ecn, dscp, dont_fragment, ref source_route, .. } = whole;
    let mut header =
        IpHeader { src, dst, protocol, hop_limit, ecn, dscp, dont_fragment, id: 1, source_route: None };
    let mut packet = Vec::new();
    header.emit(whole.payload.len(), &mut packet);
    packet.extend(whole.payload);
    // Fragments of IPv4 may add up to more than one packet holds.
    if packet.len() <= usize::from(u16::MAX) {
        let expected =
            IpView { fragment: None, source_route: None, header_len: header.len(), ..whole.clone() };
        assert_eq!(IpView::parse(&packet), Ok(expected));
    }
    header.source_route = source_route.as_deref();
    assert!(header.len() <= 60, "a way back fits a header");
    header.emit(0, &mut packet);
}

fn tcp(src: IpAddr, dst: IpAddr, bytes: &[u8]) {
    // Arbitrary bytes only pass with a checksum that is not verified.
    let Ok(view) = TcpView::parse(src, dst, bytes, Checksums::Trust) else { return };
    let header = TcpHeader {
        src_port: view.src_port,
        dst_port: view.dst_port,
        seq: view.seq,
        ack: view.ack,
        flags: view.flags,
        window: view.window,
        urgent: view.urgent,
        options: &view.options,
    };
    let mut again = Vec::new();
    let (head, tail) = view.payload.split_at(view.payload.len() / 2);
    header.emit(src, dst, (head, tail), Checksums::Verify, &mut again);
    assert_eq!(again.len(), header.len() + view.payload.len());
    let read = TcpView::parse(src, dst, &again, Checksums::Verify).expect("what was written is sound");
    check_options(&view.options, &read.options, view.flags);
    assert_eq!(TcpView { options: view.options.clone(), ..read }, view);
}

/// SACK blocks take the room that is left, which padding may have made smaller. All other options come back.
fn check_options(written: &TcpOptions, read: &TcpOptions, flags: Flags) {
    let blocks: Vec<SackBlock> = written.sack.iter().take(read.sack.len()).copied().collect();
    assert_eq!(read.sack[..], blocks[..]);
    assert_eq!(read.sack.is_empty(), written.sack.is_empty(), "one block has room beside everything");
    let expected = TcpOptions { sack: read.sack.clone(), ..written.clone() };
    assert_eq!(*read, expected, "on {flags}");
}

fn udp(src: IpAddr, dst: IpAddr, bytes: &[u8]) {
    let sealed = sealed(src, dst, protocol::UDP, 6, bytes);
    for bytes in [bytes, &sealed] {
        let Ok(view) = UdpView::parse(src, dst, bytes) else { continue };
        let mut again = Vec::new();
        udp::emit(src, dst, (view.src_port, view.dst_port), view.payload, &mut again);
        assert_eq!(UdpView::parse(src, dst, &again), Ok(view));
    }
}

fn icmp(src: IpAddr, dst: IpAddr, bytes: &[u8]) {
    let protocol = if src.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
    let sealed = sealed(src, dst, protocol, 2, bytes);
    let Ok(view) = IcmpView::parse(src, dst, protocol, &sealed) else { return };
    let mut again = Vec::new();
    let expected = match view {
        IcmpView::EchoRequest { id, seq, data } => {
            icmp::emit_echo_request(src, dst, id, seq, data, &mut again);
            view
        }
        IcmpView::EchoReply { id, seq, data } => {
            icmp::emit_echo_reply(src, dst, id, seq, data, &mut again);
            view
        }
        IcmpView::Error { kind, quoted } => {
            icmp::emit_error(src, dst, kind, quoted, &mut again);
            IcmpView::Error { kind, quoted: &quoted[..again.len() - 8] }
        }
        IcmpView::Other { .. } => return,
    };
    // An echo's code has no meaning, and is 0 when we write it.
    assert_eq!(IcmpView::parse(src, dst, protocol, &again), Ok(expected));
}

/// The same bytes with their checksum made right.
fn sealed(src: IpAddr, dst: IpAddr, protocol: u8, place: usize, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let len = bytes.len() as u32;
    let Some(field) = bytes.get_mut(place..place + 2) else { return bytes };
    field.fill(0);
    let start =
        if protocol == protocol::ICMP { Sum::default() } else { Sum::pseudo_header(src, dst, protocol, len) };
    let sum = start.add(&bytes).finish();
    bytes[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn quotes(bytes: &[u8]) {
    let _ = QuotedTcp::read(bytes);
}

fn prefix(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(prefix) = text.parse::<Prefix>() else { return };
    assert_eq!(prefix.to_string().parse(), Ok(prefix));
    assert!(prefix.contains(prefix.address()));
}
