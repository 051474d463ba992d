//! The program that opens: it sends without end, repeats transfers, or sends requests and waits for the responses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hopwise_air::random::{NumberStream, Purpose};
use hopwise_core::Instant;
use hopwise_core::endpoint::EventKind;

use super::delays::Delays;
use super::message::{ENDLESS, HEADER, MessageHeader, ProgramMessage, Then};
use super::seen::{CompletionTimes, Counted, EndTotals};
use super::sockets::{Platform, Sockets};
use crate::sim::{Directions, Talk, TcpPlan};

/// The least pause after a connection that failed.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct ClientProgram<S: Sockets> {
    plan: Arc<TcpPlan>,
    to: SocketAddr,
    /// The time of its next start.
    next: Instant,
    stop: Instant,
    /// The number of further starts; none: without end.
    left: Option<u32>,
    sizes: NumberStream,
    thinks: NumberStream,
    open: Option<ClientConnection<S::Conn>>,
    pub(super) seen: EndTotals,
    /// The durations of what ended in the counted time.
    took: Delays,
}

#[derive(Debug)]
struct ClientConnection<C> {
    conn: C,
    message: ProgramMessage,
    /// Bytes missing of the response to the present request.
    awaits: u64,
    /// The start of the present request or transfer.
    began: Option<Instant>,
    has_end: bool,
}

impl<S: Sockets> ClientProgram<S> {
    pub(super) fn new(
        plan: Arc<TcpPlan>,
        to: SocketAddr,
        (start, stop): (Instant, Instant),
        (seed, index): (u64, u16),
        seen: EndTotals,
    ) -> ClientProgram<S> {
        let stream = |purpose| NumberStream::new(seed, u32::from(index), purpose);
        let left = if let Talk::Endless(_) = plan.talk { Some(1) } else { plan.times };
        ClientProgram {
            to,
            next: start,
            stop,
            left,
            sizes: stream(Purpose::Size),
            thinks: stream(Purpose::ThinkTime),
            open: None,
            seen,
            took: Delays::default(),
            plan,
        }
    }

    fn is_endless(&self) -> bool {
        matches!(self.plan.talk, Talk::Endless(_))
    }

    pub(super) fn next(&self) -> Instant {
        let stops = self.open.is_some() && self.is_endless();
        if stops { self.next.min(self.stop) } else { self.next }
    }

    pub(super) fn completions(&self) -> Option<CompletionTimes> {
        let (count, total_ns, longest_ns) = (self.took.count(), self.took.total_ns(), self.took.longest_ns());
        let spread = self.took.spread();
        (!self.is_endless()).then_some(CompletionTimes { count, total_ns, longest_ns, spread })
    }

    pub(super) fn conn(&self) -> Option<S::Conn> {
        self.open.as_ref().map(|open| open.conn)
    }

    pub(super) fn counted(&self, now: Instant, sockets: &S) -> Counted {
        self.seen.counted(now, sockets, self.conn())
    }

