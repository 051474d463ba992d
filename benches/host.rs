//! The stack on TUN against the kernel's TCP: bulk in both directions with and without offload, and a transfer under a
//! flood of SYNs. Further rows show round trips, connections a second, CPU time and memory. Beside it run smoltcp on
//! the same device, a mover of packets that has no TCP, and the kernel with itself over veth. `scripts/bench host` runs
//! it, as root.
//!
//! Everything happens in a network namespace of its own. CPU time is that of both ends and of the kernel between them.

#[path = "host/bulk.rs"]
mod bulk;
#[path = "../tests/live/flood.rs"]
mod flood;
#[path = "core/groups.rs"]
mod groups;
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
#[path = "host/setup.rs"]
mod setup;
#[path = "host/theirs.rs"]
mod theirs;
#[path = "host/usage.rs"]
mod usage;

use groups::Group;
use row::Row;

const GROUPS: [Group<Row>; 4] = [
    ("bulk", bulk::rows),
    ("flood", bulk::flood_rows),
    ("messages", messages::rows),
    ("crowd", messages::crowd_rows),
];

fn main() {
    if let Some(reason) = place::obstacle() {
        eprintln!("skipped: host: {reason}");
        println!("{}", row::object("host", &[]));
        return;
    }
    let _namespace = place::Namespace::enter();
    println!("{}", row::object("host", &groups::run(&GROUPS)));
}
