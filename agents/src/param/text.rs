//! The spelling of counts, times, rates and ratios. Every printed value reads back as the same value.

use std::fmt;
use std::time::Duration;

use super::Switch;

const TIME_UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
pub(super) const RATE_UNITS: [(&str, u64); 4] =
    [("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)];

pub(super) fn parse_count(text: &str) -> Option<u64> {
    all_digits(text).then(|| text.parse().ok())?
}

pub(super) fn parse_switch(text: &str) -> Option<Switch> {
    match text {
        "on" | "1" => Some(Switch::On),
        "off" | "0" => Some(Switch::Off),
        _ => None,
    }
}

/// `100ms`, `1.5s`, `50us`. A number without a unit is refused, since its unit would be a guess.
pub(super) fn parse_time(text: &str) -> Option<Duration> {
    parse_with_unit(text, &TIME_UNITS).map(Duration::from_nanos)
}

/// `5.5Mbps`; case does not matter.
pub(super) fn parse_rate(text: &str) -> Option<u64> {
    parse_with_unit(text, &RATE_UNITS)
}

pub(super) fn parse_milli(text: &str) -> Option<u32> {
    scaled(text, 1_000).and_then(|milli| u32::try_from(milli).ok())
}

pub(super) fn print_time(f: &mut fmt::Formatter<'_>, time: Duration) -> fmt::Result {
    print_with_unit(f, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), &TIME_UNITS)
}

pub(super) fn print_milli(f: &mut fmt::Formatter<'_>, milli: u32) -> fmt::Result {
    let (whole, rest) = (milli / 1_000, milli % 1_000);
    if rest == 0 {
        return write!(f, "{whole}");
    }
    let decimals = format!("{rest:03}");
    write!(f, "{whole}.{}", decimals.trim_end_matches('0'))
}

/// Prints in the largest unit in which the value is whole, so that nothing is rounded.
pub(super) fn print_with_unit(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let whole = units.iter().find(|(_, scale)| value != 0 && value.is_multiple_of(*scale));
    let (unit, scale) = whole.unwrap_or(&units[0]);
    write!(f, "{}{unit}", value / scale)
}

fn parse_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let number_ends = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(number_ends);
    let (_, scale) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    scaled(number, *scale)
}

/// Returns `number` × `scale` as a whole number. It is `None` if decimals are left over or the product does not fit.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    if !all_digits(whole) || !all_digits(decimals) {
        return None;
    }
    let mut value = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let mut place = scale;
    for digit in decimals.trim_end_matches('0').bytes() {
        if !place.is_multiple_of(10) {
            return None;
        }
        place /= 10;
        value = value.checked_add(u64::from(digit - b'0') * place)?;
    }
    Some(value)
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::{Form, Value};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_print_in_the_largest_unit_that_loses_nothing() {
        let printed = |text| Value::Time(parse_time(text).unwrap()).to_string();
        assert_eq!(printed("1.5s"), "1500ms");
        assert_eq!(printed("2000ms"), "2s");
        assert_eq!(printed("0.05ms"), "50us");
        assert_eq!(printed("0ms"), "0s");
    }

    #[test]
    fn a_time_without_a_unit_or_with_half_a_nanosecond_is_refused() {
        for text in
            ["100", "", "ms", "1.ms", ".5s", "0.5ns", "-1s", "1e3s", "99999999999999s", "1 s", "1.2.3s"]
        {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn rates_keep_their_decimals_and_ignore_case() {
        assert_eq!(parse_rate("5.5mbps"), Some(5_500_000));
        assert_eq!(Value::Rate(5_500_000).to_string(), "5500kbps");
        assert_eq!(Value::Rate(2_000_000).to_string(), "2Mbps");
    }

    #[test]
    fn ratios_have_at_most_three_decimals() {
        assert_eq!(parse_milli("0.4"), Some(400));
        assert_eq!(parse_milli("1.0000"), Some(1_000));
        assert_eq!(parse_milli("0.0001"), None);
        assert_eq!(Value::Ratio(1_250).to_string(), "1.25");
    }

    #[test]
    fn a_form_refuses_what_lies_outside_its_range() {
        let form = Form::count("segments", 2, 255);
        assert_eq!(form.parse("1"), None);
        assert_eq!(form.parse("2"), Some(Value::Count(2)));
        assert_eq!(form.parse("256"), None);
        assert_eq!(form.parse("+2"), None);
        assert_eq!(form.to_string(), "a whole number of segments from 2 to 255");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(ns: u64, bps: u64, milli: u32) {
            let time = Duration::from_nanos(ns);
            prop_assert_eq!(parse_time(&Value::Time(time).to_string()), Some(time));
            prop_assert_eq!(parse_rate(&Value::Rate(bps).to_string()), Some(bps));
            prop_assert_eq!(parse_milli(&Value::Ratio(milli).to_string()), Some(milli));
        }

        #[test]
        fn no_text_makes_a_value_parser_panic(text in ".*") {
            let _ = (parse_count(&text), parse_time(&text), parse_rate(&text), parse_milli(&text));
        }
    }
}
