//! Parses times as people type them.

use std::fmt;

use hopwise_core::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoTime;

impl fmt::Display for NoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a time such as 1.5s, 200ms, 300us or, in seconds, 1.5")
    }
}

impl std::error::Error for NoTime {}

/// Nanoseconds in each unit. The longer names come first, since several end in `s`.
const UNITS: [(&str, u64); 5] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", SECOND), ("", SECOND)];
const SECOND: u64 = 1_000_000_000;

/// `1.5s`, `200ms`, `300us`, `7ns` or plain seconds. Fractions of a nanosecond are cut off.
pub(super) fn parse_time(text: &str) -> Result<Instant, NoTime> {
    let with_unit = UNITS.iter().find_map(|(name, nanos)| Some((text.strip_suffix(name)?, nanos)));
    let (amount, unit) = with_unit.ok_or(NoTime)?;
    let (whole, decimals) = amount.split_once('.').unwrap_or((amount, "0"));
    let nanos = digits(whole)?.checked_mul(*unit).ok_or(NoTime)?;
    let scale =
        u32::try_from(decimals.len()).ok().and_then(|places| 10_u64.checked_pow(places)).ok_or(NoTime)?;
    let part = u128::from(digits(decimals)?) * u128::from(*unit) / u128::from(scale);
    let part = u64::try_from(part).map_err(|_| NoTime)?;
    nanos.checked_add(part).map(Instant).ok_or(NoTime)
}

fn digits(text: &str) -> Result<u64, NoTime> {
    let sound = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if sound { text.parse().map_err(|_| NoTime) } else { Err(NoTime) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_unit_and_plain_seconds_are_understood() {
        for (text, nanos) in [
            ("1.5s", 1_500_000_000),
            ("1.5", 1_500_000_000),
            ("2", 2_000_000_000),
            ("200ms", 200_000_000),
            ("0.5ms", 500_000),
            ("300us", 300_000),
            ("7ns", 7),
            ("0.0000000019s", 1),
        ] {
            assert_eq!(parse_time(text), Ok(Instant(nanos)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "s", "-1s", "+1", "1,5s", "1.5.0", "1.", ".5", "1 s", "1m", "1e3", "18446744074s", "1.5h"]
        {
            assert_eq!(parse_time(text), Err(NoTime), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9.]{0,24}[mun]?s?") {
            let _ = parse_time(&text);
        }

        #[test]
        fn what_an_instant_prints_is_read_back(nanos in 0..u64::MAX) {
            prop_assert_eq!(parse_time(&Instant(nanos).to_string()), Ok(Instant(nanos)));
        }
    }
}
