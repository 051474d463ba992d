//! Checksums that a device was to finish: in a file they would all be wrong.

use std::borrow::Cow;

use hopwise_core::wire::{IpView, Sum, protocol};

/// The packet as a device would send it. The field of a TCP segment or UDP datagram may hold the pseudo-header's sum
/// alone: then the rest is added. A checksum that is wrong in another way stays as it is.
/// `header_len` bytes stand before the packet.
pub(super) fn finished(frame: &[u8], header_len: usize) -> Cow<'_, [u8]> {
    patch(frame.get(header_len..).unwrap_or_default()).map_or(Cow::Borrowed(frame), |(place, sum)| {
        let (mut whole, place) = (frame.to_vec(), header_len + place);
        whole[place..place + 2].copy_from_slice(&sum);
        Cow::Owned(whole)
    })
}

/// The place of the field, and its right value.
fn patch(packet: &[u8]) -> Option<(usize, [u8; 2])> {
    let ip = IpView::parse(packet).ok()?;
    let field = match ip.protocol {
        protocol::TCP => 16,
        protocol::UDP => 6,
        _ => return None,
    };
    let bytes = ip.payload;
    let found: [u8; 2] = bytes.get(field..field + 2)?.try_into().ok()?;
    let len = u32::try_from(bytes.len()).ok()?;
    let pseudo_header = Sum::pseudo_header(ip.src, ip.dst, ip.protocol, len);
    if found != pseudo_header.fold().to_be_bytes() || ip.fragment.is_some() {
        return None;
    }
    // The pseudo-header's sum stands in the field already.
    let sum = Sum::default().add(bytes).finish();
    let sum = if sum == 0 && ip.protocol == protocol::UDP { 0xffff } else { sum };
    Some((ip.header_len + field, sum.to_be_bytes()))
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
}
