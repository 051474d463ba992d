//! `hopwise mesh`: brings the interfaces of a mesh up, and back to what they were.
//!
//! A process of its own makes the changes and waits for their confirmation (`keep`). It belongs to no session: the
//! end of the ssh connection, or of the command that started it, does not reach it. It is no timer of systemd, as
//! routers and namespaces have none.

use std::path::{Path, PathBuf};

use clap::Args;
use hopwise_host::bringup::Phase;

use hopwise_daemon::failure::{Failure, say};

pub mod config;
pub(super) mod keep;
pub(super) mod up;
mod work;

/// The folder of the files by default. It is root's: in `/run/hopwise` the daemons' user may remove a file of root.
pub const STATE: &str = "/run/hopwise-mesh";

#[derive(Args, Clone, Debug)]
struct StateFolder {
    /// Folder of the file that says how to undo the changes
    #[arg(long, value_name = "FOLDER", default_value = STATE)]
    state: PathBuf,
}

/// The arguments of `hopwise mesh confirm` and `hopwise mesh down`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folder: StateFolder,
}

/// The state in a file that no process has, and the file of interfaces that went back to it.
fn left(path: &Path) -> Result<(Phase, Option<String>), Failure> {
    let mut record = work::open(path)?;
    record.forget();
    Ok((record.phase(), record.went_back().map(str::to_owned)))
}

/// `hopwise mesh confirm`.
pub(crate) fn confirm(arguments: &Arguments) -> Result<(), Failure> {
    let record = work::record_in(&arguments.folder.state)?;
    let doing = "confirm";
    if !work::send(&record, work::CONFIRM, doing)? {
        let problem = match left(&record)? {
            (Phase::Confirmed, None) => return told(arguments, false, "confirmed already"),
            (Phase::Confirmed, Some(name)) => {
                format!("{name} was not confirmed in time: what was up before it is up again")
            }
            (Phase::Down, _) => {
                "nothing waits: it went back already, or nothing was brought up here".to_owned()
            }
            (Phase::Unconfirmed, _) => {
                "its process was killed half-way: `hopwise mesh down` undoes the changes".to_owned()
            }
        };
        return Err(Failure::failed(doing, problem));
    }
    told(arguments, true, "confirmed; `hopwise mesh down` restores what was")
}

/// `hopwise mesh down`.
pub(crate) fn down(arguments: &Arguments) -> Result<(), Failure> {
    let path = work::record_in(&arguments.folder.state)?;
    if !work::send(&path, work::REVERT, "undo")? {
        let mut record = work::open(&path)?;
        if record.phase() == Phase::Down {
            record.forget();
            return told(arguments, false, "nothing was up");
        }
        let undone = record.undo();
        if !undone.problems.is_empty() {
            return Err(work::not_undone(&record, &undone.problems));
        }
    }
    told(arguments, true, "down: all is as it was before")
}

fn told(arguments: &Arguments, changed: bool, words: &str) -> Result<(), Failure> {
    if arguments.json { say(&serde_json::json!({ "changed": changed }).to_string()) } else { say(words) }
}
