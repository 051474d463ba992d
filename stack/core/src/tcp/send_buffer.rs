//! The application's data that the peer has not acknowledged yet.

use super::cx::LEAST_BYTES;
use super::ring::{ByteRing, LARGEST_BYTES};
use crate::narrow::as_u32;

/// Bytes from `snd_una` on, in order. Memory grows with use up to the limit; only [`relax`](SendBuffer::relax) frees
/// it. A busy connection therefore stops allocating once it has its size.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    ring: ByteRing,
    len: u32,
    limit: u32,
}

const _: () = assert!(size_of::<SendBuffer>() <= 48);

impl SendBuffer {
    /// An empty buffer that will hold at most `limit_bytes`; nothing is allocated yet.
    pub(crate) fn new(limit_bytes: u32) -> SendBuffer {
        SendBuffer { ring: ByteRing::default(), len: 0, limit: limit_bytes.min(LARGEST_BYTES) }
    }

    /// Bytes held: in flight and unsent.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Room without more memory than there is, or than is always [granted](LEAST_BYTES).
    pub(crate) fn free_as_it_is(&self) -> u32 {
        self.ring.capacity().max(LEAST_BYTES).saturating_sub(self.len)
    }

    /// The number of bytes that [`write`](SendBuffer::write) would take now.
    pub(crate) fn free(&self) -> u32 {
        self.limit.saturating_sub(self.len)
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// A lower limit discards nothing: it only stops writes until enough has been acknowledged.
    pub(crate) fn set_limit(&mut self, limit_bytes: u32) {
        self.limit = limit_bytes.min(LARGEST_BYTES);
    }

    /// Appends as much of `data` as fits. Returns the number of bytes.
    pub(crate) fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(self.free() as usize);
        let needed = self.len + as_u32(taken);
        self.ring.reserve(needed, self.len, self.limit);
        self.ring.write(self.len, &data[..taken]);
        self.len = needed;
        taken
    }

    /// Appends what `fill` writes into the room for `most` bytes, or into as much of it as lies in one piece. `fill`
    /// returns the number of bytes, and so does this.
    pub(crate) fn fill(&mut self, most: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let room = as_u32(most.min(self.free() as usize));
        // It is unknown how much will come: memory grows by a step, and only when it is full.
        if room > 0 && self.ring.capacity() <= self.len {
            self.ring.reserve(self.len + 1, self.len, self.limit);
        }
        let room = room.min(self.ring.capacity() - self.len);
        let room = self.ring.room(self.len, room);
        let len = room.len();
        let filled = fill(room);
        assert!(filled <= len, "only the room can be filled");
        self.len += as_u32(filled);
        filled
    }

    /// The `len` bytes at `offset` from the oldest one, in the two pieces of the ring.
    #[inline]
    pub(crate) fn slices(&self, offset: u32, len: u32) -> (&[u8], &[u8]) {
        assert!(len <= self.len && offset <= self.len - len, "only what is held can be sent");
        self.ring.slices(offset, len)
    }

    /// Drops the oldest `bytes`, which are acknowledged.
    pub(crate) fn consume(&mut self, bytes: u32) {
        assert!(bytes <= self.len, "only what is held can be acknowledged");
        self.len -= bytes;
        if self.len == 0 {
            self.ring.rewind();
        } else {
            self.ring.advance(bytes);
        }
    }

    /// Frees memory: all of it when empty, most of it when little is held. For idle connections only.
    pub(crate) fn relax(&mut self) {
        self.ring.relax(self.len);
    }

