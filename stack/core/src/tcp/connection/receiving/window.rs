//! The window that we let the peer send into, and the buffer behind it.

use std::time::Duration;

use super::{Around, Receiving};
use crate::agent::{Rule, Why};
use crate::tcp::connection::opening::Negotiated;
use crate::tcp::cx::{Cx, Memory};
use crate::tcp::ledger::AckKind;
use crate::{Instant, Seq};

/// A receiver that knows no RTT yet tunes its buffer this often.
const TUNING_WITHOUT_RTT: Duration = Duration::from_millis(100);

/// Receive-buffer tuning: the window follows twice what the application reads in a round trip, so that it never
/// limits a sender that is only beginning to grow, and what the next one will bring while that still grows. A
/// sender that loses something at the end of slow start needs room for one and a half windows above the hole.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tuning {
    since: Instant,
    read_bytes: u32,
    /// In the round trip before.
    read_before: u32,
}

impl Receiving {
    /// What the peer may still send.
    pub(in crate::tcp::connection) fn advertised_bytes(&self) -> u32 {
        self.edge.bytes_since(self.nxt)
    }

    /// The right edge that may be promised now. It never moves left, and moves right by a worthwhile step only
    /// (RFC 9293 §3.8.6.2.2).
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

    /// What the buffer can hold (RCV.BUFF). What was promised stays so. New promises would be broken where memory is
    /// spent.
    fn most_held(&self, memory: Memory) -> u32 {
        match memory {
            Memory::Spent => self.buffer.most_as_it_is(),
            Memory::Plenty | Memory::Tight => self.buffer.limit(),
        }
    }

    /// A segment leaves with an ACK of this number, or of where we are now; answers the number. The window that it
    /// may promise is read now.
    pub(in crate::tcp::connection) fn tell_number(
        &mut self,
        memory: Memory,
        number: Option<Seq>,
        around: Around<'_>,
    ) -> Seq {
        // A segment that carries more than the frozen number says so: a newer number is never wrong.
        let number = number.unwrap_or(self.nxt);
        self.edge = self.window_edge(memory, around);
        self.last_told = number;
        number
    }

    /// The number of the last segment that told our window.
    pub(in crate::tcp::connection) fn last_told(&self) -> Seq {
        self.last_told
    }

    /// The header's field for an ACK of `number`. Rounded up, so that an edge once promised stays promised; what
    /// that adds is promised too, and the buffer has room for it. Segments smaller than a few units may use that room
    /// up: then the field is rounded down, and the edge moves back by less than a unit (RFC 7323 §2.4).
    pub(in crate::tcp::connection) fn promise_window(&mut self, number: Seq, agreed: &Negotiated) -> u16 {
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

    /// The application read: the window may have to reopen, and the buffer may have to grow.
    pub(in crate::tcp::connection) fn after_read(
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
        // Only a peer that may be stuck is told at once; else the next ACK says it, whenever the agent sends one. One
        // that waits for the link will read the window when it leaves.
        if promised < 2 * self.segment_bytes(around.mss)
            && !self.ledger.is_waiting()
            && self.is_wider_by_a_step(cx.memory, around)
            && may_answer
            && self.fin.is_none()
        {
            self.force_ack(cx, AckKind::Duplicate, Why::plain(Rule::Window), around);
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

/// Windows are told in units of the scale; promising less than a unit more than there is room for is not
/// possible, so what is over is kept back.
fn whole_units(bytes: u32, agreed: &Negotiated) -> u32 {
    let shift = agreed.scale.map_or(0, |scale| scale.rcv);
    let most = u32::from(u16::MAX) << shift;
    (bytes >> shift << shift).min(most)
}
