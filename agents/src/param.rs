//! The parameters of an agent: name, unit, default, range and meaning. Specs, docs and results come from one table of
//! them.

mod args;
mod setting;
mod text;

use std::fmt;
use std::time::Duration;

use hopwise_core::narrow::{as_u32, as_usize};

pub use args::Args;
pub use setting::{Brief, Setting, choices, params};

/// The default of a switch that a spec has to turn on.
pub const OFF: u64 = 0;
/// The default of a switch that a spec has to turn off.
pub const ON: u64 = 1;

/// The set of defaults for the parameters that a spec leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The first default of every parameter.
    #[default]
    Modern,
    /// Reproduces ns-2's senders: see the parameters that list a second default.
    Ns2,
}

/// One parameter of an agent.
#[derive(Debug)]
pub struct Param {
    /// The key in a spec: `d` in `delayed:d=3`.
    pub name: &'static str,
    /// The type and range of its values, by which a spec is read.
    pub form: Form,
    /// The default under both profiles, unless `ns2` gives another.
    pub default: DefaultValue,
    /// The default under [`Profile::Ns2`], if it differs.
    pub ns2: Option<Value>,
    /// The parameter whose value must be above this one's.
    pub below: Option<&'static str>,
    /// Its meaning in a few words, as `hopwise agents show` prints it.
    pub doc: &'static str,
}

impl Param {
    /// Sets the meaning of a parameter that several agents share.
    pub(crate) const fn means(mut self, doc: &'static str) -> Param {
        self.doc = doc;
        self
    }

    /// Sets the name, and the meaning unless `doc` is empty. [`params!`](params) calls it.
    #[doc(hidden)]
    pub const fn called(mut self, name: &'static str, doc: &'static str) -> Param {
        self.name = name;
        if !doc.is_empty() {
            self.doc = doc.trim_ascii_start();
        }
        self
    }

    /// Sets another default for the profile that reproduces ns-2.
    pub const fn ns2(mut self, raw: u64) -> Param {
        self.ns2 = Some(self.form.value(raw));
        self
    }

    /// Requires a value below the value of another parameter.
    pub const fn below(mut self, other: &'static str) -> Param {
        self.below = Some(other);
        self
    }

    /// The default, if it is a value.
    pub fn default_value(&self) -> Option<Value> {
        match self.default {
            DefaultValue::Is(value) => Some(value),
            DefaultValue::Required | DefaultValue::Unset(_) => None,
        }
    }
}

/// The effect of leaving a parameter out of a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// The agent gets this value.
    Is(Value),
    /// The spec is refused.
    Required,
    /// The agent gets no value, and does what these words say: `unlimited`.
    Unset(&'static str),
}

/// The values that a parameter accepts, bounds included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A whole number in decimal digits.
    Count {
        /// In the plural, for messages: `segments`.
        unit: &'static str,
        /// From this number on.
        min: u64,
        /// Up to this number.
        max: u64,
    },
    /// A time with its unit, as in `1.5s` or `50us`. A number without a unit is refused.
    Time {
        /// From this time on.
        min: Duration,
        /// Up to this time.
        max: Duration,
    },
    /// A rate with its unit, as in `5.5Mbps`.
    Rate {
        /// From this many bits per second on.
        min_bps: u64,
        /// Up to this many bits per second.
        max_bps: u64,
    },
    /// A number with up to three decimals, kept in thousandths.
    Ratio {
        /// From this many thousandths on.
        min_milli: u32,
        /// Up to this many thousandths.
        max_milli: u32,
    },
    /// `on` or `1`, `off` or `0`. Its parameter's name alone turns it on.
    Switch,
    /// Exactly one of these words. [`is`](Form::is) counts them from 0.
    Choice(&'static [&'static str]),
}

impl Form {
    /// A whole number of `unit`, bounds included.
    pub const fn count(unit: &'static str, min: u64, max: u64) -> Form {
        Form::Count { unit, min, max }
    }

    /// A time, bounds included.
    pub const fn millis(min: u64, max: u64) -> Form {
        Form::Time { min: Duration::from_millis(min), max: Duration::from_millis(max) }
    }

    /// A ratio, bounds included.
    pub const fn ratio(min_milli: u32, max_milli: u32) -> Form {
        Form::Ratio { min_milli, max_milli }
    }

