//! Integrity check values of AODV's messages, for which RFC 3561 has no form. They are the last extension of a message
//! (§9), which each hop removes and writes anew. It holds the key's id, a time stamp, and half of an HMAC-SHA-256. The
//! latter covers the IP addresses, the TTL, the message and the extension up to there.

use super::messages::Extension;
use crate::on_demand::{Envelope, Keys, TAG_BYTES};

/// An extension type without registration, from the range that may be skipped.
const ICV: u8 = 0x59;
const STAMP_BYTES: usize = 8;
const DATA_BYTES: usize = 1 + STAMP_BYTES + TAG_BYTES;
/// The bytes that a signature adds to a message.
pub(super) const COST: usize = 2 + DATA_BYTES;
/// Tags of other kinds never cover bytes that begin like this.
const LABEL: &[u8] = b"hopwise aodv icv";

pub(super) fn sign(keys: &Keys, envelope: &Envelope, stamp: u64, message: &[u8]) -> Option<Vec<u8>> {
    let (id, key) = keys.signing();
    let mut data = [0; DATA_BYTES];
    data[0] = id;
    data[1..=STAMP_BYTES].copy_from_slice(&stamp.to_be_bytes());
    let mut signed = message.to_vec();
    Extension { kind: ICV, data: &data }.emit(&mut signed);
    let (said, _) = signed.split_last_chunk::<TAG_BYTES>()?;
    let tag = key.tag(&parts(envelope, said));
    let at = said.len();
    signed[at..].copy_from_slice(&tag);
    Some(signed)
}

/// The time stamp, and the message as it was before it was signed.
pub(super) fn verify<'m>(keys: &Keys, envelope: &Envelope, message: &'m [u8]) -> Option<(u64, &'m [u8])> {
    let (said, tag) = message.split_last_chunk::<TAG_BYTES>()?;
    let (inner, start) = said.split_last_chunk::<{ COST - TAG_BYTES }>()?;
    let [ICV, len, id, stamp @ ..] = start else { return None };
    let is_right = usize::from(*len) == DATA_BYTES && keys.find(*id)?.is_right(&parts(envelope, said), tag);
    is_right.then_some((u64::from_be_bytes(*stamp), inner))
}

/// A message without the check value of the previous hop. Nodes without keys use it: they must not pass that value on.
pub(super) fn strip(message: &[u8]) -> &[u8] {
    match message.split_last_chunk::<COST>() {
        Some((inner, [ICV, len, ..])) if usize::from(*len) == DATA_BYTES => inner,
        _ => message,
    }
}

fn parts<'p>(envelope: &'p Envelope, said: &'p [u8]) -> [&'p [u8]; 5] {
    [LABEL, &envelope.src, &envelope.dst, std::slice::from_ref(&envelope.ttl), said]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on_demand::Key;

    const ENVELOPE: Envelope = Envelope { src: [10, 0, 0, 1], dst: [255; 4], ttl: 3 };

    fn keys(id: u8, key: u8) -> Keys {
        Keys::new(vec![(id, Key::new([key; 32]))], None).expect("one key")
    }

    #[test]
    fn what_was_signed_is_believed_as_it_was_sent_and_in_no_other_way() {
        let signed = sign(&keys(1, 7), &ENVELOPE, 77, b"message").expect("there is room");
        assert_eq!(signed.len(), 7 + COST);
        assert_eq!(verify(&keys(1, 7), &ENVELOPE, &signed), Some((77, &b"message"[..])));
        assert_eq!(strip(&signed), b"message");
        assert_eq!((strip(b"message"), verify(&keys(1, 7), &ENVELOPE, b"message")), (&b"message"[..], None));
        for (id, key) in [(1, 8), (2, 7)] {
            assert_eq!(verify(&keys(id, key), &ENVELOPE, &signed), None);
        }
        for other in [
            Envelope { src: [10, 0, 0, 2], ..ENVELOPE },
            Envelope { dst: [10, 0, 0, 2], ..ENVELOPE },
            Envelope { ttl: 2, ..ENVELOPE },
        ] {
            assert_eq!(verify(&keys(1, 7), &other, &signed), None, "{other:?}");
        }
        for bit in 0..signed.len() * 8 {
            let mut changed = signed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(verify(&keys(1, 7), &ENVELOPE, &changed), None, "bit {bit}");
        }
    }
}
