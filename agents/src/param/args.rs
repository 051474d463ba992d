//! The parameter values of one agent.

use super::{DefaultValue, Param, Profile, Setting, Value};

/// Every parameter of one agent, with its value in force. An agent reads the values once, at construction.
///
/// Invariant 1: the parser and the agent's constructor use the same table. A name or a type that the table lacks is
/// thus an error in the agent. A test constructs every registered agent.
#[derive(Clone, Debug)]
pub struct Args {
    params: &'static [Param],
    profile: Profile,
    values: Vec<Option<Value>>,
}

impl Args {
    /// `given` has one place for each of `params`.
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

    /// The profile of the maker, for an agent that makes other agents: `split`.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Each parameter with its value as text, or with the meaning of its absence.
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

    /// The value of a parameter in the agent's own type for it. A name or a type that the table lacks is an error in
    /// the agent: it panics. [`params!`](super::params) makes table and type one.
    pub fn read<T: Setting>(&self, name: &str) -> T {
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
