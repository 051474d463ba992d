//! What handles and the driver's thread share: the driver behind a lock, and who waits for what.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use hopwise_core::endpoint::{ConnId, Event, EventKind, ListenerId};
use hopwise_core::trace::StateName;
use hopwise_core::{Endpoint, Instant};

use crate::clock::Clock;
use crate::counters::LinkCounters;
use crate::driver::{Driver, Turn};
use crate::poller::Poller;

#[derive(Debug)]
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    poller: Arc<Poller>,
    clock: Clock,
    /// When the driver's thread wakes by itself; 0 while it does not sleep.
    sleeps_until: AtomicU64,
    is_ending: AtomicBool,
    /// The driver's thread has ended.
    is_over: AtomicBool,
    /// Told after each turn while a stop is under way.
    turned: Condvar,
}

#[derive(Debug)]
struct Inner {
    driver: Driver<Endpoint>,
    waiting: Waiting,
    is_finishing: bool,
}

/// Who waits for what. Each waiter is called once and asks again.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// By the connections' slots.
    connections: Vec<Waiters>,
    listeners: BTreeMap<ListenerId, Vec<Waker>>,
    /// To be called once the lock is given back (H2).
    due: Vec<Waker>,
}

#[derive(Debug)]
struct Waiters {
    /// Who had the slot last.
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
        let waiters = self.seats(id);
        let seat = match side {
            Side::Reader => &mut waiters.reader,
            Side::Writer => &mut waiters.writer,
        };
        match seat {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *seat = Some(cx.waker().clone()),
        }
    }

    fn seats(&mut self, id: ConnId) -> &mut Waiters {
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

    /// What one accept has left over may be the next one's.
    pub(crate) fn call_listener(&mut self, id: ListenerId) {
        if let Some(waiters) = self.listeners.get_mut(&id) {
            self.due.append(waiters);
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

    fn call_all(&mut self) {
        for waiters in std::mem::take(&mut self.connections) {
            self.due.extend(waiters.reader.into_iter().chain(waiters.writer));
        }
        for waiters in std::mem::take(&mut self.listeners).into_values() {
            self.due.extend(waiters);
        }
    }
}

/// Whether an event is news to who reads, and to who writes or waits for the handshake.
fn concerns(kind: EventKind) -> (bool, bool) {
    match kind {
        EventKind::Connected | EventKind::Writable => (false, true),
        EventKind::Readable | EventKind::PeerClosed | EventKind::Urgent => (true, false),
        EventKind::Closed(_) => (true, true),
        EventKind::Struggling | EventKind::SoftError { .. } => (false, false),
    }
}

impl Shared {
    pub(crate) fn new(driver: Driver<Endpoint>) -> Shared {
        let (poller, clock) = (driver.poller(), driver.clock());
        let inner = Inner { driver, waiting: Waiting::default(), is_finishing: false };
        Shared {
            inner: Mutex::new(inner),
            poller,
            clock,
            sleeps_until: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            turned: Condvar::new(),
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) fn counters(&self) -> Vec<LinkCounters> {
        self.inner.lock().driver.counters()
    }

    /// Asks without changing anything.
    pub(crate) fn look<R>(&self, look: impl FnOnce(Instant, &Endpoint) -> R) -> R {
        let inner = self.inner.lock();
        look(self.clock.now(), inner.driver.machine())
    }

    /// H1.
    pub(crate) fn act<R>(&self, act: impl FnOnce(Instant, &mut Endpoint, &mut Waiting) -> R) -> R {
        let mut inner = self.inner.lock();
        let Inner { driver, waiting, .. } = &mut *inner;
        let done = driver.act(|now, endpoint| act(now, endpoint, waiting));
        let deadline = driver.poll_timeout().unwrap_or(Instant::FAR);
        if deadline.0 < self.sleeps_until.load(Ordering::Relaxed) {
            self.poller.wake();
        }
        self.give_back(inner);
        done
    }

    /// H2.
    fn give_back(&self, mut inner: MutexGuard<'_, Inner>) {
        let Inner { driver, waiting, is_finishing, .. } = &mut *inner;
        while let Some(event) = driver.machine_mut().poll_event() {
            waiting.hear(&event);
        }
        let is_finishing = *is_finishing;
        if waiting.due.is_empty() {
            drop(inner);
        } else {
            let mut due = std::mem::take(&mut waiting.due);
            drop(inner);
            due.drain(..).for_each(Waker::wake);
            self.inner.lock().waiting.take_back(due);
        }
        if is_finishing {
            self.turned.notify_all();
        }
    }

    /// The driver's thread.
    pub(crate) fn run(&self, busy_poll: Duration) {
        let mut ready = Vec::new();
        let mut looks_until = Instant::ZERO;
        while !self.is_ending.load(Ordering::Acquire) {
            let mut inner = self.inner.lock();
            let turn = inner.driver.turn(&ready);
            let deadline = inner.driver.poll_timeout();
            let now = self.clock.now();
            if !ready.is_empty() {
                looks_until = now + busy_poll;
            }
            let until = if turn == Turn::MoreToRead || now < looks_until { Some(now) } else { deadline };
            self.sleeps_until.store(until.unwrap_or(Instant::FAR).0, Ordering::Relaxed);
            self.give_back(inner);
            if let Err(error) = self.poller.wait(&self.clock, until, &mut ready) {
                tracing::error!(%error, "epoll failed; the stack ends");
                break;
            }
        }
        let mut inner = self.inner.lock();
        self.is_over.store(true, Ordering::Release);
        inner.waiting.call_all();
        self.give_back(inner);
    }

    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
        self.poller.wake();
    }

    /// Nothing moves any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Closes everything and waits; answers how many connections had to be reset.
    pub(crate) fn finish(&self, deadline: Duration) -> usize {
        let until = self.clock.now() + deadline;
        self.act(|now, endpoint, _| endpoint.close_all(now));
        let mut inner = self.inner.lock();
        inner.is_finishing = true;
        loop {
            let now = self.clock.now();
            let under_way = count_under_way(inner.driver.machine());
            if under_way == 0 || now >= until || self.is_over() {
                break;
            }
            self.turned.wait_for(&mut inner, until.since(now));
        }
        inner.driver.act(|now, endpoint| endpoint.abort_all(now))
    }
}

/// TIME-WAIT owes the peer nothing but silence.
fn count_under_way(endpoint: &Endpoint) -> usize {
    endpoint.states().filter(|state| !matches!(state, StateName::TimeWait | StateName::Closed)).count()
}

impl Waiting {
    /// Keeps the allocation for the next time.
    fn take_back(&mut self, due: Vec<Waker>) {
        if self.due.is_empty() {
            self.due = due;
        }
    }
}
