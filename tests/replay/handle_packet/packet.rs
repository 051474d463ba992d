//! Packets made field by field: each field can be wrong on purpose while the checksums are right.

use std::net::{IpAddr, SocketAddr};

use hopwise_core::Seq;
use hopwise_core::wire::{Flags, Sum, protocol};

/// The byte at a place of any stream. Received data can thus be compared with it. Forged data follows this rule, too.
pub(super) fn octet_at(place: Seq) -> u8 {
    (place.0.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

pub(super) fn stream(from: Seq, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| octet_at(from + at)).collect()
}

pub(super) struct Segment {
    pub(super) src: SocketAddr,
    pub(super) dst: SocketAddr,
    pub(super) seq: Seq,
    pub(super) ack: Seq,
    pub(super) flags: Flags,
    pub(super) window: u16,
    pub(super) urgent: u16,
    /// Padded to whole words with END.
    pub(super) options: Vec<u8>,
    pub(super) len: usize,
}

impl Segment {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 0);
        let mut bytes = Vec::with_capacity(60 + self.len);
        bytes.extend(self.src.port().to_be_bytes());
        bytes.extend(self.dst.port().to_be_bytes());
        bytes.extend(self.seq.0.to_be_bytes());
        bytes.extend(self.ack.0.to_be_bytes());
        bytes.extend([((20 + options.len()) as u8 / 4) << 4, self.flags.0]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(self.urgent.to_be_bytes());
        bytes.extend(options);
        bytes.extend(stream(self.seq + u32::from(self.flags.contains(Flags::SYN)), self.len));
        seal(self.src.ip(), self.dst.ip(), protocol::TCP, 16, &mut bytes);
        bytes
    }
}

/// Writes the checksum of a layer above IP at its place.
pub(super) fn seal(src: IpAddr, dst: IpAddr, protocol: u8, place: usize, bytes: &mut [u8]) {
    let Some(field) = bytes.get_mut(place..place + 2) else { return };
    field.fill(0);
    let start = match protocol {
        protocol::ICMP => Sum::default(),
        _ => Sum::pseudo_header(src, dst, protocol, bytes.len() as u32),
    };
    let sum = start.add(bytes).finish();
    bytes[place..place + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Everything around a payload.
#[derive(Clone)]
pub(super) struct Envelope {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) protocol: u8,
    pub(super) ecn: u8,
    pub(super) hop_limit: u8,
    pub(super) id: u32,
    /// True if another datagram may have this id.
    pub(super) is_other_id: bool,
    /// Offset in bytes and "more fragments".
    pub(super) fragment: Option<(u16, bool)>,
    /// IPv4: raw options. IPv6: the kinds of the extension headers before the payload.
    pub(super) extra: Vec<u8>,
}

impl Envelope {
    pub(super) fn new(src: IpAddr, dst: IpAddr, protocol: u8) -> Envelope {
        let extra = Vec::new();
        Envelope {
            src,
            dst,
            protocol,
            ecn: 0,
            hop_limit: 64,
            id: 7,
            is_other_id: false,
            fragment: None,
            extra,
        }
    }

    pub(super) fn around(&self, payload: &[u8]) -> Vec<u8> {
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => self.around_v4(src.octets(), dst.octets(), payload),
            (IpAddr::V6(src), IpAddr::V6(dst)) => self.around_v6(src.octets(), dst.octets(), payload),
            _ => Vec::new(),
        }
    }

    fn around_v4(&self, src: [u8; 4], dst: [u8; 4], payload: &[u8]) -> Vec<u8> {
        let mut options = self.extra.clone();
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 0);
        let header_len = 20 + options.len();
        let total = u16::try_from(header_len + payload.len()).unwrap_or(u16::MAX);
        let (offset, more) = self.fragment.unwrap_or((0, false));
        let place = (offset / 8) | (u16::from(more) << 13);
        let mut packet = vec![0x40 | (header_len / 4) as u8, self.ecn];
        packet.extend(total.to_be_bytes());
        packet.extend((self.id as u16).to_be_bytes());
        packet.extend(place.to_be_bytes());
        packet.extend([self.hop_limit, self.protocol, 0, 0]);
        packet.extend(src);
        packet.extend(dst);
        packet.extend(options);
        reseal_v4(&mut packet);
        packet.extend(payload);
        packet
    }

    fn around_v6(&self, src: [u8; 16], dst: [u8; 16], payload: &[u8]) -> Vec<u8> {
        let mut kinds = self.extra.clone();
        if self.fragment.is_some() {
            kinds.push(protocol::FRAGMENT);
        }
        let mut inside = Vec::new();
        for (at, kind) in kinds.iter().enumerate() {
            let next = kinds.get(at + 1).copied().unwrap_or(self.protocol);
            inside.extend(self.extension(*kind, next));
        }
        inside.extend(payload);
        let len = u16::try_from(inside.len()).unwrap_or(u16::MAX);
        let first = kinds.first().copied().unwrap_or(self.protocol);
        let mut packet = vec![0x60, self.ecn << 4, 0, 0];
        packet.extend(len.to_be_bytes());
        packet.extend([first, self.hop_limit]);
        packet.extend(src);
        packet.extend(dst);
        packet.extend(inside);
        packet
    }

    fn extension(&self, kind: u8, next: u8) -> [u8; 8] {
        if kind == protocol::FRAGMENT {
            let (offset, more) = self.fragment.unwrap_or((0, false));
            let [high, low] = (offset & !7 | u16::from(more)).to_be_bytes();
            let [a, b, c, d] = self.id.to_be_bytes();
            return [next, 0, high, low, a, b, c, d];
        }
        // As options these bytes are PadN of four bytes; in a routing header their length is "segments left".
        let length = if kind == protocol::ROUTING { 0 } else { 4 };
        [next, 0, 1, length, 0, 0, 0, 0]
    }
}

/// Computes the header checksum anew, for a header that was changed.
pub(super) fn reseal_v4(packet: &mut [u8]) {
    let header_len = usize::from(packet[0] & 0xf) * 4;
    let Some(header) = packet.get_mut(..header_len).filter(|header| header.len() >= 20) else { return };
    header[10..12].fill(0);
    let sum = Sum::default().add(header).finish();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}
