//! What the handshake leaves.

use crate::agent::{AckRequestForm, Needs};
use crate::trace::Lacking;

/// What both sides agreed on in the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Negotiated {
    pub(super) timestamps: bool,
    pub(super) sack: bool,
    /// The peer's data may be marked, and is heard. Ours: see `sends_ect`.
    pub(super) ecn: bool,
    pub(super) scale: Option<Scale>,
    pub(super) tell_cwnd: bool,
    pub(super) use_cwnd: bool,
    /// Our data segments carry cwnd where others carry the window, and a number that was told before: what they say of
    /// our receiving is what the last pure ACK said.
    pub(super) tell_in_window: bool,
    /// The same of the peer's.
    pub(super) use_in_window: bool,
    pub(super) tell_dup_count: bool,
    pub(super) use_dup_count: bool,
    /// Our senders may ask for an ACK after so many segments.
    pub(super) tell_ack_after: bool,
    pub(super) use_ack_after: bool,
    /// Our senders may ask for ACKs by ACK-rate requests.
    pub(super) tell_ack_rate: bool,
    pub(super) use_ack_rate: bool,
}

impl Negotiated {
    /// How sender agents may ask for an ACK.
    pub(super) fn ack_requests(&self) -> Option<AckRequestForm> {
        let rate = self.tell_ack_rate.then_some(AckRequestForm::Rate);
        if self.tell_ack_after { Some(AckRequestForm::After) } else { rate }
    }

    /// Segments have notes for the peer.
    pub(super) fn tells_anything(&self) -> bool {
        self.tell_cwnd
            || self.tell_in_window
            || self.tell_dup_count
            || self.tell_ack_after
            || self.tell_ack_rate
    }

    /// What the receiver agent asked for in vain; it follows its written fallback.
    pub(super) fn receiver_lacks(&self, needs: Needs) -> impl Iterator<Item = Lacking> {
        those([
            (needs.peer_cwnd && !self.use_cwnd, Lacking::PeerCwnd),
            (needs.dup_count && !self.tell_dup_count, Lacking::DupCount),
            (needs.ack_after && !self.use_ack_after, Lacking::AckAfter),
            (needs.ack_rate && !self.use_ack_rate, Lacking::RateRequest),
        ])
    }

    /// The same of the sender agents.
    pub(super) fn senders_lack(&self, needs: Needs) -> impl Iterator<Item = Lacking> {
        those([
            (needs.cwnd_in_window && !self.tell_in_window, Lacking::CwndInWindow),
            (needs.peer_cwnd && !self.tell_cwnd, Lacking::PeerCwnd),
            (needs.dup_count && !self.use_dup_count, Lacking::DupCount),
            (needs.ack_after && !self.tell_ack_after, Lacking::AckAfter),
            // One form of request is enough.
            (needs.ack_rate && !self.tell_ack_rate && !self.tell_ack_after, Lacking::RateRequest),
        ])
    }
}

fn those<const N: usize>(lacking: [(bool, Lacking); N]) -> impl Iterator<Item = Lacking> {
    lacking.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what)
}

/// Window scaling (RFC 7323 §2): on when both sides offered it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// For the windows that the peer tells us.
    pub(super) snd: u8,
    /// For the windows that we tell.
    pub(super) rcv: u8,
}
