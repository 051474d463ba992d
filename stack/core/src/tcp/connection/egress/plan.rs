//! The plan of a segment that should leave.

use crate::Seq;
use crate::agent::SentKind;
use crate::tcp::connection::opening::Opening;
use crate::tcp::connection::sending::Sending;
use crate::tcp::mtu::MtuSearch;
use crate::trace::SentWhat;
use crate::wire::{Flags, OfferFlags};

/// A segment that should leave, or a bundle of segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentPlan {
    pub(crate) what: What,
    pub(crate) seq: Seq,
    /// Payload bytes, taken from the send buffer at `seq`.
    pub(crate) len: u32,
    /// Payload of each segment of a bundle except the last one; for one segment, its whole payload.
    pub(crate) each: u32,
    pub(crate) flags: Flags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Reset,
    Syn,
    /// A pure ACK, decided by the ledger.
    Ack,
    /// Retransmits the segment at this place of the scoreboard; for a bundle, the first one.
    Again {
        index: u32,
        kind: SentKind,
    },
    New,
    /// New data in a packet larger than the path is known to carry.
    MtuProbe {
        size: u16,
    },
    /// One byte, or none, that probes the peer's window.
    WindowProbe,
    KeepAlive,
    /// New data, or the last segment again, to find a lost tail.
    TailProbe,
    TailProbeAgain {
        index: u32,
    },
}

impl SegmentPlan {
    /// A segment without payload.
    pub(super) fn bare(what: What, seq: Seq, flags: Flags) -> SegmentPlan {
        SegmentPlan { what, seq, len: 0, each: 0, flags }
    }

    /// Returns whether all its data is new. A taken-back byte of a window probe has left before.
    pub(crate) fn is_all_new(&self, sending: &Sending) -> bool {
        let is_meant_so = matches!(self.what, What::New | What::MtuProbe { .. } | What::TailProbe);
        is_meant_so && self.len > 0 && self.seq >= sending.max
    }

    /// Returns whether its window field carries cwnd.
    pub(crate) fn carries_cwnd(&self, opening: &Opening) -> bool {
        opening.agreed.has(OfferFlags::TELL_IN_WINDOW) && self.len > 0
    }

    /// Routers may cut a packet that is larger than the path carries (RFC 1191 §3). A probe must pass uncut.
    pub(crate) fn forbids_cutting(&self, opening: &Opening, mtu: &MtuSearch) -> bool {
        let is_probe = matches!(self.what, What::MtuProbe { .. });
        let fits = !mtu.is_cut() && opening.packet_of(self.each) <= mtu.size();
        mtu.discovers && (fits || is_probe)
    }
}

impl What {
    pub(super) fn traced(self) -> SentWhat {
        match self {
            What::Reset | What::Syn | What::Ack => SentWhat::Control,
            What::Again { kind: SentKind::AfterTimeout, .. } => SentWhat::AfterTimeout,
            What::Again { kind: SentKind::Probe, .. } | What::WindowProbe | What::KeepAlive => {
                SentWhat::Probe
            }
            What::Again { .. } => SentWhat::Resent,
            What::New | What::MtuProbe { .. } => SentWhat::New,
            What::TailProbe | What::TailProbeAgain { .. } => SentWhat::TailProbe,
        }
    }
}
