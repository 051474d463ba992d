//! The Internet checksum (RFC 1071), summed in the machine's own byte order and chained over pieces of any
//! length.

use crate::narrow::low_u16;
use std::net::IpAddr;

/// The place where checksums are computed and verified: here, or in the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// Here. Packets with a wrong sum are dropped.
    Verify,
    /// In the link. It completes the sums of outgoing TCP segments, and vouches for incoming packets.
    Trust,
}

/// A partial ones-complement sum. It remembers whether the number of bytes so far is odd, so that the pieces of a
/// segment may be split anywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Congruent modulo 2^16 - 1 to the sum of the 16-bit words in native byte order. RFC 1071 §2(B) allows any order
    /// if the result is stored as the words were loaded.
    words: u64,
    /// True if the next byte is the second one of its word.
    odd: bool,
}

impl Sum {
    /// The sum of either pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1). Both are equal, since the upper half of the
    /// length is zero in IPv4.
    #[inline]
    pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, len: u32) -> Sum {
        let words = address_words(src)
            + address_words(dst)
            + u64::from(u32::from(protocol).to_be())
            + u64::from(len.to_be());
        Sum { words, odd: false }
    }

    /// Adds the bytes that follow those added so far.
    #[inline]
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "`+` between a sum and bytes would read as arithmetic")]
    pub fn add(mut self, bytes: &[u8]) -> Sum {
        let (stretches, rest) = bytes.as_chunks::<STRETCH>();
        for stretch in stretches {
            self = self.chain(stretch);
        }
        self.chain(rest)
    }

    /// Copies `src` to `dst`, which has the same length, and sums it on the way.
    #[inline]
    #[must_use]
    pub fn copy(self, src: &[u8], dst: &mut [u8]) -> Sum {
        assert_eq!(src.len(), dst.len(), "both ends of a copy are equally long");
        src.chunks(STRETCH).zip(dst.chunks_mut(STRETCH)).fold(self, |sum, (src, dst)| {
            dst.copy_from_slice(src);
            sum.chain(src)
        })
    }

    /// Appends `src` to `out` and sums it on the way.
    #[inline]
    #[must_use]
    pub fn append(mut self, src: &[u8], out: &mut Vec<u8>) -> Sum {
        let (stretches, rest) = src.as_chunks::<STRETCH>();
        for stretch in stretches {
            out.extend_from_slice(stretch);
            self = self.chain(stretch);
        }
        out.extend_from_slice(rest);
        self.chain(rest)
    }

    /// Adds a header of a few words before it is turned into bytes.
    #[inline]
    #[must_use]
    pub(super) fn add_words<const N: usize>(self, words: &[u32; N]) -> Sum {
        debug_assert!(!self.odd);
        let sum: u64 = words.iter().map(|word| u64::from(word.to_be())).sum();
        Sum { words: self.words + sum, odd: false }
    }

    /// Adds a header of a few words.
    #[inline]
    #[must_use]
    pub(super) fn add_header(self, header: &[u8]) -> Sum {
        debug_assert!(header.len() < BLOCK && header.len().is_multiple_of(4) && !self.odd);
        let (words, _) = header.as_chunks::<4>();
        let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        Sum { words: self.words + sum, odd: false }
    }

    /// The sum without complement, as checksum offload expects it in the field.
    #[inline]
    pub fn fold(self) -> u16 {
        fold(self.words).to_be()
    }

    /// The checksum, for `to_be_bytes`; 0 over bytes that contain a correct one.
    #[inline]
    pub fn finish(self) -> u16 {
        !self.fold()
    }

    /// RFC 1071 §2(B): words that begin at an odd byte add up to the byte-swapped value.
    #[inline]
    fn chain(self, stretch: &[u8]) -> Sum {
        let words = sum_words(stretch);
        let words = if self.odd { u64::from(fold(words).swap_bytes()) } else { words };
        Sum { words: self.words + words, odd: self.odd ^ (stretch.len() % 2 == 1) }
    }
}

#[inline]
fn fold(words: u64) -> u16 {
    let sum = (words >> 32) + (words & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    low_u16((sum >> 16) + (sum & 0xffff))
}

#[inline]
fn address_words(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(u32::from_ne_bytes(address.octets())),
        IpAddr::V6(address) => sum_short(&address.octets()),
    }
}

/// The bytes that are copied and then summed at a time: few enough for the first cache. The number is even, so that
/// only the last stretch of a piece can be odd. It also keeps [`Accumulators`] from overflow.
const STRETCH: usize = 8192;
const BLOCK: usize = 64;
const ACCUMULATORS: usize = 8;

/// The sum of the words of at most one stretch. It is below 2^37, so a `Sum` has room for 2^27 of them.
#[inline]
fn sum_words(bytes: &[u8]) -> u64 {
    debug_assert!(bytes.len() <= STRETCH);
    if bytes.len() < BLOCK {
        return sum_short(bytes);
    }
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut accumulators = Accumulators::default();
    for block in blocks {
        accumulators.take(block);
    }
    accumulators.total() + sum_short(rest)
}

