//! How a connection comes by its agents: a spec is read once, and what was read makes the agents of each connection.

use std::error::Error;
use std::sync::Arc;

use super::{HostPair, ReceiverAgent, SenderAgents};

/// The problem of a spec: what is wrong, where, and what would be accepted.
pub type BadSpec = Box<dyn Error + Send + Sync>;

/// Specs that were read. Each call makes new agents, at SYN, and cannot fail.
pub type MakeReceiver = Arc<dyn Fn() -> Box<dyn ReceiverAgent> + Send + Sync>;
pub type MakeShadows = Arc<dyn Fn() -> Vec<Box<dyn ReceiverAgent>> + Send + Sync>;
/// Flows between the same two hosts may have something in common.
pub type MakeSenders = Arc<dyn Fn(HostPair) -> SenderAgents + Send + Sync>;

/// Reads specs of agents. Core knows none by name: an endpoint is given a maker and asks it when it gets rules, or
/// when a program chooses agents.
pub trait AgentMaker: Send {
    fn receiver(&self, spec: &str) -> Result<MakeReceiver, BadSpec>;
    /// Agents that watch a live connection's arrivals and say what they would have done.
    fn shadows(&self, list: &str) -> Result<MakeShadows, BadSpec>;
    fn senders(&self, list: &str) -> Result<MakeSenders, BadSpec>;
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
