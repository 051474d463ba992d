//! The runs of a trial: their number, their names, and their order.

use std::collections::BTreeSet;
use std::sync::Arc;

use hopwise_air::random::{NumberStream, Purpose};
use hopwise_core::narrow::as_u32;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::findings::label;
use super::metric;
use super::record::{Record, Shard, Trial};
use super::result::RunResult;
use super::scenario::settings::difference;
use super::seal;
use super::statistics::{Figure, Samples, is_sure, questions, watch_all};
use super::version;
use crate::hex;
use crate::located::Checked;
use crate::scenario::point::MatrixPoint;
use crate::scenario::{Armed, MatrixCell, Prepared, Scenario, TrialRequest, made_by};
use crate::sim::certificate_hash;
use crate::world::World;

mod figures;

/// Digits of a hash in a name; no two runs share this number of digits.
const NAME_DIGITS: usize = 32;

/// The limit on runs; each has a file of its own.
pub(crate) const MOST_RUNS: usize = 1_000_000;

/// A trial with all its runs, before the first one.
#[derive(Debug)]
pub struct Campaign {
    /// The plan, as `trial.json` has it.
    pub trial: Trial,
    /// The world in which the runs take place.
    pub world: World,
    /// The runs in the order of results: by point, block, arm. A shard has its own runs alone.
    pub runs: Vec<Planned>,
    /// The arms at each point.
    arms: Vec<Vec<Armed>>,
}

/// A planned run.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The hash of everything that determines the run, which names its files.
    pub id: String,
    /// The point and the arm, by their places in the trial.
    pub point: usize,
    /// The arm's place in the trial.
    pub arm: usize,
    /// The seed of all chance in the run.
    pub seed: u64,
    /// The number of the block, counted from 1: runs of one block share their seed.
    pub block: u32,
    settings: Arc<Value>,
}

impl Campaign {
    /// Refuses a scenario if any of its runs cannot be planned. `seeds` replaces the file's own number.
    pub fn new(scenario: &Scenario, seeds: Option<u32>, shard: Option<Shard>) -> Checked<Campaign> {
        Campaign::of(scenario, scenario.asked()?, seeds, shard)
    }

    /// The same without the arms that the scenario's world cannot run, and the names of these.
    pub fn of_this_world(scenario: &Scenario, seeds: Option<u32>) -> Checked<(Campaign, Vec<String>)> {
        let mut asked = scenario.asked()?;
        let left_out = asked.arms.extract_if(.., |arm| !scenario.can_run(arm)).collect();
        Ok((Campaign::of(scenario, asked, seeds, None)?, left_out))
    }

    fn of(
        scenario: &Scenario,
        TrialRequest { title, world, arms, mut arm_paths, cells, seeds: asked, margin, stop, figures }: TrialRequest,
        seeds: Option<u32>,
        shard: Option<Shard>,
    ) -> Checked<Campaign> {
        let seeds: Vec<u64> = (1..=u64::from(seeds.unwrap_or(asked))).collect();
        let runs = cells.len() * arms.len() * seeds.len();
        if runs > MOST_RUNS {
            return Err(
                scenario.refuse_seeds(format!("that makes {runs} runs"), format!("at most {MOST_RUNS} runs"))
            );
        }
        let figures = figures::read(scenario, &figures)?;
        let points: Vec<MatrixPoint> = cells.iter().map(|cell| cell.point.clone()).collect();
        arm_paths.retain(|path| !points.iter().any(|point| point.contains_key(path)));
        let trial = Trial {
            version: version::of_program().to_owned(),
            commit: version::commit().map(str::to_owned),
            certificate: certificate_hash(),
            scenario: scenario.name.clone(),
            title,
            world: world.name().to_owned(),
            arms,
            points,
            arm_paths,
            seeds,
            margin,
            stop,
            figures,
            shard,
        };
        let at = |cell: &MatrixCell| {
            let there = scenario.at(cell)?;
            trial.arms.iter().map(|arm| there.under(arm)).collect()
        };
        let arms = cells.iter().map(at).collect::<Result<_, _>>()?;
        let mut campaign = Campaign { trial, world, runs: Vec::new(), arms };
        campaign.runs = campaign.planned()?;
        figures::check(scenario, &campaign)?;
        Ok(campaign)
    }

    fn planned(&self) -> Checked<Vec<Planned>> {
        let trial = &self.trial;
        let mut runs = Vec::new();
        for (point, arms) in self.arms.iter().enumerate() {
            let settings: Vec<_> = arms.iter().map(|arm| Arc::new(arm.settings())).collect();
            // Errors that no seed can change are refused before anything runs.
            arms.iter().try_for_each(|arm| arm.prepare(trial.seeds[0]).map(drop))?;
            for (seed, block) in
                trial.seeds.iter().copied().zip(1..).filter(|(_, block)| self.has(point, *block))
            {
                for (arm, settings) in settings.iter().enumerate() {
                    let id = self.id_of(point, arm, seed, settings);
                    runs.push(Planned { id, point, arm, seed, block, settings: Arc::clone(settings) });
                }
            }
        }
        Ok(runs)
    }

    /// Blocks are dealt out to shards one by one; the arms of a block stay together.
    fn has(&self, point: usize, block: u32) -> bool {
        let Some(shard) = self.trial.shard else { return true };
        let nth = u64::from(block - 1) * self.trial.points.len() as u64 + point as u64;
        nth % u64::from(shard.count) == u64::from(shard.index - 1)
    }

    /// The hash of everything that determines the run.
    fn id_of(&self, point: usize, arm: usize, seed: u64, settings: &Value) -> String {
        let trial = &self.trial;
        let determined = json!({
            "version": trial.version,
            "certificate": trial.certificate,
            "scenario": trial.scenario,
            "point": trial.points[point],
            "arm": trial.arms[arm],
            "seed": seed,
            "settings": settings,
        });
        let mut id = hex(&Sha256::digest(determined.to_string().as_bytes()));
        id.truncate(NAME_DIGITS);
        id
    }

