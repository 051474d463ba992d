//! Inserts, removes and replaces a protocol's own header behind the IPv4 header.

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
