//! Pages with results say when they were measured; the bibliography says of each paper when and where it appeared.

use std::fs;
use std::path::Path;

use hopwise_agents::registry::{self, Kind};

fn page(place: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(place)).expect("the page")
}

/// A text begins with a date such as 2026-11-25.
fn begins_with_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut is_number = |digits: usize| {
        parts.next().and_then(|part| part.get(..digits)).is_some_and(|part| part.parse::<u16>().is_ok())
    };
    is_number(4) && is_number(2) && is_number(2)
}

/// A paragraph under a table: `*Measured on DATE …commit ID…*`.
fn is_origin(words: &str) -> bool {
    let rest = ["*Measured on ", "*Counted on "].iter().find_map(|begins| words.strip_prefix(begins));
    rest.is_some_and(|rest| begins_with_date(rest) && rest.contains(" commit") && rest.ends_with('*'))
}

/// The paragraph with which a text begins, in one line.
fn first_paragraph(text: &str) -> String {
    let lines = text.trim_start().lines().take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// A machine of ours that measured; behind it stands its processor.
const MACHINE: &str = "on two cores of a virtual machine (";

#[test]
fn each_table_of_performance_says_when_on_what_and_at_which_commit() {
    let page = page("docs/notebook/performance.md");
    let tables: Vec<_> = page.split("```text\n").skip(1).collect();
    assert!(tables.len() >= 5, "{}", tables.len());
    for table in tables {
        let (rows, after) = table.split_once("```\n").expect("it ends");
        let told = first_paragraph(after);
        assert!(
            is_origin(&told) && told.contains(MACHINE),
            "under {:?} stands {told:?}",
            rows.lines().nth(1)
        );
    }
    check_origins(
        "docs/notebook/performance.md",
        &["| change | before |", "| | a segment |", "| case | unit |"],
        MACHINE,
    );
}

/// The tables of a page with these words in their heads have their origin below them, with a word that it needs.
fn check_origins(place: &str, heads: &[&str], needed: &str) {
    let page = page(place);
    for head in heads {
        let tables: Vec<_> = page.split(&format!("\n{head}")).skip(1).collect();
        assert!(!tables.is_empty(), "no {head} in {place}");
        for table in tables {
            let (_, after) = table.split_once("\n\n").expect("it ends");
            let told = first_paragraph(after);
            assert!(is_origin(&told) && told.contains(needed), "{place}: under {head} stands {told:?}");
        }
    }
}

#[test]
fn tables_of_results_say_when_and_at_which_commit() {
    let agreement = ["| hops | fixed", "| Mbit/s | hops | RTS | routes | ns-3", "| MCS | hops | d | ns-3"];
    check_origins("docs/notebook/agreement.md", &agreement, MACHINE);
    check_origins("docs/notebook/air.md", &["| agents | drop-tail of 100"], "");
    check_origins("docs/notebook/today.md", &["| sender | receiver |"], "");
    check_origins("docs/notebook/senders.md", &["| hops |"], "");
    check_origins(
        "docs/notebook/train.md",
        &["| without |", "| hops |", "| scene", "| agents |", "| MAC |", "| path |"],
        "",
    );
    check_origins("docs/notebook/routing.md", &["| hops |", "| speed |", "| | 4 hops |"], "");
    let words = "Measured on 2026-11-25 at commit ";
    let delay = page("docs/notebook/delay.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(delay.contains(words), "docs/notebook/delay.md");
}

/// Sections that tell neither day nor machine are older than the sentence about them in the page's head.
#[test]
fn pages_of_claims_say_when_on_what_and_at_which_commit() {
    for paper in ["ack_holding", "dca", "delayed_ack_chain", "pgy", "tda"] {
        let page = page(&format!("docs/claims/{paper}.md"));
        let (head, sections) = page.split_once("\n## ").expect("it has sections");
        assert!(head.contains("the days and the machine of its runs. One that"), "{paper}: {head}");
        for section in sections.split("\n## ").filter(|section| section.contains("runs take ")) {
            assert!(section.contains("Measured at commit "), "{paper}: {}", first_paragraph(section));
        }
    }
}

/// A row of a table names an agent, with its parameters or in a list.
fn is_in_a_row(page: &str, name: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let mut rows = page.lines().filter(|line| line.starts_with('|'));
    rows.any(|row| row.split(|letter| !is_of_name(letter)).any(|word| word == name))
}

#[test]
fn the_page_of_delays_has_a_row_for_each_agent() {
    // With SACK it has the figures of `newreno`, and the page says so.
    const EQUAL: &str = "reno";
    let page = page("docs/notebook/delay.md");
    let kinds = [Kind::Receiver, Kind::Sender, Kind::BaseStation];
    let names = kinds.into_iter().flat_map(registry::names).filter(|name| *name != EQUAL);
    let missing: Vec<_> = names.filter(|name| !is_in_a_row(&page, name)).collect();
    assert!(missing.is_empty(), "docs/notebook/delay.md lacks {missing:?}");
    assert!(page.contains(&format!("`{EQUAL}` has the figures of `newreno`")));
    assert!(is_in_a_row("| `a` with `[b, c:4]` |", "c") && !is_in_a_row("`d`\n| `dd` |", "d"));
}

/// The rows of the bibliography.
fn papers(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.matches('|').count() == 3);
    rows.filter(|row| !row.ends_with("| paper |")).collect()
}

/// Rows that neither have a DOI nor say why they have none.
fn without_doi(page: &str) -> Vec<&str> {
    let told = [
        "https://doi.org/10.",
        "no DOI",
        "DOI not known to us",
        "DOI: not known to us",
        "our own",
        "above",
        "| as `",
    ];
    papers(page).into_iter().filter(|row| !told.iter().any(|told| row.contains(told))).collect()
}

#[test]
fn each_paper_has_its_doi_or_the_reason_why_it_has_none() {
    assert_eq!(without_doi(&page("docs/bibliography.md")), Vec::<&str>::new());
    assert_eq!(without_doi("| name | paper |\n|---|---|\n| x | A: *B*. 2004 |\n"), ["| x | A: *B*. 2004 |"]);
}

/// A paper has a year, or is a standard, or the entry says that none is known.
#[test]
fn each_paper_of_the_bibliography_has_a_year_or_says_that_none_is_known() {
    let page = page("docs/bibliography.md");
    let rows = papers(&page);
    assert!(rows.len() > 30, "{}", rows.len());
    for row in rows {
        let has_year = row
            .split(|c: char| !c.is_ascii_digit())
            .any(|number| number.len() == 4 && (number.starts_with("19") || number.starts_with("20")));
        let is_standard =
            ["RFC ", "draft-", "above", "as `", "our own"].iter().any(|word| row.contains(word));
        assert!(has_year || is_standard || row.contains("not known to us"), "{row}");
    }
}
