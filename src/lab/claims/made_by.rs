//! The builds behind a figure's runs, and the cost of these.

use std::fs;
use std::path::Path;

use hopwise_lab::record::Trial;
use hopwise_lab::sim::certificate_hash;
use hopwise_lab::version;
use serde::Deserialize;

use crate::failure::Failure;

/// The build that made a figure's runs.
#[derive(Debug)]
pub(super) struct MadeBy {
    pub(super) version: String,
    pub(super) commit: Option<String>,
    pub(super) certificate: String,
    /// The number of runs, and the time of a core that they took; 0 for what was computed.
    pub(super) runs: usize,
    pub(super) cpu_s: f64,
}

impl MadeBy {
    pub(super) fn of(trial: &Trial) -> MadeBy {
        let Trial { version, commit, certificate, .. } = trial.clone();
        MadeBy { version, commit, certificate, runs: 0, cpu_s: 0.0 }
    }

    /// Adds the costs of the runs in a folder.
    pub(super) fn add_costs(&mut self, folder: &Path) -> Result<(), Failure> {
        let path = folder.join("costs.jsonl");
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed("reading what runs cost", format_args!("{}: {error}", path.display()))
        };
        for line in fs::read_to_string(&path).map_err(|error| failed(&error))?.lines() {
            let cost: Cost = serde_json::from_str(line).map_err(|error| failed(&error))?;
            self.runs += 1;
            self.cpu_s += cost.cpu_s;
        }
        Ok(())
    }

    pub(super) fn us() -> MadeBy {
        MadeBy {
            version: version::of_program().to_owned(),
            commit: version::commit().map(str::to_owned),
            certificate: certificate_hash(),
            runs: 0,
            cpu_s: 0.0,
        }
    }
}

/// The cost of one run, of a line in `costs.jsonl`.
#[derive(Debug, Deserialize)]
struct Cost {
    cpu_s: f64,
}
