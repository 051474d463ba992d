//! A mover of packets. It answers the kernel's TCP with valid packets and hardly any state; its figures are the limit
//! of the device and the kernel.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hopwise_core::wire::Sum;
use hopwise_core::{Instant, NextHop, QueueClass, Transmit};
use hopwise_host::{Link, MAX_PACKET, Received};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ours::PORT;
use crate::place::{Device, OURS};
use crate::theirs::BULK_BUFFER;

const SYN: u8 = 2;
const FIN: u8 = 1;
const ACK: u8 = 16;
/// Payload of a segment, and of a bundle.
const SEGMENT: usize = 1460;
const BUNDLE: usize = 44 * SEGMENT;
const SHIFT: u8 = 7;
const HEADERS: usize = 40;
const WINDOW: u16 = u16::MAX;
/// The most bytes on their way to a mover of several connections; the device's queue of 8,192 packets then loses none.
/// The mover keeps nothing out of order and would need all bytes behind a loss again.
const ON_ITS_WAY: usize = 6_000 * SEGMENT;

/// Waits until the link has something to read.
pub(crate) fn wait_readable(link: &dyn Link, rest: Option<Duration>) {
    let Some(fd) = link.descriptor() else { return };
    let rest =
        rest.map(|rest| Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: rest.subsec_nanos().into() });
    let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], rest.as_ref());
}

pub(crate) struct Mover {
    link: Box<dyn Link>,
    device: Device,
    input: Vec<u8>,
    output: Vec<u8>,
    flows: Vec<Flow>,
    window: u16,
    keeps: Option<Kept>,
}

/// A program's bytes, and the copy that every TCP keeps for retransmissions.
struct Kept {
    program: Vec<u8>,
    ring: Vec<u8>,
    at: usize,
}

impl Kept {
    /// Makes a program's buffer and a send buffer as large as the other stacks' buffers. Several connections share one,
    /// which makes it no slower.
    fn new() -> Kept {
        Kept { program: vec![0; 256 << 10], ring: vec![0; BULK_BUFFER], at: 0 }
    }

    fn keep(&mut self, bytes: usize) -> &[u8] {
        if self.at + bytes > self.ring.len() {
            self.at = 0;
        }
        let from = self.at % (self.program.len() - bytes);
        let kept = &mut self.ring[self.at..self.at + bytes];
        kept.copy_from_slice(&self.program[from..from + bytes]);
        self.at += bytes;
        kept
    }
}

/// The state of a connection.
struct Flow {
    peer: SocketAddr,
    port: u16,
    next: u32,
    expected: u32,
    begin: u32,
    acked: u32,
    window: u32,
    shift: u8,
    /// Bytes that are still to be sent.
    rest: u64,
    /// Bytes that came and are not acknowledged.
    owed: u32,
}

/// The fields that the mover reads in a segment.
struct Seen {
    from: SocketAddr,
    to: u16,
    seq: u32,
    ack: u32,
    flags: u8,
    window: u32,
    payload: u32,
}

impl Flow {
    fn new(peer: SocketAddr, port: u16) -> Flow {
        let (next, expected, begin, acked) = (1, 0, 2, 2);
        Flow { peer, port, next, expected, begin, acked, window: 0, shift: 0, rest: 0, owed: 0 }
    }

    fn in_flight(&self) -> u32 {
        self.next.wrapping_sub(self.acked)
    }

    /// Payload of the segment that may leave now.
    fn ready(&self, most: usize) -> Option<usize> {
        let room = u64::from(self.window).saturating_sub(u64::from(self.in_flight()));
        let payload = self.rest.min(most as u64);
        (payload > 0 && payload <= room).then_some(payload as usize)
    }

    fn hear(&mut self, seen: &Seen) {
        if seen.ack.wrapping_sub(self.begin) >= self.acked.wrapping_sub(self.begin) {
            (self.acked, self.window) = (seen.ack, seen.window << self.shift);
        }
    }

    /// Sends everything in flight once more.
    fn again(&mut self) {
        self.rest += u64::from(self.in_flight());
        self.next = self.acked;
    }
}

impl Mover {
    pub(crate) fn start(device: Device) -> Mover {
        let (input, output) = (vec![0; MAX_PACKET], vec![0; HEADERS + BUNDLE]);
        Mover { link: device.open(), device, input, output, flows: Vec::new(), window: WINDOW, keeps: None }
    }

