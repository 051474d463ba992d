//! The receive window and the buffer behind it.

use std::time::Duration;

use super::{Around, Receiving};
use crate::agent::{AckRule, Why};
use crate::tcp::connection::opening::Negotiated;
use crate::tcp::cx::{Cx, Memory};
use crate::tcp::ledger::AckKind;
use crate::{Instant, Seq};

/// The interval of buffer tuning before an RTT is known.
const TUNING_WITHOUT_RTT: Duration = Duration::from_millis(100);

/// Receive-buffer tuning. The window is twice what the application reads in a round trip, plus the expected growth. It
/// thus never limits a sender that still grows. A sender that loses a segment at the end of slow start needs room for
/// one and a half windows above the hole.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tuning {
    since: Instant,
    read_bytes: u32,
    /// Bytes read in the round trip before.
    read_before: u32,
}

impl Receiving {
    /// The bytes that the peer may still send.
    pub(crate) fn advertised_bytes(&self) -> u32 {
        self.edge.bytes_since(self.nxt)
    }

    /// The right edge that may be promised now. It never moves left, and moves right only by a worthwhile step (RFC
    /// 9293 §3.8.6.2.2).
    fn window_edge(&self, memory: Memory, around: Around<'_>) -> Seq {
        let edge = self.edge.max(self.nxt);
        if !self.is_wider_by_a_step(memory, around) {
            return edge;
        }
        edge.max(self.reachable_edge(memory, around.agreed))
    }

    fn is_wider_by_a_step(&self, memory: Memory, around: Around<'_>) -> bool {
        let step = (self.most_held(memory) / 2).min(self.segment_bytes(around.mss));
        self.reachable_edge(memory, around.agreed).bytes_since(self.advertised) >= step
    }

    fn reachable_edge(&self, memory: Memory, agreed: &Negotiated) -> Seq {
        let free = self.most_held(memory).saturating_sub(self.buffer.readable());
        self.nxt + whole_units(free, agreed)
    }

    /// The capacity of the buffer (RCV.BUFF). Promises are kept; when memory is spent, new promises would be broken.
    fn most_held(&self, memory: Memory) -> u32 {
        match memory {
            Memory::Spent => self.buffer.most_as_it_is(),
            Memory::Plenty | Memory::Tight => self.buffer.limit(),
        }
    }

    /// Picks the ACK number of a leaving segment: the given one, or the current one. Updates the edge that the segment
    /// may promise.
    pub(crate) fn tell_number(&mut self, memory: Memory, number: Option<Seq>, around: Around<'_>) -> Seq {
        // A segment without a decided ACK carries the current number: a newer number is never wrong.
        let number = number.unwrap_or(self.nxt);
        self.edge = self.window_edge(memory, around);
        self.last_told = number;
        number
    }

    /// The window field for an ACK of `number`. It is rounded up, so that a promised edge stays promised; the buffer
    /// has room for the extra bytes. Segments smaller than a few units may use that room up. The field is then rounded
    /// down, and the edge moves back by less than a unit (RFC 7323 §2.4).
    pub(crate) fn promise_window(&mut self, number: Seq, agreed: &Negotiated) -> u16 {
        let shift = agreed.scale.map_or(0, |scale| scale.rcv);
        let promised = self.edge.bytes_since(number);
        let taken = (self.nxt + self.buffer.room()).bytes_since(number);
        let mut units = u64::from(promised).div_ceil(1 << shift);
        if u64::from(taken) < units << shift {
            units = u64::from(promised >> shift);
        }
        let field = u16::try_from(units).unwrap_or(u16::MAX);
        self.advertised = number + (u32::from(field) << shift);
        self.edge = self.edge.max(self.advertised);
        field
    }

    /// After a read by the application, the window may have to reopen and the buffer may have to grow.
    pub(crate) fn after_read(
        &mut self,
        cx: &mut Cx<'_>,
        bytes: u32,
        most: u32,
        may_answer: bool,
        around: Around<'_>,
    ) {
        self.tune_buffer(cx, bytes, most, around);
        let read_to = self.read_to();
        self.urgent_end = self.urgent_end.filter(|end| read_to < *end);
        let promised = self.advertised.bytes_since(self.nxt);
        // Only a peer that may be stuck gets an ACK at once; otherwise the agent's next ACK carries the window. An ACK
        // that waits for the link reads the window when it leaves.
        if promised < 2 * self.segment_bytes(around.mss)
            && !self.ledger.is_waiting()
            && self.is_wider_by_a_step(cx.memory, around)
            && may_answer
            && self.fin.is_none()
        {
            self.force_ack(cx, AckKind::Duplicate, Why::plain(AckRule::Window), around);
        }
    }

    fn tune_buffer(&mut self, cx: &Cx<'_>, bytes: u32, most: u32, around: Around<'_>) {
        let now = cx.now;
        let tuning = &mut self.tuning;
        tuning.read_bytes = tuning.read_bytes.saturating_add(bytes);
        let rtt = around.path.rtt.smoothed.unwrap_or(TUNING_WITHOUT_RTT);
        if now.since(tuning.since) < rtt {
            return;
        }
        let (read, grown) = (tuning.read_bytes, tuning.read_bytes.saturating_sub(tuning.read_before));
        let wanted = read.saturating_add(grown.saturating_mul(2)).saturating_mul(2);
        let wanted = wanted.saturating_add(16 * around.mss);
        *tuning = Tuning { since: now, read_bytes: 0, read_before: read };
        let may_grow = cx.memory == Memory::Plenty;
        if may_grow && wanted > self.buffer.limit() && self.buffer.limit() < most {
            self.buffer.set_limit(wanted.min(most));
        }
    }
}

/// Rounds down to whole units of the scale, since a window cannot promise less than a unit.
fn whole_units(bytes: u32, agreed: &Negotiated) -> u32 {
    let shift = agreed.scale.map_or(0, |scale| scale.rcv);
    let most = u32::from(u16::MAX) << shift;
    (bytes >> shift << shift).min(most)
}
