//! What `train` carries beside the published agents, and whether that is what it is meant to: the goals under ns-2's
//! MAC rules and under the standard's, what never pausing would bring, beside flows of other kinds, what it is worth to
//! take turns, and the scenes of `configs/train`.
//! `scripts/bench train` runs it, and `scripts/bench train --ablate` measures what each of its mechanisms brings.
//!
//! Every figure is the mean of five seeds in the arms of `configs/train.yaml`, in virtual time. Each run is kept in
//! `results/bench-train.runs.jsonl`: who starts it again, from the same sources, goes on where it was stopped.

#[path = "train/ablate.rs"]
mod ablate;
#[path = "train/beside.rs"]
mod beside;
#[path = "train/goals.rs"]
mod goals;
#[path = "core/groups.rs"]
mod groups;
#[path = "train/measure.rs"]
mod measure;
#[path = "train/progress.rs"]
mod progress;
#[path = "train/row.rs"]
mod row;
#[path = "train/scenes.rs"]
mod scenes;
#[path = "train/store.rs"]
mod store;
#[path = "train/turns.rs"]
mod turns;

use groups::Group;
use row::Row;

const GROUPS: [Group<Row>; 9] = [
    ("goals", || counted("goals", goals::under_ns2())),
    ("standard", || counted("standard", goals::under_standard())),
    ("bound", || counted("bound", goals::beside_datagrams())),
    ("pauses", goals::beside_no_pauses),
    ("beside", || counted("beside", beside::newreno())),
    ("beside-others", || counted("beside-others", beside::others())),
    ("turns", turns::rows),
    ("tuning", || counted("tuning", scenes::rows("tuning"))),
    ("test", || counted("test", scenes::rows("test"))),
];

/// With how many of them are met.
fn counted(group: &str, mut rows: Vec<Row>) -> Vec<Row> {
    rows.push(row::count(group, &rows));
    rows
}

fn main() {
    let is_ablation = std::env::args().any(|word| word == "--ablate");
    let rows = if is_ablation { ablate::rows() } else { groups::run(&GROUPS) };
    println!("{}", row::object(&rows));
}
