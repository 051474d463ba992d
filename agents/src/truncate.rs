//! Floats as whole numbers: the fraction is cut off. Negative numbers and NaN become 0, and numbers that are too large
//! become the largest one. `hopwise_air::truncate` does the same for worlds: the crate below both knows no float.

/// The whole part of a number.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the ends are as the head of this file says")]
pub(crate) const fn to_u64(number: f64) -> u64 {
    number as u64
}

/// The whole part of a number.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the ends are as the head of this file says")]
pub(crate) const fn to_u32(number: f64) -> u32 {
    number as u32
}
