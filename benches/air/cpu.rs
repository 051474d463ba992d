//! CPU time of this thread; other load of the machine does not count.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on a CPU until now. The values in `/proc` are as old as the scheduler's last tick, up to 4 ms.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU seconds that `work` takes.
pub(crate) fn seconds(work: impl FnOnce()) -> f64 {
    let began = cpu_ns();
    work();
    (cpu_ns() - began).max(1) as f64 / 1e9
}

/// The most memory that this process ever had.
pub(crate) fn peak_rss_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