    /// Bytes of heap in use.
    pub(crate) fn allocated(&self) -> usize {
        self.ring.capacity() as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn joined((head, tail): (&[u8], &[u8])) -> Vec<u8> {
        [head, tail].concat()
    }

    #[test]
    fn an_idle_connection_holds_no_memory() {
        let mut buffer = SendBuffer::new(1 << 20);
        assert_eq!(buffer.allocated(), 0);
        buffer.write(&[7; 5000]);
        assert_eq!(buffer.allocated(), 8192);
        buffer.consume(5000);
        assert_eq!(buffer.allocated(), 8192, "only relax gives memory back");
        buffer.relax();
        assert_eq!(buffer.allocated(), 0);
    }

    #[test]
    fn a_steady_flow_stays_within_the_memory_it_has() {
        let mut buffer = SendBuffer::new(1 << 20);
        buffer.write(&[1; 8192]);
        for _ in 0..1000 {
            buffer.consume(1460);
            assert_eq!(buffer.write(&[2; 1460]), 1460);
            assert_eq!(buffer.allocated(), 8192);
        }
    }

    #[test]
    fn an_emptied_buffer_begins_at_the_front_where_nothing_wraps() {
        let mut buffer = SendBuffer::new(4096);
        buffer.write(&[1; 3000]);
        buffer.consume(2000);
        buffer.consume(1000);
        buffer.write(&[2; 4096]);
        assert_eq!(buffer.slices(0, 4096), (&[2; 4096][..], &[][..]));
    }

    #[test]
    fn write_takes_what_the_limit_leaves() {
        let mut buffer = SendBuffer::new(10_000);
        assert_eq!(buffer.write(&[1; 9_999]), 9_999);
        assert_eq!(buffer.write(b"ab"), 1);
        assert_eq!((buffer.free(), buffer.allocated()), (0, 10_000));
        assert_eq!(joined(buffer.slices(9_998, 2)), [1, b'a']);
    }

    #[test]
    fn a_lowered_limit_discards_nothing_and_stops_writes() {
        let mut buffer = SendBuffer::new(100);
        buffer.write(b"0123456789");
        buffer.set_limit(4);
        assert_eq!((buffer.len(), buffer.free(), buffer.write(b"x")), (10, 0, 0));
        buffer.consume(8);
        assert_eq!(buffer.write(b"xyz"), 2);
        assert_eq!(joined(buffer.slices(0, 4)), b"89xy");
    }

    #[test]
    #[should_panic(expected = "only what is held can be sent")]
    fn bytes_beyond_the_end_are_never_sent() {
        SendBuffer::new(100).slices(u32::MAX, 2);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Write(usize),
        /// The room that is asked for, and the bytes that are put there.
        Fill(usize, usize),
        Consume(u32),
        Limit(u32),
        Relax,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0..9000_usize).prop_map(Op::Write),
            4 => (0..9000_usize, 0..9000_usize).prop_map(|(most, bytes)| Op::Fill(most, bytes)),
            4 => (0..9000_u32).prop_map(Op::Consume),
            1 => (0..40_000_u32).prop_map(Op::Limit),
            1 => Just(Op::Relax),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn what_is_held_is_what_was_written_less_what_was_acknowledged(
            ops in prop::collection::vec(op(), 1..60),
            probe in any::<(u32, u32)>(),
        ) {
            let mut buffer = SendBuffer::new(20_000);
            let mut model = VecDeque::new();
            let mut written = 0_u32;
            for op in ops {
                match op {
                    Op::Write(len) => {
                        let data: Vec<u8> = (written..).map(|at| (at % 251) as u8).take(len).collect();
                        let taken = buffer.write(&data);
                        prop_assert_eq!(taken, len.min((buffer.limit() as usize).saturating_sub(model.len())));
                        model.extend(&data[..taken]);
                        written += taken as u32;
                    }
                    Op::Fill(most, bytes) => {
                        let data: Vec<u8> = (written..).map(|at| (at % 251) as u8).take(bytes).collect();
                        let free = buffer.free() as usize;
                        let taken = buffer.fill(most, |room| {
                            assert!(room.len() <= most.min(free) && (room.is_empty() == (most.min(free) == 0)));
                            let taken = data.len().min(room.len());
                            room[..taken].copy_from_slice(&data[..taken]);
                            taken
                        });
                        model.extend(&data[..taken]);
                        written += taken as u32;
                    }
                    Op::Consume(bytes) => {
                        let bytes = bytes.min(buffer.len());
                        buffer.consume(bytes);
                        model.drain(..bytes as usize);
                    }
                    Op::Limit(bytes) => buffer.set_limit(bytes),
                    Op::Relax => buffer.relax(),
                }
                prop_assert_eq!(buffer.len() as usize, model.len());
                prop_assert!(buffer.allocated() >= model.len());
                let offset = probe.0 % (buffer.len() + 1);
                let len = probe.1 % (buffer.len() - offset + 1);
                let expected: Vec<u8> = model.range(offset as usize..).take(len as usize).copied().collect();
                prop_assert_eq!(joined(buffer.slices(offset, len)), expected);
            }
        }
    }
}
