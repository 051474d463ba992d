//! The process that makes the changes and waits for their confirmation. It reads the file from standard input, and
//! tells its events on standard output.

use std::fs;
use std::io::{Read, Write};

use clap::Args;
use hopwise_host::bringup::Config as RecordedConfig;
use hopwise_lab::located::Document;
use hopwise_lab::units::Time;
use rustix::process::{getpid, setsid};
use serde::{Deserialize, Serialize};

use super::work::Bringup;
use super::{StateFolder, config};
use hopwise_daemon::failure::Failure;

/// The root of the second version of control groups.
const ALL_GROUPS: &str = "/sys/fs/cgroup/cgroup.procs";

/// Make the changes of `hopwise mesh up`
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    folder: StateFolder,
    /// Name of the file on standard input
    #[arg(long)]
    name: String,
    /// Time for the confirmation
    #[arg(long)]
    within: Time,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    leave_session();
    let done = work(arguments);
    if let Err(failure) = &done {
        let (doing, problem) = ("bring the interfaces up".to_owned(), failure.to_string());
        BringupEvent::Failed { doing, problem }.pass_on();
    }
    done
}

fn work(arguments: &Arguments) -> Result<(), Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::during("read the file"))?;
    let name = arguments.name.clone();
    let read = Document::parse(&name, &text).and_then(|document| config::read(&document));
    let config = read.map_err(Failure::Located)?;
    let mut tell = |event: BringupEvent| event.pass_on();
    let work = Bringup::begin(&arguments.folder.state, &mut tell)?;
    work.run(RecordedConfig { name, text }, &config, Some(arguments.within.0))
}

/// Leaves the session and the control group of the command that started this process: neither the end of a terminal nor
/// the end of a session's scope (systemd's `KillUserProcesses`) ends it. It may have to stay in its group without root,
/// or in a container.
fn leave_session() {
    let _ = setsid();
    let _ = fs::write(ALL_GROUPS, getpid().as_raw_nonzero().to_string());
}

/// An event, in the order in which they happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BringupEvent {
    /// A sentence for people.
    Note(String),
    /// A step is about to be made.
    Step(String),
    /// The machine was as wanted, or is so now for good.
    Done {
        /// Something was changed.
        changed: bool,
    },
    /// All steps are made, and go back unless they are confirmed in time.
    Waits {
        /// The time for the confirmation.
        within_s: u64,
    },
    /// It failed, and what was changed is undone.
    Failed {
        /// The attempt.
        doing: String,
        /// The problem.
        problem: String,
    },
}

impl BringupEvent {
    pub(super) fn is_last(&self) -> bool {
        matches!(self, BringupEvent::Done { .. } | BringupEvent::Waits { .. } | BringupEvent::Failed { .. })
    }

    /// Tells it to the other process, which may be gone.
    pub(super) fn pass_on(&self) {
        if let Ok(line) = serde_json::to_string(self) {
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        }
    }
}
