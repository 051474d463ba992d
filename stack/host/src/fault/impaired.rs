//! One direction of a faulty link: its losses, and the packets whose time has not come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hopwise_core::Instant;
use hopwise_core::impairment::{Impairer, Impairment, Loss, Passage};

use super::ImpairedDrops;
use crate::counters::LinkDrop;

#[derive(Debug)]
pub(super) struct Impaired<T> {
    config: Impairment,
    impairer: Impairer,
    waiting: BinaryHeap<Reverse<HeldBack<T>>>,
    order: u64,
    spare: Vec<Vec<u8>>,
    lost: u64,
    overflowed: u64,
}

/// Ordered by time, then by arrival.
#[derive(Debug)]
struct HeldBack<T> {
    at: Instant,
    order: u64,
    packet: Vec<u8>,
    rest: T,
}

impl<T> PartialEq for HeldBack<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<T> Eq for HeldBack<T> {}

impl<T> PartialOrd for HeldBack<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for HeldBack<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<T: Copy> Impaired<T> {
    pub(super) fn new(config: Impairment, seed: u64) -> Impaired<T> {
        Impaired {
            config,
            impairer: Impairer::new(seed),
            waiting: BinaryHeap::new(),
            order: 0,
            spare: Vec::new(),
            lost: 0,
            overflowed: 0,
        }
    }

    /// The passage of a packet through the link; `None` means lost and counted.
    pub(super) fn decide(&mut self, now: Instant, bytes: usize) -> Option<Passage> {
        match self.impairer.decide(&self.config, now, bytes, self.waiting.len()) {
            Ok(passage) => return Some(passage),
            Err(Loss::Chance) => self.lost += 1,
            Err(Loss::Queue) => self.overflowed += 1,
        }
        None
    }

    pub(super) fn put(&mut self, at: Instant, packet: &[u8], rest: T) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(packet);
        self.order += 1;
        self.waiting.push(Reverse(HeldBack { at, order: self.order, packet: copy, rest }));
    }

    /// The next packet whose time has come. It stays until [`drop_due`](Lane::drop_due).
    pub(super) fn due(&self, now: Instant) -> Option<(&[u8], &T)> {
        let Reverse(next) = self.waiting.peek().filter(|Reverse(next)| next.at <= now)?;
        Some((&next.packet, &next.rest))
    }

    pub(super) fn drop_due(&mut self) {
        if let Some(Reverse(gone)) = self.waiting.pop() {
            self.spare.push(gone.packet);
        }
    }

    /// Returns whether an earlier packet is due.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        self.next_at().is_some_and(|at| at <= now)
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse(waiting)| waiting.at)
    }

    pub(super) fn lost(&self) -> ImpairedDrops {
        [(LinkDrop::FaultLost, self.lost), (LinkDrop::FaultRate, self.overflowed)]
    }
}
