//! The bounded ring of events that a machine owns and its driver drains.

use super::{DropReason, LostBy, SentWhat, TraceEvent, TraceKind, UndoneBy};
use crate::Instant;

/// Counts of a machine's sent and lost segments since its start. Connections that are gone are included, and the trace
/// need not be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Segments other than pure ACKs, in the order of [`SentWhat::ALL`].
    pub sent: [u64; SentWhat::ALL.len()],
    /// Their payload in bytes, in the same order.
    pub sent_bytes: [u64; SentWhat::ALL.len()],
    /// ACKs that left alone.
    pub pure_acks: u64,
    /// Retransmission timers that ran out.
    pub timeouts: u64,
    /// The timers among them that followed another timeout, with no ACK of new data between.
    pub timeouts_repeated: u64,
    /// Segments that were found to be lost, in the order of [`LostBy::ALL`].
    pub lost: [u64; LostBy::ALL.len()],
    /// Fast recoveries, in the order of [`LostBy::ALL`].
    pub recoveries: [u64; LostBy::ALL.len()],
    /// Losses that turned out to be none, in the order of [`UndoneBy::ALL`].
    pub undone: [u64; UndoneBy::ALL.len()],
}

impl Totals {
    /// Retransmitted segments. A tail probe counts apart, since it may be new data.
    pub fn segments_retransmitted(&self) -> u64 {
        self.sent[SentWhat::Resent as usize] + self.sent[SentWhat::AfterTimeout as usize]
    }

    /// Adds the counts of another machine.
    pub fn add(&mut self, other: &Totals) {
        let Totals { sent, sent_bytes, pure_acks, timeouts, timeouts_repeated, lost, recoveries, undone } =
            self;
        add_all(sent, &other.sent);
        add_all(sent_bytes, &other.sent_bytes);
        add_all(lost, &other.lost);
        add_all(recoveries, &other.recoveries);
        add_all(undone, &other.undone);
        *pure_acks += other.pure_acks;
        *timeouts += other.timeouts;
        *timeouts_repeated += other.timeouts_repeated;
    }

    /// Each call has a fixed kind of fact, so the compiler keeps only the matching branch.
    #[inline(always)]
    fn count(&mut self, kind: &TraceKind) {
        match *kind {
            TraceKind::Sent { what, segments, len, .. } => {
                self.sent[what as usize] += u64::from(segments);
                self.sent_bytes[what as usize] += u64::from(len);
            }
            TraceKind::AckSent { .. } => self.pure_acks += 1,
            TraceKind::Timeout { nth, .. } => {
                self.timeouts += 1;
                self.timeouts_repeated += u64::from(nth > 1);
            }
            TraceKind::Lost { segments, by } => self.lost[by as usize] += u64::from(segments),
            TraceKind::RecoveryBegan { by, .. } => self.recoveries[by as usize] += 1,
            TraceKind::Undone(by) => self.undone[by as usize] += 1,
            _ => {}
        }
    }
}

