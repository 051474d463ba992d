//! The rules for every packet that an endpoint emits.

use hopwise_core::Seq;
use hopwise_core::wire::bundle::Cutter;
use hopwise_core::wire::{Checksums, Flags, IcmpView, IpView, TcpView, UdpView, protocol};

use super::packet::{octet_at, reseal_v4};

/// The packets that a link makes of one that left.
pub(super) fn cut(packet: &[u8], segment_bytes: Option<u16>) -> Vec<Vec<u8>> {
    let Some(segment_bytes) = segment_bytes else { return vec![packet.to_vec()] };
    let mut cutter = Cutter::new(packet, segment_bytes).expect("bundles are whole TCP packets");
    let mut packets = Vec::new();
    loop {
        let mut segment = Vec::new();
        if !cutter.cut(packet, &mut segment) {
            return packets;
        }
        packets.push(segment);
    }
}

/// Calls `on_segment` for a TCP segment.
pub(super) fn check(packet: &[u8], mtu: u16, on_segment: &mut dyn FnMut(&IpView<'_>, &TcpView<'_>)) {
    let head = &packet[..packet.len().min(120)];
    assert!(packet.len() <= usize::from(mtu), "{} bytes for a link of {mtu}: {head:02x?}", packet.len());
    let arrived = travelled(packet);
    let view = IpView::parse(&arrived).expect("an emitted packet can be read");
    assert!(view.fragment.is_none(), "nothing is fragmented here");
    assert_eq!(view.header_len + view.payload.len(), packet.len(), "nothing stands behind the packet");
    match view.protocol {
        protocol::TCP => {
            let segment = TcpView::parse(view.src, view.dst, view.payload, Checksums::Verify)
                .expect("an emitted segment is sound");
            check_segment(&segment);
            on_segment(&view, &segment);
        }
        protocol::UDP => {
            UdpView::parse(view.src, view.dst, view.payload).expect("an emitted datagram is sound");
        }
        protocol => {
            let message = IcmpView::parse(view.src, view.dst, protocol, view.payload);
            assert!(message.is_ok(), "an emitted message is sound: {message:?}");
        }
    }
}

fn check_segment(segment: &TcpView<'_>) {
    let TcpView { seq, ack, flags, payload, .. } = segment;
    let controls = [Flags::SYN, Flags::FIN, Flags::RST].iter().filter(|flag| flags.contains(**flag)).count();
    assert!(controls <= 1, "{flags} together");
    assert!(controls == 0 || !flags.contains(Flags::SYN | Flags::RST));
    let has_ack = flags.contains(Flags::ACK);
    assert!(has_ack || flags.intersects(Flags::SYN | Flags::RST), "{flags} without ACK");
    assert!(has_ack || *ack == Seq(0), "an ACK number without the flag");
    assert!(payload.is_empty() || !flags.intersects(Flags::SYN | Flags::RST), "data on {flags}");
    let wrong = (0u32..).zip(*payload).find(|(at, octet)| **octet != octet_at(*seq + *at));
    assert_eq!(wrong, None, "other data than what was written, in {flags} at {seq:?}");
}

/// The packet as its final destination gets it: every station of a source route visited.
fn travelled(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let header_len = usize::from(packet[0] & 0xf) * 4;
    if packet[0] >> 4 != 4 || header_len == 20 {
        return packet;
    }
    // We write one option, and write it first.
    let option_len = usize::from(packet[21]);
    let last = 20 + option_len - 4;
    let destination = [packet[last], packet[last + 1], packet[last + 2], packet[last + 3]];
    packet[16..20].copy_from_slice(&destination);
    packet[22] = option_len as u8 + 1;
    reseal_v4(&mut packet);
    packet
}
