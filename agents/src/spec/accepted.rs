//! Specs that the parser has accepted.

use std::fmt;

use hopwise_core::agent::{Owner, ReceiverAgent, SenderAgent, Serves};

use super::error::SpecError;
use super::parse::spec_in;
use super::role::{AtBaseStation, CwndOwner, Narrower, Receiver, Role};
use crate::descriptor::Descriptor;
use crate::param::{Args, DefaultValue, Profile, Value};
use crate::registry::Registry;
use crate::sender::train::SharedPath;

/// One agent with the parameters that a spec gave it, and with its constructor.
///
/// Invariant: `given` has a place for each parameter, and every required one is filled.
#[derive(Clone, Debug)]
pub struct AgentSpec<R> {
    /// The outermost agent: the wrapper in `dup-count(delayed)`.
    pub(super) agent: &'static Descriptor,
    given: Vec<Option<Value>>,
    role: R,
}

/// The constructor of an agent with its values under one profile. They are looked up once, and not for each connection.
#[derive(Clone, Debug)]
pub(crate) struct Settled<R> {
    args: Args,
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
    /// Reads a spec that names an agent of this table.
    pub(crate) fn parse_among(agents: &Registry, spec: &str) -> Result<AgentSpec<R>, SpecError> {
        spec_in(agents, spec, 0..spec.len())
    }

    /// `None` if the agent cannot fill this place around `inner`.
    pub(super) fn new(
        agent: &'static Descriptor,
        given: Vec<Option<Value>>,
        inner: Option<AgentSpec<R>>,
    ) -> Option<AgentSpec<R>> {
        let role = R::of(agent.make, inner)?;
        Some(AgentSpec { agent, given, role })
    }

    /// The same agent at another place, if it can fill that one.
    pub(super) fn at<S: Role>(self) -> Option<AgentSpec<S>> {
        AgentSpec::new(self.agent, self.given, None)
    }

    /// Every parameter in force; a wrapper's come before the wrapped agent's.
    pub fn parameters(&self, profile: Profile) -> Vec<InForce> {
        let agent = self.agent.name;
        let own = self.args(profile);
        let mut all: Vec<_> = own.in_force().map(|(name, value)| InForce { agent, name, value }).collect();
        all.extend(self.role.inner().into_iter().flat_map(|inner| inner.parameters(profile)));
        all
    }

    fn args(&self, profile: Profile) -> Args {
        Args::resolve(self.agent.params, &self.given, profile)
    }

    /// For makers of many agents under one profile.
    pub(crate) fn settle(self, profile: Profile) -> Settled<R> {
        Settled { args: self.args(profile), role: self.role }
    }

    /// The given parameters that print: they differ from their default, or their default depends on the profile.
    fn printed(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.agent.params.iter().zip(&self.given).filter_map(|(param, given)| {
            let value = (*given)?;
            let silent = param.ns2.is_none() && param.default == DefaultValue::Is(value);
            (!silent).then_some((param.name, value))
        })
    }
}

impl AgentSpec<Receiver> {
    /// A new agent for one connection.
    pub fn make(&self, profile: Profile) -> Box<dyn ReceiverAgent> {
        self.role.make(&self.args(profile))
    }
}

impl AgentSpec<AtBaseStation> {
    /// A new agent for one flow. For `split` the makers of its two connections' agents.
    pub fn make(&self, profile: Profile) -> Serves {
        (self.role.0)(&self.args(profile))
    }
}

impl Settled<Receiver> {
    pub(crate) fn make(&self) -> Box<dyn ReceiverAgent> {
        self.role.make(&self.args)
    }
}

impl Settled<CwndOwner> {
    pub(super) fn make(&self, shared: impl FnOnce() -> SharedPath) -> Owner {
        self.role.make(&self.args, shared)
    }
}

impl Settled<Narrower> {
    pub(super) fn make(&self) -> Box<dyn SenderAgent> {
        (self.role.0)(&self.args)
    }
}

impl Settled<AtBaseStation> {
    pub(crate) fn make(&self) -> Serves {
        (self.role.0)(&self.args)
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
