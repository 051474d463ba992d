//! The agreement that a handshake leaves.

use crate::agent::{AckRequestForm, Needs};
use crate::trace::Lacking;
use crate::wire::OfferFlags;

/// What both sides agreed on in the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp::connection) struct Negotiated {
    pub(in crate::tcp::connection) timestamps: bool,
    pub(in crate::tcp::connection) sack: bool,
    /// The peer's data may be marked, and is heard. Ours: see `sends_ect`.
    pub(in crate::tcp::connection) ecn: bool,
    pub(in crate::tcp::connection) scale: Option<Scale>,
    /// The news that the two ends agreed to exchange by our own option.
    pub(super) offer: OfferFlags,
    /// Our senders may ask for ACKs by ACK-rate requests.
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

    /// Our data segments carry cwnd where others carry the window, and a number that was told before: what they say of
    /// our receiving is what the last pure ACK said.
    #[inline]
    pub(in crate::tcp::connection) fn tell_in_window(&self) -> bool {
        self.offer.contains(OfferFlags::TELL_IN_WINDOW)
    }

    /// The same of the peer's.
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

    /// Our senders may ask for an ACK after so many segments.
    #[inline]
    pub(in crate::tcp::connection) fn tell_ack_after(&self) -> bool {
        self.offer.contains(OfferFlags::TELL_ACK_AFTER)
    }

    #[inline]
    pub(in crate::tcp::connection) fn use_ack_after(&self) -> bool {
        self.offer.contains(OfferFlags::USE_ACK_AFTER)
    }

    /// How sender agents may ask for an ACK.
    pub(in crate::tcp::connection) fn ack_requests(&self) -> Option<AckRequestForm> {
        let rate = self.tell_ack_rate.then_some(AckRequestForm::Rate);
        if self.tell_ack_after() { Some(AckRequestForm::After) } else { rate }
    }

    /// Segments have notes for the peer.
    pub(in crate::tcp::connection) fn tells_anything(&self) -> bool {
        self.tell_cwnd()
            || self.tell_in_window()
            || self.tell_dup_count()
            || self.tell_ack_after()
            || self.tell_ack_rate
    }

    /// What the receiver agent asked for in vain; it follows its written fallback.
    pub(in crate::tcp::connection) fn receiver_lacks(&self, needs: Needs) -> impl Iterator<Item = Lacking> {
        those([
            (needs.peer_cwnd && !self.use_cwnd(), Lacking::PeerCwnd),
            (needs.dup_count && !self.tell_dup_count(), Lacking::DupCount),
            (needs.ack_after && !self.use_ack_after(), Lacking::AckAfter),
            (needs.ack_rate && !self.use_ack_rate, Lacking::RateRequest),
        ])
    }

    /// The same of the sender agents.
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
    /// For the windows that the peer tells us.
    pub(in crate::tcp::connection) snd: u8,
    /// For the windows that we tell.
    pub(in crate::tcp::connection) rcv: u8,
}
