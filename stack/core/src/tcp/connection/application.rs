//! The program's calls (write, read, close, abort) and the turns that the endpoint gives to a connection.

use std::time::Duration;

use super::{CloseReason, Connection, Options, send_view};
use crate::agent::Turn;
use crate::narrow::as_u32;
use crate::tcp::config::KeepAlive;
use crate::tcp::cx::{Cx, Memory};
use crate::tcp::timers::Timer;
use crate::trace::StateName;
use crate::{Instant, Seq};

/// More unsent data than this would have left the processor's caches before it is sent.
const UNSENT_MOST: u32 = 512 << 10;

/// A turn that ends too early lets two bursts meet. One that ends too late holds up the other flows.
const LEAST_TURN: Duration = Duration::from_secs(1);
const MOST_TURN: Duration = Duration::from_secs(4);

impl Connection {
    /// The room that the application may fill. It follows the amount that may be in flight.
    pub(crate) fn send_room(&self) -> u32 {
        self.out.sending.buffer.free().min(UNSENT_MOST.saturating_sub(self.out.sending.unsent()))
    }

    /// Returns whether the application waits for room and there is room.
    pub(super) fn owes_word_of_room(&self) -> bool {
        self.events.wants_room && self.send_room() > 0
    }

    /// Is called after an ACK, and after data has left.
    pub(super) fn tell_of_room(&mut self) {
        if self.owes_word_of_room() {
            self.events.wants_room = false;
            self.events.writable = true;
        }
    }

    pub(crate) fn may_write(&self) -> bool {
        let is_open = self.out.state.is_opening() || self.out.state.may_send_data();
        is_open && !self.out.sending.fin_wanted
    }

    /// The room for a write now. Buffers do not grow while the endpoint's memory is spent.
    fn room_now(&self, cx: &Cx<'_>) -> u32 {
        let grows = cx.memory != Memory::Spent;
        self.send_room().min(if grows { u32::MAX } else { self.out.sending.buffer.free_as_it_is() })
    }

    /// Returns whether a write would take data. If not, the application is told when there is room.
    pub(crate) fn ask_for_room(&mut self, cx: &Cx<'_>) -> bool {
        let has_room = self.room_now(cx) > 0;
        self.events.wants_room |= !has_room;
        has_room
    }

    /// Takes as many bytes as fit.
    pub(crate) fn write(&mut self, cx: &Cx<'_>, data: &[u8]) -> usize {
        self.out.sending.more_comes = false;
        let fits = data.len().min(self.room_now(cx) as usize);
        let taken = self.out.sending.buffer.write(&data[..fits]);
        if taken < data.len() {
            self.events.wants_room = true;
        }
        self.arm_relax(cx);
        taken
    }

    /// [Writes](Connection::write) a part; more follows soon. Until then or until [`push`](Connection::push), a packet
    /// that still has room does not leave.
    pub(crate) fn write_part(&mut self, cx: &Cx<'_>, data: &[u8]) -> usize {
        let did_more_come = self.out.sending.more_comes;
        let taken = self.write(cx, data);
        self.out.sending.more_comes = did_more_come || taken > 0;
        taken
    }

    /// [Writes](Connection::write) what `fill` puts into the send buffer itself, at most `most` bytes; a part if
    /// `more_comes`. Without room `fill` is not called.
    pub(crate) fn write_with(
        &mut self,
        cx: &Cx<'_>,
        (most, more_comes): (usize, bool),
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> usize {
        let did_more_come = more_comes && self.out.sending.more_comes;
        self.out.sending.more_comes = did_more_come;
        let fits = most.min(self.room_now(cx) as usize);
        if fits == 0 {
            self.events.wants_room |= most > 0;
            return 0;
        }
        let taken = self.out.sending.buffer.fill(fits, fill);
        self.out.sending.more_comes = did_more_come || more_comes && taken > 0;
        self.arm_relax(cx);
        taken
    }

    pub(crate) fn push(&mut self) {
        self.out.sending.more_comes = false;
    }

    /// Marks everything written so far as urgent: the pointer names the first octet after it (MUST-62).
    pub(crate) fn mark_urgent(&mut self) {
        self.out.sending.mark_urgent();
    }

    /// Urgent bytes from the peer that have not been read.
    pub(crate) fn urgent_unread(&self) -> u32 {
        self.receiving.urgent_unread()
    }

    pub(crate) fn readable(&self) -> u32 {
        self.receiving.buffer.readable()
    }

    pub(crate) fn has_ack_to_send(&self) -> bool {
        self.receiving.ledger.is_waiting()
    }

    pub(crate) fn read(&mut self, cx: &mut Cx<'_>, out: &mut [u8]) -> usize {
        let read = self.receiving.buffer.read(out);
        if read > 0 {
            self.after_read(cx, as_u32(read));
        }
        read
    }

    fn after_read(&mut self, cx: &mut Cx<'_>, bytes: u32) {
        let most = self.out.config.recv_buffer.max;
        let may_answer = self.out.state.is_synchronized();
        self.receiving.after_read(cx, bytes, most, may_answer, self.out.around());
    }

    /// All in-order bytes, in place.
    pub(crate) fn peek(&self) -> (&[u8], &[u8]) {
        self.receiving.buffer.peek()
    }

    /// Marks the first `bytes` of the peeked data as read.
    pub(crate) fn consume(&mut self, cx: &mut Cx<'_>, bytes: u32) {
        let bytes = bytes.min(self.readable());
        self.receiving.buffer.consume(bytes);
        self.after_read(cx, bytes);
    }

    /// Returns whether the peer's FIN has come and everything before it was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.receiving.is_at_end()
    }

