//! `hopwise claims`: compares the claims of papers about these agents with runs.

use std::path::{Path, PathBuf};
use std::{fs, io};

use hopwise_lab::campaign::Campaign;
use hopwise_lab::claims::plans::{Computed, PlanClaim};
use hopwise_lab::claims::table::{ClaimRow, Under};
use hopwise_lab::claims::{ClaimOutcome, MOST_SEEDS, Reading, claimed, may_be_decided, needs, plans};
use hopwise_lab::claims::{readings, rests_on, table};
use hopwise_lab::located::Document;
use hopwise_lab::record::{Record, Trial};
use hopwise_lab::report::{self, Bundle, picture_of_claims, picture_of_premises, pictures};
use hopwise_lab::scenario::point::MatrixPoint;
use hopwise_lab::scenario::{Claim, LeftOut, Scenario};
use hopwise_lab::{folder, named};
use serde::Deserialize;
use serde_json::json;

use crate::trial::completed;
use crate::trial::stopped::StopNotice;
use hopwise_daemon::failure::{Failure, printed};

mod arguments;
mod made_by;
mod page;
mod pages;
mod printing;
mod settings;

pub use arguments::Arguments;
use made_by::MadeBy;
use page::Page;
use settings::{Ruled, ruled};

const QUICK_SEEDS: u32 = 2;

/// No file of a paper comes near this.
const LARGEST: u64 = 16 << 20;

/// The name of the rules where nothing is run.
const ARITHMETIC: &str = "arithmetic";

/// A figure that cannot be run here: `not-run.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotRun {
    paper: String,
    figure: String,
    says: String,
    needs: String,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let not_run = not_run(arguments)?;
    let (mut rows, mut left_out, mut slow) = (Vec::new(), 0, 0);
    let files = files(arguments)?;
    let total = files.len();
    let said = move |done| format!("stopped in figure {} of {total}; the same command goes on", done + 1);
    let stopped = StopNotice::watch(0, said)?;
    for (nth, (paper, file)) in files.into_iter().enumerate() {
        let nth = format!("figure {} of {total}", nth + 1);
        // The file as it is now is run, whatever becomes of it meanwhile.
        let digest = Document::load(&file)?.digest();
        let measured = figure(arguments, &paper, &file, &nth)?;
        let MeasuredFigure { rows: of_figure, made_by, left_out: of_it, is_slow } = measured;
        slow += usize::from(is_slow);
        of_figure.iter().try_for_each(|row| printed(printing::row(row)))?;
        printed(printing::jointly(&format!("{paper}/{}", name_of(&file)), &of_figure))?;
        if let (Some(radio), 1..) = (arguments.radio, of_it.readings) {
            printed(printing::left_out(&format!("{paper}/{}", name_of(&file)), radio, &of_it))?;
            left_out += of_it.readings;
        }
        keep(arguments, (&paper, &file), &of_figure)?;
        // Arithmetic does not depend on the radio.
        let is_told = arguments.radio.is_none() || made_by.runs > 0;
        if let (Some(folder), false, true) = (&arguments.pages, of_figure.is_empty(), is_told) {
            let name = name_of(&file);
            let figure = pages::RunFigure { paper: &paper, file: &name, digest, rows: &of_figure, made_by };
            let page = Page::of(arguments, &paper);
            pages::write(folder, &arguments.papers, (&page, &figure), &not_run)?;
        }
        rows.extend(of_figure);
        stopped.on_step();
    }
    drop(stopped);
    printed(printing::not_run(&not_run))?;
    printed(printing::sums(&rows, arguments.radio.map(|radio| (radio, left_out)), (&not_run, slow)))
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

/// A figure's claims with their results.
struct MeasuredFigure {
    rows: Vec<ClaimRow>,
    made_by: MadeBy,
    /// The readings that were not run over the radio that was asked for.
    left_out: LeftOut,
    /// A quick look leaves the whole figure out.
    is_slow: bool,
}

impl MeasuredFigure {
    fn by_us(rows: Vec<ClaimRow>, left_out: LeftOut) -> MeasuredFigure {
        MeasuredFigure { rows, made_by: MadeBy::us(), left_out, is_slow: false }
    }
}

