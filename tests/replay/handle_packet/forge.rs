//! Packets from a stranger, or from one that claims to be the peer: right except for the story's changes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hopwise_core::wire::{Flags, IcmpKind, icmp, protocol, udp};
use hopwise_core::{Instant, Seq};

use super::flows::{Flow, Flows};
use super::packet::{Envelope, Segment, octet_at, reseal_v4, seal};
use super::setup::{FAR_V4, HOST_V4, HOST_V6, HTTP, PEER_V4, PEER_V6, STRANGER_V4, STRANGER_V6};
use crate::input::{Bits, Input};

/// Packets to be handed in one after the other.
pub(super) struct Forged {
    pub(super) packets: Vec<Vec<u8>>,
    /// True if fragments may mix with another datagram's, or were changed. Their reassembly may be any data that
    /// happens to have the right checksum.
    pub(super) may_mix: bool,
}

/// Ports of the stories: the listener's, two that other listeners may take, one that is closed.
pub(super) fn port(input: &mut Input<'_>) -> u16 {
    input.pick([HTTP, 81, 7, 40_000])
}

pub(super) fn addresses(input: &mut Input<'_>) -> (IpAddr, IpAddr) {
    input.pick([
        (HOST_V4, STRANGER_V4),
        (HOST_V4, PEER_V4),
        (HOST_V6, STRANGER_V6),
        (HOST_V6, PEER_V6),
        (HOST_V4, FAR_V4),
    ])
}

/// One of the flows, old or new.
fn flow<'a>(flows: &'a mut Flows, input: &mut Input<'_>) -> &'a mut Flow {
    let octet = usize::from(input.octet());
    let len = flows.len();
    if octet < 0xf0 && len > 0 {
        // The newest has number 0: stories need not count.
        return flows.get_mut(len - 1 - octet % len).expect("the index is below the length");
    }
    let (host, remote) = addresses(input);
    let ports = (port(input), input.pick([5000, 5001, 40_000, HTTP]));
    let first = Seq(input.pick([0x1000, 0xffff_ff00, 0x7fff_ff00, 0]));
    flows.begin(SocketAddr::new(host, ports.0), SocketAddr::new(remote, ports.1), first)
}

/// A TCP segment: the flow, the kind, and the story's changes.
pub(super) fn segment(now: Instant, flows: &mut Flows, input: &mut Input<'_>) -> Forged {
    let flow = flow(flows, input);
    let mut segment = flow.natural();
    let what = input.octet();
    let changes = Bits(input.octet());
    (segment.flags, segment.len) = kind(what, input);
    if !segment.flags.contains(Flags::ACK) {
        segment.ack = Seq(0);
    }
    segment.options =
        if changes.has(0) { options(now, flow, input) } else { usual_options(now, flow, &segment) };
    if changes.has(1) {
        segment.seq = nearby(segment.seq, flow, input);
    } else {
        let end = segment.seq + segment.len as u32;
        let controls =
            u32::from(segment.flags.contains(Flags::SYN)) + u32::from(segment.flags.contains(Flags::FIN));
        flow.next = if segment.flags.contains(Flags::RST) { flow.next } else { end + controls };
    }
    if changes.has(2) {
        segment.ack = nearby(segment.ack, flow, input);
    }
    if changes.has(3) {
        segment.window = input.pick([0, 1, 100, 536, 1460, u16::MAX]);
    }
    if changes.has(4) {
        segment.urgent = input.word();
        segment.flags |= Flags::URG;
    }
    let mut envelope = Envelope::new(segment.src.ip(), segment.dst.ip(), protocol::TCP);
    envelope.id = flows.next_id();
    if changes.has(5) {
        change_envelope(&mut envelope, input);
    }
    finish(&envelope, segment.bytes(), changes, input)
}

