//! Finds the 802.11 frame and the IP packet in the bytes of a captured packet, of whatever link.

use hopwise_air::dcf::FrameKind;
use hopwise_air::radiotap::control;
use hopwise_core::wire::{Checksums, IpView, TcpView, protocol};
use hopwise_mesh::behind_routing;
use pcap_file::DataLink;

use super::ethernet;
use super::radiotap::Radiotap;

/// LLC and SNAP headers with the types of IPv4 and IPv6.
const SNAP: [[u8; 8]; 2] = [[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], [0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd]];
pub(super) const FCS: usize = 4;
/// In the second byte of Frame Control.
const TO_AND_FROM_DS: u8 = 0x03;
const RETRY: u8 = 0x08;
/// The first byte of Frame Control has the version, the type, and the subtype with the bit of QoS data.
const VERSION: u8 = 0x03;
const TYPE: u8 = 0x0c;
const CONTROL: u8 = 0x04;
const DATA: u8 = 0x08;
const QOS: u8 = 0x80;

/// The name of a kind of frame, in words for users.
pub(super) fn name(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Rts => "RTS",
        FrameKind::Cts => "CTS",
        FrameKind::Ack => "MAC ACK",
        FrameKind::BlockAck => "block ACK",
        FrameKind::BlockAckReq => "block ACK request",
        FrameKind::Data => "data",
    }
}

/// An 802.11 frame without its FCS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Air<'a>(pub(super) &'a [u8]);

impl<'a> Air<'a> {
    /// None for all other frames, such as beacons.
    pub(super) fn kind(self) -> Option<FrameKind> {
        let first = self.0[0] & !VERSION;
        if first & TYPE == DATA {
            return Some(FrameKind::Data);
        }
        let of_control =
            [FrameKind::Rts, FrameKind::Cts, FrameKind::Ack, FrameKind::BlockAck, FrameKind::BlockAckReq];
        of_control.into_iter().find(|kind| control(*kind) == first)
    }

    /// Frames without a sequence number are alike: RTS, CTS, ACK, and those of a block ACK.
    pub(super) fn is_numbered(self) -> bool {
        self.0[0] & TYPE != CONTROL
    }

    pub(super) fn is_retry(self) -> bool {
        self.0[1] & RETRY != 0
    }

    /// The address of its receiver.
    pub(super) fn to(self) -> Option<[u8; 6]> {
        self.0.get(4..)?.first_chunk().copied()
    }

    /// The address of its transmitter, which CTS and ACK do not have.
    pub(super) fn from(self) -> Option<[u8; 6]> {
        let has_one = !matches!(self.kind(), None | Some(FrameKind::Cts | FrameKind::Ack));
        self.0.get(10..).filter(|_| has_one)?.first_chunk().copied()
    }

    /// The field with the sequence number, of a data frame.
    pub(super) fn number(self) -> Option<&'a [u8]> {
        self.0.get(22..24).filter(|_| self.kind() == Some(FrameKind::Data))
    }

    fn ip(self) -> Option<&'a [u8]> {
        const ADDRESS: usize = 6;
        let (kind, flags) = (self.0[0], self.0[1]);
        let fourth = if flags & TO_AND_FROM_DS == TO_AND_FROM_DS { ADDRESS } else { 0 };
        let qos = if kind & QOS == 0 { 0 } else { 2 };
        let body = self.0.get(24 + fourth + qos..).filter(|_| kind & TYPE == DATA)?;
        SNAP.iter().find_map(|snap| body.strip_prefix(snap))
    }
}

/// The layers in a packet's bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layers<'a> {
    pub(super) air: Option<Air<'a>>,
    /// An IP packet, without what its link has added to it.
    pub(super) ip: Option<&'a [u8]>,
}

