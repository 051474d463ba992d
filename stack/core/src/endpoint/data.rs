//! Calls with which a program sends and receives data.

use super::ConnId;
use super::Endpoint;
use super::errors::{AbortError, RecvError, SendError};
use crate::Instant;
use crate::tcp::connection::Connection;
use crate::tcp::cx::Cx;

impl Endpoint {
    /// Takes as many bytes as fit, perhaps none; the event `Writable` follows when there is room again.
    pub fn send(&mut self, now: Instant, id: ConnId, data: &[u8]) -> Result<usize, SendError> {
        self.take_data(now, id, |conn, cx| conn.write(cx, data))
    }

    /// [`send`](Endpoint::send) without PUSH (RFC 9293 §3.9.1.2). A part of a packet waits for the next send, or for a
    /// [`push`](Endpoint::push), which the caller must call soon.
    pub fn send_part(&mut self, now: Instant, id: ConnId, data: &[u8]) -> Result<usize, SendError> {
        self.take_data(now, id, |conn, cx| conn.write_part(cx, data))
    }

    /// [Sends](Endpoint::send) what `fill` writes into the send buffer itself, which saves a copy. `fill` gets room for
    /// at most `most` bytes, and returns the number of those that it wrote. It is not called where there is no room;
    /// `Writable` then follows, as it does not after a `fill` that wrote nothing. More than its room makes this panic.
    pub fn send_with(
        &mut self,
        now: Instant,
        id: ConnId,
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, SendError> {
        self.take_data(now, id, |conn, cx| conn.write_with(cx, (most, false), fill))
    }

    /// [`send_part`](Endpoint::send_part) of what `fill` writes, as in [`send_with`](Endpoint::send_with).
    pub fn send_part_with(
        &mut self,
        now: Instant,
        id: ConnId,
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, SendError> {
        self.take_data(now, id, |conn, cx| conn.write_with(cx, (most, true), fill))
    }

    /// Lets data sent in parts leave as if it had come at once.
    pub fn push(&mut self, now: Instant, id: ConnId) -> Result<(), AbortError> {
        self.with_id(now, id, |conn, _| conn.push())
    }

    /// Returns whether a [`send`](Endpoint::send) would take data. If not, [`EventKind::Writable`] tells of room, as
    /// after a send that did not fit.
    ///
    /// [`EventKind::Writable`]: super::EventKind::Writable
    pub fn ask_for_room(&mut self, now: Instant, id: ConnId) -> Result<bool, SendError> {
        self.take_data(now, id, |conn, cx| conn.ask_for_room(cx))
    }

    fn take_data<R: Default>(
        &mut self,
        now: Instant,
        id: ConnId,
        take: impl FnOnce(&mut Connection, &mut Cx<'_>) -> R,
    ) -> Result<R, SendError> {
        let slot = self.held(id).ok_or(SendError::NoConnection)?;
        let entry = self.table.get(slot).ok_or(SendError::NoConnection)?;
        if !entry.conn.may_write() {
            return Err(SendError::NotOpen);
        }
        Ok(self.with(now, slot, take).unwrap_or_default())
    }

    /// Sends data whose end the peer learns before it reads that far (RFC 9293 §3.8.5; new programs should not use it).
    pub fn send_urgent(&mut self, now: Instant, id: ConnId, data: &[u8]) -> Result<usize, SendError> {
        let taken = self.send(now, id, data)?;
        let slot = self.held(id).ok_or(SendError::NoConnection)?;
        if taken > 0 {
            self.with(now, slot, |conn, _| conn.mark_urgent());
        }
        Ok(taken)
    }

    /// Reads data that has arrived in order; returns 0 if there is none.
    pub fn recv(&mut self, now: Instant, id: ConnId, out: &mut [u8]) -> Result<usize, RecvError> {
        let slot = self.held(id).ok_or(RecvError::NoConnection)?;
        let entry = self.table.get_mut(slot).ok_or(RecvError::NoConnection)?;
        if entry.conn.readable() == 0 {
            return match (entry.conn.is_at_end(), entry.conn.closed) {
                (true, _) => Err(RecvError::Finished),
                (false, Some(_)) => Err(RecvError::Over),
                (false, None) => Ok(0),
            };
        }
        let mut cx = Cx::new(now, entry.conn.number, self.packets_in, self.account.memory, &mut self.trace);
        let read = entry.conn.read(&mut cx, out);
        // The only effect of a read may be an ACK with a new window.
        if entry.conn.has_ack_to_send() {
            self.touch(now, slot);
        }
        Ok(read)
    }

    /// Unread data in place, without a copy. [`consume`](Endpoint::consume) then marks it as read.
    pub fn peek(&self, id: ConnId) -> (&[u8], &[u8]) {
        self.conn(id).map_or((&[], &[]), Connection::peek)
    }

    /// Marks the first `bytes` of [`peek`](Endpoint::peek) as read.
    pub fn consume(&mut self, now: Instant, id: ConnId, bytes: u32) -> Result<(), AbortError> {
        self.with_id(now, id, |conn, cx| conn.consume(cx, bytes))
    }

    /// In-order bytes that wait to be read.
    pub fn readable(&self, id: ConnId) -> u32 {
        self.conn(id).map_or(0, Connection::readable)
    }

    /// Room for more data to send.
    pub fn writable(&self, id: ConnId) -> u32 {
        self.conn(id).filter(|conn| conn.may_write()).map_or(0, Connection::send_room)
    }

    /// Unread bytes up to the end of the peer's urgent data (RFC 9293 MUST-33).
    pub fn urgent_unread(&self, id: ConnId) -> u32 {
        self.conn(id).map_or(0, Connection::urgent_unread)
    }
}
