//! Time stamps and integrity check values of whole packets (RFC 7182), as packet TLVs: HMAC with SHA-256. It covers the
//! addresses of sender and receiver, and the packet without check values. Each hop signs anew, whatever else the packet
//! holds.
//!
//! RFC 7182 covers the source alone (type extension 2). A packet to one neighbour then also holds for each other one:
//! whoever hears it can readdress it, and that other one takes the sender for its neighbour. Ours therefore covers the
//! destination, too, and has a type extension of the experimental range. All neighbours see the group's address as the
//! destination of a multicast packet.

use super::Packet;
use super::packet_flags;
use super::tlv_flags;
use crate::on_demand::{Envelope, Key, Keys};
use hopwise_core::narrow::as_u8;

/// Packet TLVs (RFC 7182 §14).
const ICV: u8 = 5;
const TIMESTAMP: u8 = 6;
/// The type extension of check values that include the packet's source and destination (252 to 255 are experimental).
const WITH_BOTH_ENDS: u8 = 252;
const SHA_256: u8 = 3;
const HMAC: u8 = 3;
/// The bytes before the value itself: both functions, and the one-byte number of a key.
const ICV_START: usize = 4;
/// The bytes that both TLVs add: types, flags, lengths and values, and the length of their block.
pub(crate) const COST: usize = 2 + 4 + ICV_START + Key::WHOLE_TAG + 3 + 8;

/// The parts of a packet's header.
#[derive(Clone, Copy, Debug)]
struct HeaderParts<'a> {
    version: u8,
    seq: &'a [u8],
    tlvs: &'a [u8],
    messages: &'a [u8],
}

impl<'a> HeaderParts<'a> {
    fn read(packet: &'a [u8]) -> Option<HeaderParts<'a>> {
        let (first, rest) = packet.split_first()?;
        let has = |flag: u8| first & flag != 0;
        let (seq, rest) = rest.split_at_checked(if has(packet_flags::SEQ) { 2 } else { 0 })?;
        let (tlvs, messages) = if has(packet_flags::TLVS) {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?
        } else {
            (&[][..], rest)
        };
        Some(HeaderParts { version: first & 0xf0, seq, tlvs, messages })
    }

    /// The same packet with other TLVs.
    fn with(&self, tlvs: &[u8]) -> Option<Vec<u8>> {
        let seq = if self.seq.is_empty() { 0 } else { packet_flags::SEQ };
        let has_tlvs = if tlvs.is_empty() { 0 } else { packet_flags::TLVS };
        let mut packet = vec![self.version | seq | has_tlvs];
        packet.extend(self.seq);
        if !tlvs.is_empty() {
            packet.extend(u16::try_from(tlvs.len()).ok()?.to_be_bytes());
            packet.extend(tlvs);
        }
        packet.extend(self.messages);
        Some(packet)
    }
}

/// A TLV of a packet, and all of its bytes.
#[derive(Clone, Copy, Debug)]
struct PacketTlv<'a> {
    kind: u8,
    extension: u8,
    value: &'a [u8],
    whole: &'a [u8],
}

/// `None` if the bytes are no TLVs of a packet.
fn parts(mut rest: &[u8]) -> Option<Vec<PacketTlv<'_>>> {
    let mut parts = Vec::new();
    while let [kind, flags, behind @ ..] = rest {
        let has = |flag: u8| flags & flag != 0;
        let (extension, behind) =
            if has(tlv_flags::EXTENSION) { behind.split_first()? } else { (&0, behind) };
        let (len, behind) = match (has(tlv_flags::VALUE), has(tlv_flags::LONG)) {
            (false, _) => (0, behind),
            (true, false) => behind.split_first().map(|(len, behind)| (usize::from(*len), behind))?,
            (true, true) => {
                let (len, behind) = behind.split_first_chunk::<2>()?;
                (usize::from(u16::from_be_bytes(*len)), behind)
            }
        };
        let (value, behind) = behind.split_at_checked(len)?;
        let whole = &rest[..rest.len() - behind.len()];
        parts.push(PacketTlv { kind: *kind, extension: *extension, value, whole });
        rest = behind;
    }
    rest.is_empty().then_some(parts)
}

/// The packet with a time stamp and a check value; `None` without room for them.
pub(crate) fn sign(keys: &Keys, envelope: &Envelope, stamp: u64, packet: &[u8]) -> Option<Vec<u8>> {
    let (id, key) = keys.signing();
    let head = HeaderParts::read(packet)?;
    let mut time = vec![TIMESTAMP, tlv_flags::VALUE, 8];
    time.extend(stamp.to_be_bytes());
    let others = [head.tlvs, &time].concat();
    let tag = key.whole_tag(&[&envelope.src, &envelope.dst, &head.with(&others)?]);
    let len = as_u8(ICV_START + tag.len());
    let mut icv =
        vec![ICV, tlv_flags::EXTENSION | tlv_flags::VALUE, WITH_BOTH_ENDS, len, SHA_256, HMAC, 1, id];
    icv.extend(tag);
    head.with(&[icv, others].concat())
}

