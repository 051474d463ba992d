//! The pages of `docs/claims`, one for each paper with a section for each file of its figures. A section is replaced
//! when its figure was run again, and the others stay: each names what measured it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use hopwise_lab::claims::table::{Row, Under};
use hopwise_lab::report::{picture_of_claims, picture_of_premises};

use super::{ARITHMETIC, MadeBy, NotRun};
use crate::failure::Failure;

/// Digits of the certificate's hash that tell it from others.
const DIGITS: usize = 16;

/// A figure that was run: its paper, its file without the ending, and its claims.
pub(super) struct Figure<'a> {
    pub(super) paper: &'a str,
    pub(super) file: &'a str,
    pub(super) rows: &'a [Row],
    pub(super) made_by: MadeBy,
}

/// A picture of a section: its name for readers, the end of its file's name, and itself.
struct Picture {
    says: &'static str,
    end: &'static str,
    svg: String,
}

/// Writes the figure's section into its paper's page, and its pictures beside the page.
pub(super) fn write(folder: &Path, figure: &Figure<'_>, not_run: &[NotRun]) -> Result<(), Failure> {
    let failed = |error| Failure::failed("writing the pages", format_args!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    let Figure { paper, file, rows, .. } = figure;
    let is_swept = rows.iter().flat_map(|row| &row.results).any(|under| under.lines.len() > 1);
    let compared = if is_swept { picture_of_claims(rows) } else { String::new() };
    let pictures = [
        Picture { says: "Claimed and measured, by claim and reading", end: "", svg: compared },
        Picture { says: "Measured over what it rests on", end: "-premise", svg: picture_of_premises(rows) },
    ];
    let drawn: Vec<&Picture> = pictures.iter().filter(|picture| !picture.svg.is_empty()).collect();
    let path = folder.join(format!("{paper}.md"));
    let before = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text.map_err(failed)?,
    };
    let own = section(figure, &drawn);
    let not_run: Vec<&NotRun> = not_run.iter().filter(|one| one.paper == *paper).collect();
    fs::write(&path, page(paper, sections(&before, file, own), &not_run)).map_err(failed)?;
    for Picture { end, svg, .. } in drawn {
        fs::write(folder.join(format!("{paper}-{file}{end}.svg")), svg).map_err(failed)?;
    }
    Ok(())
}

const MARK: &str = "\n## ";
const NOT_RUN: &str = "Not run";

/// The sections of a page with one replaced or added, in the order of their files. Each begins with its heading.
fn sections(before: &str, file: &str, own: String) -> Vec<String> {
    let of = |section: &str| {
        section.lines().next().is_some_and(|heading| heading.ends_with(&format!("(`{file}.yaml`)")))
    };
    let mut all: Vec<String> = before.split(MARK).skip(1).map(str::to_owned).collect();
    all.retain(|section| !of(section) && !section.starts_with(NOT_RUN));
    all.push(own);
    let name = |section: &String| {
        section.lines().next().and_then(|heading| heading.rsplit_once('(')).map(|(_, file)| file.to_owned())
    };
    all.sort_by_key(name);
    all
}

fn page(paper: &str, sections: Vec<String>, not_run: &[&NotRun]) -> String {
    let mut text = format!(
        "# The claims of {paper}\n\n`hopwise claims {paper} --pages docs/claims` writes this page. [What the papers \
         say](../papers.md)\ntells how to read it. [A reading](../../configs/papers/{paper}/reading.md) says which \
         settings are the\npaper's.\n\n{UNDATED}\n"
    );
    for section in sections {
        let _ = writeln!(text, "{MARK}{}", section.trim_end());
    }
    if !not_run.is_empty() {
        let _ = write!(text, "{MARK}{NOT_RUN}\n\n| figure | claim | missing |\n|---|---|---|\n");
        for one in not_run {
            let _ = writeln!(text, "| {} | {} | {} |", one.figure, one.says, one.needs);
        }
    }
    text
}

/// Sections that older builds have written name no day.
const UNDATED: &str = "\
A section names the day and the machine of its runs. One that does not is of 25 or 26 November 2026: two cores of a
virtual machine (AMD EPYC) made its runs. Only the time that they take depends on that.";

const COLUMNS: &str = "\
| figure | claim | claimed | rules | measured (95 % interval) | blocks | outcome |
|---|---|---|---|---|---|---|
";

/// A figure's section, from its heading's text on.
fn section(figure: &Figure<'_>, pictures: &[&Picture]) -> String {
    let Figure { paper, file, rows, made_by } = figure;
    let MadeBy { version, commit, certificate, runs, cpu_s, .. } = made_by;
    let title = rows.first().map_or(*file, |row| row.title.as_str());
    let commit = commit.as_ref().map_or(String::new(), |commit| format!("at commit {commit} "));
    let mut text = format!(
        "{title} (`{file}.yaml`)\n\n`hopwise claims {paper}/{file}` makes it again. Measured {commit}by \
         hopwise\n{version}, certificate {}.\n\n",
        certificate.get(..DIGITS).unwrap_or(certificate)
    );
    if *runs > 0 {
        let _ = writeln!(text, "Its {runs} runs take {cpu_s:.0} s of a core.{}\n", when_and_where(made_by));
    }
    for Picture { says, end, .. } in pictures {
        let _ = writeln!(text, "![{says}]({paper}-{file}{end}.svg)\n");
    }
    text.push_str(COLUMNS);
    rows.iter().for_each(|row| lines(&mut text, row));
    readings(&mut text, rows);
    text
}

