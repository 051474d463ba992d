//! Floats as whole numbers: the fraction is cut off. Numbers beyond an end of the type become that end, and NaN
//! becomes 0. Texts that errors quote are cut as well.

macro_rules! truncate {
    ($($name:ident: $type:ty),+ $(,)?) => {
        $(
            #[doc = concat!("The number without its fraction, within the ends of `", stringify!($type), "`.")]
            #[inline]
            #[must_use]
            #[expect(clippy::cast_possible_truncation, reason = "the ends are as the head of this file says")]
            pub const fn $name(number: f64) -> $type {
                number as $type
            }
        )+
    };
}

truncate! {
    to_i8: i8,
    to_i32: i32,
    to_i64: i64,
    to_u32: u32,
    to_u64: u64,
    to_usize: usize,
}

/// The first letters of a text of strangers, for an error that quotes it.
pub(crate) fn quoted(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_go_and_ends_hold() {
        assert_eq!((to_u64(2.9), to_i64(-2.9), to_i8(-0.9)), (2, -2, 0));
        assert_eq!((to_u32(-1.0), to_u32(1e10), to_u32(f64::NAN)), (0, u32::MAX, 0));
        assert_eq!((to_i8(-200.0), to_i32(1e10), to_usize(f64::INFINITY)), (i8::MIN, i32::MAX, usize::MAX));
    }
}
