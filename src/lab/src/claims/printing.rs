//! Prints claims and their results.

use std::io::{self, Write};

use hopwise_lab::claims::table::{ClaimRow, counts, counts_under};
use hopwise_lab::scenario::LeftOut;

use super::NotRun;

pub(super) fn row(row: &ClaimRow) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    let whose = if row.ours { " (ours, of no paper)" } else { "" };
    writeln!(out, "{} {}: {}{whose}", row.paper, row.figure, row.says)?;
    writeln!(out, "  claimed             {}", row.claimed)?;
    for under in &row.results {
        let (measured, why) = (under.measured(), under.why());
        let verdict = under.verdict.in_words(under.lines.len());
        writeln!(out, "  {:<18}  {measured}: {verdict}, {why}", under.rules)?;
        for line in under.lines.iter().filter(|_| under.lines.len() > 1) {
            writeln!(out, "    {}: {}: {}, {}", line.reading, line.measured, line.outcome, line.why)?;
        }
    }
    if let Some(note) = &row.note {
        writeln!(out, "  {note}")?;
    }
    writeln!(out)
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
    let ours = if ours == 0 { String::new() } else { format!("; {ours} of ours beside them") };
    let own = verdicts(counts(rows));
    let slow = match slow {
        0 => String::new(),
        1 => "; 1 figure left out by --quick".to_owned(),
        many => format!("; {many} figures left out by --quick"),
    };
    writeln!(out, "under the papers' own rules: {own}; {} not run{slow}{ours}", not_run.len())?;
    let Some((radio, left_out)) = radio else { return Ok(()) };
    let left_out = match left_out {
        0 => String::new(),
        1 => "; not run in 1 reading".to_owned(),
        many => format!("; not run in {many} readings"),
    };
    writeln!(out, "over {radio}: {}{left_out}", verdicts(counts_under(rows, radio)))
}

fn verdicts([reproduced, in_part, not, contradicted]: [usize; 4]) -> String {
    let part = if in_part == 0 { String::new() } else { format!("{in_part} reproduced in part, ") };
    format!("{reproduced} reproduced, {part}{not} not reproduced, {contradicted} contradicted")
}
