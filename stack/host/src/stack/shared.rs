//! State that handles share with the driver: the driver behind a lock, and the wakers that wait.

mod finished;
mod unpushed;

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use hopwise_core::endpoint::{ConnId, SendError};
use hopwise_core::trace::StateName;
use hopwise_core::{Endpoint, Instant};
use parking_lot::{Mutex, MutexGuard};
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::clock::Clock;
use crate::counters::LinkCounters;
use crate::driver::{Driver, Iteration};
use crate::fork;
use crate::poller::Poller;
use crate::stack::{Drives, Waiting};
use crate::sys;
use finished::Finished;
use unpushed::Unpushed;

pub(crate) use unpushed::Bytes;

#[derive(Debug)]
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    poller: Arc<Poller>,
    clock: Clock,
    is_ending: AtomicBool,
    /// A stop waits for open connections; no new one begins.
    is_stopping: AtomicBool,
    /// No thread or task drives any more.
    is_over: AtomicBool,
    /// Told when a stop has nothing left to wait for.
    finished: Finished,
    /// The process whose stack it is.
    process: u64,
}

#[derive(Debug)]
struct Inner {
    driver: Driver<Endpoint>,
    waiting: Waiting,
    /// A stop waits until no connection is open.
    is_finishing: bool,
    /// The time of the alarm that wakes the driver; never later than the driver's deadline.
    alarm_at: Instant,
    unheard: Unheard,
    unpushed: Unpushed,
}

/// Counts since a task that drives has last read the links.
#[derive(Debug)]
struct Unheard {
    /// Bytes that programs have written.
    written: usize,
    /// The number of bytes from which on a write also reads the links.
    written_most: usize,
    /// The number of packets that had left by then.
    packets_out: u64,
}

/// A runtime reads no ACKs while it runs programs, and their writes fill the send buffers. Several buffers are together
/// larger than any cache. More frequent reads would wake the peer's program more often, for less data.
const WRITTEN_UNHEARD: usize = 1 << 20;

impl Inner {
    fn hear_links(&mut self) -> Iteration {
        self.unheard.written = 0;
        self.unheard.packets_out = self.driver.packets_out();
        self.driver.listen(|_| true)
    }

    /// H4.
    fn answer(&mut self) {
        let Inner { driver, unpushed, .. } = self;
        driver.act(|now, endpoint| unpushed.push(now, endpoint));
    }

    /// The same at once after the links were heard.
    fn answer_in_turn(&mut self) {
        let Inner { driver, unpushed, .. } = self;
        driver.act_in_turn(|now, endpoint| unpushed.push(now, endpoint));
    }
}

