//! What leaves next: a ladder whose rungs each say what they would send, or nothing. [`emit`](super::emit) writes
//! it; the bookkeeping of what has left is at the end of this file's `commit` functions.

mod bundle;
mod commit;
mod rungs;

pub(crate) use bundle::{Left, LinkHelp};
use rungs::Ladder;

use std::time::Duration;

use super::emit::Writer;
use super::opening::Opening;
use super::receiving::Around;
use super::sending::Sending;
use super::{Connection, send_view};
use crate::agent::{Allowance, SentKind, Turn};
use crate::tcp::cx::Cx;
use crate::tcp::ledger::DecidedAck;
use crate::tcp::mtu::MtuSearch;
use crate::tcp::timers::Timer;
use crate::trace::{SentWhat, StateName};
use crate::wire::Flags;
use crate::{Instant, Seq};

/// A turn that ends too early lets two bursts meet. One that ends too late holds up the other flows.
const LEAST_TURN: Duration = Duration::from_secs(1);
const MOST_TURN: Duration = Duration::from_secs(4);

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

impl SegmentPlan {
    /// The byte of a window probe that was taken back has left before.
    pub(super) fn is_all_new(&self, sending: &Sending) -> bool {
        let is_meant_so = matches!(self.what, What::New | What::MtuProbe { .. } | What::TailProbe);
        is_meant_so && self.len > 0 && self.seq >= sending.max()
    }

    /// Its window field tells cwnd.
    pub(super) fn carries_cwnd(&self, opening: &Opening) -> bool {
        opening.agreed().tell_in_window() && self.len > 0
    }

    /// A packet that is larger than a router carries may be cut up on the way (RFC 1191 §3). A probe asks whether it
    /// passes as it is.
    pub(super) fn forbids_cutting(&self, opening: &Opening, mtu: &MtuSearch) -> bool {
        let is_probe = matches!(self.what, What::MtuProbe { .. });
        let fits = !mtu.is_cut() && opening.packet_of(self.each) <= mtu.size();
        mtu.discovers() && (fits || is_probe)
    }
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
        let ledger = self.receiving.ledger();
        let Some(plan) = self.ladder().next_segment(cx.now, allowed, link, ledger) else {
            self.settle(cx, allowed);
            return Left::Nothing;
        };
        let plan = self.ladder().bundled(plan, allowed, link);
        self.prepare(&plan);
        let ack = self.ack_for(cx, &plan);
        self.writer().write_segment(cx, &plan, ack.as_ref(), allowed, link, out);
        self.commit(cx, &plan, ack.as_ref(), allowed);
        self.check();
        plan.left(link)
    }

    #[inline]
    pub(super) fn ladder(&self) -> Ladder<'_> {
        Ladder {
            state: self.state,
            sending: &self.sending,
            urges: &self.urges,
            loss: &self.loss,
            opening: &self.opening,
            mtu: &self.mtu,
            timers: &self.timers,
            config: &self.config,
            nagle: self.changed_options.as_deref().map_or(self.config.nagle, |changed| changed.nagle),
        }
    }

    #[inline]
    fn writer(&mut self) -> Writer<'_> {
        Writer {
            options: self.options(),
            is_reply: self.state == StateName::SynReceived,
            receiving: &mut self.receiving,
            urges: &mut self.urges,
            sending: &self.sending,
            loss: &self.loss,
            senders: &self.senders,
            opening: &self.opening,
            mtu: &self.mtu,
            path: &self.path,
            config: &self.config,
        }
    }

    /// Where a segment's bytes lie, until they are acknowledged or more is written.
    pub(crate) fn payload_at(&self, seq: Seq, len: u32) -> (&[u8], &[u8]) {
        self.sending.payload_at(seq, len)
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

    /// The ACK that the segment carries: the one that was decided, or where we are now.
    fn ack_for(&mut self, cx: &mut Cx<'_>, plan: &SegmentPlan) -> Option<DecidedAck> {
        if !plan.flags.contains(Flags::ACK) {
            return None;
        }
        let leaves_alone = plan.what == What::Ack;
        if !leaves_alone && (!self.receiving.ledger().is_owing() || plan.carries_cwnd(&self.opening)) {
            return None;
        }
        let around = Around::new(&self.opening, &self.path, self.sending.mss());
        self.receiving.pop_ack(cx, leaves_alone, around)
    }
}

/// A connection of an ensemble names the burst that it wants a turn for, and sends nothing new while another connection
/// has the turn.
impl Connection {
    /// Its place in the ensemble; `None` if its owner of cwnd takes no turns.
    pub(crate) fn turn(&self) -> Option<Turn> {
        self.sending.turn()
    }

    pub(crate) fn set_turn(&mut self, turn: Turn) {
        self.sending.set_turn(turn);
    }

    /// A connection that could send nothing wants no turn.
    pub(crate) fn may_use_turn(&self) -> bool {
        self.state.is_synchronized()
            && self.closed.is_none()
            && !self.is_at_rest()
            && !self.timers.is_armed(Timer::Frozen)
            && !self.ladder().is_blocked_by_window()
    }

    /// The burst that it wants a turn for.
    pub(crate) fn wanted_turn(&self, now: Instant) -> Option<Seq> {
        let member = self.senders.member().filter(|_| self.may_use_turn())?;
        member.wanted_turn(now, &self.send_view())
    }

    /// Whether the holder is to look at what the others know.
    pub(crate) fn share_path(&mut self) -> bool {
        let view = send_view(&self.sending, &self.path, &self.loss);
        self.senders.member_mut().is_some_and(|member| member.share(&view))
    }

    pub(crate) fn begin_ensemble(&mut self) {
        if let Some(member) = self.senders.member_mut() {
            member.begin();
        }
    }

    /// Twice the RTO has room for a burst, its ACK, and what is lost of it. Whatever the RTO, a turn ends.
    pub(crate) fn longest_turn(&self) -> Duration {
        (2 * self.rto()).clamp(LEAST_TURN, MOST_TURN)
    }
}
