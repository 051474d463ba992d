//! The agents' contracts. Events and views contain all that an agent may know; return values are all that it may do.
//!
//! A connection has one [receiver agent](ReceiverAgent), which decides *when to acknowledge*. Its list of [sender
//! agents](SenderAgent) decides *how much may be in flight, and not before when*. No agent has a timer, a back-pointer
//! or state of the connection; none builds a segment.

use std::borrow::Cow;
use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;

use crate::{Instant, Seq};

mod base_station;
mod needs;
mod path;
mod receiver;
mod sender;

pub use base_station::{
    ALL_PACKETS, AdvertisedWindow, BaseStationAgent, BaseStationMaker, Because, Dialect, Fate, FlowView,
    Kind, LinkNews, MakeServes, Order, Orders, Passing, Requires, Says, Serves, Side, Split,
};
pub use needs::Needs;
pub use path::{HopSource, Path, PathEvent, PathReaction, Rtt};
pub use receiver::{
    AckDecided, AckNote, AckRule, AckVerdict, Arrival, Basis, By, Class, Owed, ReceiverAgent, RecvView, Why,
};
pub use sender::{
    Acked, Allowance, CWND_GAUGE, Count, DataNote, DupAck, FastEnd, FastRetransmit, Loss, LossKind, Owner,
    Recovered, Recovering, Reduction, SSTHRESH_GAUGE, SendView, SenderAgent, SenderAgents, Sent, SentKind,
    Tunables,
};

/// Writes an agent's answer to what it needs: `needs!(hops, rtt);`
#[macro_export]
macro_rules! needs {
    ($($need:ident),+ $(,)?) => {
        fn needs(&self) -> $crate::agent::Needs {
            $crate::agent::Needs { $($need: true,)+ ..Default::default() }
        }
    };
}

/// Writes the empty bodies of the events that an agent ignores, so that a reader sees them in one line:
/// `ignores!(on_sent, on_path);`
#[macro_export]
macro_rules! ignores {
    ($($event:ident),+ $(,)?) => { $( $crate::ignores!(@one $event); )+ };
    (@one on_ack) => {
        fn on_ack(&mut self, _: &$crate::agent::AckDecided, _: &$crate::agent::RecvView<'_>) {}
    };
    (@one on_sent) => {
        fn on_sent(&mut self, _: &$crate::agent::Sent, _: &$crate::agent::SendView<'_>) {}
    };
    (@one on_acked) => {
        fn on_acked(&mut self, _: &$crate::agent::Acked, _: &$crate::agent::SendView<'_>) {}
    };
    (@one on_dup_ack) => {
        fn on_dup_ack(
            &mut self,
            _: &$crate::agent::DupAck,
            _: &$crate::agent::SendView<'_>,
        ) -> Option<$crate::agent::FastRetransmit> {
            None
        }
    };
    (@one on_loss) => {
        fn on_loss(
            &mut self,
            _: &$crate::agent::Loss,
            _: &$crate::agent::SendView<'_>,
        ) -> Option<$crate::agent::Reduction> {
            None
        }
    };
    (@one on_recovered) => {
        fn on_recovered(&mut self, _: $crate::agent::Recovered, _: &$crate::agent::SendView<'_>) {}
    };
    (@one on_path) => {
        fn on_path(
            &mut self,
            _: &$crate::agent::PathEvent,
            _: &$crate::agent::SendView<'_>,
        ) -> $crate::agent::PathReaction {
            $crate::agent::PathReaction::None
        }
    };
    (@one narrow) => {
        fn narrow(
            &self,
            _: $crate::Instant,
            _: &$crate::agent::SendView<'_>,
            so_far: $crate::agent::Allowance,
        ) -> $crate::agent::Allowance {
            so_far
        }
    };
    (@one tune) => {
        fn tune(&self, _: &mut $crate::agent::Tunables) {}
    };
    (@one note) => {
        fn note(
            &self,
            _: $crate::Seq,
            _: &$crate::agent::SendView<'_>,
            _: &$crate::agent::Allowance,
            _: &mut $crate::agent::DataNote,
        ) {
        }
    };
}

// A sender's requests for ACKs of its peer.

/// The request for ACKs in a data segment, in our own TCP options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRequest {
    /// One ACK for each so many segments from now on (an ACK-rate request, TARR). 0 requests one ACK at once.
    Rate(u8),
    /// One ACK after so many segments, this one included. 1 requests one ACK at once.
    After(u8),
}

/// A form of ACK requests; the handshake agrees on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRequestForm {
    /// [`AckRequest::Rate`], in the option of draft-ietf-tcpm-ack-rate-request.
    Rate,
    /// [`AckRequest::After`], in our own option.
    After,
}

impl AckRequest {
    /// The request of one segment of a read, with `behind` segments of the read behind it. The read's last segment
    /// carries the request. A count holds for each segment.
    pub(crate) fn with_behind(self, behind: u32) -> Option<AckRequest> {
        match self {
            AckRequest::After(segments) => {
                Some(AckRequest::After(segments.saturating_add(u8::try_from(behind).unwrap_or(u8::MAX))))
            }
            AckRequest::Rate(_) => (behind == 0).then_some(self),
        }
    }
}

// The making of agents: a spec is parsed once, and the result makes the agents of each connection.

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

// Flows of one host to one peer that take turns at sending (an *ensemble*, RFC 9040).

/// The owner of cwnd of a flow that takes turns with the other flows of its host to the same peer.
///
/// One flow of an ensemble has a *burst* in flight while the others wait. Members share their knowledge of the path and
/// decide themselves where to keep it. A maker can give them a common place, since it makes all members.
pub trait EnsembleMember: SenderAgent {
    /// Pure. The burst that only one flow may have in flight, named by its first sequence number. Another name is
    /// another burst, and waiting flows come before it. `None`: the flow sends without a turn.
    fn wanted_turn(&self, now: Instant, view: &SendView<'_>) -> Option<Seq>;
    /// Called while there is an ensemble, after each event of the flow. For a flow that holds the turn alone it is
    /// called only when another flow wants it. The member reads the others' findings and adds its own. `true` makes the
    /// endpoint look at the holder again.
    fn share(&mut self, view: &SendView<'_>) -> bool;
    /// This flow is the first of a new ensemble. Knowledge of earlier members is too old.
    fn begin(&mut self);
}

/// The two hosts of an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPair {
    /// The place of the link among the endpoint's links.
    pub link: usize,
    /// Our address, as these flows have it.
    pub local: IpAddr,
    /// The peer's address; the ports of both ends are left out.
    pub peer: IpAddr,
}

/// The place of a flow in its ensemble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// It wants no turn, and knows of no other flow.
    #[default]
    Free,
    /// It has the turn, and no other flow wants it.
    Alone,
    /// Another flow has the turn: no new data leaves.
    Waiting,
    /// It has the turn, and others wait for its end.
    Holding,
}
