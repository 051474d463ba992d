//! Bundles: several segments in one packet, for a link that cuts it up. They would leave in a row anyway.

use super::{SegmentPlan, What};
use crate::Seq;
use crate::agent::{Allowance, SentKind};
use crate::narrow::as_u16;
use crate::tcp::connection::Outbound;
use crate::tcp::recovery::{Frto, Gauge};
use crate::tcp::scoreboard::SegmentState;
use crate::wire::bundle::{MOST_HEADER_BYTES, MOST_PACKET_BYTES};
use crate::wire::{Checksums, Flags, OfferFlags};

/// The help that a link gives to outgoing segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkHelp {
    pub(crate) checksums: Checksums,
    /// The link takes a payload from its place in the send buffer.
    pub(crate) lends: bool,
    /// The largest packet that the link cuts up, if it cuts any.
    pub(crate) most_bytes: Option<u32>,
}

/// The result of `poll_transmit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    Packet {
        /// Start and length of the payload, if it stayed in the buffer, for [`lent`](crate::Machine::lent).
        lent: Option<(Seq, u32)>,
        /// For a bundle, the payload of each segment except the last, for [`Transmit`](crate::Transmit).
        segment_bytes: Option<u16>,
        /// Nothing follows until something happens to the connection.
        is_last: bool,
    },
}

impl Left {
    pub(super) fn is_last(&self) -> bool {
        !matches!(self, Left::Packet { is_last: false, .. })
    }
}

impl Outbound {
    /// Extends the plan by the segments that the ladder would let follow at once.
    #[inline(never)]
    pub(super) fn bundled(&self, plan: SegmentPlan, allowed: &Allowance, most_bytes: u32) -> SegmentPlan {
        if plan.len != self.sending.mss || !self.may_bundle(&plan) {
            return plan;
        }
        let room = allowed.flight_bytes.saturating_sub(self.loss.flight().bytes);
        let most = most_payload(most_bytes, allowed).min(u32::try_from(room).unwrap_or(u32::MAX));
        if most < 2 * plan.len {
            return plan;
        }
        match plan.what {
            What::New if plan.is_all_new(&self.sending) => self.with_more_new(plan, most),
            What::Again { index, kind: SentKind::Resent | SentKind::AfterTimeout } => {
                self.with_more_again(plan, index as usize, most)
            }
            _ => plan,
        }
    }

    /// The payload of the planned packet if enough data were there.
    pub(super) fn full_packet(&self, plan: &SegmentPlan, allowed: &Allowance, link: &LinkHelp) -> u32 {
        let mss = self.sending.mss;
        match link.most_bytes {
            Some(most) if self.may_bundle(plan) => mss.max(most_payload(most, allowed) / mss * mss),
            _ => mss,
        }
    }

    /// A link repeats the first segment's header, so segments whose headers may differ stay apart. Mechanisms that
    /// count segments singly also keep them apart.
    fn may_bundle(&self, plan: &SegmentPlan) -> bool {
        let is_urgent = self.sending.urgent_end.is_some_and(|end| plan.seq < end);
        let counts = matches!(self.loss.recovery.gauge(), Some(Gauge::Inflate(_)))
            || matches!(self.loss.recovery.frto, Frto::SecondAck { .. });
        // Packets that may be fragmented need an identification each (RFC 6864).
        plan.forbids_cutting(&self.opening, &self.mtu)
            && self.opening.source_route().is_none()
            && !plan.flags.contains(Flags::CWR)
            && !is_urgent
            && !counts
            && !self.opening.agreed.has(OfferFlags::TELL_ACK_AFTER)
            && !self.opening.agreed.tell_ack_rate
    }

    fn with_more_new(&self, plan: SegmentPlan, most: u32) -> SegmentPlan {
        let unsent = self.sending.unsent();
        let most = most.min(self.sending.usable_window());
        // The rest joins the bundle if it would not wait for an ACK.
        let takes_rest = unsent <= most && (!self.uses_nagle() || self.sending.fin_wanted);
        let len = if takes_rest { unsent } else { most.min(unsent) / plan.each * plan.each };
        let mut flags = Flags::ACK;
        if len == unsent {
            flags |= self.flags_of_the_last(len);
        }
        SegmentPlan { len, flags, ..plan }
    }

    /// Adds the lost segments that follow in the scoreboard, while their sizes match the link's cuts.
    #[cold]
    fn with_more_again(&self, mut plan: SegmentPlan, index: usize, most: u32) -> SegmentPlan {
        let is_whole = self.loss.board.get(index).payload_len() == plan.len;
        let mut next = index + 1;
        while is_whole && plan.len.is_multiple_of(plan.each) && next < self.loss.board.len() {
            let segment = self.loss.board.get(next);
            let len = segment.payload_len();
            let is_next = segment.state == SegmentState::Lost && (1..=plan.each).contains(&len);
            if !is_next || plan.len + len > most {
                break;
            }
            plan.len += len;
            if segment.fin {
                plan.flags |= Flags::FIN;
                break;
            }
            next += 1;
        }
        plan
    }
}

/// The most payload of a bundle.
fn most_payload(most_bytes: u32, allowed: &Allowance) -> u32 {
    most_bytes.min(MOST_PACKET_BYTES).saturating_sub(MOST_HEADER_BYTES).min(allowed.burst_bytes)
}

impl SegmentPlan {
    pub(crate) fn segments(&self) -> u32 {
        if self.len <= self.each { 1 } else { self.len.div_ceil(self.each) }
    }

    pub(super) fn left(&self, link: &LinkHelp, is_last: bool) -> Left {
        Left::Packet {
            lent: (link.lends && self.len > 0).then_some((self.seq, self.len)),
            segment_bytes: (self.len > self.each).then_some(as_u16(self.each as usize)),
            is_last,
        }
    }
}
