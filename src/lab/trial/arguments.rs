//! The arguments of `hopwise trial`.

use std::num::NonZero;

use clap::Args;
use hopwise_lab::record::Shard;
use hopwise_lab::units::Time;
use hopwise_lab::world::World;

use crate::lab::live::OfMesh;
use crate::numbers;
use crate::scenario::{OfLive, OfScenario, world};

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
  hopwise trial configs/live/mesh4.yaml --world mesh --inventory configs/inventory.yaml

The runs of all arms with one seed share channel, movement and traffic. A trial that was killed continues with --resume
and gives the same results to the byte (world sim).
With a matrix --json has `points`, each with `point`, `arms` and `comparisons`:
  hopwise trial configs/mixed.yaml --json | jq '.points[] | {point, comparisons}'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) of: OfScenario,
    /// World that the scenario runs in, such as netns, or several to compare, the reference first, such as sim,netns
    /// [default: as in the file, otherwise sim]
    #[arg(long = "world", value_name = "W,…", value_parser = world, value_delimiter = ',')]
    pub(super) worlds: Vec<World>,
    #[command(flatten)]
    pub(super) keeps: OfLive,
    #[command(flatten)]
    pub(super) mesh: OfMesh,
    /// Number of runs of each arm (default: as in the scenario)
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_SEEDS))]
    pub(super) seeds: Option<u32>,
    /// Number of runs at the same time (default: number of cores)
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub(super) jobs: Option<NonZero<usize>>,
    /// Time after which no further block of runs begins, such as 30m; the blocks that are complete count
    #[arg(long = "for", value_name = "TIME")]
    pub(super) within: Option<Time>,
    /// Continue the trial in the folder: run only what is missing
    #[arg(long)]
    pub(super) resume: bool,
    /// Run only part I of N, such as 2/8; `hopwise report` joins the parts
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub(super) shard: Option<Shard>,
    /// Print one JSON object on standard output and nothing else
    #[arg(long)]
    pub(super) json: bool,
    /// Write what each radio sends and decodes to captures/RUN/NODE.pcapng, and the packets of the end nodes
    /// to captures/RUN/ends/NODE.pcapng
    #[arg(long)]
    pub(super) capture: bool,
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
