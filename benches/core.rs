//! What the core costs: bulk transfer and small messages beside smoltcp's TCP on the same harness, connections
//! opened and closed, and 100,000 connections in one endpoint. `scripts/bench core` runs it.
//!
//! Both ends of every connection live in this process and one thread, and packets pass between them without a copy.
//! Rows that compare run both stacks in turn, several times, and tell the medians.

#[path = "core/bulk.rs"]
mod bulk;
#[path = "core/clock.rs"]
mod clock;
#[path = "core/crowd.rs"]
mod crowd;
#[path = "core/open_close.rs"]
mod open_close;
#[path = "core/ours.rs"]
mod ours;
#[path = "core/pair.rs"]
mod pair;
#[path = "core/ping_pong.rs"]
mod ping_pong;
#[path = "core/row.rs"]
mod row;
#[path = "core/theirs.rs"]
mod theirs;

use row::Row;

/// A group of rows, by the word that selects it.
type Group = (&'static str, fn() -> Vec<Row>);

const GROUPS: [Group; 4] = [
    ("bulk", bulk::rows),
    ("ping-pong", ping_pong::rows),
    ("open-close", open_close::rows),
    ("crowd", crowd::rows),
];

/// Words that are no options choose groups, so that one can be profiled alone; without any, all run.
fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    let mut rows = Vec::new();
    for (name, run) in GROUPS.iter().filter(|(name, _)| is_chosen(name)) {
        eprintln!("{name}:");
        rows.extend(run());
    }
    println!("{}", row::object("core", &rows));
}
