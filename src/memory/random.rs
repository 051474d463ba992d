//! Pseudo-random numbers for the path: SplitMix64, small and the same everywhere. Nothing secret is made from it.

#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream of its own for each (seed, purpose).
    pub fn new(seed: u64, purpose: u64) -> Random {
        let mut random = Random(seed ^ purpose.wrapping_mul(0xd1b5_4a32_d192_ed03));
        random.next_u64();
        random
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `bound - 1`; 0 when `bound` is 0. The bias of a modulus is far below what a run could show.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// True this many times in a million.
    pub fn per_million(&mut self, chance: u32) -> bool {
        chance > 0 && self.below(1_000_000) < u64::from(chance)
    }
}