    /// A parameter with this default. `raw` is a count, ms, bit/s, thousandths, `ON` or `OFF`, or the index of a
    /// choice.
    pub const fn is(self, raw: u64) -> Param {
        self.with(DefaultValue::Is(self.value(raw)))
    }

    /// A parameter that every spec must give.
    pub const fn required(self) -> Param {
        self.with(DefaultValue::Required)
    }

    /// A parameter that may be absent; `means` describes that case.
    pub const fn unset(self, means: &'static str) -> Param {
        self.with(DefaultValue::Unset(means))
    }

    const fn with(self, default: DefaultValue) -> Param {
        Param { name: "", form: self, default, ns2: None, below: None, doc: "" }
    }

    const fn value(&self, raw: u64) -> Value {
        match *self {
            Form::Count { .. } => Value::Count(raw),
            Form::Time { .. } => Value::Time(Duration::from_millis(raw)),
            Form::Rate { .. } => Value::Rate(raw),
            Form::Ratio { .. } => Value::Ratio(as_u32(as_usize(raw))),
            Form::Switch => Value::Switch(if raw == OFF { Switch::Off } else { Switch::On }),
            Form::Choice(names) => Value::Choice(names[as_usize(raw)]),
        }
    }

    /// The value that `text` spells, if this form accepts it.
    pub fn parse(&self, text: &str) -> Option<Value> {
        match *self {
            Form::Count { min, max, .. } => {
                text::parse_count(text).filter(|n| (min..=max).contains(n)).map(Value::Count)
            }
            Form::Time { min, max } => {
                text::parse_time(text).filter(|t| (min..=max).contains(t)).map(Value::Time)
            }
            Form::Rate { min_bps, max_bps } => {
                text::parse_rate(text).filter(|r| (min_bps..=max_bps).contains(r)).map(Value::Rate)
            }
            Form::Ratio { min_milli, max_milli } => {
                text::parse_milli(text).filter(|r| (min_milli..=max_milli).contains(r)).map(Value::Ratio)
            }
            Form::Switch => text::parse_switch(text).map(Value::Switch),
            Form::Choice(names) => names.iter().find(|name| **name == text).map(|name| Value::Choice(name)),
        }
    }
}

/// The accepted values in words for a message: "a whole number of segments from 2 to 255".
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Form::Count { unit, min, max } => write!(f, "a whole number of {unit} from {min} to {max}"),
            Form::Time { min, max } => {
                write!(f, "a time with its unit from {} to {}", Value::Time(min), Value::Time(max))
            }
            Form::Rate { min_bps, max_bps } => {
                write!(f, "a rate with its unit from {} to {}", Value::Rate(min_bps), Value::Rate(max_bps))
            }
            Form::Ratio { min_milli, max_milli } => {
                write!(f, "a number from {} to {}", Value::Ratio(min_milli), Value::Ratio(max_milli))
            }
            Form::Switch => f.write_str("`on` or `off`"),
            Form::Choice(names) => {
                f.write_str("one of ")?;
                for (i, name) in names.iter().enumerate() {
                    write!(f, "{}`{name}`", if i == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

/// A value in force. It prints as a spec spells it, and the print reads back as the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// In the unit of its [`Form::Count`].
    Count(u64),
    /// Prints in the largest unit in which it is a whole number.
    Time(Duration),
    /// Bits per second.
    Rate(u64),
    /// Thousandths.
    Ratio(u32),
    /// Prints as `on` or `off`.
    Switch(Switch),
    /// One of the words of its [`Form::Choice`].
    Choice(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Value::Count(n) => write!(f, "{n}"),
            Value::Time(time) => text::print_time(f, time),
            Value::Rate(bps) => text::print_with_unit(f, bps, &text::RATE_UNITS),
            Value::Ratio(milli) => text::print_milli(f, milli),
            Value::Switch(Switch::On) => f.write_str("on"),
            Value::Switch(Switch::Off) => f.write_str("off"),
            Value::Choice(name) => f.write_str(name),
        }
    }
}

/// The value of a parameter that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Switch {
    /// The agent does what the parameter's meaning says.
    On,
    /// The agent does not.
    Off,
}
