//! The story's bytes, read from front to back. Missing bytes at the end read as zero: every prefix of a story is one.

pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    pub(crate) fn long(&mut self) -> u32 {
        u32::from(self.word()) << 16 | u32::from(self.word())
    }

    /// As many of the next bytes as there are.
    pub(crate) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// All bytes that are left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.bytes(usize::MAX)
    }

    pub(crate) fn pick<T: Copy, const N: usize>(&mut self, among: [T; N]) -> T {
        among[usize::from(self.octet()) % N]
    }

    /// An index into something of `len` entries, unless it is empty.
    pub(crate) fn index(&mut self, len: usize) -> Option<usize> {
        let octet = usize::from(self.octet());
        (len > 0).then(|| octet % len)
    }
}

/// Bits of one byte, each a flag.
#[derive(Clone, Copy)]
pub(crate) struct Bits(pub(crate) u8);

impl Bits {
    pub(crate) fn has(self, bit: u8) -> bool {
        self.0 & 1 << bit != 0
    }
}
