//! Bundles: several TCP segments that travel as one large packet until a link cuts them apart.
//!
//! A bundle is the packet that a path of unlimited packet size would carry: the first segment's number, and the payload
//! of all. Its FIN and PSH are those of the last segment, its CWR is that of the first. The rest of the header holds
//! for all of them. [`Cutter`] does the work of a network card, for links without one.

use super::ip::{IpView, protocol};
use super::tcp::HEADER_LEN;
use super::{Flags, Sum};
use crate::narrow::{as_u16, as_u32};
use crate::trace::DropReason;

/// IPv4 and TCP headers with all the options that fit.
pub(crate) const MOST_HEADER_BYTES: u32 = 60 + 60;
/// The largest IP packet (a jumbogram is never a bundle).
pub(crate) const MOST_PACKET_BYTES: u32 = 65_535;

/// Cuts a bundle into its segments and computes their checksums.
#[derive(Clone, Debug)]
pub struct Cutter {
    /// The start of the TCP header.
    tcp_at: usize,
    payload_at: usize,
    segment_bytes: usize,
    pseudo_header: Sum,
    /// The place of the next segment in the payload, while there is one.
    at: Option<usize>,
}

impl Cutter {
    /// Fails unless `bundle` is a whole TCP packet. It ignores the checksum, which the link may have to fill in.
    pub fn new(bundle: &[u8], segment_bytes: u16) -> Result<Cutter, DropReason> {
        let ip = IpView::parse(bundle)?;
        if ip.protocol != protocol::TCP || ip.fragment.is_some() {
            return Err(DropReason::NoProtocol);
        }
        let tcp_len = match ip.payload.get(12) {
            Some(offset) if ip.payload.len() >= HEADER_LEN => usize::from(offset >> 4) * 4,
            _ => return Err(DropReason::Truncated),
        };
        if tcp_len < HEADER_LEN || tcp_len > ip.payload.len() {
            return Err(DropReason::TcpMalformed);
        }
        Ok(Cutter {
            tcp_at: ip.header_len,
            payload_at: ip.header_len + tcp_len,
            segment_bytes: usize::from(segment_bytes).max(1),
            pseudo_header: Sum::pseudo_header(ip.src, ip.dst, protocol::TCP, 0),
            at: Some(0),
        })
    }

