//! A flow whose ACKs leave here: its agent, the data that the agent owes an ACK, and the ACK that waits.
//!
//! The flow shows no arriving data. What an ACK acknowledges beyond the one before it arrived, as so many full segments
//! of the interface's MTU, or of a smaller size that the numbers of ACKs show.

use std::time::Duration;

use hopwise_core::agent::{AckDecided, AckVerdict, Arrival, By, Class, Owed, Path, ReceiverAgent, RecvView};
use hopwise_core::wire::{Flags, SackBlock};
use hopwise_core::{Instant, Seq};

use super::read::ReadHead;
use super::{AckFate, CEILING, PAUSE};

/// The advertised window is scaled by what a SYN said that was not seen: agents see no limit.
const NO_LIMIT: u32 = 1 << 30;
/// More than any window: an ACK this far ahead is no next one.
const FARTHEST: u32 = 1 << 30;
/// The segments that an ACK may stand for, so that no packet costs an endless loop.
const MOST_SEGMENTS: u32 = 256;
/// So many advances in succession that are multiples of a size show the size of segments. Segments of bulk data are
/// no smaller than the least MTU of IPv4 allows (RFC 9293 §3.7.1), with timestamps.
const AGREED: u8 = 4;
const LEAST_SEGMENT: u32 = 524;

/// An ACK that the kernel keeps for us.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldAck {
    pub(super) id: u32,
    pub(super) seq: Seq,
    pub(super) number: Seq,
}

impl HeldAck {
    /// Returns whether the segment continues the flow behind this ACK.
    pub(super) fn goes_on_in(&self, read: &ReadHead) -> bool {
        read.seq == self.seq && read.ack - self.number < FARTHEST
    }
}

#[derive(Debug)]
pub(super) struct AckFlow {
    agent: Box<dyn ReceiverAgent>,
    owed: Owed,
    /// Hops alone are known of it.
    path: Path,
    /// The newest number, the sequence number behind it, and the window that left with it.
    number: Seq,
    seq: Seq,
    window: u16,
    /// The SACK blocks that left with the newest number, or that the waiting ACK has.
    sack: Vec<SackBlock>,
    mss: u32,
    /// The greatest common divisor of the last advances, and their number.
    common: (u32, u8),
    /// Bytes behind the newest number that duplicates without SACK have shown to have a hole: the least that there is.
    to_fill: u32,
    heard: Instant,
    /// The segments that were acknowledged when the flow began, or began anew after a pause.
    began_at: u64,
    /// When the last data came in order, and the last data of any class.
    last_in_order: Option<Instant>,
    last_arrival: Option<Instant>,
    pub(super) held: Option<HeldAck>,
    /// When the agent last held an ACK at its deadline. A deadline that is no later counts no more, or the agent would
    /// be asked for ever.
    asked: Option<Instant>,
    /// The deadline under which the table has this flow.
    pub(super) filed: Option<Instant>,
}

impl AckFlow {
    pub(super) fn new(now: Instant, agent: Box<dyn ReceiverAgent>, path: Path, read: &ReadHead) -> AckFlow {
        AckFlow {
            agent,
            owed: Owed::default(),
            path,
            number: read.ack,
            seq: read.seq,
            window: read.window,
            sack: read.sack.clone(),
            mss: 0,
            common: (0, 0),
            to_fill: 0,
            heard: now,
            began_at: 0,
            last_in_order: None,
            last_arrival: None,
            held: None,
            asked: None,
            filed: None,
        }
    }

    /// Returns whether the owed segments are that part of all since the beginning.
    pub(super) fn is_growing(&self, growth: u32) -> bool {
        u64::from(self.owed.segments) * u64::from(growth) >= self.owed.in_order_total - self.began_at
            && growth > 0
    }

