//! Means over seeds, with a run for each core at once.

use std::path::Path;
use std::sync::OnceLock;

use hopwise_lab::parallel::in_parallel;
use hopwise_lab::scenario::Scenario;
use hopwise_lab::sim;

use crate::progress::Progress;
use crate::store::{Answer, Store};

const SEEDS: u64 = 5;

/// The settings over `configs/train.yaml`, and the arms whose means are wanted.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) sets: Vec<String>,
    pub(crate) arms: &'static [&'static str],
}

/// The means of an arm: its goodput, each flow's goodput, and Jain's index of the flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mean {
    pub(crate) kbps: f64,
    pub(crate) flows_kbps: Vec<f64>,
    pub(crate) jain: f64,
    /// Goodput of each run, by its seed.
    pub(crate) runs_kbps: Vec<f64>,
}

/// The means of the arms of each cell, in their order.
pub(crate) fn all(cells: &[Cell]) -> Vec<Vec<Mean>> {
    static STORE: OnceLock<Store> = OnceLock::new();
    let store = STORE.get_or_init(Store::open);
    let mut questions = Vec::new();
    for cell in cells {
        for arm in cell.arms {
            questions.extend((1..=SEEDS).map(|seed| (cell, *arm, seed)));
        }
    }
    let progress = Progress::new(questions.len());
    let answers = in_parallel(questions, |(cell, arm, seed)| {
        let run = format!("{} {arm} {seed}", cell.sets.join(" "));
        let answer = store.known(&run).cloned().unwrap_or_else(|| {
            let answer = one(cell, arm, seed);
            store.keep(run, &answer);
            answer
        });
        progress.step();
        answer
    });
    progress.printed();
    let mut answers = answers.chunks(SEEDS as usize).map(mean);
    cells.iter().map(|cell| answers.by_ref().take(cell.arms.len()).collect()).collect()
}

fn mean(answers: &[Answer]) -> Mean {
    let runs = answers.len() as f64;
    let flows = answers.iter().map(|answer| answer.kbps.len()).max().unwrap_or(0);
    let of_flow = |nth| answers.iter().filter_map(|answer| answer.kbps.get(nth)).sum::<f64>() / runs;
    let flows_kbps: Vec<f64> = (0..flows).map(of_flow).collect();
    let jain = answers.iter().map(|answer| answer.jain).sum::<f64>() / runs;
    let runs_kbps = answers.iter().map(|answer| answer.kbps.iter().sum()).collect();
    Mean { kbps: flows_kbps.iter().sum(), flows_kbps, jain, runs_kbps }
}

/// The arm with the highest goodput.
pub(crate) fn best<'a>(arms: &[&'static str], means: &'a [Mean]) -> (&'static str, &'a Mean) {
    let named = arms.iter().copied().zip(means);
    named.max_by(|one, other| one.1.kbps.total_cmp(&other.1.kbps)).expect("a peer")
}

fn one(cell: &Cell, arm: &str, seed: u64) -> Answer {
    let scenario = Scenario::load(Path::new("configs/train.yaml"), &cell.sets).unwrap_or_else(|error| {
        panic!("configs/train.yaml with {:?}: {error:?}", cell.sets);
    });
    let prepared = scenario.under(arm).and_then(|arm| arm.prepare(seed)).unwrap_or_else(|refusal| {
        panic!("configs/train.yaml with {:?}: {refusal:?}", cell.sets);
    });
    let results = sim::run(&prepared.plan).expect("a sound plan");
    let flows = results.flows.iter().filter(|flow| !flow.is_background);
    Answer { kbps: flows.map(|flow| flow.goodput_kbps).collect(), jain: results.jain() }
}
