//! Constants of routing protocols. Each protocol has one table of them, with name, unit, range, defaults and meaning.
//! Its settings are made from the table here. Files, their schema, errors and results are made from it elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::on_demand::Key;

/// One constant of a protocol.
#[derive(Debug)]
pub struct Constant {
    /// The name in files, as the specification spells it, in lower case.
    pub name: &'static str,
    /// The values that it takes.
    pub form: ConstantForm,
    /// `None`: it is derived from other constants, or absent.
    pub default: Option<ConstantValue>,
    /// Default in words, where the value is not enough.
    pub(crate) default_means: Option<&'static str>,
    /// Default under the rules of ns-2, where it differs.
    pub ns2: Option<ConstantValue>,
    /// The rules of ns-2 use it too.
    is_in_ns2: bool,
    /// The reason why only simulations obey it.
    pub only_simulated: Option<OnlySimulated>,
    doc: &'static str,
}

/// The rules that a node follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleSet {
    /// The rules of the protocol's specification, such as RFC 3561.
    #[default]
    Standard,
    /// The rules of ns-2 2.35, its defective local repair included.
    Ns2,
}

/// The reason why only simulations obey a part of a protocol's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlySimulated {
    /// No daemon here speaks the protocol, and kernels do not put its headers into packets.
    Protocol,
    /// Kernels and daemons follow the specification alone.
    Rules,
    /// The keys of daemons are in a file of their own.
    Signed,
    /// Programs and kernels set the hop limit of the data that daemons forward.
    HopLimit,
    /// The kernel forwards: daemons see neither the sources of packets nor the packets that wait.
    Forwarding,
}

/// The constants that a file or a program gives to a protocol. All other constants have the defaults of the rule set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstantValues {
    /// The rules that the node follows.
    pub rules: RuleSet,
    values: BTreeMap<&'static str, ConstantValue>,
}

impl ConstantValues {
    /// No constant is given; all have the defaults of these rules.
    pub fn of(rules: RuleSet) -> ConstantValues {
        ConstantValues { rules, ..ConstantValues::default() }
    }

    /// The value given to a constant.
    pub fn get(&self, name: &str) -> Option<ConstantValue> {
        self.values.get(name).copied()
    }

    /// Gives a value that the constant's form accepts.
    pub fn set(&mut self, name: &'static str, value: ConstantValue) {
        self.values.insert(name, value);
    }

    /// True if the constant is given and switched on.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == Some(ConstantValue::Switch(true))
    }

    /// True if no constant is given.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The given constants in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, ConstantValue)> {
        self.values.iter().map(|(name, value)| (*name, *value))
    }
}

/// Values that a constant takes, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantForm {
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
pub(crate) const LONGEST: Duration = Duration::from_secs(3_600);

/// Numbers beyond these are slips.
pub(crate) const MOST_PACKETS: u32 = 1 << 16;
pub(crate) const MOST_ROUTES: u32 = 1 << 20;

/// The value of a constant, in the form that its table gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantValue {
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

impl ConstantForm {
    /// Times of at least `min_ms` milliseconds.
    pub(crate) const fn time(min_ms: u64) -> ConstantForm {
        ConstantForm::Time { min: Duration::from_millis(min_ms) }
    }

    pub(crate) const fn count(unit: &'static str, min: u32, max: u32) -> ConstantForm {
        ConstantForm::Count { unit, min, max }
    }

    /// Events in a second; 0 sets no limit.
    pub(crate) const fn per_second(unit: &'static str) -> ConstantForm {
        ConstantForm::count(unit, 0, u32::MAX)
    }

    /// A constant with this default: a count, ms, `ON` or `OFF`, or the index of a choice.
    pub(crate) const fn is(self, raw: u32) -> Constant {
        Constant { default: Some(self.value(raw)), ..self.unset("") }
    }

