//! Signals that end a program: to be waited for in its runtime, or as something beside a daemon's devices.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// What a program that has ended may take to write what it says; the reader may have stopped.
pub(crate) const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// Those that ask a program to end in order.
#[derive(Debug)]
pub(crate) struct Ending {
    term: Signal,
    int: Signal,
}

impl Ending {
    /// From here on they end nothing by themselves.
    pub(crate) fn new() -> io::Result<Ending> {
        Ok(Ending { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

/// A runtime and what ends it, for who is about to change something in the system that must be taken back.
pub(crate) fn runtime() -> Result<(Runtime, Ending), Failure> {
    let runtime = Runtime::new().map_err(|error| Failure::failed("start a runtime", error))?;
    let ending = {
        let _inside = runtime.enter();
        Ending::new().map_err(|error| Failure::failed("watch for signals", error))?
    };
    Ok((runtime, ending))
}

/// Signals for who may not have a second thread yet: from here on they end nothing by themselves, and whichever runtime
/// runs later tells of them.
pub(crate) fn early<S>(watch: impl FnOnce() -> io::Result<S>) -> Result<S, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let watched = runtime.and_then(|runtime| {
        let _inside = runtime.enter();
        watch()
    });
    watched.map_err(|error| Failure::failed("watch for signals", error))
}

/// Becomes readable on each SIGHUP; reading it does not wait.
pub(crate) fn watch_hangups() -> io::Result<OwnedFd> {
    let hangups = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let teller = hangups.try_clone()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut hangup = {
        let _inside = runtime.enter();
        signal(SignalKind::hangup())?
    };
    std::thread::Builder::new().name("hangups".into()).spawn(move || {
        while runtime.block_on(hangup.recv()).is_some() {
            // It fails only when it is full of what nobody has read.
            let _ = rustix::io::write(&teller, &1_u64.to_ne_bytes());
        }
    })?;
    Ok(hangups)
}

/// Becomes readable on SIGTERM and on SIGINT.
pub(crate) fn watch() -> io::Result<OwnedFd> {
    let ends = eventfd(0, EventfdFlags::CLOEXEC)?;
    let teller = ends.try_clone()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut ending = {
        let _inside = runtime.enter();
        Ending::new()?
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(ending.next());
        // It fails only when it is full of what nobody has read.
        let _ = rustix::io::write(&teller, &1_u64.to_ne_bytes());
    })?;
    Ok(ends)
}
