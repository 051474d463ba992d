//! One direction of a faulty link: its losses, and the packets whose time has not come.

use std::collections::BTreeMap;

use hopwise_core::Instant;
use hopwise_core::impairment::{Impairer, Impairment, Loss, Passage};

use super::ImpairedDrops;
use crate::counters::LinkDrop;

#[derive(Debug)]
pub(super) struct Impaired<T> {
    config: Impairment,
    impairer: Impairer,
    /// Packets that are held back, by their time and then by arrival.
    waiting: BTreeMap<(Instant, u64), (Vec<u8>, T)>,
    order: u64,
    spare: Vec<Vec<u8>>,
    lost: u64,
    overflowed: u64,
}

impl<T: Copy> Impaired<T> {
    pub(super) fn new(config: Impairment, seed: u64) -> Impaired<T> {
        Impaired {
            config,
            impairer: Impairer::new(seed),
            waiting: BTreeMap::new(),
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
        self.waiting.insert((at, self.order), (copy, rest));
    }

    /// The next packet whose time has come. It stays until [`drop_due`](Lane::drop_due).
    pub(super) fn due(&self, now: Instant) -> Option<(&[u8], &T)> {
        let (_, (packet, rest)) = self.waiting.first_key_value().filter(|((at, _), _)| *at <= now)?;
        Some((packet, rest))
    }

    pub(super) fn drop_due(&mut self) {
        self.spare.extend(self.waiting.pop_first().map(|(_, (packet, _))| packet));
    }

    /// Returns whether an earlier packet is due.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        self.next_at().is_some_and(|at| at <= now)
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn lost(&self) -> ImpairedDrops {
        [(LinkDrop::FaultLost, self.lost), (LinkDrop::FaultRate, self.overflowed)]
    }
}
