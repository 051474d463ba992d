//! Sending: the numbers that were sent and acknowledged, the program's data, and the peer's window.
//!
//! This part knows no timer, no agent and not which segments are in flight. Other parts read its fields and set its
//! flags; its numbers move by its methods alone. `window` is its submodule.
//!
//! Invariant (checked after every event in debug builds)
//! - C1: `una <= nxt <= max`. The scoreboard spans exactly una..nxt (less the SYN); that is checked at the connection.

mod window;

pub(super) use window::WindowNews;

use crate::agent::{AckRequestForm, Turn};
use crate::tcp::send_buffer::SendBuffer;
use crate::{Instant, Moment, Seq};

/// The send sequence space (RFC 9293 §3.3.1).
#[derive(Debug, Default)]
pub(super) struct Sending {
    pub(super) iss: Seq,
    /// Our SYN is acknowledged. A comparison of numbers would fail once they have wrapped.
    pub(super) opened: bool,
    pub(super) una: Seq,
    pub(super) nxt: Seq,
    /// The highest number ever sent; above `nxt` only after a window probe was taken back.
    pub(super) max: Seq,
    pub(super) wnd: u32,
    wl1: Seq,
    wl2: Seq,
    /// The largest window the peer ever offered, for sender SWS avoidance and RFC 5961's ACK check.
    pub(super) max_wnd: u32,
    /// The lower bound of retransmissions: `una`, or a higher number from routing.
    pub(super) highest_ack: Seq,
    /// End of the urgent data that the application gave.
    pub(super) urgent_end: Option<Seq>,
    pub(super) buffer: SendBuffer,
    /// The application has closed: a FIN follows the last byte.
    pub(super) fin_wanted: bool,
    pub(super) fin_sent: bool,
    /// Payload of a full segment, options taken off.
    pub(super) mss: u32,
    pub(super) last_sent_at: Moment,
    /// The start of the wait for an acknowledgment, for the user timeout.
    pub(super) waiting_since: Moment,
    /// The agreed form of ACK requests, for the agents.
    pub(super) ack_requests: Option<AckRequestForm>,
    /// `None` if the owner of cwnd takes no turns.
    pub(super) turn: Option<Turn>,
    /// The application lacked data, or room in the peer's window, when more could have left.
    pub(super) app_limited: bool,
    /// The last SEND was without PUSH (RFC 9293 §3.9.1.2): a part of a packet waits for more.
    pub(super) more_comes: bool,
    /// The window was reduced: the next new segment carries CWR (RFC 3168 §6.1.2).
    pub(super) cwr: bool,
    /// The agents' last allowance, for the trace and for buffer tuning.
    last_allowed: u64,
}

impl Sending {
    pub(super) fn new(iss: Seq, buffer_bytes: u32, mss: u32, turn: Option<Turn>) -> Sending {
        Sending {
            iss,
            una: iss,
            nxt: iss,
            max: iss,
            highest_ack: iss,
            buffer: SendBuffer::new(buffer_bytes),
            mss,
            turn,
            ..Sending::default()
        }
    }

    /// The number of the first byte that the send buffer holds.
    pub(super) fn first_held(&self) -> Seq {
        if self.opened { self.una } else { self.iss + 1 }
    }

    /// Bytes of the application that have never left.
    pub(super) fn unsent(&self) -> u32 {
        (self.first_held() + self.buffer.len()).bytes_since(self.nxt)
    }

    /// Payload that has left and is not acknowledged.
    pub(super) fn outstanding(&self) -> u32 {
        let sent = self.nxt.bytes_since(self.first_held());
        sent - u32::from(self.fin_sent && sent > 0)
    }

    /// The bytes of a segment in the buffer, valid until more is written or they are acknowledged.
    #[inline]
    pub(super) fn payload_at(&self, seq: Seq, len: u32) -> (&[u8], &[u8]) {
        if len == 0 {
            return (&[], &[]);
        }
        self.buffer.slices(seq - self.first_held(), len)
    }

    /// Our SYN has left.
    pub(super) fn syn_left(&mut self) {
        self.nxt = self.nxt.max(self.iss + 1);
        self.max = self.max.max(self.nxt);
    }