/// Runs a figure under all its settings, or computes a claim that is arithmetic.
fn figure(arguments: &Arguments, paper: &str, file: &Path, nth: &str) -> Result<MeasuredFigure, Failure> {
    if let Some((document, plan)) = plans::load(file)? {
        let judged = plans::judge(&document, &plan).map_err(Failure::Located)?;
        let row = |(claim, computed)| computed_row(paper, &plan.title, claim, computed);
        let rows = plan.claims.iter().zip(judged).map(row).collect();
        return Ok(MeasuredFigure::by_us(rows, LeftOut::default()));
    }
    let plain = Scenario::load(file, &[])?;
    let all = plain.claims().map_err(Failure::Located)?;
    let title = plain.asked().map_err(Failure::Located)?.title.unwrap_or_else(|| name_of(file));
    // A quick look leaves out slow figures that nobody named, rules that the papers did not have, and all readings but
    // the first.
    let is_named = arguments.names(paper, &name_of(file));
    if arguments.quick && !is_named && !all.iter().any(|claim| claim.quick) {
        return Ok(MeasuredFigure { is_slow: true, ..MeasuredFigure::by_us(Vec::new(), LeftOut::default()) });
    }
    let (ruled, left_out) = ruled(arguments, &plain).map_err(Failure::Located)?;
    let Some(own) = ruled.first() else { return Ok(MeasuredFigure::by_us(Vec::new(), left_out)) };
    let claims: Vec<&Claim> = all.iter().filter(|claim| where_fixed(claim, &own.fixed).is_some()).collect();
    let mut rows: Vec<ClaimRow> = claims.iter().map(|claim| empty_row(paper, &title, claim)).collect();
    let mut made_by = None;
    for (place, ruled) in ruled.iter().enumerate() {
        // The count of claims is by the papers' own rules, which stand first.
        let goes_on = place == 0 && !arguments.quick && !arguments.kept;
        let (trial, results) = decided(arguments, (paper, file, nth), (ruled, &claims), goes_on)?;
        let made_by = made_by.get_or_insert_with(|| MadeBy::of(&trial));
        let folder = folder_of(arguments, (paper, file)).join(ruled.setting.folder());
        made_by.add(&trial, &folder)?;
        if let (0, Some(into)) = (place, &arguments.figures) {
            draw(folder, into, &format!("{paper}-{}", name_of(file)))?;
        }
        rows.iter_mut().zip(results).for_each(|(row, under)| row.results.extend(under));
    }
    Ok(MeasuredFigure { rows, made_by: made_by.unwrap_or_else(MadeBy::us), left_out, is_slow: false })
}

/// A claim in a reading that this many seeds may decide. The claim is about values that are not fixed.
struct OpenLine {
    seeds: u32,
    claim: Claim,
    reading: MatrixPoint,
}

impl OpenLine {
    /// The lines of a claim that more seeds may decide.
    fn all(claim: &Claim, under: &Under, seeds: u32) -> Vec<OpenLine> {
        let is_open = |reading: &&Reading| {
            reading.judged.outcome == ClaimOutcome::Undecided
                && may_be_decided(claim, &reading.judged.measured)
        };
        let open = under.readings.iter().filter(is_open);
        open.map(|of| OpenLine { seeds, claim: claim.clone(), reading: of.open.clone() }).collect()
    }

    fn needs(&self, baseline: &str, (point, arm, block): (&MatrixPoint, &str, u32)) -> bool {
        block <= self.seeds
            && self.reading.iter().all(|(path, value)| point.get(path) == Some(value))
            && needs(&self.claim, baseline, (point, arm))
    }
}

