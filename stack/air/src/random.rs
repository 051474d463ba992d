//! Random numbers: one stream per (seed, station, purpose). The draws of one station do not change another's numbers.

use hopwise_core::random::SplitMix64;

/// The purpose of a stream. A new purpose is added at the end: the numbers of the older purposes stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The slots of backoffs.
    Backoff = 1,
    /// The positions of nodes.
    Placement,
    /// The legs of moving nodes.
    Movement,
    /// The constant gain of each link.
    Shadowing,
    /// The gain of a link that changes with time.
    Fading,
    /// Frames that the channel spoils.
    FrameLoss,
    /// When flows begin.
    Traffic,
    /// The pauses between the requests of a program.
    ThinkTime,
    /// The sizes of requests and answers.
    Size,
    /// The order of a trial's runs.
    Order,
    /// The jitter of routing protocols.
    Routing,
    /// A base station's forecasts of fades.
    Forecast,
    /// When beacons leave.
    Beacons,
    /// Frames that other frames spoil.
    Interference,
    /// When outages begin.
    Outage,
    /// The order in which rates are tried.
    Rates,
}

/// The numbers of one seed, station and purpose.
#[derive(Clone, Debug)]
pub struct NumberStream(SplitMix64);

impl NumberStream {
    /// The stream from its beginning.
    pub fn new(seed: u64, station: u32, purpose: Purpose) -> NumberStream {
        let first = |seed| SplitMix64::new(seed).next_u64();
        NumberStream(SplitMix64::new(first(first(seed) ^ (u64::from(station) << 8 | purpose as u64))))
    }

    /// The next number, all of whose bits are random.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to `bound - 1`; 0 when `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number from 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_neighbours_seeds_and_purposes_have_nothing_in_common() {
        let first = |seed, station, purpose| NumberStream::new(seed, station, purpose).next_u64();
        let mut drawn = Vec::new();
        for seed in 0..8 {
            for station in 0..8 {
                for purpose in [Purpose::Backoff, Purpose::Placement, Purpose::Fading] {
                    drawn.push(first(seed, station, purpose));
                }
            }
        }
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 8 * 8 * 3);
    }

    #[test]
    fn every_slot_of_a_window_is_as_likely_as_any_other() {
        let mut stream = NumberStream::new(1, 1, Purpose::Backoff);
        let mut slots = [0_u32; 31];
        (0..310_000).for_each(|_| slots[stream.below(31) as usize] += 1);
        assert!(slots.iter().all(|n| (9_500..10_500).contains(n)), "{slots:?}");
        assert_eq!(stream.below(0), 0);
    }
}
