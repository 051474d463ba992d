//! The gain of each mechanism of `train`: the scenes of `configs/train/test.yaml` with it and without it.
//!
//! Both have the same seeds. A row stands for each scene that the mechanism changes by 2 % or more. Zero must lie
//! outside the 95 % interval of that change, seed by seed. One more row holds the mean of all scenes.

use hopwise_agents::descriptor::Kind;
use hopwise_agents::param::Form;
use hopwise_agents::registry;
use hopwise_lab::statistics::{MARGIN, paired};

use crate::measure::{self, Cell, Mean};
use crate::row::Row;
use crate::scenes;

const ARMS: [&str; 1] = ["train"];
/// Smaller changes get no row.
const LEAST: f64 = 0.02;

pub(crate) fn rows() -> Vec<Row> {
    let cases = scenes::cases("test");
    let names = cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>();
    let under = |sender: &str| {
        let cell = |case: &scenes::Case| {
            let mut sets = case.sets.clone();
            sets.push(format!("arms.train={{ receiver: train, sender: ['{sender}'] }}"));
            Cell { sets, arms: &ARMS }
        };
        let measured = measure::all(&cases.iter().map(cell).collect::<Vec<_>>());
        measured.into_iter().flatten().collect::<Vec<Mean>>()
    };
    let whole = under("train");
    let senders = mechanisms();
    senders.iter().flat_map(|sender| rows_of(sender, &names, &whole, &under(sender))).collect()
}

/// The sender without each of its mechanisms in turn.
fn mechanisms() -> Vec<String> {
    let mut named = registry::find("train");
    let train = named.find(|agent| agent.kind() == Kind::Sender).expect("it is registered");
    let Some(Form::Choice(parts)) = train.param("without").map(|param| param.form) else {
        panic!("`without` is a choice")
    };
    let parts = parts.iter().filter(|part| **part != "nothing").map(|part| format!("train:without={part}"));
    let switches = ["compete", "turns"].map(|switch| format!("train:{switch}=off"));
    parts.chain(switches).collect()
}

fn rows_of(sender: &str, names: &[&str], whole: &[Mean], without: &[Mean]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut ratios = Vec::new();
    for ((name, whole), without) in names.iter().zip(whole).zip(without) {
        let pairs: Vec<_> = whole.runs_kbps.iter().copied().zip(without.runs_kbps.iter().copied()).collect();
        let ratio = whole.kbps / without.kbps.max(1e-9);
        ratios.push(ratio);
        let is_sure = paired(&pairs, MARGIN).ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0);
        if is_sure && (ratio - 1.0).abs() >= LEAST {
            rows.push(row(format!("{sender}, {name}"), "kbit/s", whole.kbps, without.kbps));
        }
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    rows.push(row(format!("{sender}, mean of all scenes"), "ratio", mean, 1.0));
    rows.into_iter().map(Row::printed).collect()
}

fn row(name: String, unit: &'static str, ours: f64, theirs: f64) -> Row {
    Row { name, unit, ours, peer: "without it", theirs, goal: None, jain: None }
}
