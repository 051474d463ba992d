//! The ring of bytes under both buffers. It knows the place of bytes, not their meaning.

use crate::narrow::as_u32;

/// The first allocation.
const SMALLEST_BYTES: u32 = 4096;
/// The largest ring: the widest window that RFC 7323 §2.3 allows. Positions therefore add up within a `u32`.
pub(super) const LARGEST_BYTES: u32 = 1 << 30;

/// Bytes from `start` on, wrapping at the end of the allocation. The owner counts how many are held.
#[derive(Debug, Default)]
pub(super) struct ByteRing {
    bytes: Box<[u8]>,
    start: u32,
}

impl ByteRing {
    /// The allocated bytes.
    pub(super) fn capacity(&self) -> u32 {
        as_u32(self.bytes.len())
    }

    /// Writes `data` at `offset` from the start.
    pub(super) fn write(&mut self, offset: u32, data: &[u8]) {
        let at = self.position(offset);
        let to_end = self.bytes.len() - at;
        if data.len() <= to_end {
            self.bytes[at..at + data.len()].copy_from_slice(data);
        } else {
            let (head, tail) = data.split_at(to_end);
            self.bytes[at..].copy_from_slice(head);
            self.bytes[..tail.len()].copy_from_slice(tail);
        }
    }

    /// The place of `len` bytes at `offset` from the start, or of as many as there are before the ring's end.
    pub(super) fn room(&mut self, offset: u32, len: u32) -> &mut [u8] {
        let at = self.position(offset);
        let to_end = self.bytes.len() - at;
        &mut self.bytes[at..at + to_end.min(len as usize)]
    }

    /// The `len` bytes at `offset` from the start, in two pieces where they wrap.
    pub(super) fn slices(&self, offset: u32, len: u32) -> (&[u8], &[u8]) {
        let (at, len) = (self.position(offset), len as usize);
        let to_end = self.bytes.len() - at;
        if len <= to_end {
            (&self.bytes[at..at + len], &[])
        } else {
            (&self.bytes[at..], &self.bytes[..len - to_end])
        }
    }

    /// Forgets the first `bytes`.
    pub(super) fn advance(&mut self, bytes: u32) {
        self.start = as_u32(self.position(bytes));
    }

    /// Restarts an empty ring at the front, where memory is warm and nothing wraps.
    pub(super) fn rewind(&mut self) {
        self.start = 0;
    }

    /// Makes room for `needed` bytes by doubling up to `limit`; the first `kept` bytes stay. It exceeds a slowly rising
    /// limit by an eighth, so that not each of its steps copies everything.
    pub(super) fn reserve(&mut self, needed: u32, kept: u32, limit: u32) {
        if needed > self.capacity() {
            let step = self.capacity() + self.capacity() / 8;
            self.reallocate(fitting(needed).min(limit.max(needed).max(step)), kept);
        }
    }

    /// Frees memory if `kept` bytes need a quarter of it or less; frees all of it if `kept` is 0.
    pub(super) fn relax(&mut self, kept: u32) {
        let enough = if kept == 0 { 0 } else { fitting(kept) };
        if kept == 0 || enough <= self.capacity() / 4 {
            self.reallocate(enough, kept);
        }
    }

    fn reallocate(&mut self, capacity: u32, kept: u32) {
        let mut bytes = vec![0; capacity as usize].into_boxed_slice();
        let (head, tail) = self.slices(0, kept);
        bytes[..head.len()].copy_from_slice(head);
        bytes[head.len()..kept as usize].copy_from_slice(tail);
        *self = ByteRing { bytes, start: 0 };
    }

    fn position(&self, offset: u32) -> usize {
        let at = (self.start + offset) as usize;
        if at >= self.bytes.len() { at - self.bytes.len() } else { at }
    }
}

fn fitting(bytes: u32) -> u32 {
    bytes.next_power_of_two().max(SMALLEST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_wrap_come_back_in_two_pieces_and_survive_growth() {
        let mut ring = ByteRing::default();
        ring.reserve(1, 0, 4096);
        ring.advance(4090);
        ring.write(0, b"0123456789");
        assert_eq!(ring.slices(0, 10), (&b"012345"[..], &b"6789"[..]));
        ring.reserve(4097, 10, LARGEST_BYTES);
        assert_eq!((ring.capacity(), ring.slices(0, 10)), (8192, (&b"0123456789"[..], &b""[..])));
    }

    #[test]
    fn growth_doubles_from_4_kib_and_ends_at_the_limit() {
        let mut ring = ByteRing::default();
        let mut sizes = Vec::new();
        for needed in [1, 4096, 4097, 9000, 16385, 20_000] {
            ring.reserve(needed, 0, 20_000);
            sizes.push(ring.capacity());
        }
        assert_eq!(sizes, [4096, 4096, 8192, 16384, 20_000, 20_000]);
    }

    #[test]
    fn a_limit_that_rises_by_little_costs_few_copies() {
        let mut ring = ByteRing::default();
        let (mut copied, mut limit) = (0, 1 << 20);
        while limit < 4 << 20 {
            let before = ring.capacity();
            ring.reserve(limit, before, limit);
            copied += if ring.capacity() > before { before } else { 0 };
            assert!(ring.capacity() <= limit + limit / 8);
            limit += 2920;
        }
        assert!(copied <= 9 * limit, "{copied} bytes for {limit}");
    }

    #[test]
    fn memory_is_given_back_only_when_most_of_it_is_unused() {
        let mut ring = ByteRing::default();
        ring.reserve(32768, 0, LARGEST_BYTES);
        ring.write(0, b"kept");
        ring.relax(8193);
        assert_eq!(ring.capacity(), 32768);
        ring.relax(8192);
        assert_eq!((ring.capacity(), ring.slices(0, 4).0), (8192, &b"kept"[..]));
        ring.relax(0);
        assert_eq!(ring.capacity(), 0);
    }
}
