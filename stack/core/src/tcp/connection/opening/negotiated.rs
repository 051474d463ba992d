//! The agreement of a handshake.

use crate::agent::{AckRequestForm, Needs};
use crate::trace::Lacking;
use crate::wire::OfferFlags;

/// The options that both sides agreed on in the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Negotiated {
    pub(crate) timestamps: bool,
    pub(crate) sack: bool,
    /// The peer may mark its data, and marks are echoed. For our data see `sends_ect`.
    pub(crate) ecn: bool,
    pub(crate) scale: Option<Scale>,
    /// The notes that the two ends agreed to exchange in our own option.
    pub(super) offer: OfferFlags,
    /// True if our senders may send ACK-rate requests.
    pub(crate) tell_ack_rate: bool,
    pub(crate) use_ack_rate: bool,
}

impl Negotiated {
    /// Returns whether this note is agreed on. With `TELL_IN_WINDOW` our data segments carry cwnd in the window field.
    /// Their ACK number was sent before; the last pure ACK gives number and window. `USE_IN_WINDOW` says so of the
    /// peer's data segments.
    pub(crate) fn has(&self, note: OfferFlags) -> bool {
        self.offer.contains(note)
    }

    /// The form of the sender agents' ACK requests.
    pub(crate) fn ack_requests(&self) -> Option<AckRequestForm> {
        let rate = self.tell_ack_rate.then_some(AckRequestForm::Rate);
        if self.has(OfferFlags::TELL_ACK_AFTER) { Some(AckRequestForm::After) } else { rate }
    }

    /// Returns whether segments carry notes for the peer.
    pub(crate) fn tells_anything(&self) -> bool {
        self.has(OfferFlags::TELL_CWND)
            || self.has(OfferFlags::TELL_IN_WINDOW)
            || self.has(OfferFlags::TELL_DUP_COUNT)
            || self.has(OfferFlags::TELL_ACK_AFTER)
            || self.tell_ack_rate
    }

    /// The receiver agent's needs that were not agreed on; it follows its written fallback.
    pub(crate) fn receiver_lacks(&self, needs: Needs) -> impl Iterator<Item = Lacking> {
        those([
            (needs.peer_cwnd && !self.has(OfferFlags::USE_CWND), Lacking::PeerCwnd),
            (needs.dup_count && !self.has(OfferFlags::TELL_DUP_COUNT), Lacking::DupCount),
            (needs.ack_after && !self.has(OfferFlags::USE_ACK_AFTER), Lacking::AckAfter),
            (needs.ack_rate && !self.use_ack_rate, Lacking::RateRequest),
        ])
    }

    /// The same for the sender agents.
    pub(crate) fn senders_lack(&self, needs: Needs) -> impl Iterator<Item = Lacking> {
        those([
            (needs.cwnd_in_window && !self.has(OfferFlags::TELL_IN_WINDOW), Lacking::CwndInWindow),
            (needs.peer_cwnd && !self.has(OfferFlags::TELL_CWND), Lacking::PeerCwnd),
            (needs.dup_count && !self.has(OfferFlags::USE_DUP_COUNT), Lacking::DupCount),
            (needs.ack_after && !self.has(OfferFlags::TELL_ACK_AFTER), Lacking::AckAfter),
            // One form of request is enough.
            (
                needs.ack_rate && !self.tell_ack_rate && !self.has(OfferFlags::TELL_ACK_AFTER),
                Lacking::RateRequest,
            ),
        ])
    }
}

fn those<const N: usize>(lacking: [(bool, Lacking); N]) -> impl Iterator<Item = Lacking> {
    lacking.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what)
}

/// Window scaling (RFC 7323 §2): on when both sides offered it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Shift of the windows that the peer sends.
    pub(crate) snd: u8,
    /// Shift of the windows that we send.
    pub(crate) rcv: u8,
}
