//! Values with their units, as people write them in files and on the command line.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time: `100ms`, `1.5s`. The unit must be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

/// An amount of data in bytes: `1500B`, `64KiB`, `10MB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A rate in bits a second: `11mbit`, `2gbit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

/// A share in millionths: `1%`, `0.05%`, `20ppm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub u32);

/// A text that is no value of its kind; the error names the accepted form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnitError {
    text: String,
    wanted: &'static str,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.text.starts_with('-') { "; nothing below 0" } else { "" };
        let is_bare = self.text.parse::<f64>().is_ok_and(|number| number >= 0.0);
        let lack = if is_bare { " has no unit" } else { "" };
        write!(f, "`{}`{lack}, expected {}{sign}", self.text, self.wanted)
    }
}

type UnitTable = &'static [(&'static str, u64)];

/// Nanoseconds; longer names come first where one ends another.
const TIMES: UnitTable = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("h", 3_600_000_000_000),
];
/// Longer units are not written.
const WRITTEN_TIMES: UnitTable = &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const SIZES: UnitTable = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];
const RATES: UnitTable = &[("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000), ("bit", 1)];
const SHARES: UnitTable = &[("ppm", 1), ("%", 10_000)];

/// Reads a decimal number before one of the units, exactly; finer digits are cut off.
fn scaled(text: &str, units: UnitTable) -> Option<u64> {
    let (amount, unit) = units.iter().find_map(|(name, one)| Some((text.strip_suffix(name)?, *one)))?;
    let amount = amount.trim_end();
    let (whole, decimals) = amount.split_once('.').unwrap_or((amount, "0"));
    let scale = 10_u64.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let part = u128::from(digits(decimals)?) * u128::from(unit) / u128::from(scale);
    digits(whole)?.checked_mul(unit)?.checked_add(u64::try_from(part).ok()?)
}

fn digits(text: &str) -> Option<u64> {
    let sound = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if sound { text.parse().ok() } else { None }
}

/// Writes an amount in the largest unit without a remainder: reading it back gives the value.
fn exact(amount: u64, units: UnitTable) -> String {
    let whole = units.iter().filter(|(_, one)| amount.is_multiple_of(*one));
    let (name, one) = whole.max_by_key(|(_, one)| *one).copied().unwrap_or(("", 1));
    format!("{}{name}", amount / one)
}

macro_rules! readable {
    ($($name:ident: $wanted:literal, $units:ident, $written:ident, $read:expr, $amount:expr;)+) => { $(
        impl FromStr for $name {
            type Err = UnitError;

            fn from_str(text: &str) -> Result<$name, UnitError> {
                let read: fn(&str) -> Option<$name> = $read;
                read(text).ok_or_else(|| UnitError { text: text.to_owned(), wanted: $wanted })
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                text(from)?.parse().map_err(D::Error::custom)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let amount: fn(&$name) -> u64 = $amount;
                to.serialize_str(&exact(amount(self), $written))
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let units: Vec<_> = $units.iter().map(|(name, _)| *name).collect();
                let pattern = format!("^[0-9]+(\\.[0-9]+)? *({})$", units.join("|"));
                json_schema!({ "type": "string", "pattern": pattern, "description": $wanted })
            }
        }
    )+ };
}

readable! {
    Time: "a time with its unit, such as 100ms, 1.5s, 300us or 2min", TIMES, WRITTEN_TIMES,
        |text| scaled(text, TIMES).map(|nanos| Time(Duration::from_nanos(nanos))), |time| time.nanos();
    Size: "a size with its unit, such as 1500B, 64KiB or 10MB", SIZES, SIZES,
        |text| scaled(text, SIZES).map(Size), |size| size.0;
    Rate: "a rate with its unit, such as 11mbit or 2gbit", RATES, RATES,
        |text| scaled(text, RATES).map(Rate), |rate| rate.0;
    Share: "a share from 0% to 100%, such as 1%, 0.05% or 20ppm", SHARES, SHARES,
        |text| scaled(text, SHARES).filter(|ppm| *ppm <= 1_000_000).and_then(|ppm| u32::try_from(ppm).ok()).map(Share),
        |share| u64::from(share.0);
}

/// A number without a unit is read as its text: its refusal then names the units.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Scalar {
        Text(String),
        Integer(u64),
        Decimal(f64),
    }
    Ok(match Scalar::deserialize(from).map_err(unfit)? {
        Scalar::Text(text) => text,
        Scalar::Integer(number) => number.to_string(),
        Scalar::Decimal(number) => number.to_string(),
    })
}

/// The error for a value that is no text, unless the value is missing.
fn unfit<E: serde::de::Error>(error: E) -> E {
    let is_missing = error.to_string().starts_with("missing field");
    if is_missing { error } else { E::custom("no text, expected a text such as 100ms or 1%") }
}

/// A number as the default of a key, `default = "number::<u32, 8>"`.
pub fn number<T: From<u16>, const NUMBER: u16>() -> T {
    NUMBER.into()
}

impl Time {
    /// A time as the default of a key, `default = "Time::millis::<100>"`.
    pub fn millis<const MILLIS: u64>() -> Time {
        Time(Duration::from_millis(MILLIS))
    }

    /// True for no time at all.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// The nanoseconds of the time; every value that was read fits.
    pub fn nanos(&self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// Shows a size in the largest binary unit that it reaches, with one decimal.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = SIZES[..3].iter().rev().find(|(_, one)| self.0 >= *one);
        match unit {
            Some((name, one)) => {
                let tenths = u128::from(self.0) * 10 / u128::from(*one);
                write!(f, "{}.{} {name}", tenths / 10, tenths % 10)
            }
            None => write!(f, "{} B", self.0),
        }
    }
}

#[cfg(test)]
mod tests;
