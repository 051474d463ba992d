//! The values that an agent is made with.

use super::{DefaultValue, Param, Profile, Setting, Value};

/// Every parameter of one agent with the value in force. Agents read it once, when they are made.
///
/// Invariant 1: a parser filled this from the same table that the agent's constructor was written against, so
/// that asking for a name or a type that the table does not have is a mistake in the agent; each registered
/// agent is made in a test.
#[derive(Debug)]
pub struct Args {
    params: &'static [Param],
    profile: Profile,
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
        Args { params, profile, values: params.iter().zip(given).map(in_force).collect() }
    }

    pub fn profile(&self) -> Profile {
        self.profile
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

    /// The value of a parameter in the type that the agent keeps it in.
    pub(crate) fn read<T: Setting>(&self, name: &str) -> T {
        T::of(self.get(name)).unwrap_or_else(|| self.mistaken(name))
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
