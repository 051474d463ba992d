//! What the application wrote and the peer has not acknowledged yet.

use super::ring::{ByteRing, LARGEST_BYTES};

/// Bytes from `snd_una` on, in order. Memory grows with use up to the limit and is given back by
/// [`relax`](SendBuffer::relax) alone, so a busy connection allocates nothing once it has its size.
#[derive(Debug)]
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

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes [`write`](SendBuffer::write) would take now.
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

    /// Appends as much of `data` as there is room for, and says how much that was.
    pub(crate) fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(self.free() as usize);
        let needed = self.len + taken as u32;
        self.ring.reserve(needed, self.len, self.limit);
        self.ring.write(self.len, &data[..taken]);
        self.len = needed;
        taken
    }

    /// `len` bytes at `offset` from the oldest byte held, in the two pieces that the ring has them in.
    pub(crate) fn slices(&self, offset: u32, len: u32) -> (&[u8], &[u8]) {
        assert!(len <= self.len && offset <= self.len - len, "only what is held can be sent");
        self.ring.slices(offset, len)
    }

    /// The oldest `bytes` are acknowledged and need not be kept.
    pub(crate) fn consume(&mut self, bytes: u32) {
        assert!(bytes <= self.len, "only what is held can be acknowledged");
        self.len -= bytes;
        if self.len == 0 {
            self.ring.rewind();
        } else {
            self.ring.advance(bytes);
        }
    }

    /// Gives memory back: all of it when empty, most of it when little is held. For idle connections only.
    pub(crate) fn relax(&mut self) {
        self.ring.relax(self.len);
    }

    /// Bytes of heap in use.
    pub(crate) fn allocated(&self) -> usize {
        self.ring.capacity() as usize
    }
}
