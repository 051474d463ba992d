//! A signal that ends a trial, or the runs of claims: it is said how far these came and how they go on.

use std::os::fd::{AsFd, OwnedFd};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use hopwise_host::wait_to_read;

use hopwise_daemon::failure::{self, Failure};
use hopwise_daemon::signals::SignalWatch;

/// The status that a shell gives a program which Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// While it lives, a signal ends the program with a sentence. Records are whole at any moment, so nothing waits.
#[derive(Debug)]
pub(crate) struct StopNotice {
    done: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl StopNotice {
    /// `there` steps are done already. `said` has the sentence about any number of them.
    pub(crate) fn watch(
        there: usize,
        said: impl FnOnce(usize) -> String + Send + 'static,
    ) -> Result<StopNotice, Failure> {
        let failed = Failure::during("watch for signals");
        // Not SIGHUP: a trial under nohup outlives its terminal.
        let caught = SignalWatch::endings().map_err(failed)?;
        let ends = caught.descriptor().map_err(failed)?;
        caught.tell().map_err(failed)?;
        let stopped = StopNotice { done: Arc::new(there.into()), is_over: Arc::default() };
        let (done, is_over) = (Arc::clone(&stopped.done), Arc::clone(&stopped.is_over));
        let thread = thread::Builder::new().name("stopped".into());
        thread
            .spawn(move || end_with(&ends, &is_over, || said(done.load(Ordering::Relaxed))))
            .map_err(failed)?;
        Ok(stopped)
    }

    pub(crate) fn on_step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for StopNotice {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn end_with(ends: &OwnedFd, is_over: &AtomicBool, said: impl FnOnce() -> String) {
    while wait_to_read(ends.as_fd(), Duration::MAX).is_err() {}
    if !is_over.load(Ordering::Relaxed) {
        failure::remark(&said());
        process::exit(INTERRUPTED);
    }
}

/// Says it of a trial in real time, which ends in order by itself, if a signal ended it.
pub(super) fn tell_of(ends: &OwnedFd, done: usize, total: usize) {
    if wait_to_read(ends.as_fd(), Duration::ZERO).is_ok() {
        failure::remark(&said(done, total));
    }
}

pub(super) fn said(done: usize, total: usize) -> String {
    format!("stopped after {done} of {total} runs; the same command with --resume goes on")
}
