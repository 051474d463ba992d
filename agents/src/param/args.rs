//! The parameter values of one agent.

use super::{DefaultValue, Param, Profile, Setting, Value};

/// The values from one on. [`params!`](super::params) reads them.
#[doc(hidden)]
#[derive(Debug)]
pub struct InOrder<'a> {
    args: &'a Args,
    place: usize,
}

impl InOrder<'_> {
    /// The next value. It belongs to `name`, since [`params!`](super::params) writes the table in the same order.
    #[inline]
    pub fn next<T: Setting>(&mut self, name: &str) -> T {
        let place = self.place;
        self.place += 1;
        debug_assert_eq!(self.args.params.get(place).map(|param| param.name), Some(name), "invariant 1");
        let value = self.args.values.get(place).and_then(|value| T::of(*value));
        value.unwrap_or_else(|| self.args.mistaken(name))
    }
}

/// Every parameter of one agent, with its value in force. An agent reads the values once, at construction.
///
/// Invariant 1: the parser and the agent's constructor use the same table. A name or a type that the table lacks is
/// thus an error in the agent. A test constructs every registered agent.
#[derive(Clone, Debug)]
pub struct Args {
    params: &'static [Param],
    /// The profile of the maker, for an agent that makes other agents: `split`.
    pub(crate) profile: Profile,
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

    /// The values that a spec leaves out, for an agent that is another one in part: `convoy`. None may be required.
    pub(crate) fn standard(params: &'static [Param], profile: Profile) -> Args {
        Args::resolve(params, &vec![None; params.len()], profile)
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

    /// Reads all parameters in the order of the table.
    #[doc(hidden)]
    pub fn in_order(&self) -> InOrder<'_> {
        InOrder { args: self, place: 0 }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::param::{Form, params};

    params! {
        /// one
        first: u32 = Form::count("segments", 0, 9).is(1),
        /// another
        second: u32 = Form::count("segments", 0, 9).is(2),
    }

    #[test]
    fn values_are_found_in_the_order_of_the_table_and_by_name() {
        let args = Args::resolve(Params::TABLE, &[None, Some(Value::Count(7))], Profile::Modern);
        let Params { first, second } = Params::of(&args);
        assert_eq!((first, second), (1, 7));
        assert_eq!((args.read::<u32>("second"), args.read::<u32>("first")), (7, 1));
    }

    #[test]
    #[should_panic(expected = "invariant 1")]
    fn a_value_of_another_type_is_an_error_of_the_agent() {
        Args::resolve(Params::TABLE, &[None, None], Profile::Modern).in_order().next::<Duration>("first");
    }

    #[test]
    #[should_panic(expected = "the table has no `third`")]
    fn a_name_that_the_table_lacks_is_an_error_of_the_agent() {
        Args::resolve(Params::TABLE, &[None, None], Profile::Modern).read::<u32>("third");
    }
}
