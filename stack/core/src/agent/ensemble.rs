//! Flows of one host to one peer that take turns at sending (an *ensemble*, RFC 9040).

use std::net::IpAddr;

use super::{SendView, SenderAgent};
use crate::{Instant, Seq};

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
