//! `hopwise claims`: compares the claims of papers about these agents with runs.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hopwise_lab::claims::plans::{self, Computed, PlanClaim};
use hopwise_lab::claims::table::{self, Line, Row, Under};
use hopwise_lab::claims::{Reading, claimed, measured, readings, resting_on, rests_on};
use hopwise_lab::record::{Record, Trial};
use hopwise_lab::report::{picture_of_claims, picture_of_premises};
use hopwise_lab::scenario::point::{Point, plain};
use hopwise_lab::scenario::{Claim, Scenario};
use hopwise_lab::sim::certificate_hash;
use hopwise_lab::version;
use serde::Deserialize;

use crate::failure::{self, Failure, printed};
use crate::lab::trial::completed;
use crate::lab::trial::stopped::Stopped;

mod arguments;
mod kept;
mod pages;
mod printing;

pub(crate) use arguments::Arguments;

/// Rules under which a figure is run.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    sets: &'static [&'static str],
    /// The profile of all radios, where it is not the figure's own.
    radio: Option<&'static str>,
}

impl Setting {
    const fn of(name: &'static str, sets: &'static [&'static str]) -> Setting {
        Setting { name, sets, radio: None }
    }

    /// The name of the folder of its runs.
    fn folder(&self) -> String {
        self.name.replace(", ", "-").replace(' ', "").to_lowercase()
    }
}

/// The paper's own rules first, those of today last.
const STATIC: [Setting; 2] =
    [Setting::of("ns2", &["mac.rules=ns2"]), Setting::of("standard", &["mac.rules=standard"])];

/// The same with AODV.
const AODV: [Setting; 3] = [
    Setting::of("ns2", &["mac.rules=ns2", "routing.rules=ns2"]),
    Setting::of("ns2, RFC 3561", &["mac.rules=ns2", "routing.rules=rfc3561"]),
    Setting::of("standard, RFC 3561", &["mac.rules=standard", "routing.rules=rfc3561"]),
];

const QUICK_SEEDS: u32 = 2;

/// The name of the rules where nothing is run.
const ARITHMETIC: &str = "arithmetic";

/// The build that made a figure's runs.
#[derive(Debug)]
struct MadeBy {
    version: String,
    commit: Option<String>,
    certificate: String,
    /// The number of runs, and the time of a core that they took; 0 for what was computed.
    runs: usize,
    cpu_s: f64,
    /// The days on which runs ended, and the machines that made them. Runs of older builds do not tell.
    days: BTreeSet<String>,
    machines: BTreeSet<String>,
}

impl MadeBy {
    fn new(version: String, commit: Option<String>, certificate: String) -> MadeBy {
        let (days, machines) = (BTreeSet::new(), BTreeSet::new());
        MadeBy { version, commit, certificate, runs: 0, cpu_s: 0.0, days, machines }
    }

    fn of(trial: &Trial) -> MadeBy {
        let Trial { version, commit, certificate, .. } = trial.clone();
        MadeBy::new(version, commit, certificate)
    }

    /// Adds the costs of the runs in a folder.
    fn add_costs(&mut self, folder: &Path) -> Result<(), Failure> {
        let path = folder.join("costs.jsonl");
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed("reading what runs cost", format_args!("{}: {error}", path.display()))
        };
        for line in fs::read_to_string(&path).map_err(|error| failed(&error))?.lines() {
            let cost: Cost = serde_json::from_str(line).map_err(|error| failed(&error))?;
            self.runs += 1;
            self.cpu_s += cost.cpu_s;
            self.days.extend(cost.ended.and_then(|ended| Some(ended.split_once('T')?.0.to_owned())));
            self.machines.extend(cost.machine);
        }
        Ok(())
    }

    fn us() -> MadeBy {
        let commit = version::commit().map(str::to_owned);
        MadeBy::new(version::of_program().to_owned(), commit, certificate_hash())
    }
}

/// The cost of one run, of a line in `costs.jsonl`.
#[derive(Debug, Deserialize)]
struct Cost {
    cpu_s: f64,
    ended: Option<String>,
    machine: Option<String>,
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
    let not_run = not_run(arguments)?;
    let mut rows = Vec::new();
    let files = files(arguments)?;
    let total = files.len();
    let said = move |done| format!("stopped in figure {} of {total}; the same command goes on", done + 1);
    let stopped = Stopped::watch(0, said)?;
    for (nth, (paper, file)) in files.into_iter().enumerate() {
        let nth = format!("figure {} of {total}", nth + 1);
        let (of_figure, made_by) = figure(arguments, &paper, &file, &nth)?;
        of_figure.iter().try_for_each(|row| printed(printing::row(row)))?;
        keep(arguments, (&paper, &file), &of_figure)?;
        if let (Some(folder), false) = (&arguments.pages, of_figure.is_empty()) {
            let name = name_of(&file);
            let figure = pages::Figure { paper: &paper, file: &name, rows: &of_figure, made_by };
            pages::write(folder, &figure, &not_run)?;
        }
        rows.extend(of_figure);
        stopped.on_step();
    }
    drop(stopped);
    printed(printing::not_run(&not_run))?;
    printed(printing::sums(&rows, arguments.radio, &not_run))
}

