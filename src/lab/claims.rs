//! `hopwise claims`: compares the claims of papers about these agents with runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hopwise_lab::claims::plans::{self, Computed, PlanClaim};
use hopwise_lab::claims::{Outcome, claimed, judge, measured};
use hopwise_lab::scenario::{Claim, Scenario};
use serde::Deserialize;

use crate::failure::{Failure, printed};
use crate::lab::trial::completed;

mod arguments;
mod printing;

pub(crate) use arguments::Arguments;

/// Rules under which a figure is run.
struct Setting {
    name: &'static str,
    sets: &'static [&'static str],
}

const STATIC: [Setting; 2] = [
    Setting { name: "ns2", sets: &["mac.rules=ns2"] },
    Setting { name: "standard", sets: &["mac.rules=standard"] },
];

const AODV: [Setting; 3] = [
    Setting { name: "ns2", sets: &["mac.rules=ns2", "routing.rules=ns2"] },
    Setting { name: "ns2, RFC 3561", sets: &["mac.rules=ns2", "routing.rules=rfc3561"] },
    Setting { name: "standard, RFC 3561", sets: &["mac.rules=standard", "routing.rules=rfc3561"] },
];

const QUICK_SEEDS: u32 = 2;

/// A figure's claim, with its result under each setting.
#[derive(Debug)]
struct Row {
    paper: String,
    figure: String,
    says: String,
    note: Option<String>,
    claimed: String,
    judged: Vec<Judged>,
}

/// Result of a claim under a setting.
#[derive(Debug)]
struct Judged {
    setting: &'static str,
    measured: String,
    outcome: Outcome,
    why: String,
}

/// A figure that cannot be run here: `not-run.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotRun {
    paper: String,
    figure: String,
    says: String,
    needs: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (paper, file) in files(arguments)? {
        for row in figure(arguments, &paper, &file)? {
            printed(printing::row(&row))?;
            rows.push(row);
        }
    }
    let not_run = not_run(arguments)?;
    printed(printing::not_run(&not_run))?;
    if let Some(file) = &arguments.markdown {
        fs::write(file, printing::markdown(&rows, &not_run)).map_err(|error| {
            Failure::failed("writing the table", format_args!("{}: {error}", file.display()))
        })?;
    }
    printed(printing::sums(&rows, &not_run))
}

/// Papers and their figures' files, in the order of their names.
fn files(arguments: &Arguments) -> Result<Vec<(String, PathBuf)>, Failure> {
    let papers = list(&arguments.papers).map_err(|error| {
        let problem =
            format!("{error}; expected the papers' folders: name the folder that has them with --papers");
        Failure::refused(arguments.papers.display().to_string(), problem)
    })?;
    let names: Vec<String> = papers.iter().filter(|path| path.is_dir()).map(|path| name_of(path)).collect();
    if let Some(paper) = arguments.chosen.iter().find(|paper| !names.contains(paper)) {
        let problem = format!("no paper is called `{paper}`: {}", names.join(", "));
        return Err(Failure::refused(arguments.papers.display().to_string(), problem));
    }
    let mut files = Vec::new();
    for name in names.into_iter().filter(|name| arguments.wants(name)) {
        let folder = arguments.papers.join(&name);
        let listed = list(&folder).map_err(|error| Failure::refused(folder.display().to_string(), error))?;
        let of_paper = listed.into_iter();
        let scenarios = of_paper.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
        files.extend(scenarios.map(|path| (name.clone(), path)));
    }
    if files.is_empty() {
        let problem = "it has no folder of a paper: expected PAPER/FIGURE.yaml in it, as in configs/papers";
        return Err(Failure::refused(arguments.papers.display().to_string(), problem));
    }
    Ok(files)
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Runs a figure under all its settings, or computes a claim that is arithmetic.
fn figure(arguments: &Arguments, paper: &str, file: &Path) -> Result<Vec<Row>, Failure> {
    if let Some((document, plan)) = plans::load(file)? {
        let judged = plans::judge(&document, &plan).map_err(Failure::Located)?;
        let row = |(claim, computed)| computed_row(paper, &plan.title, claim, computed);
        return Ok(plan.claims.iter().zip(judged).map(row).collect());
    }
    let plain = Scenario::load(file, &[])?;
    let claims = plain.claims().map_err(Failure::Located)?;
    let title = plain.asked().map_err(Failure::Located)?.title.unwrap_or_else(|| name_of(file));
    let settings: &[Setting] = if plain.has_routing_rules() { &AODV } else { &STATIC };
    // A quick look leaves out slow claims, and rules that the papers did not have.
    if arguments.quick && !claims.iter().any(|claim| claim.quick) {
        return Ok(Vec::new());
    }
    let row = |claim: &Claim| Row {
        paper: paper.to_owned(),
        figure: claim.figure.as_ref().unwrap_or(&title).clone(),
        says: claim.says.clone(),
        note: claim.note.clone(),
        claimed: claimed(claim),
        judged: Vec::new(),
    };
    let mut rows: Vec<Row> = claims.iter().map(row).collect();
    for setting in settings.iter().take(if arguments.quick { 1 } else { settings.len() }) {
        let sets: Vec<String> = setting.sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = Scenario::load(file, &sets)?;
        let seeds = arguments.quick.then_some(QUICK_SEEDS);
        let name = setting.name.replace(", ", "-").replace(' ', "").to_lowercase();
        let pace = if arguments.quick { "quick" } else { "full" };
        let folder = arguments.out.join(pace).join(paper).join(name_of(file)).join(name);
        let (trial, records) = completed(&scenario, seeds, &folder)?;
        for (row, claim) in rows.iter_mut().zip(claims) {
            let judged = judge(claim, &trial.arms[0], &records);
            let measured = measured(&judged);
            row.judged.push(Judged {
                setting: setting.name,
                measured,
                outcome: judged.outcome,
                why: judged.why,
            });
        }
    }
    Ok(rows)
}

fn computed_row(paper: &str, title: &str, claim: &PlanClaim, computed: Computed) -> Row {
    let Computed { claimed, measured, outcome, why } = computed;
    Row {
        paper: paper.to_owned(),
        figure: title.to_owned(),
        says: claim.says.clone(),
        note: claim.note.clone(),
        claimed,
        judged: vec![Judged { setting: "arithmetic", measured, outcome, why }],
    }
}

fn not_run(arguments: &Arguments) -> Result<Vec<NotRun>, Failure> {
    let file = arguments.papers.join("not-run.yaml");
    let refused =
        |error: &dyn std::fmt::Display| Failure::refused(file.display().to_string(), error.to_string());
    let text = match fs::read_to_string(&file) {
        // A folder of one's own need not have it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(|error| refused(&error))?,
    };
    let all: Vec<NotRun> = serde_yaml::from_str(&text).map_err(|error| refused(&error))?;
    Ok(all.into_iter().filter(|one| arguments.wants(&one.paper)).collect())
}