#[inline]
fn sum_short(bytes: &[u8]) -> u64 {
    let halves = |word: u64| (word >> 32) + (word & 0xffff_ffff);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum: u64 = words.iter().map(|word| halves(u64::from_ne_bytes(*word))).sum();
    let (word, rest) = rest.as_chunks::<4>();
    let sum = sum + word.first().map_or(0, |word| u64::from(u32::from_ne_bytes(*word)));
    sum + match *rest {
        [] => 0,
        [a] => u64::from(u16::from_ne_bytes([a, 0])),
        [a, b] => u64::from(u16::from_ne_bytes([a, b])),
        [a, b, c, ..] => u64::from(u32::from_ne_bytes([a, b, c, 0])),
    }
}

/// Sums the 16-bit words in vectors of 32-bit ones. `whole` wraps, but `high`, the sum of the upper halves, does not,
/// and shows the loss. This takes one operation less per vector than two separate sums, and any 128-bit vector unit can
/// do it.
#[derive(Default)]
struct Accumulators {
    whole: [u32; ACCUMULATORS],
    high: [u32; ACCUMULATORS],
}

impl Accumulators {
    #[inline(always)]
    fn take(&mut self, block: &[u8; BLOCK]) {
        let (words, _) = block.as_chunks::<4>();
        for (index, word) in words.iter().enumerate() {
            let (nth, word) = (index % ACCUMULATORS, u32::from_ne_bytes(*word));
            self.whole[nth] = self.whole[nth].wrapping_add(word);
            self.high[nth] += word >> 16;
        }
    }

    /// Not inlined: the compiler would order the accumulators for this sum, at the cost of the loads in the loop.
    #[inline(never)]
    fn total(&self) -> u64 {
        let halves = self.whole.iter().zip(self.high).map(|(whole, high)| {
            let low = whole.wrapping_sub(high << 16);
            u64::from(low) + u64::from(high)
        });
        halves.sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::testing;

    /// RFC 1071 §1 word by word: pad, add, carry around, complement.
    fn reference(bytes: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in bytes.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }

    fn pieces(bytes: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places.windows(2).map(|ends| bytes[ends[0]..ends[1]].to_vec()).collect()
    }

    #[test]
    fn example_of_rfc_1071_sums_to_ddf2() {
        let sum = Sum::default().add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.fold(), 0xddf2);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn accumulators_hold_the_largest_words_of_several_stretches() {
        for len in [STRETCH - 1, STRETCH, STRETCH + 1, 3 * STRETCH + BLOCK + 3] {
            let bytes = vec![0xff; len];
            assert_eq!(Sum::default().add(&bytes).finish(), reference(&bytes), "{len}");
        }
    }

    #[test]
    fn every_length_around_a_block_sums_as_the_reference() {
        let bytes: Vec<u8> = (0..4 * BLOCK).map(|index| (index * 151 + 7) as u8).collect();
        for len in 0..=bytes.len() {
            assert_eq!(Sum::default().add(&bytes[..len]).finish(), reference(&bytes[..len]), "{len}");
        }
    }

    #[test]
    fn pseudo_header_is_that_of_each_family() {
        let v4 = [192, 0, 2, 1, 192, 0, 2, 2, 0, 6, 0x12, 0x34];
        let sum = Sum::pseudo_header(testing::v4(1), testing::v4(2), 6, 0x1234);
        assert_eq!(sum.finish(), reference(&v4));

        let (src, dst) = (testing::v6(1), testing::v6(2));
        let mut v6 = Vec::new();
        for address in [src, dst] {
            let IpAddr::V6(address) = address else { unreachable!("made so above") };
            v6.extend(address.octets());
        }
        v6.extend([0x00, 0x01, 0x12, 0x34, 0, 0, 0, 17]);
        assert_eq!(Sum::pseudo_header(src, dst, 17, 0x0001_1234).finish(), reference(&v6));
    }

    proptest! {
        #![proptest_config(testing::cases(256))]

        #[test]
        fn pieces_of_any_length_sum_as_the_whole(
            bytes in testing::bytes(700),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        ) {
            let expected = reference(&bytes);
            let pieces = pieces(&bytes, &cuts);
            let added = pieces.iter().fold(Sum::default(), |sum, piece| sum.add(piece));
            prop_assert_eq!(added.finish(), expected);

            let mut appended = Vec::new();
            let sum = pieces.iter().fold(Sum::default(), |sum, piece| sum.append(piece, &mut appended));
            prop_assert_eq!(sum.finish(), expected);
            prop_assert_eq!(&appended, &bytes);

            let mut copied = vec![0; bytes.len()];
            let mut at = 0;
            let sum = pieces.iter().fold(Sum::default(), |sum, piece| {
                let place = &mut copied[at..at + piece.len()];
                at += piece.len();
                sum.copy(piece, place)
            });
            prop_assert_eq!(sum.finish(), expected);
            prop_assert_eq!(&copied, &bytes);
        }

        #[test]
        fn stretches_join_at_any_offset(head in testing::bytes(3), len in STRETCH - 3..3 * STRETCH) {
            let tail: Vec<u8> = (0..len).map(|index| (index * 31 + len) as u8).collect();
            let whole = [head.as_slice(), &tail].concat();
            prop_assert_eq!(Sum::default().add(&head).add(&tail).finish(), reference(&whole));
            let mut out = Vec::new();
            let appended = Sum::default().append(&head, &mut out).append(&tail, &mut out);
            prop_assert_eq!(appended.finish(), reference(&whole));
            prop_assert_eq!(out, whole);
        }
    }
}