    /// Ends writing: a FIN follows the last byte.
    pub(crate) fn shutdown_write(&mut self) {
        self.out.sending.fin_wanted = true;
    }

    /// The application has gone. If unread data is lost by this, the peer gets a RST (SHLD-3).
    pub(crate) fn leave(&mut self, cx: &mut Cx<'_>) {
        if self.closed.is_some() {
            return;
        }
        if self.readable() > 0 && self.out.state.is_synchronized() && self.out.state != StateName::TimeWait {
            self.abort(cx);
            return;
        }
        if self.out.state == StateName::SynSent && self.out.sending.buffer.len() == 0 {
            self.finish(cx, CloseReason::Aborted);
            return;
        }
        self.receiving.turn_deaf();
        self.out.sending.fin_wanted = true;
        if self.out.state == StateName::FinWait2 {
            self.out.timers.arm(Timer::Linger, cx.now + self.out.config.fin_wait_2);
        }
    }

    pub(crate) fn abort(&mut self, cx: &mut Cx<'_>) {
        // RFC 9293 §3.10.5: sends a RST from every state in which the peer knows of us and may still wait.
        let is_due = matches!(
            self.out.state,
            StateName::SynReceived
                | StateName::Established
                | StateName::FinWait1
                | StateName::FinWait2
                | StateName::CloseWait
        );
        self.out.urges.rst = is_due;
        self.finish(cx, CloseReason::Aborted);
    }

    /// A new connection of ours between the same sockets may end TIME-WAIT if it has timestamps too. PAWS then rejects
    /// old duplicates at both ends (RFC 7323 appendix B.2). RFC 6191 has the same rule for a connection of the peer's.
    pub(crate) fn may_make_way(&self, now: Instant) -> bool {
        let has_timestamps = self.out.opening.agreed.timestamps;
        self.out.state == StateName::TimeWait && has_timestamps && self.receiving.has_ticked_since(now)
    }

    /// Ends TIME-WAIT early.
    pub(crate) fn make_way(&mut self, cx: &mut Cx<'_>) {
        self.finish(cx, CloseReason::Finished);
    }

    /// Ends the connection for the sake of others and drops the received data.
    pub(crate) fn give_way(&mut self, cx: &mut Cx<'_>) {
        // The peer cannot rely on a FIN that has left while data before it is missing, so a RST is due.
        self.out.urges.rst = self.out.state.is_synchronized() && self.out.state != StateName::TimeWait;
        self.finish(cx, CloseReason::GaveWay);
        self.receiving.buffer.clear();
    }

    /// [`options`](Connection::options) copies all of them. These two are read with each segment.
    #[inline]
    pub(super) fn keep_alive(&self) -> Option<KeepAlive> {
        let changed = self.out.changed_options.as_deref();
        changed.map_or_else(
            || self.out.config.keep_alive.map(KeepAlive::with_time_between),
            |changed| changed.keep_alive,
        )
    }

    pub(crate) fn set_options(&mut self, cx: &Cx<'_>, options: Options) {
        let keep_alive = options.keep_alive.map(KeepAlive::with_time_between);
        let options = Options { keep_alive, ..options };
        let keep_alive_changed = self.options().keep_alive != options.keep_alive;
        self.out.changed_options = Some(Box::new(options));
        if keep_alive_changed {
            match options.keep_alive {
                Some(keep_alive) if self.out.state.is_synchronized() => {
                    self.arm_keep_alive(cx.now, keep_alive.idle);
                }
                _ => self.out.timers.disarm(Timer::KeepAlive),
            }
        }
        if let Some(since) = self.out.sending.waiting_since.get() {
            self.out.timers.arm(Timer::UserTimeout, since + self.out.patience());
        }
    }

    /// Returns whether the connection may be forgotten: it is closed and owes no RST.
    pub(crate) fn is_spent(&self) -> bool {
        self.closed.is_some() && !self.out.urges.rst
    }
}

/// A connection of an ensemble names the burst for which it wants a turn. It sends no new data while another connection
/// holds the turn.
impl Connection {
    /// The connection's place in the ensemble; `None` if its owner of cwnd takes no turns.
    pub(crate) fn turn(&self) -> Option<Turn> {
        self.out.sending.turn
    }

    pub(crate) fn set_turn(&mut self, turn: Turn) {
        self.out.sending.turn = Some(turn);
    }

    /// Returns whether a turn would be of use: a connection that cannot send wants none.
    pub(crate) fn may_use_turn(&self) -> bool {
        self.out.state.is_synchronized()
            && self.closed.is_none()
            && !self.is_at_rest()
            && !self.out.is_frozen()
            && !self.out.is_blocked_by_window()
    }

    /// The burst for which the connection wants a turn, named by its first number.
    pub(crate) fn wanted_turn(&self, now: Instant) -> Option<Seq> {
        let member = self.out.senders.member().filter(|_| self.may_use_turn())?;
        member.wanted_turn(now, &self.out.send_view())
    }

    /// Returns whether the holder should look at what the other members know.
    pub(crate) fn share_path(&mut self) -> bool {
        let view = send_view(&self.out.sending, &self.out.path, &self.out.loss);
        self.out.senders.member_mut().is_some_and(|member| member.share(&view))
    }

    pub(crate) fn begin_ensemble(&mut self) {
        if let Some(member) = self.out.senders.member_mut() {
            member.begin();
        }
    }

    pub(crate) fn bytes_acked(&self) -> u64 {
        self.out.stats.bytes_acked
    }

    /// Twice the RTO has room for a burst, its ACK and its repairs. The bounds end a turn whatever the RTO is.
    pub(crate) fn longest_turn(&self) -> Duration {
        (2 * self.out.rto()).clamp(LEAST_TURN, MOST_TURN)
    }
}
