//! The frame of a capture's file that holds an arrived packet, and its checksum: a checksum that was left to a device
//! would be wrong in a file.

use std::borrow::Cow;
use std::collections::VecDeque;

use hopwise_core::wire::{IpView, Sum, protocol};

/// Arrivals that each shard's connections may still answer: more than can come within the longest delay of an ACK.
const MOST: usize = 32 << 10;

/// The latest arrivals in the file being written.
#[derive(Debug, Default)]
pub struct ArrivalFrames {
    /// For each shard the numbers of its packets, which rise, and their frames.
    shards: Vec<VecDeque<(u64, u64)>>,
}

impl ArrivalFrames {
    /// Notes that the arrived packet of that number is that frame.
    pub fn note(&mut self, shard: u16, id: u64, frame: u64) {
        let shard = usize::from(shard);
        if self.shards.len() <= shard {
            self.shards.resize_with(shard + 1, VecDeque::new);
        }
        let known = &mut self.shards[shard];
        if known.len() == MOST {
            known.pop_front();
        }
        known.push_back((id, frame));
    }

    /// The number of the frame that holds the arrival `id` of a shard; `None` for one that is too old.
    pub fn of(&self, shard: u16, id: u64) -> Option<u64> {
        let known = self.shards.get(usize::from(shard))?;
        let place = known.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        known.get(place).map(|(_, frame)| *frame)
    }

    /// Forgets all frames, because another file begins or frames were lost.
    pub(super) fn forget(&mut self) {
        self.shards.clear();
    }
}

/// Skips headers behind the IP header. Takes a protocol and its bytes, and returns the protocol and the bytes of the
/// packet's content.
pub(super) type BehindHeader = fn(u8, &[u8]) -> (u8, &[u8]);

/// Completes an IP packet as a device would. The field of a TCP segment or UDP datagram may hold the pseudo-header's
/// sum alone: then the rest is added. A checksum that is wrong in another way stays as it is.
pub fn finish_checksum(packet: &mut [u8], behind: BehindHeader) {
    if let Some((place, sum)) = patch(packet, behind) {
        packet[place..place + 2].copy_from_slice(&sum);
    }
}

/// The same for a packet after a header of `header_len` bytes.
pub(super) fn finished(frame: &[u8], header_len: usize) -> Cow<'_, [u8]> {
    let packet = frame.get(header_len..).unwrap_or_default();
    patch(packet, |protocol, bytes| (protocol, bytes)).map_or(Cow::Borrowed(frame), |(place, sum)| {
        let (mut whole, place) = (frame.to_vec(), header_len + place);
        whole[place..place + 2].copy_from_slice(&sum);
        Cow::Owned(whole)
    })
}

/// The offset of the field, and its right value.
fn patch(packet: &[u8], behind: BehindHeader) -> Option<(usize, [u8; 2])> {
    let ip = IpView::parse(packet).ok()?;
    let (protocol, bytes) = behind(ip.protocol, ip.payload);
    let field = match protocol {
        protocol::TCP => 16,
        protocol::UDP => 6,
        _ => return None,
    };
    let found: [u8; 2] = bytes.get(field..field + 2)?.try_into().ok()?;
    let len = u32::try_from(bytes.len()).ok()?;
    let pseudo_header = Sum::pseudo_header(ip.src, ip.dst, protocol, len);
    if found != pseudo_header.fold().to_be_bytes() || ip.fragment.is_some() {
        return None;
    }
    // The field already holds the pseudo-header's sum.
    let sum = Sum::default().add(bytes).finish();
    let sum = if sum == 0 && protocol == protocol::UDP { 0xffff } else { sum };
    let place = bytes.as_ptr() as usize - packet.as_ptr() as usize;
    Some((place + field, sum.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use hopwise_core::Seq;
    use hopwise_core::wire::{Checksums, Ecn, Flags, IpHeader, TcpHeader, TcpOptions};

    use super::*;

    fn segment(addresses: [&str; 2], checksums: Checksums) -> Vec<u8> {
        let [src, dst]: [IpAddr; 2] = addresses.map(|address| address.parse().expect("an address"));
        let (seq, ack) = (Seq(1), Seq(1));
        let tcp = TcpHeader {
            src_port: 40_000,
            dst_port: 7,
            seq,
            ack,
            flags: Flags::ACK,
            window: 1_000,
            urgent: 0,
            options: &TcpOptions::default(),
        };
        let ip = IpHeader {
            src,
            dst,
            protocol: protocol::TCP,
            hop_limit: 64,
            ecn: Ecn::NotEct,
            dscp: 0,
            dont_fragment: true,
            id: 0,
            source_route: None,
        };
        let mut packet = Vec::new();
        ip.emit(tcp.len() + 5, &mut packet);
        tcp.emit(src, dst, (b"hello", &[]), checksums, &mut packet);
        packet
    }

    #[test]
    fn what_a_device_was_to_finish_is_finished_and_nothing_else_is_touched() {
        for addresses in [["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2"]] {
            let sound = segment(addresses, Checksums::Verify);
            let begun = segment(addresses, Checksums::Trust);
            assert_ne!(begun, sound);
            assert_eq!(*finished(&begun, 0), *sound);
            assert_eq!(*finished(&sound, 0), *sound);
            let mut spoilt = sound;
            let last = spoilt.len() - 1;
            spoilt[last] ^= 1;
            assert_eq!(*finished(&spoilt, 0), *spoilt, "what is wrong stays to be seen");
        }
        assert_eq!(*finished(b"no packet", 0), *b"no packet");
    }

    #[test]
    fn what_stands_behind_a_header_of_routing_is_finished_there() {
        let [sound, mut begun] = [Checksums::Verify, Checksums::Trust].map(|checksums| {
            let mut packet = segment(["fd00::1", "fd00::2"], checksums);
            packet.splice(40..40, [7; 4]);
            (packet[5], packet[6]) = (packet[5] + 4, 254);
            packet
        });
        finish_checksum(&mut begun, |protocol, bytes| (protocol, bytes));
        assert_ne!(begun, sound, "it is no TCP yet");
        finish_checksum(&mut begun, |_, bytes| (protocol::TCP, bytes.get(4..).unwrap_or_default()));
        assert_eq!(begun, sound);
    }

    #[test]
    fn what_is_no_whole_segment_stays_as_it_is() {
        let whole = segment(["10.0.0.1", "10.0.0.2"], Checksums::Trust);
        for len in [0, 10, 20, 30] {
            let mut packet = whole[..len].to_vec();
            finish_checksum(&mut packet, |protocol, bytes| (protocol, bytes));
            assert_eq!(packet, whole[..len], "{len}");
        }
    }
}
