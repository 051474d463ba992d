//! `hopwise trial`: all arms of a scenario over many seeds, and the findings.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, thread};

use clap::Args;
use hopwise_core::Instant;
use hopwise_lab::campaign::{Campaign, Planned};
use hopwise_lab::findings::Findings;
use hopwise_lab::record::{Record, Shard, Trial};
use hopwise_lab::report::{self, Bundle, html};
use hopwise_lab::scenario::Scenario;
use hopwise_lab::scenario::point::{MatrixPoint, Stop};
use hopwise_lab::statistics::{Comparison, ComparisonVerdict};
use hopwise_lab::store::{Store, StoreError, StoreMode};
use hopwise_lab::summary::Summary;
use hopwise_lab::units::Time;
use hopwise_lab::world::World;

use crate::live::{self, OfMesh};
use crate::scenario::{OfLive, OfScenario, RunBounds, world};
use hopwise_daemon::failure::{Failure, printed};
use hopwise_daemon::{failure, numbers, signals};
use hopwise_node::fleet::inventory::Host;

mod printing;
mod progress;
mod runner;
pub(crate) mod stopped;
mod worlds;

use progress::TrialProgress;

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let [_, _, ..] = arguments.worlds[..] {
        if arguments.check {
            return Err(Failure::refused("--check", "several worlds, expected a trial in one world"));
        }
        return worlds::run(arguments, &arguments.worlds);
    }
    let scenario = match arguments.worlds[..] {
        [world] => arguments.of.load_in(world)?,
        // Hosts are what a recipe is played on, whatever world it has by itself.
        _ if arguments.of.recipe.is_some() && arguments.mesh.names_hosts() => {
            arguments.of.load_in(World::Mesh)?
        }
        _ => arguments.of.load()?,
    };
    let campaign = Campaign::new(&scenario, arguments.seeds, arguments.shard).map_err(Failure::Located)?;
    if campaign.trial.stop == Stop::WhenSure && arguments.shard.is_some() {
        let problem = "a part does not know when the whole is sure: --set run.stop=all-seeds";
        return Err(Failure::refused("--shard", problem));
    }
    let within = arguments.within.map(|within| within.0);
    let hosts = arguments.mesh.hosts(&[campaign.world])?;
    check(&campaign, within, hosts.as_deref())?;
    let folder = arguments.of.folder(&scenario);
    let made = made(arguments, (&scenario, &campaign), &folder, (within, hosts.as_deref()))?;
    printed(printing::result(&campaign.trial, &made, arguments.json))?;
    if arguments.check { checked(&made.findings) } else { Ok(()) }
}

/// Fails if an arm is surely worse than the baseline.
fn checked(findings: &Findings) -> Result<(), Failure> {
    let is_worse =
        |it: &&Comparison| matches!(it.verdict, ComparisonVerdict::Slower | ComparisonVerdict::Worse);
    if findings.points.iter().any(|point| point.comparisons.is_empty()) {
        return Err(Failure::failed("check the arms", "no arm was compared, expected a baseline and an arm"));
    }
    let all = findings.points.iter().flat_map(|point| &point.comparisons);
    let worse: Vec<_> = all.filter(is_worse).map(|it| it.sentence.as_str()).collect();
    if worse.is_empty() { Ok(()) } else { Err(Failure::failed("check the arms", worse.join("; "))) }
}

/// The first run of each arm at each point.
fn first_of_each(campaign: &Campaign) -> impl Iterator<Item = &Planned> {
    let mut seen = BTreeSet::new();
    campaign.runs.iter().filter(move |run| seen.insert((run.point, run.arm)))
}

/// Refuses a trial before its first run if its world cannot play an arm at a point, or not one block in that time. No
/// seed changes this.
fn check(campaign: &Campaign, within: Option<Duration>, hosts: Option<&[Host]>) -> Result<(), Failure> {
    if !campaign.world.is_live() {
        return Ok(());
    }
    let first = campaign.runs.iter().map(|run| run.block).min();
    let mut block = Duration::ZERO;
    for run in first_of_each(campaign) {
        let prepared = campaign.prepare(run).map_err(Failure::Located)?;
        live::check(campaign.world, &campaign.trial.scenario, &prepared, hosts)?;
        if Some(run.block) == first {
            block += prepared.plan.end().since(Instant::ZERO);
        }
    }
    match within {
        Some(within) if within < block => {
            let world = campaign.world.name();
            let [within, block] = [within, block].map(|time| time.as_secs_f64());
            let problem = format_args!(
                "{within} s for the world {world}, expected {block} s or more: one block of runs takes at least that"
            );
            Err(Failure::refused("--for", problem))
        }
        _ => live::check_user(campaign.world),
    }
}

pub(crate) const REPORT: &str = "report.html";

/// A trial that was made, with its reports.
#[derive(Debug)]
struct MadeTrial {
    bundle: Bundle,
    ended: EarlyEnd,
    findings: Findings,
    summary: String,
    folder: PathBuf,
}

