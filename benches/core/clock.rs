//! The real clock, which only benchmarks read.

use std::time::{Duration, Instant};

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time; what it runs gets virtual time"
)]
fn now() -> Instant {
    Instant::now()
}

/// The time that `work` takes.
pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let began = now();
    work();
    now().duration_since(began)
}

/// The rate a second of work that is done `count` times.
pub(crate) fn rate(count: u64, work: impl FnOnce()) -> f64 {
    count as f64 / time(work).as_secs_f64()
}

/// The cost of one of `count`, in nanoseconds.
pub(crate) fn cost_ns(count: u64, work: impl FnOnce()) -> f64 {
    time(work).as_secs_f64() * 1e9 / count as f64
}
