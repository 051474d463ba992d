//! A range of values as the schema has it in words: `1 to 9999`, `above 0s to 72h`, `100ms or more`, `less than 100%`.

use std::fmt;

use crate::units::{Rate, Share, Size, Time};

/// A range in words, which errors and pages print as they stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range<'a> {
    text: &'a str,
    /// The lower end; `None` without one.
    pub least: Option<f64>,
    /// The upper end; `None` without one.
    pub most: Option<f64>,
    /// The ends do not belong to it.
    above: bool,
    below: bool,
    is_of_numbers: bool,
}

impl<'a> Range<'a> {
    /// The range that these words mean. Words that mean none refuse nothing.
    pub fn of(text: &'a str) -> Range<'a> {
        let above = text.starts_with("above ");
        let below = text.starts_with("less than ");
        let bare = text.trim_start_matches("above ");
        let (least, most) =
            if let Some(most) = text.strip_prefix("less than ").or(text.strip_prefix("at most ")) {
                (None, Some(most))
            } else if let Some((least, most)) = bare.split_once(" to ") {
                (Some(least), Some(most))
            } else {
                (Some(bare.trim_end_matches(" or more")), None)
            };
        let is_of_numbers = least.or(most).is_some_and(|end| end.parse::<f64>().is_ok());
        let [least, most] = [least, most].map(|end| end.and_then(amount));
        Range { text, least, most, above, below, is_of_numbers }
    }

    /// Returns whether a value lies outside. A word, such as `off`, does not, nor a value of another kind: its reader
    /// refuses it.
    pub fn refuses(&self, said: &str) -> bool {
        let is_of_kind = said.parse::<f64>().is_ok() == self.is_of_numbers;
        is_of_kind && amount(said).is_some_and(|value| !self.holds(value))
    }

    /// Returns whether an amount lies in the range: a number, or a quantity in its least unit.
    pub fn holds(&self, value: f64) -> bool {
        let is_enough =
            self.least.is_none_or(|least| if self.above { value > least } else { value >= least });
        let is_bounded = self.most.is_none_or(|most| if self.below { value < most } else { value <= most });
        is_enough && is_bounded && !value.is_nan()
    }

    /// Its ends in the words of JSON Schema; none if it is not of plain numbers.
    pub(super) fn bounds(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let least = (if self.above { "exclusiveMinimum" } else { "minimum" }, self.least);
        let most = (if self.below { "exclusiveMaximum" } else { "maximum" }, self.most);
        let is_of_numbers = self.is_of_numbers;
        [least, most].into_iter().filter_map(move |(word, end)| Some((word, end.filter(|_| is_of_numbers)?)))
    }
}

impl fmt::Display for Range<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// A number, or a quantity in its least unit.
fn amount(text: &str) -> Option<f64> {
    let quantity = || {
        let nanos = || text.parse().ok().map(|time: Time| time.nanos());
        let bytes = || text.parse().ok().map(|size: Size| size.0);
        let bits = || text.parse().ok().map(|rate: Rate| rate.0);
        let ppm = || text.parse().ok().map(|share: Share| u64::from(share.0));
        nanos().or_else(bytes).or_else(bits).or_else(ppm).map(|amount| amount as f64)
    };
    text.parse().ok().or_else(quantity)
}
