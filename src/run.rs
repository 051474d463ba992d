//! `hopwise run`: one run of one arm of a scenario.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hopwise::scenario::{NoPlan, Prepared, Scenario};
use hopwise::sim;

use crate::failure::{Failure, printed};

mod cost;
mod files;
mod report;

/// Run one arm of a scenario once, in virtual time
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise run configs/calibration/ns2-chain.yaml --seed 1
  hopwise run configs/chain.yaml --arm delayed --set topology.hops=12 --set run.duration=60s
  hopwise run configs/calibration/ns2-chain.yaml --set 'arms.x.sender=[newreno, \"limit:4\"]' --json | jq .total

The same seed gives the same figures on every machine.")]
pub(crate) struct Arguments {
    /// The scenario, in YAML
    scenario: PathBuf,
    /// Where it runs; so far there is one world
    #[arg(long, value_name = "W")]
    world: Option<World>,
    /// Which arm; may be left out where there is one
    #[arg(long, value_name = "A")]
    arm: Option<String>,
    /// What chance is drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Sets a value over the file's, such as topology.hops=7; VALUE is YAML; may be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results/SCENARIO", hide_default_value = true)]
    out: PathBuf,
    /// One JSON object on standard output, and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum World {
    Sim,
}

impl World {
    fn name(self) -> &'static str {
        match self {
            World::Sim => "sim",
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let scenario = Scenario::load(&arguments.scenario, &arguments.set)?;
    let prepared =
        scenario.plan(arguments.arm.as_deref(), arguments.seed).map_err(|no_plan| match no_plan {
            NoPlan::Refused(refusal) => Failure::Located(refusal),
            NoPlan::WhichArm { arms } => {
                let named = arguments
                    .arm
                    .as_ref()
                    .map_or("it has several".to_owned(), |arm| format!("no arm is called `{arm}`"));
                let problem = format!("{named}: name one with --arm: {}", arms.join(", "));
                Failure::refused(arguments.scenario.display().to_string(), problem)
            }
        })?;
    let meter = cost::Meter::start();
    let results = sim::run(&prepared.plan).map_err(|error| Failure::failed("building the world", error))?;
    let world = arguments.world.unwrap_or(World::Sim).name();
    let report = report::Report::new(&scenario.name, world, &prepared, &results);
    let cost = meter.stop(results.events);
    let out = out_folder(arguments, &scenario);
    files::write(&out, &report, &cost, &results, &prepared)?;
    if arguments.json { printed(report.print_json(&cost)) } else { printed(report.print_text(&cost, &out)) }
}

fn out_folder(arguments: &Arguments, scenario: &Scenario) -> PathBuf {
    if arguments.out.as_os_str() == "results/SCENARIO" {
        return PathBuf::from("results").join(&scenario.name);
    }
    arguments.out.clone()
}

/// What a node is called.
fn name_of(prepared: &Prepared, node: u32) -> &str {
    prepared.names.get(node as usize).map_or("", String::as_str)
}
