//! The cost of an agent for each segment, above the plainest agent of its kind. Receivers are compared with
//! `immediate`, sender lists with `[newreno]`, and base-station agents in their proxy with `none`. `scripts/bench
//! agents` runs it.
//!
//! Agents are driven through their contracts as by a connection, in virtual time and without a connection around.

mod base_stations;
#[expect(dead_code, reason = "rates are the core's")]
#[path = "../core/clock.rs"]
mod clock;
#[path = "../core/groups.rs"]
mod groups;
mod receivers;
#[expect(dead_code, reason = "nobody else has agents to compare with, and runs are counted otherwise")]
#[path = "../core/row.rs"]
mod row;
mod senders;

use groups::Group;
use row::Row;

/// Runs of each agent. They are short, and the least of them is the cost: longer runs were disturbed.
const RUNS: usize = 60;

/// The most that an agent may cost a segment above the plainest of its kind.
fn goal_ns(name: &str) -> f64 {
    match name {
        "adw" | "aad" | "tcp-ap" | "train" => 80.0,
        _ => 30.0,
    }
}

/// Two costs, measured in turn: other load of the machine meets both.
fn least_in_turn(mut one: impl FnMut() -> f64, mut other: impl FnMut() -> f64) -> (f64, f64) {
    let runs = (0..RUNS).map(|_| (one(), other()));
    runs.fold((f64::MAX, f64::MAX), |least, run| (least.0.min(run.0), least.1.min(run.1)))
}

/// The cost of `agent` above the cost of `plainest`.
fn more(agent: impl FnMut() -> f64, plainest: impl FnMut() -> f64) -> f64 {
    let (agent, plainest) = least_in_turn(agent, plainest);
    agent - plainest
}

const GROUPS: [Group<Row>; 3] =
    [("receivers", receivers::rows), ("senders", senders::rows), ("base-stations", base_stations::rows)];

fn main() {
    println!("{}", row::object("agents", &groups::run(&GROUPS)));
}
