//! `hopwise report`: makes the report of a trial again from its records, or one report of several shards, and explains
//! why arms were faster or slower.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use hopwise_lab::agreement::{Agreement, InWorld};
use hopwise_lab::explain;
use hopwise_lab::findings::Findings;
use hopwise_lab::folder::Folder;
use hopwise_lab::named;
use hopwise_lab::record::Trial;
use hopwise_lab::report::{self, Bundle, ReadError, html};

use crate::trial::REPORT;
use hopwise_daemon::failure::{self, Failure, printed};
use hopwise_daemon::table;

/// Write a trial's report, or explain why an arm was faster or slower
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise report results/chain
  hopwise report results/chain-1 results/chain-2 --out chain.html
  hopwise report --why results/chain
  hopwise report roofs-2026 --beside roofs-2025

Equal records give equal bytes, on every machine and in any order. --why prints a table of what the runs counted, such
as ACKs, airtime, collisions and round trips; the baseline's cell comes first. It leaves out a row in which all arms are
nearly equal. --beside holds the arms that trials have in common against each other, run by run of one seed: two studies
of a mesh, or a trial before and after a change. It writes no report.")]
pub struct Arguments {
    /// Folders that `hopwise trial` has written; several folders are shards of one trial
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// File to write (default: report.html in the first folder)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print why each arm was faster or slower than the baseline, and write no report
    #[arg(long, conflicts_with = "out")]
    why: bool,
    /// Folder of another trial, whose arms are held against those of the first; repeatable
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "why"])]
    beside: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    // Each folder is opened once: a link in its path that leads elsewhere by the end is followed no more.
    let folders = open(&arguments.folders)?;
    let bundle = read(&folders)?;
    if !arguments.beside.is_empty() {
        let agreement = beside(under_name(&arguments.folders[0], bundle), &arguments.beside)?;
        return printed(write!(hopwise_lab::plain::out(), "{}", agreement.text()));
    }
    if arguments.why {
        let text = explain::text(&bundle.trial, &bundle.records, table::width());
        return printed(write!(hopwise_lab::plain::out(), "{text}"));
    }
    // The default name lies in a folder that may be somebody else's: nothing but a file of its own is written there.
    let (written, out) = match &arguments.out {
        Some(out) => (named::write(out, html(&bundle)), out.clone()),
        None => {
            let folder = &folders[0];
            (folder.write(REPORT, html(&bundle)), folder.join(REPORT))
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

/// Compares trials, the reference first. Arms of one name are one arm, as points of equal values are one point.
fn beside(reference: InWorld, others: &[PathBuf]) -> Result<Agreement, Failure> {
    let mut trials = vec![reference];
    for folder in others {
        let mut other = under_name(folder, read(&open(std::slice::from_ref(folder))?)?);
        if trials.iter().any(|trial| trial.trial.world == other.trial.world) {
            other.trial.world = hopwise_lab::plain::line(&folder.display().to_string());
        }
        let (arms, points) = (&trials[0].trial.arms, &trials[0].trial.points);
        let is_common = other.trial.arms.iter().any(|arm| arms.contains(arm))
            && other.trial.points.iter().any(|point| points.contains(point));
        if !is_common {
            let problem = format_args!(
                "it has no arm at a point of the first trial: expected one of {}",
                arms.join(", ")
            );
            return Err(Failure::refused(folder.display().to_string(), problem));
        }
        trials.push(other);
    }
    Ok(Agreement::of(&trials))
}

/// A trial under its folder's name, where trials of several worlds have those of their worlds.
fn under_name(folder: &Path, bundle: Bundle) -> InWorld {
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
    let world = hopwise_lab::plain::line(&name);
    InWorld { trial: Trial { world, ..bundle.trial }, records: bundle.records }
}

/// Opens the folders of trials.
pub(crate) fn open(folders: &[PathBuf]) -> Result<Vec<Folder>, Failure> {
    let open = |folder: &PathBuf| report::open(folder).map_err(refused);
    folders.iter().map(open).collect()
}

/// Reads trial folders back, and prints remarks on them. A folder without a trial is refused.
pub(crate) fn read(folders: &[Folder]) -> Result<Bundle, Failure> {
    let bundle = Bundle::read(folders).map_err(refused)?;
    bundle.remarks.iter().for_each(|remark| failure::remark(remark));
    Ok(bundle)
}

fn refused(error: ReadError) -> Failure {
    Failure::refused(error.place, error.problem)
}
