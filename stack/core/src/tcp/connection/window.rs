//! Flow control in both directions: what the peer lets us send, and what we let it send.

use std::time::Duration;

use super::Connection;
use crate::agent::{Rule, Why};
use crate::tcp::cx::{Cx, Memory};
use crate::tcp::ledger::AckKind;
use crate::tcp::timers::Timer;
use crate::wire::{Flags, TcpView};
use crate::{Instant, Moment, Seq};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowNews {
    Same,
    Moved,
}

impl Connection {
    /// RFC 9293 §3.10.7.4: the newest segment tells the window, unless its field carries the peer's cwnd.
    pub(super) fn take_window(&mut self, cx: &Cx<'_>, segment: &TcpView<'_>) -> WindowNews {
        if self.opening.agreed().use_in_window() && !segment.payload.is_empty() {
            self.rcv.peer_cwnd = Some(segment.window);
            // The ACK that told its window may be lost: the edge stays where it was last told.
            if self.snd.una < segment.ack {
                self.snd.wnd = self.snd.wnd.saturating_sub(segment.ack.bytes_since(self.snd.una));
            }
            return WindowNews::Same;
        }
        // One that is sent again has an old number, but what it newly acknowledges shows that it is news: the window
        // counts from there.
        let is_newer = self.snd.wl1 < segment.seq
            || (self.snd.wl1 == segment.seq && self.snd.wl2 <= segment.ack)
            || self.snd.una < segment.ack;
        if !is_newer || segment.ack < self.snd.una {
            return WindowNews::Same;
        }
        let window = self.scaled(segment);
        let was = self.snd.wnd;
        self.snd.wnd = window;
        self.snd.max_wnd = self.snd.max_wnd.max(window);
        self.snd.wl1 = self.snd.wl1.max(segment.seq);
        self.snd.wl2 = segment.ack;
        if window > was {
            self.window_opened(cx.now);
        }
        if window == was { WindowNews::Same } else { WindowNews::Moved }
    }

    fn scaled(&self, segment: &TcpView<'_>) -> u32 {
        let shift = if segment.flags.contains(Flags::SYN) {
            0
        } else {
            self.opening.agreed().scale.map_or(0, |scale| scale.snd)
        };
        u32::from(segment.window) << shift
    }

    /// A probe byte that the peer refused goes out again with what follows it, not alone.
    fn window_opened(&mut self, now: Instant) {
        self.timers.disarm(Timer::Persist);
        let has_probe_out = self.has_probe_out();
        self.urges.window_probes_sent = 0;
        self.urges.window_probe = false;
        if has_probe_out {
            let byte = self.board.unsend_last();
            self.snd.nxt = byte.map_or(self.snd.nxt, |byte| byte.seq);
            self.timers.disarm(Timer::Retransmit);
            self.snd.last_sent_at = Moment::at(now);
        }
    }

    /// What the peer's window still takes.
    pub(super) fn usable_window(&self) -> u32 {
        (self.snd.una + self.snd.wnd).bytes_since(self.snd.nxt)
    }

    /// The right edge that may be promised now. It never moves left, and moves right by a worthwhile step only
    /// (RFC 9293 §3.8.6.2.2).
    pub(super) fn window_edge(&self) -> Seq {
        let edge = self.rcv.edge.max(self.rcv.nxt);
        if self.is_wider_by_a_step() { edge.max(self.reachable_edge()) } else { edge }
    }

    fn is_wider_by_a_step(&self) -> bool {
        let step = (self.rcv.buffer.limit() / 2).min(self.recv_mss());
        self.reachable_edge().bytes_since(self.rcv.advertised) >= step
    }

    fn reachable_edge(&self) -> Seq {
        self.rcv.nxt + self.whole_units(self.rcv.buffer.free_from_nxt())
    }

    /// Windows are told in units of the scale; promising less than a unit more than there is room for is not
    /// possible, so what is over is kept back.
    fn whole_units(&self, bytes: u32) -> u32 {
        let shift = self.opening.agreed().scale.map_or(0, |scale| scale.rcv);
        let most = u32::from(u16::MAX) << shift;
        (bytes >> shift << shift).min(most)
    }

    /// The header's field for an ACK of `number`. Rounded up, so that an edge once promised stays promised; what
    /// that adds is promised too, and the buffer has room for it. Segments smaller than a few units may use that room
    /// up: then the field is rounded down, and the edge moves back by less than a unit (RFC 7323 §2.4).
    pub(super) fn promise_window(&mut self, number: Seq) -> u16 {
        let shift = self.opening.agreed().scale.map_or(0, |scale| scale.rcv);
        let promised = self.rcv.edge.bytes_since(number);
        let taken = (self.rcv.nxt + self.rcv.buffer.room()).bytes_since(number);
        let mut units = u64::from(promised).div_ceil(1 << shift);
        if u64::from(taken) < units << shift {
            units = u64::from(promised >> shift);
        }
        let field = u16::try_from(units).unwrap_or(u16::MAX);
        self.rcv.advertised = number + (u32::from(field) << shift);
        self.rcv.edge = self.rcv.edge.max(self.rcv.advertised);
        field
    }

    /// Segments that come in are about as large as those that go out, or as the largest that came.
    pub(super) fn recv_mss(&self) -> u32 {
        self.snd.mss.max(self.rcv.largest)
    }

    /// The application read: the window may have to reopen, and the buffer may have to grow.
    pub(super) fn after_read(&mut self, cx: &mut Cx<'_>, bytes: u32) {
        self.tune_recv_buffer(cx, bytes);
        let read_to = self.read_to();
        self.rcv.urgent_end = self.rcv.urgent_end.filter(|end| read_to < *end);
        let promised = self.rcv.advertised.bytes_since(self.rcv.nxt);
        // Only a peer that may be stuck is told at once; else the next ACK says it, whenever the agent sends one. One
        // that waits for the link will read the window when it leaves.
        if promised < 2 * self.recv_mss()
            && !self.ledger.is_waiting()
            && self.is_wider_by_a_step()
            && self.state.is_synchronized()
            && self.rcv.fin.is_none()
        {
            let why = Why::plain(Rule::Window);
            self.force_ack(cx, AckKind::Duplicate, why);
        }
    }

    fn tune_recv_buffer(&mut self, cx: &Cx<'_>, bytes: u32) {
        let now = cx.now;
        let tuning = &mut self.rcv.tuning;
        tuning.read_bytes = tuning.read_bytes.saturating_add(bytes);
        let rtt = self.path.rtt.smoothed.unwrap_or(TUNING_WITHOUT_RTT);
        if now.since(tuning.since) < rtt {
            return;
        }
        let (read, grown) = (tuning.read_bytes, tuning.read_bytes.saturating_sub(tuning.read_before));
        let wanted = read.saturating_add(grown.saturating_mul(2)).saturating_mul(2);
        let wanted = wanted.saturating_add(16 * self.snd.mss);
        *tuning = Tuning { since: now, read_bytes: 0, read_before: read };
        let may_grow = cx.memory == Memory::Plenty;
        if may_grow
            && wanted > self.rcv.buffer.limit()
            && self.rcv.buffer.limit() < self.config.recv_buffer.max
        {
            self.rcv.buffer.set_limit(wanted.min(self.config.recv_buffer.max));
        }
    }
}