pub(super) fn layers(link: DataLink, bytes: &[u8]) -> Layers<'_> {
    let air = match link {
        DataLink::IEEE802_11_RADIOTAP => behind_radiotap(bytes),
        DataLink::IEEE802_11 => Some(bytes),
        _ => None,
    };
    let air = air.filter(|frame| frame.len() >= 10).map(Air);
    let ip = match link {
        DataLink::IEEE802_11_RADIOTAP | DataLink::IEEE802_11 => air.and_then(Air::ip),
        DataLink::ETHERNET => Some(ethernet::payload(bytes)),
        DataLink::LINUX_SLL => bytes.get(16..),
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Some(bytes),
        _ => None,
    };
    Layers { air, ip: ip.and_then(whole) }
}

/// The frame behind the radiotap header, without the FCS that the header's flags announce.
fn behind_radiotap(bytes: &[u8]) -> Option<&[u8]> {
    let header = Radiotap::read(bytes)?;
    let fcs = if header.has_fcs() { FCS } else { 0 };
    bytes.get(header.len..bytes.len().checked_sub(fcs)?)
}

/// The headers of a TCP segment in an IP packet, and the segment itself.
pub(super) fn tcp(packet: &[u8]) -> Option<(IpView<'_>, TcpView<'_>, &[u8])> {
    let ip = IpView::parse(packet).ok()?;
    let (found, segment) = behind_routing(ip.protocol, ip.payload);
    if found != protocol::TCP {
        return None;
    }
    let tcp = TcpView::parse(ip.src, ip.dst, segment, Checksums::Trust).ok()?;
    Some((ip, tcp, segment))
}

/// An IP packet without the padding of its link.
fn whole(packet: &[u8]) -> Option<&[u8]> {
    let len = match packet.first()? >> 4 {
        4 => u16::from_be_bytes(*packet.get(2..)?.first_chunk()?).into(),
        6 => usize::from(u16::from_be_bytes(*packet.get(4..)?.first_chunk()?)) + 40,
        _ => return None,
    };
    // A length of 0 is that of a packet which the device was to cut in parts.
    Some(if len == 0 { packet } else { packet.get(..len).unwrap_or(packet) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(len: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, len, 0, 0, 0, 0, 64, 6];
        packet.resize(usize::from(len), 7);
        packet
    }

    /// A data frame behind a radiotap header with TSFT and these flags.
    fn radio(flags: u8, fcs: &[u8]) -> Vec<u8> {
        let mut frame = vec![0, 0, 17, 0, 3, 0, 0, 0];
        frame.extend([9; 8]);
        frame.extend([flags, 0x88, 0, 0, 0]);
        frame.extend([1; 6]);
        frame.extend([2; 14]);
        // The control of QoS.
        frame.extend([0, 0]);
        frame.extend(SNAP[0]);
        frame.extend(ip(40));
        frame.extend(fcs);
        frame
    }

    #[test]
    fn an_fcs_is_taken_off_where_the_header_announces_one() {
        for (flags, fcs) in [(0x10, &[1, 2, 3, 4][..]), (0x02, &[])] {
            let bytes = radio(flags, fcs);
            let found = layers(DataLink::IEEE802_11_RADIOTAP, &bytes);
            assert_eq!(found.ip, Some(&ip(40)[..]), "{flags}");
            let air = found.air.expect("a frame");
            assert_eq!((air.0.len(), air.to()), (26 + 8 + 40, Some([1; 6])), "{flags}");
        }
    }

    #[test]
    fn padding_of_ethernet_is_no_part_of_the_packet() {
        let mut frame = vec![0; 14];
        frame.extend(ip(30));
        frame.extend([0; 16]);
        assert_eq!(layers(DataLink::ETHERNET, &frame).ip, Some(&ip(30)[..]));
    }

    #[test]
    fn bytes_that_are_cut_off_hold_nothing_and_break_nothing() {
        let bytes = radio(0x10, &[1, 2, 3, 4]);
        for link in [DataLink::IEEE802_11_RADIOTAP, DataLink::IEEE802_11, DataLink::ETHERNET, DataLink::RAW] {
            (0..bytes.len()).for_each(|len| {
                layers(link, &bytes[..len]);
            });
        }
    }
}
