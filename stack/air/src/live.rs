//! The same world in real time: its clock follows one that it is told of.
//!
//! What comes from outside is handed in between two calls of [`advance`](Live::advance), at the instant to which the
//! world has come. A world that takes longer to compute than it lasts falls behind; it catches up as fast as it can,
//! and what it could not make up for within a second it leaves out: its clock stands still for that long.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use hopwise_core::{Instant, Machine};

use crate::world::World;

/// So much happens in one go, before what came from outside has its turn.
const SLICE: Duration = Duration::from_millis(2);
/// What happens later than this is behind. A busy machine wakes a process up some tenths of a millisecond too late.
const LATE: Duration = Duration::from_millis(5);
const MOST_BEHIND: Duration = Duration::from_secs(1);

/// How far a world was behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    pub worst: Duration,
    /// Times when it fell behind by more than 5 ms.
    pub times: u64,
    /// What was left out.
    pub left_out: Duration,
}

/// Whether more is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    UpToDate,
    MoreIsDue,
}

#[derive(Debug)]
pub struct Live<M: Machine> {
    world: World<M>,
    lateness: Lateness,
    is_late: bool,
    /// Since this was last asked for.
    worst: Duration,
    left_out: Rc<Cell<Duration>>,
}

impl<M: Machine> Live<M> {
    pub fn new(world: World<M>) -> Live<M> {
        let left_out = Rc::default();
        Live { world, lateness: Lateness::default(), is_late: false, worst: Duration::ZERO, left_out }
    }

    pub fn world(&mut self) -> &mut World<M> {
        &mut self.world
    }

    pub fn machines(&self) -> &[M] {
        self.world.machines()
    }

    pub fn lateness(&self) -> Lateness {
        self.lateness
    }

    /// The time left out until now, kept up to date for those who are told of events within.
    pub fn left_out(&self) -> Rc<Cell<Duration>> {
        Rc::clone(&self.left_out)
    }

    /// How late it was at the worst since this was last asked, if it was behind.
    pub fn take_worst(&mut self) -> Option<Duration> {
        Some(std::mem::take(&mut self.worst)).filter(|worst| *worst > LATE)
    }

    /// When something is due, on the clock that the world follows.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.world.next().map(|at| at + self.lateness.left_out)
    }

    /// Lets happen what is due, but not much at once: read the clock again, hand in what has come, and go on.
    pub fn advance(&mut self, clock: Instant) -> Progress {
        let mut now = self.on_its_clock(clock);
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
        if until < now { Progress::MoreIsDue } else { Progress::UpToDate }
    }

    fn on_its_clock(&self, clock: Instant) -> Instant {
        Instant::ZERO + clock.since(Instant::ZERO).saturating_sub(self.lateness.left_out)
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
