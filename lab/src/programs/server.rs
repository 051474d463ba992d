//! The program that accepts: it reads all, and sends the requested bytes.

use std::sync::Arc;

use hopwise_core::Instant;
use hopwise_core::endpoint::EventKind;

use super::message::{ENDLESS, MessageHeader, ProgramMessage, Then};
use super::seen::{Counted, EndTotals};
use super::sockets::{Platform, Sockets};
use crate::sim::{Directions, Talk, TcpPlan};

#[derive(Debug)]
pub(super) struct ServerProgram<S: Sockets> {
    plan: Arc<TcpPlan>,
    listener: Option<S::Listener>,
    /// Connections come one after the other: there are more than one only while one ends.
    open: Vec<ServerConnection<S::Conn>>,
    pub(super) seen: EndTotals,
}

#[derive(Debug)]
struct ServerConnection<C> {
    conn: C,
    message: ProgramMessage,
    /// Bytes missing of the request that comes in.
    unread: u64,
    /// Bytes to send when all of it is here.
    answer: u64,
    has_end: bool,
}

impl<S: Sockets> ServerProgram<S> {
    pub(super) fn new(plan: Arc<TcpPlan>, seen: EndTotals) -> ServerProgram<S> {
        ServerProgram { plan, listener: None, open: Vec::new(), seen }
    }

    pub(super) fn open<P: Platform<Sockets = S>>(&mut self, node: &mut P, port: u16) {
        self.listener = node.with(Instant::ZERO, |sockets| sockets.listen(port, &self.plan.tcp));
    }

    pub(super) fn conn(&self) -> Option<S::Conn> {
        self.open.last().map(|open| open.conn)
    }

    pub(super) fn counted(&self, now: Instant, sockets: &S) -> Counted {
        let mut counted = self.seen.past.clone();
        for more in self.open.iter().filter_map(|open| sockets.counted(now, open.conn)) {
            counted.add(&more);
        }
        counted
    }

    pub(super) fn accept<P: Platform<Sockets = S>>(
        &mut self,
        now: Instant,
        node: &mut P,
        from: S::Listener,
    ) -> bool {
        if self.listener != Some(from) {
            return false;
        }
        let Some(conn) = node.with(now, |sockets| sockets.accept(now, from)) else { return true };
        self.seen.note(now, node.sockets(), conn);
        if let Some(peer) = node.sockets().peer(conn) {
            node.give_path(now, peer);
            self.seen.note_hops(now, node, conn, peer);
        }
        let message = match self.plan.talk {
            Talk::Endless(directions) if directions.has_back() => {
                ProgramMessage::new(None, ENDLESS, Then::StaysOpen)
            }
            _ => ProgramMessage::new(None, 0, Then::StaysOpen),
        };
        self.open.push(ServerConnection { conn, message, unread: 0, answer: 0, has_end: false });
        let nth = self.open.len() - 1;
        self.read(now, node, nth);
        self.open[nth].message.write(now, node, conn);
        true
    }

    pub(super) fn on_event<P: Platform<Sockets = S>>(
        &mut self,
        now: Instant,
        node: &mut P,
        conn: S::Conn,
        event: EventKind,
    ) -> bool {
        let Some(nth) = self.open.iter().position(|open| open.conn == conn) else { return false };
        match event {
            EventKind::Connected | EventKind::Writable => {}
            EventKind::Readable => self.read(now, node, nth),
            EventKind::PeerClosed => {
                self.read(now, node, nth);
                self.open[nth].has_end = true;
            }
            EventKind::Closed(_) if !matches!(self.plan.talk, Talk::Endless(_)) => {
                self.seen.let_go(now, node, conn);
                self.open.remove(nth);
                return true;
            }
            _ => return true,
        }
        self.go_on(now, node, nth);
        true
    }

    fn go_on<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P, nth: usize) {
        let open = &mut self.open[nth];
        if open.has_end && !matches!(self.plan.talk, Talk::Endless(_)) {
            open.message.shut();
        }
        open.message.write(now, node, open.conn);
        if open.has_end && open.message.is_done() {
            self.seen.let_go(now, node, open.conn);
            self.open.remove(nth);
        }
    }

    /// Returns whether the client's messages begin with a header.
    fn is_asked(&self) -> bool {
        match self.plan.talk {
            Talk::Endless(_) => false,
            Talk::Transfers { directions, .. } => directions != Directions::Forth,
            Talk::Requests { .. } => true,
        }
    }

    fn read<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P, nth: usize) {
        let is_asked = self.is_asked();
        let open = &mut self.open[nth];
        loop {
            let readable = node.sockets().readable(open.conn);
            if is_asked && open.unread == 0 {
                let Some(header) = MessageHeader::read(node.sockets().peek(open.conn)) else { return };
                (open.unread, open.answer) = (u64::from(header.bytes), u64::from(header.answer));
            }
            let wanted = if is_asked { open.unread } else { u64::from(readable) };
            let bytes = u32::try_from(wanted).unwrap_or(u32::MAX).min(readable);
            if bytes == 0 || !node.with(now, |sockets| sockets.consume(now, open.conn, bytes)) {
                return;
            }
            self.seen.tally.add(now, u64::from(bytes));
            open.unread = open.unread.saturating_sub(u64::from(bytes));
            if is_asked && open.unread == 0 {
                open.message.extend(open.answer);
            }
        }
    }
}
