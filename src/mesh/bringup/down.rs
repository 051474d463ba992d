//! `hopwise mesh down`.

use clap::Args;
use hopwise_host::bringup::Phase;

use super::{State, work};
use crate::failure::{Failure, say};

/// Restore what was there before `hopwise mesh up`
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  hopwise mesh down

It also undoes what an interrupted `hopwise mesh up` left, and needs no confirmation. End `hopwise route` and `hopwise
node` on these interfaces first.")]
pub(crate) struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: State,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = work::record_in(&arguments.state.state)?;
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
