//! The pages of the book, judged anew by the figures that they print: each verdict must follow from its interval by the
//! rule of today. With `HOPWISE_WRITE_DOCS=1` a page is written with the verdicts that do.
//!
//! A page has all readings of a claim under its first rules, and the two ends of them under other rules. A verdict over
//! several readings of other rules cannot be judged anew: where an earlier rule made it, it says so.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hopwise_lab::claims::table::Under;
use hopwise_lab::claims::{ClaimOutcome, Judged, MOST_SEEDS, MeasuredClaim, Reading, choices, judge_number};
use hopwise_lab::scenario::point::MatrixPoint;
use hopwise_lab::scenario::{Claim, Scenario, Stated};

use super::super::{computed_row, empty_row, plans};
use super::*;

/// The header of tables whose verdicts an earlier rule made.
const EARLIER: &str = "| blocks | outcome |";
const OF_PRINTED: &str = " of what is printed";
/// Words behind a verdict that an earlier rule made.
const BY_EARLIER: &str = " (rule before 29 November)";

fn book(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(name)
}

/// The cells of a row.
fn cells(row: &str) -> Vec<String> {
    row.trim_start_matches("| ")
        .trim_end_matches(" |")
        .split(" | ")
        .map(|cell| cell.trim().to_owned())
        .collect()
}

/// The number at the beginning of a text, as a claim of that kind has it, and half of its last digit.
fn number(text: &str, stated: Stated) -> Option<(f64, f64)> {
    let text = text.replace('−', "-").replace(['+', '±'], "");
    let end =
        text.find(|letter: char| !letter.is_ascii_digit() && !"-.".contains(letter)).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let digits = text[..end].split_once('.').map_or(0, |(_, after)| after.len());
    let half = 0.5 * 0.1_f64.powi(i32::try_from(digits).expect("few digits"));
    Some(match stated {
        Stated::Ratio(_) => (1.0 + number / 100.0, half / 100.0),
        Stated::Value(_) => (number, half),
    })
}

/// The measured number of a cell with its interval, and half of the last digit.
fn measured_of(cell: &str, stated: Stated) -> (MeasuredClaim, f64) {
    let Some((of_cell, half)) = number(cell, stated) else { return (MeasuredClaim::default(), 0.0) };
    let ends = cell.split_once(" (").and_then(|(_, after)| after.split_once(')')?.0.split_once(" to "));
    let end = |text| number(text, stated).expect("an end of an interval").0;
    let ci95 = ends.map(|(from, to)| [end(from), end(to)]);
    (MeasuredClaim { number: Some(of_cell), ci95, blocks: 1 }, half)
}

/// The numbers of seeds that a reading may have: a page tells the least and the most of all readings.
const SEEDS: [usize; 4] = [MOST_SEEDS as usize, 5, 10, 20];

/// The result of a reading by the figures in a cell. A verdict that is there already stays, if the digits that the cell
/// lacks allow it, and for some number of seeds the reason.
fn judged_by(claim: &Claim, cell: &str, there: &str) -> Judged {
    let (measured, half) = measured_of(cell, claim.stated());
    let Some([from, to]) = measured.ci95 else {
        let (outcome, why) = judge_number(claim, &measured);
        return Judged { outcome, measured, point: None, why };
    };
    // The ends as they are printed come first, and they have all digits if they are equal.
    let by = if from == to && measured.number == Some(from) { 0.0 } else { half };
    let shifts = [0.0, -by, by];
    let ends = shifts.iter().flat_map(|low| shifts.iter().map(move |high| [from + low, to + high]));
    let all: Vec<Judged> = ends
        .flat_map(|ends| SEEDS.map(|blocks| MeasuredClaim { ci95: Some(ends), blocks, ..measured }))
        .map(|of| {
            let (outcome, why) = judge_number(claim, &of);
            Judged { outcome, measured, point: None, why }
        })
        .collect();
    let stays = all.iter().find(|judged| there == format!("{}: {}", judged.outcome, judged.why));
    let mut judged = stays.unwrap_or(&all[0]).clone();
    // The share of a printed value has more digits there than the figures that are left.
    let told = there.strip_prefix(&format!("{}: ", judged.outcome)).filter(|why| why.ends_with(OF_PRINTED));
    if let Some(told) = told.filter(|_| judged.why.ends_with(OF_PRINTED)) {
        told.clone_into(&mut judged.why);
    }
    judged
}

/// The readings of a figure under its first rules, by their names.
fn readings_of(scenario: &Scenario) -> BTreeMap<String, Reading> {
    let names = scenario.names_of_readings().expect("names");
    let open: Vec<String> = scenario.first_reading().expect("a reading").into_keys().collect();
    let asked = scenario.asked().expect("points");
    let of_point = asked.cells.into_iter().map(|cell| {
        let mut point = cell.point;
        point.retain(|path, _| open.contains(path));
        unjudged(point, &names)
    });
    of_point.map(|reading| (reading.name(), reading)).collect()
}

