//! Random numbers for worlds, faults and tests. The machines of this crate use none.
//!
//! By hand: a seed must draw the same numbers for ever, and the generators of `rand` may change with its versions.

/// SplitMix64: small, and the same on every platform. Unsuitable for secrets.
#[derive(Clone, Debug, Default)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Any seed will do, 0 included.
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next number; each of the 2^64 comes once in a period.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound - 1`; 0 if `bound` is 0. The bias of the modulus is far too small to show in a run.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 0 and of seed 42, as Sebastiano Vigna's reference has them.
    #[test]
    fn the_numbers_are_those_of_the_reference() {
        let first = |seed| SplitMix64::new(seed).next_u64();
        assert_eq!((first(0), first(42)), (0xe220_a839_7b1d_cdaf, 0xbdd7_3226_2feb_6e95));
        let mut random = SplitMix64::new(0);
        assert_eq!(random.below(0), 0);
    }
}
