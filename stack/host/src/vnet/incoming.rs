//! Completes an incoming packet: finishes or checks its checksum, or cuts it.

use std::net::IpAddr;

use hopwise_core::narrow::{as_u16, as_u32};
use hopwise_core::wire::{Checksums, IpView, Sum, TcpBytes, protocol};
use tun_rs::VirtioNetHdr;

use super::header::{DATA_VALID, ECN, NEEDS_CHECKSUM, TCP_V4, TCP_V6, UDP};
use crate::counters::LinkDrop;

const UDP_HEADER: usize = 8;

/// A bundle of UDP datagrams on its way to the machine.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bundle: Vec<u8>,
    /// The offset of the payload, and that of the next datagram's payload.
    headers: usize,
    at: usize,
    each: usize,
}

/// The form of a packet for the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    Single,
    Bundle(u16),
}

impl Whole {
    pub(crate) fn get(self) -> Option<u16> {
        match self {
            Whole::Single => None,
            Whole::Bundle(segment_bytes) => Some(segment_bytes),
        }
    }
}

/// Brings a packet to the state that the link vouches for. TCP has been checked, by the kernel or here, and all other
/// packets have their checksum. `None` if the packet is now in `incoming`.
pub(crate) fn finish(
    header: &VirtioNetHdr,
    packet: &mut [u8],
    incoming: &mut Incoming,
) -> Result<Option<Whole>, LinkDrop> {
    match header.gso_type & !ECN {
        0 => {
            check(header.flags, packet)?;
            Ok(Some(Whole::Single))
        }
        TCP_V4 | TCP_V6 => {
            let is_bundle = header.gso_size > 0;
            Ok(Some(if is_bundle { Whole::Bundle(header.gso_size) } else { Whole::Single }))
        }
        UDP => {
            let ip = IpView::parse(packet).map_err(|_| LinkDrop::Malformed)?;
            let headers = ip.header_len + UDP_HEADER;
            if ip.protocol != protocol::UDP || header.gso_size == 0 || packet.len() <= headers {
                return Err(LinkDrop::Malformed);
            }
            incoming.put(packet, headers, usize::from(header.gso_size));
            Ok(None)
        }
        _ => Err(LinkDrop::Malformed),
    }
}

