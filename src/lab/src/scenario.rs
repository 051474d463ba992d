//! Options that the commands for scenarios share: `run`, `trial` and `air`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hopwise_lab::located::one_of;
use hopwise_lab::scenario::{NoPlan, Prepared, Scenario};
use hopwise_lab::units::{Share, Time};
use hopwise_lab::world::World;

use hopwise_daemon::failure::Failure;
use hopwise_daemon::numbers;

/// A scenario, and the folder for its results.
#[derive(Args, Debug)]
pub(crate) struct OfScenario {
    /// Scenario file in YAML
    #[arg(value_name = "SCENARIO", required_unless_present = "recipe")]
    file: Option<PathBuf>,
    /// Scenario that comes with Hopwise: it compares settings of hosts, or says what to deploy (advise). Over a
    /// SCENARIO it compares its own arms on the nodes and flows of that file
    #[arg(long, value_name = "NAME", value_parser = RECIPES.map(|(name, _)| name))]
    pub(crate) recipe: Option<String>,
    /// Replace one value of the file, such as topology.hops=7; VALUE is YAML; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Folder for results, captures and logs [default: results/SCENARIO; of a single run results/SCENARIO-ARM-SEED]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl OfScenario {
    pub(crate) fn load(&self) -> Result<Scenario, Failure> {
        self.read(&self.set)
    }

    /// The scenario's file or recipe, for an error.
    pub(crate) fn named(&self) -> String {
        let file = self.file.as_deref().map(|file| file.display().to_string());
        file.or_else(|| self.recipe.clone()).unwrap_or_default()
    }

    fn read(&self, sets: &[String]) -> Result<Scenario, Failure> {
        let (name, file) = (self.recipe.as_deref(), self.file.as_deref());
        match RECIPES.into_iter().find(|(known, _)| Some(*known) == name) {
            Some(recipe) => Ok(Scenario::of_recipe(recipe, file, sets)?),
            None => Ok(Scenario::load(file.unwrap_or(Path::new("")), sets)?),
        }
    }

    /// The scenario in that world, whatever the file says.
    pub(crate) fn load_in(&self, world: World) -> Result<Scenario, Failure> {
        let world = format!("world={}", world.name());
        let sets: Vec<String> = self.set.iter().cloned().chain([world]).collect();
        self.read(&sets)
    }

    pub(crate) fn folder(&self, scenario: &Scenario) -> PathBuf {
        self.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&scenario.name))
    }
}

macro_rules! recipes {
    ($($name:literal)+) => { [$(($name, include_str!(concat!("../configs/recipes/", $name, ".yaml")))),+] };
}

/// The scenarios of `--recipe`.
const RECIPES: [(&str, &str); 9] =
    recipes! { "rts" "retries" "gro" "mcast" "ht40" "distance" "ogm" "aql" "advise" };

/// One run of a scenario.
#[derive(Args, Debug)]
pub(crate) struct OfRun {
    #[command(flatten)]
    pub(crate) scenario: OfScenario,
    /// Seed of the random numbers; equal seeds give equal runs
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = numbers::seed)]
    pub seed: u64,
}

impl OfRun {
    /// A run's own folder: what another arm or seed left stays, and so does a trial.
    pub(crate) fn folder(&self, scenario: &Scenario, arm: &str) -> PathBuf {
        let plain =
            |letter: char| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
        let arm: String = arm.chars().map(plain).collect();
        let own = || PathBuf::from("results").join(format!("{}-{arm}-{}", scenario.name, self.seed));
        self.scenario.out.clone().unwrap_or_else(own)
    }
}

/// Bounds of a run in real time.
#[derive(Args, Debug)]
pub(crate) struct OfLive {
    /// Share of the processors that other programs may use during a run in the world netns; a run with more does not
    /// count
    #[arg(long, value_name = "SHARE", default_value = "25%")]
    busy: Share,
    /// Longest time by which the radios or a program may be late, in the worlds netns, hwsim and mesh; a run with more
    /// does not count
    #[arg(long, value_name = "TIME", default_value = "5ms")]
    late: Time,
}

/// Bounds of a run in real time; a run beyond one of them does not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunBounds {
    /// The longest time by which the radios, or a timer of a program, may be late.
    pub(crate) late: Duration,
    /// The share of the processors that other programs may use, from 0 to 1.
    pub(crate) busy: f64,
}

impl OfLive {
    pub(crate) fn bounds(&self) -> RunBounds {
        RunBounds { late: self.late.0, busy: f64::from(self.busy.0) / 1e6 }
    }
}

/// The world of that name.
pub(crate) fn world(text: &str) -> Result<World, String> {
    let names = World::ALL.map(World::name);
    let found = World::ALL.into_iter().find(|world| world.name() == text);
    found.ok_or_else(|| format!("expected {}", names.join(" or ")))
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
        NoPlan::WhichArm { arms } => {
            let (arm, names) = (arm.unwrap_or_default(), arms.iter().map(String::as_str).collect::<Vec<_>>());
            Failure::refused("--arm", format_args!("no arm is called `{arm}`; {}", one_of(arm, &names)))
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hopwise_lab::campaign::Campaign;

    use super::*;

    #[test]
    fn each_recipe_can_be_planned_and_says_which_question_it_answers() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/recipes");
        assert_eq!(fs::read_dir(folder).expect("the recipes").count(), RECIPES.len(), "each file is offered");
        for (name, text) in RECIPES {
            let scenario = Scenario::of_recipe((name, text), None, &[]).expect(name);
            let campaign = Campaign::new(&scenario, None, None);
            let campaign = campaign.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            assert!(campaign.equal_arms().is_empty(), "{name}: {:?}", campaign.equal_arms());
            assert!(
                text.starts_with("# ") && text.contains(&format!("hopwise trial --recipe {name}")),
                "{name}"
            );
        }
    }
}
