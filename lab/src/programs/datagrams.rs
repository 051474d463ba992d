//! Datagrams at intervals, or without a gap (a saturated source); and the program that counts them.

use std::iter;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use hopwise_air::random::{NumberStream, Purpose};
use hopwise_core::Instant;

use super::arrivals::{Arrivals, STAMP_BYTES, stamp};
use super::delays::Amount;
use super::seen::ArrivedBytes;
use super::sockets::{Marks, Platform, Sockets, start_of};
use crate::sim::Plan;

/// A saturated source keeps this many packets waiting.
pub(crate) const AHEAD: usize = 2;
/// A saturated source looks also this often: routing may have dropped all its datagrams.
const LOOKS_EVERY: Duration = Duration::from_secs(1);
/// A datagram that leaves so short before the end may still be on its way, and is no loss.
pub(super) const ON_ITS_WAY: Duration = Duration::from_secs(2);

/// A socket with something to do at intervals.
#[derive(Debug)]
pub(super) struct TimedSocket<S: Sockets> {
    pub(super) to: SocketAddr,
    marks: Marks,
    gaps: NumberStream,
    next: Instant,
    stop: Instant,
    pub(super) socket: Option<S::Udp>,
    pub(super) sent: u64,
    /// The time in which measured datagrams leave.
    counts: Range<Instant>,
    /// The measured datagrams, with those that found no room.
    pub(super) measured: u64,
}

impl<S: Sockets> TimedSocket<S> {
    pub(super) fn new(
        (to, marks): (SocketAddr, Marks),
        (start, stop): (Instant, Instant),
        (plan, index): (&Plan, u16),
    ) -> TimedSocket<S> {
        let gaps = NumberStream::new(plan.seed, u32::from(index), Purpose::ThinkTime);
        let counts = plan.counts_from()..plan.end() - ON_ITS_WAY;
        TimedSocket { to, marks, gaps, next: start, stop, socket: None, sent: 0, counts, measured: 0 }
    }

    /// Writes its number and the time into a datagram that has room for both.
    pub(super) fn stamp(&mut self, number: u64, now: Instant, payload: &mut [u8]) {
        let is_measured = self.counts.contains(&now) && payload.len() >= STAMP_BYTES;
        self.measured += u64::from(is_measured);
        start_of(&stamp(number, if is_measured { now } else { Instant::FAR }), payload);
    }

    pub(super) fn open<P: Platform<Sockets = S>>(&mut self, node: &mut P, port: u16) {
        self.socket = node.with(Instant::ZERO, |sockets| sockets.udp_bind(port, Some(self.marks)));
    }

    pub(super) fn next(&self) -> Instant {
        if self.socket.is_some() { self.next } else { Instant::FAR }
    }

    /// Draws the time of the next one. Returns false at the end.
    pub(super) fn goes_on(&mut self, now: Instant, every: Option<Amount>) -> bool {
        let gap = every.map(|every| Duration::from_nanos(every.draw(&mut self.gaps)));
        let is_over = now >= self.stop;
        self.next = if is_over { Instant::FAR } else { now + gap.unwrap_or(LOOKS_EVERY) };
        !is_over
    }
}

#[derive(Debug)]
pub(super) struct DatagramSource<S: Sockets> {
    pub(super) timed: TimedSocket<S>,
    payload: Vec<u8>,
    every: Option<Amount>,
    has_begun: bool,
}

impl<S: Sockets> DatagramSource<S> {
    pub(super) fn new(timed: TimedSocket<S>, bytes: u16, every: Option<Amount>) -> DatagramSource<S> {
        DatagramSource { timed, payload: vec![u8::MAX; usize::from(bytes)], every, has_begun: false }
    }

    pub(super) fn is_saturated(&self) -> bool {
        self.every.is_none()
    }

    pub(super) fn begin<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        if !self.timed.goes_on(now, self.every) {
            return;
        }
        if self.has_begun && self.is_saturated() {
            return self.refill(now, node);
        }
        self.has_begun = true;
        let count = if self.is_saturated() { AHEAD } else { 1 };
        (0..count).for_each(|_| self.send(now, node));
    }

    /// Sends a datagram. One that does not fit is lost, as in any queue.
    fn send<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        let Some(socket) = self.timed.socket else { return };
        if !self.is_saturated() {
            self.timed.stamp(self.timed.measured, now, &mut self.payload);
        }
        let sent = node.with(now, |sockets| sockets.udp_send(socket, self.timed.to, &self.payload));
        self.timed.sent += u64::from(sent);
    }

    pub(super) fn refill<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        let TimedSocket { socket, stop, .. } = &self.timed;
        if !self.is_saturated() || !self.has_begun || socket.is_none() || now >= *stop {
            return;
        }
        for _ in 0..AHEAD {
            if !node.takes_more() {
                return;
            }
            self.send(now, node);
        }
    }
}

/// The end that counts datagrams, and sends a probe's datagrams back.
#[derive(Debug)]
pub(super) struct Sink<S: Sockets> {
    back: Option<(SocketAddr, Marks)>,
    socket: Option<S::Udp>,
    pub(super) tally: ArrivedBytes,
    pub(super) arrivals: Arrivals,
}

impl<S: Sockets> Sink<S> {
    pub(super) fn new(tally: ArrivedBytes, back: Option<(SocketAddr, Marks)>) -> Sink<S> {
        Sink { back, socket: None, tally, arrivals: Arrivals::default() }
    }

    pub(super) fn open<P: Platform<Sockets = S>>(&mut self, node: &mut P, port: u16) {
        let marks = self.back.map(|(_, marks)| marks);
        self.socket = node.with(Instant::ZERO, |sockets| sockets.udp_bind(port, marks));
    }

    pub(super) fn read<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        let Some(socket) = self.socket else { return };
        let mut start = [u8::MAX; STAMP_BYTES];
        node.with(now, |sockets| {
            while let Some(bytes) = sockets.udp_recv(socket, &mut start) {
                self.tally.add(now, bytes as u64);
                self.arrivals.add(now, start);
                if let Some((to, _)) = self.back {
                    let payload: Vec<u8> = start.into_iter().chain(iter::repeat(0)).take(bytes).collect();
                    sockets.udp_send(socket, to, &payload);
                }
            }
        });
    }
}
