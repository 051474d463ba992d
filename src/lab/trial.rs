//! `hopwise trial`: all arms of a scenario over many seeds, and the findings.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use hopwise_core::Instant;
use hopwise_core::narrow::as_u32;
use hopwise_lab::campaign::Campaign;
use hopwise_lab::findings::Findings;
use hopwise_lab::record::{Record, Shard, Trial};
use hopwise_lab::report::{Bundle, html};
use hopwise_lab::scenario::Scenario;
use hopwise_lab::scenario::point::Stop;
use hopwise_lab::store::{Mode, Store, StoreError};
use hopwise_lab::summary::Summary;
use hopwise_lab::units::Time;
use hopwise_lab::world::World;

use crate::failure::{self, Failure, printed};
use crate::lab::live;
use crate::scenario::{Bounds, OfLive, OfScenario, world};
use crate::{signals, table};
use progress::Progress;

mod progress;
mod runner;
mod stopped;
mod worlds;

/// Run all arms of a scenario over many seeds, and report which is faster and how surely
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise trial configs/chain.yaml
  hopwise trial configs/chain.yaml --seeds 20 --set topology.hops=12 --out results/chain-12
  hopwise trial configs/chain.yaml --resume
  hopwise trial configs/chain.yaml --json | jq '.comparisons[] | {arm, ratio, verdict}'
  hopwise trial configs/chain.yaml --shard 2/8 --out results/chain-2
  hopwise trial configs/live/chain4.yaml --world sim,netns --for 10m

The runs of all arms with one seed share channel, movement and traffic. A trial that was killed continues with --resume
and gives the same results to the byte (world sim).
With a matrix --json has `points`, each with `point`, `arms` and `comparisons`:
  hopwise trial configs/mixed.yaml --json | jq '.points[] | {point, comparisons}'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    of: OfScenario,
    /// World that the scenario runs in, such as netns, or several to compare, the reference first, such as sim,netns
    /// [default: as in the file, otherwise sim]
    #[arg(long = "world", value_name = "W,…", value_parser = world, value_delimiter = ',')]
    worlds: Vec<World>,
    #[command(flatten)]
    keeps: OfLive,
    /// Number of runs of each arm (default: as in the scenario)
    #[arg(long, value_name = "N", value_parser = seeds)]
    seeds: Option<u32>,
    /// Number of runs at the same time (default: number of cores)
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
    /// Write what each radio sends and decodes to captures/RUN/NODE.pcapng, and the packets of the end nodes
    /// to captures/RUN/ends/NODE.pcapng
    #[arg(long)]
    capture: bool,
}

/// The most seeds of a trial.
const MOST_SEEDS: u32 = 100_000;

fn seeds(text: &str) -> Result<u32, String> {
    let seeds = text.parse().ok().filter(|seeds| (1..=MOST_SEEDS).contains(seeds));
    seeds.ok_or_else(|| format!("expected a whole number from 1 to {MOST_SEEDS}"))
}

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

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let [_, _, ..] = arguments.worlds[..] {
        return worlds::run(arguments, &arguments.worlds);
    }
    let scenario = match arguments.worlds[..] {
        [world] => arguments.of.load_in(world)?,
        _ => arguments.of.load()?,
    };
    let campaign = Campaign::new(&scenario, arguments.seeds, arguments.shard).map_err(Failure::Located)?;
    if campaign.trial.stop == Stop::WhenSure && arguments.shard.is_some() {
        let problem = "a part does not know when the whole is sure: --set run.stop=all-seeds";
        return Err(Failure::refused("--shard", problem));
    }
    let within = arguments.within.map(|within| within.0);
    check(&campaign, within)?;
    let folder = arguments.of.folder(&scenario);
    let made = made(arguments, (&scenario, &campaign), &folder, within)?;
    printed(match arguments.json {
        true => writeln!(hopwise_lab::plain::out(), "{}", made.summary),
        false => print(&campaign.trial, &made),
    })
}

