//! Prints claims and their results, as text and as Markdown.

use std::fmt::Write as _;
use std::io::{self, Write};

use hopwise_lab::claims::Outcome;
use hopwise_lab::sim::certificate_hash;
use hopwise_lab::version;

use super::{Judged, NotRun, Row};

pub(super) fn row(row: &Row) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    writeln!(out, "{} {}: {}", row.paper, row.figure, row.says)?;
    writeln!(out, "  claimed             {}", row.claimed)?;
    for Judged { setting, measured, outcome, why } in &row.judged {
        writeln!(out, "  {setting:<18}  {measured}: {outcome}, {why}")?;
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

/// The number of claims by their outcome under the papers' own rules, which are the first setting.
pub(super) fn sums(rows: &[Row], not_run: &[NotRun]) -> io::Result<()> {
    let mut count = [0_usize; 3];
    for first in rows.iter().filter_map(|row| row.judged.first()) {
        count[first.outcome as usize] += 1;
    }
    let [reproduced, not, contradicted] = count;
    writeln!(
        hopwise_lab::plain::out(),
        "under the papers' own rules: {reproduced} {}, {not} {}, {contradicted} {}; {} not run",
        Outcome::Reproduced,
        Outcome::NotReproduced,
        Outcome::Contradicted,
        not_run.len()
    )
}

const HEAD: &str = "\
# What the papers say, and what runs say

Written by `hopwise claims --markdown docs/claims.md`; every line stands in a file of `configs/papers`. A claim
is a ratio of two arms. It is *reproduced* when the measured ratio lies within its tolerance and the 95 % interval has
no room for the opposite. The tolerance is 5 % of the other arm's value, unless the file says another one. A claim is
*contradicted* when the whole interval says the opposite by more than 3 %, and else *not reproduced*. The first setting
is the papers' own: ns-2's rules for the radio, and for routing where they routed by AODV. The others are the
standard's radio and RFC 3561's AODV, under which one would deploy. *Arithmetic* claims are computed from the paper's
equations and do not scatter: a bound that is missed is contradicted.

";

const COLUMNS: &str = "\
| paper, figure | what it says | claimed | setting | measured (95 % interval) | outcome |
|---|---|---|---|---|---|
";

/// The whole of `docs/claims.md`.
pub(super) fn markdown(rows: &[Row], not_run: &[NotRun]) -> String {
    let mut text = HEAD.to_owned();
    let certificate = certificate_hash();
    let _ = write!(
        text,
        "Measured by hopwise {}, whose radio world has the certificate\n{certificate}.\n\n{COLUMNS}",
        version::of_program()
    );
    for row in rows {
        for (nth, Judged { setting, measured, outcome, why }) in row.judged.iter().enumerate() {
            let Row { paper, figure, says, claimed, .. } = row;
            let head = match (nth, &row.note) {
                (0, None) => format!("{paper} {figure} | {says} | {claimed}"),
                (0, Some(note)) => format!("{paper} {figure} | {says}. {note} | {claimed}"),
                _ => " | | ".to_owned(),
            };
            let _ = writeln!(text, "| {head} | {setting} | {measured} | **{outcome}**: {why} |");
        }
    }
    text.push_str("\n## Not run\n\n| paper, figure | what it says | what it needs |\n|---|---|---|\n");
    for one in not_run {
        let _ = writeln!(text, "| {} {} | {} | {} |", one.paper, one.figure, one.says, one.needs);
    }
    text
}
