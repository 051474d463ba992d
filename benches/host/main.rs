//! The stack on TUN against the kernel's TCP: bulk in both directions with and without offload, and a transfer under a
//! flood of SYNs. Further rows show round trips, connections a second, CPU time and memory. With it run smoltcp on such
//! a device, a mover of packets that has no TCP, and the kernel with itself over veth. `scripts/bench host` runs it, as
//! root. With `--peers`, each stack has a process of its own, and lwIP and gVisor are there, too. With
//! `--without-peers` ours is alone.
//!
//! Everything happens in a network namespace of its own. CPU time is spent by both ends and by the kernel between them.

mod bulk;
mod files;
#[path = "../../tests/live/flood.rs"]
mod flood;
#[path = "../core/groups.rs"]
mod groups;
mod judged;
mod kernel;
mod messages;
mod mover;
mod ours;
mod peer;
mod peers;
mod place;
#[path = "../core/row.rs"]
#[expect(dead_code, reason = "what it offers is shared with the core's benchmark")]
mod row;
mod setup;
mod task;
mod theirs;
mod usage;

use groups::Group;
use row::Row;

const GROUPS: [Group<Row>; 5] = [
    ("bulk", bulk::rows),
    ("files", files::rows),
    ("flood", bulk::flood_rows),
    ("messages", messages::rows),
    ("crowd", messages::crowd_rows),
];

/// Leaves peers out: two commits of ours beside each other need none, and each pair takes a third of the time.
const WITHOUT_PEERS: &str = "--without-peers";

/// The groups of `--peers`.
const PEERS: [Group<Row>; 2] = [("bulk", judged::bulk), ("messages", judged::messages)];

fn is_without_peers() -> bool {
    std::env::args().any(|word| word == WITHOUT_PEERS)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((peer::OPTION, task)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        peer::run(task);
        return;
    }
    if let Some(reason) = place::obstacle() {
        eprintln!("skipped: host: {reason}");
        println!("{}", row::object("host", &[]));
        return;
    }
    let _namespace = place::Namespace::enter();
    let has_peers = words.iter().any(|word| word == peers::OPTION);
    let rows = if has_peers { groups::run(&PEERS) } else { groups::run(&GROUPS) };
    println!("{}", row::object("host", &rows));
}
