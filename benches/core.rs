//! The cost of the core. Bulk transfer and small messages run beside smoltcp's TCP on the same harness. Further rows
//! open and close connections, and hold 100,000 connections in one endpoint. `scripts/bench core` runs it, and
//! `scripts/bench core --counts` counts instructions instead of measuring time, and `--counts-aarch64` those of a
//! Raspberry Pi's processor.
//!
//! Both ends of every connection live in this process and one thread, and packets pass between them without a copy.
//! Rows that compare run both stacks in turn, several times, and give the medians.

#[path = "core/bulk.rs"]
mod bulk;
#[path = "core/clock.rs"]
mod clock;
#[path = "core/counts.rs"]
mod counts;
#[path = "core/crowd.rs"]
mod crowd;
#[path = "core/emulated.rs"]
mod emulated;
#[path = "core/floor.rs"]
mod floor;
#[path = "core/groups.rs"]
mod groups;
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

use groups::Group;
use row::Row;

const GROUPS: [Group<Row>; 4] = [
    ("bulk", bulk::rows),
    ("ping-pong", ping_pong::rows),
    ("open-close", open_close::rows),
    ("crowd", crowd::rows),
];

fn main() {
    if counts::works() {
        return;
    }
    let has = |option: &str| std::env::args().any(|word| word == option);
    let rows = if has(counts::OPTION) {
        counts::rows()
    } else if has(emulated::OPTION) {
        emulated::rows()
    } else {
        groups::run(&GROUPS)
    };
    println!("{}", row::object("core", &rows));
}
