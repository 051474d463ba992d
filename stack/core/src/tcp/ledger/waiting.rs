//! Decided ACKs that wait for the link: it is settled here which of them leave, and with what content.
//!
//! A SACK block reports the instant at which it leaves, and so must the number beside it. An older number would report
//! a hole that is filled (RFC 2018 §3). An ACK is redundant, and does not leave, if another one carries its news.
//! Without SACK, a sender counts duplicate ACKs, so each of them leaves as it was decided.

use super::decided::earlier;
use super::{AckKind, AckMerge, By, Cx, DecidedAck, Facts, QUEUE, Stretch};
use crate::Seq;

/// The segments of a long read that each want a report of their own.
const MOST_REPORTS: usize = 64;

/// The ACKs in the order of decision; their numbers never decrease.
#[derive(Default)]
pub(super) struct Waiting {
    /// On the heap, since most connections are idle most of the time.
    list: Vec<DecidedAck>,
}

/// The rules by which ACKs merge.
#[derive(Clone, Copy)]
pub(crate) struct Merging {
    pub(super) merge: AckMerge,
    pub(crate) has_sack: bool,
}

impl Waiting {
    pub(super) fn as_slice(&self) -> &[DecidedAck] {
        &self.list
    }

    pub(super) fn push(&mut self, cx: &mut Cx<'_>, mut ack: DecidedAck, by: By, merging: Merging) {
        if let Some(last) = self.list.last_mut()
            && (last.kind, ack.kind) == (AckKind::InOrder, AckKind::InOrder)
            // A FIN behind its data is one segment, and gets one ACK (RFC 9293 §3.10.7.4).
            && (merging.merge == AckMerge::Read || by == By::Forced && last.read == ack.read)
        {
            last.goes_into(cx, &ack);
            ack.take_over(last);
            *last = ack;
            return;
        }
        if self.is_told_by_another(cx, &mut ack) {
            return;
        }
        if self.list.len() >= QUEUE {
            self.make_room(cx);
        }
        if self.list.capacity() == 0 {
            self.list.reserve_exact(QUEUE);
        }
        self.list.push(ack);
    }

    /// Returns whether a waiting ACK makes this one redundant: one ACK is enough for a stretch. Each D-SACK stays.
    fn is_told_by_another(&mut self, cx: &mut Cx<'_>, ack: &mut DecidedAck) -> bool {
        let Some(stretch) = ack.part_of else { return false };
        let is_of_it = |other: &DecidedAck| other.part_of.is_some_and(|part| is_within(part, stretch));
        if ack.twice.is_none()
            && let Some(teller) = self.list.iter_mut().rfind(|other| is_of_it(other) && other.twice.is_some())
        {
            ack.goes_into(cx, teller);
            teller.note = ack.note;
            return true;
        }
        self.list.retain(|other| {
            let is_told = is_of_it(other) && other.twice.is_none();
            if is_told {
                other.goes_into(cx, ack);
                ack.take_over(other);
            }
            !is_told
        });
        false
    }

    /// Merges the ACKs of one stretch after a segment has joined or extended stretches: one ACK is enough for it.
    pub(super) fn join(&mut self, cx: &mut Cx<'_>, stretch: Stretch) {
        let is_of_it = |ack: &DecidedAck| ack.part_of.is_some_and(|part| is_within(part, stretch));
        let mut is_told = self.list.iter().any(|ack| is_of_it(ack) && ack.twice.is_some());
        for at in (0..self.list.len()).rev() {
            let ack = &mut self.list[at];
            if !is_of_it(ack) {
                continue;
            }
            ack.part_of = Some(stretch);
            if ack.twice.is_none() && std::mem::replace(&mut is_told, true) {
                self.let_go(cx, at);
            }
        }
    }

    /// Makes room in a full queue: the oldest in-order ACK goes into its successor. If there is none, more ACKs with
    /// different reports may wait.
    fn make_room(&mut self, cx: &mut Cx<'_>) {
        let oldest = self.list.iter().position(|ack| ack.kind == AckKind::InOrder);
        let has_reports = self.list.iter().any(DecidedAck::is_for_blocks);
        if oldest.is_none() && has_reports && self.list.len() < MOST_REPORTS {
            return;
        }
        self.let_go(cx, oldest.unwrap_or(0));
    }

    /// Removes an ACK: it goes into its successor, or into its predecessor if it is the last.
    fn let_go(&mut self, cx: &mut Cx<'_>, at: usize) {
        let gone = self.list.remove(at);
        if let Some(next) = self.list.get_mut(at) {
            gone.goes_into(cx, next);
            next.take_over(&gone);
        } else if let Some(last) = self.list.last_mut() {
            gone.goes_into(cx, last);
            last.number = gone.number;
            last.note = gone.note;
            last.echo = earlier(last.echo, gone.echo);
        }
    }

    /// The newest ACK that may ride on data.
    pub(super) fn take_newest_in_order(&mut self) -> Option<DecidedAck> {
        let at = self.list.iter().rposition(|ack| ack.kind == AckKind::InOrder)?;
        Some(self.list.remove(at))
    }

    /// The next ACK that leaves alone.
    pub(super) fn pop(&mut self, cx: &mut Cx<'_>, merging: Merging, facts: &Facts<'_>) -> Option<DecidedAck> {
        let Merging { merge, has_sack } = merging;
        let has_blocks = |ack: &DecidedAck| has_sack && (facts.view.holes > 0 || ack.is_for_blocks());
        if has_sack && merge == AckMerge::Read || self.list.iter().any(has_blocks) {
            self.let_go_what_has_no_news(cx, facts.rcv_nxt);
        }
        if self.list.is_empty() {
            return None;
        }
        let mut ack = self.list.remove(0);
        if has_blocks(&ack) {
            ack.number = facts.rcv_nxt;
            // It is now the first to acknowledge the data of the others.
            ack.echo = self.list.iter_mut().map(|other| other.echo.take()).fold(ack.echo, earlier);
        }
        Some(ack)
    }

    /// Removes the ACKs whose news another one carries, since all report the current state. One always stays.
    fn let_go_what_has_no_news(&mut self, cx: &mut Cx<'_>, rcv_nxt: Seq) {
        let mut at = 0;
        while self.list.len() > 1 && at < self.list.len() {
            if self.list[at].has_news(rcv_nxt) {
                at += 1;
                continue;
            }
            self.let_go(cx, at);
        }
    }

    pub(super) fn relax(&mut self) {
        if self.list.is_empty() {
            self.list = Vec::new();
        }
    }

    pub(super) fn allocated(&self) -> usize {
        self.list.capacity() * size_of::<DecidedAck>()
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }
}

fn is_within((left, right): Stretch, (from, to): Stretch) -> bool {
    from <= left && right <= to
}
