//! The results of a step, and of the segment.

use crate::trace::DropReason;

/// The endpoint's task after a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    Done,
    /// Answer it with a RST, as if there were no connection.
    Refuse,
    /// A passive open failed: forget the connection (RFC 9293 MUST-11).
    Forget,
    /// A connection in TIME-WAIT is over and a new one takes its place: treat the SYN as new.
    Reopen,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Next,
    Drop(DropReason),
    /// Drops the segment and answers with an ACK of the current state.
    Answer(DropReason, Answer),
    End(Disposition),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Always,
    /// As often as [`Urges`](crate::tcp::connection::urges::Urges) allow, so that neither attackers nor two confused
    /// ends start a storm (RFC 5961 §7).
    Limited,
}
