//! Flows of one host to one peer that take turns at sending (an *ensemble*, RFC 9040).

use std::net::IpAddr;

use super::{SendView, SenderAgent};
use crate::{Instant, Seq};

/// The owner of cwnd of a flow that takes turns with the other flows of its host to the same peer.
///
/// One flow of an ensemble has a *burst* in flight while the others wait. Members know their path together: where they
/// keep what they know is their own matter. A maker can give it to them, since it makes all members.
pub trait EnsembleMember: SenderAgent {
    /// Pure. The burst that only one flow of the ensemble may have in flight, named by its first sequence number.
    /// Another name is another burst, and flows that wait come before it. `None`: the flow sends without a turn.
    fn wanted_turn(&self, now: Instant, view: &SendView<'_>) -> Option<Seq>;
    /// Called while there is an ensemble, after each event of the flow. A flow that holds the turn alone is called only
    /// when another one wants it. The member takes over what others have found out, and adds what it has found out.
    /// `true` asks the endpoint to look at the holder again.
    fn share(&mut self, view: &SendView<'_>) -> bool;
    /// This flow is the first of a new ensemble. What members of an earlier one knew together is too old.
    fn begin(&mut self);
}

/// The two hosts of an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPair {
    /// The place of the link among the endpoint's links.
    pub link: usize,
    pub local: IpAddr,
    pub peer: IpAddr,
}

/// Where a flow stands in its ensemble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// It asks for no turn, and knows of no other flow.
    #[default]
    Free,
    /// It has the turn, and no other flow asks for it.
    Alone,
    /// Another flow has the turn: no new data leaves.
    Waiting,
    /// It has the turn, and others wait for it to end.
    Holding,
}
