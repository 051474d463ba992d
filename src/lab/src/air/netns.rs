//! `hopwise air netns`: the radios of a scenario in real time, for programs that know nothing of the simulation.

use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use hopwise_air::frames::Framing;
use hopwise_host::{Clock, wait_to_read};
use hopwise_lab::live::air as live;
use hopwise_lab::units::Time;

use crate::run::watch::{Epoch, RunWatch, WantedFiles};
use crate::scenario::{OfRun, first_arm_unless};
use crate::serving::{bell, play, serve_beside};
use hopwise_daemon::failure::{Failure, printed};
use hopwise_daemon::signals::ring;
use hopwise_daemon::{log, signals};

pub(crate) mod medium;
mod report;
pub(crate) mod stations;

use report::AirReport;

/// Returns the exit status of COMMAND, if there was one.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let scenario = arguments.of.scenario.load()?;
    let prepared = first_arm_unless(&scenario, arguments.arm.as_deref(), arguments.of.seed)?;
    let prefix = arguments.prefix.as_ref().unwrap_or(&scenario.name);
    stations::check(prefix, &prepared)?;
    log::begin();
    log::flow().map_err(Failure::during("start the log"))?;
    let ends = signals::watch().map_err(Failure::during("watch for signals"))?;
    let stations = stations::NetnsStations::open(prefix, &prepared, stations::ServedAddresses::Itself)?;
    let mut live = live::world(&prepared.plan);
    let wanted = WantedFiles { capture: arguments.capture, frames: arguments.frames, trace: false };
    let out = arguments.of.scenario.folder(&scenario);
    let clock = Clock::start();
    let epoch = Epoch { begins: clock.wall_offset(), left_out: live.left_out() };
    let watch = RunWatch::begin(wanted, (live.world(), Framing::Ethernet), (&prepared, epoch), &out)?;
    for (name, namespace, address) in stations.named(&prepared) {
        tracing::info!(node = name, namespace, %address, "station");
    }
    tracing::info!("ready");
    let lasts = arguments.lasts.map(|lasts| lasts.0);
    let (served, played) = match &arguments.command[..] {
        [] => (medium::serve((&mut live, clock), &stations, &ends, lasts), Ok(ExitCode::SUCCESS)),
        // A signal ends the command, and so does the end of the radios.
        command => {
            let gone = bell()?;
            serve_beside(
                || play(command, &[&ends, &gone]),
                |over| {
                    let served = medium::serve((&mut live, clock), &stations, over, None);
                    ring(&gone);
                    served
                },
            )?
        }
    };
    watch.end()?;
    let refused = served.map_err(Failure::during("wait for frames"))?;
    let report = report::of(&scenario.name, &prepared, &mut live, &refused);
    // The namespaces are removed even if the report has no reader.
    drop(stations);
    tell(report, arguments.json, &ends)?;
    played
}

/// Prints the report. Once a signal has come, its reader has a second for it.
fn tell(report: AirReport, is_json: bool, ends: &OwnedFd) -> Result<(), Failure> {
    let (sender, written) = channel();
    let print = move || sender.send(if is_json { report.print_json() } else { report.print_text() });
    let thread = thread::Builder::new().name("report".into());
    thread.spawn(print).map_err(Failure::during("start a thread"))?;
    loop {
        match written.recv_timeout(signals::LAST_WORDS_WITHIN) {
            Ok(result) => return printed(result),
            Err(RecvTimeoutError::Timeout) if wait_to_read(ends.as_fd(), Duration::ZERO).is_err() => {}
            Err(_) => return Ok(()),
        }
    }
}

/// Run programs over a scenario's radios in real time, a namespace for each node
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise air netns configs/chain.yaml --set topology.hops=3
  ip netns exec chain-n0 ping 10.0.0.4          # meanwhile; the nodes are 10.0.0.1, 10.0.0.2, …
  ip netns exec chain-n3 iperf3 -s
  hopwise air netns configs/chain.yaml -- ip netns exec chain-n0 ping -c 3 10.0.0.3      # ends with its command
  hopwise air netns configs/chain.yaml --capture --for 60s --json

Frames that a node sends on its device air0 go over the scenario's radio: 802.11 with its collisions, losses, movement
and outages, as in `hopwise run`. The kernels of the nodes forward. With `routing: { protocol: static }` they have the
shortest routes; without it they have none until a routing program finds some. Flows and agents of the scenario are
ignored. It needs root, ends on SIGTERM, SIGINT, SIGQUIT or SIGHUP, and then removes its namespaces. The namespaces of
a killed one are removed by the next command with its prefix.

Radios of 802.11n take packets by their DSCP, as Linux does (EDCA): EF and CS6 are voice, CS3 to CS5 video, and CS1 is
background. `ping -Q 0xb8` and `iperf3 -S 0xb8` mark theirs with EF.

COMMAND runs once the radios are there. They end with it, a signal ends both, and its status becomes ours. Where another
`hopwise air netns` has the names, it does not run.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    of: OfRun,
    /// Arm whose settings apply, if arms change settings (default: the first arm)
    #[arg(long, value_name = "A")]
    arm: Option<String>,
    /// Prefix of the namespaces' names, before the node's name (default: the name of the scenario)
    #[arg(long, value_name = "P")]
    prefix: Option<String>,
    /// Time after which it ends (default: until SIGTERM or SIGINT)
    #[arg(long = "for", value_name = "TIME")]
    lasts: Option<Time>,
    /// Command to run in place of a wait; `ip netns exec NAME PROGRAM` runs a program on a node
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "lasts")]
    pub command: Vec<String>,
    /// Print one JSON object on standard output at the end and nothing else
    #[arg(long)]
    json: bool,
    /// Write what each radio sends and decodes to NODE.pcapng, for Wireshark
    #[arg(long)]
    pub capture: bool,
    /// Write how every radio saw every frame to frames.csv
    #[arg(long)]
    frames: bool,
}
