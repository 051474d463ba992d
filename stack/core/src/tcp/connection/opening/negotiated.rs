//! The agreement of a handshake.

use crate::agent::{AckRequestForm, Needs};
use crate::trace::Lacking;
use crate::wire::OfferFlags;

/// The options that both sides agreed on in the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp::connection) struct Negotiated {
    pub(in crate::tcp::connection) timestamps: bool,
    pub(in crate::tcp::connection) sack: bool,
    /// The peer may mark its data, and marks are echoed. For our data see `sends_ect`.
    pub(in crate::tcp::connection) ecn: bool,
    pub(in crate::tcp::connection) scale: Option<Scale>,
    /// The notes that the two ends agreed to exchange in our own option.
    pub(super) offer: OfferFlags,
    /// True if our senders may send ACK-rate requests.
    pub(in crate::tcp::connection) tell_ack_rate: bool,
    pub(in crate::tcp::connection) use_ack_rate: bool,
}

impl Negotiated {
    #[inline]
    pub(in crate::tcp::connection) fn tell_cwnd(&self) -> bool {
        self.offer.contains(OfferFlags::TELL_CWND)
    }

    #[inline]
    pub(in crate::tcp::connection) fn use_cwnd(&self) -> bool {
        self.offer.contains(OfferFlags::USE_CWND)
    }

    /// Our data segments carry cwnd in the window field. Their ACK number was sent before; the last pure ACK gives
    /// number and window.
    #[inline]
    pub(in crate::tcp::connection) fn tell_in_window(&self) -> bool {
        self.offer.contains(OfferFlags::TELL_IN_WINDOW)
    }

    /// The same for the peer's data segments.
    #[inline]
    pub(in crate::tcp::connection) fn use_in_window(&self) -> bool {
        self.offer.contains(OfferFlags::USE_IN_WINDOW)
    }

    #[inline]
    pub(in crate::tcp::connection) fn tell_dup_count(&self) -> bool {
        self.offer.contains(OfferFlags::TELL_DUP_COUNT)
    }

    #[inline]
    pub(in crate::tcp::connection) fn use_dup_count(&self) -> bool {
        self.offer.contains(OfferFlags::USE_DUP_COUNT)
    }

    /// Our senders may request an ACK after a count of segments.
    #[inline]
    pub(in crate::tcp::connection) fn tell_ack_after(&self) -> bool {
        self.offer.contains(OfferFlags::TELL_ACK_AFTER)
    }

    #[inline]
    pub(in crate::tcp::connection) fn use_ack_after(&self) -> bool {
        self.offer.contains(OfferFlags::USE_ACK_AFTER)
    }

    /// The form of the sender agents' ACK requests.
    pub(in crate::tcp::connection) fn ack_requests(&self) -> Option<AckRequestForm> {
        let rate = self.tell_ack_rate.then_some(AckRequestForm::Rate);
        if self.tell_ack_after() { Some(AckRequestForm::After) } else { rate }
    }

    /// Returns whether segments carry notes for the peer.
    pub(in crate::tcp::connection) fn tells_anything(&self) -> bool {
        self.tell_cwnd()
            || self.tell_in_window()
            || self.tell_dup_count()
            || self.tell_ack_after()
            || self.tell_ack_rate
    }

    /// The receiver agent's needs that were not agreed on; it follows its written fallback.
    pub(in crate::tcp::connection) fn receiver_lacks(&self, needs: Needs) -> impl Iterator<Item = Lacking> {
        those([
            (needs.peer_cwnd && !self.use_cwnd(), Lacking::PeerCwnd),
            (needs.dup_count && !self.tell_dup_count(), Lacking::DupCount),
            (needs.ack_after && !self.use_ack_after(), Lacking::AckAfter),
            (needs.ack_rate && !self.use_ack_rate, Lacking::RateRequest),
        ])
    }

    /// The same for the sender agents.
    pub(in crate::tcp::connection) fn senders_lack(&self, needs: Needs) -> impl Iterator<Item = Lacking> {
        those([
            (needs.cwnd_in_window && !self.tell_in_window(), Lacking::CwndInWindow),
            (needs.peer_cwnd && !self.tell_cwnd(), Lacking::PeerCwnd),
            (needs.dup_count && !self.use_dup_count(), Lacking::DupCount),
            (needs.ack_after && !self.tell_ack_after(), Lacking::AckAfter),
            // One form of request is enough.
            (needs.ack_rate && !self.tell_ack_rate && !self.tell_ack_after(), Lacking::RateRequest),
        ])
    }
}

fn those<const N: usize>(lacking: [(bool, Lacking); N]) -> impl Iterator<Item = Lacking> {
    lacking.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what)
}

/// Window scaling (RFC 7323 §2): on when both sides offered it.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp::connection) struct Scale {
    /// Shift of the windows that the peer sends.
    pub(in crate::tcp::connection) snd: u8,
    /// Shift of the windows that we send.
    pub(in crate::tcp::connection) rcv: u8,
}