    /// A mover that copies each segment and sends the copy, for links that gather.
    pub(crate) fn that_keeps(device: Device) -> Mover {
        Mover { keeps: Some(Kept::new()), ..Mover::start(device) }
    }

    fn read(&mut self) -> Option<Seen> {
        loop {
            match self.link.receive(Instant::ZERO, &mut self.input) {
                Received::Packet(arrived) if self.input[0] == 0x45 && self.input[9] == 6 => {
                    return Some(look(&self.input[..arrived.bytes]));
                }
                Received::Packet(_) | Received::Dropped => {}
                Received::Nothing | Received::Gone => return None,
            }
        }
    }

    fn wait(&mut self) -> Seen {
        loop {
            if let Some(seen) = self.read() {
                return seen;
            }
            wait_readable(&*self.link, None);
        }
    }

    fn wait_a_while(&mut self) -> Option<Seen> {
        self.read().or_else(|| {
            wait_readable(&*self.link, Some(Duration::from_millis(20)));
            self.read()
        })
    }

    fn flow_of(&self, seen: &Seen) -> Option<usize> {
        self.flows.iter().position(|flow| (flow.peer, flow.port) == (seen.from, seen.to))
    }

    /// Writes a segment of a flow with this payload, all of it zeros, at its `next`.
    fn write(&mut self, nth: usize, flags: u8, payload: usize) {
        let Some(total) = self.write_packet(nth, flags, payload) else { return };
        let segment_bytes = (payload > SEGMENT).then_some(SEGMENT as u16);
        let transmit = Transmit { to: NextHop::Link, class: QueueClass::Data, segment_bytes, id: 0 };
        match (&mut self.keeps, self.link.gathers()) {
            (Some(keeps), Some(link)) if payload > 0 => {
                let head = &self.output[..total - payload];
                link.transmit_pieces(&transmit, [head, keeps.keep(payload), &[]]);
            }
            _ => {
                self.link.transmit(Instant::ZERO, &transmit, &self.output[..total]);
            }
        }
        self.output[40..48].fill(0);
    }

