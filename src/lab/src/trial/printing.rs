//! Prints the findings of a trial for people, or for a program.

use std::io::{self, Write};
use std::path::Path;

use hopwise_core::narrow::as_u32;
use hopwise_lab::agreement::Agreement;
use hopwise_lab::record::Trial;
use hopwise_lab::report::Bundle;

use super::worlds::AGREEMENT;
use super::{EarlyEnd, MadeTrial, REPORT};
use hopwise_daemon::table;

/// The verdicts as a table, or the whole summary as one JSON object.
pub(super) fn result(trial: &Trial, made: &MadeTrial, is_json: bool) -> io::Result<()> {
    if is_json {
        return writeln!(hopwise_lab::plain::out(), "{}", made.summary);
    }
    verdicts(trial, made)
}

/// The verdicts in one of several worlds.
pub(super) fn in_world(world: &str, trial: &Trial, made: &MadeTrial) -> io::Result<()> {
    writeln!(hopwise_lab::plain::out(), "In {world}:\n")?;
    verdicts(trial, made)
}

fn verdicts(trial: &Trial, made: &MadeTrial) -> io::Result<()> {
    let MadeTrial { bundle: Bundle { records, .. }, ended, findings, folder, .. } = made;
    let mut out = hopwise_lab::plain::out();
    writeln!(out, "{}: {}", trial.scenario, trial.title.as_deref().unwrap_or("a trial"))?;
    let blocks = records.iter().map(|record| record.block).max().unwrap_or(0);
    if let Some(shard) = trial.shard {
        writeln!(out, "part {} of {}: {} runs", shard.index, shard.count, records.len())?;
    } else if blocks < as_u32(trial.seeds.len()) {
        let why = match ended {
            EarlyEnd::WithVerdicts => "sure",
            EarlyEnd::InTime => "out of time",
            EarlyEnd::WithoutHost => "a host was lost",
        };
        writeln!(out, "{why} after {blocks} of {} seeds", trial.seeds.len())?;
    }
    writeln!(out)?;
    out.flush()?;
    table::print_verdicts(&findings.text(table::width()))?;
    let report = folder.join(REPORT);
    let said = format!(
        "{} shows it all; tables and the records, with every setting in force, are in its folder",
        report.display()
    );
    writeln!(out, "{}", table::broken(&said))
}

/// The comparison of several worlds, as a table or as one JSON object.
pub(super) fn agreement(agreement: &Agreement, folder: &Path, is_json: bool) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    if is_json {
        return writeln!(out, "{}", agreement.json());
    }
    writeln!(out, "\nWorlds compared: {}\n", agreement.worlds.join(", "))?;
    write!(out, "{}", agreement.text())?;
    writeln!(out, "{} has these figures for programs", folder.join(AGREEMENT).display())
}
