//! One direction of a faulty link: what becomes of each packet, and those whose time has not come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::random::SplitMix64;

use super::{FaultConfig, Lost};
use crate::counters::LinkDrop;

#[derive(Debug)]
pub(super) struct Lane<T> {
    config: FaultConfig,
    random: SplitMix64,
    waiting: BinaryHeap<Reverse<Waiting<T>>>,
    order: u64,
    /// When the bottleneck has sent what it was given.
    free_at: Instant,
    spare: Vec<Vec<u8>>,
    lost: u64,
    overflowed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lost(LinkDrop),
    Passes {
        at: Instant,
        /// When a copy follows.
        again: Option<Instant>,
        /// Which bit is turned over, counted round and round.
        spoils: Option<u64>,
    },
}

/// In the order of their time, then of their coming.
#[derive(Debug)]
struct Waiting<T> {
    at: Instant,
    order: u64,
    packet: Vec<u8>,
    rest: T,
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<T: Copy> Lane<T> {
    pub(super) fn new(config: FaultConfig, seed: u64) -> Lane<T> {
        Lane {
            config,
            random: SplitMix64::new(seed),
            waiting: BinaryHeap::new(),
            order: 0,
            free_at: Instant::ZERO,
            spare: Vec::new(),
            lost: 0,
            overflowed: 0,
        }
    }

    /// Every packet draws the same number of times, so that one setting does not change what another one does.
    pub(super) fn decide(&mut self, now: Instant, bytes: usize) -> Fate {
        let config = self.config;
        let [loss, twice, spoils, late] =
            [config.loss_ppm, config.duplicate_ppm, config.corrupt_ppm, config.reorder_ppm]
                .map(|share| self.random.below(1_000_000) < u64::from(share));
        let bit = self.random.next_u64();
        if loss {
            self.lost += 1;
            return Fate::Lost(LinkDrop::FaultLost);
        }
        if self.waiting.len() >= config.queue_packets {
            self.overflowed += 1;
            return Fate::Lost(LinkDrop::FaultRate);
        }
        let mut at = now + config.delay;
        if config.bits_per_second > 0 {
            let nanos = bytes as u128 * 8 * 1_000_000_000 / u128::from(config.bits_per_second);
            let took = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.free_at = self.free_at.max(now) + took;
            at = self.free_at + config.delay;
        }
        let again = twice.then_some(at);
        if late {
            at += config.reorder_by;
        }
        Fate::Passes { at, again, spoils: spoils.then_some(bit) }
    }

    pub(super) fn put(&mut self, at: Instant, packet: &[u8], rest: T) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(packet);
        self.order += 1;
        self.waiting.push(Reverse(Waiting { at, order: self.order, packet: copy, rest }));
    }

    /// The next one whose time has come; it stays until it is [let go](Lane::drop_due).
    pub(super) fn due(&self, now: Instant) -> Option<(&[u8], &T)> {
        let Reverse(next) = self.waiting.peek().filter(|Reverse(next)| next.at <= now)?;
        Some((&next.packet, &next.rest))
    }

    pub(super) fn drop_due(&mut self) {
        if let Some(Reverse(gone)) = self.waiting.pop() {
            self.spare.push(gone.packet);
        }
    }

    /// Whether one that came earlier is due.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        self.next_at().is_some_and(|at| at <= now)
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse(waiting)| waiting.at)
    }

    pub(super) fn lost(&self) -> Lost {
        [(LinkDrop::FaultLost, self.lost), (LinkDrop::FaultRate, self.overflowed)]
    }
}
