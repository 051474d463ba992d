//! Prints claims and their results.

use std::io::{self, Write};

use hopwise_lab::claims::table::{self, ClaimRow, counts};
use hopwise_lab::scenario::LeftOut;

use super::NotRun;

pub(super) fn row(row: &ClaimRow) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    let whose = if row.ours { " (ours, of no paper)" } else { "" };
    writeln!(out, "{} {}: {}{whose}", row.paper, row.figure, row.says)?;
    writeln!(out, "  claimed             {}", row.claimed)?;
    for under in &row.results {
        let (measured, why) = (under.measured(), under.why());
        let verdict = under.verdict.in_words(under.readings.len());
        let seeds = under.seeds().map_or(String::new(), |seeds| format!("; {seeds} seeds"));
        writeln!(out, "  {:<18}  {measured}: {verdict}, {why}{seeds}", under.rules)?;
        for reading in under.readings.iter().filter(|_| under.readings.len() > 1) {
            let (name, measured, judged) = (reading.name(), &reading.measured, &reading.judged);
            writeln!(out, "    {name}: {measured}: {}, {}", judged.outcome, judged.why)?;
        }
    }
    if let Some(note) = &row.note {
        writeln!(out, "  {note}")?;
    }
    writeln!(out)
}

/// The claims of a figure that one reading holds together.
pub(super) fn jointly(figure: &str, rows: &[ClaimRow]) -> io::Result<()> {
    let jointly = table::jointly(rows);
    jointly.map_or(Ok(()), |jointly| writeln!(hopwise_lab::plain::out(), "{figure}: {jointly}\n"))
}

pub(super) fn not_run(all: &[NotRun]) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    all.iter().try_for_each(|one| {
        writeln!(out, "{} {}: {}\n  not run: {}\n", one.paper, one.figure, one.says, one.needs)
    })
}

/// The readings of a figure that were not run over a radio, and why.
pub(super) fn left_out(figure: &str, radio: &str, of_it: &LeftOut) -> io::Result<()> {
    let LeftOut { readings, of, paths } = of_it;
    let (own, paths) = (if *readings == 1 { "which sets" } else { "which set" }, paths.join(" and "));
    let mut out = hopwise_lab::plain::out();
    writeln!(out, "{figure}: not run over {radio} in {readings} of {of} readings, {own} another {paths}\n")
}

/// The number of the papers' claims by their verdict under the papers' own rules, which are the first ones, and over
/// the radios that were asked for, with the number of readings that were not run over these, and of the figures that a
/// quick look leaves out.
pub(super) fn sums(
    rows: &[ClaimRow],
    radio: Option<(&str, usize)>,
    (not_run, slow): (&[NotRun], usize),
) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    let ours = rows.iter().filter(|row| row.ours).count();
    let ours = if_any(ours, format!("; {ours} of ours beside them"));
    let own = verdicts(counts(rows, None));
    let several = |count, one| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    let slow = if_any(slow, format!("; {} left out by --quick", several(slow, "figure")));
    writeln!(out, "under the papers' own rules: {own}; {} not run{slow}{ours}", not_run.len())?;
    let Some((radio, left_out)) = radio else { return Ok(()) };
    let left_out = if_any(left_out, format!("; not run in {}", several(left_out, "reading")));
    writeln!(out, "over {radio}: {}{left_out}", verdicts(counts(rows, Some(radio))))
}

/// The words about a number; empty where it is 0.
fn if_any(count: usize, words: String) -> String {
    if count > 0 { words } else { String::new() }
}

fn verdicts([reproduced, in_part, undecided, not, contradicted]: [usize; 5]) -> String {
    let part = if_any(in_part, format!("{in_part} reproduced in part, "));
    let undecided = if_any(undecided, format!("{undecided} undecided, "));
    format!("{reproduced} reproduced, {part}{undecided}{not} not reproduced, {contradicted} contradicted")
}