    pub(super) fn begin<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        if now >= self.stop {
            self.end(now, node);
            return;
        }
        self.next = Instant::FAR;
        match &mut self.left {
            Some(0) => return,
            Some(left) => *left -= 1,
            None => {}
        }
        let (message, awaits) = self.question();
        match &mut self.open {
            Some(open) => {
                open.message = message;
                (open.awaits, open.began) = (awaits, Some(now));
                open.message.write(now, node, open.conn);
            }
            None => self.connect(now, node, message, awaits),
        }
    }

    /// The next message, and the bytes that the server must send back for it.
    fn question(&mut self) -> (ProgramMessage, u64) {
        let header = |bytes: u64, answer: u64| {
            let fits = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
            let (bytes, answer) = (fits(bytes.max(HEADER as u64)), fits(answer));
            (Some(MessageHeader { bytes, answer }), u64::from(bytes), u64::from(answer))
        };
        match self.plan.talk {
            Talk::Endless(directions) => {
                let bytes = if directions.has_forth() { ENDLESS } else { 0 };
                (ProgramMessage::new(None, bytes, Then::StaysOpen), 0)
            }
            Talk::Transfers { bytes, directions } => {
                let bytes = bytes.draw(&mut self.sizes).max(1);
                match directions {
                    Directions::Forth => (ProgramMessage::new(None, bytes, Then::Shuts), 0),
                    _ => {
                        let forth = if directions == Directions::Both { bytes } else { 0 };
                        let (header, len, answer) = header(forth, bytes);
                        (ProgramMessage::new(header, len, Then::Shuts), answer)
                    }
                }
            }
            Talk::Requests { request, response } => {
                let sizes = (request.draw(&mut self.sizes), response.draw(&mut self.sizes).max(1));
                let (header, len, answer) = header(sizes.0, sizes.1);
                (ProgramMessage::new(header, len, Then::StaysOpen), answer)
            }
        }
    }

    fn connect<P: Platform<Sockets = S>>(
        &mut self,
        now: Instant,
        node: &mut P,
        message: ProgramMessage,
        awaits: u64,
    ) {
        match node.with(now, |sockets| sockets.connect(now, self.to, &self.plan.tcp)) {
            Some(conn) => {
                self.seen.note(now, node.sockets(), conn);
                self.open =
                    Some(ClientConnection { conn, message, awaits, began: Some(now), has_end: false });
            }
            None => self.come_back(now, PATIENCE),
        }
        node.give_path(now, self.to.ip());
    }

    /// Sets the next start after the think time, and at least `least`.
    fn come_back(&mut self, now: Instant, least: Duration) {
        let think = Duration::from_nanos(self.plan.think.draw(&mut self.thinks));
        let is_over = self.is_endless() || self.left == Some(0);
        self.next = if is_over { Instant::FAR } else { now + think.max(least) };
    }

    /// The time to stop has come: finite transfers go on to their end.
    fn end<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        (self.next, self.stop) = (Instant::FAR, Instant::FAR);
        self.left = Some(0);
        if self.is_endless() {
            if let Some(open) = self.open.take() {
                self.seen.cut_off(now, node, open.conn);
            }
        } else {
            self.settle(now, node);
        }
    }

    pub(super) fn on_event<P: Platform<Sockets = S>>(
        &mut self,
        now: Instant,
        node: &mut P,
        conn: S::Conn,
        event: EventKind,
    ) -> bool {
        let Some(open) = self.open.as_mut().filter(|open| open.conn == conn) else { return false };
        if event == EventKind::Connected {
            self.seen.note(now, node.sockets(), conn);
            self.seen.note_hops(now, node, conn, self.to.ip());
        }
        match event {
            EventKind::Connected | EventKind::Writable => open.message.write(now, node, conn),
            EventKind::Readable => self.read(now, node),
            EventKind::PeerClosed => {
                open.has_end = true;
                self.read(now, node);
            }
            EventKind::Closed(_) if !self.is_endless() => {
                self.seen.let_go(now, node, conn);
                self.open = None;
                self.come_back(now, PATIENCE);
                return true;
            }
            _ => {}
        }
        self.settle(now, node);
        true
    }

    fn read<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        let Some(open) = &mut self.open else { return };
        let bytes = node.sockets().readable(open.conn);
        if bytes > 0 && node.with(now, |sockets| sockets.consume(now, open.conn, bytes)) {
            open.awaits = open.awaits.saturating_sub(u64::from(bytes));
            self.seen.tally.add(now, u64::from(bytes));
        }
    }

    /// Ends a complete transfer or request, and its connection with the last one.
    fn settle<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        let Some(open) = &mut self.open else { return };
        let is_done = open.message.is_done() && open.awaits == 0;
        let (is_complete, is_over) = match self.plan.talk {
            Talk::Endless(_) => (false, false),
            Talk::Transfers { .. } => (is_done && open.has_end, is_done && open.has_end),
            Talk::Requests { .. } => (is_done, is_done && self.left == Some(0)),
        };
        let conn = open.conn;
        if is_complete && let Some(began) = open.began.take() {
            if now >= self.seen.tally.counts_from {
                self.took.add(now.since(began));
            }
            self.come_back(now, Duration::ZERO);
        }
        if is_over {
            self.seen.let_go(now, node, conn);
            self.open = None;
        }
    }
}
