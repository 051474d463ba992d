//! What the handshake leaves.

use crate::agent::Asking;

/// What both sides agreed on in the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Negotiated {
    pub(super) timestamps: bool,
    pub(super) sack: bool,
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
    pub(super) tell_told: bool,
    pub(super) use_told: bool,
    pub(super) rate_request: bool,
}

impl Negotiated {
    /// How sender agents may ask for an ACK.
    pub(super) fn asking(&self) -> Asking {
        match (self.tell_told, self.rate_request) {
            (true, _) => Asking::Told,
            (false, true) => Asking::Rate,
            (false, false) => Asking::Never,
        }
    }

    /// Segments have notes for the peer.
    pub(super) fn tells_anything(&self) -> bool {
        self.tell_cwnd || self.tell_in_window || self.tell_dup_count || self.tell_told || self.rate_request
    }
}

/// Window scaling (RFC 7323 §2): on when both sides offered it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// For the windows that the peer tells us.
    pub(super) snd: u8,
    /// For the windows that we tell.
    pub(super) rcv: u8,
}
