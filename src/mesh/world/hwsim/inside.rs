//! The command on the machine that has the radios: the field, its medium, and a program beside them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use hopwise_air::frames::{Framing, mac_of};
use hopwise_air::{Lateness, Live, Whole};
use hopwise_core::Instant;
use hopwise_core::narrow::as_u32;
use hopwise_host::netlink::hwsim::{Hwsim, Refusals};
use hopwise_host::{Clock, wait_for};
use hopwise_lab::live::air as live;
use hopwise_lab::scenario::Prepared;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde::Serialize;

use super::Arguments;
use super::field::Field;
use super::medium::{Dropped, Medium};
use crate::daemon::log;
use crate::failure::Failure;
use crate::lab::run::watch::{Epoch, Wanted, Watch};
use crate::signals;

/// The kernel forgets the oldest frames of a radio that has more than 200 without a status.
const MOST_WAITING: usize = 150;
/// Nodes whose first frames are lost, or that a scenario's outage parts, hear each other late or never.
const HEARD_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time that a program has to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

pub(super) fn run(arguments: &Arguments, prepared: &Prepared, out: &Path) -> Result<ExitCode, Failure> {
    log::begin();
    log::flow().map_err(|error| Failure::failed("start the log", error))?;
    let ends = signals::watch().map_err(|error| Failure::failed("watch for signals", error))?;
    let extras = Extras { out, capture: arguments.capture, monitor: arguments.monitor };
    let program = program(arguments, prepared);
    beside(prepared, &extras, &ends, || play(&program, &ends))
}

/// The files and interfaces that a field has beside its nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extras<'a> {
    pub(super) out: &'a Path,
    pub(super) capture: bool,
    pub(super) monitor: bool,
}

/// Runs `work` on a thread of its own once all nodes have joined, and carries their frames meanwhile. It ends soon
/// after `ends` is readable.
pub(super) fn beside<T: Send>(
    prepared: &Prepared,
    extras: &Extras<'_>,
    ends: &OwnedFd,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let hwsim = Hwsim::open().map_err(|error| Failure::failed("open the medium", error))?;
    let hwsim = Rc::new(hwsim);
    let field = Field::open(prepared, &hwsim, extras.monitor)?;
    let mut live = live::world_of_frames(&prepared.plan, MOST_WAITING, extras.monitor);
    let wanted = Wanted { capture: extras.capture, frames: false, trace: false };
    let clock = Clock::start();
    let epoch = Epoch { begins: clock.wall_offset(), left_out: live.left_out() };
    let watch = Watch::begin(wanted, (live.world(), Framing::Whole), (prepared, epoch), extras.out)?;
    let macs = (0..as_u32(prepared.names.len())).map(mac_of).collect();
    let medium = Medium::new(&mut live, Rc::clone(&hwsim), macs);
    let done = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let done = done.map_err(|error| Failure::failed("make a descriptor", error))?;
    let (served, worked) = thread::scope(|scope| {
        let direct = || {
            let worked = gather(&field, ends).and_then(|()| work());
            ring(&done);
            worked
        };
        let directing = thread::Builder::new().name("director".into()).spawn_scoped(scope, direct);
        let directing = directing.map_err(|error| Failure::failed("start a thread", error))?;
        let served = medium.serve(&mut live, clock, &done);
        if served.is_err() {
            ring(ends);
        }
        let worked = directing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok::<_, Failure>((served, worked))
    })?;
    watch.end()?;
    let dropped = served.map_err(|error| Failure::failed("wait for frames", error))?;
    drop(field);
    let report = Report::of(prepared, &mut live, &dropped, hwsim.refusals());
    report.tell();
    let written = report.write(&extras.out.join("medium.json"));
    written.map_err(|error| Failure::failed("write medium.json", error))?;
    Ok(worked)
}

/// It fails only when the counter is full, which is as good.
fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
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

/// Joins the nodes and waits until they hear each other.
fn gather(field: &Field, ends: &OwnedFd) -> Result<(), Failure> {
    field.join()?;
    let clock = Clock::start();
    let mut deaf = field.deaf();
    while !deaf.is_empty() && clock.now().since(Instant::ZERO) < HEARD_WITHIN {
        if waited(&[ends], LOOK_EVERY).is_some() {
            return Err(Failure::failed("join the network", "a signal came first"));
        }
        deaf = field.deaf();
    }
    if deaf.is_empty() {
        tracing::info!("ready: all nodes hear their neighbours");
    } else {
        tracing::warn!(nodes = deaf.join(", "), "ready, but these do not hear all of their neighbours");
    }
    Ok(())
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

/// Waits for one of these, and returns its index.
fn waited(bells: &[&OwnedFd], most: Duration) -> Option<usize> {
    let mut ready: Vec<_> = bells.iter().map(|bell| PollFd::new(*bell, PollFlags::IN)).collect();
    loop {
        match wait_for(&mut ready, most.min(Duration::from_secs(3_600))) {
            Ok(0) if most != Duration::MAX => return None,
            Ok(0) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
            Ok(_) => return ready.iter().position(|bell| !bell.revents().is_empty()),
        }
    }
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
    fn of(prepared: &Prepared, live: &mut Live<Whole>, dropped: &Dropped, refusals: Refusals) -> Report {
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
