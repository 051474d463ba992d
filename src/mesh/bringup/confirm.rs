//! `hopwise mesh confirm`.

use clap::Args;
use hopwise_host::bringup::Phase;

use super::{State, work};
use crate::failure::{Failure, say};

/// Keep what `hopwise mesh up` changed
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  ssh pi1 hopwise mesh confirm    # a new connection shows that the machine is still in reach")]
pub(crate) struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: State,
}

/// The state in a file that no process has, and the file of interfaces that went back to it.
fn left(path: &std::path::Path) -> Result<(Phase, Option<String>), Failure> {
    let mut record = work::open(path)?;
    record.forget();
    Ok((record.phase(), record.went_back().map(str::to_owned)))
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let record = work::record_in(&arguments.state.state)?;
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