/// Makes the missing runs of a trial in that folder, and writes its reports.
fn made(
    arguments: &Arguments,
    (scenario, campaign): (&Scenario, &Campaign),
    folder: &Path,
    (within, hosts): (Option<Duration>, Option<&[Host]>),
) -> Result<MadeTrial, Failure> {
    for (earlier, arm) in campaign.equal_arms() {
        failure::remark(&format!(
            "the arms `{earlier}` and `{arm}` have equal settings, so no difference between them means anything"
        ));
    }
    let mode = if arguments.resume { StoreMode::Resume } else { StoreMode::Fresh };
    let (store, kept) = Store::open(folder, campaign, mode)?;
    if let Some(kept) = kept {
        failure::remark(&format!("the trial that was in {} is in {} now", folder.display(), kept.display()));
    }
    for path in store.broken() {
        let path = path.display();
        failure::remark(&format!(
            "{path} is not as it was written: what it says is not believed, and its run is made again"
        ));
    }
    let (bundle, ended) = bundle(arguments, (scenario, campaign), &store, (within, hosts))?;
    let findings = Findings::of(&bundle.trial, &bundle.records);
    let summary = Summary::of(&bundle.trial, &bundle.records, &findings).json();
    store.write("summary.json", format!("{summary}\n").as_bytes())?;
    store.write(REPORT, html(&bundle).as_bytes())?;
    Ok(MadeTrial { bundle, ended, findings, summary, folder: store.folder().to_owned() })
}

/// The records of a trial in a folder, after making what is missing of the wanted runs, each told by its point, arm and
/// block. The records of another plan are replaced. The runs are announced under that name.
pub(crate) fn completed(
    scenario: &Scenario,
    seeds: u32,
    is_wanted: &dyn Fn((&MatrixPoint, &str, u32)) -> bool,
    (folder, name): (&Path, &str),
) -> Result<(Trial, Vec<Record>), Failure> {
    let mut campaign = Campaign::new(scenario, Some(seeds), None).map_err(Failure::Located)?;
    let Trial { points, arms, .. } = &campaign.trial;
    campaign.runs.retain(|run| is_wanted((&points[run.point], &arms[run.arm], run.block)));
    let (store, _) = match Store::open(folder, &campaign, StoreMode::Resume) {
        Err(StoreError::Refused { .. }) => Store::open(folder, &campaign, StoreMode::Anew)?,
        opened => opened?,
    };
    let how = runner::How {
        jobs: cores(),
        capture: false,
        // Runs in virtual time are never late.
        bounds: RunBounds { late: Duration::MAX, busy: 1.0 },
        ends: None,
        within: None,
        fleet: None,
    };
    let mut runs = opened(scenario, &campaign, &store)?;
    if runs.missing() > 0 {
        failure::remark(&format!("{name}: {} runs", runs.missing()));
        let mut progress = TrialProgress::new(&campaign, &runs.goodputs, None, io::stderr().is_terminal());
        runs.run(&how, &mut |nth, goodput| progress.on_run(nth, goodput))?;
        progress.end();
    }
    Ok((campaign.trial.clone(), written(&campaign, &store, &runs)?.records))
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Makes the missing runs, and writes the report's files.
fn bundle(
    arguments: &Arguments,
    (scenario, campaign): (&Scenario, &Campaign),
    store: &Store,
    (within, hosts): (Option<Duration>, Option<&[Host]>),
) -> Result<(Bundle, EarlyEnd), Failure> {
    let mut runs = opened(scenario, campaign, store)?;
    let ends = campaign.world.is_live().then(signals::watch).transpose();
    let ends = ends.map_err(Failure::during("watch for signals"))?;
    let fleet = fleet((arguments, hosts), campaign, (store, &runs))?;
    let how = runner::How {
        ends,
        fleet,
        jobs: arguments.jobs.map_or_else(cores, usize::from),
        capture: arguments.capture,
        bounds: arguments.keeps.bounds(),
        within,
    };
    // A trial in real time ends in order by itself.
    let (there, total) = (runs.goodputs.iter().flatten().count(), runs.goodputs.len());
    let said = move |done| stopped::said(done, total);
    let stopped = how.ends.is_none().then(|| stopped::StopNotice::watch(there, said)).transpose()?;
    let mut progress = TrialProgress::new(campaign, &runs.goodputs, within, io::stderr().is_terminal());
    let ran = runs.run(&how, &mut |nth, goodput| {
        progress.on_run(nth, goodput);
        stopped.iter().for_each(stopped::StopNotice::on_step);
    });
    progress.end();
    drop(stopped);
    if let (Err(_), Some(ends)) = (&ran, &how.ends) {
        stopped::tell_of(ends, runs.goodputs.iter().flatten().count(), total);
    }
    ran?;
    Ok((written(campaign, store, &runs)?, runs.ended))
}

/// Reaches the hosts of the world mesh, if a run of it is missing.
fn fleet(
    (arguments, hosts): (&Arguments, Option<&[Host]>),
    campaign: &Campaign,
    (store, runs): (&Store, &runner::Runs<'_>),
) -> Result<Option<live::Fleet>, Failure> {
    if campaign.world != World::Mesh || runs.missing() == 0 {
        return Ok(None);
    }
    let mut endpoints = false;
    for run in first_of_each(campaign) {
        endpoints |= campaign.prepare(run).map_err(Failure::Located)?.plan.arm.has_endpoints();
    }
    let needs = live::PreflightNeeds { endpoints, captures: arguments.capture && endpoints };
    live::Fleet::open(&arguments.mesh, hosts.unwrap_or_default().to_vec(), needs, store.folder()).map(Some)
}

fn opened<'a>(
    scenario: &'a Scenario,
    campaign: &'a Campaign,
    store: &'a Store,
) -> Result<runner::Runs<'a>, Failure> {
    let runs = runner::Runs::new(scenario, campaign, store);
    if runs.missing() > 0 {
        store.reopen()?;
    }
    Ok(runs)
}

