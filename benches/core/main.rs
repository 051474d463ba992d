//! The cost of the core. Bulk transfer and small messages run on one harness with smoltcp's TCP, too. Further rows open
//! and close connections, and hold 100,000 connections in one endpoint. `scripts/bench core` runs it, and
//! `scripts/bench core --counts` counts instructions and measures no time, and `--counts-aarch64` counts the
//! instructions of a Raspberry Pi's processor.
//!
//! Both ends of every connection live in this process and one thread, and packets pass between them without a copy.
//! Rows that compare run both stacks in turn, several times, and give the medians.

mod bulk;
mod clock;
mod counts;
mod crowd;
mod emulated;
mod floor;
mod groups;
mod open_close;
mod ours;
mod pair;
mod ping_pong;
mod row;
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
