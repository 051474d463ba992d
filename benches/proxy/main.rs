//! The cost of a base station's proxy where no link fades: time and memory with 10,000 flows. A second part measures
//! the traffic of its thread between two kernels over TUN devices, and the traffic of a relay on these devices that
//! reads nothing. `scripts/bench proxy` runs it; the second part needs root. Time is processor time.

mod crowd;
#[expect(dead_code, reason = "what it offers is shared with the live tests")]
#[path = "../../tests/live/namespace.rs"]
mod namespace;
#[expect(dead_code, reason = "what it offers is shared with the core's benchmark")]
#[path = "../core/row.rs"]
mod row;
mod tun;
mod usage;

use row::Row;

/// A group of rows, by the word that selects it.
type Group = (&'static str, fn() -> Vec<Row>);

const GROUPS: [Group; 2] = [("crowd", crowd::rows), ("tun", tun::rows)];

/// Words that are no options choose groups; without any, all run.
fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    let mut rows = Vec::new();
    for (name, run) in GROUPS.iter().filter(|(name, _)| is_chosen(name)) {
        eprintln!("{name}:");
        rows.extend(run());
    }
    println!("{}", row::object("proxy", &rows));
}
