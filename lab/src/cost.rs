//! The cost of a run. No result depends on it.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::machine::{self, Machine};
use crate::version;

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

/// Cost of a run, and what made it when. It stands in no report.
#[derive(Debug, Serialize)]
pub struct RunCost<'a> {
    /// Name of the run in its trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    /// The name of the machine.
    host: String,
    #[serde(flatten)]
    origin: CostOrigin,
    /// The resources that the run took.
    #[serde(flatten)]
    cost: &'a Cost,
}

impl RunCost<'_> {
    /// The cost of a run that has just ended here; `id` is its name in its trial.
    pub fn now<'a>(id: Option<&'a str>, cost: &'a Cost) -> RunCost<'a> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        RunCost { id, host: host.trim().to_owned(), origin: CostOrigin::here(), cost }
    }
}

/// The program, the machine and the day that made a run; costs of earlier versions lack them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CostOrigin {
    /// The commit that the program was built from, if it was built in a clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The machine that made the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The day in UTC on which the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
}

impl CostOrigin {
    fn here() -> CostOrigin {
        CostOrigin {
            commit: version::commit().map(str::to_owned),
            machine: Some(machine::this().clone()),
            day: Some(machine::today()),
        }
    }
}
