//! Inserts, removes and replaces a protocol's own header behind the IPv4 header, and takes hops off IP headers.

use hopwise_core::wire::Sum;

const TOTAL_LEN: std::ops::Range<usize> = 2..4;
const PROTOCOL: usize = 9;
const CHECKSUM: std::ops::Range<usize> = 10..12;

/// The packet with `header` behind its IPv4 header, which then names `protocol`. The first `leaves_out` bytes behind
/// the IPv4 header are left out: a header that the new one replaces. `None` if the packet would be too long.
///
/// `packet` begins with a checked IPv4 header of `ip_len` bytes, and ends at the total length of that header.
pub(crate) fn with_header(
    packet: &[u8],
    (ip_len, leaves_out): (usize, usize),
    protocol: u8,
    header: &[u8],
) -> Option<Vec<u8>> {
    let payload = &packet[ip_len + leaves_out..];
    let total = u16::try_from(ip_len + header.len() + payload.len()).ok()?;
    let mut out = Vec::with_capacity(usize::from(total));
    out.extend_from_slice(&packet[..ip_len]);
    out.extend_from_slice(header);
    out.extend_from_slice(payload);
    out[TOTAL_LEN].copy_from_slice(&total.to_be_bytes());
    out[PROTOCOL] = protocol;
    out[CHECKSUM].fill(0);
    let sum = Sum::default().add(&out[..ip_len]).finish();
    out[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    Some(out)
}

/// Takes one off the hop limit of a packet whose header was checked. In IPv4 the checksum follows (RFC 1624).
pub(crate) fn take_one_hop(packet: &mut [u8]) {
    if packet[0] >> 4 == 6 {
        packet[7] -= 1;
        return;
    }
    packet[8] -= 1;
    // The field's word fell by 0x0100: the complemented sum grows by 0x0100, with the carry around.
    let (sum, carry) = u16::from_be_bytes([packet[10], packet[11]]).overflowing_add(0x0100);
    packet[10..12].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use hopwise_core::wire::{Ecn, IpHeader, IpView};

    use super::*;

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
