//! Macros that make the table of an agent's parameters, the struct of their values, and enums of choices.

use std::time::Duration;

use super::{Switch, Value};

/// Writes `Params`, a struct with a field for each parameter: its meaning, name, type, form and default.
///
/// ```text
/// params! {
///     /// how often it asks again
///     every: u32 = Form::count("segments", 1, 65_535).is(32),
/// }
/// ```
///
/// The descriptor takes `Params::TABLE`, and `Params::of` reads the values of a spec. A name with a dash follows the
/// field, as in `far_limit as "far-limit"`. A shared parameter has its meaning already.
#[doc(hidden)]
#[macro_export]
macro_rules! __params {
    ($($(#[doc = $doc:literal])* $field:ident $(as $name:literal)?: $type:ty = $param:expr),+ $(,)?) => {
        #[derive(Clone, Copy, Debug)]
        struct Params {
            $($(#[doc = $doc])* $field: $type,)+
        }

        impl Params {
            const TABLE: &'static [$crate::param::Param] =
                &[$($param.called($crate::__params!(@name $field $($name)?), concat!($($doc),*))),+];

            fn of(args: &$crate::param::Args) -> Params {
                let mut args = args.in_order();
                Params { $($field: args.next($crate::__params!(@name $field $($name)?)),)+ }
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}

/// Writes an enum of the choices for a parameter, with the name of each choice in specs.
#[doc(hidden)]
#[macro_export]
macro_rules! __choices {
    ($enum:ident { $($(#[doc = $doc:literal])* $choice:ident = $name:literal),+ $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $enum {
            $($(#[doc = $doc])* $choice,)+
        }

        impl $enum {
            pub(crate) const FORM: $crate::param::Form = $crate::param::Form::Choice(&[$($name),+]);
        }

        impl $crate::param::Setting for $enum {
            fn of(value: Option<$crate::param::Value>) -> Option<$enum> {
                match value? {
                    $($crate::param::Value::Choice($name) => Some($enum::$choice),)+
                    _ => None,
                }
            }
        }
    };
}

pub use {__choices as choices, __params as params};

/// A type in which an agent keeps a parameter's value.
pub trait Setting: Sized {
    /// `None` if the value has another type. An absent value has a meaning in `Option` alone.
    fn of(value: Option<Value>) -> Option<Self>;
}

/// Reads a count, bits per second, or thousandths.
impl Setting for u64 {
    fn of(value: Option<Value>) -> Option<u64> {
        match value? {
            Value::Count(n) | Value::Rate(n) => Some(n),
            Value::Ratio(milli) => Some(milli.into()),
            _ => None,
        }
    }
}

/// For ranges that fit into 32 bits.
impl Setting for u32 {
    fn of(value: Option<Value>) -> Option<u32> {
        u64::of(value).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
    }
}

/// For ranges that fit into 8 bits.
impl Setting for u8 {
    fn of(value: Option<Value>) -> Option<u8> {
        u64::of(value).map(|n| u8::try_from(n).unwrap_or(u8::MAX))
    }
}

/// A ratio as a spec spells it.
impl Setting for f64 {
    fn of(value: Option<Value>) -> Option<f64> {
        if let Value::Ratio(milli) = value? { Some(f64::from(milli) / 1_000.0) } else { None }
    }
}

impl Setting for Duration {
    fn of(value: Option<Value>) -> Option<Duration> {
        if let Value::Time(time) = value? { Some(time) } else { None }
    }
}

impl Setting for Switch {
    fn of(value: Option<Value>) -> Option<Switch> {
        if let Value::Switch(switch) = value? { Some(switch) } else { None }
    }
}

impl Setting for &'static str {
    fn of(value: Option<Value>) -> Option<&'static str> {
        if let Value::Choice(name) = value? { Some(name) } else { None }
    }
}

impl<T: Setting> Setting for Option<T> {
    fn of(value: Option<Value>) -> Option<Option<T>> {
        if value.is_none() { Some(None) } else { T::of(value).map(Some) }
    }
}

/// A time below four seconds in four bytes, for the agent that most connections have. Others take `Duration`.
#[derive(Clone, Copy, Debug)]
pub struct Brief {
    ns: u32,
}

impl Brief {
    /// The same time.
    pub fn time(self) -> Duration {
        Duration::from_nanos(self.ns.into())
    }
}

impl Setting for Brief {
    fn of(value: Option<Value>) -> Option<Brief> {
        let ns = u32::try_from(Duration::of(value)?.as_nanos()).ok()?;
        Some(Brief { ns })
    }
}