impl Shared {
    pub(crate) fn new(driver: Driver<Endpoint>) -> Shared {
        let (poller, clock) = (driver.poller(), driver.clock());
        let waiting = Waiting::default();
        let unheard = Unheard { written: 0, written_most: usize::MAX, packets_out: 0 };
        let unpushed = Unpushed::default();
        let inner = Inner { driver, waiting, is_finishing: false, alarm_at: Instant::FAR, unheard, unpushed };
        Shared {
            inner: Mutex::new(inner),
            poller,
            clock,
            is_ending: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            finished: Finished::default(),
            process: fork::process(),
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns whether this process is a child of the one whose stack it is. The child must take no lock, since a
    /// thread that it does not have may hold it, and must send nothing.
    pub(crate) fn is_of_parent(&self) -> bool {
        self.process != fork::process()
    }

    pub(crate) fn counters(&self) -> Vec<LinkCounters> {
        self.inner.lock().driver.counters()
    }

    /// Shows the driver, between two of its turns.
    pub(crate) fn look_at_driver<R>(&self, look: impl FnOnce(&Driver<Endpoint>) -> R) -> R {
        look(&self.inner.lock().driver)
    }

    /// Reads the endpoint without changing it.
    pub(crate) fn look<R>(&self, look: impl FnOnce(Instant, &Endpoint) -> R) -> R {
        let inner = self.inner.lock();
        look(self.clock.now(), inner.driver.machine())
    }

    /// H1.
    pub(crate) fn act<R>(&self, act: impl FnOnce(Instant, &mut Endpoint, &mut Waiting) -> R) -> R {
        let mut inner = self.inner.lock();
        let Inner { driver, waiting, .. } = &mut *inner;
        let done = driver.act(|now, endpoint| act(now, endpoint, waiting));
        self.set_alarm(&mut inner);
        self.give_back(inner);
        done
    }

    /// [`act`](Shared::act) for a program's data; `then` gets the number of bytes taken. After many bytes, it also
    /// reads the links.
    pub(crate) fn write<R>(
        &self,
        id: ConnId,
        bytes: Bytes<'_>,
        then: impl FnOnce(Result<usize, SendError>, &mut Endpoint, &mut Waiting) -> R,
    ) -> R {
        let mut inner = self.inner.lock();
        let Inner { driver, waiting, unheard, unpushed, .. } = &mut *inner;
        let were_pushed = unpushed.connections.is_empty();
        let done = driver.act(|now, endpoint| {
            let taken = unpushed.write(now, endpoint, id, bytes);
            unheard.written = unheard.written.saturating_add(taken.unwrap_or(0));
            then(taken, endpoint, waiting)
        });
        if were_pushed && !unpushed.connections.is_empty() {
            waiting.due.extend(unpushed.task.clone());
        }
        if unheard.written >= unheard.written_most {
            inner.hear_links();
            inner.driver.answer();
        }
        self.set_alarm(&mut inner);
        self.give_back(inner);
        done
    }

    /// Sends data that was written in parts, without waiting for more.
    pub(crate) fn flush(&self, id: ConnId) {
        let mut inner = self.inner.lock();
        let Inner { driver, unpushed, .. } = &mut *inner;
        if !unpushed.connections.contains(&id) {
            return;
        }
        // A forgotten connection has nothing to push. The task finds it pushed.
        let _ = driver.act(|now, endpoint| endpoint.push(now, id));
        self.set_alarm(&mut inner);
        self.give_back(inner);
    }

    /// A read by a program. If `has_changed` is false for its result, due packets need not leave yet, and may leave
    /// with the program's next step.
    pub(crate) fn read<R>(
        &self,
        read: impl FnOnce(Instant, &mut Endpoint, &mut Waiting) -> R,
        has_changed: impl FnOnce(&R) -> bool,
    ) -> R {
        let mut inner = self.inner.lock();
        let Inner { driver, waiting, .. } = &mut *inner;
        let done = read(self.clock.now(), driver.machine_mut(), waiting);
        if has_changed(&done) {
            inner.driver.answer();
            self.set_alarm(&mut inner);
        }
        self.give_back(inner);
        done
    }

    /// H3. An early alarm, whose deadline has moved, costs less than a new alarm each time.
    fn set_alarm(&self, inner: &mut Inner) {
        let deadline = inner.driver.poll_timeout().unwrap_or(Instant::FAR);
        if deadline < inner.alarm_at {
            inner.alarm_at = deadline;
            self.poller.set_alarm(deadline.since(self.clock.now()));
        }
    }

    /// H2.
    fn give_back(&self, mut inner: MutexGuard<'_, Inner>) {
        let Inner { driver, waiting, is_finishing, .. } = &mut *inner;
        waiting.hear_all(driver.machine_with_events());
        // Notified once: a thread that learns of it by the poller releases the lock, too.
        let is_finished = *is_finishing && (self.is_over() || !is_any_under_way(driver.machine()));
        *is_finishing &= !is_finished;
        if waiting.due.is_empty() {
            drop(inner);
        } else {
            let mut due = std::mem::take(&mut waiting.due);
            drop(inner);
            due.drain(..).for_each(Waker::wake);
            self.inner.lock().waiting.take_back(due);
        }
        if is_finished {
            self.finished.tell();
            self.poller.wake();
        }
    }

    /// Returns whether more can be read, and whether a packet has arrived.
    fn iterate(&self, ready: &[usize]) -> (Iteration, bool) {
        let mut inner = self.inner.lock();
        let before = inner.driver.packets_in();
        let iteration = inner.driver.iterate(ready);
        let has_come = inner.driver.packets_in() != before;
        self.set_next_alarm(&mut inner);
        self.give_back(inner);
        (iteration, has_come)
    }

    /// An iteration. If it wakes programs, its answers wait, because the programs' data may go along.
    fn listen(&self) -> Listened {
        let mut inner = self.inner.lock();
        let before = inner.driver.packets_in();
        let iteration = inner.hear_links();
        inner.driver.stay_awake();
        let Inner { driver, waiting, .. } = &mut *inner;
        waiting.hear_all(driver.machine_with_events());
        let calls = !inner.waiting.due.is_empty();
        if !calls {
            inner.answer_in_turn();
        }
        let has_come = inner.driver.packets_in() != before;
        self.set_next_alarm(&mut inner);
        self.give_back(inner);
        Listened { iteration, calls, has_come }
    }

    /// Returns whether a packet has left since the links were read. A peer in this kernel answers while we write to it.
    fn may_have_answers(&self) -> bool {
        let inner = self.inner.lock();
        inner.driver.packets_out() != inner.unheard.packets_out
    }

    fn answer(&self) {
        let mut inner = self.inner.lock();
        inner.answer();
        self.set_alarm(&mut inner);
        self.give_back(inner);
    }

    /// Like [`set_alarm`](Shared::set_alarm), after the last alarm may have rung. One that rings after the last step
    /// leads to another step.
    fn set_next_alarm(&self, inner: &mut Inner) {
        if inner.alarm_at <= inner.driver.now() {
            inner.alarm_at = Instant::FAR;
        }
        self.set_alarm(inner);
    }

    /// The loop of the driver's thread.
    pub(crate) fn run(&self, busy_poll: Duration) {
        let _over = Over(self);
        let mut ready = Vec::new();
        let mut looks = Looks { busy_poll, until: Instant::ZERO };
        while !self.is_ending() {
            let (iteration, has_come) = self.iterate(&ready);
            let looks_on = looks.go_on(&self.clock, iteration, has_come);
            let until = looks_on.then_some(Instant::ZERO);
            if !looks_on {
                self.inner.lock().driver.rest();
            }
            if let Err(error) = self.poller.wait(&self.clock, until, &mut ready) {
                return tell_of_end(&error);
            }
        }
    }

    /// The same as a task: programs on its thread are woken without a switch. It reads all links, since an idle link
    /// costs no more to read than to poll.
    pub(crate) async fn run_in_runtime(self: Arc<Self>, readable: AsyncFd<OwnedFd>, busy_poll: Duration) {
        let _over = Over(&self);
        let task = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        self.begin(task);
        let mut looks = Looks { busy_poll, until: Instant::ZERO };
        while !self.is_ending() {
            let Listened { iteration, calls, has_come } = self.listen();
            if calls {
                let_others_run().await;
                self.answer();
            }
            if looks.go_on(&self.clock, iteration, has_come) || self.may_have_answers() {
                let_others_run().await;
                continue;
            }
            self.inner.lock().driver.rest();
            if let Err(error) = poll_fn(|cx| self.poll_rest(cx, &readable)).await {
                return tell_of_end(&error);
            }
        }
    }

    fn begin(&self, task: Waker) {
        let mut inner = self.inner.lock();
        inner.unheard.written_most = WRITTEN_UNHEARD;
        let has_one_thread = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
        inner.unpushed.task = has_one_thread.then_some(task);
    }

    /// Waits until there is something to read, to run or to push.
    fn poll_rest(&self, cx: &mut Context<'_>, readable: &AsyncFd<OwnedFd>) -> Poll<io::Result<()>> {
        if self.inner.lock().unpushed.connections.is_empty() {
            ready!(readable.poll_read_ready(cx))?.clear_ready();
        }
        Poll::Ready(Ok(()))
    }

    /// The descriptor that [`run_in_runtime`](Shared::run_in_runtime) waits for, in the runtime of the caller.
    pub(crate) fn readable(&self) -> io::Result<AsyncFd<OwnedFd>> {
        sys::readable(self.poller.descriptor()?)
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// One iteration on the caller's thread: the runtime's thread may be the one that waits for the end.
    fn drive_once(&self, until: Instant) {
        let mut ready = Vec::new();
        self.inner.lock().driver.rest();
        if let Err(error) = self.poller.wait(&self.clock, Some(until), &mut ready) {
            tell_of_end(&error);
        }
        if !self.is_of_parent() {
            self.iterate(&ready);
        }
    }

    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
        self.poller.wake();
    }

    /// Returns whether the driver has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Returns whether a new connection would have no time to end in order.
    pub(crate) fn takes_no_more(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire) || self.is_over()
    }
}

/// The result of listening: whether more can be read, whether programs are to be woken, whether a packet has arrived.
struct Listened {
    iteration: Iteration,
    calls: bool,
    has_come: bool,
}

/// Lets tasks run that were woken before this one. A runtime's own yield would also poll the system for events.
async fn let_others_run() {
    let mut has_let = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_let, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Decides whether to poll for packets before a sleep.
struct Looks {
    busy_poll: Duration,
    until: Instant,
}

impl Looks {
    fn go_on(&mut self, clock: &Clock, iteration: Iteration, has_come: bool) -> bool {
        if self.busy_poll.is_zero() {
            return iteration == Iteration::MoreToRead;
        }
        let now = clock.now();
        if has_come {
            self.until = now + self.busy_poll;
        }
        iteration == Iteration::MoreToRead || now < self.until
    }
}

/// Its drop tells all waiters that the driver has ended, also after a panic.
struct Over<'a>(&'a Shared);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        self.0.is_over.store(true, Ordering::Release);
        inner.unpushed.task = None;
        // A panic while a packet left would repeat.
        if !std::thread::panicking() {
            inner.answer();
        }
        inner.waiting.call_all();
        self.0.give_back(inner);
    }
}

