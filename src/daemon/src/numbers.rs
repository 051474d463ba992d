//! Numbers on the command line. An error names the whole range, which the messages of types do not.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The reader of a whole number in that range.
pub fn whole<N>(
    range: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
    }
}

/// A seed: every number of 64 bits is one.
pub fn seed(text: &str) -> Result<u64, String> {
    whole(0..=u64::MAX)(text)
}

/// A number that may have a fraction.
pub fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "expected a number, such as 2.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_its_range_is_told_the_range() {
        let hops = whole(1..=255_u8);
        assert_eq!((hops("1"), hops("255")), (Ok(1), Ok(255)));
        for wrong in ["0", "256", "-1", "1.5", "x", ""] {
            assert_eq!(hops(wrong), Err("expected a whole number from 1 to 255".to_owned()), "{wrong}");
        }
        assert_eq!(seed("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(finite("-2.5"), Ok(-2.5));
        for wrong in ["inf", "nan", "two"] {
            assert_eq!(finite(wrong), Err("expected a number, such as 2.5".to_owned()), "{wrong}");
        }
    }
}
