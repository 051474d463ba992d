//! What the radio world costs: simulated seconds in a second of CPU time, for chains of several lengths under both
//! profiles, beside ns-2 2.35 on one core of a machine like CI's; and how cost grows with the number of nodes.
//! `scripts/bench air` runs it.

#[path = "air/chains.rs"]
mod chains;
#[path = "air/cpu.rs"]
mod cpu;
#[path = "air/crowds.rs"]
mod crowds;
#[path = "core/row.rs"]
#[expect(dead_code, reason = "shared with the core's benchmark")]
mod row;

use row::Row;

/// A group of rows, by the word that selects it.
type Group = (&'static str, fn() -> Vec<Row>);

const GROUPS: [Group; 2] = [("chains", chains::rows), ("crowds", crowds::rows)];

/// Words that are no options choose groups; without any, all run.
fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    let mut rows = Vec::new();
    for (name, run) in GROUPS.iter().filter(|(name, _)| is_chosen(name)) {
        eprintln!("{name}:");
        rows.extend(run());
    }
    println!("{}", row::object("air", &rows));
}
