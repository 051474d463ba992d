//! One scenario in several worlds, and whether they agree.

use std::path::Path;
use std::time::{Duration, Instant};

use hopwise_lab::agreement::{Agreement, InWorld};
use hopwise_lab::campaign::Campaign;
use hopwise_lab::folder;
use hopwise_lab::scenario::Scenario;
use hopwise_lab::world::World;

use super::{Arguments, MadeTrial, check, made, printing};
use hopwise_daemon::failure::{self, Failure, printed};
use hopwise_node::fleet::inventory::Host;

/// The file of the comparison; each world has a folder next to it.
pub(super) const AGREEMENT: &str = "agreement.json";

/// Runs the trial in each world, one after the other, and compares the worlds.
pub(super) fn run(arguments: &Arguments, worlds: &[World]) -> Result<(), Failure> {
    if let Some(twice) = worlds.iter().enumerate().find(|(nth, world)| worlds[..*nth].contains(world)) {
        return Err(Failure::refused(
            "--world",
            format_args!("{} stands there twice, expected each once", twice.1.name()),
        ));
    }
    if arguments.shard.is_some() {
        return Err(Failure::refused("--shard", "worlds are compared over whole trials, expected one world"));
    }
    // A scenario that one world refuses is refused before any world has run.
    let scenarios = worlds.iter().map(|world| arguments.of.load_in(*world)).collect::<Result<Vec<_>, _>>()?;
    let hosts = arguments.mesh.hosts(worlds)?;
    let mut budget = WorldBudget::new(arguments.within.map(|within| within.0), worlds);
    for scenario in &scenarios {
        let (campaign, _) = Campaign::of_this_world(scenario, arguments.seeds).map_err(Failure::Located)?;
        let share_of_live = budget.within.map(|within| within / budget.live_left.max(1));
        check(&campaign, share_of_live, hosts.as_deref())?;
    }
    let out = arguments.of.folder(&scenarios[0]);
    let failed = |name: &'static str| {
        let path = out.join(name);
        move |error: std::io::Error| {
            Failure::failed("writing results", format_args!("{}: {error}", path.display()))
        }
    };
    let mut ran = Vec::new();
    for scenario in &scenarios {
        let world = scenario.world();
        let limits = (budget.share(world), hosts.as_deref());
        folder::make(&out, world.name()).map_err(failed(world.name()))?;
        ran.push(in_world(arguments, scenario, &out.join(world.name()), limits)?);
    }
    let agreement = Agreement::of(&ran);
    let json = format!("{}\n", agreement.json());
    folder::write(&out, AGREEMENT, json).map_err(failed(AGREEMENT))?;
    printed(printing::agreement(&agreement, &out, arguments.json))
}

/// Makes the trial of one world in its own folder, and reports it.
fn in_world(
    arguments: &Arguments,
    scenario: &Scenario,
    folder: &Path,
    limits: (Option<Duration>, Option<&[Host]>),
) -> Result<InWorld, Failure> {
    let world = scenario.world().name();
    let (campaign, left_out) =
        Campaign::of_this_world(scenario, arguments.seeds).map_err(Failure::Located)?;
    if !left_out.is_empty() {
        failure::remark(&format!("{world} has no kernel: without the arms {}", left_out.join(", ")));
    }
    let made = made(arguments, (scenario, &campaign), folder, limits)?;
    if !arguments.json {
        printed(printing::in_world(world, &campaign.trial, &made))?;
    }
    let MadeTrial { bundle, .. } = made;
    Ok(InWorld { trial: bundle.trial, records: bundle.records })
}

/// The time of `--for`, shared among the worlds that take real time.
struct WorldBudget {
    within: Option<Duration>,
    began: Instant,
    live_left: u32,
}

impl WorldBudget {
    #[expect(clippy::disallowed_methods, reason = "trials that end in time need real time")]
    fn new(within: Option<Duration>, worlds: &[World]) -> WorldBudget {
        let live = worlds.iter().filter(|world| world.is_live()).count();
        WorldBudget { within, began: Instant::now(), live_left: hopwise_core::narrow::as_u32(live) }
    }

    /// The time for the next world: an equal share of what is left, and all of it in virtual time.
    fn share(&mut self, world: World) -> Option<Duration> {
        let left = self.within?.saturating_sub(self.began.elapsed());
        if !world.is_live() {
            return Some(left);
        }
        let share = left / self.live_left.max(1);
        self.live_left = self.live_left.saturating_sub(1);
        Some(share)
    }
}
