//! A bad link: packets are lost, delayed, reordered, duplicated, corrupted and slowed down, by a seed. Links on Linux
//! and test worlds share it; the machines of this crate do not see it.

use std::time::Duration;

use crate::Instant;
use crate::random::SplitMix64;

/// Settings of one direction of a link. Chances are in packets per million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impairment {
    /// Chance that the packet is lost. It then takes no time of the bottleneck.
    pub loss_ppm: u32,
    /// Chance that a copy of the packet follows, `duplicate_after` later.
    pub duplicate_ppm: u32,
    /// Counted from the arrival that the packet would have without `reorder_by`.
    pub duplicate_after: Duration,
    /// Chance that one bit of the packet is flipped.
    pub corrupt_ppm: u32,
    /// Chance that the packet takes `reorder_by` longer, so that others may overtake it.
    pub reorder_ppm: u32,
    /// The additional delay; later packets do not wait for this one.
    pub reorder_by: Duration,
    /// The time from the bottleneck to the other end, for every packet.
    pub delay: Duration,
    /// Each packet takes up to this much longer, without overtaking others.
    pub jitter: Duration,
    /// Rate of the bottleneck; 0 means no limit.
    pub bits_per_second: u64,
    /// Packets that may wait; one more is lost. The link counts the waiting packets.
    pub queue_packets: usize,
}

impl Impairment {
    /// Settings under which each packet passes at once.
    pub const NONE: Impairment = Impairment {
        loss_ppm: 0,
        duplicate_ppm: 0,
        duplicate_after: Duration::ZERO,
        corrupt_ppm: 0,
        reorder_ppm: 0,
        reorder_by: Duration::from_millis(5),
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        bits_per_second: 0,
        queue_packets: 1000,
    };

    /// Rejects settings under which nothing works.
    pub fn check(&self) -> Result<(), &'static str> {
        let chances = [self.loss_ppm, self.duplicate_ppm, self.corrupt_ppm, self.reorder_ppm];
        if chances.iter().any(|chance| *chance > 1_000_000) {
            return Err("a share is at most 1000000 parts per million");
        }
        if self.queue_packets == 0 { Err("a queue of 0 packets lets nothing through") } else { Ok(()) }
    }
}

/// A packet's passage through the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The time at which the bottleneck has sent it.
    pub left: Instant,
    /// Arrival at the other end.
    pub at: Instant,
    /// Arrival of its copy.
    pub again: Option<Instant>,
    /// The bit to flip: see [`turn_over`].
    pub spoils: Option<u64>,
}

/// The cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// By [`Impairment::loss_ppm`].
    Chance,
    /// The queue already had [`Impairment::queue_packets`].
    Queue,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Impairer {
    random: SplitMix64,
    /// The time at which the bottleneck has sent all packets so far.
    free_at: Instant,
    /// The latest arrival of a packet that was not reordered.
    latest: Instant,
}

impl Impairer {
    /// The same seed gives the same decisions about the same packets.
    pub fn new(seed: u64) -> Impairer {
        Impairer { random: SplitMix64::new(seed), free_at: Instant::ZERO, latest: Instant::ZERO }
    }

    /// Decides about a packet that finds `waiting` others. Each packet draws equally often, so that one setting does
    /// not change the effect of another.
    pub fn decide(
        &mut self,
        config: &Impairment,
        now: Instant,
        bytes: usize,
        waiting: usize,
    ) -> Result<Passage, Loss> {
        let chances = [config.loss_ppm, config.duplicate_ppm, config.reorder_ppm, config.corrupt_ppm];
        let [is_lost, is_twice, is_late, is_spoilt] =
            chances.map(|chance| self.random.below(1_000_000) < u64::from(chance));
        let (jitter, bit) = (self.random.next_u64(), self.random.next_u64());
        if is_lost {
            return Err(Loss::Chance);
        }
        if waiting >= config.queue_packets {
            return Err(Loss::Queue);
        }
        let left = self.serialise(config, now, bytes);
        let spread = u64::try_from(config.jitter.as_nanos()).unwrap_or(u64::MAX);
        let jitter = Duration::from_nanos(jitter.checked_rem(spread).unwrap_or(0));
        let on_time = (left + config.delay + jitter).max(self.latest);
        let at = if is_late { on_time + config.reorder_by } else { on_time };
        if !is_late {
            self.latest = at;
        }
        let again = is_twice.then(|| on_time + config.duplicate_after);
        Ok(Passage { left, at, again, spoils: is_spoilt.then_some(bit) })
    }

    fn serialise(&mut self, config: &Impairment, now: Instant, bytes: usize) -> Instant {
        if config.bits_per_second == 0 {
            return now;
        }
        let nanos = bytes as u128 * 8 * 1_000_000_000 / u128::from(config.bits_per_second);
        let took = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.free_at = self.free_at.max(now) + took;
        self.free_at
    }
}

/// Flips a bit; `bit` wraps around the packet.
pub fn turn_over(packet: &mut [u8], bit: u64) {
    let bits = packet.len() as u64 * 8;
    if let Some(at) = bit.checked_rem(bits) {
        packet[(at / 8) as usize] ^= 1 << (at % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// One packet a millisecond, of 100 bytes each.
    fn through(config: &Impairment, packets: u64) -> Vec<Result<Passage, Loss>> {
        let mut impairer = Impairer::new(7);
        (0..packets).map(|nth| impairer.decide(config, ms(nth), 100, 0)).collect()
    }

    #[test]
    fn jitter_delays_packets_and_lets_none_overtake() {
        let jitter = Duration::from_millis(20);
        let config = Impairment { delay: Duration::from_millis(3), jitter, ..Impairment::NONE };
        let arrivals: Vec<_> =
            through(&config, 500).into_iter().map(|fate| fate.expect("no loss").at).collect();
        assert!(arrivals.is_sorted());
        let late = |(nth, at): (usize, &Instant)| *at > ms(nth as u64 + 3);
        let delayed = arrivals.iter().enumerate().filter(|(nth, at)| late((*nth, at))).count();
        assert!(delayed > 400, "{delayed}");
        assert!(arrivals.iter().enumerate().all(|(nth, at)| *at < ms(nth as u64 + 23)));
    }

    #[test]
    fn a_copy_follows_by_as_much_as_is_set_and_overtakes_a_packet_that_is_late() {
        let reorder_by = Duration::from_millis(9);
        let duplicate_after = Duration::from_millis(2);
        let twice = Impairment { duplicate_ppm: 1_000_000, duplicate_after, reorder_by, ..Impairment::NONE };
        for (config, at) in [(twice, 0), (Impairment { reorder_ppm: 1_000_000, ..twice }, 9)] {
            let first = through(&config, 1)[0].expect("no loss");
            assert_eq!((first.at, first.again), (ms(at), Some(ms(2))));
        }
    }

    #[test]
    fn one_setting_does_not_change_what_another_does() {
        let lossy = Impairment { loss_ppm: 200_000, ..Impairment::NONE };
        let worse = Impairment {
            duplicate_ppm: 300_000,
            reorder_ppm: 300_000,
            corrupt_ppm: 300_000,
            jitter: Duration::from_millis(5),
            ..lossy
        };
        let lost = |config| through(config, 500).iter().map(Result::is_err).collect::<Vec<_>>();
        assert_eq!(lost(&lossy), lost(&worse));
    }

    #[test]
    fn a_packet_without_bytes_has_no_bit_to_turn() {
        turn_over(&mut [], 5);
        let mut packet = [0, 0];
        turn_over(&mut packet, 16 + 9);
        assert_eq!(packet, [0, 2]);
    }
}
