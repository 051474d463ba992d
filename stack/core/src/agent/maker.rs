//! The making of agents: a spec is parsed once, and the result makes the agents of each connection.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use super::{HostPair, ReceiverAgent, SenderAgents};

/// The problem of a spec: the fault, its place, and the accepted values.
pub type BadSpec = Box<dyn Error + Send + Sync>;

/// Parsed specs. Each call makes new agents, at SYN, and cannot fail.
pub type MakeReceiver = Arc<dyn Fn() -> Box<dyn ReceiverAgent> + Send + Sync>;
/// The same for shadows: all of one connection, in the order of the list.
pub type MakeShadows = Arc<dyn Fn() -> Vec<Box<dyn ReceiverAgent>> + Send + Sync>;
/// Flows between the same two hosts may share state.
pub type MakeSenders = Arc<dyn Fn(HostPair) -> SenderAgents + Send + Sync>;

/// Parses specs of agents. Core knows no agent by name: an endpoint has a maker, and calls it for new rules and for
/// agents that a program chooses.
pub trait AgentMaker: Send {
    /// Reads one spec, such as `dca:w=3`.
    fn receiver(&self, spec: &str) -> Result<MakeReceiver, BadSpec>;
    /// Agents that watch a live connection's arrivals and report what they would have done.
    fn shadows(&self, list: &str) -> Result<MakeShadows, BadSpec>;
    /// Reads a list such as `[newreno, limit:4]`: the first agent owns cwnd and ssthresh.
    fn senders(&self, list: &str) -> Result<MakeSenders, BadSpec>;
    /// The agents of a connection for which neither a rule nor a program nor the endpoint names any.
    fn default_specs(&self) -> AgentSpecs;
}

/// The agents of a connection, as specs; the last two are lists, such as `[newreno, limit:4]`.
/// A maker's defaults are borrowed, since many endpoints have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSpecs {
    /// The agent that decides when to acknowledge.
    pub receiver: Cow<'static, str>,
    /// The owner of cwnd and ssthresh, then the agents that narrow its allowance.
    pub senders: Cow<'static, str>,
    /// At most eight agents that only watch.
    pub shadows: Cow<'static, str>,
}
