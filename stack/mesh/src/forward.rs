//! The changes that a router makes in a header: one hop less.

/// Takes one off the hop limit of a packet whose header was checked. In IPv4 the checksum follows (RFC 1624).
pub(crate) fn take_one_hop(packet: &mut [u8]) {
    if packet[0] >> 4 == 6 {
        packet[7] -= 1;
        return;
    }
    packet[8] -= 1;
    // The field's word fell by 0x0100: the complemented sum grows by as much, with the carry around.
    let (sum, carry) = u16::from_be_bytes([packet[10], packet[11]]).overflowing_add(0x0100);
    packet[10..12].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopwise_core::wire::{Ecn, IpHeader, IpView};

    #[test]
    fn checksums_stay_right_for_every_hop_limit() {
        for (src, id) in [([10, 0, 0, 1], 1), ([255, 254, 0, 7], 0xfffe), ([10, 7, 3, 200], 0x1234)] {
            let header = IpHeader {
                src: src.into(),
                dst: [10, 0, 0, 9].into(),
                protocol: 6,
                hop_limit: 255,
                ecn: Ecn::from_bits(0),
                dscp: 0,
                dont_fragment: true,
                id,
                source_route: None,
            };
            let mut packet = Vec::new();
            header.emit(4, &mut packet);
            packet.extend_from_slice(&[1, 2, 3, 4]);
            for hop_limit in (1..255).rev() {
                take_one_hop(&mut packet);
                let view = IpView::parse(&packet).expect("a header that is right");
                assert_eq!(view.hop_limit, hop_limit);
            }
        }
    }
}