/// The flags, and the length of the data.
fn kind(what: u8, input: &mut Input<'_>) -> (Flags, usize) {
    let lengths = [1, 100, 536, 1448, 1460, 2000];
    match what % 12 {
        0 => (Flags::ACK, 0),
        1 => (Flags::SYN, 0),
        2 => (Flags::SYN | Flags::ACK, 0),
        3 => (Flags::ACK | Flags::PSH, input.pick(lengths)),
        4 => (Flags::ACK | Flags::FIN, 0),
        5 => (Flags::ACK | Flags::FIN | Flags::PSH, input.pick(lengths)),
        6 => (Flags::RST, 0),
        7 => (Flags::RST | Flags::ACK, 0),
        8 => (Flags::SYN | Flags::ECE | Flags::CWR, 0),
        9 => (Flags::ACK, usize::from(input.octet())),
        _ => (Flags(input.octet()), usize::from(input.octet())),
    }
}

fn usual_options(now: Instant, flow: &Flow, segment: &Segment) -> Vec<u8> {
    let mut options = Vec::new();
    let is_syn = segment.flags.contains(Flags::SYN);
    if is_syn {
        options.extend([2, 4, 5, 180, 1, 3, 3, 2, 4, 2]);
    } else {
        options.extend([1, 1]);
    }
    if flow.has_stamps {
        options.extend([8, 10]);
        options.extend(flow.stamp(now).to_be_bytes());
        options.extend(
            if is_syn && !segment.flags.contains(Flags::ACK) { 0 } else { flow.host_stamp }.to_be_bytes(),
        );
    }
    options
}

/// A number that is special for the flow.
fn nearby(at: Seq, flow: &Flow, input: &mut Input<'_>) -> Seq {
    match input.octet() % 16 {
        0 => at + 1,
        1 => at - 1,
        2 => at + 1448,
        3 => at - 1448,
        4 => at + 65_535,
        5 => at - 65_535,
        6 => at + 0x8000_0000,
        7 => at + 0x7fff_ffff,
        8 => at - 0x7fff_ffff,
        9 => flow.host_ack,
        10 => flow.host_next,
        11 => flow.next,
        12 => at + u32::from(input.octet()),
        13 => at - u32::from(input.octet()),
        14 => at - u32::from(input.word()),
        _ => Seq(input.long()),
    }
}

/// Options one after the other, or any bytes.
fn options(now: Instant, flow: &Flow, input: &mut Input<'_>) -> Vec<u8> {
    let mut options = Vec::new();
    for _ in 0..1 + usize::from(input.octet() % 6) {
        match input.octet() % 12 {
            0 => options.extend(stamps(flow.stamp(now), flow.host_stamp)),
            1 => options
                .extend(stamps(flow.stamp(now).wrapping_sub(u32::from(input.octet())), flow.host_stamp)),
            2 => options.extend(stamps(flow.stamp(now).wrapping_add(input.long()), input.long())),
            3 => options.extend(sack(flow, input)),
            4 => options.extend([2, 4, input.octet(), input.octet()]),
            5 => options.extend([3, 3, input.octet()]),
            6 => options.extend([4, 2]),
            7 => options.extend([253, 5, 0x48, 0x57, input.octet()]),
            8 => options.extend([
                253,
                9,
                0x48,
                0x57,
                7,
                input.octet(),
                input.octet(),
                input.octet(),
                input.octet(),
            ]),
            9 => options.extend([254, 4 + input.octet() % 2, 0, 0xac, input.octet()]),
            10 => options.push(1),
            _ => {
                let len = usize::from(input.octet() % 40);
                options.extend(input.bytes(len));
            }
        }
    }
    options
}

