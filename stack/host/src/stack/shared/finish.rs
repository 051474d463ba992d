//! The end of a stack: connections end in order until the deadline, and by RSTs then.

use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::MutexGuard;

use super::{Inner, Shared, is_any_under_way};
use crate::stack::Drives;

/// The time for answers to peers of connections that a stop has reset. It is longer than the least RTO of Linux.
const LAST_ANSWERS: Duration = Duration::from_millis(300);

impl Shared {
    /// Closes all connections and waits, driven by the own thread or by the caller. Returns the number of connections
    /// that it reset.
    pub(crate) fn finish(&self, deadline: Duration, drives: Drives) -> usize {
        let until = self.clock.now() + deadline;
        self.is_stopping.store(true, Ordering::Release);
        self.act(|now, endpoint, _| endpoint.close_all(now));
        let mut inner = self.inner.lock();
        loop {
            let now = self.clock.now();
            if !is_any_under_way(inner.driver.machine()) || now >= until || self.is_over() {
                break;
            }
            inner.is_finishing = true;
            match drives {
                Drives::Thread => drop(self.finished.wait_for(&mut inner, until.since(now))),
                Drives::Runtime => MutexGuard::unlocked(&mut inner, || self.drive_once(until)),
            }
        }
        let reset = inner.driver.act(|now, endpoint| endpoint.abort_all(now));
        if reset > 0 {
            self.answer_last_questions(inner, drives);
        }
        reset
    }

    /// Drives for a moment after the RSTs. A peer whose number is another one, since data was under way, asks back (RFC
    /// 5961 §3.2) or sends data again. Without an answer it would hold its end for a quarter of an hour.
    fn answer_last_questions(&self, mut inner: MutexGuard<'_, Inner>, drives: Drives) {
        let until = self.clock.now() + LAST_ANSWERS;
        while !self.is_over() {
            let now = self.clock.now();
            match drives {
                _ if now >= until => return,
                Drives::Thread => drop(self.finished.wait_for(&mut inner, until.since(now))),
                Drives::Runtime => MutexGuard::unlocked(&mut inner, || self.drive_once(until)),
            }
        }
    }
}
