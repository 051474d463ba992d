//! Flows across a base station, and the packets of their ends.

use std::net::{IpAddr, SocketAddr};

use hopwise_core::Seq;
use hopwise_core::wire::{
    Checksums, Flags, IpHeader, IpView, SackBlock, TcpHeader, TcpOptions, TcpView, Timestamps, protocol,
};

use crate::input::{Bits, Input};
use crate::made_right::make_right;

/// More than the proxy has room for.
pub(super) const FLOWS: u8 = 9;
/// The longest payload of a segment over IPv4.
const LONGEST: usize = 65_535 - 40;

/// The address of a flow's mobile. Some mobiles have two flows, and some have IPv6.
pub(super) fn mobile(number: u8) -> IpAddr {
    let last = number % FLOWS / 2 + 2;
    match number % FLOWS % 3 {
        2 => IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, u16::from(last)]),
        _ => IpAddr::from([10, 0, 0, last]),
    }
}

/// One end's view of its flow.
#[derive(Clone, Copy)]
struct End {
    at: SocketAddr,
    /// The next number that it sends, and the next one that it expects.
    next: Seq,
    expected: Seq,
    /// The peer's last timestamp.
    heard: u32,
}

pub(super) struct Flow {
    fixed: End,
    mobile: End,
    clock: u32,
    last_to_mobile: Option<Vec<u8>>,
}

/// The parts of a segment that its receiver goes by.
pub(super) struct Answered {
    ends: (SocketAddr, SocketAddr),
    next: Seq,
    stamp: Option<u32>,
}

/// A segment that left the proxy.
pub(super) fn read(packet: &[u8]) -> Option<Answered> {
    let view = IpView::parse(packet).ok().filter(|view| view.protocol == protocol::TCP)?;
    let tcp = TcpView::parse(view.src, view.dst, view.payload, Checksums::Trust).ok()?;
    let ends = (SocketAddr::new(view.src, tcp.src_port), SocketAddr::new(view.dst, tcp.dst_port));
    let numbers = tcp.payload.len() as u32 + u32::from(tcp.flags.contains(Flags::SYN));
    Some(Answered { ends, next: tcp.seq + numbers, stamp: tcp.options.timestamps.map(|told| told.value) })
}

impl Flow {
    pub(super) fn new(number: u8) -> Flow {
        let mobile = SocketAddr::new(mobile(number), 40_000 + u16::from(number));
        let fixed: IpAddr =
            if mobile.is_ipv4() { [10, 0, 1, 1].into() } else { [0xfd, 1, 0, 0, 0, 0, 0, 1].into() };
        let end = |at, next| End { at, next: Seq(next), expected: Seq(0), heard: 0 };
        Flow {
            fixed: end(SocketAddr::new(fixed, 5001), 1_000),
            mobile: end(mobile, u32::MAX - 3_000),
            clock: 1,
            last_to_mobile: None,
        }
    }

    pub(super) fn last_to_mobile(&self) -> Option<Vec<u8>> {
        self.last_to_mobile.clone()
    }

    /// An end gets a segment and knows what to acknowledge.
    pub(super) fn hear(&mut self, is_to_mobile: bool, heard: &Answered) {
        let (end, other) =
            if is_to_mobile { (&mut self.mobile, &self.fixed) } else { (&mut self.fixed, &self.mobile) };
        if heard.ends == (other.at, end.at) {
            end.expected = heard.next;
            end.heard = heard.stamp.unwrap_or(end.heard);
        }
    }

    /// The next segment of an end, as the input wants it, and whether it is the mobile's.
    pub(super) fn packet(&mut self, input: &mut Input<'_>) -> (bool, Vec<u8>) {
        let manner = Bits(input.octet());
        let is_from_mobile = manner.has(0);
        self.clock = self.clock.wrapping_add(1);
        let (end, other) =
            if is_from_mobile { (&mut self.mobile, &self.fixed) } else { (&mut self.fixed, &self.mobile) };
        let flags = match manner.0 >> 1 & 7 {
            0 => Flags::SYN,
            1 => Flags::SYN | Flags::ACK,
            2 => Flags::ACK | Flags::FIN,
            3 => Flags::RST | Flags::ACK,
            4 => Flags(input.octet()),
            _ => Flags::ACK,
        };
        let lengths = [0, 0, 1, 536, 1000, 1448, 8_000, LONGEST - 40];
        let len = if manner.has(4) { input.pick(lengths) } else { 0 };
        // A wrong number: data again, from the future, or far away.
        let (seq, ack) = if manner.has(5) {
            let shift = [1, 1000, 1448, 70_000, 1 << 31];
            (end.next - input.pick(shift), end.expected - input.pick(shift))
        } else {
            (end.next, end.expected)
        };
        let options = options(manner, flags, (self.clock, end.heard), ack, input);
        let header = TcpHeader {
            src_port: end.at.port(),
            dst_port: other.at.port(),
            seq,
            ack,
            flags,
            window: if manner.has(6) { input.word() } else { 20_000 },
            urgent: 0,
            options: &options,
        };
        let ends = (end.at.ip(), other.at.ip());
        let packet = written(ends, &header, &vec![self.clock as u8; len]);
        if !manner.has(5) {
            end.next = end.next + len as u32 + u32::from(flags.contains(Flags::SYN));
        }
        if !is_from_mobile && len > 0 {
            self.last_to_mobile = Some(packet.clone());
        }
        (is_from_mobile, packet)
    }
}

fn options(
    manner: Bits,
    flags: Flags,
    (value, echo): (u32, u32),
    ack: Seq,
    input: &mut Input<'_>,
) -> TcpOptions {
    let is_syn = flags.contains(Flags::SYN);
    let mut options = TcpOptions {
        timestamps: (!manner.has(7)).then_some(Timestamps { value, echo }),
        mss: is_syn.then_some(1460),
        sack_permitted: is_syn,
        window_scale: is_syn.then_some(2),
        ..TcpOptions::default()
    };
    if manner.has(5) && !is_syn {
        for _ in 0..input.octet() % 4 {
            let left = ack + u32::from(input.octet()) * 100;
            options.sack.push(SackBlock { left, right: left + u32::from(input.octet()) * 100 });
        }
    }
    options
}

fn written((src, dst): (IpAddr, IpAddr), header: &TcpHeader<'_>, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    IpHeader::plain(src, dst, protocol::TCP).emit(header.len() + payload.len(), &mut packet);
    header.emit(src, dst, (payload, &[]), Checksums::Verify, &mut packet);
    packet
}

/// Any bytes, with lengths and checksums that are right if the input wants it.
pub(super) fn anything(input: &mut Input<'_>) -> (bool, Vec<u8>) {
    let manner = Bits(input.octet());
    let len = usize::from(input.word());
    let mut packet = input.bytes(len).to_vec();
    // Repeated bytes make it as long as a packet can be.
    if manner.has(4) && !packet.is_empty() {
        packet = packet.iter().copied().cycle().take(len).collect();
    }
    make_right(&mut packet, manner);
    (manner.has(3), packet)
}
