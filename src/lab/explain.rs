//! `hopwise explain`: why arms were faster or slower, as a table of what the runs counted.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use hopwise_lab::explain;

use crate::failure::{Failure, printed};
use crate::lab::report::read;
use crate::table;

/// Explain why each arm of a trial was faster or slower than the baseline
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise explain results/chain

It reads only the trial's records. A row has what the runs counted, such as ACKs, airtime, collisions and round trips;
the baseline's cell comes first. A row in which all arms are nearly equal is left out.")]
pub(crate) struct Arguments {
    /// Folders that `hopwise trial` has written; several folders are shards of one trial
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let bundle = read(&arguments.folders)?;
    let text = explain::text(&bundle.trial, &bundle.records, table::width());
    printed(write!(hopwise_lab::plain::out(), "{text}"))
}
