//! Texts that name exactly one agent.

use std::fmt;

use hopwise_core::agent::{ReceiverAgent, Serves};

use super::accepted::{AgentSpec, InForce, Settled};
use super::error::SpecError;
use super::parse::spec_in;
use super::role::{AtBaseStation, Receiver};
use crate::param::Profile;
use crate::registry::{self, Registry};

/// A spec that names a receiver agent.
#[derive(Clone, Debug)]
pub struct ReceiverSpec(AgentSpec<Receiver>);

impl ReceiverSpec {
    /// A list is refused, even one of a single item.
    pub fn parse(spec: &str) -> Result<ReceiverSpec, SpecError> {
        ReceiverSpec::parse_among(registry::in_force(), spec)
    }

    /// The same of another table of agents than that of the program.
    pub(crate) fn parse_among(agents: &Registry, spec: &str) -> Result<ReceiverSpec, SpecError> {
        spec_in(agents, spec, 0..spec.len()).map(ReceiverSpec)
    }

    /// Every parameter in force; those of a wrapper come before those of the wrapped agent.
    pub fn parameters(&self, profile: Profile) -> Vec<InForce> {
        self.0.parameters(profile)
    }

    /// A new agent for one connection.
    pub fn make(&self, profile: Profile) -> Box<dyn ReceiverAgent> {
        self.0.make(profile)
    }

    pub(crate) fn settle(self, profile: Profile) -> Settled<Receiver> {
        self.0.settle(profile)
    }
}

impl fmt::Display for ReceiverSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A spec that names a base-station agent.
#[derive(Clone, Debug)]
pub struct BaseStationSpec(AgentSpec<AtBaseStation>);

impl BaseStationSpec {
    /// A list is refused, even one of a single item.
    pub fn parse(spec: &str) -> Result<BaseStationSpec, SpecError> {
        spec_in(registry::in_force(), spec, 0..spec.len()).map(BaseStationSpec)
    }

    /// Every parameter in force.
    pub fn parameters(&self, profile: Profile) -> Vec<InForce> {
        self.0.parameters(profile)
    }

    /// A new agent for one flow. For `split` the makers of its two connections' agents.
    pub fn make(&self, profile: Profile) -> Serves {
        self.0.make(profile)
    }

    pub(crate) fn settle(self, profile: Profile) -> Settled<AtBaseStation> {
        self.0.settle(profile)
    }
}

impl fmt::Display for BaseStationSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