    /// The runs, by their places, in the order in which they are made: block by block, and within a block by chance.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.runs.len()).collect();
        // A key for each run, drawn by the names of its block: every caller gets one order.
        let key = |nth: &usize| {
            let run = &self.runs[*nth];
            let of_point = NumberStream::new(run.seed, as_u32(run.point), Purpose::Order).next_u64();
            let of_arm = NumberStream::new(of_point, as_u32(run.arm), Purpose::Order).next_u64();
            (run.block, of_point, run.point, of_arm, run.arm)
        };
        order.sort_by_key(key);
        order
    }

    /// The plan of a run's world. It was checked before, so a refusal is rare.
    pub fn prepare(&self, run: &Planned) -> Checked<Prepared> {
        self.arms[run.point][run.arm].prepare(run.seed)
    }

    /// Each arm that has all settings of an earlier one at every point, after that one. In virtual time both have equal
    /// figures.
    pub fn equal_arms(&self) -> Vec<(&str, &str)> {
        let settings = |arm: usize| {
            let mut points = BTreeSet::new();
            let runs = self.runs.iter().filter(move |run| run.arm == arm && points.insert(run.point));
            runs.map(|run| &*run.settings)
        };
        let arms = &self.trial.arms;
        let earlier = |arm: usize| (0..arm).find(|earlier| settings(*earlier).eq(settings(arm)));
        let pairs = (0..arms.len()).filter_map(|arm| Some((earlier(arm)?, arm)));
        pairs.map(|(earlier, arm)| (&*arms[earlier], &*arms[arm])).collect()
    }

    /// `series` is the name of a file and its text.
    pub fn record(&self, run: &Planned, result: RunResult, series: Option<(&str, &str)>) -> Record {
        Record {
            id: run.id.clone(),
            scenario: self.trial.scenario.clone(),
            point: self.trial.points[run.point].clone(),
            arm: self.trial.arms[run.arm].clone(),
            seed: run.seed,
            block: run.block,
            settings: self.settings_of(run).into(),
            result,
            series: series.map(|(name, _)| name.to_owned()),
            series_sum: series.map(|(_, text)| seal::sum(text)),
        }
    }

    /// The first difference between a record and this trial, its seed left out; none if there is no difference.
    pub fn difference(&self, record: &Record) -> Option<String> {
        let (point, arm) = (label(&record.point), &record.arm);
        if !self.trial.arms.contains(arm) {
            return Some(format!("it holds runs of the arm `{arm}`, which this trial has not"));
        }
        if !self.trial.points.contains(&record.point) {
            let point = if point.is_empty() { "without a matrix".to_owned() } else { format!("at {point}") };
            return Some(format!("it holds runs {point}, where this trial has none"));
        }
        let is_alike =
            |run: &&Planned| self.trial.points[run.point] == record.point && self.trial.arms[run.arm] == *arm;
        let run = self.runs.iter().find(is_alike)?;
        let difference = difference(&self.settings_of(run), &record.settings)?;
        Some(format!("its runs of `{arm}` have other settings, {difference}"))
    }

    /// Says whether a record is of this run.
    pub fn is_of(&self, run: &Planned, record: &Record) -> bool {
        self.trial.arms[run.arm] == record.arm
            && self.trial.points[run.point] == record.point
            && run.seed == record.seed
            && difference(&self.settings_of(run), &record.settings).is_none()
    }

    /// The run's settings with the version and certificate from the trial's plan: a record alone then shows its origin.
    fn settings_of(&self, run: &Planned) -> Value {
        let mut settings = Value::clone(&run.settings);
        settings["hopwise"] = made_by(&self.trial.version, &self.trial.certificate);
        settings
    }

    /// True if all runs up to that block are there; `goodput` gives a run's goodput by its place, where it is known.
    pub fn is_complete(&self, upto: u32, goodput: &dyn Fn(usize) -> Option<f64>) -> bool {
        let mut runs = self.runs.iter().enumerate().filter(|(_, run)| run.block <= upto);
        runs.all(|(nth, _)| goodput(nth).is_some())
    }

    /// The figures of a run that decide the verdicts, in the trial's order; none for one that the run does not know.
    pub fn figures_of(&self, result: &RunResult) -> Vec<Option<f64>> {
        let of = |figure: &Figure| metric::named(figure.name).and_then(|metric| (metric.of)(result));
        self.trial.figures().iter().map(of).collect()
    }

    /// True if the blocks so far give a verdict on every arm in every figure at every point, however often this is
    /// called. `known` is a figure of a run, both by their places.
    pub fn is_sure(&self, upto: u32, known: &dyn Fn(usize, usize) -> Option<f64>) -> bool {
        let figures = self.trial.figures();
        let arms = self.trial.arms.iter().enumerate();
        (0..self.trial.points.len()).all(|point| {
            let samples = |figure: usize, (arm, name): (usize, &String)| {
                let runs = self.runs.iter().enumerate();
                let mine = runs.filter(|(_, run)| run.point == point && run.arm == arm && run.block <= upto);
                let values = mine.filter_map(|(nth, run)| Some((run.block, known(nth, figure)?))).collect();
                Samples { arm: name.clone(), values }
            };
            let by_figure = |nth: usize| arms.clone().map(|arm| samples(nth, arm)).collect();
            let samples: Vec<Vec<Samples>> = (0..figures.len()).map(by_figure).collect();
            is_sure(&watch_all(&questions(&figures, &samples), self.trial.margin))
        })
    }
}

#[cfg(test)]
mod tests;
