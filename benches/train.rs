//! What `train` carries beside the published agents, and whether that is what it is meant to: the goals under ns-2's
//! MAC rules and under the standard's, and the scenes of `configs/train`. `scripts/bench train` runs it.
//!
//! Every figure is the mean of five seeds in the arms of `configs/train.yaml`, in virtual time.

#[path = "train/goals.rs"]
mod goals;
#[path = "train/measure.rs"]
mod measure;
#[path = "train/row.rs"]
mod row;
#[path = "train/scenes.rs"]
mod scenes;

use row::Row;

/// A group of rows, by the word that selects it.
type Group = (&'static str, fn() -> Vec<Row>);

const GROUPS: [Group; 5] = [
    ("goals", goals::under_ns2),
    ("standard", goals::under_standard),
    ("bound", goals::beside_datagrams),
    ("tuning", || scenes::rows("tuning")),
    ("test", || scenes::rows("test")),
];

/// Words that are no options choose groups; without any, all run.
fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    let mut rows = Vec::new();
    for (name, run) in GROUPS.iter().filter(|(name, _)| is_chosen(name)) {
        eprintln!("{name}:");
        rows.extend(run());
    }
    println!("{}", row::object(&rows));
}
