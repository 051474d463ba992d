//! The wakers of tasks that wait for a connection or a listener.

use std::collections::BTreeMap;
use std::task::{Context, Waker};

use hopwise_core::Endpoint;
use hopwise_core::endpoint::{ConnId, Event, EventKind, ListenerId};

/// Each waker is called once, and must register again.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// By the connections' slots.
    connections: Vec<Waiters>,
    listeners: BTreeMap<ListenerId, Vec<Waker>>,
    /// Wakers to call once the lock is released (H2).
    pub(super) due: Vec<Waker>,
}

#[derive(Debug)]
struct Waiters {
    /// The last connection in the slot.
    of: ConnId,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Reader,
    Writer,
}

impl Waiting {
    pub(crate) fn join(&mut self, id: ConnId, side: Side, cx: &Context<'_>) {
        let waiters = self.make_waiters(id);
        let waiter = match side {
            Side::Reader => &mut waiters.reader,
            Side::Writer => &mut waiters.writer,
        };
        match waiter {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *waiter = Some(cx.waker().clone()),
        }
    }

    fn make_waiters(&mut self, id: ConnId) -> &mut Waiters {
        let Waiting { connections, due, .. } = self;
        if connections.len() <= id.slot() {
            connections.resize_with(id.slot() + 1, || Waiters { of: id, reader: None, writer: None });
        }
        let waiters = &mut connections[id.slot()];
        if waiters.of != id {
            due.extend(waiters.reader.take().into_iter().chain(waiters.writer.take()));
            waiters.of = id;
        }
        waiters
    }

    fn waiters(&mut self, id: ConnId) -> Option<&mut Waiters> {
        self.connections.get_mut(id.slot()).filter(|waiters| waiters.of == id)
    }

    pub(crate) fn join_listener(&mut self, id: ListenerId, cx: &Context<'_>) {
        let waiters = self.listeners.entry(id).or_default();
        if !waiters.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiters.push(cx.waker().clone());
        }
    }

    pub(crate) fn leave(&mut self, id: ConnId) {
        if let Some(waiters) = self.waiters(id) {
            (waiters.reader, waiters.writer) = (None, None);
        }
    }

    pub(crate) fn leave_listener(&mut self, id: ListenerId) {
        self.listeners.remove(&id);
    }

    /// Wakes the next accept, because more connections may wait than one.
    pub(crate) fn call_listener(&mut self, id: ListenerId) {
        if let Some(waiters) = self.listeners.get_mut(&id) {
            self.due.append(waiters);
        }
    }

    pub(super) fn hear_all(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = endpoint.poll_event() {
            self.hear(&event);
        }
    }

    fn hear(&mut self, event: &Event) {
        match event {
            Event::Incoming(id) => self.call_listener(*id),
            Event::Connection(id, kind) => {
                let (reads, writes) = concerns(*kind);
                let Some(waiters) = self.waiters(*id) else { return };
                let reader = waiters.reader.take_if(|_| reads);
                let writer = waiters.writer.take_if(|_| writes);
                self.due.extend(reader.into_iter().chain(writer));
            }
        }
    }

    /// Keeps the allocation for the next time.
    pub(super) fn take_back(&mut self, due: Vec<Waker>) {
        if self.due.is_empty() {
            self.due = due;
        }
    }

    pub(super) fn call_all(&mut self) {
        for waiters in std::mem::take(&mut self.connections) {
            self.due.extend(waiters.reader.into_iter().chain(waiters.writer));
        }
        for waiters in std::mem::take(&mut self.listeners).into_values() {
            self.due.extend(waiters);
        }
    }
}

/// Returns whether an event wakes the reader, and whether it wakes the writer or a connect.
fn concerns(kind: EventKind) -> (bool, bool) {
    match kind {
        EventKind::Connected | EventKind::Writable => (false, true),
        EventKind::Readable | EventKind::PeerClosed | EventKind::Urgent => (true, false),
        EventKind::Closed(_) => (true, true),
        EventKind::Struggling | EventKind::SoftError { .. } => (false, false),
    }
}
