//! The papers' claims as files and as a command.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopwise_lab::claims::plans;
use hopwise_lab::scenario::Scenario;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    files.sort();
    files
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml")
}

/// A name in a reading is a file's, or ends in `*` for all that begin so.
#[test]
fn every_paper_has_a_reading_that_names_each_of_its_files() {
    let mut readings = 0;
    for file in files(Path::new("configs/papers")) {
        let Some(paper) = file.parent().filter(|folder| is_yaml(&file) && !folder.ends_with("papers")) else {
            continue;
        };
        let reading = paper.join("reading.md");
        let text = std::fs::read_to_string(&reading).unwrap_or_else(|e| panic!("{}: {e}", reading.display()));
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut named = text.split('`').skip(1).step_by(2).map(|word| word.trim_end_matches(".yaml"));
        let is_named = named.any(|word| match word.strip_suffix('*') {
            Some(begins) => !begins.is_empty() && name.starts_with(begins),
            None => word == name,
        });
        assert!(is_named, "{} says nothing of {name}", reading.display());
        readings += 1;
    }
    assert!(readings > 30, "{readings}");
}

#[test]
fn every_figure_is_a_scenario_with_a_title_and_something_that_is_said_of_it() {
    let mut count = 0;
    for file in files(Path::new("configs/papers")) {
        if file.ends_with("not-run.yaml") || !is_yaml(&file) {
            continue;
        }
        if let Some((document, plan)) = plans::load(&file).expect("it is read") {
            let judged = plans::judge(&document, &plan).unwrap_or_else(|r| panic!("{}: {r}", file.display()));
            assert!(!judged.is_empty() && !plan.title.is_empty(), "{}", file.display());
            count += judged.len();
            continue;
        }
        for rules in ["ns2", "standard"] {
            let scenario = Scenario::load(&file, &[format!("mac.rules={rules}")]).expect("it is read");
            let asked = scenario.asked().unwrap_or_else(|refusal| panic!("{}: {refusal}", file.display()));
            assert!(asked.title.is_some(), "{}", file.display());
            for cell in &asked.cells {
                let there = scenario.at(cell).expect("a point");
                for arm in &asked.arms {
                    there
                        .under(arm)
                        .and_then(|arm| arm.prepare(1))
                        .unwrap_or_else(|refusal| panic!("{}: {refusal}", file.display()));
                }
            }
            let claims = scenario.claims().unwrap_or_else(|refusal| panic!("{}: {refusal}", file.display()));
            assert!(!claims.is_empty(), "{}", file.display());
            // The other setting's lines belong to the same claims.
            count += if rules == "ns2" { claims.len() } else { 0 };
        }
    }
    assert!(count > 70, "{count}");
    let measured = std::fs::read_to_string("docs/claims.md").expect("it is there");
    let told = measured.lines().filter(|line| line.contains("| **") && !line.starts_with("|  |")).count();
    assert_eq!(told, count, "docs/claims.md is of other files; scripts/claims makes it anew");
}

