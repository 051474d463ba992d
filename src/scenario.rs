//! Options that the commands for scenarios share: `run`, `trial` and `air`.

use std::path::PathBuf;

use clap::Args;
use hopwise_lab::scenario::{NoPlan, Prepared, Scenario};

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

/// Plans an arm, or else the first one: for the radio alone, differences between arms do not matter.
pub(crate) fn first_arm_unless(
    scenario: &Scenario,
    arm: Option<&str>,
    seed: u64,
) -> Result<Prepared, Failure> {
    let planned = match scenario.plan(arm, seed) {
        Err(NoPlan::WhichArm { arms }) if arm.is_none() => {
            scenario.plan(arms.first().map(String::as_str), seed)
        }
        planned => planned,
    };
    planned.map_err(|no_plan| match no_plan {
        NoPlan::Refused(refusal) => Failure::Located(refusal),
        NoPlan::WhichArm { arms } => Failure::refused(
            "--arm",
            format_args!("no arm of that name, expected one of: {}", arms.join(", ")),
        ),
    })
}