    /// A constant that is derived from other constants unless it is set, or is absent.
    pub(crate) const fn unset(self, means: &'static str) -> Constant {
        let default_means = if means.is_empty() { None } else { Some(means) };
        Constant {
            name: "",
            form: self,
            default: None,
            default_means,
            ns2: None,
            is_in_ns2: true,
            only_simulated: None,
            doc: "",
        }
    }

    const fn value(self, raw: u32) -> ConstantValue {
        match self {
            ConstantForm::Time { .. } => ConstantValue::Time(Duration::from_millis(raw as u64)),
            ConstantForm::Count { .. } => ConstantValue::Count(raw),
            ConstantForm::Switch => ConstantValue::Switch(raw != OFF),
            ConstantForm::Choice(names) => ConstantValue::Choice(names[raw as usize].0),
            ConstantForm::Key => panic!("a key has no default"),
        }
    }

    /// Returns whether this form takes the value.
    pub fn accepts(self, value: ConstantValue) -> bool {
        match (self, value) {
            (ConstantForm::Time { min }, ConstantValue::Time(time)) => (min..=LONGEST).contains(&time),
            (ConstantForm::Count { min, max, .. }, ConstantValue::Count(count)) => {
                (min..=max).contains(&count)
            }
            (ConstantForm::Choice(names), ConstantValue::Choice(name)) => {
                names.iter().any(|(known, _)| *known == name)
            }
            (ConstantForm::Switch, ConstantValue::Switch(_)) | (ConstantForm::Key, ConstantValue::Key(_)) => {
                true
            }
            _ => false,
        }
    }
}

/// Accepted values, for a message: "a whole number of hops from 1 to 250".
impl fmt::Display for ConstantForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ConstantForm::Time { min } if min.is_zero() => f.write_str("a time of at most an hour"),
            ConstantForm::Time { min } => write!(f, "a time from {min:?} to an hour"),
            ConstantForm::Count { unit, min, max } => {
                write!(f, "a whole number of {unit} from {min} to {max}")
            }
            ConstantForm::Switch => f.write_str("true or false"),
            ConstantForm::Choice(names) => {
                let names: Vec<_> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
                write!(f, "{}", names.join(" or "))
            }
            ConstantForm::Key => f.write_str("a text that others cannot guess"),
        }
    }
}

impl fmt::Display for ConstantValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConstantValue::Time(Duration::ZERO) => f.write_str("0s"),
            ConstantValue::Time(time) => write!(f, "{time:?}"),
            ConstantValue::Count(count) => write!(f, "{count}"),
            ConstantValue::Switch(is_on) => write!(f, "{is_on}"),
            ConstantValue::Choice(name) => f.write_str(name),
            ConstantValue::Key(_) => f.write_str("a key"),
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
        self.is_in_ns2 = false;
        self
    }

    /// The same constant, which only simulations obey.
    pub(crate) const fn only_simulated(mut self, why: OnlySimulated) -> Constant {
        self.only_simulated = Some(why);
        self
    }

    pub(crate) fn default_under(&self, rules: RuleSet) -> Option<ConstantValue> {
        self.ns2.filter(|_| rules == RuleSet::Ns2).or(self.default)
    }

    /// True if the constant has an effect under these rules.
    pub fn is_used_under(&self, rules: RuleSet) -> bool {
        self.is_in_ns2 || rules == RuleSet::Standard
    }
}

