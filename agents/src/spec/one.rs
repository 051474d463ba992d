//! A spec that was accepted.

use std::fmt;

use hopwise_core::agent::{BaseStationAgent, Cut, ReceiverAgent, SenderAgent};

use super::error::SpecError;
use super::parse::spec_in;
use crate::Profile;
use crate::base_station::split;
use crate::descriptor::{Descriptor, Kind, Make};
use crate::param::{Args, DefaultValue, Value};

/// One agent with the parameters that a spec gave it.
///
/// Invariant 1: `inner` is there exactly for wrappers. 2: `given` has a place for each parameter, and none
/// that is required is empty.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    agent: &'static Descriptor,
    given: Vec<Option<Value>>,
    inner: Option<Box<AgentSpec>>,
}

/// One parameter as results print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    pub agent: &'static str,
    pub name: &'static str,
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

    pub fn agent(&self) -> &'static Descriptor {
        self.agent
    }

    /// Every parameter in force, the wrapped agent's after the wrapper's.
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

    pub(super) fn make_sender(&self, profile: Profile) -> Box<dyn SenderAgent> {
        match self.agent.make {
            Make::Owner(make) | Make::Narrower(make) => make(&self.args(profile)),
            Make::Receiver(_) | Make::ReceiverAround(_) | Make::BaseStation(_) | Make::Cut(_) => {
                unreachable!("a parser accepted `{self}` as a sender")
            }
        }
    }

    fn make_base_station(&self, profile: Profile) -> Box<dyn BaseStationAgent> {
        match self.agent.make {
            Make::BaseStation(make) => make(&self.args(profile)),
            Make::Cut(_) => Box::new(split::whole()),
            _ => unreachable!("a parser accepted `{self}` for a base station"),
        }
    }

    fn cut(&self, profile: Profile) -> Option<Cut> {
        match self.agent.make {
            Make::Cut(cut) => Some(cut(&self.args(profile))),
            _ => None,
        }
    }

    fn args(&self, profile: Profile) -> Args {
        Args::resolve(self.agent.params, &self.given, profile)
    }

    /// The parameters worth printing: those that say something which silence does not.
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

/// A spec that names a receiver agent.
#[derive(Clone, Debug)]
pub struct ReceiverSpec(AgentSpec);

impl ReceiverSpec {
    pub fn parse(spec: &str) -> Result<ReceiverSpec, SpecError> {
        spec_in(spec, 0..spec.len(), Kind::Receiver).map(ReceiverSpec)
    }

    pub fn spec(&self) -> &AgentSpec {
        &self.0
    }

    pub fn parameters(&self, profile: Profile) -> Vec<InForce> {
        self.0.parameters(profile)
    }

    pub fn make(&self, profile: Profile) -> Box<dyn ReceiverAgent> {
        self.0.make_receiver(profile)
    }
}

impl fmt::Display for ReceiverSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A spec that names a base-station agent.
#[derive(Clone, Debug)]
pub struct BaseStationSpec(AgentSpec);

impl BaseStationSpec {
    pub fn parse(spec: &str) -> Result<BaseStationSpec, SpecError> {
        spec_in(spec, 0..spec.len(), Kind::BaseStation).map(BaseStationSpec)
    }

    pub fn spec(&self) -> &AgentSpec {
        &self.0
    }

    pub fn parameters(&self, profile: Profile) -> Vec<InForce> {
        self.0.parameters(profile)
    }

    pub fn make(&self, profile: Profile) -> Box<dyn BaseStationAgent> {
        self.0.make_base_station(profile)
    }

    /// How flows are cut in two, where this spec says so.
    pub fn cut(&self, profile: Profile) -> Option<Cut> {
        self.0.cut(profile)
    }
}

impl fmt::Display for BaseStationSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
