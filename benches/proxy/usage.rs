//! CPU time of a thread, which other programs on the machine do not lengthen.

use rustix::time::{ClockId, clock_gettime};

pub(crate) fn thread_seconds() -> f64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
