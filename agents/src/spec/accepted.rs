//! Specs that the parser has accepted.

use std::fmt;

use hopwise_core::agent::{Owner, ReceiverAgent, SenderAgent, Serves};

use crate::descriptor::{Descriptor, Make};
use crate::param::{Args, DefaultValue, Profile, Value};
use crate::sender::train::SharedPath;

/// One agent with the parameters that a spec gave it.
///
/// Invariant 1: `inner` is `Some` exactly for wrappers. 2: `given` has a place for each parameter, and every required
/// one is filled.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    agent: &'static Descriptor,
    given: Vec<Option<Value>>,
    inner: Option<Box<AgentSpec>>,
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

impl AgentSpec {
    pub(super) fn new(
        agent: &'static Descriptor,
        given: Vec<Option<Value>>,
        inner: Option<Box<AgentSpec>>,
    ) -> AgentSpec {
        assert_eq!(agent.wraps(), inner.is_some(), "invariant 1");
        assert_eq!(agent.params.len(), given.len(), "invariant 2");
        AgentSpec { agent, given, inner }
    }

    /// The outermost agent: the wrapper in `dup-count(delayed)`.
    pub fn agent(&self) -> &'static Descriptor {
        self.agent
    }

    /// Every parameter in force; those of a wrapper come before those of the wrapped agent.
    pub fn parameters(&self, profile: Profile) -> Vec<InForce> {
        let agent = self.agent.name;
        let own = self.args(profile);
        let mut all: Vec<_> = own.in_force().map(|(name, value)| InForce { agent, name, value }).collect();
        all.extend(self.inner.iter().flat_map(|inner| inner.parameters(profile)));
        all
    }

    pub(super) fn make_receiver(&self, profile: Profile) -> Box<dyn ReceiverAgent> {
        match (self.agent.make, &self.inner) {
            (Make::Receiver(make), None) => make(&self.args(profile)),
            (Make::ReceiverAround(make), Some(inner)) => {
                make(&self.args(profile), inner.make_receiver(profile))
            }
            _ => unreachable!("a parser accepted `{self}` as a receiver"),
        }
    }

    pub(super) fn make_owner(&self, profile: Profile, shared: impl FnOnce() -> SharedPath) -> Owner {
        match self.agent.make {
            Make::Owner(make) => Owner::Alone(make(&self.args(profile))),
            Make::Member(make) => Owner::Member(make(&self.args(profile), shared())),
            _ => unreachable!("a parser accepted `{self}` as an owner of cwnd"),
        }
    }

    pub(super) fn make_narrower(&self, profile: Profile) -> Box<dyn SenderAgent> {
        match self.agent.make {
            Make::Narrower(make) => make(&self.args(profile)),
            _ => unreachable!("a parser accepted `{self}` as a sender that narrows"),
        }
    }

    pub(super) fn make_base_station(&self, profile: Profile) -> Serves {
        match self.agent.make {
            Make::BaseStation(make) => make(&self.args(profile)),
            _ => unreachable!("a parser accepted `{self}` for a base station"),
        }
    }

    fn args(&self, profile: Profile) -> Args {
        Args::resolve(self.agent.params, &self.given, profile)
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

impl fmt::Display for AgentSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.agent.name)?;
        if let Some(inner) = &self.inner {
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