    /// Appends the packet of the bundle's next segment to `out`, if there is one.
    pub fn cut(&mut self, bundle: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(at) = self.at else { return false };
        let (headers, payload) = bundle.split_at(self.payload_at);
        let end = (at + self.segment_bytes).min(payload.len());
        let is_last = end == payload.len();
        self.at = (!is_last).then_some(end);
        let start = out.len();
        out.extend_from_slice(headers);
        let payload = &payload[at..end];
        self.address_segment(&mut out[start..], (at, payload.len()), is_last);
        let tcp_len = as_u16(headers.len() - self.tcp_at + payload.len());
        let sum = self.pseudo_header.add(&tcp_len.to_be_bytes()).add(&out[start + self.tcp_at..]);
        let checksum = sum.append(payload, out).finish();
        let place = start + self.tcp_at + 16;
        out[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
        true
    }

    /// Turns a copy of the bundle's headers into those of the segment with `payload_len` bytes at `at`. The TCP
    /// checksum stays zero.
    fn address_segment(&self, headers: &mut [u8], (at, payload_len): (usize, usize), is_last: bool) {
        let total = headers.len() + payload_len;
        let (ip, tcp) = headers.split_at_mut(self.tcp_at);
        if ip[0] >> 4 == 4 {
            let nth = as_u16(at / self.segment_bytes);
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(nth);
            ip[2..4].copy_from_slice(&as_u16(total).to_be_bytes());
            ip[4..6].copy_from_slice(&id.to_be_bytes());
            ip[10..12].fill(0);
            let checksum = Sum::default().add(ip).finish();
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            // Extension headers count as payload.
            ip[4..6].copy_from_slice(&as_u16(total - 40).to_be_bytes());
        }
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(as_u32(at));
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        if !is_last {
            tcp[13] &= !(Flags::FIN | Flags::PSH).0;
        }
        if at > 0 {
            tcp[13] &= !Flags::CWR.0;
        }
        tcp[16..18].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::Seq;
    use crate::wire::testing::{self, v4, v6};
    use crate::wire::{Checksums, Ecn, IpHeader, TcpHeader, TcpOptions, TcpView, Timestamps};

    const SEQ: Seq = Seq(u32::MAX - 2000);

    fn bundle((src, dst): (IpAddr, IpAddr), flags: Flags, payload: &[u8], checksums: Checksums) -> Vec<u8> {
        let options =
            TcpOptions { timestamps: Some(Timestamps { value: 7, echo: 8 }), ..TcpOptions::default() };
        let header = TcpHeader {
            src_port: 1,
            dst_port: 2,
            seq: SEQ,
            ack: Seq(9),
            flags,
            window: 10,
            urgent: 0,
            options: &options,
        };
        let plain = IpHeader::plain(src, dst, protocol::TCP);
        let ip = IpHeader { ecn: Ecn::Ect0, id: u16::MAX, ..plain };
        let mut packet = Vec::new();
        ip.emit(header.len() + payload.len(), &mut packet);
        header.emit(src, dst, (payload, &[]), checksums, &mut packet);
        packet
    }

    fn cut(bundle: &[u8], segment_bytes: u16) -> Vec<Vec<u8>> {
        let mut cutter = Cutter::new(bundle, segment_bytes).expect("a bundle");
        let mut segments = Vec::new();
        loop {
            let mut packet = Vec::new();
            if !cutter.cut(bundle, &mut packet) {
                return segments;
            }
            segments.push(packet);
        }
    }

    #[test]
    fn flags_and_identifications_are_those_of_each_segment() {
        let flags = Flags::ACK | Flags::PSH | Flags::FIN | Flags::CWR | Flags::ECE;
        let packets = cut(&bundle((v4(1), v4(2)), flags, &[7; 2500], Checksums::Verify), 1000);
        let seen: Vec<(u16, Flags)> = packets
            .iter()
            .map(|packet| {
                let ip = IpView::parse(packet).expect("a packet");
                let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify).expect("a segment");
                (u16::from_be_bytes([packet[4], packet[5]]), tcp.flags)
            })
            .collect();
        let all = Flags::ACK | Flags::ECE;
        let expected = [(u16::MAX, all | Flags::CWR), (0, all), (1, all | Flags::PSH | Flags::FIN)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_packet_without_payload_is_one_segment() {
        let ack = bundle((v6(1), v6(2)), Flags::ACK, &[], Checksums::Verify);
        assert_eq!(cut(&ack, 1000), [ack]);
    }

    #[test]
    fn what_is_no_whole_tcp_packet_is_refused() {
        let whole = bundle((v4(1), v4(2)), Flags::ACK, b"payload", Checksums::Verify);
        for cut in 0..whole.len() {
            assert!(Cutter::new(&whole[..cut], 3).is_err());
        }
        let mut udp = bundle((v6(1), v6(2)), Flags::ACK, b"payload", Checksums::Verify);
        udp[6] = protocol::UDP;
        assert_eq!(Cutter::new(&udp, 3).err(), Some(DropReason::NoProtocol));
    }

    proptest! {
        #![proptest_config(testing::cases(64))]

        #[test]
        fn segments_are_whole_and_say_what_the_bundle_said(
            payload in testing::bytes(5000),
            segment_bytes in 1u16..1500,
            is_v6: bool,
            is_partial: bool,
        ) {
            let flow = if is_v6 { (v6(1), v6(2)) } else { (v4(1), v4(2)) };
            let checksums = if is_partial { Checksums::Trust } else { Checksums::Verify };
            let bundle = bundle(flow, Flags::ACK, &payload, checksums);
            let mut joined = Vec::new();
            for packet in cut(&bundle, segment_bytes) {
                let ip = IpView::parse(&packet).expect("a packet");
                prop_assert_eq!(ip.header_len + ip.payload.len(), packet.len());
                let tcp = TcpView::parse(ip.src, ip.dst, ip.payload, Checksums::Verify);
                let tcp = tcp.expect("its checksum is right");
                prop_assert_eq!(tcp.seq, SEQ + joined.len() as u32);
                prop_assert_eq!((tcp.ack, tcp.window), (Seq(9), 10));
                prop_assert_eq!(tcp.options.timestamps, Some(Timestamps { value: 7, echo: 8 }));
                prop_assert!(tcp.payload.len() <= usize::from(segment_bytes));
                joined.extend_from_slice(tcp.payload);
            }
            prop_assert_eq!(joined, payload);
        }
    }
}
