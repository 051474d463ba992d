//! Flow control: what the peer lets us send.

use super::Connection;
use crate::tcp::cx::Cx;
use crate::tcp::timers::Timer;
use crate::wire::{Flags, TcpView};
use crate::{Instant, Moment};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowNews {
    Same,
    Moved,
}

impl Connection {
    /// RFC 9293 §3.10.7.4: the newest segment tells the window, unless its field carries the peer's cwnd.
    pub(super) fn take_window(&mut self, cx: &Cx<'_>, segment: &TcpView<'_>) -> WindowNews {
        if self.opening.agreed().use_in_window() && !segment.payload.is_empty() {
            self.receiving.take_peer_cwnd(segment.window);
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
            self.snd.nxt = self.loss.unbook_window_probe().unwrap_or(self.snd.nxt);
            self.timers.disarm(Timer::Retransmit);
            self.snd.last_sent_at = Moment::at(now);
        }
    }

    /// What the peer's window still takes.
    pub(super) fn usable_window(&self) -> u32 {
        (self.snd.una + self.snd.wnd).bytes_since(self.snd.nxt)
    }
}