/// The chosen figures' files with their papers, in the order of their names.
fn files(arguments: &Arguments) -> Result<Vec<(String, PathBuf)>, Failure> {
    let refused = |problem: String| Failure::refused(arguments.papers.display().to_string(), problem);
    let papers = list(&arguments.papers).map_err(|error| {
        refused(format!("{error}; expected the papers' folders: name the folder that has them with --papers"))
    })?;
    let mut files = Vec::new();
    for paper in papers.into_iter().filter(|path| path.is_dir()) {
        let listed = list(&paper).map_err(|error| Failure::refused(paper.display().to_string(), error))?;
        let figures = listed.into_iter().filter(|path| path.extension().is_some_and(|end| end == "yaml"));
        files.extend(figures.map(|path| (name_of(&paper), path)));
    }
    if files.is_empty() {
        return Err(refused(
            "it has no folder of a paper: expected PAPER/FIGURE.yaml in it, as in configs/papers".to_owned(),
        ));
    }
    for chosen in &arguments.chosen {
        let (paper, figure) = chosen.split_once('/').map_or((chosen.as_str(), None), |(p, f)| (p, Some(f)));
        let mut of_paper =
            files.iter().filter(|(name, _)| name == paper).map(|(_, file)| name_of(file)).peekable();
        if of_paper.peek().is_none() {
            let mut names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
            names.dedup();
            return Err(refused(format!("no paper is called `{paper}`: {}", names.join(", "))));
        }
        let figures: Vec<String> = of_paper.collect();
        if let Some(figure) = figure.filter(|figure| !figures.iter().any(|name| name == figure)) {
            return Err(refused(format!(
                "no figure of {paper} is called `{figure}`: {}",
                figures.join(", ")
            )));
        }
    }
    files.retain(|(paper, file)| arguments.wants(paper, Some(&name_of(file))));
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

/// Runs a figure under all its settings, or computes a claim that is arithmetic; says which build did it.
fn figure(arguments: &Arguments, paper: &str, file: &Path, nth: &str) -> Result<(Vec<Row>, MadeBy), Failure> {
    if let Some((document, plan)) = plans::load(file)? {
        let judged = plans::judge(&document, &plan).map_err(Failure::Located)?;
        let row = |(claim, computed)| computed_row(paper, &plan.title, claim, computed);
        return Ok((plan.claims.iter().zip(judged).map(row).collect(), MadeBy::us()));
    }
    let plain = Scenario::load(file, &[])?;
    if let Some(radio) = arguments.radio.filter(|_| plain.varies("radio.profile")) {
        failure::remark(&format!("{paper}/{} varies its radios itself: not run over {radio}", name_of(file)));
        return Ok((Vec::new(), MadeBy::us()));
    }
    let all = plain.claims().map_err(Failure::Located)?;
    let title = plain.asked().map_err(Failure::Located)?.title.unwrap_or_else(|| name_of(file));
    // A quick look leaves out slow claims, rules that the papers did not have, and all readings but the first.
    if arguments.quick && !all.iter().any(|claim| claim.quick) {
        return Ok((Vec::new(), MadeBy::us()));
    }
    let names = plain.names_of_readings().map_err(Failure::Located)?;
    let open = plain.first_reading().map_err(Failure::Located)?;
    let claims = if arguments.quick { of_reading(all, &open) } else { all.to_vec() };
    let mut rows: Vec<Row> = claims.iter().map(|claim| empty_row(paper, &title, claim)).collect();
    let mut made_by = None;
    for setting in settings(arguments, &plain) {
        let (trial, records) = runs(arguments, (paper, file, nth), &setting, &open)?;
        let open: Vec<String> = open.keys().cloned().collect();
        let made_by = made_by.get_or_insert_with(|| MadeBy::of(&trial));
        made_by.add_costs(&folder_of(arguments, (paper, file)).join(setting.folder()))?;
        for (row, claim) in rows.iter_mut().zip(&claims) {
            let readings = readings(claim, &trial.arms[0], &records, (&open, &names));
            let line = |reading: &Reading| {
                Line::new(reading, measured(claim, &reading.judged) + &resting_on(claim, reading))
            };
            row.results.push(Under::new(setting.name, &readings, readings.iter().map(line).collect()));
        }
    }
    Ok((rows, made_by.unwrap_or_else(MadeBy::us)))
}

/// The rules that a figure is run under.
fn settings(arguments: &Arguments, figure: &Scenario) -> Vec<Setting> {
    let all: &[Setting] = if figure.has_routing_rules() { &AODV } else { &STATIC };
    match (arguments.radio, all) {
        (Some(radio), [own, .., today]) => vec![*own, Setting { name: radio, radio: Some(radio), ..*today }],
        _ if arguments.quick => all[..1].to_vec(),
        _ => all.to_vec(),
    }
}

/// The claims of a quick look, which has one reading only.
fn of_reading(claims: &[Claim], reading: &Point) -> Vec<Claim> {
    let is_of_it = |claim: &&Claim| {
        claim.at.iter().all(|(path, values)| reading.get(path).is_none_or(|value| values.contains(value)))
    };
    let without_open_paths = |claim: &Claim| {
        let mut claim = claim.clone();
        claim.at.retain(|path, _| !reading.contains_key(path));
        claim
    };
    claims.iter().filter(is_of_it).map(without_open_paths).collect()
}

/// The runs of a figure under those rules; earlier ones are read.
fn runs(
    arguments: &Arguments,
    (paper, file, nth): (&str, &Path, &str),
    setting: &Setting,
    reading: &Point,
) -> Result<(Trial, Vec<Record>), Failure> {
    let mut sets: Vec<String> = setting.sets.iter().map(|set| (*set).to_owned()).collect();
    sets.extend(setting.radio.map(|profile| format!("radio.profile={profile}")));
    if arguments.quick {
        sets.extend(reading.iter().map(|(path, value)| format!("{path}={}", plain(value))));
    }
    let scenario = Scenario::load(file, &sets)?;
    let seeds = arguments.quick.then_some(QUICK_SEEDS);
    let folder = folder_of(arguments, (paper, file)).join(setting.folder());
    if arguments.kept {
        return kept::read(&scenario, seeds, &folder);
    }
    let name = format!("{paper}/{}, {nth}, under {}", name_of(file), setting.name);
    completed(&scenario, seeds, &folder, &name)
}

/// The folder of a figure's runs.
fn folder_of(arguments: &Arguments, (paper, file): (&str, &Path)) -> PathBuf {
    let pace = if arguments.quick { "quick" } else { "full" };
    arguments.out.join(pace).join(paper).join(name_of(file))
}

/// Keeps the figure's file, its table and its picture beside its runs.
fn keep(arguments: &Arguments, of: (&str, &Path), rows: &[Row]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let folder = folder_of(arguments, of);
    let failed = |error| Failure::failed("keeping the claims", format_args!("{}: {error}", folder.display()));
    let of_radio = arguments.radio.map(|radio| format!("-{radio}")).unwrap_or_default();
    let write = |name: &str, end: &str, text: String| {
        if text.is_empty() { Ok(()) } else { fs::write(folder.join(format!("{name}{of_radio}.{end}")), text) }
    };
    fs::create_dir_all(&folder)
        .and_then(|()| fs::copy(of.1, folder.join("figure.yaml")))
        .and_then(|_| write("claims", "csv", table::csv(rows)))
        .and_then(|()| write("claims", "svg", picture_of_claims(rows)))
        .and_then(|()| write("premise", "svg", picture_of_premises(rows)))
        .map_err(failed)
}

fn empty_row(paper: &str, title: &str, claim: &Claim) -> Row {
    Row {
        paper: paper.to_owned(),
        title: title.to_owned(),
        figure: claim.figure.as_deref().unwrap_or(title).to_owned(),
        says: claim.says.clone(),
        note: claim.note.clone(),
        ours: claim.ours,
        claimed: claimed(claim),
        stated: Some(claim.stated()),
        premise: rests_on(claim),
        results: Vec::new(),
    }
}

fn computed_row(paper: &str, title: &str, claim: &PlanClaim, computed: Computed) -> Row {
    let Computed { claimed, readings } = computed;
    let lines = readings.iter().map(|reading| Line::new(reading, plans::measured(reading))).collect();
    Row {
        paper: paper.to_owned(),
        title: title.to_owned(),
        figure: title.to_owned(),
        says: claim.says.clone(),
        note: claim.note.clone(),
        ours: claim.ours,
        claimed,
        stated: None,
        premise: None,
        results: vec![Under::new(ARITHMETIC, &readings, lines)],
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
    Ok(all.into_iter().filter(|one| arguments.wants(&one.paper, None)).collect())
}
