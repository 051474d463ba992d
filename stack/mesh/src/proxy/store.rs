//! Packets that wait at a base station, of one flow and one side.
//!
//! Invariant P1: data is in the order of its numbers, everything else in the order in which it came.

use std::collections::VecDeque;

use hopwise_core::Seq;
use hopwise_core::agent::Passing;

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) id: u64,
    /// What it begins with, and one past what it ends with; of a pure ACK its sequence number, twice.
    pub(super) seq: Seq,
    pub(super) end: Seq,
    pub(super) ack: Option<Seq>,
    /// A copy: it went on when it came.
    pub(super) was_sent: bool,
    pub(super) packet: Vec<u8>,
}

impl Kept {
    pub(super) fn new(id: u64, passing: &Passing<'_>, packet: Vec<u8>, was_sent: bool) -> Kept {
        Kept { id, seq: passing.seq, end: passing.end(), ack: passing.ack, was_sent, packet }
    }

    pub(super) fn len(&self) -> u32 {
        self.end - self.seq
    }

    /// What a trace calls it by.
    pub(super) fn number(&self) -> Seq {
        match self.ack {
            Some(ack) if self.len() == 0 => ack,
            _ => self.seq,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Store {
    waiting: VecDeque<Kept>,
    bytes: usize,
    payload_bytes: u32,
    /// Those that have not gone on.
    withheld: usize,
}

/// A packet in memory takes this much besides its bytes.
const OVERHEAD: usize = size_of::<Kept>();

impl Store {
    pub(super) fn cost(packet: &[u8]) -> usize {
        packet.len() + OVERHEAD
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// What it takes of the memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn payload_bytes(&self) -> u32 {
        self.payload_bytes
    }

    /// Something waits that has not gone on.
    pub(super) fn withholds(&self) -> bool {
        self.withheld > 0
    }

    /// Whether all of this data is here already.
    pub(super) fn has(&self, seq: Seq, end: Seq) -> bool {
        if self.waiting.back().is_none_or(|last| last.end <= seq) {
            return false;
        }
        let mut at = seq;
        for kept in &self.waiting {
            if kept.seq <= at && kept.end > at {
                at = kept.end;
            }
        }
        at >= end
    }

    /// P1: newer data nearly always comes last.
    pub(super) fn put(&mut self, kept: Kept) {
        self.bytes += Store::cost(&kept.packet);
        self.payload_bytes += kept.len();
        self.withheld += usize::from(!kept.was_sent);
        let is_after = |other: &Kept| other.seq <= kept.seq || kept.len() == 0;
        let place = self.waiting.iter().rposition(is_after).map_or(0, |before| before + 1);
        self.waiting.insert(place, kept);
    }

    pub(super) fn pop(&mut self) -> Option<Kept> {
        let kept = self.waiting.pop_front()?;
        // Room that nothing takes counts as no memory.
        if self.waiting.len() < self.waiting.capacity() / 4 {
            self.waiting.shrink_to(2 * self.waiting.len());
        }
        self.bytes -= Store::cost(&kept.packet);
        self.payload_bytes -= kept.len();
        self.withheld -= usize::from(!kept.was_sent);
        Some(kept)
    }

    pub(super) fn find(&self, seq: Seq) -> Option<&Kept> {
        self.waiting.iter().find(|kept| kept.len() > 0 && kept.seq <= seq && seq < kept.end)
    }

    /// Takes out data that ends at or below this number, and what came without data before it.
    pub(super) fn pop_below(&mut self, below: Seq) -> Option<Kept> {
        let first = self.waiting.front()?;
        if first.end <= below && first.len() > 0 { self.pop() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(seq: u32, len: u32) -> Kept {
        let (seq, packet) = (Seq(seq), vec![0; len as usize + 40]);
        Kept { id: 0, seq, end: seq + len, ack: None, was_sent: false, packet }
    }

    fn seqs(store: &mut Store) -> Vec<u32> {
        std::iter::from_fn(|| store.pop()).map(|kept| kept.seq.0).collect()
    }

    #[test]
    fn data_that_comes_late_goes_where_it_belongs_also_across_the_wrap() {
        let mut store = Store::default();
        for seq in [u32::MAX - 99, 100, 0, 200] {
            store.put(kept(seq, 100));
        }
        assert!(store.has(Seq(u32::MAX - 49), Seq(250)) && !store.has(Seq(250), Seq(350)));
        assert_eq!(store.find(Seq(150)).map(|kept| kept.seq), Some(Seq(100)));
        assert_eq!(store.bytes(), 4 * (140 + OVERHEAD));
        assert_eq!(store.pop_below(Seq(50)).map(|kept| kept.seq), Some(Seq(u32::MAX - 99)));
        assert!(store.pop_below(Seq(50)).is_none());
        assert_eq!(seqs(&mut store), [0, 100, 200]);
        assert_eq!(store.bytes(), 0);
    }

    #[test]
    fn a_store_that_has_emptied_gives_its_memory_back() {
        let mut store = Store::default();
        for seq in 0..1_000 {
            store.put(kept(seq, 1));
        }
        for _ in 0..990 {
            store.pop().expect("it is kept");
        }
        assert!(store.waiting.capacity() < 100, "{}", store.waiting.capacity());
        assert_eq!(seqs(&mut store), Vec::from_iter(990..1_000));
    }

    #[test]
    fn what_carries_no_data_stays_behind_what_came_before_it() {
        let mut store = Store::default();
        for (seq, len) in [(100, 100), (200, 0), (200, 100), (300, 0), (0, 100)] {
            store.put(kept(seq, len));
        }
        assert_eq!(seqs(&mut store), [0, 100, 200, 200, 300]);
    }
}
