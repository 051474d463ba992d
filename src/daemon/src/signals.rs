//! Signals that end a program. A runtime waits for them, or they make a descriptor readable, which a daemon polls
//! together with its devices.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The longest time that an ended program takes to write its output; the reader may have stopped.
pub const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// The signals that end a program in order.
#[derive(Debug)]
pub struct Ending {
    term: Signal,
    int: Signal,
    quit: Signal,
    /// Absent if SIGHUP has another meaning, such as to read a file again.
    hup: Option<Signal>,
}

impl Ending {
    /// From now on these signals end the program no more by themselves.
    pub fn new() -> io::Result<Ending> {
        let [term, int, quit] = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit()];
        Ok(Ending { term: signal(term)?, int: signal(int)?, quit: signal(quit)?, hup: None })
    }

    /// SIGTERM, SIGINT, SIGQUIT, and SIGHUP, which comes from a terminal that is closed.
    pub fn or_hangup() -> io::Result<Ending> {
        Ok(Ending { hup: Some(signal(SignalKind::hangup())?), ..Ending::new()? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        let hangup = async {
            match &mut self.hup {
                Some(hup) => hup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = hangup => {}
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

/// A runtime with the ending signals, for a program that is about to change the system and must take that back.
pub fn runtime() -> Result<(Runtime, Ending), Failure> {
    let runtime = Runtime::new().map_err(Failure::during("start a runtime"))?;
    let ending = {
        let _inside = runtime.enter();
        Ending::or_hangup().map_err(Failure::during("watch for signals"))?
    };
    Ok((runtime, ending))
}

/// Catches signals for a program that may not have a second thread yet. From now on they do not end it by themselves.
/// Any later runtime receives them.
pub fn early<S>(watch: impl FnOnce() -> io::Result<S>) -> Result<S, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let watched = runtime.and_then(|runtime| {
        let _inside = runtime.enter();
        watch()
    });
    watched.map_err(Failure::during("watch for signals"))
}

/// Signals that no longer end the program by themselves. After [`tell`](SignalWatch::tell) a descriptor reports them.
#[derive(Debug)]
pub struct SignalWatch<S> {
    runtime: Runtime,
    signals: S,
    has_come: OwnedFd,
}

impl<S> SignalWatch<S> {
    /// Starts no thread.
    fn catch(catch: impl FnOnce() -> io::Result<S>) -> io::Result<SignalWatch<S>> {
        let has_come = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let signals = {
            let _inside = runtime.enter();
            catch()?
        };
        Ok(SignalWatch { runtime, signals, has_come })
    }

    /// Becomes readable with a signal; reading it does not wait.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.has_come.try_clone()
    }
}

/// Makes an eventfd readable. It fails only when the counter is full, which is as good.
pub fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

/// Rings when it is dropped.
#[derive(Debug)]
pub struct RingAtDrop<'a>(pub &'a OwnedFd);

impl Drop for RingAtDrop<'_> {
    fn drop(&mut self) {
        ring(self.0);
    }
}

impl SignalWatch<Signal> {
    /// Each SIGHUP.
    pub fn hangups() -> io::Result<SignalWatch<Signal>> {
        SignalWatch::catch(|| signal(SignalKind::hangup()))
    }

    /// Starts a thread that reports each signal.
    pub fn tell(self) -> io::Result<()> {
        let SignalWatch { runtime, mut signals, has_come } = self;
        let thread = std::thread::Builder::new().name("hangups".into());
        let report = move || {
            while runtime.block_on(signals.recv()).is_some() {
                ring(&has_come);
            }
        };
        thread.spawn(report).map(drop)
    }
}

impl SignalWatch<Ending> {
    /// SIGTERM, SIGINT and SIGQUIT.
    pub fn endings() -> io::Result<SignalWatch<Ending>> {
        SignalWatch::catch(Ending::new)
    }

    /// Starts a thread that reports the first signal.
    pub fn tell(self) -> io::Result<()> {
        let SignalWatch { runtime, mut signals, has_come } = self;
        let thread = std::thread::Builder::new().name("signals".into());
        let report = move || {
            runtime.block_on(signals.next());
            ring(&has_come);
        };
        thread.spawn(report).map(drop)
    }
}

/// Becomes readable on SIGTERM, SIGINT, SIGQUIT and SIGHUP.
pub fn watch() -> io::Result<OwnedFd> {
    let ends = SignalWatch::catch(Ending::or_hangup)?;
    let has_come = ends.descriptor()?;
    ends.tell()?;
    Ok(has_come)
}
