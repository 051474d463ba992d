//! The segments that an ACK delivered, as the scoreboard reports them.

use super::SentSegment;
use crate::agent::Count;
use crate::{Instant, Seq};

/// The segments that an ACK delivered, cumulatively or by SACK. Only segments that were sent once give an RTT (Karn).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) acked: Count,
    pub(crate) sacked: Count,
    /// Sent times of the first acknowledged and the last delivered segment that were never retransmitted.
    pub(crate) first_acked: Option<Instant>,
    pub(crate) last_sent: Option<Instant>,
    /// A retransmitted segment is acknowledged; the others may have waited for it for an unknown time.
    pub(crate) covers_resent: bool,
    /// The most recently sent segment of all delivered (RFC 8985: `RACK.segment`).
    pub(crate) newest: Option<Newest>,
    /// A segment that was never retransmitted arrived after a higher one: the network reordered.
    pub(crate) reordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) sent_at: Instant,
    pub(crate) end: Seq,
    pub(crate) was_resent: bool,
}

impl Newest {
    /// RFC 8985 `RACK_sent_after`: later, or at the same instant and higher.
    pub(crate) fn is_after(&self, sent_at: Instant, end: Seq) -> bool {
        self.sent_at > sent_at || (self.sent_at == sent_at && end < self.end)
    }

    /// Returns whether this arrival is evidence about `segment`. It is not if the segment was retransmitted at the same
    /// instant: the two may have left in either order.
    pub(super) fn tells_of(&self, segment: &SentSegment) -> bool {
        let is_tie = self.sent_at == segment.sent_at && segment.resent > 0 && !self.was_resent;
        !is_tie && self.is_after(segment.sent_at, segment.end())
    }
}

impl Delivered {
    pub(crate) fn bytes(&self) -> u64 {
        self.acked.bytes + self.sacked.bytes
    }

    pub(super) fn note(&mut self, segment: &SentSegment, highest_delivered: Option<Seq>) {
        if segment.resent == 0 {
            self.last_sent = Some(self.last_sent.map_or(segment.sent_at, |at| at.max(segment.sent_at)));
            self.reordered |= highest_delivered.is_some_and(|high| segment.end() < high);
        }
        if self.newest.is_none_or(|newest| !newest.is_after(segment.sent_at, segment.end())) {
            self.newest =
                Some(Newest { sent_at: segment.sent_at, end: segment.end(), was_resent: segment.resent > 0 });
        }
    }
}
