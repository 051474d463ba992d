//! The flows of one station and TID, which take turns by bytes (RFC 8290 §4). A new flow goes first.

use std::collections::VecDeque;

use super::codel::Codel;
use super::{FqCodelConfig, Queued};
use crate::wire::mark_congestion;
use crate::{Instant, NextHop};

/// A station and a TID.
pub(super) type Lane = (NextHop, u8);

/// A flow: packets of one place in the table.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) waiting: VecDeque<Queued>,
    pub(super) bytes: usize,
    /// The lane that it belongs to, while it takes turns.
    pub(super) lane: Option<Lane>,
    pub(super) deficit: i64,
    codel: Codel,
}

impl Flow {
    pub(super) fn push(&mut self, queued: Queued) {
        self.bytes += queued.packet.len();
        self.waiting.push_back(queued);
    }

    /// Takes the first packet without a word of CoDel's.
    pub(super) fn shed(&mut self) -> Option<Queued> {
        let queued = self.waiting.pop_front()?;
        self.bytes -= queued.packet.len();
        Some(queued)
    }

    /// Takes the next packet; `marks` counts those that CoDel marks, and `lost` gets those that it drops.
    fn pop(
        &mut self,
        (config, now): (&FqCodelConfig, Instant),
        lost: &mut Vec<Queued>,
        marks: &mut u64,
    ) -> Option<Queued> {
        let before = lost.len();
        let queued = self.codel.pop((config, now), &mut self.waiting, lost, |queued| {
            let ip = queued.packet.get_mut(config.header..).unwrap_or_default();
            let is_marked = config.ecn && mark_congestion(ip);
            *marks += u64::from(is_marked);
            is_marked
        });
        let gone = lost[before..].iter().chain(&queued).map(|queued| queued.packet.len());
        self.bytes -= gone.sum::<usize>();
        queued
    }
}

/// The turns of a lane's flows, by their places among all flows.
#[derive(Debug, Default)]
pub(super) struct Turns {
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// The flow of packets whose own flow is another lane's at the moment.
    pub(super) shared: Option<usize>,
    /// The lane waits for its turn.
    pub(super) is_active: bool,
}

impl Turns {
    /// A flow that took no turns begins with a whole one.
    pub(super) fn begin(&mut self, place: usize) {
        self.new.push_back(place);
    }

    /// Returns whether no flow takes turns.
    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.old.is_empty()
    }

    /// Takes the next packet of the lane.
    pub(super) fn pop(
        &mut self,
        (config, now): (&FqCodelConfig, Instant),
        flows: &mut [Flow],
        lost: &mut Vec<Queued>,
        marks: &mut u64,
    ) -> Option<Queued> {
        loop {
            let is_new = !self.new.is_empty();
            let turns = if is_new { &mut self.new } else { &mut self.old };
            let place = *turns.front()?;
            let flow = &mut flows[place];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(config.quantum);
                turns.pop_front();
                self.old.push_back(place);
                continue;
            }
            if let Some(queued) = flow.pop((config, now), lost, marks) {
                flow.deficit -= i64::try_from(queued.packet.len()).unwrap_or(i64::MAX);
                return Some(queued);
            }
            turns.pop_front();
            if is_new && !self.old.is_empty() {
                // A flow that is new again and again may not keep the others from their turns.
                self.old.push_back(place);
            } else {
                flow.lane = None;
            }
        }
    }
}
