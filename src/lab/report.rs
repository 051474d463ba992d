//! `hopwise report`: makes the report of a trial again from its records, or one report of several shards.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use hopwise_lab::findings::Findings;
use hopwise_lab::report::{Bundle, html};
use hopwise_lab::{folder, named};

use crate::failure::{self, Failure, printed};
use crate::lab::trial::REPORT;
use crate::table;

/// Write report.html again from the records of a trial; several folders are shards of one trial
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise report results/chain
  hopwise report results/chain-1 results/chain-2 --out chain.html

The same records give the same bytes, on every machine and in any order.")]
pub(crate) struct Arguments {
    /// Folders that `hopwise trial` has written
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// File to write (default: report.html in the first folder)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let bundle = read(&arguments.folders)?;
    // The default name lies in a folder that may be somebody else's: nothing but a file of its own is written there.
    let (written, out) = match &arguments.out {
        Some(out) => (named::write(out, html(&bundle)), out.clone()),
        None => {
            let folder = &arguments.folders[0];
            (folder::write(folder, REPORT, html(&bundle)), folder.join(REPORT))
        }
    };
    written
        .map_err(|error| Failure::failed("writing the report", format_args!("{}: {error}", out.display())))?;
    let text = Findings::of(&bundle.trial, &bundle.records).text(table::width());
    let (planned, there) = bundle.runs();
    let missing =
        if there < planned { format!("{there} of {planned} runs are there\n") } else { String::new() };
    printed(table::print_verdicts(&text))?;
    printed(writeln!(hopwise_lab::plain::out(), "{missing}The report is {}", out.display()))
}

/// Reads trial folders back, and prints remarks on them. A folder without a trial is refused.
pub(crate) fn read(folders: &[PathBuf]) -> Result<Bundle, Failure> {
    let bundle = Bundle::read(folders).map_err(|error| Failure::refused(error.place, error.problem))?;
    bundle.remarks.iter().for_each(|remark| failure::remark(remark));
    Ok(bundle)
}
