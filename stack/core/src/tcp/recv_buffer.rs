//! Data from the peer: unread data in order, and data above a hole.

use super::cx::LEAST_BYTES;
use super::ranges::Ranges;
use super::ring::{ByteRing, LARGEST_BYTES};
use crate::agent::Class;
use crate::narrow::as_u32;
use crate::trace::DropReason;

/// Data lies in the ring in stream order, out-of-order data too, so that nothing is copied when a hole is filled. All
/// offsets count from `rcv_nxt`, the end of in-order data.
#[derive(Debug)]
pub(crate) struct RecvBuffer {
    ring: ByteRing,
    pub(super) ranges: Ranges,
    readable: u32,
    limit: u32,
    /// The unit of windows in bytes; windows are rounded up to it.
    pub(super) unit: u32,
}

const _: () = assert!(size_of::<RecvBuffer>() <= 120);

/// The fate of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// The advance of `rcv_nxt`, including ranges that waited above it.
    pub(crate) advanced: u32,
    /// The place of the data, or the reason why none was kept. Data that was held already, or none, is a duplicate.
    pub(crate) verdict: Result<Class, DropReason>,
    /// The first part of the segment that was already held, for D-SACK. It counts from `rcv_nxt` before this segment.
    pub(crate) duplicate: Option<(u32, u32)>,
}