/// Meaning, with defaults and range: "Lifetime of a route (default 3s, or 10s with rules: ns2; at least 1ms)."
impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut notes = Vec::new();
        if !self.is_in_ns2 {
            notes.push("rules: rfc3561".to_owned());
        }
        let in_ns2 = self.ns2.filter(|_| self.is_in_ns2);
        let or_in_ns2 = in_ns2.map_or_else(String::new, |value| format!(", or {value} with rules: ns2"));
        match (self.default_means, self.default) {
            (Some(means), _) => notes.push(format!("default: {means}{or_in_ns2}")),
            (None, Some(value)) => notes.push(format!("default {value}{or_in_ns2}")),
            (None, None) => {}
        }
        match self.form {
            ConstantForm::Time { min } if !min.is_zero() => notes.push(format!("at least {min:?}")),
            ConstantForm::Count { unit, min, max } if max < u32::MAX => {
                notes.push(format!("{min} to {max} {unit}"));
            }
            ConstantForm::Count { .. } => notes.push("0: no limit".to_owned()),
            _ => {}
        }
        f.write_str(self.doc)?;
        if notes.is_empty() { f.write_str(".") } else { write!(f, " ({}).", notes.join("; ")) }
    }
}

/// Writes a protocol's `Settings` from its table: a field for each constant, and fields that no file sets. A constant
/// has meaning, name, type, form and defaults.
///
/// ```text
/// constants! {
///     /// Constants of the protocol.
///     Settings;
///     /// Hello messages that may be missed
///     allowed_hello_loss: u8 = Form::count("messages", 1, 250).is(2).not_in_ns2(),
/// }
/// ```
macro_rules! constants {
    (
        $(#[doc = $about:literal])+
        $Settings:ident $(with $rules:ident)?;
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $constant:expr),+ $(,)?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Settings {
            $(
                /// The rules that a node follows. They are no constant, and stand in no table.
                pub $rules: $crate::constants::RuleSet,
            )?
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl $Settings {
            /// All constants, in the order of pages and schemas.
            pub const CONSTANTS: &'static [$crate::constants::Constant] =
                &[$($constant.called(stringify!($field), concat!($($doc),+))),+];
        }

        impl From<&$crate::constants::ConstantValues> for $Settings {
            fn from(given: &$crate::constants::ConstantValues) -> $Settings {
                use $crate::constants::Setting;
                let mut values = $Settings::CONSTANTS
                    .iter()
                    .map(|constant| given.get(constant.name).or(constant.default_under(given.rules)));
                $Settings {
                    $($rules: given.rules,)?
                    $($field: Setting::of(values.next().flatten()).expect("invariant: a value that its form takes"),)+
                }
            }
        }

        impl Default for $Settings {
            fn default() -> $Settings {
                $Settings::from(&$crate::constants::ConstantValues::default())
            }
        }
    };
}

pub(crate) use constants;

/// A type in which settings keep a constant.
pub(crate) trait Setting: Sized {
    /// `None` for a value of another type, or an absent one where a value is needed.
    fn of(value: Option<ConstantValue>) -> Option<Self>;
}

macro_rules! settings {
    ($($type:ty: $value:ident);+) => { $(
        impl Setting for $type {
            fn of(value: Option<ConstantValue>) -> Option<$type> {
                if let ConstantValue::$value(value) = value? { value.try_into().ok() } else { None }
            }
        }
    )+ };
}

settings! { Duration: Time; u8: Count; u32: Count; bool: Switch; Key: Key }

impl<T: Setting> Setting for Option<T> {
    fn of(value: Option<ConstantValue>) -> Option<Option<T>> {
        if value.is_none() { Some(None) } else { T::of(value).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use crate::aodv;

    #[test]
    fn words_say_meaning_defaults_and_range() {
        let said = |name| aodv::DESCRIPTOR.constant(name).expect("a constant").to_string();
        assert_eq!(
            said("active_route_timeout"),
            "Lifetime of a route after its last use (default 3s, or 10s with rules: ns2; at least 1ms)."
        );
        assert!(
            said("my_route_timeout").contains("(default: 2 * active_route_timeout, or 10s with rules: ns2; ")
        );
        assert!(said("hello_interval").contains("(rules: rfc3561; default 1s; "));
        assert!(said("net_diameter").ends_with("(default 35, or 30 with rules: ns2; 1 to 250 hops)."));
        assert!(said("gtsm").ends_with("(rules: rfc3561; default true)."));
    }
}
