//! The peer's window and its free room.

use super::Sending;
use crate::Seq;
use crate::tcp::connection::opening::Negotiated;
use crate::wire::{Flags, TcpView};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowNews {
    Same,
    Wider,
    Narrower,
}

impl Sending {
    /// The window of a SYN is never scaled (RFC 7323 §2.2).
    pub(crate) fn begin_window(&mut self, syn: &TcpView<'_>) {
        self.wnd = u32::from(syn.window);
        self.max_wnd = self.wnd;
        self.wl1 = syn.seq;
        self.wl2 = if syn.flags.contains(Flags::ACK) { syn.ack } else { self.iss };
    }

    /// The first window after the handshake counts even though wl1 and wl2 have not moved.
    pub(crate) fn expect_window_of(&mut self, segment: &TcpView<'_>) {
        self.wl1 = segment.seq - 1;
        self.wl2 = segment.ack;
    }

    /// RFC 9293 §3.10.7.4: the newest segment sets the window.
    pub(crate) fn take_window(&mut self, segment: &TcpView<'_>, agreed: &Negotiated) -> WindowNews {
        // A retransmitted segment has an old number, but an ACK that advances shows that it is new. The window then
        // counts from that ACK.
        let is_newer = self.wl1 < segment.seq
            || (self.wl1 == segment.seq && self.wl2 <= segment.ack)
            || self.una < segment.ack;
        if !is_newer || segment.ack < self.una {
            return WindowNews::Same;
        }
        let window = scaled(segment, agreed);
        let was = self.wnd;
        self.wnd = window;
        self.max_wnd = self.max_wnd.max(window);
        self.wl1 = self.wl1.max(segment.seq);
        self.wl2 = segment.ack;
        match window {
            window if window > was => WindowNews::Wider,
            window if window < was => WindowNews::Narrower,
            _ => WindowNews::Same,
        }
    }

    /// Keeps the edge where a pure ACK put it, because this field carries cwnd. The ACK with the newest window may have
    /// been lost.
    pub(crate) fn keep_edge(&mut self, ack: Seq) {
        if self.una < ack {
            self.wnd = self.wnd.saturating_sub(ack.bytes_since(self.una));
        }
    }

    /// Counts the peer's window from `highest_ack` until an ACK says more, since routing says that the peer has all
    /// below. It is as large as it ever was. A segment beyond the peer's real window gets an ACK, as a probe would.
    pub(crate) fn count_window_from_highest_ack(&mut self) {
        self.wnd = self.max_wnd.saturating_add(self.highest_ack.bytes_since(self.una));
    }

    /// Bytes that fit in the rest of the peer's window.
    pub(crate) fn usable_window(&self) -> u32 {
        (self.una + self.wnd).bytes_since(self.nxt)
    }

    /// Returns whether data lies beyond the window: a probe, or data that a shrinking window left outside.
    pub(crate) fn is_beyond_window(&self) -> bool {
        self.una + self.wnd < self.nxt
    }

    /// The number of an ACK or RST without data: the next one, or the end of a window that shrank. A peer ignores all
    /// that lies beyond its window (RFC 9293 §3.10.7.4), also the acknowledgement and the window in it. Our SYN lies
    /// beyond no window: the first window counts from the number after the SYN.
    pub(crate) fn number_in_window(&self) -> Seq {
        let is_syn_alone = self.una == self.iss && self.nxt == self.iss + 1;
        if self.is_beyond_window() && !is_syn_alone { self.una + self.wnd } else { self.nxt }
    }

    /// Returns whether an ACK is older than any window allows (RFC 5961 §5.2).
    pub(crate) fn is_too_old(&self, ack: Seq) -> bool {
        ack < self.una - self.max_wnd
    }
}

fn scaled(segment: &TcpView<'_>, agreed: &Negotiated) -> u32 {
    let shift =
        if segment.flags.contains(Flags::SYN) { 0 } else { agreed.scale.map_or(0, |scale| scale.snd) };
    u32::from(segment.window) << shift
}