fn unjudged(open: MatrixPoint, names: &[(String, MatrixPoint)]) -> Reading {
    let (outcome, measured) = (ClaimOutcome::NotReproduced, MeasuredClaim::default());
    let judged = Judged { outcome, measured, point: None, why: String::new() };
    Reading { choices: choices(&open, names), open, judged, measured: String::new(), premise: None }
}

/// A section of a page with the claims of its file, as far as the verdicts of today follow from what it prints.
struct Anew<'a> {
    claims: &'a [Claim],
    readings: &'a BTreeMap<String, Reading>,
    /// The verdict of each claim, once its readings are known.
    rows: Vec<ClaimRow>,
    /// An earlier rule made the verdicts.
    is_earlier: bool,
}

impl Anew<'_> {
    /// Judges the readings of each claim by the table of them; returns it with the verdicts.
    fn table_of_readings(&mut self, lines: &[&str]) -> Vec<String> {
        let (mut written, mut nth, mut from) = (Vec::new(), 0, 0);
        let mut of_claim: Vec<Vec<Reading>> = vec![Vec::new(); self.claims.len()];
        for line in lines {
            let cells = cells(line);
            let [says, reading, measured, there] = &cells[..] else { panic!("four cells: {line}") };
            if !says.is_empty() {
                nth = place_of(says, self.claims, from);
                from = nth + 1;
            }
            let known =
                self.readings.get(reading).unwrap_or_else(|| panic!("no reading is called {reading}"));
            let judged = judged_by(&self.claims[nth], measured, there);
            written.push(format!("| {says} | {reading} | {measured} | {}: {} |", judged.outcome, judged.why));
            of_claim[nth].push(Reading { judged, measured: measured.clone(), ..known.clone() });
        }
        for (row, of) in self.rows.iter_mut().zip(of_claim).filter(|(_, of)| !of.is_empty()) {
            row.results = vec![Under::new("ns2", of)];
        }
        written
    }

    /// The row of a claim with the verdict of today.
    fn row(&mut self, line: &str, nth: usize, is_first: bool) -> String {
        let mut of_row = cells(line);
        let [.., measured, _, verdict] = &of_row[..] else { panic!("a row: {line}") };
        let is_one = !measured.contains(" readings");
        if is_one {
            let there = verdict.trim_start_matches("**").replacen("**: ", ": ", 1);
            let judged = judged_by(&self.claims[nth], measured, &there);
            let reading = Reading { judged, measured: measured.clone(), ..unjudged(MatrixPoint::new(), &[]) };
            let under = Under::new("ns2", vec![reading]);
            if is_first {
                self.rows[nth].results = vec![under.clone()];
            }
            return with_last(line, &verdict_of(&under));
        }
        match self.rows[nth].results.first().filter(|_| is_first) {
            Some(under) => {
                let told = format!(" in {} readings", under.readings.len());
                let measured = if measured.ends_with(&told) { measured.clone() } else { under.measured() };
                let place = of_row.len() - 3;
                of_row[place] = measured;
                with_last(&format!("| {} |", of_row.join(" | ")), &verdict_of(under))
            }
            None if self.is_earlier && !verdict.ends_with(BY_EARLIER) => {
                with_last(line, &format!("{verdict}{BY_EARLIER}"))
            }
            None => line.to_owned(),
        }
    }
}

fn verdict_of(under: &Under) -> String {
    format!("**{}**: {}", under.verdict.in_words(under.readings.len()), under.why())
}

/// A row with another last cell.
fn with_last(row: &str, cell: &str) -> String {
    let (before, _) = row.rsplit_once(" | ").expect("cells");
    format!("{before} | {cell} |")
}

/// The claims of a file with their rows, and its readings; `plan` has the rows of a file that is arithmetic.
enum FileOfPage {
    Plan(Vec<ClaimRow>),
    Runs(Vec<Claim>, BTreeMap<String, Reading>),
}

fn file_of(page: &Page<'_>, id: &str) -> FileOfPage {
    let path = book("configs/papers").join(page.path_of(id));
    if let Some((document, plan)) = plans::load(&path).expect("it is read") {
        let computed = plans::judge(&document, &plan).expect("arithmetic");
        let row = |(claim, computed)| computed_row("", &plan.title, claim, computed);
        return FileOfPage::Plan(plan.claims.iter().zip(computed).map(row).collect());
    }
    let scenario = Scenario::load(&path, &["mac.rules=ns2".to_owned()]).expect("it is read");
    FileOfPage::Runs(scenario.claims().expect("claims").to_vec(), readings_of(&scenario))
}

