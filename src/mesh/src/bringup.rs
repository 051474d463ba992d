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
    let changed = match work::send(&record, work::CONFIRM)? {
        Some(answer) if answer.problems.is_empty() => true,
        Some(answer) => return Err(Failure::failed(doing, answer.problems.join("; "))),
        None => match left(&record)? {
            (Phase::Confirmed, None) => false,
            (Phase::Confirmed, Some(name)) => {
                let problem = format!("{name} was not confirmed in time: what was up before it is up again");
                return Err(Failure::failed(doing, problem));
            }
            (Phase::Down, _) => {
                let problem = "nothing waits: it went back already, or nothing was brought up here";
                return Err(Failure::failed(doing, problem));
            }
            (Phase::Unconfirmed, _) => {
                let problem = "its process was killed half-way: `hopwise mesh down` undoes the changes";
                return Err(Failure::failed(doing, problem));
            }
        },
    };
    match (arguments.json, changed) {
        (true, _) => say(&serde_json::json!({ "changed": changed }).to_string()),
        (false, true) => say("confirmed; `hopwise mesh down` restores what was"),
        (false, false) => say("confirmed already"),
    }
}

/// `hopwise mesh down`.
pub(crate) fn down(arguments: &Arguments) -> Result<(), Failure> {
    let path = work::record_in(&arguments.folder.state)?;
    let changed = match work::send(&path, work::REVERT)? {
        Some(answer) if answer.problems.is_empty() => true,
        Some(answer) => return Err(Failure::failed("undo", answer.problems.join("; "))),
        None => {
            let mut record = work::open(&path)?;
            if record.phase() == Phase::Down {
                record.forget();
                false
            } else {
                let undone = record.undo();
                if !undone.problems.is_empty() {
                    return Err(work::not_undone(&record, &undone.problems));
                }
                true
            }
        }
    };
    match (arguments.json, changed) {
        (true, _) => say(&serde_json::json!({ "changed": changed }).to_string()),
        (false, true) => say("down: all is as it was before"),
        (false, false) => say("nothing was up"),
    }
}
