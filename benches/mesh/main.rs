//! The cost of routing: a control packet in a thousand moving nodes, and a lookup among ten thousand routes. A third
//! part times live daemons until they find a route. `scripts/bench mesh` runs it.

mod control;
#[path = "../air/cpu.rs"]
#[expect(dead_code, reason = "shared with the radio world's benchmark")]
mod cpu;
#[path = "../core/groups.rs"]
mod groups;
mod live;
#[path = "../../tests/live/namespace.rs"]
#[expect(dead_code, reason = "shared with the live tests")]
mod namespace;
#[path = "../core/row.rs"]
#[expect(dead_code, reason = "shared with the core's benchmark")]
mod row;
mod tables;

use groups::Group;
use row::Row;

const GROUPS: [Group<Row>; 3] = [("control", control::rows), ("tables", tables::rows), ("live", live::rows)];

fn main() {
    println!("{}", row::object("mesh", &groups::run(&GROUPS)));
}