impl Inserted {
    const fn nothing(verdict: Result<Class, DropReason>) -> Inserted {
        Inserted { advanced: 0, verdict, duplicate: None }
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
            unit: 1,
        }
    }

    /// Bytes in order that have not been read.
    pub(crate) fn readable(&self) -> u32 {
        self.readable
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Raises the limit. A lower one is ignored: the advertised window may reach the old one.
    pub(crate) fn set_limit(&mut self, limit_bytes: u32) {
        self.limit = self.limit.max(limit_bytes.min(LARGEST_BYTES));
    }

    /// The bytes that it can hold without more memory than it has, or than is always [granted](LEAST_BYTES).
    pub(crate) fn most_as_it_is(&self) -> u32 {
        self.ring.capacity().max(LEAST_BYTES).min(self.limit)
    }

    /// The distance from `rcv_nxt` up to which data is accepted. Beyond the limit there is room for rounding.
    pub(crate) fn room(&self) -> u32 {
        self.limit + self.slack() - self.readable
    }

    /// The room for rounding. Each ACK rounds up to a unit, and the next one keeps the extra bytes. Segments of eight
    /// units or more add at most an eighth of the window until the application reads.
    fn slack(&self) -> u32 {
        if self.unit == 1 { 0 } else { self.limit / 8 + self.unit }
    }

    /// Takes the segment that begins at `offset_from_nxt`, cut at the end of the room. Bytes that are already held stay
    /// as they first came. The caller has removed bytes before `rcv_nxt`.
    pub(crate) fn insert(&mut self, offset_from_nxt: u32, data: &[u8]) -> Inserted {
        let room = self.room();
        if offset_from_nxt >= room {
            return Inserted::nothing(Err(DropReason::NoBuffer));
        }
        if data.is_empty() {
            return Inserted::nothing(Ok(Class::Duplicate));
        }
        let data = &data[..data.len().min((room - offset_from_nxt) as usize)];
        if offset_from_nxt == 0 && self.ranges.is_empty() {
            return self.append(data);
        }
        self.merge(offset_from_nxt, data)
    }

    /// The case of nearly every segment: in order, and no hole anywhere.
    fn append(&mut self, data: &[u8]) -> Inserted {
        let bytes = as_u32(data.len());
        self.ring.reserve(self.readable + bytes, self.readable, self.limit + self.unit);
        self.ring.write(self.readable, data);
        self.readable += bytes;
        Inserted { advanced: bytes, verdict: Ok(Class::InOrder), duplicate: None }
    }

    fn merge(&mut self, start: u32, data: &[u8]) -> Inserted {
        let end = start + as_u32(data.len());
        let meeting = self.ranges.meet(start, end);
        if start > 0 && self.ranges.is_full_for(&meeting) {
            return Inserted::nothing(Err(DropReason::TooManyHoles));
        }
        self.ring.reserve(self.readable + end, self.held(), self.limit + self.unit);
        let mut has_news = false;
        for (from, to) in self.ranges.gaps(&meeting) {
            self.ring.write(self.readable + from, &data[(from - start) as usize..(to - start) as usize]);
            has_news = true;
        }
        let (advanced, class) = if start == 0 {
            (self.ranges.pass(&meeting), Class::FillsHole)
        } else {
            self.ranges.join(&meeting);
            (0, if has_news { Class::OutOfOrder } else { Class::Duplicate })
        };
        self.readable += advanced;
        Inserted { advanced, verdict: Ok(class), duplicate: meeting.duplicate }
    }

    /// Separate stretches of data above the first hole.
    pub(crate) fn holes(&self) -> u32 {
        self.ranges.len()
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

    /// All in-order bytes, in place.
    pub(crate) fn peek(&self) -> (&[u8], &[u8]) {
        self.ring.slices(0, self.readable)
    }

    /// Marks the first `bytes` of [`peek`](RecvBuffer::peek) as read.
    pub(crate) fn consume(&mut self, bytes: u32) {
        assert!(bytes <= self.readable, "only what is in order can be read");
        self.readable -= bytes;
        if self.held() == 0 {
            self.ring.rewind();
        } else {
            self.ring.advance(bytes);
        }
    }

    /// Frees memory: all of it when nothing is held, most of it when little is. For idle connections only.
    pub(crate) fn relax(&mut self) {
        self.ring.relax(self.held());
        self.ranges.relax();
    }

    /// Bytes of heap in use.
    pub(crate) fn allocated(&self) -> usize {
        self.ring.capacity() as usize + self.ranges.allocated()
    }

    /// Bytes of heap for data alone.
    pub(crate) fn ring_bytes(&self) -> usize {
        self.ring.capacity() as usize
    }

    /// Returns how many of `bytes` at that offset need no new memory: all or none. A segment too large for an empty
    /// buffer is cut, since it would never fit.
    pub(crate) fn fits_as_it_is(&self, offset_from_nxt: u32, bytes: u32) -> u32 {
        let most = self.ring.capacity().max(LEAST_BYTES);
        match self.readable + offset_from_nxt {
            0 => bytes.min(most),
            before if before + bytes <= most => bytes,
            _ => 0,
        }
    }

    /// Drops all data.
    pub(crate) fn clear(&mut self) {
        let (limit, unit) = (self.limit, self.unit);
        *self = RecvBuffer { unit, ..RecvBuffer::new(limit) };
    }

    /// The span from the first unread byte to the end of the highest range.
    fn held(&self) -> u32 {
        self.readable + self.ranges.highest_end()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ranges::{MOST_BLOCKS, MOST_RANGES};
    use super::*;

    fn read_all(buffer: &mut RecvBuffer) -> Vec<u8> {
        let mut out = vec![0; buffer.readable() as usize + 1];
        let bytes = buffer.read(&mut out);
        out.truncate(bytes);
        out
    }

    #[test]
    fn a_filled_hole_releases_what_waited_above_it() {
        let mut buffer = RecvBuffer::new(100);
        assert_eq!(buffer.insert(3, b"def").verdict, Ok(Class::OutOfOrder));
        assert_eq!((buffer.readable(), buffer.holes(), buffer.ranges.bytes()), (0, 1, 3));
        let filled = buffer.insert(0, b"abc");
        assert_eq!(filled, Inserted { advanced: 6, verdict: Ok(Class::FillsHole), duplicate: None });
        assert_eq!((buffer.holes(), read_all(&mut buffer)), (0, b"abcdef".to_vec()));
    }

    #[test]
    fn part_of_a_gap_counts_as_filling_a_hole_that_stays_open() {
        let mut buffer = RecvBuffer::new(100);
        buffer.insert(10, b"later");
        let part = buffer.insert(0, b"abc");
        assert_eq!((part.verdict, part.advanced), (Ok(Class::FillsHole), 3));
        assert_eq!(buffer.ranges.newest()[..], [(7, 12)]);
    }

    #[test]
    fn a_partly_known_segment_reports_the_known_part_from_the_old_next() {
        let mut buffer = RecvBuffer::new(100);
        buffer.insert(2, b"cd");
        let over = buffer.insert(0, b"abcdef");
        assert_eq!((over.advanced, over.duplicate), (6, Some((2, 4))));
    }

    #[test]
    fn a_segment_held_above_a_hole_is_a_duplicate() {
        let mut buffer = RecvBuffer::new(100);
        buffer.insert(10, b"abcdef");
        let again = buffer.insert(12, b"cd");
        assert_eq!((again.verdict, again.duplicate), (Ok(Class::Duplicate), Some((12, 14))));
        assert_eq!((again.advanced, buffer.holes()), (0, 1));
    }

    #[test]
    fn bytes_stay_as_they_came_first() {
        let mut buffer = RecvBuffer::new(100);
        buffer.insert(2, b"cd");
        buffer.insert(0, b"ABCDEF");
        assert_eq!(read_all(&mut buffer), b"ABcdEF");
    }

    #[test]
    fn what_lies_beyond_the_limit_is_cut_off() {
        let mut buffer = RecvBuffer::new(4);
        assert_eq!(buffer.insert(4, b"x").verdict, Err(DropReason::NoBuffer));
        let cut = buffer.insert(0, b"abcdef");
        assert_eq!((cut.verdict, cut.advanced), (Ok(Class::InOrder), 4));
        assert_eq!(buffer.limit() - buffer.readable(), 0);
        assert_eq!(buffer.insert(0, b"x").verdict, Err(DropReason::NoBuffer));
        assert_eq!(read_all(&mut buffer), b"abcd");
        assert_eq!(buffer.limit() - buffer.readable(), 4);
    }

    #[test]
    fn the_limit_is_raised_and_never_lowered() {
        let mut buffer = RecvBuffer::new(4);
        buffer.set_limit(2);
        assert_eq!(buffer.limit(), 4);
        buffer.set_limit(8);
        assert_eq!(buffer.insert(0, b"abcdefghi").advanced, 8);
    }

    #[test]
    fn one_stretch_too_many_is_refused_and_the_others_can_still_grow() {
        let mut buffer = RecvBuffer::new(20 * MOST_RANGES as u32);
        for hole in 1..=MOST_RANGES as u32 {
            assert_eq!(buffer.insert(hole * 10, b"ab").verdict, Ok(Class::OutOfOrder));
        }
        let beyond = (MOST_RANGES as u32 + 1) * 10;
        assert_eq!(buffer.insert(beyond, b"ab"), Inserted::nothing(Err(DropReason::TooManyHoles)));
        assert_eq!(buffer.insert(5, b"ab").verdict, Err(DropReason::TooManyHoles));
        assert_eq!(buffer.insert(beyond - 8, b"ab").verdict, Ok(Class::OutOfOrder));
        assert_eq!(buffer.insert(0, b"ab").verdict, Ok(Class::FillsHole), "in-order data has no need of one");
        assert_eq!(buffer.holes(), MOST_RANGES as u32);
    }

    #[test]
    fn an_empty_segment_changes_nothing() {
        let mut buffer = RecvBuffer::new(100);
        buffer.insert(10, b"ab");
        for offset in [0, 5, 10, 11] {
            assert_eq!(buffer.insert(offset, b""), Inserted::nothing(Ok(Class::Duplicate)));
        }
        assert_eq!(buffer.ranges.newest()[..], [(10, 12)]);
    }

    #[test]
    fn memory_comes_with_data_and_goes_when_idle() {
        let mut buffer = RecvBuffer::new(1 << 20);
        assert_eq!(buffer.allocated(), 0);
        buffer.insert(100_000, b"far");
        assert!(buffer.allocated() >= 128 * 1024, "a far segment is covered");
        buffer.insert(0, &[1; 100_000]);
        read_all(&mut buffer);
        buffer.relax();
        assert_eq!(buffer.allocated(), 0);
    }

    #[test]
    fn a_steady_flow_with_a_hole_now_and_then_stays_within_the_memory_it_has() {
        let mut buffer = RecvBuffer::new(1 << 20);
        let mut sink = [0; 2920];
        let mut once = || {
            buffer.insert(1460, &[2; 1460]);
            buffer.insert(0, &[1; 1460]);
            assert_eq!(buffer.read(&mut sink), 2920);
            buffer.allocated()
        };
        let first = once();
        assert!((0..1000).all(|_| once() == first));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert { offset: u32, len: u32 },
        Read(u32),
        Raise(u32),
        Relax,
    }

    fn op() -> impl Strategy<Value = Op> {
        // Coarse segments meet end to end; fine ones overlap in every way; many begin at `rcv_nxt`.
        let coarse = (0..20_u32, 1..4_u32).prop_map(|(at, len)| (at * 1000, len * 1000));
        let fine = (0..21_000_u32, 0..2500_u32);
        let next = (Just(0), 1..3000_u32);
        prop_oneof![
            8 => prop_oneof![coarse, fine, next].prop_map(|(offset, len)| Op::Insert { offset, len }),
            4 => (0..20_000_u32).prop_map(Op::Read),
            1 => (0..20_000_u32).prop_map(Op::Raise),
            1 => Just(Op::Relax),
        ]
    }

    fn stream_byte(at: usize) -> u8 {
        (at ^ (at >> 7)) as u8
    }

    const MOST_LIMIT: usize = 20_000;

    /// The stream as single bytes: for each, when it last came, 0 meaning never.
    struct Model {
        came: Vec<u32>,
        clock: u32,
        read: usize,
        next: usize,
        limit: usize,
    }

    impl Model {
        fn ranges(&self) -> Vec<(u32, u32, u32)> {
            let above = &self.came[self.next..self.next + MOST_LIMIT];
            let mut ranges = Vec::new();
            let mut at = 0;
            while let Some(gap) = above[at..].iter().position(|came| *came > 0) {
                let start = at + gap;
                let len = above[start..].iter().position(|came| *came == 0).unwrap_or(above.len() - start);
                let newest = above[start..start + len].iter().max().copied().unwrap_or(0);
                at = start + len;
                ranges.push((start as u32, at as u32, newest));
            }
            ranges
        }

        fn insert(&mut self, offset: u32, len: u32) -> Inserted {
            let before = self.ranges();
            let room = self.limit - (self.next - self.read);
            let (start, end) = (offset as usize, (offset + len) as usize);
            if start >= room {
                return Inserted::nothing(Err(DropReason::NoBuffer));
            } else if len == 0 {
                return Inserted::nothing(Ok(Class::Duplicate));
            }
            let held = self.came[self.next..self.next + room].to_vec();
            self.clock += 1;
            let segment = start..end.min(room);
            self.came[self.next..][segment.clone()].fill(self.clock);
            if offset > 0 && self.ranges().len() > MOST_RANGES {
                self.came[self.next..][..room].copy_from_slice(&held);
                return Inserted::nothing(Err(DropReason::TooManyHoles));
            }
            let known = |at: &usize| held[*at] > 0;
            let duplicate = segment.clone().find(known).map(|from| {
                let to = (from..segment.end).find(|at| !known(at)).unwrap_or(segment.end);
                (from as u32, to as u32)
            });
            let advanced = self.came[self.next..].iter().take_while(|came| **came > 0).count() as u32;
            let class = match (offset, segment.clone().all(|at| known(&at))) {
                (_, true) => Class::Duplicate,
                (0, _) if before.is_empty() => Class::InOrder,
                (0, _) => Class::FillsHole,
                _ => Class::OutOfOrder,
            };
            self.next += advanced as usize;
            Inserted { advanced, verdict: Ok(class), duplicate }
        }

        fn check(&self, buffer: &RecvBuffer) -> Result<(), TestCaseError> {
            let mut ranges = self.ranges();
            prop_assert_eq!(buffer.readable() as usize, self.next - self.read);
            prop_assert_eq!(buffer.holes() as usize, ranges.len());
            prop_assert_eq!(buffer.ranges.bytes(), ranges.iter().map(|(from, to, _)| to - from).sum::<u32>());
            ranges.sort_by_key(|(_, _, newest)| std::cmp::Reverse(*newest));
            let blocks: Vec<_> = ranges.iter().take(MOST_BLOCKS).map(|(from, to, _)| (*from, *to)).collect();
            prop_assert_eq!(&buffer.ranges.newest()[..], &blocks[..]);
            let (head, tail) = buffer.peek();
            let expected: Vec<u8> = (self.read..self.next).map(stream_byte).collect();
            prop_assert_eq!([head, tail].concat(), expected);
            Ok(())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn any_order_overlap_and_repetition_yields_the_stream(ops in prop::collection::vec(op(), 1..80)) {
            let mut buffer = RecvBuffer::new(10_000);
            let came = vec![0; 400_000];
            let mut model = Model { came, clock: 0, read: 0, next: 0, limit: 10_000 };
            for op in ops {
                match op {
                    Op::Insert { offset, len } => {
                        let at = model.next + offset as usize;
                        let data: Vec<u8> = (at..at + len as usize).map(stream_byte).collect();
                        prop_assert_eq!(buffer.insert(offset, &data), model.insert(offset, len));
                    }
                    Op::Read(bytes) => {
                        let mut out = vec![0; bytes as usize];
                        let got = buffer.read(&mut out);
                        prop_assert_eq!(got, out.len().min(model.next - model.read));
                        let expected: Vec<u8> = (model.read..model.read + got).map(stream_byte).collect();
                        prop_assert_eq!(&out[..got], &expected[..]);
                        model.read += got;
                    }
                    Op::Raise(bytes) => {
                        buffer.set_limit(bytes);
                        model.limit = model.limit.max(bytes as usize);
                    }
                    Op::Relax => buffer.relax(),
                }
                model.check(&buffer)?;
            }
        }
    }
}
