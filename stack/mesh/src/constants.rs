//! Constants of routing protocols. Each protocol has one table of them, with name, unit, range, defaults and meaning.
//! Its settings are made from the table here. Files, their schema, errors and results are made from it elsewhere.

use std::fmt;
use std::time::Duration;

use crate::on_demand::Key;

/// One constant of a protocol.
#[derive(Debug)]
pub struct Constant {
    /// The name in files, as the specification spells it, in lower case.
    pub name: &'static str,
    /// The values that it takes.
    pub form: Form,
    /// `None`: it is derived from others, or absent.
    pub default: Option<Value>,
    /// Default in words, where the value is not enough.
    pub(crate) default_means: Option<&'static str>,
    /// Default under the rules of ns-2, where it differs.
    pub ns2: Option<Value>,
    /// The rules under which it has an effect.
    pub(crate) used_under: Used,
    doc: &'static str,
}

/// Rules under which a constant has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Used {
    /// All rules.
    All,
    /// Those of the specification, not those of ns-2.
    Standard,
    /// The rules of ns-2 alone.
    Ns2,
}

/// Values that a constant takes, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A time of at most an hour.
    Time {
        /// The shortest time that is accepted.
        min: Duration,
    },
    /// A whole number.
    Count {
        /// The things that are counted, in the plural.
        unit: &'static str,
        /// The least number that is accepted.
        min: u32,
        /// The largest number that is accepted.
        max: u32,
    },
    /// On or off.
    Switch,
    /// Names, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// Any text; it is never printed.
    Key,
}

/// Longest time that a constant takes: a longer one is a slip.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Numbers beyond these are slips.
pub(crate) const MOST_PACKETS: u32 = 1 << 16;
pub(crate) const MOST_ROUTES: u32 = 1 << 20;

/// The value of a constant, in the form that its table gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A length of time.
    Time(Duration),
    /// A whole number, in the unit of its form.
    Count(u32),
    /// On if true.
    Switch(bool),
    /// One of the form's names.
    Choice(&'static str),
    /// A secret that the nodes share.
    Key(Key),
}

/// Default of a switch.
pub(crate) const OFF: u32 = 0;
pub(crate) const ON: u32 = 1;

impl Form {
    /// Times of at least `min_ms` milliseconds.
    pub(crate) const fn time(min_ms: u64) -> Form {
        Form::Time { min: Duration::from_millis(min_ms) }
    }

    pub(crate) const fn count(unit: &'static str, min: u32, max: u32) -> Form {
        Form::Count { unit, min, max }
    }

    /// Events in a second; 0 sets no limit.
    pub(crate) const fn per_second(unit: &'static str) -> Form {
        Form::count(unit, 0, u32::MAX)
    }

    /// A constant with this default: a count, ms, `ON` or `OFF`, or the index of a choice.
    pub(crate) const fn is(self, raw: u32) -> Constant {
        Constant { default: Some(self.value(raw)), ..self.unset("") }
    }

    /// A constant that is derived from others unless it is set, or is absent.
    pub(crate) const fn unset(self, means: &'static str) -> Constant {
        let default_means = if means.is_empty() { None } else { Some(means) };
        Constant {
            name: "",
            form: self,
            default: None,
            default_means,
            ns2: None,
            used_under: Used::All,
            doc: "",
        }
    }

    const fn value(self, raw: u32) -> Value {
        match self {
            Form::Time { .. } => Value::Time(Duration::from_millis(raw as u64)),
            Form::Count { .. } => Value::Count(raw),
            Form::Switch => Value::Switch(raw != OFF),
            Form::Choice(names) => Value::Choice(names[raw as usize].0),
            Form::Key => panic!("a key has no default"),
        }
    }

    /// Returns whether this form takes the value.
    pub fn accepts(self, value: Value) -> bool {
        match (self, value) {
            (Form::Time { min }, Value::Time(time)) => (min..=LONGEST).contains(&time),
            (Form::Count { min, max, .. }, Value::Count(count)) => (min..=max).contains(&count),
            (Form::Choice(names), Value::Choice(name)) => names.iter().any(|(known, _)| *known == name),
            (Form::Switch, Value::Switch(_)) | (Form::Key, Value::Key(_)) => true,
            _ => false,
        }
    }
}

