//! Specs that the parser has accepted.

use std::fmt;

use hopwise_core::agent::{Owner, ReceiverAgent, SenderAgent, Serves};

use super::role::{AtBaseStation, First, Narrower, Receiver, Role};
use crate::descriptor::Descriptor;
use crate::param::{Args, DefaultValue, Profile, Value};
use crate::sender::train::SharedPath;

/// One agent with the parameters that a spec gave it, and with its constructor.
///
/// Invariant: `given` has a place for each parameter, and every required one is filled.
#[derive(Clone, Debug)]
pub(crate) struct AgentSpec<R> {
    agent: &'static Descriptor,
    given: Vec<Option<Value>>,
    /// The values in force under each profile: they are looked up once, and not for each connection.
    modern: Args,
    ns2: Args,
    role: R,
}

/// One parameter as results print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The agent that has the parameter: a wrapper's spec gives the parameters of several agents.
    pub agent: &'static str,
    /// The key in a spec.
    pub name: &'static str,
    /// As a spec spells it. For a parameter that is unset, the words of [`DefaultValue::Unset`].
    pub value: String,
}

impl<R: Role> AgentSpec<R> {
    /// `None` if the agent cannot fill this place around `inner`.
    pub(super) fn new(
        agent: &'static Descriptor,
        given: Vec<Option<Value>>,
        inner: Option<AgentSpec<R>>,
    ) -> Option<AgentSpec<R>> {
        let role = R::of(agent.make, inner)?;
        let [modern, ns2] =
            [Profile::Modern, Profile::Ns2].map(|profile| Args::resolve(agent.params, &given, profile));
        Some(AgentSpec { agent, given, modern, ns2, role })
    }

    /// The same agent at another place, if it can fill that one.
    pub(super) fn at<S: Role>(self) -> Option<AgentSpec<S>> {
        AgentSpec::new(self.agent, self.given, None)
    }

    /// The outermost agent: the wrapper in `dup-count(delayed)`.
    pub(super) fn agent(&self) -> &'static Descriptor {
        self.agent
    }

    /// Every parameter in force; those of a wrapper come before those of the wrapped agent.
    pub(super) fn parameters(&self, profile: Profile) -> Vec<InForce> {
        let agent = self.agent.name;
        let own = self.args(profile);
        let mut all: Vec<_> = own.in_force().map(|(name, value)| InForce { agent, name, value }).collect();
        all.extend(self.role.inner().into_iter().flat_map(|inner| inner.parameters(profile)));
        all
    }

    fn args(&self, profile: Profile) -> &Args {
        match profile {
            Profile::Modern => &self.modern,
            Profile::Ns2 => &self.ns2,
        }
    }

    /// The given parameters that print: those that differ from their default, or whose default depends on the profile.
    fn printed(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.agent.params.iter().zip(&self.given).filter_map(|(param, given)| {
            let value = (*given)?;
            let silent = param.ns2.is_none() && param.default == DefaultValue::Is(value);
            (!silent).then_some((param.name, value))
        })
    }
}

impl AgentSpec<Receiver> {
    pub(super) fn make(&self, profile: Profile) -> Box<dyn ReceiverAgent> {
        let args = self.args(profile);
        match &self.role {
            Receiver::Alone(make) => make(args),
            Receiver::Around(make, inner) => make(args, inner.make(profile)),
        }
    }
}

impl AgentSpec<First> {
    pub(super) fn make(&self, profile: Profile, shared: impl FnOnce() -> SharedPath) -> Owner {
        let args = self.args(profile);
        match self.role {
            First::Alone(make) => Owner::Alone(make(args)),
            First::Member(make) => Owner::Member(make(args, shared())),
        }
    }
}

impl AgentSpec<Narrower> {
    pub(super) fn make(&self, profile: Profile) -> Box<dyn SenderAgent> {
        (self.role.0)(self.args(profile))
    }
}

impl AgentSpec<AtBaseStation> {
    pub(super) fn make(&self, profile: Profile) -> Serves {
        (self.role.0)(self.args(profile))
    }
}

impl<R: Role> fmt::Display for AgentSpec<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.agent.name)?;
        if let Some(inner) = self.role.inner() {
            write!(f, "({inner})")?;
        }
        let only = self.printed().count() == 1;
        for (i, (name, value)) in self.printed().enumerate() {
            f.write_str(if i == 0 { ":" } else { "," })?;
            if only && self.agent.shorthand == Some(name) {
                write!(f, "{value}")?;
            } else {
                write!(f, "{name}={value}")?;
            }
        }
        Ok(())
    }
}
