//! The goodput of `train` and of the published agents, and the check of its goals under ns-2's MAC rules and under the
//! standard's. Further groups show the goodput without pauses, flows of other kinds on its path, the worth of taking
//! turns, and the scenes of `configs/train`. `scripts/bench train` runs it, and `scripts/bench train --ablate` measures
//! the gain of each mechanism.
//!
//! Every figure is the mean of five seeds in the arms of `configs/train.yaml`, in virtual time. Each run is kept in
//! `results/bench-train.runs.jsonl`. A later start from unchanged sources goes on where the last one stopped.

mod ablate;
mod beside;
mod goals;
#[path = "../core/groups.rs"]
mod groups;
mod measure;
mod progress;
mod row;
mod scenes;
mod store;
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

/// Adds a row with the number of goals met.
fn counted(group: &str, mut rows: Vec<Row>) -> Vec<Row> {
    rows.push(row::count(group, &rows));
    rows
}

fn main() {
    let is_ablation = std::env::args().any(|word| word == "--ablate");
    let rows = if is_ablation { ablate::rows() } else { groups::run(&GROUPS) };
    println!("{}", row::object(&rows));
}
