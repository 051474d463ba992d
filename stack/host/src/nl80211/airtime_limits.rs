//! The airtime that may wait in a driver (AQL), as mac80211 has it in debugfs: no message of nl80211 tells it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::radio::Radio;

/// The folder of each radio by its name.
const RADIOS: &str = "/sys/kernel/debug/ieee80211";
/// The access categories, each with limits of its own.
const CATEGORIES: u32 = 4;

/// Microseconds for a station beside further ones, and for a station alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AirtimeLimits {
    pub(crate) low: u16,
    pub(crate) high: u16,
}

impl AirtimeLimits {
    /// Both in one number.
    pub(crate) fn number(self) -> u32 {
        u32::from(self.high) << 16 | u32::from(self.low)
    }

    pub(crate) fn of_number(number: u32) -> AirtimeLimits {
        let [low, low_more, high, high_more] = number.to_le_bytes();
        AirtimeLimits {
            low: u16::from_le_bytes([low, low_more]),
            high: u16::from_le_bytes([high, high_more]),
        }
    }

    /// The limits of the interface's radio, as a number.
    pub(crate) fn read(index: u32) -> io::Result<u32> {
        let differ = || io::Error::other("its access categories have different limits");
        parse(&fs::read_to_string(file(index)?)?).map(AirtimeLimits::number).ok_or_else(differ)
    }

    /// Gives all categories these limits.
    pub(crate) fn set(self, index: u32) -> io::Result<()> {
        let file = file(index)?;
        (0..CATEGORIES)
            .try_for_each(|category| fs::write(&file, format!("{category} {} {}", self.low, self.high)))
    }
}

fn file(index: u32) -> io::Result<PathBuf> {
    let name = Radio::open()?.name(index)?.ok_or(io::ErrorKind::NotFound)?;
    Ok(Path::new(RADIOS).join(name).join("aql_txq_limit"))
}

/// A line for each category has its name and both limits. Newer kernels have a line of broadcasts with one limit.
fn parse(text: &str) -> Option<AirtimeLimits> {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace().skip(1).map(str::parse);
        let (Some(Ok(low)), Some(Ok(high)), None) = (words.next(), words.next(), words.next()) else {
            return None;
        };
        Some(AirtimeLimits { low, high })
    };
    let all: Vec<_> = text.lines().filter_map(of_line).collect();
    let first = *all.first()?;
    (all.len() == CATEGORIES as usize && all.iter().all(|limits| *limits == first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_where_all_categories_have_equal_ones() {
        let of = |last: &str| {
            format!(
                "AC\tAQL limit low\tAQL limit high\nVO\t5000\t\t12000\nVI\t5000\t\t12000\nBE\t5000\t\t12000\n{last}"
            )
        };
        let limits = AirtimeLimits { low: 5_000, high: 12_000 };
        assert_eq!(parse(&of("BK\t5000\t\t12000\nBC/MC\t50000\n")), Some(limits));
        assert_eq!(AirtimeLimits::of_number(limits.number()), limits);
        for last in ["BK\t5000\t\t5000\n", "BK\t5000\t\t120000\n", "BK\n", ""] {
            assert_eq!(parse(&of(last)), None, "{last}");
        }
    }
}
