//! The bounded queue between a driver and a capture's writer: two buffers that change places.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use hopwise_core::trace::TraceEvent;
use hopwise_core::{Instant, LinkId};

use crate::first_links::FirstLinks;
use crate::observer::{Direction, SeenPacket};

/// The bound of each of the two buffers.
const MOST_BYTES: usize = 16 << 20;
const MOST_RECORDS: usize = 128 << 10;

#[derive(Debug)]
pub(super) struct CaptureQueue {
    filling: Mutex<Batch>,
    /// Notified when a buffer gets its first record, and when the capture ends.
    changed: Condvar,
    is_open: AtomicBool,
    /// One bit for each link; links beyond the last bit share it.
    wanted: AtomicU64,
    /// Counts by the bits of the links.
    packets_missed: [AtomicU64; LINKS],
    events_missed: AtomicU64,
}

/// Links beyond the last share its bit.
const LINKS: usize = 64;

/// Records in the order in which they were seen; the packets' bytes lie in one buffer.
#[derive(Debug, Default)]
pub(super) struct Batch {
    records: Vec<Stored>,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Stored {
    shard: u16,
    what: QueueEntry,
}

#[derive(Clone, Debug)]
enum QueueEntry {
    /// A packet, and the comment that its observer gives.
    Packet {
        head: PacketHead,
        end: usize,
        said: Option<String>,
    },
    Event(TraceEvent),
    Links(Arc<FirstLinks>),
}

/// The facts about a packet, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketHead {
    pub(super) at: Instant,
    pub(super) link: LinkId,
    pub(super) direction: Direction,
    /// 0 for a frame of the link's own.
    pub(super) id: u64,
    /// The length of the header before the packet.
    pub(super) header_len: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum QueueRecord<'a> {
    Packet(PacketHead, &'a [u8], Option<&'a str>),
    Event(TraceEvent),
    /// The facts about our own links.
    Links(&'a Arc<FirstLinks>),
}

impl QueueRecord<'_> {
    pub(super) fn at(&self) -> Option<Instant> {
        match self {
            QueueRecord::Packet(head, ..) => Some(head.at),
            QueueRecord::Event(event) => Some(event.now),
            QueueRecord::Links(_) => None,
        }
    }
}

impl CaptureQueue {
    pub(super) fn new() -> CaptureQueue {
        CaptureQueue {
            filling: Mutex::default(),
            changed: Condvar::new(),
            is_open: AtomicBool::new(false),
            wanted: AtomicU64::new(0),
            packets_missed: std::array::from_fn(|_| AtomicU64::new(0)),
            events_missed: AtomicU64::new(0),
        }
    }

    pub(super) fn open(&self, wanted: &[LinkId]) {
        let bits = wanted.iter().fold(0, |bits, link| bits | bit(*link));
        self.wanted.store(bits, Ordering::Relaxed);
        self.packets_missed.iter().for_each(|missed| missed.store(0, Ordering::Relaxed));
        self.events_missed.store(0, Ordering::Relaxed);
        self.filling.lock().clear();
        self.is_open.store(true, Ordering::Release);
    }

    pub(super) fn close(&self) {
        let _filling = self.filling.lock();
        self.is_open.store(false, Ordering::Release);
        self.changed.notify_one();
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    pub(super) fn missed(&self) -> (u64, u64) {
        (self.missed_by_link().iter().sum(), self.events_missed.load(Ordering::Relaxed))
    }

    /// The number of packets that found the queue full, by their links' numbers.
    pub(super) fn missed_by_link(&self) -> [u64; LINKS] {
        std::array::from_fn(|link| self.packets_missed[link].load(Ordering::Relaxed))
    }

    pub(super) fn push_packet(&self, shard: u16, seen: &SeenPacket<'_>, said: Option<String>) {
        if self.wanted.load(Ordering::Relaxed) & bit(seen.link) == 0 {
            return;
        }
        let mut filling = self.filling.lock();
        if filling.records.len() >= MOST_RECORDS || filling.bytes.len() + seen.packet.len() > MOST_BYTES {
            self.packets_missed[place(seen.link)].fetch_add(1, Ordering::Relaxed);
            return;
        }
        let SeenPacket { at, link, direction, id, ethernet, .. } = *seen;
        let header = ethernet.as_ref().map_or(&[][..], |header| header);
        filling.bytes.extend_from_slice(header);
        filling.bytes.extend_from_slice(seen.packet);
        let header_len = header.len();
        let end = filling.bytes.len();
        let what = QueueEntry::Packet { head: PacketHead { at, link, direction, id, header_len }, end, said };
        filling.records.push(Stored { shard, what });
        self.tell(&filling);
    }

    /// Counts packets as though they had found the queue full.
    #[cfg(test)]
    pub(super) fn miss(&self, link: LinkId, packets: u64) {
        self.packets_missed[place(link)].fetch_add(packets, Ordering::Relaxed);
    }

    pub(super) fn push_event(&self, shard: u16, event: &TraceEvent) {
        let mut filling = self.filling.lock();
        if filling.records.len() >= MOST_RECORDS {
            self.events_missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        filling.records.push(Stored { shard, what: QueueEntry::Event(*event) });
        self.tell(&filling);
    }

    /// Facts that find no room are followed by newer ones.
    pub(super) fn push_links(&self, links: &Arc<FirstLinks>) {
        let mut filling = self.filling.lock();
        if filling.records.len() < MOST_RECORDS {
            filling.records.push(Stored { shard: 0, what: QueueEntry::Links(Arc::clone(links)) });
            self.tell(&filling);
        }
    }

    /// Notifies at the first record alone, because the writer waits for no other.
    fn tell(&self, filling: &Batch) {
        if filling.records.len() == 1 {
            self.changed.notify_one();
        }
    }

    /// Swaps the full buffer for `batch`; it comes back empty if no record came in time. Returns whether the capture is
    /// over.
    pub(super) fn take(&self, batch: &mut Batch, within: Duration) -> bool {
        batch.clear();
        let mut filling = self.filling.lock();
        if filling.is_empty() && self.is_open() {
            self.changed.wait_for(&mut filling, within);
        }
        std::mem::swap(&mut *filling, batch);
        !self.is_open()
    }
}

fn bit(link: LinkId) -> u64 {
    1 << place(link)
}

fn place(link: LinkId) -> usize {
    usize::from(link.0).min(LINKS - 1)
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Keeps the allocation.
    fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
    }

    /// Each record with its shard.
    pub(super) fn records(&self) -> impl Iterator<Item = (u16, QueueRecord<'_>)> {
        let mut start = 0;
        self.records.iter().map(move |stored| match &stored.what {
            QueueEntry::Packet { head, end, said } => {
                let packet = &self.bytes[start..*end];
                start = *end;
                (stored.shard, QueueRecord::Packet(*head, packet, said.as_deref()))
            }
            QueueEntry::Event(event) => (stored.shard, QueueRecord::Event(*event)),
            QueueEntry::Links(links) => (stored.shard, QueueRecord::Links(links)),
        })
    }
}