/// The time stamp of a packet whose check value is right, and the packet with its TLVs.
pub(crate) fn verify<'m>(keys: &Keys, envelope: &Envelope, packet: &'m [u8]) -> Option<(u64, &'m [u8])> {
    let head = HeaderParts::read(packet)?;
    let parts = parts(head.tlvs)?;
    let (icvs, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.kind == ICV);
    let unsigned = head.with(&others.iter().flat_map(|part| part.whole).copied().collect::<Vec<_>>())?;
    let is_right = |icv: &PacketTlv<'_>| match icv.value {
        [SHA_256, HMAC, 1, id, tag @ ..] if icv.extension == WITH_BOTH_ENDS => {
            let covered: [&[u8]; 3] = [&envelope.src, &envelope.dst, &unsigned];
            keys.find(*id).is_some_and(|key| key.is_right_whole(&covered, tag))
        }
        _ => false,
    };
    icvs.iter().find(|icv| is_right(icv))?;
    // The check value covers no flags of its own TLV. A copy that nobody can read must not use the time stamp up.
    Packet::parse(packet).ok()?;
    let stamp = others.iter().find(|part| (part.kind, part.extension) == (TIMESTAMP, 0))?;
    Some((u64::from_be_bytes(stamp.value.try_into().ok()?), packet))
}

#[cfg(test)]
mod tests {
    use super::super::{Rfc5444Message, Tlv};
    use super::*;

    const ENVELOPE: Envelope = Envelope { src: [10, 0, 0, 1], dst: [224, 0, 0, 109], ttl: 255 };

    fn keys(id: u8, key: u8) -> Keys {
        Keys::new(vec![(id, Key::new([key; 32]))], None).expect("one key")
    }

    fn packets() -> Vec<Vec<u8>> {
        let message = Rfc5444Message::new(13, 4);
        let tlvs = vec![Tlv { kind: 99, extension: 3, value: vec![7; 300] }];
        let full = Packet { seq: Some(513), tlvs, messages: vec![message.clone(), message.clone()] };
        let plain = [Packet::default(), Packet::of(message), full];
        plain.iter().map(|packet| packet.bytes().expect("short enough")).collect()
    }

    #[test]
    fn what_was_signed_is_believed_of_its_sender_where_it_was_sent_and_in_no_other_way() {
        for packet in packets() {
            let signed = sign(&keys(3, 7), &ENVELOPE, 77, &packet).expect("there is room");
            assert!(Packet::parse(&signed).is_ok_and(|read| read.tlvs.len() >= 2));
            assert_eq!(verify(&keys(3, 7), &ENVELOPE, &signed), Some((77, &signed[..])));
            assert_eq!(verify(&keys(3, 8), &ENVELOPE, &signed), None);
            assert_eq!(verify(&keys(4, 7), &ENVELOPE, &signed), None, "a key that is not known");
            let to_one = Envelope { dst: [10, 0, 0, 9], ..ENVELOPE };
            for other in [Envelope { src: [10, 0, 0, 2], ..ENVELOPE }, to_one] {
                assert_eq!(verify(&keys(3, 7), &other, &signed), None, "{other:?}");
            }
            let signed_to_one = sign(&keys(3, 7), &to_one, 77, &packet).expect("there is room");
            assert!(verify(&keys(3, 7), &to_one, &signed_to_one).is_some());
            let another = Envelope { dst: [10, 0, 0, 8], ..ENVELOPE };
            for readdressed in [ENVELOPE, another] {
                let opened = verify(&keys(3, 7), &readdressed, &signed_to_one);
                assert_eq!(opened, None, "sent to another: {readdressed:?}");
            }
            assert_eq!(verify(&keys(3, 7), &ENVELOPE, &packet), None, "nothing was signed");
        }
    }

    #[test]
    fn no_bit_of_a_signed_packet_may_change() {
        for packet in packets() {
            let signed = sign(&keys(3, 7), &ENVELOPE, 77, &packet).expect("there is room");
            for bit in 0..signed.len() * 8 {
                let mut changed = signed.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                // Receivers may ignore reserved bits.
                let is_harmless = Packet::parse(&changed) == Packet::parse(&signed);
                assert!(is_harmless || verify(&keys(3, 7), &ENVELOPE, &changed).is_none(), "bit {bit}");
            }
        }
    }

    #[test]
    fn a_packet_of_one_message_grows_by_what_is_said() {
        let packet = &packets()[1];
        let signed = sign(&keys(3, 7), &ENVELOPE, 77, packet).expect("there is room");
        assert_eq!(signed.len(), packet.len() + COST);
        assert_eq!(signed[..11], [4, 0, 51, 5, 0x90, 252, 36, 3, 3, 1, 3]);
    }
}
