//! What leaves next: a ladder whose rungs each say what they would send, or nothing. [`emit`](super::emit) writes
//! it; the bookkeeping of what has left is at the end of this file's `commit` functions.

mod bundle;
mod commit;
mod rungs;

pub(crate) use bundle::{Left, LinkHelp};

use super::Connection;
use super::receiving::Around;
use crate::agent::{Allowance, SentKind};
use crate::tcp::cx::Cx;
use crate::tcp::ledger::DecidedAck;
use crate::trace::{SentWhat, StateName};
use crate::wire::Flags;
use crate::{Instant, Seq};

/// A segment that is to leave, or a bundle of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentPlan {
    pub(super) what: What,
    pub(super) seq: Seq,
    /// Payload bytes, taken from the send buffer at `seq`.
    pub(super) len: u32,
    /// Payload of each segment of a bundle but the last one; of one segment, all of it.
    pub(super) each: u32,
    pub(super) flags: Flags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Reset,
    Syn,
    /// A pure ACK, decided by the ledger.
    Ack,
    /// The segment at this place of the scoreboard, once more; of a bundle, the first one.
    Again {
        index: u32,
        kind: SentKind,
    },
    New,
    /// New data in a packet larger than the path is known to carry.
    MtuProbe {
        size: u16,
    },
    /// One byte, or none, that asks the peer for its window.
    WindowProbe,
    KeepAlive,
    /// New data, or the last segment again, to find a lost tail.
    TailProbe,
    TailProbeAgain {
        index: u32,
    },
}

impl What {
    fn traced(self) -> SentWhat {
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

impl Connection {
    /// Writes the next segment's packet to `out`, if there is one. Called until it answers [`Left::Nothing`].
    pub(crate) fn poll_transmit(&mut self, cx: &mut Cx<'_>, link: &LinkHelp, out: &mut Vec<u8>) -> Left {
        // At rest, no agent has to be asked.
        let is_at_rest = self.is_at_rest();
        let allowance = if is_at_rest { Allowance::UNLIMITED } else { self.allowance(cx.now) };
        let allowed = (!is_at_rest).then_some(&allowance);
        let Some(plan) = self.next_segment(cx.now, allowed, link) else {
            self.settle(cx, allowed);
            return Left::Nothing;
        };
        let plan = self.bundled(plan, allowed, link);
        self.prepare(&plan);
        let ack = self.ack_for(cx, &plan);
        self.write_segment(cx, &plan, ack.as_ref(), allowed, link, out);
        self.commit(cx, &plan, ack.as_ref(), allowed);
        self.check();
        plan.left(link)
    }

    /// Whether `poll_transmit` needs not be called. What it does at rest, when nothing leaves, is done.
    pub(crate) fn falls_silent(&mut self, now: Instant) -> bool {
        let is_silent = self.is_at_rest() && !self.receiving.ledger().is_waiting() && !self.urges.any();
        if is_silent {
            self.settle_at_rest(now);
        }
        is_silent
    }

    /// Nothing of ours is in flight, and nothing waits to be.
    pub(super) fn is_at_rest(&self) -> bool {
        self.loss.board().is_empty() && self.sending.has_sent_all()
    }

    /// The ladder, top rung first; `allowed` is what the agents allow, if there is anything to allow.
    fn next_segment(
        &self,
        now: Instant,
        allowed: Option<&Allowance>,
        link: &LinkHelp,
    ) -> Option<SegmentPlan> {
        if let Some(plan) = self.plan_reset().or_else(|| self.plan_syn()) {
            return Some(plan);
        }
        if !self.state.is_synchronized() {
            // Whatever did not fit is answered before the handshake is over, too.
            let answers = self.state == StateName::SynReceived && self.receiving.ledger().is_waiting();
            return answers.then(|| self.plan_ack());
        }
        // An owed ACK rides on a segment that leaves now, and goes alone when none may.
        if self.receiving.ledger().goes_alone()
            || self.opening.agreed().tell_in_window() && self.receiving.ledger().is_waiting()
        {
            return Some(self.plan_ack());
        }
        let data = allowed.and_then(|allowed| {
            self.plan_retransmission(now, allowed).or_else(|| self.plan_new_data(now, allowed, link))
        });
        if data.is_some() {
            return data;
        }
        let request = self.plan_fin().or_else(|| self.plan_probe()).or_else(|| self.plan_keep_alive());
        request.or_else(|| self.receiving.ledger().is_waiting().then(|| self.plan_ack()))
    }

    /// The ACK that the segment carries: the one that was decided, or where we are now.
    fn ack_for(&mut self, cx: &mut Cx<'_>, plan: &SegmentPlan) -> Option<DecidedAck> {
        if !plan.flags.contains(Flags::ACK) {
            return None;
        }
        let leaves_alone = plan.what == What::Ack;
        if !leaves_alone && (!self.receiving.ledger().is_owing() || self.carries_cwnd(plan)) {
            return None;
        }
        let around = Around::new(&self.opening, &self.path, self.sending.mss());
        self.receiving.pop_ack(cx, leaves_alone, around)
    }
}
