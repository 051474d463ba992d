//! `hopwise air`: the radios of a scenario in real time, for programs that know nothing of the simulation.

use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use hopwise_air::frames::Framing;
use hopwise_host::{Clock, wait_to_read};
use hopwise_lab::live::air as live;

use crate::daemon::log;
use crate::failure::{Failure, printed};
use crate::lab::run::watch::{Epoch, Wanted, Watch};
use crate::mesh::beside::{bell, play, serve_beside};
use crate::scenario::first_arm_unless;
use crate::signals::{self, ring};

mod arguments;
pub(crate) mod medium;
mod report;
pub(crate) mod stations;

pub(crate) use arguments::Arguments;
use report::Report;

/// Returns the status of the command that ran beside the nodes, if there was one.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let scenario = arguments.of.scenario.load()?;
    let prepared = first_arm_unless(&scenario, arguments.arm.as_deref(), arguments.of.seed)?;
    let prefix = arguments.prefix.as_ref().unwrap_or(&scenario.name);
    stations::check(prefix, &prepared)?;
    log::begin();
    log::flow().map_err(|error| Failure::failed("start the log", error))?;
    let ends = signals::watch().map_err(|error| Failure::failed("watch for signals", error))?;
    let stations = stations::Stations::open(prefix, &prepared, stations::Serves::Itself)?;
    let mut live = live::world(&prepared.plan);
    let wanted = Wanted { capture: arguments.capture, frames: arguments.frames, trace: false };
    let out = arguments.of.scenario.folder(&scenario);
    let clock = Clock::start();
    let epoch = Epoch { begins: clock.wall_offset(), left_out: live.left_out() };
    let watch = Watch::begin(wanted, (live.world(), Framing::Ethernet), (&prepared, epoch), &out)?;
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
    let refused = served.map_err(|error| Failure::failed("wait for frames", error))?;
    let report = report::of(&scenario.name, &prepared, &mut live, &refused);
    // The namespaces are removed even if the report has no reader.
    drop(stations);
    tell(report, arguments.json, &ends)?;
    played
}

/// Prints the report. Once a signal has come, its reader has a second for it.
fn tell(report: Report, is_json: bool, ends: &OwnedFd) -> Result<(), Failure> {
    let (sender, written) = channel();
    let print = move || sender.send(if is_json { report.print_json() } else { report.print_text() });
    let thread = thread::Builder::new().name("report".into());
    thread.spawn(print).map_err(|error| Failure::failed("start a thread", error))?;
    loop {
        match written.recv_timeout(signals::LAST_WORDS_WITHIN) {
            Ok(result) => return printed(result),
            Err(RecvTimeoutError::Timeout) if wait_to_read(ends.as_fd(), Duration::ZERO).is_err() => {}
            Err(_) => return Ok(()),
        }
    }
}
