//! The use of the processors by other programs, while a run in real time needs them.

use std::fs;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::param::clock_ticks_per_second;

/// Time of all processors together, in seconds since the machine started.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Processors {
    busy_s: f64,
    idle_s: f64,
}

/// Measures from its start.
#[derive(Debug)]
pub(super) struct Busy {
    began: Option<Processors>,
    own_s: f64,
}

impl Busy {
    pub(super) fn start() -> Busy {
        Busy { began: processors(), own_s: own_s() }
    }

    /// The share of all processors that other programs used. Ended processes of ours count as ours once they were
    /// waited for.
    pub(super) fn elsewhere(&self) -> Option<f64> {
        let (began, ended) = (self.began?, processors()?);
        let busy_s = ended.busy_s - began.busy_s;
        let all_s = busy_s + ended.idle_s - began.idle_s;
        (all_s > 0.0).then(|| ((busy_s - (own_s() - self.own_s)) / all_s).clamp(0.0, 1.0))
    }
}

/// Seconds of processor time of this process and of its ended children.
fn own_s() -> f64 {
    let of = |who| {
        getrusage(who).map_or(0.0, |usage| {
            let times = [usage.user_time(), usage.system_time()];
            times.iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum()
        })
    };
    of(UsageWho::RUSAGE_SELF) + of(UsageWho::RUSAGE_CHILDREN)
}

fn processors() -> Option<Processors> {
    of_text(&fs::read_to_string("/proc/stat").ok()?, clock_ticks_per_second())
}

/// Reads the line of all processors: user, nice, system, idle, iowait, irq, softirq, steal.
fn of_text(text: &str, ticks_per_second: u64) -> Option<Processors> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let idle: f64 = ticks.get(3..5)?.iter().sum();
    let all: f64 = ticks.iter().sum();
    let each = ticks_per_second as f64;
    Some(Processors { busy_s: (all - idle) / each, idle_s: idle / each })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_processors_waited_is_idle() {
        let text = "cpu  100 50 30 800 20 5 10 5 7 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(of_text(text, 100), Some(Processors { busy_s: 2.0, idle_s: 8.2 }));
        assert_eq!(of_text("intr 1 2\n", 100), None);
        assert_eq!(of_text("cpu  1 2\n", 100), None);
    }
}