/// Checks a single packet.
fn check(flags: u8, packet: &mut [u8]) -> Result<(), LinkDrop> {
    if flags & DATA_VALID != 0 {
        return Ok(());
    }
    // The machine drops a malformed packet, with its own reason.
    let Ok(ip) = IpView::parse(packet) else { return Ok(()) };
    if ip.fragment.is_some() {
        return Ok(());
    }
    let needs_checksum = flags & NEEDS_CHECKSUM != 0;
    match ip.protocol {
        protocol::TCP if !needs_checksum => TcpBytes::check(ip.src, ip.dst, ip.payload, Checksums::Verify)
            .map(drop)
            .map_err(|_| LinkDrop::Checksum),
        protocol::UDP if needs_checksum && ip.payload.len() >= UDP_HEADER => {
            let (from, to) = (ip.header_len, ip.header_len + ip.payload.len());
            write_udp_checksum(ip.src, ip.dst, &mut packet[from..to]);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn write_udp_checksum(src: IpAddr, dst: IpAddr, datagram: &mut [u8]) {
    datagram[6..8].fill(0);
    let sum = Sum::pseudo_header(src, dst, protocol::UDP, as_u32(datagram.len())).add(datagram).finish();
    // Zero would mean no checksum (RFC 768).
    let sum = if sum == 0 { u16::MAX } else { sum };
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
}

impl Incoming {
    fn put(&mut self, bundle: &[u8], headers: usize, each: usize) {
        self.bundle.clear();
        self.bundle.extend_from_slice(bundle);
        (self.headers, self.at, self.each) = (headers, headers, each);
    }

    /// Writes the next datagram of the bundle as a packet of its own, and returns its length.
    pub(crate) fn next(&mut self, into: &mut [u8]) -> Option<usize> {
        let headers = self.headers;
        let end = (self.at + self.each).min(self.bundle.len());
        if self.at >= end {
            return None;
        }
        let nth = (self.at - headers) / self.each;
        let bytes = headers + end - self.at;
        into[..headers].copy_from_slice(&self.bundle[..headers]);
        into[headers..bytes].copy_from_slice(&self.bundle[self.at..end]);
        self.at = end;
        address(&mut into[..bytes], headers - UDP_HEADER, as_u16(nth));
        Some(bytes)
    }
}

/// Makes the headers of a bundle those of its `nth` datagram.
fn address(packet: &mut [u8], udp_at: usize, nth: u16) {
    let total = packet.len();
    if packet[0] >> 4 == 4 {
        let id = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(nth);
        packet[2..4].copy_from_slice(&as_u16(total).to_be_bytes());
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        packet[10..12].fill(0);
        let checksum = Sum::default().add(&packet[..udp_at]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        packet[4..6].copy_from_slice(&as_u16(total - 40).to_be_bytes());
    }
    packet[udp_at + 4..udp_at + 6].copy_from_slice(&as_u16(total - udp_at).to_be_bytes());
    if let Ok((src, dst)) = IpView::parse(packet).map(|ip| (ip.src, ip.dst)) {
        write_udp_checksum(src, dst, &mut packet[udp_at..]);
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::wire::{Ecn, IpHeader, UdpView, udp};

    use super::*;

    fn datagram(src: &str, dst: &str, payload: &[u8]) -> Vec<u8> {
        let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
        let ip = IpHeader {
            src,
            dst,
            protocol: protocol::UDP,
            hop_limit: 64,
            ecn: Ecn::NotEct,
            dscp: 0,
            dont_fragment: true,
            id: 7,
            source_route: None,
        };
        let mut packet = Vec::new();
        ip.emit(UDP_HEADER + payload.len(), &mut packet);
        udp::emit(src, dst, (1, 2), payload, &mut packet);
        packet
    }

    fn read(packet: &[u8]) -> Vec<u8> {
        let ip = IpView::parse(packet).unwrap();
        UdpView::parse(ip.src, ip.dst, ip.payload).unwrap().payload.to_vec()
    }

    #[test]
    fn a_bundle_of_datagrams_is_cut_into_packets_with_sound_checksums() {
        for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let payload: Vec<u8> = (0..2500_u32).map(|at| at as u8).collect();
            let mut bundle = datagram(src, dst, &payload);
            let header = VirtioNetHdr { flags: 1, gso_type: UDP, gso_size: 1000, ..VirtioNetHdr::default() };
            let mut incoming = Incoming::default();
            assert_eq!(finish(&header, &mut bundle, &mut incoming), Ok(None));
            let (mut buffer, mut whole) = (vec![0; 3000], Vec::new());
            let mut pieces = 0;
            while let Some(bytes) = incoming.next(&mut buffer) {
                whole.extend_from_slice(&read(&buffer[..bytes]));
                pieces += 1;
            }
            assert_eq!((pieces, whole), (3, payload));
        }
    }

    #[test]
    fn a_datagram_without_its_checksum_gets_one() {
        let mut packet = datagram("10.0.0.1", "10.0.0.2", b"abc");
        packet[26..28].copy_from_slice(&[0xab, 0xcd]);
        let header = VirtioNetHdr { flags: NEEDS_CHECKSUM, ..VirtioNetHdr::default() };
        assert_eq!(finish(&header, &mut packet, &mut Incoming::default()), Ok(Some(Whole::Single)));
        assert_eq!(read(&packet), b"abc");
    }

    #[test]
    fn a_tcp_segment_that_nobody_looked_at_is_looked_at() {
        let mut packet = datagram("10.0.0.1", "10.0.0.2", &[0; 32]);
        packet[9] = protocol::TCP;
        packet[10..12].fill(0);
        let checksum = Sum::default().add(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet[32] = 0x50;
        let mut header = VirtioNetHdr::default();
        assert_eq!(finish(&header, &mut packet, &mut Incoming::default()), Err(LinkDrop::Checksum));
        header.flags = DATA_VALID;
        assert_eq!(finish(&header, &mut packet, &mut Incoming::default()), Ok(Some(Whole::Single)));
    }

    #[test]
    fn bundles_that_cannot_be_are_dropped() {
        let mut incoming = Incoming::default();
        for (gso_type, gso_size) in [(3, 100), (UDP, 0), (0x7f, 10)] {
            let header = VirtioNetHdr { gso_type, gso_size, ..VirtioNetHdr::default() };
            let mut packet = datagram("10.0.0.1", "10.0.0.2", &[0; 32]);
            assert_eq!(finish(&header, &mut packet, &mut incoming), Err(LinkDrop::Malformed));
            assert_eq!(incoming.next(&mut [0; 100]), None);
        }
    }
}