/// Runs a figure under these rules. If it goes on, each round has twice the seeds for the runs that open lines need,
/// until no line is open. A claim has no result if it is about values that are not fixed here.
fn decided(
    arguments: &Arguments,
    of: (&str, &Path, &str),
    (ruled, claims): (&Ruled, &[&Claim]),
    goes_on: bool,
) -> Result<(Trial, Vec<Option<Under>>), Failure> {
    let asked = ruled.scenario.asked().map_err(Failure::Located)?;
    let claims: Vec<_> = claims.iter().map(|claim| where_fixed(claim, &ruled.fixed)).collect();
    let of_all = if arguments.quick { QUICK_SEEDS } else { asked.seeds };
    let (mut seeds, mut open) = (of_all, Vec::<OpenLine>::new());
    loop {
        let is_wanted = |run: (&MatrixPoint, &str, u32)| {
            run.2 <= of_all || open.iter().any(|line| line.needs(&asked.arms[0], run))
        };
        let (trial, records) = runs(arguments, of, ruled, (seeds, &is_wanted))?;
        let under = |claim| under(claim, ruled, &asked.arms[0], &records);
        let results = claims.iter().map(|claim| claim.as_ref().map(under).transpose());
        let results = results.collect::<Result<Vec<_>, _>>()?;
        let next = MOST_SEEDS.min(2 * seeds);
        let left = claims.iter().flatten().zip(results.iter().flatten());
        let left: Vec<_> = left.flat_map(|(claim, under)| OpenLine::all(claim, under, next)).collect();
        if !goes_on || next <= seeds || left.is_empty() {
            return Ok((trial, results));
        }
        seeds = next;
        open.extend(left);
    }
}

/// The results of a claim about values that are not fixed, under these rules.
fn under(claim: &Claim, ruled: &Ruled, baseline: &str, records: &[Record]) -> Result<Under, Failure> {
    let names = ruled.scenario.names_of_readings().map_err(Failure::Located)?;
    let open = ruled.scenario.first_reading().map_err(Failure::Located)?.into_keys().collect::<Vec<_>>();
    Ok(Under::new(ruled.setting.name, readings(claim, baseline, records, (&open, &names))))
}

/// The claim where some of the file's values are fixed; none if it is about values that are not fixed here.
fn where_fixed(claim: &Claim, fixed: &MatrixPoint) -> Option<Claim> {
    let is_of_it =
        |(path, values): (&String, &Vec<_>)| fixed.get(path).is_none_or(|value| values.contains(value));
    claim.at.iter().all(is_of_it).then(|| {
        let mut claim = claim.clone();
        claim.at.retain(|path, _| !fixed.contains_key(path));
        claim
    })
}

/// Whether a run is wanted, by its point, arm and seed.
type IsWanted<'a> = dyn Fn((&MatrixPoint, &str, u32)) -> bool + 'a;

/// The wanted runs of a figure under a set of rules, with up to that many seeds; runs that an earlier command made are
/// read.
fn runs(
    arguments: &Arguments,
    (paper, file, nth): (&str, &Path, &str),
    Ruled { setting, scenario, .. }: &Ruled,
    (seeds, is_wanted): (u32, &IsWanted<'_>),
) -> Result<(Trial, Vec<Record>), Failure> {
    let below = below(arguments, (paper, file)).join(setting.folder());
    let folder = arguments.out.join(&below);
    let failed = |error| Failure::failed("finding runs", format_args!("{}: {error}", folder.display()));
    if arguments.kept {
        match folder::names(&arguments.out, &below) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => return read_kept(scenario, seeds, &folder),
        }
    }
    folder::make(&arguments.out, &below).map_err(failed)?;
    let name = format!("{paper}/{}, {nth}, under {}", name_of(file), setting.name);
    completed(scenario, seeds, is_wanted, (&folder, &name))
}

/// The folder of a figure's runs.
fn folder_of(arguments: &Arguments, of: (&str, &Path)) -> PathBuf {
    arguments.out.join(below(arguments, of))
}

/// The same below the folder of all results.
fn below(arguments: &Arguments, (paper, file): (&str, &Path)) -> PathBuf {
    let pace = match (arguments.quick, arguments.first_reading) {
        (true, _) => "quick",
        (_, true) => "first-reading",
        _ => "full",
    };
    Path::new(pace).join(paper).join(name_of(file))
}

