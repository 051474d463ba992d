//! The values that an agent is made with.

use std::time::Duration;

use super::{DefaultValue, Param, Profile, Switch, Value};

/// Every parameter of one agent with the value in force. Agents read it once, when they are made.
///
/// Invariant 1: a parser filled this from the same table that the agent's constructor was written against, so
/// that asking for a name or a type that the table does not have is a mistake in the agent; each registered
/// agent is made in a test.
#[derive(Debug)]
pub struct Args {
    params: &'static [Param],
    values: Vec<Option<Value>>,
}

impl Args {
    /// `given` stands beside `params`, one place each.
    pub(crate) fn resolve(params: &'static [Param], given: &[Option<Value>], profile: Profile) -> Args {
        assert_eq!(params.len(), given.len(), "a place for each parameter");
        let in_force = |(param, given): (&Param, &Option<Value>)| {
            given.or_else(|| match (profile, param.ns2, param.default) {
                (Profile::Ns2, Some(value), _) | (_, _, DefaultValue::Is(value)) => Some(value),
                (_, _, DefaultValue::Required | DefaultValue::Unset(_)) => None,
            })
        };
        Args { params, values: params.iter().zip(given).map(in_force).collect() }
    }

    /// Each parameter with its value, or with what its absence means.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.params.iter().zip(&self.values).map(|(param, value)| {
            let text = match (value, param.default) {
                (Some(value), _) => value.to_string(),
                (None, DefaultValue::Unset(means)) => means.to_owned(),
                (None, _) => unreachable!("a parser refused the absence of `{}`", param.name),
            };
            (param.name, text)
        })
    }

    pub fn count(&self, name: &str) -> u64 {
        self.optional_count(name).unwrap_or_else(|| self.mistaken(name))
    }

    /// For counts whose range ends within 32 bits.
    pub fn count_u32(&self, name: &str) -> u32 {
        u32::try_from(self.count(name)).unwrap_or(u32::MAX)
    }

    pub fn optional_count(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Count(n) => Some(n),
            _ => self.mistaken(name),
        }
    }

    pub fn time(&self, name: &str) -> Duration {
        match self.get(name) {
            Some(Value::Time(time)) => time,
            _ => self.mistaken(name),
        }
    }

    pub fn optional_rate_bps(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Rate(bps) => Some(bps),
            _ => self.mistaken(name),
        }
    }

    /// In thousandths.
    pub fn ratio_milli(&self, name: &str) -> u32 {
        match self.get(name) {
            Some(Value::Ratio(milli)) => milli,
            _ => self.mistaken(name),
        }
    }

    pub fn switch(&self, name: &str) -> Switch {
        match self.get(name) {
            Some(Value::Switch(switch)) => switch,
            _ => self.mistaken(name),
        }
    }

    pub fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Some(Value::Choice(choice)) => choice,
            _ => self.mistaken(name),
        }
    }

    fn get(&self, name: &str) -> Option<Value> {
        let Some(place) = self.params.iter().position(|param| param.name == name) else {
            self.mistaken(name)
        };
        self.values[place]
    }

    fn mistaken(&self, name: &str) -> ! {
        panic!("invariant 1: the table has no `{name}` of this type: {:?}", self.params)
    }
}
