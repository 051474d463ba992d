//! Packets of the radio world leave their TCP checksum to the link, which has none. In a capture it is whole.

use hopwise_core::wire::{IpView, Sum, protocol};
use hopwise_mesh::behind_routing;

/// Where a TCP header has its checksum.
const FIELD: std::ops::Range<usize> = 16..18;

/// Writes the checksum of the TCP segment that an IP packet carries whole, also behind a routing header.
pub(super) fn complete(packet: &mut [u8]) {
    let Some((start, len, checksum)) = checksum(packet) else { return };
    if let Some(field) = packet[start..start + len].get_mut(FIELD) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Where the segment is, how long, and its checksum.
fn checksum(packet: &[u8]) -> Option<(usize, usize, u16)> {
    let ip = IpView::parse(packet).ok()?;
    let (protocol, segment) = behind_routing(ip.protocol, ip.payload);
    let (before, after) = (segment.get(..FIELD.start)?, segment.get(FIELD.end..)?);
    if protocol != protocol::TCP || ip.fragment.is_some() {
        return None;
    }
    let sum = Sum::pseudo_header(ip.src, ip.dst, protocol::TCP, segment.len() as u32);
    let start = segment.as_ptr() as usize - packet.as_ptr() as usize;
    Some((start, segment.len(), sum.add(before).add(after).finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment() -> Vec<u8> {
        let ip = [0x45, 0, 0, 43, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let tcp = [0x1f, 0x90, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 0xff, 0xff, 0xab, 0xcd, 0, 0];
        let mut packet = [&ip[..], &tcp[..], &[1, 2, 3]].concat();
        let sum = Sum::default().add(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn a_segment_gets_the_checksum_of_its_bytes() {
        let mut packet = segment();
        complete(&mut packet);
        let ends = IpView::parse(&packet).map(|ip| (ip.src, ip.dst)).expect("an IP packet");
        assert_eq!(Sum::pseudo_header(ends.0, ends.1, protocol::TCP, 23).add(&packet[20..]).finish(), 0);
    }

    #[test]
    fn what_is_no_whole_segment_stays_as_it_is() {
        for len in [0, 10, 20, 30] {
            let (mut packet, cut) = (segment(), segment());
            complete(&mut packet[..len]);
            assert_eq!(packet, cut, "{len}");
        }
    }
}
