//! Means over seeds, as many runs at once as there are cores.

use std::path::Path;

use hopwise::parallel::in_parallel;
use hopwise::scenario::Scenario;
use hopwise::sim;

const SEEDS: u64 = 5;

/// What is set over `configs/train.yaml`, and who is to be beaten there.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) sets: Vec<String>,
    pub(crate) peers: &'static [&'static str],
}

/// Of an arm: its goodput, and the fairness of its flows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    pub(crate) kbps: f64,
    pub(crate) jain: f64,
}

/// For each cell `train`'s mean, and the best peer with its.
pub(crate) fn all(cells: &[Cell]) -> Vec<(Mean, (&'static str, Mean))> {
    let mut questions = Vec::new();
    for (nth, cell) in cells.iter().enumerate() {
        for arm in cell.peers.iter().copied().chain(["train"]) {
            questions.extend((1..=SEEDS).map(|seed| (nth, arm, seed)));
        }
    }
    let answers = in_parallel(questions.clone(), |(nth, arm, seed)| one(&cells[nth], arm, seed));
    let mean = |wanted: usize, wanted_arm: &str| {
        let mut mean = Mean::default();
        for ((nth, arm, _), (kbps, jain)) in questions.iter().zip(&answers) {
            if (*nth, *arm) == (wanted, wanted_arm) {
                mean.kbps += kbps / SEEDS as f64;
                mean.jain += jain / SEEDS as f64;
            }
        }
        mean
    };
    let of_cell = |(nth, cell): (usize, &Cell)| {
        let peers = cell.peers.iter().map(|arm| (*arm, mean(nth, arm)));
        let best = peers.max_by(|one, other| one.1.kbps.total_cmp(&other.1.kbps)).expect("a peer");
        (mean(nth, "train"), best)
    };
    cells.iter().enumerate().map(of_cell).collect()
}

fn one(cell: &Cell, arm: &str, seed: u64) -> (f64, f64) {
    let scenario = Scenario::load(Path::new("configs/train.yaml"), &cell.sets).unwrap_or_else(|error| {
        panic!("configs/train.yaml with {:?}: {error:?}", cell.sets);
    });
    let prepared = scenario.prepare(arm, seed).unwrap_or_else(|refusal| {
        panic!("configs/train.yaml with {:?}: {refusal:?}", cell.sets);
    });
    let results = sim::run(&prepared.plan).expect("a sound plan");
    (results.total_kbps(), results.jain())
}
