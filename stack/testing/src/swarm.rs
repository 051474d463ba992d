//! The swarm: random pairs of endpoints on random paths that misbehave and then heal.
//!
//! A seed makes a [scenario](Scenario). It has two endpoints with their settings and agents, and a path that delays,
//! loses, repeats, reorders, spoils, shrinks and fails. Drivers call late, early and twice. Up to eight connections
//! have programs that write, read, pause, close and abort.
//!
//! While it runs, safety holds. The bytes that arrive are exactly a beginning of the bytes sent, and the end is
//! announced only at their end. No code panics, the contract of machines is kept, and memory stays within its limits.
//! Once the path has healed, every connection that was not ended on purpose delivers its bytes within bounded virtual
//! time. Both endpoints then forget every connection.

mod application;
mod draw;
mod mood;
mod observer;
mod run;
mod scenario;
mod show;
mod stream;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

pub use run::{Failure, Summary};
pub use scenario::Scenario;

use crate::memory::Tap;

/// Runs one seed. A panic is a failure like any other.
pub fn run_seed(seed: u64) -> Result<Summary, Failure> {
    guarded(|| run::run(&Scenario::draw(seed), None))
}

/// Runs one seed and hands each packet that leaves to a tap.
pub fn run_tapped(seed: u64, tap: Tap) -> Result<Summary, Failure> {
    guarded(|| run::run_tapped(&Scenario::draw(seed), tap))
}

/// Runs one seed and reports everything: the scenario, each packet's fate and both ends' traces.
pub fn replay(seed: u64, sink: &mut dyn FnMut(&str)) -> Result<Summary, Failure> {
    let scenario = Scenario::draw(seed);
    sink(&scenario.to_string());
    guarded(|| run::run(&scenario, Some(sink)))
}

/// The command that repeats a failure.
pub fn replay_command(seed: u64) -> String {
    format!("cargo run --release -p hopwise --example swarm -- --seed {seed} --verbose")
}

fn guarded(run: impl FnOnce() -> Result<Summary, Failure>) -> Result<Summary, Failure> {
    static QUIET: Once = Once::new();
    QUIET.call_once(panics::keep_quiet);
    match panics::watched(|| catch_unwind(AssertUnwindSafe(run))) {
        Ok(result) => result,
        Err(_) => Err(Failure::Panicked(panics::last())),
    }
}

/// The message of a panic, kept and not printed while a seed runs.
mod panics {
    use std::cell::{Cell, RefCell};

    thread_local! {
        static WATCHED: Cell<bool> = const { Cell::new(false) };
        static LAST: RefCell<String> = const { RefCell::new(String::new()) };
    }

    pub(super) fn keep_quiet() {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if WATCHED.get() {
                LAST.with_borrow_mut(|last| *last = info.to_string().replace('\n', " "));
            } else {
                others(info);
            }
        }));
    }

    pub(super) fn watched<T>(run: impl FnOnce() -> T) -> T {
        WATCHED.set(true);
        let done = run();
        WATCHED.set(false);
        done
    }

    pub(super) fn last() -> String {
        LAST.take()
    }
}