fn tell_of_end(error: &io::Error) {
    tracing::error!(%error, "epoll failed; the stack ends");
}

/// TIME-WAIT sends the peer nothing by itself.
fn is_any_under_way(endpoint: &Endpoint) -> bool {
    endpoint.states().any(|state| !matches!(state, StateName::TimeWait | StateName::Closed))
}

/// The time for answers to peers of connections that a stop has reset. It is longer than the least RTO of Linux.
const LAST_ANSWERS: Duration = Duration::from_millis(300);

impl Shared {
    /// Closes all connections and waits, driven by the own thread or by the caller. Returns the number of connections
    /// that it reset; none in a child that a signal's handler forks meanwhile.
    pub(crate) fn finish(&self, deadline: Duration, drives: Drives) -> Option<usize> {
        let until = self.clock.now() + deadline;
        self.is_stopping.store(true, Ordering::Release);
        self.act(|now, endpoint, _| endpoint.close_all(now));
        while !self.is_of_parent() {
            let mut inner = self.inner.lock();
            let now = self.clock.now();
            if is_any_under_way(inner.driver.machine()) && now < until && !self.is_over() {
                inner.is_finishing = true;
                let told = self.finished.told();
                drop(inner);
                self.wait_to_finish(told, until, drives);
                continue;
            }
            let reset = inner.driver.act(|now, endpoint| endpoint.abort_all(now));
            drop(inner);
            if reset > 0 {
                self.answer_last_questions(drives);
            }
            return Some(reset).filter(|_| !self.is_of_parent());
        }
        None
    }

    /// Drives for a moment after the RSTs. A peer whose number is another one, since data was under way, asks back (RFC
    /// 5961 §3.2) or sends data again. Without an answer it would hold its end for a quarter of an hour.
    fn answer_last_questions(&self, drives: Drives) {
        let until = self.clock.now() + LAST_ANSWERS;
        while !self.is_of_parent() && !self.is_over() && self.clock.now() < until {
            self.wait_to_finish(self.finished.told(), until, drives);
        }
    }

    fn wait_to_finish(&self, told: u32, until: Instant, drives: Drives) {
        match drives {
            Drives::Thread => self.finished.wait(told, until.since(self.clock.now())),
            Drives::Runtime => self.drive_once(until),
        }
    }
}

#[cfg(test)]
mod tests;
