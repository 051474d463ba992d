//! Pseudo-random numbers for the path, and for plans over it.

use std::time::Duration;

use hopwise_core::random::SplitMix64;

#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// A stream of its own for each (seed, purpose).
    pub fn new(seed: u64, purpose: u64) -> Random {
        let mut numbers = SplitMix64::new(seed ^ purpose.wrapping_mul(0xd1b5_4a32_d192_ed03));
        numbers.next_u64();
        Random(numbers)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to `bound - 1`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// A number from `low` to `high`, ends included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below((high - low).saturating_add(1))
    }

    /// The same, but each power of two between the ends is as likely as any other: small numbers are common.
    pub fn log_between(&mut self, low: u64, high: u64) -> u64 {
        let most_bits = u64::from(u64::BITS - high.leading_zeros());
        let bits = self.between(u64::from(u64::BITS - low.leading_zeros()), most_bits);
        let (floor, ceiling) = if bits == 0 { (0, 0) } else { (1 << (bits - 1), u64::MAX >> (64 - bits)) };
        self.between(floor.max(low), ceiling.min(high))
    }

    /// The same for times, in whole microseconds.
    pub fn time_between(&mut self, low: Duration, high: Duration) -> Duration {
        Duration::from_micros(self.log_between(low.as_micros() as u64, high.as_micros() as u64))
    }

    /// True once in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these items, each as likely as any other.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        assert!(!from.is_empty(), "there is something to pick from");
        from[self.below(from.len() as u64) as usize]
    }

    /// True this many times in a million.
    pub fn per_million(&mut self, chance: u32) -> bool {
        chance > 0 && self.0.below(1_000_000) < u64::from(chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_range_are_drawn_and_nothing_beyond_them() {
        let mut random = Random::new(1, 1);
        let mut drawn = |draw: fn(&mut Random) -> u64| {
            let numbers: Vec<_> = (0..400).map(|_| draw(&mut random)).collect();
            (numbers.iter().copied().min(), numbers.iter().copied().max())
        };
        assert_eq!(drawn(|random| random.between(3, 9)), (Some(3), Some(9)));
        assert_eq!(drawn(|random| random.log_between(0, 5)), (Some(0), Some(5)));
        assert_eq!(drawn(|random| random.log_between(6, 6)), (Some(6), Some(6)));
        assert_eq!(drawn(|random| random.between(u64::MAX, u64::MAX)), (Some(u64::MAX), Some(u64::MAX)));
    }

    #[test]
    fn small_numbers_are_as_common_as_large_ones_on_a_logarithmic_draw() {
        let mut random = Random::new(1, 2);
        let small = (0..1000).filter(|_| random.log_between(1, (1 << 20) - 1) < 1 << 10).count();
        assert!((400..600).contains(&small), "{small}");
    }
}
