//! CPU time of this thread; what else the machine does meanwhile does not count.

/// Nanoseconds on a CPU so far; 0 where the kernel does not tell.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0)
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