/// Writes the figure's file, its table and its picture into the folder of its runs.
fn keep(arguments: &Arguments, of: (&str, &Path), rows: &[ClaimRow]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let folder = folder_of(arguments, of);
    let failed = |error| Failure::failed("keeping the claims", format_args!("{}: {error}", folder.display()));
    let of_radio = arguments.radio.map(|radio| format!("-{radio}")).unwrap_or_default();
    let write = |name: &str, end: &str, text: String| {
        let name = format!("{name}{of_radio}.{end}");
        if text.is_empty() { Ok(()) } else { folder::write(&folder, name, text) }
    };
    folder::make(&arguments.out, below(arguments, of))
        .and_then(|()| named::read_file(of.1, LARGEST))
        .and_then(|text| folder::write(&folder, "figure.yaml", text))
        .and_then(|()| write("claims", "csv", table::csv(rows)))
        .and_then(|()| write("claims", "svg", picture_of_claims(rows)))
        .and_then(|()| write("premise", "svg", picture_of_premises(rows)))
        .map_err(failed)
}

/// Draws the runs of a folder into files of that name.
fn draw(folder: PathBuf, into: &Path, figure: &str) -> Result<(), Failure> {
    let bundle = crate::report::read(&crate::report::open(&[folder])?)?;
    let failed = |error| Failure::failed("drawing the figures", format_args!("{}: {error}", into.display()));
    fs::create_dir_all(into).map_err(failed)?;
    let write = |(name, svg)| folder::write(into, format!("{figure}-{name}.svg"), svg);
    pictures(&bundle).into_iter().try_for_each(write).map_err(failed)
}

fn empty_row(paper: &str, title: &str, claim: &Claim) -> ClaimRow {
    ClaimRow {
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

fn computed_row(paper: &str, title: &str, claim: &PlanClaim, computed: Computed) -> ClaimRow {
    let Computed { claimed, readings } = computed;
    ClaimRow {
        paper: paper.to_owned(),
        title: title.to_owned(),
        figure: title.to_owned(),
        says: claim.says.clone(),
        note: claim.note.clone(),
        ours: claim.ours,
        claimed,
        stated: None,
        premise: None,
        results: vec![Under::new(ARITHMETIC, readings)],
    }
}

fn not_run(arguments: &Arguments) -> Result<Vec<NotRun>, Failure> {
    let file = arguments.papers.join("not-run.yaml");
    let refused =
        |error: &dyn std::fmt::Display| Failure::refused(file.display().to_string(), error.to_string());
    let text = match named::read_file(&file, LARGEST) {
        // A folder of one's own need not have it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(|error| refused(&error))?,
    };
    let all: Vec<NotRun> = serde_yaml::from_str(&text).map_err(|error| refused(&error))?;
    Ok(all.into_iter().filter(|one| arguments.wants(&one.paper, None)).collect())
}

/// All runs of a scenario that an earlier command kept in their folder. Any build may have made them, if they are what
/// the file asks for.
fn read_kept(scenario: &Scenario, seeds: u32, folder: &Path) -> Result<(Trial, Vec<Record>), Failure> {
    let campaign = Campaign::new(scenario, Some(seeds), None).map_err(Failure::Located)?;
    let bundle = report::open(folder)
        .and_then(|folder| Bundle::read(&[folder]))
        .map_err(|error| Failure::refused(error.place, format!("{}: {REMEDY}", error.problem)))?;
    let refused = |problem: String| Failure::refused(folder.display().to_string(), problem);
    let wanted = &campaign.trial;
    let is_asked = |record: &&Record| {
        wanted.points.contains(&record.point)
            && wanted.arms.contains(&record.arm)
            && wanted.seeds.contains(&record.seed)
    };
    if bundle.records.iter().filter(is_asked).count() < campaign.runs.len() {
        return Err(refused(format!("it has not all runs that the file asks for: {REMEDY}")));
    }
    for record in &bundle.records {
        let mut as_ours = record.clone();
        as_ours.settings["hopwise"] = json!({ "certificate": wanted.certificate, "version": wanted.version });
        if let Some(difference) = campaign.difference(&as_ours) {
            return Err(refused(format!("{difference}: {REMEDY}")));
        }
    }
    Ok((bundle.trial, bundle.records))
}

const REMEDY: &str = "without --kept the runs are made";