/// The days and the machines of the runs, where they are known.
fn when_and_where(MadeBy { days, machines, .. }: &MadeBy) -> String {
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return String::new() };
    let when = if first == last { format!("on {last}") } else { format!("from {first} to {last}") };
    let machines: Vec<&str> = machines.iter().map(String::as_str).collect();
    format!("\nThey were made {when} ({}).", machines.join("; "))
}

/// A claim's lines in the table, one for each set of rules.
fn lines(text: &mut String, row: &Row) {
    for (nth, under) in row.results.iter().enumerate() {
        let Row { figure, says, claimed, .. } = row;
        let whose = if row.ours { "*Ours:* " } else { "" };
        let head = match (nth, &row.note) {
            (0, None) => format!("{figure} | {whose}{says} | {claimed}"),
            (0, Some(note)) => format!("{figure} | {whose}{says}. {note} | {claimed}"),
            _ => " | | ".to_owned(),
        };
        let verdict = under.verdict.in_words(under.lines.len());
        let (rules, measured, why) = (under.rules, under.measured(), under.why());
        let _ =
            writeln!(text, "| {head} | {rules} | {measured} | {} | **{verdict}**: {why} |", blocks(under));
    }
}

/// The number of blocks behind each reading; nothing where nothing was run.
fn blocks(under: &Under) -> String {
    let least = under.lines.iter().map(|line| line.number.blocks).min().unwrap_or(0);
    if least == 0 { String::new() } else { least.to_string() }
}

/// All readings of the claims that have several, under the paper's own rules. The table beside the runs has the others.
fn readings(text: &mut String, rows: &[Row]) {
    let swept = rows.iter().filter_map(|row| Some((row, row.results.first()?)));
    let swept: Vec<_> = swept.filter(|(_, under)| under.lines.len() > 1).collect();
    let Some((_, first)) = swept.first() else { return };
    let (done, measured) = match first.rules {
        ARITHMETIC => ("computed".to_owned(), "computed"),
        rules => (format!("run, here under the rules {rules}"), "measured (95 % interval)"),
    };
    let _ = write!(
        text,
        "\nThe paper leaves settings open. Each usual value of them was {done}:\n\n\
         | claim | reading | {measured} | outcome |\n|---|---|---|---|\n",
    );
    for (row, under) in swept {
        for (nth, line) in under.lines.iter().enumerate() {
            let head = if nth == 0 { row.says.as_str() } else { "" };
            let (reading, measured) = (&line.reading, &line.measured);
            let _ = writeln!(text, "| {head} | {reading} | {measured} | {}: {} |", line.outcome, line.why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_replaces_its_own_and_leaves_the_others() {
        let page_of = |sections: Vec<String>| page("dca", sections, &[]);
        let one = page_of(sections("", "fig2", "Fig. 2 (`fig2.yaml`)\n\nold\n".into()));
        let two = page_of(sections(&one, "fig1", "Fig. 1 (`fig1.yaml`)\n\nfirst\n".into()));
        let again = page_of(sections(&two, "fig2", "Fig. 2 (`fig2.yaml`)\n\nnew\n".into()));
        let headings: Vec<&str> = again.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## Fig. 1 (`fig1.yaml`)", "## Fig. 2 (`fig2.yaml`)"]);
        assert!(again.contains("first") && again.contains("new") && !again.contains("old"), "{again}");
        let not_run =
            NotRun { paper: "dca".into(), figure: "Fig. 3".into(), says: "a".into(), needs: "b".into() };
        let with = page("dca", sections(&again, "fig1", "Fig. 1 (`fig1.yaml`)\n".into()), &[&not_run]);
        let twice = page("dca", sections(&with, "fig1", "Fig. 1 (`fig1.yaml`)\n".into()), &[&not_run]);
        assert_eq!(with, twice, "the same results make the same page");
    }

    #[test]
    fn a_section_names_the_days_and_the_machines_of_its_runs() {
        let folder = std::env::temp_dir().join(format!("hopwise-claims-made-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let line = |day: &str| {
            format!("{{\"ended\":\"{day}T01:02:03Z\",\"machine\":\"AMD EPYC, 2 cores\",\"cpu_s\":2.0}}\n")
        };
        let made = |costs: String| {
            fs::write(folder.join("costs.jsonl"), costs).expect("a file");
            let mut made_by = MadeBy::us();
            made_by.add_costs(&folder).expect("costs");
            section(&Figure { paper: "dca", file: "fig1", rows: &[], made_by }, &[])
        };
        let (old, one) = (made("{\"cpu_s\":2.0}\n".to_owned()), made(line("2026-11-27")));
        let two = made(line("2026-11-28") + &line("2026-11-27"));
        fs::remove_dir_all(&folder).expect("it was there");
        assert!(old.contains("Its 1 runs take 2 s of a core.\n\n"), "{old}");
        assert!(one.contains("core.\nThey were made on 2026-11-27 (AMD EPYC, 2 cores).\n"), "{one}");
        assert!(two.contains("They were made from 2026-11-27 to 2026-11-28 (AMD EPYC, 2 cores)."), "{two}");
    }
}
