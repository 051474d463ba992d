//! The stack on TUN against the kernel's TCP: bulk both ways with and without offload, a transfer under a flood of
//! SYNs, round trips, connections a second, CPU time and memory, beside smoltcp on the same device, a mover of packets
//! that has no TCP, and the kernel with itself over veth. `scripts/bench host` runs it, as root.
//!
//! Everything happens in a network namespace of its own. CPU time is that of both ends and of the kernel between them.

#[path = "host/bulk.rs"]
mod bulk;
#[path = "../tests/live/flood.rs"]
mod flood;
#[path = "host/kernel.rs"]
mod kernel;
#[path = "host/messages.rs"]
mod messages;
#[path = "host/mover.rs"]
mod mover;
#[path = "host/ours.rs"]
mod ours;
#[path = "host/place.rs"]
mod place;
#[path = "core/row.rs"]
#[expect(dead_code, reason = "what it offers is shared with the core's benchmark")]
mod row;
#[path = "host/theirs.rs"]
mod theirs;
#[path = "host/usage.rs"]
mod usage;

use row::Row;

/// A group of rows, by the word that selects it.
type Group = (&'static str, fn() -> Vec<Row>);

const GROUPS: [Group; 4] = [
    ("bulk", bulk::rows),
    ("flood", bulk::flood_rows),
    ("messages", messages::rows),
    ("crowd", messages::crowd_rows),
];

/// Words that are no options choose groups; without any, all run.
fn main() {
    if let Some(reason) = place::obstacle() {
        eprintln!("skipped: host: {reason}");
        println!("{}", row::object("host", &[]));
        return;
    }
    let _namespace = place::Namespace::enter();
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    let mut rows = Vec::new();
    for (name, run) in GROUPS.iter().filter(|(name, _)| is_chosen(name)) {
        eprintln!("{name}:");
        rows.extend(run());
    }
    println!("{}", row::object("host", &rows));
}
