//! The arguments of `hopwise run`.

use clap::Args;
use hopwise_lab::world::World;

use crate::scenario::{OfLive, OfRun, world};

/// Run one arm of a scenario once, in virtual time or in real time
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise run configs/calibration/ns2-chain.yaml --seed 1
  hopwise run configs/chain.yaml --arm delayed --set topology.hops=12 --set run.duration=60s
  hopwise run configs/chain.yaml --arm every --airtime --capture
  hopwise run configs/calibration/ns2-chain.yaml --set 'arms.x.sender=[newreno, \"limit:4\"]' --json | jq .total

In the world sim the same seed gives the same figures on every machine.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) of: OfRun,
    /// World that the scenario runs in: sim (virtual time), netns (real time between network namespaces; needs root) or
    /// hwsim (a kernel's Wi-Fi stack in an emulated machine, by its own clock) [default: as in the file, otherwise sim]
    #[arg(long, value_name = "W", value_parser = world)]
    pub(super) world: Option<World>,
    #[command(flatten)]
    pub(super) keeps: OfLive,
    /// Name of the arm to run; needed if the scenario has several
    #[arg(long, value_name = "A")]
    pub(super) arm: Option<String>,
    /// Print one JSON object on standard output and nothing else
    #[arg(long)]
    pub(super) json: bool,
    /// Show how each node's radio spent its time
    #[arg(long, conflicts_with = "json")]
    pub(super) airtime: bool,
    /// Write what each radio sends and decodes to NODE.pcapng, and the packets of the end nodes' endpoints to
    /// ends/NODE.pcapng
    #[arg(long)]
    pub(super) capture: bool,
    /// Write how every radio saw every frame to frames.csv
    #[arg(long)]
    pub(super) frames: bool,
    /// Write windows and queue lengths over time, and the last frames, to series.csv
    #[arg(long)]
    pub(super) series: bool,
    /// Write the traces of the end nodes and of the gateway to NODE.trace.txt; arms of the kernel have none
    #[arg(long)]
    pub(super) trace: bool,
}
