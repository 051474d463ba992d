//! Claims and what they came to, as text and as Markdown.

use std::fmt::Write as _;
use std::io::{self, Write};

use hopwise::lab::claims::{claimed, measured};

use super::{NotRun, Row};

pub(super) fn text(row: &Row) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let claim = &row.claim;
    writeln!(out, "{} {}: {}", row.paper, row.figure, claim.says)?;
    writeln!(out, "  claimed             {}", claimed(claim))?;
    for (setting, judged) in &row.judged {
        writeln!(out, "  {setting:<18}  {}: {}, {}", measured(judged), judged.outcome, judged.why)?;
    }
    if let Some(note) = &claim.note {
        writeln!(out, "  {note}")?;
    }
    writeln!(out)
}

const HEAD: &str = "\
# What the papers say, and what runs say

Written by `hopwise claims --markdown docs/claims.md`; every line stands in a file of `configs/papers`. A claim
is a ratio of two arms. It is *reproduced* when the measured ratio lies within its tolerance (5 % of the other
arm's value where the file says nothing else) and the 95 % interval has no room for the opposite, *contradicted*
when the whole interval says the opposite by more than 3 %, and else *not reproduced*. The first setting is the
papers' own: ns-2's rules for the radio, and where they routed by AODV also for that. The others are the
standard's radio and RFC 3561's AODV, under which one would deploy.

| paper, figure | what it says | claimed | setting | measured (95 % interval) | outcome |
|---|---|---|---|---|---|
";

/// The whole of `docs/claims.md`.
pub(super) fn markdown(rows: &[Row], not_run: &[NotRun]) -> String {
    let mut text = HEAD.to_owned();
    for row in rows {
        let claim = &row.claim;
        for (nth, (setting, judged)) in row.judged.iter().enumerate() {
            let head = match (nth, &claim.note) {
                (0, None) => format!("{} {} | {} | {}", row.paper, row.figure, claim.says, claimed(claim)),
                (0, Some(note)) => {
                    format!("{} {} | {}. {note} | {}", row.paper, row.figure, claim.says, claimed(claim))
                }
                _ => " | | ".to_owned(),
            };
            let (outcome, why) = (judged.outcome, &judged.why);
            let _ = writeln!(text, "| {head} | {setting} | {} | **{outcome}**: {why} |", measured(judged));
        }
    }
    text.push_str("\n## Not run\n\n| paper, figure | what it says | what it needs |\n|---|---|---|\n");
    for one in not_run {
        let _ = writeln!(text, "| {} {} | {} | {} |", one.paper, one.figure, one.says, one.needs);
    }
    text
}
