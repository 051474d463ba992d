//! `hopwise run`: one run of one arm of a scenario.

use std::path::Path;

use clap::Args;
use hopwise_air::frames::Framing;
use hopwise_lab::cost::Meter;
use hopwise_lab::live::guest;
use hopwise_lab::located::one_of;
use hopwise_lab::result::RunResult;
use hopwise_lab::scenario::{Armed, NoPlan, Prepared, Scenario};
use hopwise_lab::sim::{Results, Simulation, series};
use hopwise_lab::store::Store;
use hopwise_lab::world::World;

use crate::live::{Director, Run};
use crate::scenario::{OfLive, OfRun, world};
use hopwise_daemon::failure::{Failure, printed};
use hopwise_daemon::{failure, signals};

mod files;
mod printing;
pub(crate) mod watch;

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let OfRun { scenario: of, seed } = &arguments.of;
    let scenario = if let Some(world) = arguments.world { of.load_in(world)? } else { of.load()? };
    let arm = scenario.only(arguments.arm.as_deref()).map_err(|no_plan| match no_plan {
        NoPlan::Refused(refusal) => Failure::Located(refusal),
        NoPlan::WhichArm { arms } => {
            let names: Vec<&str> = arms.iter().map(String::as_str).collect();
            let problem = match &arguments.arm {
                Some(arm) => format!("no arm is called `{arm}`; {}", one_of(arm, &names)),
                None => format!("it has several arms: name one with --arm, {}", arms.join(" or ")),
            };
            Failure::refused(of.named(), problem)
        }
    })?;
    if scenario.world().is_live() {
        return live(arguments, &scenario, &arm);
    }
    let mut prepared = arm.prepare(*seed).map_err(Failure::Located)?;
    if arguments.trace || arguments.capture {
        prepared.plan.trace_events = hopwise_part::TRACE_EVENTS;
    }
    let out = arguments.of.folder(&scenario, arm.name());
    let _reserved = reserve(&out)?;
    let meter = Meter::start();
    let (results, events) = simulate(arguments, &prepared, &out)?;
    let result = RunResult::new(&scenario.name, scenario.world().name(), &prepared, &results);
    let cost = meter.stop(events);
    files::write(&out, &result, &cost, &arm.settings_of_run())?;
    files::write_air(&out, &results, &prepared)?;
    printed(printing::result(&result, &cost, &out, arguments.json))?;
    if arguments.airtime { printed(printing::airtime(&results, &prepared)) } else { Ok(()) }
}

/// Reserves the run's folder. An older run there gets another name, which is said.
fn reserve(out: &Path) -> Result<impl Sized, Failure> {
    let (reserved, kept) = Store::reserve(out)?;
    if let Some(kept) = kept {
        failure::remark(&format!("the run that was in {} is in {} now", out.display(), kept.display()));
    }
    Ok(reserved)
}

/// Makes one run in real time.
fn live(arguments: &Arguments, scenario: &Scenario, arm: &Armed) -> Result<(), Failure> {
    let flags =
        [("--airtime", arguments.airtime), ("--frames", arguments.frames), ("--series", arguments.series)];
    if let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given) {
        let problem = format_args!("not in the world {}, expected --world sim", scenario.world().name());
        return Err(Failure::refused(*flag, problem));
    }
    let seed = arguments.of.seed;
    let prepared = arm.prepare(seed).map_err(Failure::Located)?;
    let out = arguments.of.folder(scenario, arm.name());
    let _reserved = reserve(&out)?;
    let ends = signals::watch().map_err(Failure::during("watch for signals"))?;
    let meter = Meter::start();
    let run = Run {
        part: scenario.part(&scenario.only_point().map_err(Failure::Located)?, arm.name(), seed),
        world: scenario.world(),
        prepared: &prepared,
        repeated: 0,
        folder: &out,
        wanted: guest::KeptFiles { capture: arguments.capture, trace: arguments.trace },
    };
    let result = Director::new(out.clone(), arguments.keeps.bounds(), &ends).direct(&run, &mut |_| Ok(()))?;
    let cost = meter.stop(0);
    files::write(&out, &result, &cost, &arm.settings_of_run())?;
    printed(printing::result(&result, &cost, &out, arguments.json))
}

/// Returns also the number of events that the simulation took.
fn simulate(arguments: &Arguments, prepared: &Prepared, out: &Path) -> Result<(Results, u64), Failure> {
    let unbuilt = Failure::during("building the world");
    let mut simulation = Simulation::new(&prepared.plan).map_err(unbuilt)?;
    simulation.world().keep_ledgers();
    let wanted =
        watch::WantedFiles { capture: arguments.capture, frames: arguments.frames, trace: arguments.trace };
    let epoch = watch::Epoch::default();
    let watch =
        watch::RunWatch::begin(wanted, (simulation.world(), Framing::Packet), (prepared, epoch), out)?;
    if arguments.capture {
        watch.capture_ends(simulation.world(), prepared, out)?;
    }
    if arguments.series {
        // A run has only one observer of its frames.
        let is_watched = arguments.capture || arguments.frames;
        let frames = if is_watched { series::FrameStretches::Leave } else { series::FrameStretches::Keep };
        let series = series::run(&mut simulation, &prepared.names, frames);
        files::write_one(out, "series.csv", series.as_bytes())?;
    } else {
        simulation.run_until(prepared.plan.end());
    }
    watch.end()?;
    Ok((simulation.results(), simulation.world().events()))
}

/// Run one arm of a scenario once, simulated or in real time
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise run configs/calibration/ns2-chain.yaml --seed 1
  hopwise run configs/chain.yaml --arm delayed --set topology.hops=12 --set run.duration=60s
  hopwise run configs/chain.yaml --arm every --airtime --capture
  hopwise run configs/calibration/ns2-chain.yaml --set 'arms.x.sender=[newreno, \"limit:4\"]' --json | jq .total

In the world sim equal seeds give equal figures on every machine.")]
pub struct Arguments {
    #[command(flatten)]
    of: OfRun,
    /// World that the scenario runs in: sim (virtual time), netns (real time between network namespaces; needs root) or
    /// hwsim (a kernel's Wi-Fi stack in an emulated machine, by its own clock) [default: as in the file, or else sim]
    #[arg(long, value_name = "W", value_parser = world)]
    world: Option<World>,
    #[command(flatten)]
    keeps: OfLive,
    /// Name of the arm to run; needed if the scenario has several
    #[arg(long, value_name = "A")]
    arm: Option<String>,
    /// Print one JSON object on standard output and nothing else
    #[arg(long)]
    json: bool,
    /// Show how each node's radio spent its time
    #[arg(long, conflicts_with = "json")]
    airtime: bool,
    /// Write what each radio sends and decodes to NODE.pcapng, and the packets of the end nodes' endpoints to
    /// ends/NODE.pcapng
    #[arg(long)]
    pub capture: bool,
    /// Write how every radio saw every frame to frames.csv
    #[arg(long)]
    frames: bool,
    /// Write windows and queue lengths over time, and the last frames, to series.csv
    #[arg(long)]
    series: bool,
    /// Write the traces of the end nodes and of the gateway to NODE.trace.txt; arms of the kernel have none
    #[arg(long)]
    trace: bool,
}
