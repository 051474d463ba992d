//! A mover of packets: it answers the kernel's TCP with packets that are right and knows next to nothing, so that what
//! it reaches is what the device and the kernel allow.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hopwise_core::wire::Sum;
use hopwise_core::{Instant, NextHop, QueueClass, Transmit};
use hopwise_host::{Link, MAX_PACKET, Received};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ours::PORT;
use crate::place::{Device, OURS};

const SYN: u8 = 2;
const FIN: u8 = 1;
const ACK: u8 = 16;
/// Payload of a segment, and of a bundle.
const SEGMENT: usize = 1460;
const BUNDLE: usize = 44 * SEGMENT;
const SHIFT: u8 = 7;
const HEADERS: usize = 40;

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
    peer: SocketAddr,
    port: u16,
    next: u32,
    expected: u32,
}

/// What is looked at in a segment.
struct Seen {
    from: SocketAddr,
    seq: u32,
    ack: u32,
    flags: u8,
    window: u32,
    payload: u32,
}

impl Mover {
    pub(crate) fn start(device: Device) -> Mover {
        Mover {
            link: device.open(),
            device,
            input: vec![0; MAX_PACKET],
            output: vec![0; HEADERS + BUNDLE],
            peer: (OURS, 0).into(),
            port: PORT,
            next: 1,
            expected: 0,
        }
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

    /// A segment with so much payload, all of it zeros, at `next`.
    fn write(&mut self, flags: u8, payload: usize) {
        let options: &[u8] = if flags & SYN != 0 { &[2, 4, 5, 0xb4, 1, 3, 3, SHIFT] } else { &[] };
        let total = HEADERS + options.len() + payload;
        let packet = &mut self.output[..total];
        packet[..12].copy_from_slice(&[0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0x40, 0, 64, 6, 0, 0]);
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (OURS, self.peer.ip()) else { return };
        packet[12..16].copy_from_slice(&src.octets());
        packet[16..20].copy_from_slice(&dst.octets());
        let checksum = Sum::default().add(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet[20..22].copy_from_slice(&self.port.to_be_bytes());
        packet[22..24].copy_from_slice(&self.peer.port().to_be_bytes());
        packet[24..28].copy_from_slice(&self.next.to_be_bytes());
        packet[28..32].copy_from_slice(&self.expected.to_be_bytes());
        packet[32..40].copy_from_slice(&[(5 + options.len() as u8 / 4) << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet[40..40 + options.len()].copy_from_slice(options);
        let pseudo = Sum::pseudo_header(src.into(), dst.into(), 6, (total - 20) as u32);
        // The payload's zeros add nothing.
        let checksum = match self.device {
            Device::Mtu => pseudo.add(&packet[20..40 + options.len()]).finish(),
            Device::Offload => pseudo.fold(),
        };
        packet[36..38].copy_from_slice(&checksum.to_be_bytes());
        let segment_bytes = (payload > SEGMENT).then_some(SEGMENT as u16);
        let transmit = Transmit { to: NextHop::Link, class: QueueClass::Data, segment_bytes, id: 0 };
        self.link.transmit(Instant::ZERO, &transmit, packet);
        self.output[40..48].fill(0);
    }

    fn most(&self) -> usize {
        match self.device {
            Device::Mtu => SEGMENT,
            Device::Offload => BUNDLE,
        }
    }

    pub(crate) fn send(&mut self, to: SocketAddr, bytes: u64) {
        (self.peer, self.port, self.next) = (to, 40_000, 1);
        self.write(SYN, 0);
        let answer = self.wait();
        let shift =
            self.input[40..].windows(3).find(|option| option[..2] == [3, 3]).map_or(0, |option| option[2]);
        self.expected = answer.seq.wrapping_add(1);
        self.next = 2;
        self.write(ACK, 0);
        let (begin, mut acked, mut window) = (self.next, self.next, answer.window);
        let mut rest = bytes;
        while rest > 0 || acked != self.next {
            let in_flight = self.next.wrapping_sub(acked);
            let room = u64::from(window).saturating_sub(u64::from(in_flight));
            let payload = rest.min(self.most() as u64);
            if payload > 0 && payload <= room {
                self.write(ACK, payload as usize);
                self.next = self.next.wrapping_add(payload as u32);
                rest -= payload;
            }
            let has_sent = payload > 0 && payload <= room;
            let seen = if has_sent { self.read() } else { self.wait_a_while() };
            if let Some(seen) = seen
                && seen.ack.wrapping_sub(begin) >= acked.wrapping_sub(begin)
            {
                (acked, window) = (seen.ack, seen.window << shift);
            } else if !has_sent {
                // The kernel has dropped something: all of it again.
                rest += u64::from(in_flight);
                self.next = acked;
            }
        }
        self.write(FIN | ACK, 0);
        self.next = self.next.wrapping_add(1);
        while self.wait().flags & FIN == 0 {}
        self.expected = self.expected.wrapping_add(1);
        self.write(ACK, 0);
    }

    /// One connection to its end.
    pub(crate) fn receive(&mut self) {
        let syn = loop {
            let seen = self.wait();
            if seen.flags & SYN != 0 {
                break seen;
            }
        };
        (self.peer, self.port, self.next) = (syn.from, PORT, 1);
        self.expected = syn.seq.wrapping_add(1);
        self.write(SYN | ACK, 0);
        self.next = 2;
        let mut owed = 0;
        loop {
            let seen = self.wait();
            if seen.seq == self.expected {
                self.expected = self.expected.wrapping_add(seen.payload);
                owed += seen.payload;
            } else if seen.payload > 0 {
                owed = u32::MAX / 2;
            }
            if seen.flags & FIN != 0 && seen.seq.wrapping_add(seen.payload) == self.expected {
                self.expected = self.expected.wrapping_add(1);
                self.write(FIN | ACK, 0);
                return;
            }
            // Every second segment, as TCPs do; what was coalesced counts as one read.
            if owed >= 2 * SEGMENT as u32 || (owed > 0 && self.device == Device::Offload) {
                self.write(ACK, 0);
                owed = 0;
            }
        }
    }
}

fn look(packet: &[u8]) -> Seen {
    let word = |at: usize| u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let headers = 20 + usize::from(packet[32] >> 4) * 4;
    Seen {
        from: SocketAddr::new(IpAddr::from([packet[12], packet[13], packet[14], packet[15]]), half(20)),
        seq: word(24),
        ack: word(28),
        flags: packet[33],
        window: u32::from(half(34)),
        payload: (packet.len() - headers) as u32,
    }
}
