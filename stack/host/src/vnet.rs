//! The header (struct virtio_net_hdr) before each packet of a device that takes and gives bundles, and the work on
//! packets that follows from it.

use std::net::IpAddr;

use hopwise_core::narrow::{as_u16, as_u32};
use hopwise_core::wire::{Checksums, Flags, IpView, Sum, TcpBytes, protocol};
use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr};

use crate::counters::{LinkDrop, LinkTally};
use crate::link::{Arrived, Received};
use crate::tun::check_ip;

/// Hands on the packet behind that header, of `bytes`. A bundle of datagrams is cut, and they come one by one.
pub(crate) fn arrive(
    header: &[u8],
    (into, bytes): (&mut [u8], usize),
    incoming: &mut IncomingBundle,
    tally: &mut LinkTally,
) -> Received {
    let Received::Packet(arrived) = check_ip(&into[..bytes], tally) else { return Received::Dropped };
    let header = read_header(header).ok_or(LinkDrop::Malformed);
    match header.and_then(|header| finish(&header, &mut into[..bytes], incoming)) {
        Ok(Some(whole)) => Received::Packet(Arrived { segment_bytes: whole.get(), ..arrived }),
        Ok(None) => incoming.next(into).map_or(Received::Dropped, |bytes| check_ip(&into[..bytes], tally)),
        Err(reason) => tally.lost(reason),
    }
}

/// The header for a packet that stands behind a frame's header of so many bytes.
pub(crate) fn shifted(header: VirtioNetHdr, by: u16) -> VirtioNetHdr {
    let shift = |at: u16, is_set: bool| if is_set { at + by } else { at };
    VirtioNetHdr {
        csum_start: shift(header.csum_start, header.csum_offset > 0),
        hdr_len: shift(header.hdr_len, header.hdr_len > 0),
        ..header
    }
}

pub(crate) fn read_header(bytes: &[u8]) -> Option<VirtioNetHdr> {
    VirtioNetHdr::decode(bytes.get(..VIRTIO_NET_HDR_LEN)?).ok()
}

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;
/// CWR is set, in the first segment alone.
const ECN: u8 = 0x80;

/// The offset of the checksum in a TCP header.
const TCP_CHECKSUM: u16 = 16;

/// The machine leaves every TCP checksum to the link, and finishes all other checksums.
pub(crate) fn header_for(packet: &[u8], segment_bytes: Option<u16>) -> VirtioNetHdr {
    let Some((tcp_at, gso_type)) = tcp(packet) else { return VirtioNetHdr::default() };
    let whole = VirtioNetHdr {
        flags: NEEDS_CHECKSUM,
        csum_start: as_u16(tcp_at),
        csum_offset: TCP_CHECKSUM,
        ..VirtioNetHdr::default()
    };
    let Some(gso_size) = segment_bytes else { return whole };
    let tcp_len = u16::from(packet[tcp_at + 12] >> 4) * 4;
    let has_cwr = packet[tcp_at + 13] & Flags::CWR.0 != 0;
    VirtioNetHdr {
        gso_type: if has_cwr { gso_type | ECN } else { gso_type },
        hdr_len: as_u16(tcp_at) + tcp_len,
        gso_size,
        ..whole
    }
}

/// The offset of the TCP header, and the type of a bundle of that family. `None` for other protocols.
fn tcp(packet: &[u8]) -> Option<(usize, u8)> {
    let (tcp_at, protocol_at, gso_type) = match packet.first()? >> 4 {
        4 => (usize::from(packet[0] & 0xf) * 4, 9, TCP_V4),
        6 => (40, 6, TCP_V6),
        _ => return None,
    };
    let is_tcp = packet.get(protocol_at) == Some(&protocol::TCP) && packet.len() >= tcp_at + 20;
    is_tcp.then_some((tcp_at, gso_type))
}

const UDP_HEADER: usize = 8;

/// A bundle of UDP datagrams on its way to the machine.
#[derive(Debug, Default)]
pub(crate) struct IncomingBundle {
    bundle: Vec<u8>,
    /// The offsets of this payload and of the next datagram's payload.
    headers: usize,
    at: usize,
    each: usize,
}

