//! How a connection comes by its agents.

use std::error::Error;

use super::{ReceiverAgent, SenderAgent};

/// Makes agents. Core knows none by name: an endpoint is given a maker and asks it once per connection, at SYN.
/// Specs were checked before, so making cannot fail.
pub trait AgentMaker: Send {
    /// Says what is wrong with a choice of agents, where, and what would be accepted.
    fn check(&self, agents: &AgentSpecs) -> Result<(), Box<dyn Error + Send + Sync>>;
    fn receiver(&self, spec: &str) -> Box<dyn ReceiverAgent>;
    /// Agents that watch a live connection's arrivals and say what they would have done.
    fn shadows(&self, spec: &str) -> Vec<Box<dyn ReceiverAgent>>;
    fn senders(&self, spec: &str) -> Vec<Box<dyn SenderAgent>>;
}

/// What an agent asks for on SYN. What the peer lacks is traced once, and the agent follows its written
/// fallback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The peer tells its congestion window (receiver agents), or we tell ours (sender agents).
    pub peer_cwnd: bool,
    /// A sender agent would tell it in the window field of data segments, where the peer agrees.
    pub cwnd_in_window: bool,
    /// ACKs carry the number of duplicate ACKs that this hole caused.
    pub dup_count: bool,
    /// ACK-rate requests (TARR).
    pub rate_request: bool,
    /// Segments of a train say how many are still to come.
    pub told: bool,
    /// A sender agent takes turns with those of its host's flows to the same peer that do so too.
    pub turns: bool,
    pub hops: bool,
    pub rtt: bool,
}

impl Needs {
    #[must_use]
    pub fn union(self, other: Needs) -> Needs {
        Needs {
            peer_cwnd: self.peer_cwnd || other.peer_cwnd,
            cwnd_in_window: self.cwnd_in_window || other.cwnd_in_window,
            dup_count: self.dup_count || other.dup_count,
            rate_request: self.rate_request || other.rate_request,
            told: self.told || other.told,
            turns: self.turns || other.turns,
            hops: self.hops || other.hops,
            rtt: self.rtt || other.rtt,
        }
    }
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
