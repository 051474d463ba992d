//! The cost of a run. No result depends on it.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// The resources that a run took.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Seconds of processor time of the thread that ran it; 0 where the kernel does not report them.
    pub cpu_s: f64,
    /// Seconds that passed on the clock.
    pub wall_s: f64,
    /// The number of simulated events.
    pub events: u64,
    /// The largest resident memory of the process until the end of the run, in MiB.
    pub peak_rss_mib: f64,
}

/// A measurement of a run that is under way.
#[derive(Debug)]
pub struct Meter {
    began: Instant,
    cpu_ns: u64,
}

impl Meter {
    /// Begins to measure.
    pub fn start() -> Meter {
        Meter { began: wall(), cpu_ns: cpu_ns() }
    }

    /// Ends the measurement; `events` is the number of simulated events.
    pub fn stop(self, events: u64) -> Cost {
        Cost {
            cpu_s: (cpu_ns() - self.cpu_ns) as f64 / 1e9,
            wall_s: wall().duration_since(self.began).as_secs_f64(),
            events,
            peak_rss_mib: peak_rss_kib() as f64 / 1024.0,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the cost of a run is real; the run has virtual time")]
fn wall() -> Instant {
    Instant::now()
}

/// The nanoseconds that this thread was on a CPU; 0 where the kernel does not report them.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0)
}

fn peak_rss_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Cost of a run, with the day and the machine of it. It stands in no report: equal inputs make equal reports.
#[derive(Debug, Serialize)]
pub struct Spent<'a> {
    /// Name of the run in its trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    /// End of the run, in UTC: `2026-11-26T16:03:05Z`.
    ended: String,
    /// Name of the machine.
    host: String,
    /// Its processor and number of cores: `AMD EPYC, 2 cores`.
    machine: String,
    #[serde(flatten)]
    cost: &'a Cost,
}

impl<'a> Spent<'a> {
    /// The cost of a run that has just ended on this machine.
    pub fn now(id: Option<&'a str>, cost: &'a Cost) -> Spent<'a> {
        Spent { id, ended: utc(seconds_since_1970()), host: host(), machine: machine(), cost }
    }
}

/// Name of the machine.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Processor and number of cores of the machine; where the kernel names no processor, its architecture.
fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or(std::env::consts::ARCH, |(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{model}, {cores} {}", if cores == 1 { "core" } else { "cores" })
}

#[expect(clippy::disallowed_methods, reason = "the day of a run is real; the run has virtual time")]
fn seconds_since_1970() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// A time of day as ISO 8601 writes it.
fn utc(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut day) = (1970, days);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn a_time_is_written_as_a_day_and_an_hour_in_utc() {
        for (seconds, written) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), written);
        }
    }
}
