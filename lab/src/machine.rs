//! The machine that makes runs, as their costs name it. No result depends on it.

use std::fmt;
use std::fs;
use std::sync::LazyLock;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A machine: its processor and its kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Machine {
    /// The model of its processor, if the kernel tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// The number of cores that the program may use.
    pub cores: usize,
    /// The release of its kernel.
    pub kernel: String,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = if self.cores == 1 { "core" } else { "cores" };
        let cpu = self.cpu.as_deref().unwrap_or("an unnamed CPU");
        write!(f, "{} {cores} of {cpu}, Linux {}", self.cores, self.kernel)
    }
}

/// The machine that this program runs on.
pub fn this() -> &'static Machine {
    static THIS: LazyLock<Machine> = LazyLock::new(|| Machine {
        cpu: model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        cores: thread::available_parallelism().map_or(1, usize::from),
        kernel: kernel().unwrap_or_default(),
    });
    &THIS
}

/// The release of this kernel.
pub fn kernel() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(text.trim().to_owned())
}

/// The model of the processor in `/proc/cpuinfo`; Arm's kernels have none there.
fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    let words: Vec<&str> = line.split_once(':')?.1.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The present day in UTC, as in 2026-01-31.
pub fn today() -> String {
    #[expect(clippy::disallowed_methods, reason = "the day of a run is real; the run has virtual time")]
    let now = SystemTime::now();
    day(now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / (24 * 3600)))
}

/// The day that lies this number of days after 1970-01-01.
fn day(mut days: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        for (days, written) in [
            (0, "1970-01-01"),
            (30, "1970-01-31"),
            (31, "1970-02-01"),
            (364, "1970-12-31"),
            (365, "1971-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_723, "2024-01-01"),
            (20_088, "2024-12-31"),
            (20_454, "2026-01-01"),
        ] {
            assert_eq!(day(days), written, "{days}");
        }
    }

    #[test]
    fn a_machine_is_told_by_its_processor_and_its_kernel() {
        let cpu = model("processor\t: 0\nmodel name\t: Some  CPU 3000\n");
        assert_eq!(cpu.as_deref(), Some("Some CPU 3000"));
        assert_eq!(model("processor\t: 0\nCPU part\t: 0xd0b\n"), None);
        let machine = Machine { cpu, cores: 2, kernel: "6.1.0".into() };
        assert_eq!(machine.to_string(), "2 cores of Some CPU 3000, Linux 6.1.0");
        let unnamed = Machine { cpu: None, cores: 1, ..machine };
        assert_eq!(unnamed.to_string(), "1 core of an unnamed CPU, Linux 6.1.0");
        assert!(this().cores > 0 && !this().kernel.is_empty(), "{:?}", this());
    }
}
