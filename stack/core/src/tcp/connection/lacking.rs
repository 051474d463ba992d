//! Agents do without some of their needs: the peer did not agree to them, or nothing tells them of the path. They
//! follow their written fallbacks then.

use super::opening::{Opening, Wishes};
use crate::agent::{Needs, Path};
use crate::tcp::cx::Cx;
use crate::trace::{Lacking, TraceKind};

/// The state that the answer depends on.
pub(super) struct Unmet<'a> {
    pub(super) wishes: Wishes,
    pub(super) opening: &'a Opening,
    pub(super) path: &'a Path,
    pub(super) is_synchronized: bool,
    /// Data has come, and no ACK-rate request.
    pub(super) is_unasked: bool,
}

impl Unmet<'_> {
    /// One end tells and the other uses: each is told when the peer does not do its part.
    pub(super) fn trace_fallbacks(&self, cx: &mut Cx<'_>) {
        let mut told = Vec::new();
        for what in self.by_peer_for_senders().into_iter().chain(self.by_peer_for_receiver()) {
            if !told.contains(&what) {
                told.push(what);
                cx.trace(TraceKind::Fallback(what));
            }
        }
    }

    /// For when the peer's data is over.
    pub(super) fn trace_never_asked(&self, cx: &mut Cx<'_>) {
        if self.was_never_asked() {
            cx.trace(TraceKind::Fallback(Lacking::RateRequest));
        }
    }

    /// The handshake was not measured (Karn), and no timestamps will measure what comes.
    pub(super) fn trace_unmeasured(&self, cx: &mut Cx<'_>) {
        let is_unknown = self.path.rtt.min.is_none() && !self.opening.agreed().timestamps;
        if self.wishes.receiver.rtt && is_unknown {
            cx.trace(TraceKind::Fallback(Lacking::Rtt));
        }
    }

    /// What the receiver agent does without.
    pub(super) fn for_receiver(&self) -> Vec<Lacking> {
        let of_path = self.unknown_of_path(self.wishes.receiver);
        self.by_peer_for_receiver().into_iter().chain(of_path).collect()
    }

    /// The same of the sender agents. A sender measures the path with its first data.
    pub(super) fn for_senders(&self) -> Vec<Lacking> {
        let of_path = self.unknown_of_path(Needs { rtt: false, ..self.wishes.senders });
        self.by_peer_for_senders().into_iter().chain(of_path).collect()
    }

    fn by_peer_for_receiver(&self) -> Vec<Lacking> {
        let agreed = self.opening.agreed().receiver_lacks(self.wishes.receiver);
        let unasked = self.was_never_asked().then_some(Lacking::RateRequest);
        self.opening.with_cookie(agreed.chain(unasked).collect(), self.is_synchronized)
    }

    fn by_peer_for_senders(&self) -> Vec<Lacking> {
        let agreed = self.opening.agreed().senders_lack(self.wishes.senders);
        self.opening.with_cookie(agreed.collect(), self.is_synchronized)
    }

    /// What agents would know of the path, and nothing has told so far.
    fn unknown_of_path(&self, needs: Needs) -> impl Iterator<Item = Lacking> {
        let no_hops = self.path.hops_from_peer.or(self.path.hops_to_peer).is_none();
        let unknown = [
            (needs.hops && no_hops, Lacking::Hops),
            (needs.rtt && self.path.rtt.min.is_none(), Lacking::Rtt),
        ];
        unknown.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what)
    }

    /// An end that obeys ACK-rate requests offers what one that sends them does: which of them the peer is, its data
    /// shows. So far nothing has asked.
    fn was_never_asked(&self) -> bool {
        self.opening.agreed().use_ack_rate && self.is_unasked
    }
}