    /// Writes the packet's headers and options, and returns its length.
    fn write_packet(&mut self, nth: usize, flags: u8, payload: usize) -> Option<usize> {
        let Flow { peer, port, next, expected, .. } = self.flows[nth];
        let options: &[u8] = if flags & SYN != 0 { &[2, 4, 5, 0xb4, 1, 3, 3, SHIFT] } else { &[] };
        let total = HEADERS + options.len() + payload;
        let packet = &mut self.output[..total];
        packet[..12].copy_from_slice(&[0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0x40, 0, 64, 6, 0, 0]);
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (OURS, peer.ip()) else { return None };
        packet[12..16].copy_from_slice(&src.octets());
        packet[16..20].copy_from_slice(&dst.octets());
        let checksum = Sum::default().add(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        packet[22..24].copy_from_slice(&peer.port().to_be_bytes());
        packet[24..28].copy_from_slice(&next.to_be_bytes());
        packet[28..32].copy_from_slice(&expected.to_be_bytes());
        let [high, low] = if flags & SYN != 0 { WINDOW } else { self.window }.to_be_bytes();
        packet[32..40].copy_from_slice(&[(5 + options.len() as u8 / 4) << 4, flags, high, low, 0, 0, 0, 0]);
        packet[40..40 + options.len()].copy_from_slice(options);
        let pseudo = Sum::pseudo_header(src.into(), dst.into(), 6, (total - 20) as u32);
        // The payload's zeros add nothing.
        let checksum = match self.device {
            Device::Mtu => pseudo.add(&packet[20..40 + options.len()]).finish(),
            Device::Offload => pseudo.fold(),
        };
        packet[36..38].copy_from_slice(&checksum.to_be_bytes());
        Some(total)
    }

    fn most(&self) -> usize {
        match self.device {
            Device::Mtu => SEGMENT,
            Device::Offload => BUNDLE,
        }
    }

    pub(crate) fn send(&mut self, to: SocketAddr, connections: usize, bytes_each: u64) {
        for nth in 0..connections {
            self.open(nth, to, bytes_each);
        }
        while self.flows.iter().any(|flow| flow.rest > 0 || flow.in_flight() > 0) {
            let mut has_sent = false;
            for nth in 0..connections {
                let Some(payload) = self.flows[nth].ready(self.most()) else { continue };
                self.write(nth, ACK, payload);
                let flow = &mut self.flows[nth];
                flow.next = flow.next.wrapping_add(payload as u32);
                flow.rest -= payload as u64;
                has_sent = true;
                let seen = self.read();
                self.hear(seen);
            }
            if !has_sent {
                let seen = self.wait_a_while();
                if seen.is_none() {
                    // The kernel has dropped something.
                    self.flows.iter_mut().for_each(Flow::again);
                }
                self.hear(seen);
            }
        }
        for nth in 0..connections {
            self.write(nth, FIN | ACK, 0);
            self.flows[nth].next = self.flows[nth].next.wrapping_add(1);
            while self.wait().flags & FIN == 0 {}
            self.flows[nth].expected = self.flows[nth].expected.wrapping_add(1);
            self.write(nth, ACK, 0);
        }
    }

    fn open(&mut self, nth: usize, to: SocketAddr, bytes: u64) {
        self.flows.push(Flow::new(to, 40_000 + nth as u16));
        self.write(nth, SYN, 0);
        let answer = self.wait();
        let options = self.input[40..].windows(3);
        let flow = &mut self.flows[nth];
        flow.shift = options.into_iter().find(|option| option[..2] == [3, 3]).map_or(0, |option| option[2]);
        (flow.next, flow.expected, flow.window, flow.rest) =
            (2, answer.seq.wrapping_add(1), answer.window, bytes);
        self.write(nth, ACK, 0);
    }

    fn hear(&mut self, seen: Option<Seen>) {
        if let Some(seen) = seen
            && let Some(nth) = self.flow_of(&seen)
        {
            self.flows[nth].hear(&seen);
        }
    }

    /// Receives this many connections to their ends.
    pub(crate) fn receive(&mut self, connections: usize) {
        if connections > 1 && self.device == Device::Mtu {
            self.window = ((ON_ITS_WAY / connections) >> SHIFT) as u16;
        }
        let mut ended = 0;
        while ended < connections {
            let seen = self.wait();
            let nth = self.flow_of(&seen);
            match nth {
                None if seen.flags & SYN != 0 => self.accept(&seen),
                Some(nth) => ended += usize::from(self.take(nth, &seen)),
                None => {}
            }
        }
    }

    fn accept(&mut self, syn: &Seen) {
        let nth = self.flows.len();
        self.flows.push(Flow { expected: syn.seq.wrapping_add(1), ..Flow::new(syn.from, PORT) });
        self.write(nth, SYN | ACK, 0);
        self.flows[nth].next = 2;
    }

    /// Takes a segment; returns whether it was the last of its flow.
    fn take(&mut self, nth: usize, seen: &Seen) -> bool {
        let flow = &mut self.flows[nth];
        if seen.seq == flow.expected {
            flow.expected = flow.expected.wrapping_add(seen.payload);
            flow.owed += seen.payload;
        } else if seen.payload > 0 {
            flow.owed = u32::MAX / 2;
        }
        if seen.flags & FIN != 0 && seen.seq.wrapping_add(seen.payload) == flow.expected {
            flow.expected = flow.expected.wrapping_add(1);
            self.write(nth, FIN | ACK, 0);
            return true;
        }
        // Every second segment is acknowledged, as by TCPs; segments that were coalesced count as one read.
        if flow.owed >= 2 * SEGMENT as u32 || (flow.owed > 0 && self.device == Device::Offload) {
            flow.owed = 0;
            self.write(nth, ACK, 0);
        }
        false
    }
}

fn look(packet: &[u8]) -> Seen {
    let word = |at: usize| u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let headers = 20 + usize::from(packet[32] >> 4) * 4;
    Seen {
        from: SocketAddr::new(IpAddr::from([packet[12], packet[13], packet[14], packet[15]]), half(20)),
        to: half(22),
        seq: word(24),
        ack: word(28),
        flags: packet[33],
        window: u32::from(half(34)),
        payload: (packet.len() - headers) as u32,
    }
}
