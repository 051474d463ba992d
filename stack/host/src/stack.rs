//! An endpoint with a driver on a thread of its own, or in the program's runtime. Programs hold a handle, which any
//! thread may call.
//!
//! Invariants
//! - H1: a thread that changes the endpoint sends the resulting packets before it releases the lock, except for H4.
//! - H2: wakers are called without the lock.
//! - H3: whenever the lock is released, an alarm is set that wakes the driver by the endpoint's deadline.
//! - H4: in a runtime of one thread, the part of a large write that fills no packet may wait. The write wakes the task,
//!   which pushes that part in its next iteration, unless a flush came first.

mod errors;
mod shared;
mod waiting;

use std::io;
use std::mem;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use hopwise_core::agent::AgentMaker;
use hopwise_core::endpoint::{ConnId, EndpointConfig};
use hopwise_core::narrow::as_u16;
use hopwise_core::tcp::{AckMerge, Info};
use hopwise_core::{Endpoint, Instant};

pub use errors::{ConnectError, StackError};
pub(crate) use errors::{kind_of, kind_of_no_listener};
pub(crate) use shared::{Bytes, Shared};
pub(crate) use waiting::{Side, Waiting};

use crate::clock::Clock;
use crate::counters::LinkCounters;
use crate::driver::{Answers, Driver};
use crate::link::Link;
use crate::observer::Observer;
use crate::signals::NoHandlers;

/// The settings of a stack, without its links and agents.
pub struct StackConfig {
    /// Its links have the order in which [`Stack::start`] gets them, with numbers from 0; [`describe`](crate::describe)
    /// writes their entries.
    pub endpoint: EndpointConfig,
    /// While none of them watches, the endpoint keeps no trace.
    pub observers: Vec<Box<dyn Observer>>,
    /// Stacks that share a clock have comparable times.
    pub clock: Clock,
    /// The thread or runtime that drives the endpoint.
    pub drives: Drives,
    /// The time of polling after the last packet before a sleep. Polling costs a core and saves the time of a wake.
    /// Zero turns it off.
    pub busy_poll: Duration,
    /// The name of the driver's thread, at most 15 bytes.
    pub thread_name: String,
}

/// The thread that reads the links and runs the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drives {
    /// A thread of the stack's own. It answers even while the program is busy.
    Thread,
    /// A task in the tokio runtime in which the stack starts, with I/O enabled. It wakes programs without a switch of
    /// threads. Programs must not block the runtime: nothing is answered while it does not run.
    Runtime,
}

impl StackConfig {
    /// The defaults: a thread of its own, no observers, no busy polling.
    pub fn new(endpoint: EndpointConfig) -> StackConfig {
        StackConfig {
            endpoint,
            observers: Vec::new(),
            clock: Clock::start(),
            drives: Drives::Thread,
            busy_poll: Duration::ZERO,
            thread_name: "hopwise".to_owned(),
        }
    }
}

hopwise_core::shown!(StackConfig: endpoint);

/// A handle; all copies lead to one endpoint. Streams and listeners hold a copy, too. When the last is dropped, the
/// driver's thread or task ends, and closes the links.
#[derive(Clone, Debug)]
pub struct Stack {
    alive: Arc<Alive>,
}

/// Held by every handle, but not by the driver's thread.
#[derive(Debug)]
struct Alive {
    shared: Arc<Shared>,
    /// `None` with a runtime that drives the stack.
    thread: Mutex<Option<JoinHandle<()>>>,
    drives: Drives,
}

/// The result of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Connections that had not ended by the deadline, and were reset.
    pub reset: usize,
}

impl AsRef<Stack> for Stack {
    fn as_ref(&self) -> &Stack {
        self
    }
}

impl Stack {
    /// Starts an endpoint. `links` are in the order of their numbers in the configuration; `maker` makes the agents.
    pub fn start(
        config: StackConfig,
        links: Vec<Box<dyn Link>>,
        maker: Box<dyn AgentMaker>,
    ) -> Result<Stack, StackError> {
        let described: Vec<_> = config.endpoint.links.iter().map(|link| link.id).collect();
        if !described.iter().copied().eq((0..as_u16(links.len())).map(hopwise_core::LinkId)) {
            return Err(StackError::Links { given: links.len(), described });
        }
        let answers = match config.endpoint.ack_merge() {
            AckMerge::Off => Answers::EachFew,
            AckMerge::Read => Answers::EachIteration,
        };
        let endpoint = Endpoint::new(config.endpoint, maker).map_err(StackError::Agents)?;
        let driver = Driver::new(endpoint, links, config.observers).map_err(StackError::System)?;
        let driver = driver.with_answers(answers);
        let shared = Arc::new(Shared::new(driver.with_clock(config.clock)));
        let driven = Arc::clone(&shared);
        let thread = match config.drives {
            Drives::Thread => {
                let thread = thread::Builder::new().name(config.thread_name);
                // A child that a handler forks on the driver's thread would drive the links of its parent.
                let _no_handlers = NoHandlers::on_this_thread();
                let thread = thread.spawn(move || driven.run(config.busy_poll));
                Some(thread.map_err(StackError::System)?)
            }
            Drives::Runtime => {
                let runtime = Handle::try_current().map_err(|_| StackError::NoRuntime)?;
                let readable = driven.readable().map_err(|error| match error.kind() {
                    io::ErrorKind::Unsupported => StackError::NoRuntime,
                    _ => StackError::System(error),
                })?;
                runtime.spawn(driven.run_in_runtime(readable, config.busy_poll));
                None
            }
        };
        Ok(Stack { alive: Arc::new(Alive { shared, thread: Mutex::new(thread), drives: config.drives }) })
    }

    /// Runs `act` with the endpoint, and sends the resulting packets. It holds the lock: `act` must be short and must
    /// not wait. Events go to streams and listeners, and `poll_event` is empty here.
    pub fn with<R>(&self, act: impl FnOnce(Instant, &mut Endpoint) -> R) -> R {
        self.shared().act(|now, endpoint, _| act(now, endpoint))
    }

    /// The state of a connection and its agents; `None` once the endpoint has forgotten it.
    pub fn info(&self, id: ConnId) -> Option<Info> {
        self.shared().look(|now, endpoint| endpoint.info(now, id).ok())
    }

    /// The counters of each link.
    pub fn counters(&self) -> Vec<LinkCounters> {
        self.shared().counters()
    }

    /// The clock by which the endpoint lives.
    pub fn clock(&self) -> Clock {
        self.shared().clock()
    }

    /// Stops listening and connecting, closes every connection and waits until all have ended in order. At the deadline
    /// it resets the rest. It blocks: call it from a thread that may wait.
    pub fn stop(self, deadline: Duration) -> Stopped {
        let reset = self.shared().finish(deadline, self.alive.drives);
        self.alive.end();
        // A child that was forked meanwhile has ended nothing.
        Stopped { reset: reset.unwrap_or(0) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.alive.shared
    }
}

impl Alive {
    /// Ends the driver, and waits for its thread. A child of the process whose stack it is has no thread to wait for,
    /// so that no handler may fork during the wait.
    fn end(&self) {
        let _no_handlers = NoHandlers::on_this_thread();
        if self.shared.is_of_parent() {
            return;
        }
        self.shared.end();
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the driver's thread has panicked");
        }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.end();
        if self.shared.is_of_parent() {
            mem::forget(self.thread.get_mut().take());
        }
    }
}