/// Reads the finished runs back, as any later reader would.
fn written(campaign: &Campaign, store: &Store, runs: &runner::Runs) -> Result<Bundle, Failure> {
    let ids: Vec<&str> = runs.wanted().map(|run| run.id.as_str()).collect();
    store.finish(&campaign.trial, &ids)?;
    let failed = Failure::during("reading the records back");
    report::open(store.folder()).and_then(|folder| Bundle::read(&[folder])).map_err(failed)
}

/// The reason why a trial ended before its last seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlyEnd {
    WithVerdicts,
    InTime,
    /// A host of a mesh was lost, and did not come back.
    WithoutHost,
}

/// Compare the arms of a scenario over many seeds, with confidence intervals
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise trial configs/chain.yaml
  hopwise trial configs/chain.yaml --seeds 20 --set topology.hops=12 --out results/chain-12
  hopwise trial configs/chain.yaml --resume
  hopwise trial configs/chain.yaml --json | jq '.comparisons[] | {arm, ratio, verdict}'
  hopwise trial mine.yaml --check || echo 'an arm is worse, or the trial failed'
  hopwise trial configs/chain.yaml --shard 2/8 --out results/chain-2
  hopwise trial configs/live/chain4.yaml --world sim,netns --for 10m
  hopwise trial configs/live/mesh4.yaml --world mesh --inventory configs/inventory.yaml

The runs of all arms with one seed share channel, movement and traffic. A trial that was killed continues with --resume,
and its results equal an unbroken trial's to the byte (world sim).
With a matrix --json has `points`, each with `point`, `arms` and `comparisons`:
  hopwise trial configs/mixed.yaml --json | jq '.points[] | {point, comparisons}'")]
pub struct Arguments {
    #[command(flatten)]
    of: OfScenario,
    /// World that the scenario runs in, such as netns, or several to compare, the reference first, such as sim,netns
    /// [default: as in the file, or else sim]
    #[arg(long = "world", value_name = "W,…", value_parser = world, value_delimiter = ',')]
    worlds: Vec<World>,
    #[command(flatten)]
    keeps: OfLive,
    #[command(flatten)]
    mesh: OfMesh,
    /// Number of runs of each arm (default: as in the scenario)
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_SEEDS))]
    seeds: Option<u32>,
    /// Number of concurrent runs (default: number of cores)
    #[arg(long, value_name = "N", value_parser = jobs)]
    jobs: Option<NonZero<usize>>,
    /// Time after which no further block of runs begins, such as 30m; the blocks that are complete count
    #[arg(long = "for", value_name = "TIME")]
    within: Option<Time>,
    /// Continue the trial in the folder: run only what is missing
    #[arg(long)]
    resume: bool,
    /// Run only part I of N, such as 2/8; `hopwise report` joins the parts
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Print one JSON object on standard output and nothing else
    #[arg(long)]
    json: bool,
    /// End with status 1 if an arm is surely worse than the baseline, for continuous integration
    #[arg(long)]
    check: bool,
    /// Write what each radio sends and decodes to captures/RUN/NODE.pcapng, and the packets of the end nodes
    /// to captures/RUN/ends/NODE.pcapng
    #[arg(long)]
    pub capture: bool,
}

/// The most seeds of a trial.
const MOST_SEEDS: u32 = 100_000;

fn jobs(text: &str) -> Result<NonZero<usize>, String> {
    text.parse().map_err(|_| "expected a whole number, 1 or more".to_owned())
}

fn shard(text: &str) -> Result<Shard, String> {
    let wanted = || "expected a part and their number, such as 2/8".to_owned();
    let (index, count) = text.split_once('/').ok_or_else(wanted)?;
    match (index.parse(), count.parse()) {
        (Ok(index), Ok(count)) if index > 0 && index <= count => Ok(Shard { index, count }),
        _ => Err(wanted()),
    }
}