/// Refuses a trial before its first run if its world cannot play an arm at a point, or not one block in that time. No
/// seed changes this.
fn check(campaign: &Campaign, within: Option<Duration>) -> Result<(), Failure> {
    if !campaign.world.is_live() {
        return Ok(());
    }
    let first = campaign.runs.iter().map(|run| run.block).min();
    let (mut checked, mut block) = (BTreeSet::new(), Duration::ZERO);
    for run in campaign.runs.iter().filter(|run| checked.insert((run.point, run.arm))) {
        let prepared = campaign.prepare(run).map_err(Failure::Located)?;
        live::check(campaign.world, &campaign.trial.scenario, &prepared)?;
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

/// A trial that was made, with its reports.
#[derive(Debug)]
struct Made {
    bundle: Bundle,
    ended: Ended,
    findings: Findings,
    summary: String,
    folder: PathBuf,
}

/// Makes the missing runs of a trial in that folder, and writes its reports.
fn made(
    arguments: &Arguments,
    (scenario, campaign): (&Scenario, &Campaign),
    folder: &Path,
    within: Option<Duration>,
) -> Result<Made, Failure> {
    let mode = if arguments.resume { Mode::Resume } else { Mode::Fresh };
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
    let (bundle, ended) = bundle(arguments, (scenario, campaign), &store, within)?;
    let findings = Findings::of(&bundle.trial, &bundle.records);
    let summary = Summary::of(&bundle.trial, &bundle.records, &findings).json();
    store.write("summary.json", format!("{summary}\n").as_bytes())?;
    store.write(REPORT, html(&bundle).as_bytes())?;
    Ok(Made { bundle, ended, findings, summary, folder: store.folder().to_owned() })
}

/// The records of a trial in a folder, after running what is missing. The records of another plan are replaced.
pub(crate) fn completed(
    scenario: &Scenario,
    seeds: Option<u32>,
    folder: &Path,
) -> Result<(Trial, Vec<Record>), Failure> {
    let campaign = Campaign::new(scenario, seeds, None).map_err(Failure::Located)?;
    let (store, _) = match Store::open(folder, &campaign, Mode::Resume) {
        Err(StoreError::Refused { .. }) => Store::open(folder, &campaign, Mode::Anew)?,
        opened => opened?,
    };
    let how = runner::How { jobs: cores(), capture: false, bounds: Bounds::NONE, ends: None, within: None };
    let mut runs = opened(scenario, &campaign, &store)?;
    runs.run(&how, &mut |_, _| ())?;
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
    within: Option<Duration>,
) -> Result<(Bundle, Ended), Failure> {
    let mut runs = opened(scenario, campaign, store)?;
    let ends = campaign.world.is_live().then(signals::watch).transpose();
    let ends = ends.map_err(|error| Failure::failed("watch for signals", error))?;
    let how = runner::How {
        ends,
        jobs: arguments.jobs.map_or_else(cores, usize::from),
        capture: arguments.capture,
        bounds: arguments.keeps.bounds(),
        within,
    };
    // A trial in real time ends in order by itself.
    let (there, total) = (runs.goodputs().iter().flatten().count(), runs.goodputs().len());
    let stopped = how.ends.is_none().then(|| stopped::Stopped::watch(there, total)).transpose()?;
    let mut progress = Progress::new(campaign, runs.goodputs(), within, io::stderr().is_terminal());
    let ran = runs.run(&how, &mut |nth, goodput| {
        progress.on_run(nth, goodput);
        stopped.iter().for_each(stopped::Stopped::on_run);
    });
    progress.end();
    drop(stopped);
    if let (Err(_), Some(ends)) = (&ran, &how.ends) {
        stopped::tell_of(ends, runs.goodputs().iter().flatten().count(), total);
    }
    ran?;
    let ended = if runs.is_out_of_time() { Ended::InTime } else { Ended::WithVerdicts };
    Ok((written(campaign, store, &runs)?, ended))
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
    let failed = |error| Failure::failed("reading the records back", error);
    Bundle::read(&[store.folder().to_owned()]).map_err(failed)
}

/// The reason why a trial ended before its last seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    WithVerdicts,
    InTime,
}

fn print(trial: &Trial, made: &Made) -> io::Result<()> {
    let Made { bundle: Bundle { records, .. }, ended, findings, folder, .. } = made;
    let mut out = hopwise_lab::plain::out();
    writeln!(out, "{}: {}", trial.scenario, trial.title.as_deref().unwrap_or("a trial"))?;
    let blocks = records.iter().map(|record| record.block).max().unwrap_or(0);
    if let Some(shard) = trial.shard {
        writeln!(out, "part {} of {}: {} runs", shard.index, shard.count, records.len())?;
    } else if blocks < as_u32(trial.seeds.len()) {
        let why = if *ended == Ended::InTime { "out of time" } else { "sure" };
        writeln!(out, "{why} after {blocks} of {} seeds", trial.seeds.len())?;
    }
    writeln!(out)?;
    out.flush()?;
    table::print_verdicts(&findings.text(table::width()))?;
    writeln!(
        out,
        "{} shows it all; tables and the records, with every setting in force, are beside it",
        folder.join(REPORT).display()
    )
}

const REPORT: &str = "report.html";

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::Refused { folder, problem } => {
                Failure::refused(folder.display().to_string(), problem)
            }
            StoreError::Failed { path, error } => {
                let problem =
                    format!("{}: {error}; what is written stays whole, and --resume goes on", path.display());
                Failure::failed("writing records", problem)
            }
        }
    }
}
