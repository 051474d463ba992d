//! Numbers in narrower types. The caller of `as_…` knows that the number fits; debug builds and fuzzers check it.
//! `low_…` cuts off the upper bits, as hashes and counters that wrap want it.

macro_rules! narrow {
    ($($(#[$doc:meta])* $name:ident: $from:ident => $to:ident),+) => { $(
        $(#[$doc])*
        #[inline(always)]
        #[must_use]
        #[expect(clippy::cast_possible_truncation, reason = "checked where assertions are on")]
        pub const fn $name(number: $from) -> $to {
            debug_assert!(number <= $to::MAX as $from);
            number as $to
        }
    )+ };
}

narrow! {
    /// The number as one byte.
    as_u8: usize => u8,
    /// The number as two bytes.
    as_u16: usize => u16,
    /// The number as four bytes.
    as_u32: usize => u32,
    /// The number as a length or an index. A machine of 32 bits has numbers that do not fit.
    as_usize: u64 => usize
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