    /// Our SYN is acknowledged.
    pub(super) fn open(&mut self) {
        self.opened = true;
        self.una = self.iss + 1;
        self.highest_ack = self.una;
        self.nxt = self.nxt.max(self.una);
        self.max = self.max.max(self.nxt);
        self.waiting_since = Moment::NEVER;
    }

    /// New numbers have left, up to `end`.
    pub(super) fn new_left(&mut self, end: Seq) {
        self.nxt = end;
        self.max = self.max.max(end);
    }

    /// Takes back a window probe that the peer refused, so that its byte leaves again together with later data.
    pub(super) fn take_back(&mut self, now: Instant, to: Option<Seq>) {
        self.nxt = to.unwrap_or(self.nxt);
        self.last_sent_at = Moment::at(now);
    }

    /// Takes a cumulative ACK up to `ack`. Returns the bytes of payload that it covers.
    pub(super) fn acknowledge(&mut self, ack: Seq) -> u32 {
        let data = ack.bytes_since(self.first_held()).min(self.buffer.len());
        self.buffer.consume(data);
        self.una = ack;
        self.highest_ack = self.highest_ack.max(ack);
        self.urgent_end = self.urgent_end.filter(|end| ack < *end);
        self.waiting_since = Moment::NEVER;
        data
    }

    /// Returns whether an ACK covers a probe byte that was taken back: it had arrived after all.
    pub(super) fn catch_up(&mut self) -> bool {
        let is_behind = self.nxt < self.una;
        self.nxt = self.nxt.max(self.una);
        is_behind
    }

    /// Returns whether everything that has left is acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.una == self.nxt
    }
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.last_sent_at = Moment::at(now);
    }

    /// Ends the wait for an answer. The next segment starts another one.
    pub(super) fn stop_waiting(&mut self) {
        self.waiting_since = Moment::NEVER;
    }

    pub(super) fn wait_from(&mut self, now: Instant) {
        self.waiting_since = Moment::at(now);
    }

    /// Takes news from routing that everything below `seq` has arrived. It counts only within the data in flight.
    pub(super) fn raise_highest_ack(&mut self, seq: Seq) -> bool {
        let is_news = self.una < seq && seq <= self.nxt && self.highest_ack < seq;
        if is_news {
            self.highest_ack = seq;
        }
        is_news
    }

    pub(super) fn lower_highest_ack(&mut self) {
        self.highest_ack = self.una;
        self.wnd = self.wnd.min(self.max_wnd);
    }

    /// Marks all data written so far as urgent.
    pub(super) fn mark_urgent(&mut self) {
        self.urgent_end = Some(self.first_held() + self.buffer.len());
    }

    /// Returns whether all data of the program has left, and its FIN too.
    pub(super) fn has_sent_all(&self) -> bool {
        self.unsent() == 0 && self.fin_wanted == self.fin_sent
    }

    /// Notes the agents' allowance. Returns whether it has changed.
    pub(super) fn note_allowed(&mut self, bytes: u64) -> bool {
        let is_news = self.last_allowed != bytes;
        self.last_allowed = bytes;
        is_news
    }

    /// Makes room for twice the bytes that may be in flight, so that the application keeps the window full.
    pub(super) fn tune_buffer(&mut self, most: u32) {
        let wanted = u32::try_from(2 * self.last_allowed.min(1 << 30)).unwrap_or(u32::MAX);
        let limit = wanted.min(most);
        if limit > self.buffer.limit() {
            self.buffer.set_limit(limit);
        }
    }

    /// The end: nothing leaves after this.
    pub(super) fn drop_buffer(&mut self) {
        self.buffer = SendBuffer::new(0);
    }

    #[cfg(debug_assertions)]
    pub(super) fn check(&self) {
        assert!(self.una <= self.nxt && self.nxt <= self.max, "C1");
    }
}

#[cfg(test)]
impl Sending {
    pub(super) fn pretend_urgent(&mut self, end: Seq) {
        self.urgent_end = Some(end);
    }

    pub(super) fn pretend_open(&mut self) {
        self.fin_wanted = false;
    }
}
