//! The waiting packets of one flow and one side at a base station.
//!
//! Invariant P1: data is in the order of its numbers, all other packets in the order of arrival.

use std::collections::VecDeque;

use hopwise_core::Seq;
use hopwise_core::agent::Passing;

#[derive(Debug)]
pub(super) struct KeptPacket {
    pub(super) id: u64,
    /// The numbers at which it begins and ends. Without data both are equal, and not below the numbers of earlier
    /// packets.
    pub(super) seq: Seq,
    pub(super) end: Seq,
    pub(super) ack: Option<Seq>,
    /// A copy: the original went on when it came.
    pub(super) was_sent: bool,
    /// Its duplicates that went ahead of it.
    pub(super) duplicates: u8,
    pub(super) packet: Vec<u8>,
}

impl KeptPacket {
    pub(super) fn new(id: u64, passing: &Passing<'_>, packet: Vec<u8>, was_sent: bool) -> KeptPacket {
        KeptPacket {
            id,
            seq: passing.seq,
            end: passing.end(),
            ack: passing.ack,
            was_sent,
            duplicates: 0,
            packet,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.end - self.seq
    }

    /// Its number in the trace.
    pub(super) fn number(&self) -> Seq {
        match self.ack {
            Some(ack) if self.len() == 0 => ack,
            _ => self.seq,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct PacketStore {
    waiting: VecDeque<KeptPacket>,
    bytes: usize,
    pub(super) payload_bytes: u32,
    /// The longest data since the store was last empty.
    longest: u32,
    /// Packets that have not gone on.
    withheld: usize,
}

/// The memory of a packet without its bytes.
const OVERHEAD: usize = size_of::<KeptPacket>();

impl PacketStore {
    pub(super) fn cost(packet: &[u8]) -> usize {
        packet.len() + OVERHEAD
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether it holds a packet that has not gone on.
    pub(super) fn withholds(&self) -> bool {
        self.withheld > 0
    }

    /// Returns whether all of this data is here already.
    pub(super) fn has(&self, seq: Seq, end: Seq) -> bool {
        let mut at = seq;
        for kept in self.that_may_reach(seq) {
            if end <= at || at < kept.seq {
                break;
            }
            at = at.max(kept.end);
        }
        end <= at
    }

    /// Packets in order, from the first whose data may reach beyond this number. No search begins at the front: any
    /// host can fill a list with tiny segments.
    fn that_may_reach(&self, seq: Seq) -> impl Iterator<Item = &KeptPacket> {
        let first = self.waiting.partition_point(|kept| kept.seq + self.longest <= seq);
        self.waiting.range(first..)
    }

    /// Inserts by invariant P1.
    pub(super) fn put(&mut self, mut kept: KeptPacket) {
        self.bytes += PacketStore::cost(&kept.packet);
        self.payload_bytes += kept.len();
        self.longest = self.longest.max(kept.len());
        self.withheld += usize::from(!kept.was_sent);
        let mut place = self.waiting.len();
        if kept.len() > 0 {
            place = self.waiting.partition_point(|other| other.seq <= kept.seq);
        } else if let Some(last) = self.waiting.back() {
            kept.seq = kept.seq.max(last.seq);
            kept.end = kept.seq;
        }
        self.waiting.insert(place, kept);
    }

    pub(super) fn pop(&mut self) -> Option<KeptPacket> {
        let kept = self.waiting.pop_front()?;
        // Unused capacity does not count as memory.
        if self.waiting.len() < self.waiting.capacity() / 4 {
            self.waiting.shrink_to(2 * self.waiting.len());
        }
        self.bytes -= PacketStore::cost(&kept.packet);
        self.payload_bytes -= kept.len();
        self.withheld -= usize::from(!kept.was_sent);
        if self.waiting.is_empty() {
            self.longest = 0;
        }
        Some(kept)
    }

    /// The packet that waits longest.
    pub(super) fn front_mut(&mut self) -> Option<&mut KeptPacket> {
        self.waiting.front_mut()
    }

    pub(super) fn find(&self, seq: Seq) -> Option<&KeptPacket> {
        let mut before = self.that_may_reach(seq).take_while(|kept| kept.seq <= seq);
        before.find(|kept| kept.len() > 0 && seq < kept.end)
    }

    /// Removes the next data that ends at or below this number, and packets without data before it.
    pub(super) fn pop_below(&mut self, below: Seq) -> Option<KeptPacket> {
        let first = self.waiting.front()?;
        if first.end <= below && first.len() > 0 { self.pop() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(seq: u32, len: u32) -> KeptPacket {
        let (seq, packet) = (Seq(seq), vec![0; len as usize + 40]);
        KeptPacket { id: 0, seq, end: seq + len, ack: None, was_sent: false, duplicates: 0, packet }
    }

    fn seqs(store: &mut PacketStore) -> Vec<u32> {
        std::iter::from_fn(|| store.pop()).map(|kept| kept.seq.0).collect()
    }

    #[test]
    fn data_that_comes_late_goes_where_it_belongs_also_across_the_wrap() {
        let mut store = PacketStore::default();
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
        let mut store = PacketStore::default();
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
        let mut store = PacketStore::default();
        for (seq, len) in [(100, 100), (200, 0), (200, 100), (300, 0), (0, 100)] {
            store.put(kept(seq, len));
        }
        assert_eq!(seqs(&mut store), [0, 100, 200, 200, 300]);
    }

    /// A late ACK carries no data, and its number is below the numbers of earlier packets.
    #[test]
    fn what_carries_no_data_and_is_late_stays_behind_what_came_before_it() {
        let mut store = PacketStore::default();
        for (seq, len) in [(200, 100), (100, 0), (300, 100), (250, 50)] {
            store.put(kept(seq, len));
        }
        let ends = std::iter::from_fn(|| store.pop()).map(|kept| kept.end.0);
        assert_eq!(Vec::from_iter(ends), [300, 200, 300, 400]);
    }

    #[test]
    fn data_is_looked_for_only_where_it_may_be() {
        let mut store = PacketStore::default();
        for seq in 0..10_000 {
            store.put(kept(seq, 1));
        }
        let looked_at = |store: &PacketStore, seq: u32| {
            store.that_may_reach(Seq(seq)).take_while(|kept| kept.seq <= Seq(seq)).count()
        };
        assert!(store.has(Seq(9_000), Seq(9_100)) && !store.has(Seq(9_999), Seq(10_001)));
        assert_eq!([0, 5_000, 9_999].map(|seq| looked_at(&store, seq)), [1; 3]);
        store.put(kept(9_000, 1_460));
        assert_eq!(looked_at(&store, 9_999), 1_461);
        while store.pop().is_some() {}
        store.put(kept(7, 1));
        assert_eq!(store.longest, 1);
    }

    proptest::proptest! {
        #[test]
        fn data_is_found_wherever_it_is(
            segments in proptest::collection::vec((0u32..60, 0u32..20, proptest::bool::ANY), 0..60),
            first in proptest::num::u32::ANY,
        ) {
            let (mut store, mut held) = (PacketStore::default(), Vec::new());
            for (seq, len, pops) in segments {
                store.put(kept(first.wrapping_add(seq), len));
                held.push((seq, seq + len));
                if let Some(gone) = pops.then(|| store.pop()).flatten() {
                    let end = gone.end - Seq(first);
                    let is_it = |(from, to): &(u32, u32)| *to == end && to - from == gone.len();
                    let at = held.iter().position(|range| is_it(range) || gone.len() == 0 && range.0 == range.1);
                    held.remove(at.expect("it was put"));
                }
                for (seq, len) in (0..80).flat_map(|seq| [1, 3, 10].map(|len| (seq, len))) {
                    let has = |at: u32| held.iter().any(|(from, to)| (*from..*to).contains(&at));
                    let of = Seq(first) + seq;
                    proptest::prop_assert_eq!(store.has(of, of + len), (seq..seq + len).all(has));
                    proptest::prop_assert_eq!(store.find(of).is_some(), has(seq));
                }
            }
            let ordered: Vec<_> = store.waiting.iter().map(|kept| kept.seq - Seq(first)).collect();
            proptest::prop_assert!(ordered.is_sorted(), "{ordered:?}");
        }
    }
}
