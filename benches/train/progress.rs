//! Prints the progress.
#![expect(clippy::disallowed_methods, reason = "progress shows how long it really takes")]

use std::sync::Mutex;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Progress {
    runs: usize,
    began: Instant,
    /// The number of finished runs, and the time of the last report.
    state: Mutex<(usize, Instant)>,
}

impl Progress {
    pub(crate) fn new(runs: usize) -> Progress {
        let began = Instant::now();
        Progress { runs, began, state: Mutex::new((0, began)) }
    }

    pub(crate) fn step(&self) {
        let mut state = self.state.lock().expect("no thread panics with it");
        let now = Instant::now();
        state.0 += 1;
        if now - state.1 >= EVERY {
            state.1 = now;
            let (done, spent_s) = (state.0, (now - self.began).as_secs());
            let left_s = spent_s * (self.runs - done) as u64 / done as u64;
            eprintln!("  {done} of {} runs after {spent_s} s, about {left_s} s are left", self.runs);
        }
    }

    pub(crate) fn printed(&self) {
        eprintln!("  {} runs in {} s", self.runs, self.began.elapsed().as_secs());
    }
}