/// Accepted values, for a message: "a whole number of hops from 1 to 250".
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Form::Time { min } if min.is_zero() => f.write_str("a time of at most an hour"),
            Form::Time { min } => write!(f, "a time from {min:?} to an hour"),
            Form::Count { unit, min, max } => write!(f, "a whole number of {unit} from {min} to {max}"),
            Form::Switch => f.write_str("true or false"),
            Form::Choice(names) => {
                let names: Vec<_> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
                write!(f, "{}", names.join(" or "))
            }
            Form::Key => f.write_str("a text that others cannot guess"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Time(Duration::ZERO) => f.write_str("0s"),
            Value::Time(time) => write!(f, "{time:?}"),
            Value::Count(count) => write!(f, "{count}"),
            Value::Switch(is_on) => write!(f, "{is_on}"),
            Value::Choice(name) => f.write_str(name),
            Value::Key(_) => f.write_str("a key"),
        }
    }
}

impl Constant {
    pub(crate) const fn called(mut self, name: &'static str, doc: &'static str) -> Constant {
        self.name = name;
        self.doc = doc.trim_ascii();
        self
    }

    /// The same constant; words explain its default.
    pub(crate) const fn means(mut self, default: &'static str) -> Constant {
        self.default_means = Some(default);
        self
    }

    /// The same constant, with another default under the rules of ns-2.
    pub(crate) const fn ns2(mut self, raw: u32) -> Constant {
        self.ns2 = Some(self.form.value(raw));
        self
    }

    /// The same constant, which the rules of ns-2 do not use.
    pub(crate) const fn not_in_ns2(mut self) -> Constant {
        self.used_under = Used::Standard;
        self
    }

    /// The same constant, which only the rules of ns-2 use.
    pub(crate) const fn only_in_ns2(mut self) -> Constant {
        self.used_under = Used::Ns2;
        self
    }

    pub(crate) fn default_under(&self, is_ns2: bool) -> Option<Value> {
        self.ns2.filter(|_| is_ns2).or(self.default)
    }
}

/// Meaning, with defaults and range: "Lifetime of a route (default 3s, or 10s with rules: ns2; at least 1ms)."
impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut notes = Vec::new();
        match self.used_under {
            Used::All => {}
            Used::Standard => notes.push("rules: rfc3561".to_owned()),
            Used::Ns2 => notes.push("rules: ns2".to_owned()),
        }
        let or_in_ns2 = match (self.used_under, self.ns2) {
            (Used::All, Some(value)) => format!(", or {value} with rules: ns2"),
            _ => String::new(),
        };
        match (self.default_means, self.default_under(self.used_under == Used::Ns2)) {
            (Some(means), _) => notes.push(format!("default: {means}{or_in_ns2}")),
            (None, Some(value)) => notes.push(format!("default {value}{or_in_ns2}")),
            (None, None) => {}
        }
        match self.form {
            Form::Time { min } if !min.is_zero() => notes.push(format!("at least {min:?}")),
            Form::Count { unit, min, max } if max < u32::MAX => notes.push(format!("{min} to {max} {unit}")),
            Form::Count { .. } => notes.push("0: no limit".to_owned()),
            _ => {}
        }
        f.write_str(self.doc)?;
        if notes.is_empty() { f.write_str(".") } else { write!(f, " ({}).", notes.join("; ")) }
    }
}

/// Settings of a protocol, for readers of files and writers of results.
pub trait Constants: Clone + Default {
    /// All constants, in the order of pages and schemas.
    const TABLE: &'static [Constant];
    /// Name of the protocol.
    const PROTOCOL: &'static str;
    /// One sentence or two about the table as a whole.
    const DOC: &'static str;

    /// Sets a constant. A value that its form does not accept changes nothing.
    fn set(&mut self, name: &str, value: Value);

    /// The value in force; `None` where it is derived or absent.
    fn get(&self, name: &str) -> Option<Value>;

    /// The constant of this name.
    fn constant(name: &str) -> Option<&'static Constant> {
        Self::TABLE.iter().find(|constant| constant.name == name)
    }
}