/// A section with the verdicts of today.
fn judged_anew(page: &Page<'_>, section: &str) -> String {
    let Some(id) = id_of(section) else { return section.to_owned() };
    let (head, table) = section.split_once("\n| figure |").expect("a table");
    let (head, table) = (format!("{head}\n"), format!("| figure |{table}"));
    let (claims, readings) = match file_of(page, id) {
        FileOfPage::Plan(rows) => {
            let mut text = format!("{head}{COLUMNS}");
            rows.iter().for_each(|row| lines(&mut text, row));
            told_jointly(&mut text, &rows);
            readings(&mut text, &rows);
            return text;
        }
        FileOfPage::Runs(claims, readings) => (claims, readings),
    };
    let rows = claims.iter().map(|claim| empty_row("", "", claim)).collect();
    let is_earlier = table.contains(EARLIER);
    let mut anew = Anew { claims: &claims, readings: &readings, rows, is_earlier };
    let is_row =
        |line: &&str| line.starts_with('|') && !line.starts_with("| figure |") && !line.starts_with("|---");
    let (first, second) = match table.split_once("\nThe paper leaves settings open.") {
        Some((first, second)) => (first, format!("The paper leaves settings open.{second}")),
        None => (table.as_str(), String::new()),
    };
    let of_second = |line: &&str| is_row(line) && !line.starts_with("| claim |");
    let of_readings = anew.table_of_readings(&second.lines().filter(of_second).collect::<Vec<_>>());
    let mut text = format!("{head}{COLUMNS}");
    let (mut nth, mut from) = (0, 0);
    for line in first.lines().filter(is_row) {
        let is_first = !line.starts_with("|  |");
        if is_first {
            nth = place_of(cells(line)[1].trim_start_matches("*Ours:* "), &claims, from);
            from = nth + 1;
        }
        let _ = writeln!(text, "{}", anew.row(line, nth, is_first));
    }
    told_jointly(&mut text, &anew.rows);
    if !second.is_empty() {
        let kept: Vec<&str> = second.lines().take_while(|line| !of_second(line)).collect();
        let _ = writeln!(text, "\n{}\n{}", kept.join("\n"), of_readings.join("\n"));
    }
    text
}

/// The place of the first claim, from a place on, that says this. A note may stand behind it.
fn place_of(says: &str, claims: &[Claim], from: usize) -> usize {
    let is_meant = |claim: &Claim| {
        says.strip_prefix(&claim.says).is_some_and(|note| note.is_empty() || note.starts_with(". "))
    };
    let found = claims.iter().skip(from).position(is_meant);
    from + found.unwrap_or_else(|| panic!("no claim says: {says}"))
}

fn page_anew(page: &Page<'_>, text: &str) -> String {
    let digest_of = |id: &str| {
        let document = Document::load(&book("configs/papers").join(page.path_of(id))).ok()?;
        Some(shortened(&document.digest()).to_owned())
    };
    let mut parts = text.split(MARK);
    let mut written = parts.next().unwrap_or_default().trim_end().to_owned() + "\n";
    for section in parts {
        let section = marked(&judged_anew(page, section), page, &digest_of);
        let _ = writeln!(written, "{MARK}{}", section.trim_end());
    }
    written
}

#[test]
fn the_verdicts_of_the_book_follow_from_the_figures_beside_them() {
    let papers = ["ack_holding", "dca", "delayed_ack_chain", "pgy", "tda"].map(Page::Paper);
    let today = Page::Radio { profile: "ht20-mcs7", first_reading: true, parts: 20 };
    for page in papers.iter().chain([&today]) {
        let path = book(&format!("docs/claims/{}.md", page.name()));
        let there = fs::read_to_string(&path).expect("a page");
        let anew = page_anew(page, &there);
        assert_eq!(page_anew(page, &anew), anew, "{}: twice is once", page.name());
        if std::env::var_os("HOPWISE_WRITE_DOCS").is_some() {
            fs::write(&path, anew).expect("it is written");
        } else {
            let differs = there.lines().zip(anew.lines()).find(|(old, new)| old != new);
            assert!(there == anew, "{}: HOPWISE_WRITE_DOCS=1 writes it anew: {differs:?}", page.name());
        }
    }
}

#[test]
fn a_verdict_stays_where_the_digits_that_are_not_printed_allow_it() {
    let path = book("configs/papers/dca/fig02b.yaml");
    let scenario = Scenario::load(&path, &[]).expect("a file");
    let claims = scenario.claims().expect("claims");
    // At least 3 % more.
    let of = |cell: &str, there: &str| judged_by(&claims[1], cell, there).outcome;
    assert_eq!(of("+4.0 % (+3.1 % to +4.9 %)", ""), ClaimOutcome::Reproduced);
    assert_eq!(
        of("+4.0 % (+2.9 % to +5.1 %)", "reproduced: within what is claimed"),
        ClaimOutcome::Undecided
    );
    let of_few = |there: &str| judged_by(&claims[1], "+4.0 % (+2.0 % to +6.0 %)", there).why;
    let more = "in tendency, the interval goes beyond what is claimed";
    assert_eq!(of_few(""), more);
    let left = format!("{more}, and would with 40 seeds");
    assert_eq!(of_few(&format!("undecided: {left}")), left, "twenty seeds may say so");
    let barely = "undecided: in tendency, the interval goes beyond what is claimed";
    assert_eq!(of("+4.0 % (+3.0 % to +5.0 %)", barely), ClaimOutcome::Undecided);
    assert_eq!(of("+4.0 % (+3.0 % to +5.0 %)", "contradicted: the opposite holds"), ClaimOutcome::Reproduced);
    assert_eq!(of("nothing", ""), ClaimOutcome::NotReproduced);
}
