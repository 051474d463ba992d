//! Options that the commands for scenarios share: `run`, `trial` and `air`.

use std::path::PathBuf;

use clap::Args;
use hopwise_lab::scenario::Scenario;

use crate::failure::Failure;

/// A scenario, and where what is made of it goes.
#[derive(Args, Debug)]
pub(crate) struct OfScenario {
    /// Scenario file in YAML
    #[arg(value_name = "SCENARIO")]
    pub(crate) file: PathBuf,
    /// Replace one value of the file, such as topology.hops=7; VALUE is YAML; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Folder for results, captures and logs [default: results/SCENARIO]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl OfScenario {
    pub(crate) fn load(&self) -> Result<Scenario, Failure> {
        Ok(Scenario::load(&self.file, &self.set)?)
    }

    pub(crate) fn folder(&self, scenario: &Scenario) -> PathBuf {
        self.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&scenario.name))
    }
}

/// One run of a scenario.
#[derive(Args, Debug)]
pub(crate) struct OfRun {
    #[command(flatten)]
    pub(crate) scenario: OfScenario,
    /// Seed of the random numbers; the same seed gives the same run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}
