//! The same world in real time: its clock follows one that the caller gives.
//!
//! Input from outside is handed in between two calls of [`advance`](Live::advance), at the instant that the world has
//! reached. A world that takes longer to compute than it lasts falls behind, and catches up as fast as it can. It
//! leaves out the time that it could not make up for within a second: its clock stands still for that long.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use hopwise_core::{Instant, Machine};

use crate::world::RadioWorld;

/// The simulated time of one call, before input from outside has its turn.
const SLICE: Duration = Duration::from_millis(2);
/// A world that is later than this is behind. A busy machine wakes a process up some tenths of a millisecond too late.
const LATE: Duration = Duration::from_millis(5);
const MOST_BEHIND: Duration = Duration::from_secs(1);

/// The amount by which a world was behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The longest time by which it was behind its clock.
    pub worst: Duration,
    /// Times when it fell behind by more than 5 ms.
    pub times: u64,
    /// The time that was left out.
    pub left_out: Duration,
}

/// The result of [`advance`](Live::advance).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveProgress {
    /// The world has reached the clock.
    UpToDate,
    /// More events are due: call again, without waiting.
    MoreIsDue,
}

/// A world whose virtual time follows a clock.
#[derive(Debug)]
pub struct Live<M: Machine> {
    world: RadioWorld<M>,
    lateness: Lateness,
    is_late: bool,
    /// The worst lateness since the last [`take_worst`](Live::take_worst).
    worst: Duration,
    left_out: Rc<Cell<Duration>>,
}

impl<M: Machine> Live<M> {
    /// Begins with the clock at zero.
    pub fn new(world: RadioWorld<M>) -> Live<M> {
        let left_out = Rc::default();
        Live { world, lateness: Lateness::default(), is_late: false, worst: Duration::ZERO, left_out }
    }

    /// The world itself, to act on its machines.
    pub fn world(&mut self) -> &mut RadioWorld<M> {
        &mut self.world
    }

    /// The machines, in the order of their numbers.
    pub fn machines(&self) -> &[M] {
        self.world.machines()
    }

    /// The amount by which it was behind until now.
    pub fn lateness(&self) -> Lateness {
        self.lateness
    }

    /// The time left out until now, kept up to date for event handlers within.
    pub fn left_out(&self) -> Rc<Cell<Duration>> {
        Rc::clone(&self.left_out)
    }

    /// The worst lateness since the last call, if the world was behind.
    pub fn take_worst(&mut self) -> Option<Duration> {
        Some(std::mem::take(&mut self.worst)).filter(|worst| *worst > LATE)
    }

    /// When the next event is due, on the clock that the world follows.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.world.next().map(|at| at + self.lateness.left_out)
    }

    /// Lets due events happen, but not many at once: read the clock again, hand in the input, and go on.
    pub fn advance(&mut self, clock: Instant) -> LiveProgress {
        let mut now = Instant::ZERO + clock.since(Instant::ZERO).saturating_sub(self.lateness.left_out);
        let due = self.world.next().unwrap_or(now);
        let late = now.since(due);
        self.note(late);
        if late > MOST_BEHIND {
            self.lateness.left_out += late;
            self.left_out.set(self.lateness.left_out);
            now = due;
        }
        let until = now.min(due.max(self.world.now()) + SLICE);
        self.world.run_until(until);
        if until < now { LiveProgress::MoreIsDue } else { LiveProgress::UpToDate }
    }

    fn note(&mut self, late: Duration) {
        let is_late = late > LATE;
        self.lateness.worst = self.lateness.worst.max(late);
        self.worst = self.worst.max(late);
        self.lateness.times += u64::from(is_late && !self.is_late);
        self.is_late = is_late;
    }
}

#[cfg(test)]
mod tests;
