//! Numbers in narrower types. The caller of `as_…` knows that the number fits; debug builds and fuzzers check it.
//! `low_…` cuts off the upper bits, as hashes and counters that wrap want it.

/// The number as one byte.
#[inline(always)]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "checked where assertions are on")]
pub const fn as_u8(number: usize) -> u8 {
    debug_assert!(number <= u8::MAX as usize);
    number as u8
}

/// The number as two bytes.
#[inline(always)]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "checked where assertions are on")]
pub const fn as_u16(number: usize) -> u16 {
    debug_assert!(number <= u16::MAX as usize);
    number as u16
}

/// The number as four bytes.
#[inline(always)]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "checked where assertions are on")]
pub const fn as_u32(number: usize) -> u32 {
    debug_assert!(number <= u32::MAX as usize);
    number as u32
}

/// The number as a length or an index. A machine of 32 bits has numbers that do not fit.
#[inline(always)]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "checked where assertions are on")]
pub const fn as_usize(number: u64) -> usize {
    debug_assert!(number <= usize::MAX as u64);
    number as usize
}

/// The lowest byte.
#[inline(always)]
#[must_use]
pub(crate) const fn low_u8(number: u64) -> u8 {
    (number & 0xff) as u8
}

/// The lowest two bytes.
#[inline(always)]
#[must_use]
pub(crate) const fn low_u16(number: u64) -> u16 {
    (number & 0xffff) as u16
}

/// The lowest four bytes.
#[inline(always)]
#[must_use]
pub(crate) const fn low_u32(number: u64) -> u32 {
    (number & 0xffff_ffff) as u32
}
