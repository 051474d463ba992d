//! Header prediction: the next expected segment of an established connection passes all checks by a few comparisons.
//! The others take all steps.
//!
//! Invariant (checked in debug builds)
//! - F1: the steps that a predicted segment does not take would answer "next" and change nothing.

use super::Arrived;
use crate::tcp::connection::opening::Negotiated;
use crate::tcp::connection::receiving::Receiving;
use crate::tcp::connection::sending::Sending;
use crate::trace::StateName;
use crate::wire::Flags;

/// The first steps, which take nothing.
#[cfg(debug_assertions)]
pub(super) const CHECKS: usize = 4;

/// Returns whether `check_seq` to `check_ack`, `take_urgent` and `take_fin` would let the segment pass.
#[inline]
pub(super) fn is_predicted(
    arrived: &Arrived<'_>,
    state: StateName,
    receiving: &Receiving,
    sending: &Sending,
    agreed: &Negotiated,
) -> bool {
    let segment = arrived.segment;
    state == StateName::Established
        && segment.flags.without(Flags::PSH) == Flags::ACK
        && segment.seq == receiving.nxt
        && sending.una <= segment.ack
        && segment.ack <= sending.max
        && receiving.is_timestamp_in_order(segment, agreed)
        && receiving.fin.is_none()
        && arrived.source_route.is_none()
}