fn add_all(sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Keeps the newest events and counts overwritten ones. Counts drops and totals even if it keeps no events.
#[derive(Debug)]
pub struct TraceRing {
    /// Grows up to `capacity`; then the oldest event is overwritten.
    events: Vec<TraceEvent>,
    /// `room`, or 0 while no events are kept.
    capacity: usize,
    /// The oldest, once the ring is full; 0 before.
    oldest: u32,
    room: u32,
    forgotten: u64,
    drops: [u64; DropReason::ALL.len()],
    totals: Totals,
}

impl TraceRing {
    /// A ring for `capacity` events; with 0 only drops are counted.
    pub fn new(capacity: usize) -> TraceRing {
        TraceRing {
            events: Vec::with_capacity(capacity),
            capacity,
            oldest: 0,
            room: u32::try_from(capacity).unwrap_or(u32::MAX),
            forgotten: 0,
            drops: [0; DropReason::ALL.len()],
            totals: Totals::default(),
        }
    }

    /// Counts the event, and keeps it if events are kept. A full ring loses its oldest one.
    #[inline(always)]
    pub fn push(&mut self, now: Instant, conn: u32, packet: u64, kind: TraceKind) {
        if let TraceKind::Dropped(reason) = kind {
            self.drops[reason as usize] += 1;
        }
        self.totals.count(&kind);
        if self.capacity > 0 {
            self.put(TraceEvent { now, conn, packet, kind });
        }
    }

    /// In one place: inlined everywhere, it would take room that the processor's cache of code lacks.
    #[inline(never)]
    fn put(&mut self, event: TraceEvent) {
        if self.events.len() < self.capacity {
            self.events.push(event);
        } else if let Some(oldest) = self.events.get_mut(self.oldest as usize) {
            *oldest = event;
            let next = self.oldest + 1;
            self.oldest = if next as usize == self.capacity { 0 } else { next };
            self.forgotten += 1;
        }
    }

    /// Sets whether events are kept. If not, the ring takes no memory.
    pub fn keep(&mut self, is_kept: bool) {
        self.capacity = if is_kept { self.room as usize } else { 0 };
        self.events = Vec::with_capacity(self.capacity);
        self.oldest = 0;
    }

    /// Returns whether events are kept.
    pub fn is_kept(&self) -> bool {
        self.capacity > 0
    }

    /// The counts since the ring was made.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Hands all events to `sink`, the oldest first, and forgets them.
    pub fn drain(&mut self, sink: &mut dyn FnMut(&TraceEvent)) {
        let (newer, older) = self.events.split_at(self.oldest as usize);
        older.iter().chain(newer).for_each(sink);
        self.events.clear();
        self.oldest = 0;
    }

    /// The number of packets dropped for this reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Events that were overwritten before they were read.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_newest_and_counts_the_rest() {
        let mut ring = TraceRing::new(2);
        for reason in [DropReason::Truncated, DropReason::Paws, DropReason::Paws] {
            ring.push(Instant::ZERO, 1, 0, TraceKind::Dropped(reason));
        }
        let mut seen = Vec::new();
        ring.drain(&mut |event| seen.push(event.kind));
        assert_eq!(seen, [TraceKind::Dropped(DropReason::Paws); 2]);
        assert_eq!((ring.forgotten(), ring.drops(DropReason::Truncated)), (1, 1));
    }

    #[test]
    fn events_come_out_in_the_order_they_went_in_however_often_the_ring_went_round() {
        let mut ring = TraceRing::new(3);
        for count in [1, 3, 5, 6, 7, 2] {
            for packet in 0..count {
                ring.push(Instant::ZERO, 1, packet, TraceKind::RecoveryEnded);
            }
            let mut seen = Vec::new();
            ring.drain(&mut |event| seen.push(event.packet));
            assert_eq!(seen, (count.saturating_sub(3)..count).collect::<Vec<_>>());
        }
        assert_eq!(ring.forgotten(), 2 + 3 + 4);
    }

    #[test]
    fn what_is_not_kept_takes_no_memory_and_drops_are_counted_all_the_same() {
        let mut ring = TraceRing::new(2);
        let drop =
            |ring: &mut TraceRing| ring.push(Instant::ZERO, 1, 0, TraceKind::Dropped(DropReason::Paws));
        drop(&mut ring);
        ring.keep(false);
        drop(&mut ring);
        assert_eq!((ring.events.capacity(), ring.forgotten(), ring.drops(DropReason::Paws)), (0, 0, 2));
        ring.keep(true);
        drop(&mut ring);
        let mut seen = 0;
        ring.drain(&mut |_| seen += 1);
        assert_eq!((seen, ring.drops(DropReason::Paws)), (1, 3));
    }

    #[test]
    fn losses_and_timeouts_are_counted_by_their_cause_and_added_up() {
        let mut ring = TraceRing::new(0);
        for nth in [1, 2, 3, 1] {
            ring.push(Instant::ZERO, 1, 0, TraceKind::Timeout { nth, rto_us: 200_000 });
        }
        for (segments, by) in [(3, LostBy::Sack), (1, LostBy::PartialAck), (2, LostBy::Sack)] {
            ring.push(Instant::ZERO, 1, 0, TraceKind::Lost { segments, by });
        }
        for by in [UndoneBy::Frto, UndoneBy::Dsack, UndoneBy::Frto] {
            ring.push(Instant::ZERO, 1, 0, TraceKind::Undone(by));
        }
        let mut totals = *ring.totals();
        totals.add(ring.totals());
        assert_eq!((totals.timeouts, totals.timeouts_repeated), (8, 4));
        let of = |by: LostBy| totals.lost[by as usize];
        assert_eq!((of(LostBy::Sack), of(LostBy::PartialAck), of(LostBy::Rack)), (10, 2, 0));
        let of = |by: UndoneBy| totals.undone[by as usize];
        assert_eq!((of(UndoneBy::Frto), of(UndoneBy::Dsack), of(UndoneBy::Timestamps)), (4, 2, 0));
    }

    /// The arrays of [`Totals`] are indexed by these values.
    #[test]
    fn causes_stand_in_the_order_of_their_counters() {
        assert!(LostBy::ALL.iter().enumerate().all(|(nth, by)| *by as usize == nth));
        assert!(UndoneBy::ALL.iter().enumerate().all(|(nth, by)| *by as usize == nth));
        assert!(SentWhat::ALL.iter().enumerate().all(|(nth, what)| *what as usize == nth));
    }

    #[test]
    fn a_ring_without_room_still_counts_drops() {
        let mut ring = TraceRing::new(0);
        ring.push(Instant::ZERO, 1, 0, TraceKind::Dropped(DropReason::Paws));
        ring.drain(&mut |event| panic!("{event:?} was kept"));
        assert_eq!((ring.forgotten(), ring.drops(DropReason::Paws)), (0, 1));
    }
}
