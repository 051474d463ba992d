//! `hopwise explain`: why arms were faster or slower, in a sentence each.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use hopwise_lab::explain::sentences;
use hopwise_lab::findings::label;

use crate::failure::{Failure, printed};
use crate::lab::report::read;

/// Explain why each arm of a trial was faster or slower than the baseline
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise explain results/chain

It reads only the trial's records: ACKs per segment, airtime, collisions, retransmissions and timeouts as reasons, then
delay, bursts and reordering.")]
pub(crate) struct Arguments {
    /// Folders that `hopwise trial` has written; several folders are shards of one trial
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let bundle = read(&arguments.folders)?;
    let mut out = hopwise_lab::plain::out();
    let points = sentences(&bundle.trial, &bundle.records);
    printed(points.into_iter().try_for_each(|(point, arms)| {
        if !point.is_empty() {
            writeln!(out, "{}", label(point))?;
        }
        arms.into_iter().try_for_each(|(_, sentence)| writeln!(out, "{sentence}"))
    }))
}
