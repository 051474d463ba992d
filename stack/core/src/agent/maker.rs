//! How a connection comes by its agents.

use std::error::Error;

use super::{HostPair, ReceiverAgent, SenderAgents};

/// Makes agents. Core knows none by name: an endpoint is given a maker and asks it once per connection, at SYN.
/// Specs were checked before, so making cannot fail.
pub trait AgentMaker: Send {
    /// Says what is wrong with a choice of agents, where, and what would be accepted.
    fn check(&self, agents: &AgentSpecs) -> Result<(), Box<dyn Error + Send + Sync>>;
    fn receiver(&self, spec: &str) -> Box<dyn ReceiverAgent>;
    /// Agents that watch a live connection's arrivals and say what they would have done.
    fn shadows(&self, spec: &str) -> Vec<Box<dyn ReceiverAgent>>;
    /// `between` are the connection's two hosts: their flows may have something in common.
    fn senders(&self, spec: &str, between: HostPair) -> SenderAgents;
}

/// The agents of a connection, as specs. `senders` and `shadows` are lists: `[newreno, limit:4]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSpecs {
    pub receiver: String,
    pub senders: String,
    pub shadows: String,
}

impl Default for AgentSpecs {
    fn default() -> AgentSpecs {
        AgentSpecs { receiver: "delayed".into(), senders: "[cubic]".into(), shadows: "[]".into() }
    }
}
