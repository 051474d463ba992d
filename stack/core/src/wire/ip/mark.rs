//! The mark of congestion that a router sets (RFC 3168 §5).

use super::Ecn;

/// Marks a packet whose sender knows ECN; returns whether it has the mark now. In IPv4 the checksum follows (RFC 1624).
pub fn mark_congestion(packet: &mut [u8]) -> bool {
    const CE: u8 = Ecn::Ce.bits();
    match *packet {
        [first, tos, ..] if first >> 4 == 4 && packet.len() >= 20 => {
            if Ecn::from_bits(tos) == Ecn::NotEct {
                return false;
            }
            let more = u16::from(CE - (tos & CE));
            packet[1] |= CE;
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            // The field's word grew: the complemented sum falls by as much, with the borrow around.
            let (sum, borrow) = sum.overflowing_sub(more);
            packet[10..12].copy_from_slice(&(sum - u16::from(borrow)).to_be_bytes());
            true
        }
        [first, second, ..] if first >> 4 == 6 => {
            let is_known = Ecn::from_bits(second >> 4) != Ecn::NotEct;
            if is_known {
                packet[1] |= CE << 4;
            }
            is_known
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{IpHeader, IpView};

    #[test]
    fn marks_reach_packets_that_may_have_them_and_leave_checksums_right() {
        let addresses = [(["10.0.0.1", "10.0.0.9"]), ["255.254.0.7", "10.7.3.200"], ["fd00::1", "fd00::9"]];
        for ([src, dst], bits) in addresses.into_iter().flat_map(|both| (0..4).map(move |bits| (both, bits)))
        {
            for id in (0..2_000_u16).map(|nth| nth.wrapping_mul(33)) {
                let header = IpHeader {
                    src: src.parse().expect("an address"),
                    dst: dst.parse().expect("an address"),
                    protocol: 6,
                    hop_limit: 64,
                    ecn: Ecn::from_bits(bits),
                    dscp: 46,
                    dont_fragment: true,
                    id,
                    source_route: None,
                };
                let mut packet = Vec::new();
                header.emit(4, &mut packet);
                packet.extend_from_slice(&[1, 2, 3, 4]);
                assert_eq!(mark_congestion(&mut packet), bits != 0);
                let view = IpView::parse(&packet).expect("a header that is right");
                let wanted = if bits == 0 { Ecn::NotEct } else { Ecn::Ce };
                assert_eq!((view.ecn, view.dscp), (wanted, 46));
            }
        }
        assert!(!mark_congestion(&mut []) && !mark_congestion(&mut [0x45, 1]));
    }
}