    pub(super) fn has_acknowledged(&self) -> bool {
        self.owed.in_order_total > 0
    }

    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.since(self.heard)
    }

    /// What a pure ACK says besides that data came in order.
    pub(super) fn news(&self, read: &ReadHead) -> Option<&'static str> {
        let advance = read.ack - self.number;
        let all = [
            (self.has_new_block(read), "new SACK blocks"),
            (advance == 0, "a duplicate"),
            (advance >= FARTHEST, "an older number"),
            (self.to_fill > 0, "it fills a hole"),
            (read.flags != Flags::ACK, "flags besides ACK"),
            (read.window == 0 || self.window == 0, "a window that closes or opens"),
            (read.seq != self.seq, "another sequence number than the flow's"),
        ];
        all.into_iter().find_map(|(is_so, what)| is_so.then_some(what))
    }

    /// Returns whether a SACK block is in no earlier ACK, or reports data that came twice (RFC 2883): such a block lies
    /// below the number or in a block behind it. Two known blocks that have become one are new.
    fn has_new_block(&self, read: &ReadHead) -> bool {
        let lies_in = |block: &SackBlock, blocks: &[SackBlock]| {
            blocks.iter().any(|known| known.left <= block.left && block.right <= known.right)
        };
        let is_new = |(nth, block): (usize, &SackBlock)| {
            block.left < read.ack || lies_in(block, &read.sack[nth + 1..]) || !lies_in(block, &self.sack)
        };
        read.sack.iter().enumerate().any(is_new)
    }

    /// Tells the agent of the data that the segment acknowledges. Returns whether the agent wants an ACK.
    pub(super) fn hear(&mut self, now: Instant, read: &ReadHead, mtu: u16) -> bool {
        let advance = match read.ack - self.number {
            advance if advance < FARTHEST => advance,
            _ => 0,
        };
        self.learn_segment(advance, u32::from(mtu.saturating_sub(read.headers)).max(1));
        // Within a hole data comes in order. RFC 5681 §4.2 would have an ACK at once. The sender knows the hole,
        // though, and the segment that reaches a known block fills it.
        let is_in_order = self.to_fill == 0
            && !self.has_new_block(read)
            && self.sack.iter().all(|known| read.ack < known.left);
        let class = match advance {
            0 if !read.sack.is_empty() => Class::OutOfOrder,
            // A change of the window, a probe, or data of our own.
            0 => return false,
            _ if is_in_order => Class::InOrder,
            _ => Class::FillsHole,
        };
        let count = advance.div_ceil(self.mss).clamp(1, MOST_SEGMENTS);
        let share = |last: Option<Instant>| last.map(|last| now.since(last) / count);
        let (gap, gap_in_order) = (share(self.last_arrival), share(self.last_in_order));
        let holes = u32::try_from(read.sack.len()).unwrap_or(u32::MAX);
        if self.silence(now) > PAUSE {
            self.began_at = self.owed.in_order_total;
        }
        let (mut to_come, mut is_wanted) = (advance, false);
        for nth in 0..count {
            let bytes = if nth + 1 == count { to_come } else { self.mss.min(to_come) };
            to_come -= bytes;
            let bytes = if class == Class::OutOfOrder { self.mss } else { bytes };
            let mut arrival = Arrival::new(now, class, bytes);
            (arrival.gap, arrival.gap_in_order) = (gap, gap_in_order);
            is_wanted |= self.on_segment(&arrival, holes);
        }
        self.last_arrival = Some(now);
        if class != Class::OutOfOrder {
            self.last_in_order = Some(now);
        }
        // The ACK acknowledges the segments behind the one that decided as well.
        if is_wanted && self.owed.segments > 0 {
            self.settle(now, By::Forced);
        }
        is_wanted
    }

    fn learn_segment(&mut self, advance: u32, full: u32) {
        if advance > 0 {
            let (mut common, mut rest) = (advance, self.common.0);
            while rest > 0 {
                (common, rest) = (rest, common % rest);
            }
            let goes_on = common >= LEAST_SEGMENT;
            self.common = if goes_on { (common, self.common.1.saturating_add(1)) } else { (advance, 1) };
        }
        self.mss = if self.common.1 >= AGREED { self.common.0.min(full) } else { full };
    }

    fn on_segment(&mut self, arrival: &Arrival, holes: u32) -> bool {
        if arrival.class != Class::OutOfOrder {
            self.owed.segments += 1;
            self.owed.bytes = self.owed.bytes.saturating_add(arrival.bytes);
            self.owed.since.get_or_insert(arrival.now);
            self.owed.in_order_total += 1;
        }
        let mut view = RecvView::new(self.owed, &self.path, self.mss, NO_LIMIT);
        view.holes = holes;
        match self.agent.on_arrival(arrival, &view) {
            AckVerdict::Now(_) => {
                self.settle(arrival.now, By::Agent);
                true
            }
            // Nothing is written here, a repeat neither.
            AckVerdict::Hold(_) | AckVerdict::Repeat(_) => false,
        }
    }

    /// Books an ACK, so that nothing is owed, and tells the agent.
    pub(super) fn settle(&mut self, now: Instant, by: By) {
        let decided = AckDecided::new(now, by, self.owed.segments, self.owed.bytes);
        let in_order_total = self.owed.in_order_total;
        self.owed = Owed { last_ack: Some(now), in_order_total, ..Owed::default() };
        let view = RecvView::new(self.owed, &self.path, self.mss, NO_LIMIT);
        self.agent.on_ack(&decided, &view);
    }

    /// Keeps what the next segment is compared with.
    pub(super) fn note(&mut self, now: Instant, read: &ReadHead) {
        let advance = read.ack - self.number;
        if advance > 0 {
            // It tells of a further hole if it does not fill all.
            self.to_fill = if advance < self.to_fill { self.to_fill - advance + self.mss } else { 0 };
        } else if !read.takes_numbers() && read.sack.is_empty() && read.window == self.window {
            // A duplicate stands for a segment behind a hole.
            self.to_fill = (self.to_fill.max(self.mss) + self.mss).min(NO_LIMIT);
        }
        self.heard = now;
        self.seq = read.next();
        self.number = read.ack;
        self.window = read.window;
        self.sack.clone_from(&read.sack);
    }

    /// The instant at which the waiting ACK is looked at next.
    pub(super) fn due(&self) -> Option<Instant> {
        self.held?;
        let ceiling = self.owed.since.map_or(self.heard, |since| since + CEILING);
        Some(self.deadline().map_or(ceiling, |asked| asked.min(ceiling)))
    }

    fn deadline(&self) -> Option<Instant> {
        self.agent.deadline().filter(|due| self.asked.is_none_or(|asked| asked < *due))
    }

    /// Asks the agent if it is due. Returns the ACK that leaves, and why.
    pub(super) fn on_deadline(&mut self, now: Instant) -> Option<(HeldAck, AckFate)> {
        let held = self.held?;
        let mut leaves = false;
        if self.deadline().is_some_and(|due| due <= now) {
            let view = RecvView::new(self.owed, &self.path, self.mss, NO_LIMIT);
            leaves = matches!(self.agent.on_deadline(now, &view), AckVerdict::Now(_));
            self.asked = Some(now);
        }
        let by = if leaves { By::Agent } else { By::Forced };
        if leaves || self.owed.since.is_none_or(|since| since + CEILING <= now) {
            self.settle(now, by);
            self.held = None;
            return Some((held, if leaves { AckFate::Agent } else { AckFate::Ceiling }));
        }
        None
    }
}
