//! The place where a stop waits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::futex::{self, Flags};

use crate::poller::timespec;

/// Counts how often it was told that a stop may have nothing left to wait for. A handler of a signal ends a wait here,
/// and none at a lock: it may have forked, and in the child nobody would ever tell.
#[derive(Debug, Default)]
pub(super) struct Finished(AtomicU32);

impl Finished {
    pub(super) fn told(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn tell(&self) {
        self.0.fetch_add(1, Ordering::Release);
        // It fails with a wrong address alone.
        let _ = futex::wake(&self.0, Flags::PRIVATE, i32::MAX.unsigned_abs());
    }

    /// Waits until it is told once more than `told`, or for a handler of a signal, at most as long. It may also end for
    /// no reason.
    pub(super) fn wait(&self, told: u32, most: Duration) {
        // Whatever ended it, the caller looks again.
        let _ = futex::wait(&self.0, Flags::PRIVATE, told, Some(&timespec(most)));
    }
}
