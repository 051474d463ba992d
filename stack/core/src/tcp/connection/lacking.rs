//! The needs of agents that are not met: the peer did not agree to them, or the path is not known. The agents then
//! follow their written fallbacks.

use super::opening::{Opening, Wishes};
use crate::agent::{Needs, Path};
use crate::tcp::cx::Cx;
use crate::trace::{Lacking, TraceKind};

/// The state that decides which needs are met.
pub(super) struct Unmet<'a> {
    pub(super) wishes: Wishes,
    pub(super) opening: &'a Opening,
    pub(super) path: &'a Path,
    pub(super) is_synchronized: bool,
    /// Data has come, but no ACK-rate request.
    pub(super) is_unasked: bool,
}

impl Unmet<'_> {
    /// Traces, at each end, the features that the peer does not support.
    pub(super) fn trace_fallbacks(&self, cx: &mut Cx<'_>) {
        let mut traced = Vec::new();
        for what in self.by_peer_for_senders().into_iter().chain(self.by_peer_for_receiver()) {
            if !traced.contains(&what) {
                traced.push(what);
                cx.trace(TraceKind::Fallback(what));
            }
        }
    }

    /// Is called when the peer's data is over.
    pub(super) fn trace_never_asked(&self, cx: &mut Cx<'_>) {
        if self.was_never_asked() {
            cx.trace(TraceKind::Fallback(Lacking::RateRequest));
        }
    }

    /// Traces that the RTT stays unknown: the handshake was ambiguous (Karn), and there are no timestamps.
    pub(super) fn trace_unmeasured(&self, cx: &mut Cx<'_>) {
        let is_unknown = self.path.rtt.min.is_none() && !self.opening.agreed.timestamps;
        if self.wishes.receiver.rtt && is_unknown {
            cx.trace(TraceKind::Fallback(Lacking::Rtt));
        }
    }

    /// The unmet needs of the receiver agent.
    pub(super) fn for_receiver(&self) -> Vec<Lacking> {
        let of_path = self.unknown_of_path(self.wishes.receiver);
        self.by_peer_for_receiver().into_iter().chain(of_path).collect()
    }

    /// The unmet needs of the sender agents. A sender measures the path with its first data.
    pub(super) fn for_senders(&self) -> Vec<Lacking> {
        let of_path = self.unknown_of_path(Needs { rtt: false, ..self.wishes.senders });
        self.by_peer_for_senders().into_iter().chain(of_path).collect()
    }

    fn by_peer_for_receiver(&self) -> Vec<Lacking> {
        let agreed = self.opening.agreed.receiver_lacks(self.wishes.receiver);
        let unasked = self.was_never_asked().then_some(Lacking::RateRequest);
        self.opening.with_cookie(agreed.chain(unasked).collect(), self.is_synchronized)
    }

    fn by_peer_for_senders(&self) -> Vec<Lacking> {
        let agreed = self.opening.agreed.senders_lack(self.wishes.senders);
        self.opening.with_cookie(agreed.collect(), self.is_synchronized)
    }

    /// The needed facts about the path that are still unknown.
    fn unknown_of_path(&self, needs: Needs) -> impl Iterator<Item = Lacking> {
        let no_hops = self.path.hops_from_peer.or(self.path.hops_to_peer).is_none();
        let unknown = [
            (needs.hops && no_hops, Lacking::Hops),
            (needs.rtt && self.path.rtt.min.is_none(), Lacking::Rtt),
        ];
        unknown.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what)
    }

    /// Returns whether an agreed use of ACK-rate requests has brought none so far. An end that obeys requests and one
    /// that sends them make the same offer; only the data shows which one the peer is.
    fn was_never_asked(&self) -> bool {
        self.opening.agreed.use_ack_rate && self.is_unasked
    }
}
