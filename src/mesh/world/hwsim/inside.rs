//! The command on the machine that has the radios: a program beside the nodes, and a report.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

use hopwise_air::Lateness;
use hopwise_core::Instant;
use hopwise_lab::scenario::Prepared;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde::Serialize;

use super::Arguments;
use super::network::{Carried, Network, waited};
use crate::daemon::log;
use crate::failure::Failure;
use crate::mesh::air::stations::Serves;
use crate::signals;

/// The time that a program has to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

pub(super) fn run(arguments: &Arguments, prepared: &Prepared, out: &Path) -> Result<ExitCode, Failure> {
    log::begin();
    log::flow().map_err(|error| Failure::failed("start the log", error))?;
    let ends = signals::watch().map_err(|error| Failure::failed("watch for signals", error))?;
    let program = program(arguments, prepared);
    let network = Network::open(prepared, Serves::Itself, arguments.monitor)?;
    let capture = arguments.capture.then_some(out);
    let (status, carried) = network.on_the_air(capture, &ends, || {
        tracing::info!("ready");
        play(&program, &ends)
    })?;
    drop(network);
    let report = Report::of(prepared, carried);
    report.tell();
    let written = report.write(&out.join("medium.json"));
    written.map_err(|error| Failure::failed("write medium.json", error))?;
    Ok(status)
}

/// The program that runs beside the nodes, or on one.
fn program(arguments: &Arguments, prepared: &Prepared) -> Vec<String> {
    match &arguments.shell {
        None => arguments.command.clone(),
        Some(node) => {
            let node = if node.is_empty() { prepared.name_of(0) } else { node };
            ["ip", "netns", "exec", node, "bash"].map(str::to_owned).into()
        }
    }
}

/// Runs the program and waits for its end.
fn play(program: &[String], ends: &OwnedFd) -> Result<ExitCode, Failure> {
    let Some((name, words)) = program.split_first() else { return Ok(ExitCode::SUCCESS) };
    let failed = |error: io::Error| Failure::failed("run the command", format_args!("`{name}`: {error}"));
    let mut process = Command::new(name).args(words).spawn().map_err(failed)?;
    let id = Pid::from_child(&process);
    let ended = pidfd_open(id, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
    if waited(&[&ended, ends], Duration::MAX) == Some(1) {
        let _ = kill_process(id, Signal::TERM);
        if waited(&[&ended], ENDS_WITHIN).is_none() {
            let _ = process.kill();
        }
    }
    status_of(&mut process).map_err(failed)
}

/// As shells give it: 128 and the signal, where one ended it.
fn status_of(process: &mut Child) -> io::Result<ExitCode> {
    let status = process.wait()?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// The medium's counts, for medium.json.
#[derive(Debug, Serialize)]
struct Report {
    lasted_s: f64,
    nodes: Vec<Row>,
    /// Messages that the kernel refused, as of radios that are down.
    refused: u64,
    /// Times when frames of the kernel were lost on their way to the medium.
    overruns: u64,
    late_times: u64,
    late_worst_s: f64,
    left_out_s: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    node: String,
    frames_sent: u64,
    airtime_s: f64,
    collisions: u64,
    retry_drops: u64,
    queue_drops: u64,
    odd: u64,
}

impl Report {
    fn of(prepared: &Prepared, carried: Carried) -> Report {
        let Carried { mut live, dropped, refusals, deaf: _ } = carried;
        let Lateness { worst, times, left_out } = live.lateness();
        let world = live.world();
        let row = |(name, node): (&String, u32)| {
            let stats = world.stats(node);
            Row {
                node: name.clone(),
                frames_sent: stats.frames_sent.total(),
                airtime_s: stats.airtime_ns as f64 / 1e9,
                collisions: stats.collisions,
                retry_drops: stats.retry_drops,
                queue_drops: dropped.by_queue[node as usize],
                odd: dropped.odd[node as usize],
            }
        };
        Report {
            lasted_s: world.now().since(Instant::ZERO).as_secs_f64(),
            nodes: prepared.names.iter().zip(0..).map(row).collect(),
            refused: refusals.refused,
            overruns: refusals.overruns,
            late_times: times,
            late_worst_s: worst.as_secs_f64(),
            left_out_s: left_out.as_secs_f64(),
        }
    }

    fn tell(&self) {
        let (frames, worst_ms) =
            (self.nodes.iter().map(|row| row.frames_sent).sum::<u64>(), self.late_worst_s * 1e3);
        tracing::info!(
            "{frames} frames in {:.1} s; behind real time {} times, by {worst_ms:.1} ms at worst, {:.1} s left out; \
             {} lost on their way to the radio",
            self.lasted_s,
            self.late_times,
            self.left_out_s,
            self.overruns
        );
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer_pretty(&mut file, self)?;
        writeln!(file)?;
        file.flush()
    }
}
