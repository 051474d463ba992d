//! Writes the pages of `docs/claims`, which have a section for each file of a figure. Each section names the build that
//! measured it, and is replaced when its figure is run again.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use hopwise_lab::claims::table::{self, ClaimRow};
use hopwise_lab::folder;
use hopwise_lab::located::Document;
use hopwise_lab::plain::markdown;
use hopwise_lab::report::{picture_of_claims, picture_of_premises};

use super::{ARITHMETIC, MadeBy, NotRun, Page};
use hopwise_daemon::failure::Failure;

/// Digits of a hash that are enough to identify it.
const DIGITS: usize = 16;

/// A figure that was run: its paper, its file without the ending, the digest of that, and its claims.
pub(super) struct RunFigure<'a> {
    pub(super) paper: &'a str,
    pub file: &'a str,
    pub(super) digest: String,
    pub(super) rows: &'a [ClaimRow],
    pub(super) made_by: MadeBy,
}

/// A picture of a section: its name for readers, the end of its file's name, and itself.
struct Picture {
    says: &'static str,
    end: &'static str,
    svg: String,
}

/// Writes the figure's section into its paper's page, and its pictures into the page's folder. The other sections say
/// whether their files in the folder `papers` have changed since.
pub(super) fn write(
    folder: &Path,
    papers: &Path,
    (page, figure): (&Page<'_>, &RunFigure<'_>),
    not_run: &[NotRun],
) -> Result<(), Failure> {
    let failed = |error| Failure::failed("writing the pages", format_args!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    let RunFigure { paper, file, rows, .. } = figure;
    let (name, id) = (page.name(), page.id(paper, file));
    let is_swept = rows.iter().flat_map(|row| &row.results).any(|under| under.readings.len() > 1);
    let compared = if is_swept { picture_of_claims(rows) } else { String::new() };
    let pictures = [
        Picture { says: "Claimed and measured, by claim and reading", end: "", svg: compared },
        Picture { says: "Measured over what it rests on", end: "-premise", svg: picture_of_premises(rows) },
    ];
    let drawn: Vec<&Picture> = pictures.iter().filter(|picture| !picture.svg.is_empty()).collect();
    let name = format!("{name}.md");
    let before = match folder::read(folder, &name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text.map_err(failed)?,
    };
    let digest_of = |id: &str| {
        let document = Document::load(&papers.join(page.path_of(id))).ok()?;
        Some(shortened(&document.digest()).to_owned())
    };
    let own = section(page, figure, &drawn);
    let sections = sections(&before, &id, own).into_iter();
    let sections = sections.map(|section| marked(&section, page, &digest_of)).collect();
    let not_run: Vec<&NotRun> = not_run.iter().filter(|one| page.tells_of(&one.paper)).collect();
    folder::write(folder, &name, text_of(page, sections, &not_run)).map_err(failed)?;
    for Picture { end, svg, .. } in drawn {
        folder::write(folder, format!("{}{end}.svg", page.stem(paper, file)), svg).map_err(failed)?;
    }
    Ok(())
}

const MARK: &str = "\n## ";
const NOT_RUN: &str = "Not run";

/// The name of a section's figure on its page, by the heading.
fn id_of(section: &str) -> Option<&str> {
    section.lines().next()?.rsplit_once("(`")?.1.strip_suffix(".yaml`)")
}

/// The sections of a page with one replaced or added, in the order of their files. Each begins with its heading.
fn sections(before: &str, id: &str, own: String) -> Vec<String> {
    let mut all: Vec<String> = before.split(MARK).skip(1).map(str::to_owned).collect();
    all.retain(|section| id_of(section) != Some(id) && !section.starts_with(NOT_RUN));
    all.push(own);
    let name = |section: &String| id_of(section).map(|id| format!("{id}.yaml"));
    all.sort_by_key(name);
    all
}

/// The words before the digest of a section's file.
const DIGEST: &str = "of a file with\ndigest ";
const CHANGED: &str = "**The file has changed since.**";

/// A section that says whether its file has changed since. One that tells no digest stays as it is.
fn marked(section: &str, page: &Page<'_>, digest_of: &dyn Fn(&str) -> Option<String>) -> String {
    let told = section.split_once(DIGEST).and_then(|(_, after)| after.get(..DIGITS));
    let (Some(told), Some(id)) = (told, id_of(section)) else { return section.to_owned() };
    let mut paragraphs: Vec<&str> = section.split("\n\n").collect();
    paragraphs.retain(|paragraph| !paragraph.starts_with(CHANGED));
    let mark = format!(
        "{CHANGED} `{} --pages docs/claims` has still to be run under the\n\
         settings that it has now.",
        page.command(id)
    );
    if digest_of(id).as_deref() != Some(told) {
        let is_shown = |paragraph: &&str| paragraph.starts_with('|');
        let place = paragraphs.iter().position(is_shown).unwrap_or(paragraphs.len());
        paragraphs.insert(place, &mark);
    }
    paragraphs.join("\n\n")
}

fn shortened(hash: &str) -> &str {
    hash.get(..DIGITS).unwrap_or(hash)
}

fn text_of(page: &Page<'_>, sections: Vec<String>, not_run: &[&NotRun]) -> String {
    let mut text = page.head();
    for section in sections {
        let _ = writeln!(text, "{MARK}{}", section.trim_end());
    }
    if !not_run.is_empty() {
        let _ = write!(text, "{MARK}{NOT_RUN}\n\n| figure | claim | missing |\n|---|---|---|\n");
        for NotRun { figure, says, needs, .. } in not_run {
            let _ = writeln!(text, "| {} |", [figure, says, needs].map(|of| markdown(of)).join(" | "));
        }
    }
    text
}

const COLUMNS: &str = "\
| figure | claim | claimed | rules | measured (95 % interval) | seeds | outcome |
|---|---|---|---|---|---|---|
";

/// A figure's section, from its heading's text on.
fn section(page: &Page<'_>, figure: &RunFigure<'_>, pictures: &[&Picture]) -> String {
    let RunFigure { paper, file, digest, rows, made_by } = figure;
    let MadeBy { version, certificate, runs, cpu_s, .. } = made_by;
    let title = markdown(rows.first().map_or(*file, |row| row.title.as_str()));
    let commit =
        made_by.commits().map_or(String::new(), |commit| format!("at commit {} ", markdown(&commit)));
    let id = page.id(paper, file);
    let mut text = format!(
        "{title} (`{id}.yaml`)\n\n`{}` makes it again. Measured {commit}by \
         hopwise\n{}, certificate {}, {DIGEST}{}.\n\n",
        page.command(&id),
        markdown(version),
        markdown(shortened(certificate)),
        shortened(digest)
    );
    if *runs > 0 {
        let origin = made_by
            .origin()
            .map_or(String::new(), |origin| format!("\nThey were made {}.", markdown(&origin)));
        let _ = writeln!(text, "Its {runs} runs take {cpu_s:.0} s of a core.{origin}\n");
    }
    for Picture { says, end, .. } in pictures {
        let _ = writeln!(
            text,
            "{says}: `{}{end}.svg`, drawn by\n`{} --pages docs/claims`.\n",
            page.stem(paper, file),
            page.command(&id)
        );
    }
    text.push_str(COLUMNS);
    rows.iter().for_each(|row| lines(&mut text, row));
    told_jointly(&mut text, rows);
    readings(&mut text, rows);
    text
}

fn told_jointly(text: &mut String, rows: &[ClaimRow]) {
    let _ = table::jointly(rows).map(|jointly| writeln!(text, "\nUnder the paper's own rules {jointly}."));
}

/// A claim's lines in the table, one for each set of rules.
fn lines(text: &mut String, row: &ClaimRow) {
    for (nth, under) in row.results.iter().enumerate() {
        let [figure, says, claimed] = [&row.figure, &row.says, &row.claimed].map(|of| markdown(of));
        let whose = if row.ours { "*Ours:* " } else { "" };
        let head = match (nth, &row.note) {
            (0, None) => format!("{figure} | {whose}{says} | {claimed}"),
            (0, Some(note)) => format!("{figure} | {whose}{says}. {} | {claimed}", markdown(note)),
            _ => " | | ".to_owned(),
        };
        let verdict = markdown(&under.verdict.in_words(under.readings.len()));
        let (rules, measured, why) = (under.rules, markdown(&under.measured()), markdown(&under.why()));
        let seeds = under.seeds().unwrap_or_default();
        let _ = writeln!(text, "| {head} | {rules} | {measured} | {seeds} | **{verdict}**: {why} |");
    }
}

/// All readings of the claims that have several, under the paper's own rules. The table in the runs' folder has all
/// rules.
fn readings(text: &mut String, rows: &[ClaimRow]) {
    let swept = rows.iter().filter_map(|row| Some((row, row.results.first()?)));
    let swept: Vec<_> = swept.filter(|(_, under)| under.readings.len() > 1).collect();
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
        for (nth, reading) in under.readings.iter().enumerate() {
            let head = if nth == 0 { row.says.as_str() } else { "" };
            let verdict = format!("{}: {}", reading.judged.outcome, reading.judged.why);
            let cells = [head, &reading.name(), &reading.measured, &verdict].map(markdown);
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }
}

#[cfg(test)]
mod anew;

#[cfg(test)]
mod tests {
    use super::*;

    const DCA: Page<'_> = Page::Paper("dca");

    #[test]
    fn a_section_replaces_its_own_and_leaves_the_others() {
        let page_of = |sections: Vec<String>| text_of(&DCA, sections, &[]);
        let one = page_of(sections("", "fig2", "Fig. 2 (`fig2.yaml`)\n\nstale\n".into()));
        let two = page_of(sections(&one, "fig1", "Fig. 1 (`fig1.yaml`)\n\nfirst\n".into()));
        let again = page_of(sections(&two, "fig2", "Fig. 2 (`fig2.yaml`)\n\nnew\n".into()));
        let headings: Vec<&str> = again.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## Fig. 1 (`fig1.yaml`)", "## Fig. 2 (`fig2.yaml`)"]);
        assert!(again.contains("first") && again.contains("new") && !again.contains("stale"), "{again}");
        let not_run =
            NotRun { paper: "dca".into(), figure: "Fig. 3".into(), says: "a".into(), needs: "b".into() };
        let with = text_of(&DCA, sections(&again, "fig1", "Fig. 1 (`fig1.yaml`)\n".into()), &[&not_run]);
        let twice = text_of(&DCA, sections(&with, "fig1", "Fig. 1 (`fig1.yaml`)\n".into()), &[&not_run]);
        assert_eq!(with, twice, "the same results make the same page");
    }

    #[test]
    fn the_pages_of_the_book_have_the_head_that_is_written() {
        for paper in ["ack_holding", "dca", "delayed_ack_chain", "pgy", "tda"] {
            let there =
                fs::read_to_string(format!("{}/../../docs/claims/{paper}.md", env!("CARGO_MANIFEST_DIR")))
                    .expect("a page");
            assert!(
                there.starts_with(&text_of(&Page::Paper(paper), Vec::new(), &[])),
                "docs/claims/{paper}.md has another head"
            );
        }
        let today = Page::Radio { profile: "ht20-mcs7", first_reading: true, parts: 20 };
        let there =
            fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/claims/over-ht20-mcs7.md"))
                .expect("a page");
        let head = text_of(&today, Vec::new(), &[]);
        assert!(there.starts_with(&head), "docs/claims/over-ht20-mcs7.md has another head: {head}");
    }

    #[test]
    fn words_of_a_file_are_text_on_its_page() {
        let not_run = NotRun {
            paper: "dca".into(),
            figure: "![a](b)".into(),
            says: "[x](javascript:1)".into(),
            needs: "a \\| b".into(),
        };
        let page = text_of(&DCA, Vec::new(), &[&not_run]);
        assert!(page.ends_with("| !\\[a\\](b) | \\[x\\](javascript:1) | a \\\\\\| b |\n"), "{page}");
    }

    #[test]
    fn the_version_of_a_trial_is_text_on_its_page() {
        let mut made_by = MadeBy::us();
        made_by.version = "<img src=x>\n\n## [a](b)".into();
        let figure = RunFigure { paper: "dca", file: "fig1", digest: String::new(), rows: &[], made_by };
        let written = section(&DCA, &figure, &[]);
        assert!(written.contains("hopwise\n\\<img src=x\\>??## \\[a\\](b), certificate"), "{written}");
    }

    /// A section of a file with that digest, as it is written.
    fn of_digest(digest: &str) -> String {
        let digest = digest.to_owned();
        let figure = RunFigure { paper: "dca", file: "fig1", digest, rows: &[], made_by: MadeBy::us() };
        section(&DCA, &figure, &[])
    }

    #[test]
    fn a_section_says_that_its_file_has_changed_until_it_is_run_again() {
        let [old, new] = ["a".repeat(DIGITS), "b".repeat(DIGITS)];
        let written = of_digest(&old);
        assert_eq!(marked(&written, &DCA, &|_| Some(old.clone())), written);
        let changed = marked(&written, &DCA, &|file| (file == "fig1").then(|| new.clone()));
        let mark =
            "\n\n**The file has changed since.** `hopwise claims dca/fig1 --pages docs/claims` has still to";
        assert!(changed.contains(mark) && changed.find(mark) < changed.find("| figure |"), "{changed}");
        assert_eq!(marked(&changed, &DCA, &|_| Some(new.clone())), changed, "it is said once");
        assert_eq!(marked(&changed, &DCA, &|_| Some(old.clone())), written, "the file is the old one again");
        let page = text_of(&DCA, sections(&text_of(&DCA, vec![changed], &[]), "fig1", of_digest(&new)), &[]);
        assert!(page.contains(&new) && !page.contains(CHANGED) && !page.contains(&old), "{page}");
    }

    #[test]
    fn a_section_that_tells_no_digest_keeps_a_mark_that_was_written_by_hand_until_it_is_run_again() {
        let by_hand =
            format!("Fig. 1 (`fig1.yaml`)\n\nMeasured by hopwise\nv.\n\n{CHANGED} It has to be run.\n");
        assert_eq!(marked(&by_hand, &DCA, &|_| Some("a".repeat(DIGITS))), by_hand);
        let before = text_of(&DCA, vec![by_hand], &[]);
        let again = text_of(&DCA, sections(&before, "fig1", of_digest(&"a".repeat(DIGITS))), &[]);
        assert!(before.contains(CHANGED) && !again.contains(CHANGED), "{again}");
    }
}
