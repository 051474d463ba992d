//! The agents' contracts. Events and views contain all that an agent may know; return values are all that it may do.
//!
//! A connection has one [receiver agent](ReceiverAgent), which decides *when to acknowledge*. Its list of [sender
//! agents](SenderAgent) decides *how much may be in flight, and not before when*. No agent has a timer, a back-pointer
//! or state of the connection; none builds a segment.

mod ack_request;
mod base_station;
mod ensemble;
mod maker;
mod needs;
mod path;
mod receiver;
mod sender;

pub use ack_request::{AckRequest, AckRequestForm};
pub use base_station::{
    ALL_PACKETS, AdvertisedWindow, BaseStationAgent, BaseStationMaker, Because, Dialect, Fate, FlowView,
    Kind, LinkNews, MakeServes, Order, Orders, Passing, Requires, Says, Serves, Side, Split,
};
pub use ensemble::{EnsembleMember, HostPair, Turn};
pub use maker::{AgentMaker, AgentSpecs, BadSpec, MakeReceiver, MakeSenders, MakeShadows};
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
