//! A key that the nodes of a network share. Messages without its tag are refused.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The length of the truncated HMAC-SHA-256 in a message.
pub(crate) const TAG_BYTES: usize = 16;
/// The largest number of senders whose counters are kept.
const MOST_SENDERS: usize = 4_096;

/// A secret of 32 bytes, for HMAC-SHA-256. Its debug output does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// Takes the bytes as they are.
    pub fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        // HMAC takes keys of every length, so that this cannot fail.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes any key");
        parts.iter().for_each(|part| mac.update(part));
        mac
    }

    /// The length of the whole HMAC-SHA-256.
    pub(crate) const WHOLE_TAG: usize = 32;

    pub(crate) fn whole_tag(&self, parts: &[&[u8]]) -> [u8; Key::WHOLE_TAG] {
        self.mac(parts).finalize().into_bytes().into()
    }

    /// Compares in constant time.
    pub(crate) fn is_right_whole(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        self.mac(parts).verify_slice(tag).is_ok()
    }

    pub(crate) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        let whole = self.mac(parts).finalize().into_bytes();
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&whole[..TAG_BYTES]);
        tag
    }

    /// Compares in constant time.
    pub(crate) fn is_right(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        tag.len() == TAG_BYTES && self.mac(parts).verify_truncated_left(tag).is_ok()
    }
}

/// Never printed.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The counters of each sender that were seen: the highest, and the 64 below it.
#[derive(Debug, Default)]
pub(crate) struct Replays(BTreeMap<Ipv4Addr, (u64, u64)>);

impl Replays {
    /// Returns whether this counter is new. Call it only after the tag was found right.
    pub(crate) fn accept(&mut self, from: Ipv4Addr, counter: u64) -> bool {
        let Some((highest, below)) = self.0.get_mut(&from) else {
            let has_room = self.0.len() < MOST_SENDERS;
            if has_room {
                self.0.insert(from, (counter, 1));
            }
            return has_room;
        };
        if counter > *highest {
            let steps = counter - *highest;
            *below = if steps >= 64 { 1 } else { *below << steps | 1 };
            *highest = counter;
            return true;
        }
        let back = *highest - counter;
        let is_new = back < 64 && *below & (1 << back) == 0;
        if is_new {
            *below |= 1 << back;
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_holds_for_these_bytes_and_this_key_alone() {
        let key = Key::new([7; 32]);
        let tag = key.tag(&[b"from", b"rest"]);
        assert!(key.is_right(&[b"from", b"rest"], &tag));
        assert!(!key.is_right(&[b"from", b"resT"], &tag));
        assert!(!Key::new([8; 32]).is_right(&[b"from", b"rest"], &tag));
        assert!(!key.is_right(&[b"from", b"rest"], &tag[..8]), "a shorter tag would be easier to guess");
        assert_eq!(format!("{key:?}"), "Key(..)");
    }

    #[test]
    fn a_tag_is_that_of_rfc_4231() {
        // RFC 4231's key of 20 bytes 0x0b gives an equal result when it is padded with zeros.
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        let tag = Key::new(key).tag(&[b"Hi ", b"There"]);
        assert_eq!(tag[..8], [0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53]);
    }

    #[test]
    fn no_counter_is_taken_twice_and_none_that_is_too_old() {
        let (mut replays, from) = (Replays::default(), Ipv4Addr::new(10, 0, 0, 1));
        for (counter, is_new) in
            [(100, true), (100, false), (98, true), (98, false), (164, true), (101, true), (100, false)]
        {
            assert_eq!(replays.accept(from, counter), is_new, "{counter}");
        }
        assert!(replays.accept(Ipv4Addr::new(10, 0, 0, 2), 1), "each sender counts for itself");
    }
}
