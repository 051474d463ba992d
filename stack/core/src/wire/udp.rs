//! UDP datagrams (RFC 768).

use std::net::IpAddr;

use smoltcp::wire::UdpPacket;

use super::Sum;
use super::protocol::UDP;
use crate::narrow::{as_u16, as_u32};
use crate::trace::DropReason;

const HEADER_LEN: usize = 8;

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpView<'a> {
    /// 0 if the sender wants no answer (RFC 768).
    pub src_port: u16,
    /// The receiver's port.
    pub dst_port: u16,
    /// It may be empty.
    pub payload: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// Reads the datagram; bytes after its length are cut off.
    pub fn parse(src: IpAddr, dst: IpAddr, bytes: &'a [u8]) -> Result<UdpView<'a>, DropReason> {
        if bytes.len() < HEADER_LEN {
            return Err(DropReason::Truncated);
        }
        let header = UdpPacket::new_unchecked(bytes);
        let len = usize::from(header.len());
        if len < HEADER_LEN {
            return Err(DropReason::UdpMalformed);
        }
        let datagram = bytes.get(..len).ok_or(DropReason::Truncated)?;
        // RFC 8200 §8.1: IPv6 has no header checksum, so its sender may not omit this one.
        let unsummed = header.checksum() == 0 && src.is_ipv4();
        if !unsummed && (header.checksum() == 0 || checksum(src, dst, datagram) != 0) {
            return Err(DropReason::UdpChecksum);
        }
        Ok(UdpView {
            src_port: header.src_port(),
            dst_port: header.dst_port(),
            payload: &datagram[HEADER_LEN..],
        })
    }
}

fn checksum(src: IpAddr, dst: IpAddr, datagram: &[u8]) -> u16 {
    Sum::pseudo_header(src, dst, UDP, as_u32(datagram.len())).add(datagram).finish()
}

/// Appends a datagram from the first port to the second.
pub fn emit(src: IpAddr, dst: IpAddr, ports: (u16, u16), payload: &[u8], out: &mut Vec<u8>) {
    let len = HEADER_LEN + payload.len();
    assert!(len <= usize::from(u16::MAX), "a UDP datagram has at most 65535 bytes");
    let header = [ports.0, ports.1, as_u16(len), 0].map(u16::to_be_bytes);
    let start = out.len();
    let sum = Sum::pseudo_header(src, dst, UDP, as_u32(len))
        .append(header.as_flattened(), out)
        .append(payload, out);
    // RFC 768: zero means "no checksum", so a sum of zero is sent in its other form.
    let checksum = if sum.finish() == 0 { u16::MAX } else { sum.finish() };
    out[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::testing::{self, v4, v6};

    fn datagram(src: IpAddr, dst: IpAddr, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        emit(src, dst, (654, 269), payload, &mut out);
        out
    }

    #[test]
    fn datagram_is_laid_out_as_in_rfc_768() {
        let bytes = datagram(v4(1), v4(2), b"abc");
        assert_eq!(bytes[..6], [0x02, 0x8e, 0x01, 0x0d, 0, 11]);
        assert_eq!(bytes[8..], *b"abc");
    }

    #[test]
    fn checksum_may_be_left_out_of_ipv4_but_not_of_ipv6() {
        for (src, dst, expected) in
            [(v4(1), v4(2), Ok(b"abc".as_slice())), (v6(1), v6(2), Err(DropReason::UdpChecksum))]
        {
            let mut bytes = datagram(src, dst, b"abc");
            bytes[6..8].fill(0);
            assert_eq!(UdpView::parse(src, dst, &bytes).map(|view| view.payload), expected);
        }
    }

    #[test]
    fn checksum_that_comes_to_zero_is_sent_as_all_ones() {
        for (src, dst) in [(v4(1), v4(2)), (v6(1), v6(2))] {
            // The checksum over two zero bytes is the payload for which the sum becomes zero.
            let rest = datagram(src, dst, &[0, 0]);
            let bytes = datagram(src, dst, &rest[6..8]);
            assert_eq!(bytes[6..8], [0xff, 0xff]);
            assert!(UdpView::parse(src, dst, &bytes).is_ok());
        }
    }

    #[test]
    fn bytes_beyond_the_length_are_cut_off() {
        let mut bytes = datagram(v4(1), v4(2), b"abc");
        bytes.extend(b"link padding");
        assert_eq!(UdpView::parse(v4(1), v4(2), &bytes).map(|view| view.payload), Ok(b"abc".as_slice()));
    }

    #[test]
    fn wrong_lengths_are_told_apart() {
        let bytes = datagram(v4(1), v4(2), b"abc");
        for len in 0..bytes.len() {
            assert_eq!(UdpView::parse(v4(1), v4(2), &bytes[..len]), Err(DropReason::Truncated));
        }
        for len in 0..8 {
            let mut bytes = bytes.clone();
            bytes[5] = len;
            assert_eq!(UdpView::parse(v4(1), v4(2), &bytes), Err(DropReason::UdpMalformed));
        }
    }

    proptest! {
        #![proptest_config(testing::cases(128))]

        #[test]
        fn datagram_comes_back_and_any_flipped_bit_is_found(
            (src, dst) in testing::addresses(),
            ports in any::<(u16, u16)>(),
            payload in testing::bytes(40),
        ) {
            let mut bytes = b"before".to_vec();
            emit(src, dst, ports, &payload, &mut bytes);
            let mut bytes = bytes.split_off(6);
            let view = UdpView { src_port: ports.0, dst_port: ports.1, payload: &payload };
            prop_assert_eq!(UdpView::parse(src, dst, &bytes), Ok(view));
            // A wrong length is found only if the omitted bytes do not happen to make up for it.
            for bit in (0..bytes.len() * 8).filter(|bit| !(4..6).contains(&(bit / 8))) {
                bytes[bit / 8] ^= 1 << (bit % 8);
                // A flipped checksum of one bit becomes zero, "no checksum", which IPv4 must accept.
                let became_none = src.is_ipv4() && bytes[6..8] == [0, 0];
                prop_assert!(became_none || UdpView::parse(src, dst, &bytes).is_err());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }

        #[test]
        fn any_bytes_are_parsed_without_a_panic(
            (src, dst) in testing::addresses(),
            bytes in testing::bytes(40),
        ) {
            let _ = UdpView::parse(src, dst, &bytes);
        }
    }
}
