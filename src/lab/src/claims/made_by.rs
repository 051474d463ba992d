//! The builds and machines behind a figure's runs, and the cost of these.

use std::collections::BTreeSet;
use std::path::Path;

use hopwise_lab::cost::CostOrigin;
use hopwise_lab::folder;
use hopwise_lab::machine::Machine;
use hopwise_lab::record::Trial;
use hopwise_lab::sim::certificate_hash;
use hopwise_lab::version;
use serde::Deserialize;

use hopwise_daemon::failure::Failure;

const FILE: &str = "costs.jsonl";

/// The makers of a figure's runs.
#[derive(Debug, Default)]
pub(super) struct MadeBy {
    pub version: String,
    pub(super) certificate: String,
    /// The number of runs, and the time of a core that they took; 0 for what was computed.
    pub(super) runs: usize,
    pub(super) cpu_s: f64,
    commits: BTreeSet<String>,
    machines: BTreeSet<Machine>,
    days: BTreeSet<String>,
    /// A run of an earlier version tells neither its machine nor its day.
    has_older: bool,
}

impl MadeBy {
    /// The build of a trial, before its runs.
    pub(super) fn of(trial: &Trial) -> MadeBy {
        let Trial { version, certificate, .. } = trial.clone();
        MadeBy { version, certificate, ..MadeBy::default() }
    }

    /// This build, which has computed something.
    pub(super) fn us() -> MadeBy {
        let (version, commits) = (version::of_program().to_owned(), version::commit().map(str::to_owned));
        let certificate = certificate_hash();
        MadeBy { version, certificate, commits: commits.into_iter().collect(), ..MadeBy::default() }
    }

    /// Adds the runs of a trial in its folder, as the file of their costs tells of them.
    pub(super) fn add(&mut self, trial: &Trial, folder: &Path) -> Result<(), Failure> {
        let path = folder.join(FILE);
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed("reading what runs cost", format_args!("{}: {error}", path.display()))
        };
        for line in folder::read(folder, FILE).map_err(|error| failed(&error))?.lines() {
            let spent = serde_json::from_str(line).map_err(|error| failed(&error))?;
            self.add_run(trial.commit.as_ref(), spent);
        }
        Ok(())
    }

    /// Adds a run. A run without a commit has its trial's commit.
    fn add_run(&mut self, of_trial: Option<&String>, CostLine { cpu_s, origin }: CostLine) {
        let CostOrigin { commit, machine, day } = origin;
        self.runs += 1;
        self.cpu_s += cpu_s;
        self.has_older |= day.is_none() || machine.is_none();
        self.commits.extend(commit.or_else(|| of_trial.cloned()));
        self.machines.extend(machine);
        self.days.extend(day);
    }

    /// The commits of the builds, in words; none if no build knew its own.
    pub(super) fn commits(&self) -> Option<String> {
        let all: Vec<&str> = self.commits.iter().map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join(" and "))
    }

    /// The days and the machines of the runs, in words; none if some run does not tell them.
    pub(super) fn origin(&self) -> Option<String> {
        let (first, last) = (self.days.first()?, self.days.last()?);
        let days = if first == last { format!("on {first}") } else { format!("from {first} to {last}") };
        let machines: Vec<String> = self.machines.iter().map(ToString::to_string).collect();
        (!self.has_older).then(|| format!("{days} on {}", machines.join(", and on ")))
    }
}

/// The cost of one run and its origin, of a line in `costs.jsonl`.
#[derive(Debug, Deserialize)]
struct CostLine {
    cpu_s: f64,
    #[serde(flatten)]
    origin: CostOrigin,
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLDER: &str = r#"{"id":"a","host":"h","cpu_s":0.5,"wall_s":1.0,"events":1,"peak_rss_mib":1.0}"#;

    fn told(commit: &str, day: &str, cores: usize) -> String {
        let machine = format!(r#"{{"cpu":"A 1","cores":{cores},"kernel":"6.1.0"}}"#);
        format!(r#"{{"host":"h","commit":"{commit}","machine":{machine},"day":"{day}","cpu_s":0.25}}"#)
    }

    fn of_lines(lines: &[&str]) -> MadeBy {
        let mut made_by = MadeBy::default();
        let of_trial = "c0".to_owned();
        for line in lines {
            made_by.add_run(Some(&of_trial), serde_json::from_str(line).expect("a cost"));
        }
        made_by
    }

    #[test]
    fn runs_tell_the_commit_the_day_and_the_machine_that_made_them() {
        let (one, other) = (told("c1", "2026-01-31", 2), told("c2", "2026-02-01", 4));
        let made_by = of_lines(&[&one, &one]);
        assert_eq!((made_by.runs, made_by.cpu_s), (2, 0.5));
        assert_eq!(made_by.commits().as_deref(), Some("c1"));
        assert_eq!(made_by.origin().as_deref(), Some("on 2026-01-31 on 2 cores of A 1, Linux 6.1.0"));
        let both = of_lines(&[&other, &one]);
        assert_eq!(both.commits().as_deref(), Some("c1 and c2"));
        let told = "from 2026-01-31 to 2026-02-01 on 2 cores of A 1, Linux 6.1.0, and on 4 cores of A 1, Linux 6.1.0";
        assert_eq!(both.origin().as_deref(), Some(told));
    }

    #[test]
    fn runs_of_earlier_versions_have_the_commit_of_their_trial_and_no_machine() {
        let made_by = of_lines(&[OLDER]);
        assert_eq!((made_by.commits().as_deref(), made_by.origin()), (Some("c0"), None));
        let mixed = of_lines(&[OLDER, &told("c1", "2026-01-31", 2)]);
        assert_eq!(mixed.origin(), None, "it is not that of all runs");
    }
}