#[test]
fn a_quick_look_at_a_paper_says_what_is_claimed_measured_and_why() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("claims");
    let _ = std::fs::remove_dir_all(&out);
    let table = out.join("claims.md").display().to_string();
    let folder = out.join("runs").display().to_string();
    std::fs::create_dir_all(&out).expect("a folder");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_hopwise"))
            .args(arguments)
            .args(["--quick", "--out", &folder, "--markdown", &table])
            .output()
            .expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), output.stderr)
    };
    let (status, told, _) = run(&["claims", "delayed_ack_chain"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(
        told.contains("over 10 % more than one for each\n  claimed             at least +10.0 %\n"),
        "{told}"
    );
    assert!(told.contains("under the papers' own rules: "), "{told}");
    let (again, told_again, _) = run(&["claims", "delayed_ack_chain"]);
    assert_eq!((again, told_again), (status, told), "what has been run is read");
    let text = std::fs::read_to_string(&table).expect("the table");
    assert!(text.contains("| paper, figure | what it says |") && text.contains("**"), "{text}");
    let made_by = format!("Measured by hopwise {}, ", hopwise_lab::VERSION);
    assert!(text.contains(&made_by) && text.contains(&hopwise_lab::sim::certificate_hash()), "{text}");
    let (status, both, _) = run(&["claims", "delayed_ack_chain", "tda"]);
    assert_eq!(status, Some(0));
    assert!(["delayed_ack_chain Fig. 8: ", "tda Fig. 3"].iter().all(|paper| both.contains(paper)), "{both}");
    let (status, _, error) = run(&["claims", "nobody"]);
    assert_eq!(status, Some(2));
    assert!(String::from_utf8_lossy(&error).contains("no paper is called `nobody`: ack_holding, dca"));
    let _ = std::fs::remove_dir_all(&out);
}

#[test]
fn a_folder_without_papers_is_refused() {
    let done = Command::new(env!("CARGO_BIN_EXE_hopwise")).args(["claims", "--papers", "docs"]).output();
    let done = done.expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && said.contains("it has no folder of a paper"), "{said}");
}

#[test]
fn figures_that_are_arithmetic_are_computed_with_the_papers_errata() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("plans");
    let papers = out.join("papers");
    let _ = std::fs::remove_dir_all(&out);
    std::fs::create_dir_all(papers.join("ack_holding")).expect("a folder");
    for figure in ["fig02", "fig05", "fig06", "fig07", "fig08"] {
        let name = format!("ack_holding/{figure}.yaml");
        std::fs::copy(Path::new("configs/papers").join(&name), papers.join(&name)).expect("a figure");
    }
    std::fs::write(papers.join("not-run.yaml"), "[]").expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_hopwise"))
        .args(["claims", "--papers", &papers.display().to_string(), "--out", &out.display().to_string()])
        .output()
        .expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}");
    for part in [
        "ack_holding Fig. 2: ",
        "  claimed             at most 1\n  arithmetic          2: contradicted, the arithmetic says the opposite\n",
        "ack_holding Fig. 5: ",
        "  arithmetic          8: not reproduced",
        "ack_holding Fig. 8: ",
    ] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    let _ = std::fs::remove_dir_all(&out);
}

#[test]
fn a_claim_about_an_arm_that_there_is_not_is_refused() {
    let text = std::fs::read_to_string("configs/papers/dca/fig17.yaml").expect("a file");
    let scenario = Scenario::parse("fig17", &text.replace("arm: daa", "arm: dada"), &[]).expect("it is read");
    let refusal = scenario.claims().expect_err("no such arm").to_string();
    assert!(refusal.contains("no arm is called `dada`"), "{refusal}");
}

#[test]
fn the_page_of_papers_says_what_the_measured_table_says_under_the_papers_own_rules() {
    let read = |name: &str| std::fs::read_to_string(name).expect("a text");
    let (page, measured) = (read("docs/papers.md"), read("docs/claims.md"));
    let mut outcomes = Vec::new();
    for line in measured.lines().filter(|line| line.contains("| **") && !line.starts_with("|  |")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [figure, says, claimed, _, measured, outcome] = cells[..] else { panic!("six cells: {line}") };
        let says = says.split(". ").next().unwrap_or(says);
        let outcome = outcome.split(':').next().unwrap_or(outcome);
        let row = format!("| {figure} | {says} | {claimed} | {measured} | {outcome} |");
        assert!(page.contains(&row), "docs/papers.md lacks: {row}");
        outcomes.push(outcome);
    }
    let count = |wanted: &str| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    assert!(outcomes.len() > 30, "{}", outcomes.len());
    let told = format!(
        "{} of {} claims are reproduced, {} are not, {} are contradicted",
        count("**reproduced**"),
        outcomes.len(),
        count("**not reproduced**"),
        count("**contradicted**")
    );
    for (name, text) in [("README.md", read("README.md")), ("docs/papers.md", page)] {
        assert!(text.contains(&told), "{name} does not say: {told}");
    }
}
