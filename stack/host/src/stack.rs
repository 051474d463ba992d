//! An endpoint with a driver on a thread of its own, or in the program's runtime; programs hold a handle and call it
//! from anywhere.
//!
//! Invariants
//! - H1: whoever has changed the endpoint also sends what follows from it, before the lock is given back, but for H4.
//! - H2: wakers are called without the lock.
//! - H3: whenever the lock is given back, an alarm is set that wakes whoever drives by the endpoint's deadline.
//! - H4: what a large write leaves that fills no packet may wait where the task of a runtime of one thread drives: it
//!   is woken at once and pushes it in its next turn, unless it was flushed before.

mod errors;
mod shared;
mod waiting;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use hopwise_core::agent::AgentMaker;
use hopwise_core::endpoint::{ConnId, EndpointConfig};
use hopwise_core::tcp::{AckMerge, Info};
use hopwise_core::{Endpoint, Instant};

pub(crate) use errors::kind_of;
pub use errors::{ConnectError, StackError};
pub(crate) use shared::Shared;
pub(crate) use waiting::{Side, Waiting};

use crate::clock::Clock;
use crate::counters::LinkCounters;
use crate::driver::{Answers, Driver};
use crate::link::Link;
use crate::observer::Observer;

/// What a stack is made from besides its links and agents.
pub struct StackConfig {
    /// Its links stand in the order in which they are given to [`Stack::start`], numbered from 0;
    /// [`describe`](crate::describe) writes their entries.
    pub endpoint: EndpointConfig,
    /// While none of them watches, the endpoint keeps no trace.
    pub observers: Vec<Box<dyn Observer>>,
    /// Several stacks that go by one clock can be told of together.
    pub clock: Clock,
    pub drives: Drives,
    /// How long to go on looking after the last packet before sleeping: it costs a core and saves the time that waking
    /// takes. Zero turns it off.
    pub busy_poll: Duration,
    /// Of the driver's thread; at most 15 bytes.
    pub thread_name: String,
}

/// Who reads the links and runs the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drives {
    /// A thread of the stack's own: it answers however long a program takes for something else.
    Thread,
    /// A task in the tokio runtime in which the stack is started, with I/O enabled: programs are woken without a switch
    /// of threads, and must not block theirs. Nothing is answered while the runtime does not run.
    Runtime,
}

impl StackConfig {
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

impl std::fmt::Debug for StackConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackConfig").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// A handle; all copies lead to one endpoint. When the last is dropped, streams and listeners among them, the driver's
/// thread or task ends, and the links with it.
#[derive(Clone, Debug)]
pub struct Stack {
    alive: Arc<Alive>,
}

/// Held by every handle, and not by the driver's thread.
#[derive(Debug)]
struct Alive {
    shared: Arc<Shared>,
    /// Unless it is driven by a runtime.
    thread: Mutex<Option<JoinHandle<()>>>,
    drives: Drives,
}

/// How a stack came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Connections that were still under way when the time was up, and were reset.
    pub reset: usize,
}

impl Stack {
    pub fn start(
        config: StackConfig,
        links: Vec<Box<dyn Link>>,
        maker: Box<dyn AgentMaker>,
    ) -> Result<Stack, StackError> {
        let described: Vec<_> = config.endpoint.links.iter().map(|link| link.id).collect();
        if !described.iter().copied().eq((0..links.len() as u16).map(hopwise_core::LinkId)) {
            return Err(StackError::Links { given: links.len(), described });
        }
        let answers = match config.endpoint.ack_merge() {
            AckMerge::Off => Answers::EachPacket,
            AckMerge::Read => Answers::EachTurn,
        };
        let endpoint = Endpoint::new(config.endpoint, maker).map_err(StackError::Agents)?;
        let driver = Driver::new(endpoint, links, config.observers).map_err(StackError::System)?;
        let driver = driver.with_answers(answers);
        let shared = Arc::new(Shared::new(driver.with_clock(config.clock)));
        let driven = Arc::clone(&shared);
        let thread = match config.drives {
            Drives::Thread => {
                let thread = thread::Builder::new().name(config.thread_name);
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

    /// Runs `act` with the endpoint, and sends what follows from it. It holds the lock: it must be short and must not
    /// wait. News of connections goes to streams and listeners, so `poll_event` has nothing to tell here.
    pub fn with<R>(&self, act: impl FnOnce(Instant, &mut Endpoint) -> R) -> R {
        self.shared().act(|now, endpoint, _| act(now, endpoint))
    }

    pub fn info(&self, id: ConnId) -> Option<Info> {
        self.shared().look(|now, endpoint| endpoint.info(now, id).ok())
    }

    /// What each link has counted.
    pub fn counters(&self) -> Vec<LinkCounters> {
        self.shared().counters()
    }

    /// Whether a link's device has vanished.
    pub fn has_lost_a_link(&self) -> bool {
        self.counters().iter().any(|link| link.is_gone)
    }

    pub fn clock(&self) -> Clock {
        self.shared().clock()
    }

    /// Add it to an [`Instant`] for the time since 1970.
    pub fn wall_clock_offset(&self) -> Duration {
        self.clock().wall_offset()
    }

    /// Listens and connects no more, closes every connection, waits until all have ended in order, and resets those
    /// that have not by the deadline. It blocks: call it from a thread that may wait.
    pub fn stop(self, deadline: Duration) -> Stopped {
        let reset = self.shared().finish(deadline, self.alive.drives);
        self.alive.end();
        Stopped { reset }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.alive.shared
    }
}

impl Alive {
    /// Ends the thread and waits for it.
    fn end(&self) {
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
    }
}
