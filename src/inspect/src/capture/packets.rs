//! Finds the 802.11 frame, the ARP packet and the IP packet in the bytes of a captured packet, of whatever link.

use std::net::Ipv4Addr;

use hopwise_air::dcf::FrameKind;
use hopwise_air::radiotap::control;
use hopwise_core::StationAddress;
use hopwise_core::wire::{Checksums, IpView, TcpView, protocol};
use hopwise_mesh::behind_routing;
use pcap_file::DataLink;

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
pub(super) struct AirFrame<'a>(pub(super) &'a [u8]);

impl<'a> AirFrame<'a> {
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

    /// Frames without a sequence number are alike: RTS, CTS, ACK, block-ACK request and block ACK.
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

    /// Returns whether this block ACK has the bit of the data frame with that field of the sequence number.
    pub(super) fn acknowledges_in_block(self, number: &[u8]) -> bool {
        let sequence = |field: &[u8]| field.first_chunk().map(|field| u16::from_le_bytes(*field) >> 4);
        let (Some(first), Some(number)) = (self.0.get(18..).and_then(sequence), sequence(number)) else {
            return false;
        };
        let nth = usize::from(number.wrapping_sub(first) & 0xfff);
        self.0.get(20 + nth / 8).is_some_and(|bits| bits >> (nth % 8) & 1 == 1)
    }

    fn ip(self) -> Option<&'a [u8]> {
        const ADDRESS: usize = 6;
        let (kind, flags) = (self.0[0], self.0[1]);
        let fourth = if flags & TO_AND_FROM_DS == TO_AND_FROM_DS { ADDRESS } else { 0 };
        let qos = if kind & QOS == 0 { 0 } else { 2 };
        let body = self.0.get(24 + fourth + qos..).filter(|_| kind & TYPE == DATA)?;
        let packet = |body: &'a [u8]| SNAP.iter().find_map(|snap| body.strip_prefix(snap));
        // A station of 802.11s has its own header there: flags, TTL, a number of four bytes, and up to two addresses.
        let behind_mesh = || packet(body.get(6 + ADDRESS * usize::from(body.first()? & 3)..)?);
        packet(body).or_else(behind_mesh)
    }
}

/// The layers in a packet's bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layers<'a> {
    pub(super) air: Option<AirFrame<'a>>,
    /// An IP packet, without what its link has added to it.
    pub(super) ip: Option<&'a [u8]>,
}

pub(super) fn layers(link: DataLink, bytes: &[u8]) -> Layers<'_> {
    let air = match link {
        DataLink::IEEE802_11_RADIOTAP => behind_radiotap(bytes),
        DataLink::IEEE802_11 => Some(bytes),
        _ => None,
    };
    let air = air.filter(|frame| frame.len() >= 10).map(AirFrame);
    let ip = match link {
        DataLink::IEEE802_11_RADIOTAP | DataLink::IEEE802_11 => air.and_then(AirFrame::ip),
        DataLink::ETHERNET => Some(ethernet_payload(bytes)),
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
    // The length is 0 in a packet that was left for the device to segment.
    Some(if len == 0 { packet } else { packet.get(..len).unwrap_or(packet) })
}

/// An 802.11 frame behind a radiotap header.
pub(super) struct RadioFrame<'a> {
    pub kind: FrameKind,
    /// The Retry bit: the frame was sent before.
    pub(super) is_retry: bool,
    /// The frame's kind and addresses, in words.
    pub what: String,
    /// The IP packet that a data frame carries.
    pub(super) packet: Option<&'a [u8]>,
}

pub(super) fn radio_frame_of(bytes: &[u8]) -> Option<RadioFrame<'_>> {
    let Layers { air: Some(frame), ip } = layers(DataLink::IEEE802_11_RADIOTAP, bytes) else { return None };
    let (kind, to) = (frame.kind()?, address(frame.to()?));
    let what = match frame.from() {
        Some(from) => format!("{}, {} to {to}", name(kind), address(from)),
        None => format!("{} to {to}", name(kind)),
    };
    Some(RadioFrame { kind, is_retry: frame.is_retry(), what, packet: ip })
}

fn address(mac: [u8; 6]) -> String {
    if mac == [0xff; 6] { "everyone".to_owned() } else { StationAddress(mac).to_string() }
}

const ETHERNET_HEADER: usize = 14;
const ARP: [u8; 2] = [0x08, 0x06];
/// RFC 826: the kinds of both addresses, and their lengths.
const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 0x08, 0, 6, 4];

/// The payload of an Ethernet frame.
pub(super) fn ethernet_payload(frame: &[u8]) -> &[u8] {
    frame.get(ETHERNET_HEADER..).unwrap_or_default()
}

