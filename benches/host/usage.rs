//! Time, CPU time and memory of this process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The time that `work` took, and the CPU time of all threads meanwhile, in seconds.
pub(crate) fn measure(work: impl FnOnce()) -> (f64, f64) {
    let (began, before) = (read(ClockId::Monotonic), cpu());
    work();
    ((read(ClockId::Monotonic) - began).as_secs_f64(), cpu() - before)
}

/// The CPU time of all threads of this process so far, in seconds.
pub(crate) fn cpu() -> f64 {
    read(ClockId::ProcessCPUTime).as_secs_f64()
}

/// Microseconds since some time in the past.
pub(crate) fn now_us() -> i64 {
    i64::try_from(read(ClockId::Monotonic).as_micros()).unwrap_or(i64::MAX)
}

/// Resident memory of this process, in MiB.
pub(crate) fn resident_mib() -> f64 {
    resident_mib_of("self")
}

/// Resident memory of a process by its number, in MiB.
pub(crate) fn resident_mib_of(process: &str) -> f64 {
    let statm = std::fs::read_to_string(format!("/proc/{process}/statm")).expect("the process runs");
    let pages: f64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("the second field");
    pages * 4096.0 / f64::from(1 << 20)
}
