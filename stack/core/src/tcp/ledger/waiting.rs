//! ACKs that were decided and wait for the link: which of them leave, and what they tell.
//!
//! A SACK block tells of the instant at which it leaves, and so must the number beside it: an older one would report a
//! hole that is filled (RFC 2018 §3). Then an ACK whose news another one tells has none of its own, and does not leave.
//! Without SACK, a sender counts duplicate ACKs, so that each of them leaves as it was decided.

use super::{AckKind, AckMerge, Aim, By, Cx, DecidedAck, Facts, QUEUE, Stretch};
use crate::Seq;
use crate::agent::AckNote;
use crate::trace::TraceKind;

/// A long read may bring this many segments of which each asks for a report of its own.
const MOST_REPORTS: usize = 64;

/// In the order in which they were decided; their numbers never decrease.
#[derive(Default)]
pub(super) struct Waiting {
    /// On the heap, since most connections are idle at most times.
    list: Vec<DecidedAck>,
}

/// What decides which of them go into others.
#[derive(Clone, Copy)]
pub(super) struct Merging {
    pub(super) merge: AckMerge,
    pub(super) has_sack: bool,
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

    /// One ACK is enough for the segments of a stretch. Each D-SACK stays.
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

    /// A segment makes one of several stretches, or a stretch grows: one ACK is enough for all of it.
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

    /// The queue is full: the oldest in-order ACK goes into its successor. Where none waits, more of those that report
    /// something else each may wait.
    fn make_room(&mut self, cx: &mut Cx<'_>) {
        let oldest = self.list.iter().position(|ack| ack.kind == AckKind::InOrder);
        let has_reports = self.list.iter().any(DecidedAck::is_for_blocks);
        if oldest.is_none() && has_reports && self.list.len() < MOST_REPORTS {
            return;
        }
        self.let_go(cx, oldest.unwrap_or(0));
    }

    /// One goes into its successor, or where it is the last, into the one before it.
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

    /// The newest that may ride on data.
    pub(super) fn take_newest_in_order(&mut self) -> Option<DecidedAck> {
        let at = self.list.iter().rposition(|ack| ack.kind == AckKind::InOrder)?;
        Some(self.list.remove(at))
    }

    /// The next that leaves alone.
    pub(super) fn pop(&mut self, cx: &mut Cx<'_>, merging: Merging, facts: &Facts<'_>) -> Option<DecidedAck> {
        let Merging { merge, has_sack } = merging;
        let has_blocks = |ack: &DecidedAck| has_sack && (facts.holes > 0 || ack.is_for_blocks());
        if has_sack && merge == AckMerge::Read || self.list.iter().any(has_blocks) {
            self.let_go_what_has_no_news(cx, facts.rcv_nxt);
        }
        if self.list.is_empty() {
            return None;
        }
        let mut ack = self.list.remove(0);
        if has_blocks(&ack) {
            ack.number = facts.rcv_nxt;
            // It is the first to acknowledge what the others were the first to.
            ack.echo = self.list.iter_mut().map(|other| other.echo.take()).fold(ack.echo, earlier);
        }
        Some(ack)
    }

    /// Those that another one speaks for, as all of them tell what is so now. One always stays.
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

impl DecidedAck {
    pub(crate) fn is_repeat(&self) -> bool {
        self.kind == AckKind::Repeat
    }

    pub(super) fn new(
        cx: &Cx<'_>,
        aim: Aim,
        note: AckNote,
        twice: Option<Stretch>,
        facts: &Facts<'_>,
    ) -> DecidedAck {
        DecidedAck {
            number: facts.rcv_nxt,
            decided: facts.rcv_nxt,
            echo: (facts.last_decided < facts.rcv_nxt).then_some(facts.ts_recent),
            note,
            kind: aim.kind,
            twice,
            part_of: aim.part_of,
            read: cx.packet as u32,
            nth: 0,
        }
    }

    pub(super) fn goes_into(&self, cx: &mut Cx<'_>, other: &DecidedAck) {
        cx.trace(TraceKind::AckMerged { number: self.number, decision: self.nth, into: other.nth });
    }

    /// An older one goes into this one: its segments have waited longest, and a D-SACK of its own stays.
    fn take_over(&mut self, older: &DecidedAck) {
        self.echo = earlier(self.echo, older.echo);
        self.twice = self.twice.or(older.twice);
    }

    /// It was decided because of what only SACK blocks tell.
    fn is_for_blocks(&self) -> bool {
        self.twice.is_some() || self.part_of.is_some()
    }

    /// It tells more than how far everything has come. A repeat is a copy on purpose.
    fn has_news(&self, rcv_nxt: Seq) -> bool {
        let is_above = self.part_of.is_some_and(|(_, end)| rcv_nxt < end);
        self.kind == AckKind::Repeat || self.twice.is_some() || is_above
    }
}

/// Of two timestamps of the peer's.
pub(super) fn earlier(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    let is_earlier = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
    [one, other].into_iter().flatten().reduce(|a, b| if is_earlier(a, b) { a } else { b })
}

fn is_within((left, right): Stretch, (from, to): Stretch) -> bool {
    from <= left && right <= to
}
