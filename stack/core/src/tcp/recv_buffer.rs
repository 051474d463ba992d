//! What has come from the peer: in order and not read yet, or above a hole.

use arrayvec::ArrayVec;

use super::ranges::{MOST_BLOCKS, Ranges};
use super::ring::{ByteRing, LARGEST_BYTES};

/// Data lies in the ring where the stream has it, out-of-order data too, so that nothing is copied when a hole
/// is filled. All offsets count from `rcv_nxt`, which is the end of what is in order.
#[derive(Debug)]
pub(crate) struct RecvBuffer {
    ring: ByteRing,
    ranges: Ranges,
    readable: u32,
    limit: u32,
}

const _: () = assert!(size_of::<RecvBuffer>() <= 120);

/// What became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// By how much `rcv_nxt` moves, ranges that were waiting included.
    pub(crate) advanced: u32,
    /// Bytes that were not held before.
    pub(crate) new_bytes: u32,
    /// A hole is closed from end to end, above `rcv_nxt` or at it.
    pub(crate) filled_hole: bool,
    pub(crate) verdict: InsertVerdict,
    /// The first part of the segment that was held already, for D-SACK; counted from `rcv_nxt` as it was before
    /// this segment.
    pub(crate) duplicate: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InsertVerdict {
    InOrder,
    /// `rcv_nxt` advances into a hole; data may still be missing (RFC 5681 §4.2: "all or part of a gap").
    FillsHole,
    OutOfOrder,
    /// All of it was held already, or it was empty.
    Duplicate,
    /// It would start one stretch too many above the hole; not kept.
    TooManyHoles,
    /// It begins where the buffer ends; not kept.
    NoRoom,
}

impl Inserted {
    const fn refused(verdict: InsertVerdict) -> Inserted {
        Inserted { advanced: 0, new_bytes: 0, filled_hole: false, verdict, duplicate: None }
    }

    const fn in_order(bytes: u32) -> Inserted {
        Inserted {
            advanced: bytes,
            new_bytes: bytes,
            filled_hole: false,
            verdict: InsertVerdict::InOrder,
            duplicate: None,
        }
    }
}

impl RecvBuffer {
    /// An empty buffer that will hold at most `limit_bytes`; nothing is allocated yet.
    pub(crate) fn new(limit_bytes: u32) -> RecvBuffer {
        RecvBuffer {
            ring: ByteRing::default(),
            ranges: Ranges::default(),
            readable: 0,
            limit: limit_bytes.min(LARGEST_BYTES),
        }
    }

    /// Bytes in order that have not been read.
    pub(crate) fn readable(&self) -> u32 {
        self.readable
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Raises the limit. A lower one is ignored: the window told to the peer may reach the old one.
    pub(crate) fn set_limit(&mut self, limit_bytes: u32) {
        self.limit = self.limit.max(limit_bytes.min(LARGEST_BYTES));
    }

    /// How far beyond `rcv_nxt` data is accepted; the widest window that may be told.
    pub(crate) fn free_from_nxt(&self) -> u32 {
        self.limit - self.readable
    }

    /// Takes the segment that begins at `offset_from_nxt`; what lies beyond the limit is cut off. Bytes held
    /// already stay as they came first. The caller has cut off what lies before `rcv_nxt`.
    pub(crate) fn insert(&mut self, offset_from_nxt: u32, data: &[u8]) -> Inserted {
        let room = self.free_from_nxt();
        if offset_from_nxt >= room {
            return Inserted::refused(InsertVerdict::NoRoom);
        }
        if data.is_empty() {
            return Inserted::refused(InsertVerdict::Duplicate);
        }
        let data = &data[..data.len().min((room - offset_from_nxt) as usize)];
        if offset_from_nxt == 0 && self.ranges.is_empty() {
            return self.append(data);
        }
        self.merge(offset_from_nxt, data)
    }

    /// The way of nearly every segment: in order, and no hole anywhere.
    fn append(&mut self, data: &[u8]) -> Inserted {
        let bytes = data.len() as u32;
        self.ring.reserve(self.readable + bytes, self.readable, self.limit);
        self.ring.write(self.readable, data);
        self.readable += bytes;
        Inserted::in_order(bytes)
    }

    fn merge(&mut self, start: u32, data: &[u8]) -> Inserted {
        let end = start + data.len() as u32;
        let meeting = self.ranges.meet(start, end);
        if start > 0 && self.ranges.is_full_for(&meeting) {
            return Inserted::refused(InsertVerdict::TooManyHoles);
        }
        self.ring.reserve(self.readable + end, self.held(), self.limit);
        let mut new_bytes = 0;
        for (from, to) in self.ranges.gaps(&meeting) {
            self.ring.write(self.readable + from, &data[(from - start) as usize..(to - start) as usize]);
            new_bytes += to - from;
        }
        let (advanced, verdict) = if start == 0 {
            (self.ranges.pass(&meeting), InsertVerdict::FillsHole)
        } else {
            self.ranges.join(&meeting);
            (0, if new_bytes == 0 { InsertVerdict::Duplicate } else { InsertVerdict::OutOfOrder })
        };
        self.readable += advanced;
        let filled_hole = new_bytes > 0 && meeting.closes_gap();
        Inserted { advanced, new_bytes, filled_hole, verdict, duplicate: meeting.duplicate }
    }

    /// Separate stretches of data above the first hole.
    pub(crate) fn holes(&self) -> u32 {
        self.ranges.len()
    }

    /// Bytes above the first hole.
    pub(crate) fn out_of_order_bytes(&self) -> u32 {
        self.ranges.bytes()
    }

    /// What to report in SACK blocks, as (first, first not held) from `rcv_nxt`: the stretch that changed last
    /// comes first (RFC 2018 §4).
    pub(crate) fn sack_ranges(&self) -> ArrayVec<(u32, u32), MOST_BLOCKS> {
        self.ranges.newest()
    }

    /// Moves in-order bytes out, as many as fit.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let bytes = self.readable.min(u32::try_from(out.len()).unwrap_or(u32::MAX));
        let (head, tail) = self.ring.slices(0, bytes);
        out[..head.len()].copy_from_slice(head);
        out[head.len()..bytes as usize].copy_from_slice(tail);
        self.consume(bytes);
        bytes as usize
    }

    /// All in-order bytes, where they lie.
    pub(crate) fn peek(&self) -> (&[u8], &[u8]) {
        self.ring.slices(0, self.readable)
    }

    /// The first `bytes` of what [`peek`](RecvBuffer::peek) shows have been read.
    pub(crate) fn consume(&mut self, bytes: u32) {
        assert!(bytes <= self.readable, "only what is in order can be read");
        self.readable -= bytes;
        if self.held() == 0 {
            self.ring.rewind();
        } else {
            self.ring.advance(bytes);
        }
    }

    /// Gives memory back: all of it when nothing is held, most of it when little is. For idle connections only.
    pub(crate) fn relax(&mut self) {
        self.ring.relax(self.held());
        self.ranges.relax();
    }

    /// Bytes of heap in use.
    pub(crate) fn allocated(&self) -> usize {
        self.ring.capacity() as usize + self.ranges.allocated()
    }

    /// From the first unread byte to the end of the highest stretch.
    fn held(&self) -> u32 {
        self.readable + self.ranges.highest_end()
    }
}