/// The form of a packet for the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WholePacket {
    Single,
    Bundle(u16),
}

impl WholePacket {
    pub(crate) fn get(self) -> Option<u16> {
        match self {
            WholePacket::Single => None,
            WholePacket::Bundle(segment_bytes) => Some(segment_bytes),
        }
    }
}

/// Brings a packet to the state that the link vouches for. TCP has been checked, by the kernel or here, and all other
/// packets have their checksum. `None` if the packet is now in `incoming`.
pub(crate) fn finish(
    header: &VirtioNetHdr,
    packet: &mut [u8],
    incoming: &mut IncomingBundle,
) -> Result<Option<WholePacket>, LinkDrop> {
    match header.gso_type & !ECN {
        0 => {
            check(header.flags, packet)?;
            Ok(Some(WholePacket::Single))
        }
        TCP_V4 | TCP_V6 => {
            let is_bundle = header.gso_size > 0;
            Ok(Some(if is_bundle { WholePacket::Bundle(header.gso_size) } else { WholePacket::Single }))
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

impl IncomingBundle {
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

/// Makes the headers of a bundle fit its `nth` datagram.
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

    fn v4_tcp(flags: u8) -> Vec<u8> {
        let mut packet = vec![0; 20 + 32 + 3000];
        (packet[0], packet[9], packet[20 + 12], packet[20 + 13]) = (0x45, 6, 0x80, flags);
        packet
    }

    #[test]
    fn a_single_segment_asks_for_its_checksum_alone() {
        let header = header_for(&v4_tcp(0x10), None);
        assert_eq!((header.flags, header.gso_type, header.csum_start, header.csum_offset), (1, 0, 20, 16));
    }

    #[test]
    fn a_bundle_says_how_it_is_cut() {
        let header = header_for(&v4_tcp(0x10), Some(1448));
        assert_eq!((header.gso_type, header.gso_size, header.hdr_len), (TCP_V4, 1448, 52));
        assert_eq!(header_for(&v4_tcp(0x90), Some(1448)).gso_type, TCP_V4 | ECN);
    }

    #[test]
    fn ipv6_has_its_own_name_and_place() {
        let mut packet = vec![0; 40 + 20 + 3000];
        (packet[0], packet[6], packet[40 + 12]) = (0x60, 6, 0x50);
        let header = header_for(&packet, Some(1000));
        assert_eq!((header.gso_type, header.csum_start, header.hdr_len), (TCP_V6, 40, 60));
    }

    #[test]
    fn what_is_no_tcp_or_too_short_asks_for_nothing() {
        let mut udp = v4_tcp(0);
        udp[9] = 17;
        for packet in [&udp[..], &v4_tcp(0)[..30], &[], &[0x45]] {
            assert_eq!(header_for(packet, None).flags, 0);
        }
    }

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
            let mut incoming = IncomingBundle::default();
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
        assert_eq!(
            finish(&header, &mut packet, &mut IncomingBundle::default()),
            Ok(Some(WholePacket::Single))
        );
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
        assert_eq!(finish(&header, &mut packet, &mut IncomingBundle::default()), Err(LinkDrop::Checksum));
        header.flags = DATA_VALID;
        assert_eq!(
            finish(&header, &mut packet, &mut IncomingBundle::default()),
            Ok(Some(WholePacket::Single))
        );
    }

    #[test]
    fn bundles_that_cannot_be_are_dropped() {
        let mut incoming = IncomingBundle::default();
        for (gso_type, gso_size) in [(3, 100), (UDP, 0), (0x7f, 10)] {
            let header = VirtioNetHdr { gso_type, gso_size, ..VirtioNetHdr::default() };
            let mut packet = datagram("10.0.0.1", "10.0.0.2", &[0; 32]);
            assert_eq!(finish(&header, &mut packet, &mut incoming), Err(LinkDrop::Malformed));
            assert_eq!(incoming.next(&mut [0; 100]), None);
        }
    }
}
