//! The command on the machine that has the radios: runs a program next to the nodes, and reports.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use hopwise_air::Lateness;
use hopwise_core::Instant;
use hopwise_lab::report::escape;
use hopwise_lab::scenario::Prepared;
use serde::Serialize;

use super::network::{CarriedRadios, HwsimNetwork};
use super::{Arguments, RadioSetup};
use crate::air::netns::stations::ServedAddresses;
use crate::serving::play;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::log;
use hopwise_daemon::signals;

pub(super) fn run(arguments: &Arguments, prepared: &Prepared, out: &Path) -> Result<ExitCode, Failure> {
    log::begin();
    log::flow().map_err(|error| Failure::failed("start the log", error))?;
    let ends = signals::watch().map_err(|error| Failure::failed("watch for signals", error))?;
    let program = program(arguments, prepared);
    let setup = RadioSetup {
        serves: ServedAddresses::Itself,
        has_monitors: arguments.monitor,
        is_bare: arguments.bare,
    };
    let network = HwsimNetwork::open(prepared, setup)?;
    let capture = arguments.of.capture.then_some(out);
    let work = |()| {
        tracing::info!("ready");
        play(&program, &[&ends])
    };
    let (status, carried) = network.on_the_air((capture, &ends), || Ok(()), work)?;
    drop(network);
    let report = HwsimReport::of(prepared, carried);
    report.tell();
    let written = report.write(&out.join("medium.json"));
    written.map_err(Failure::during("write medium.json"))?;
    if arguments.junit {
        let test = junit(&program.join(" "), status == ExitCode::SUCCESS, report.lasted_s);
        std::fs::write(out.join("junit.xml"), test).map_err(Failure::during("write junit.xml"))?;
    }
    Ok(status)
}

/// One test, in the form that servers of continuous integration read.
fn junit(test: &str, has_passed: bool, seconds: f64) -> String {
    let test = escape(test);
    let (failures, failure) = match has_passed {
        true => (0, ""),
        false => (1, "<failure message=\"its status is not 0\"/>"),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"hopwise\" tests=\"1\" failures=\"{failures}\" time=\"{seconds:.3}\">\n  \
         <testcase classname=\"hopwise\" name=\"{test}\" time=\"{seconds:.3}\">{failure}</testcase>\n\
         </testsuite>\n"
    )
}

/// The program that runs next to the nodes, or on a node.
fn program(arguments: &Arguments, prepared: &Prepared) -> Vec<String> {
    match &arguments.shell {
        None => arguments.command.clone(),
        Some(node) => {
            let node = if node.is_empty() { prepared.name_of(0) } else { node };
            ["ip", "netns", "exec", node, "bash"].map(str::to_owned).into()
        }
    }
}

/// The medium's counts, for medium.json.
#[derive(Debug, Serialize)]
pub(crate) struct HwsimReport {
    lasted_s: f64,
    nodes: Vec<HwsimRow>,
    /// Messages that the kernel refused, as of radios that are down.
    refused: u64,
    /// Times when frames of the kernel were lost on their way to the medium.
    overruns: u64,
    late_times: u64,
    late_worst_s: f64,
    left_out_s: f64,
}

#[derive(Debug, Serialize)]
struct HwsimRow {
    node: String,
    frames_sent: u64,
    airtime_s: f64,
    collisions: u64,
    retry_drops: u64,
    queue_drops: u64,
    odd: u64,
}

impl HwsimReport {
    pub(crate) fn of(prepared: &Prepared, carried: CarriedRadios) -> HwsimReport {
        let CarriedRadios { mut live, dropped, refusals, deaf: _ } = carried;
        let Lateness { worst, times, left_out } = live.lateness();
        let world = live.world();
        let row = |(name, node): (&String, u32)| {
            let stats = world.stats(node);
            HwsimRow {
                node: name.clone(),
                frames_sent: stats.frames_sent.total(),
                airtime_s: stats.airtime_ns as f64 / 1e9,
                collisions: stats.collisions,
                retry_drops: stats.retry_drops,
                queue_drops: dropped.by_queue[node as usize],
                odd: dropped.odd[node as usize],
            }
        };
        HwsimReport {
            lasted_s: world.now().since(Instant::ZERO).as_secs_f64(),
            nodes: prepared.names.iter().zip(0..).map(row).collect(),
            refused: refusals.refused,
            overruns: refusals.overruns,
            late_times: times,
            late_worst_s: worst.as_secs_f64(),
            left_out_s: left_out.as_secs_f64(),
        }
    }

    pub(crate) fn tell(&self) {
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

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer_pretty(&mut file, self)?;
        writeln!(file)?;
        file.flush()
    }
}