/// Writes a protocol's `Settings` from its table: a field for each constant, and fields that no file sets. A constant
/// has meaning, name, type, form and defaults.
///
/// ```text
/// constants! {
///     /// Constants of the protocol.
///     Settings of "AODV";
///     /// Hello messages that may be missed
///     allowed_hello_loss: u8 = Form::count("messages", 1, 250).is(2).not_in_ns2(),
/// }
/// ```
macro_rules! constants {
    (
        $(#[doc = $about:literal])+
        $Settings:ident of $protocol:literal $(, with $other:ident: $other_type:ty = $value:expr)?;
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $constant:expr),+ $(,)?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Settings {
            $(
                /// The rules that a node follows. They are no constant, and stand in no table.
                pub $other: $other_type,
            )?
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl $Settings {
            fn defaults(is_ns2: bool) -> $Settings {
                use $crate::constants::Setting;
                let mut defaults = <$Settings as $crate::constants::Constants>::TABLE
                    .iter()
                    .map(|constant| constant.default_under(is_ns2));
                $Settings {
                    $($other: $value,)?
                    $($field: Setting::of(defaults.next().flatten()).expect("invariant: a default of its type"),)+
                }
            }
        }

        impl Default for $Settings {
            fn default() -> $Settings {
                $Settings::defaults(false)
            }
        }

        impl $crate::constants::Constants for $Settings {
            const TABLE: &'static [$crate::constants::Constant] =
                &[$($constant.called(stringify!($field), concat!($($doc),+))),+];
            const PROTOCOL: &'static str = $protocol;
            const DOC: &'static str = concat!($($about),+).trim_ascii();

            fn set(&mut self, name: &str, value: $crate::constants::Value) {
                use $crate::constants::Setting;
                match name {
                    $(stringify!($field) => {
                        if let Some(value) = Setting::of(Some(value)) {
                            self.$field = value;
                        }
                    })+
                    _ => {}
                }
            }

            fn get(&self, name: &str) -> Option<$crate::constants::Value> {
                use $crate::constants::Setting;
                match name {
                    $(stringify!($field) => self.$field.value(),)+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use constants;

/// A type in which settings keep a constant.
pub(crate) trait Setting: Sized {
    /// `None` for a value of another type, or an absent one where a value is needed.
    fn of(value: Option<Value>) -> Option<Self>;
    fn value(&self) -> Option<Value>;
}

macro_rules! settings {
    ($($type:ty: $value:ident);+) => { $(
        impl Setting for $type {
            fn of(value: Option<Value>) -> Option<$type> {
                match value? {
                    Value::$value(value) => value.try_into().ok(),
                    _ => None,
                }
            }

            fn value(&self) -> Option<Value> {
                Some(Value::$value((*self).into()))
            }
        }
    )+ };
}

settings! { Duration: Time; u8: Count; u32: Count; bool: Switch; Key: Key }

impl<T: Setting> Setting for Option<T> {
    fn of(value: Option<Value>) -> Option<Option<T>> {
        if value.is_none() { Some(None) } else { T::of(value).map(Some) }
    }

    fn value(&self) -> Option<Value> {
        self.as_ref().and_then(T::value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{aodv, aodvv2, batman, dsr, gpsr};

    /// Checks that a file may give each default, and that the settings keep what a file gives.
    fn check<C: Constants + fmt::Debug + PartialEq>(ns2: Option<C>) {
        for constant in C::TABLE {
            for (is_ns2, settings) in [(false, Some(C::default())), (true, ns2.clone())] {
                let Some(mut settings) = settings else { continue };
                let default = constant.default_under(is_ns2);
                assert_eq!(settings.get(constant.name), default, "{}", constant.name);
                let is_unused = constant.used_under == Used::Ns2 && !is_ns2;
                let Some(value) = default.filter(|_| !is_unused) else { continue };
                assert!(constant.form.accepts(value), "{}: {value}", constant.name);
                let before = settings.clone();
                settings.set(constant.name, value);
                assert_eq!(settings, before);
            }
            let mut settings = C::default();
            let other = match constant.form {
                Form::Time { .. } => Value::Time(LONGEST),
                Form::Count { max, .. } => Value::Count(max),
                Form::Switch => Value::Switch(constant.default != Some(Value::Switch(true))),
                Form::Choice(names) => Value::Choice(names[names.len() - 1].0),
                Form::Key => Value::Key(Key::new([1; 32])),
            };
            settings.set(constant.name, other);
            assert_eq!(settings.get(constant.name), Some(other), "{} keeps its range's end", constant.name);
        }
    }

    #[test]
    fn every_constant_of_every_table_keeps_its_range_in_its_field() {
        check(Some(aodv::Settings::ns2()));
        check::<aodvv2::Settings>(None);
        check::<dsr::Settings>(None);
        check::<gpsr::Settings>(None);
        check::<batman::Settings>(None);
    }

    #[test]
    fn words_say_meaning_defaults_and_range() {
        let said = |name| aodv::Settings::constant(name).expect("a constant").to_string();
        assert_eq!(
            said("active_route_timeout"),
            "Lifetime of a route after its last use (default 3s, or 10s with rules: ns2; at least 1ms)."
        );
        assert!(said("delete_period").contains("; default: 5 * active_route_timeout; with hello, "));
        assert!(said("rest").contains("(rules: ns2; default 10s)"));
        assert!(said("net_diameter").ends_with("(default 35, or 30 with rules: ns2; 1 to 250 hops)."));
        assert!(said("gtsm").ends_with("(rules: rfc3561; default true)."));
    }
}