/// An ARP request or reply in words.
pub(super) fn arp(frame: &[u8]) -> Option<String> {
    if frame.get(12..ETHERNET_HEADER)? != ARP {
        return None;
    }
    let packet = ethernet_payload(frame);
    if packet.get(..6)? != ETHERNET_AND_IPV4 {
        return Some("ARP".to_owned());
    }
    let address = |at: usize| -> Option<Ipv4Addr> {
        let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets))
    };
    let (sender, target) = (address(14)?, address(24)?);
    let mac = StationAddress(*packet.get(8..)?.first_chunk()?);
    match packet.get(6..8)? {
        [0, 1] => Some(format!("ARP: {sender} at {mac} asks for {target}")),
        [0, 2] => Some(format!("ARP: {sender} is at {mac}")),
        _ => Some("ARP".to_owned()),
    }
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
    fn a_packet_is_found_behind_the_header_of_an_802_11s_mesh() {
        for addresses in 0..3 {
            let mut frame = vec![0x88, TO_AND_FROM_DS, 0, 0];
            frame.resize(32, 2);
            // QoS Control tells that the header follows.
            frame[31] = 1;
            frame.extend([addresses, 31, 9, 0, 0, 0]);
            frame.resize(frame.len() + 6 * usize::from(addresses), 3);
            frame.extend(SNAP[0]);
            frame.extend(ip(40));
            assert_eq!(layers(DataLink::IEEE802_11, &frame).ip, Some(&ip(40)[..]), "{addresses}");
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

    fn radio_frame(control: u8, rest: &[u8]) -> Vec<u8> {
        let radiotap = [0, 0, 8, 0, 0, 0, 0, 0];
        let head = [control, 0, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9];
        [&radiotap[..], &head, rest].concat()
    }

    #[test]
    fn a_frame_is_told_by_its_kind_and_its_addresses() {
        let what =
            |bytes: &[u8]| radio_frame_of(bytes).map(|frame| (frame.what, frame.packet.map(<[u8]>::to_vec)));
        let rts = ("RTS, 02:00:00:00:00:09 to 02:00:00:00:00:01".to_owned(), None);
        assert_eq!(what(&radio_frame(0xb4, &[])), Some(rts));
        let packet = [&[0; 8][..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], b"E\0\0\x05x"].concat();
        let data = ("data, 02:00:00:00:00:09 to 02:00:00:00:00:01".to_owned(), Some(b"E\0\0\x05x".to_vec()));
        assert_eq!(what(&radio_frame(0x08, &packet)), Some(data));
        assert_eq!((what(&radio_frame(0x80, &[])), what(&[0; 9]), what(&[])), (None, None, None));
    }

    fn arp_frame(operation: u8) -> Vec<u8> {
        let mut frame = [[0xff; 6], [2; 6]].concat();
        frame.extend(ARP);
        frame.extend(ETHERNET_AND_IPV4);
        frame.extend([0, operation]);
        frame.extend([2; 6]);
        frame.extend([10, 0, 0, 1]);
        frame.extend([0; 6]);
        frame.extend([10, 0, 0, 2]);
        frame
    }

    #[test]
    fn a_question_names_both_ends_and_an_answer_its_sender() {
        let question = "ARP: 10.0.0.1 at 02:02:02:02:02:02 asks for 10.0.0.2";
        assert_eq!(arp(&arp_frame(1)).as_deref(), Some(question));
        assert_eq!(arp(&arp_frame(2)).as_deref(), Some("ARP: 10.0.0.1 is at 02:02:02:02:02:02"));
    }

    #[test]
    fn a_frame_that_was_cut_off_is_none() {
        assert!((0..arp_frame(1).len()).all(|len| arp(&arp_frame(1)[..len]).is_none()));
        assert!(ethernet_payload(&[0; 13]).is_empty());
    }

    #[test]
    fn a_block_ack_has_a_bit_for_each_number_from_its_first_one() {
        // From number 4090 on: 4090, 4092 and 3.
        let mut frame = vec![0x94, 0, 0, 0];
        frame.resize(16, 2);
        frame.extend([5, 0]);
        frame.extend((4090_u16 << 4).to_le_bytes());
        frame.extend([0b101, 0b10, 0, 0, 0, 0, 0, 0]);
        let (whole, short) = (AirFrame(&frame), AirFrame(&frame[..20]));
        assert_eq!(whole.kind(), Some(FrameKind::BlockAck));
        let is_told =
            |frame: AirFrame<'_>, number: u16| frame.acknowledges_in_block(&(number << 4 | 1).to_le_bytes());
        assert!([4090, 4092, 3].into_iter().all(|number| is_told(whole, number) && !is_told(short, number)));
        assert!([4089, 4091, 0, 4, 70, 3000].into_iter().all(|number| !is_told(whole, number)));
    }
}