fn stamps(value: u32, echo: u32) -> Vec<u8> {
    [&[8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
}

/// SACK blocks that begin near the host's last segment.
fn sack(flow: &Flow, input: &mut Input<'_>) -> Vec<u8> {
    let blocks = 1 + input.octet() % 4;
    let mut option = vec![5, 2 + 8 * blocks];
    for _ in 0..blocks {
        let left = flow.host_next - u32::from(input.octet()) * 128;
        let right = left + u32::from(input.octet()) * 128;
        option.extend(left.0.to_be_bytes());
        option.extend(right.0.to_be_bytes());
    }
    option
}

fn change_envelope(envelope: &mut Envelope, input: &mut Input<'_>) {
    let changes = Bits(input.octet());
    envelope.ecn = changes.0 & 3;
    if changes.has(2) {
        envelope.hop_limit = input.octet();
    }
    let is_v4 = envelope.src.is_ipv4();
    if changes.has(3) {
        envelope.extra = if is_v4 { options_v4(input) } else { extensions_v6(input) };
    }
    if changes.has(4) {
        envelope.dst = group_or_other(is_v4, input);
    }
    if changes.has(5) {
        envelope.src = group_or_other(is_v4, input);
    }
    if changes.has(6) {
        envelope.id = u32::from(input.octet());
        envelope.is_other_id = true;
    }
    if changes.has(7) {
        envelope.fragment = Some((u16::from(input.octet()) * 8, input.octet() & 1 == 1));
    }
}

/// A completed source route, one that is not, or any bytes.
fn options_v4(input: &mut Input<'_>) -> Vec<u8> {
    match input.octet() % 4 {
        0 => vec![131, 7, 8, 10, 0, 0, 3],
        1 => vec![1, 137, 11, 12, 10, 0, 0, 3, 10, 0, 0, 9],
        2 => {
            let mut longest = vec![131, 39, 40];
            longest.extend((0..9).flat_map(|hop| [10, 0, 0, 100 + hop]));
            longest
        }
        _ => {
            let len = usize::from(input.octet() % 41);
            input.bytes(len).to_vec()
        }
    }
}

fn extensions_v6(input: &mut Input<'_>) -> Vec<u8> {
    let kinds = [protocol::HOP_BY_HOP, protocol::DESTINATION_OPTIONS, protocol::ROUTING, protocol::FRAGMENT];
    (0..input.octet() % 10).map(|_| input.pick(kinds)).collect()
}

fn group_or_other(is_v4: bool, input: &mut Input<'_>) -> IpAddr {
    let v4 = [
        FAR_V4,
        HOST_V4,
        PEER_V4,
        Ipv4Addr::BROADCAST.into(),
        Ipv4Addr::new(10, 0, 0, 255).into(),
        Ipv4Addr::new(224, 0, 0, 9).into(),
        Ipv4Addr::UNSPECIFIED.into(),
        Ipv4Addr::LOCALHOST.into(),
    ];
    let multicast = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let far = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let v6 = [
        HOST_V6,
        PEER_V6,
        multicast.into(),
        Ipv6Addr::UNSPECIFIED.into(),
        Ipv6Addr::LOCALHOST.into(),
        far.into(),
    ];
    if is_v4 { input.pick(v4) } else { input.pick(v6) }
}

/// Cuts the packet into fragments and spoils some, if the story wants that.
fn finish(envelope: &Envelope, payload: Vec<u8>, changes: Bits, input: &mut Input<'_>) -> Forged {
    let mut packets =
        if changes.has(6) { fragments(envelope, &payload, input) } else { vec![envelope.around(&payload)] };
    let mut may_mix = envelope.fragment.is_some() || envelope.is_other_id;
    if changes.has(7)
        && let Some(at) = input.index(packets.len())
    {
        spoil(&mut packets[at], input);
        may_mix |= changes.has(6);
    }
    Forged { packets, may_mix }
}

/// Pieces of equal length, in the story's order, perhaps again, overlapping or never.
fn fragments(envelope: &Envelope, payload: &[u8], input: &mut Input<'_>) -> Vec<Vec<u8>> {
    let piece_len = 8 * (1 + usize::from(input.octet() % 64));
    let pieces = payload.len().div_ceil(piece_len).clamp(1, 40);
    let order = input.octet();
    let mut packets = Vec::new();
    for nth in 0..pieces + usize::from(order & 3) {
        let at = match order >> 2 & 3 {
            0 => nth % pieces,
            1 => pieces - 1 - nth % pieces,
            2 => (nth * 7 + 3) % pieces,
            _ => usize::from(input.octet()) % pieces,
        };
        let overlap = if order & 0x80 != 0 { 8 * usize::from(input.octet() % 3) } else { 0 };
        let start = (at * piece_len).saturating_sub(overlap);
        let end = ((at + 1) * piece_len).min(payload.len());
        let mut piece = envelope.clone();
        piece.fragment = Some((start as u16, at + 1 < pieces));
        packets.push(piece.around(&payload[start.min(end)..end]));
    }
    packets
}

/// Spoils bytes anywhere, the length, or the IP header with its checksum made right again.
fn spoil(packet: &mut Vec<u8>, input: &mut Input<'_>) {
    for _ in 0..1 + input.octet() % 4 {
        let Some(at) = input.index(packet.len().min(256)) else { return };
        match input.octet() % 5 {
            0 => packet[at] ^= input.octet(),
            1 => packet.truncate(at),
            2 => packet.extend(input.bytes(at)),
            3 => {
                packet[at.min(19)] = input.octet();
                if packet.len() >= 20 && packet[0] >> 4 == 4 {
                    reseal_v4(packet);
                }
            }
            _ => packet[at] ^= 1 << (input.octet() % 8),
        }
    }
}

/// The data of a packet of 65,535 bytes, behind the longest headers.
const LONGEST_DATA: u16 = u16::MAX - 76;

/// UDP, echo requests, and unknown protocols.
pub(super) fn datagram(input: &mut Input<'_>) -> Forged {
    let (dst, src) = addresses(input);
    let changes = Bits(input.octet());
    // Few are as long as a packet can be.
    let most = if changes.0 & 0x1f == 0x1f { LONGEST_DATA } else { 3000 };
    let len = usize::from(input.word() % most);
    let data: Vec<u8> = (0..len as u32).map(|at| octet_at(Seq(at))).collect();
    let mut payload = Vec::new();
    let mut envelope = Envelope::new(src, dst, protocol::UDP);
    match input.octet() % 4 {
        0 | 1 => udp::emit(src, dst, (5000, port(input)), &data, &mut payload),
        2 => {
            envelope.protocol = icmp_protocol(src);
            icmp::emit_echo_request(src, dst, 1, 2, &data, &mut payload);
        }
        _ => {
            envelope.protocol = input.octet();
            payload = data;
        }
    }
    if changes.has(5) {
        change_envelope(&mut envelope, input);
    }
    finish(&envelope, payload, changes, input)
}

fn icmp_protocol(address: IpAddr) -> u8 {
    if address.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 }
}

/// An ICMP message, most often an error about a packet of the host.
pub(super) fn icmp_about(quoted: Option<&Vec<u8>>, input: &mut Input<'_>) -> Forged {
    let mut quoted = quoted.cloned().unwrap_or_default();
    let is_v6 = quoted.first().is_some_and(|first| first >> 4 == 6);
    let (src, dst) = if is_v6 { (STRANGER_V6, HOST_V6) } else { (STRANGER_V4, HOST_V4) };
    let changes = Bits(input.octet());
    if changes.has(4) && quoted.len() > 40 {
        // Replace the number that was sent.
        let at = if is_v6 { 44 } else { 24 };
        quoted[at..at + 4].copy_from_slice(&input.long().to_be_bytes());
    }
    if changes.has(3) {
        quoted.truncate(usize::from(input.octet()));
    }
    let kind = match input.octet() % 5 {
        0 => IcmpKind::Unreachable { code: input.octet() % 16 },
        1 | 2 => IcmpKind::PacketTooBig { mtu: u32::from(input.word()) },
        3 => IcmpKind::TimeExceeded { code: input.octet() % 2 },
        _ => IcmpKind::ParameterProblem { code: 0, pointer: u32::from(input.octet()) },
    };
    let mut message = Vec::new();
    icmp::emit_error(src, dst, kind, &quoted, &mut message);
    if changes.has(2) {
        message[0] = input.octet();
        message[1] = input.octet();
        seal(src, dst, icmp_protocol(src), 2, &mut message);
    }
    let mut envelope = Envelope::new(src, dst, icmp_protocol(src));
    if changes.has(5) {
        change_envelope(&mut envelope, input);
    }
    finish(&envelope, message, changes, input)
}
