//! The cost of the radio world: simulated seconds in a second of CPU time, for chains of several lengths under both
//! profiles. It is compared with ns-2 2.35 on one core of a machine like CI's. Other rows show the growth of cost with
//! the number of nodes. `scripts/bench air` runs it.

mod chains;
mod cpu;
mod crowds;
#[path = "../core/groups.rs"]
mod groups;
#[path = "../core/row.rs"]
#[expect(dead_code, reason = "shared with the core's benchmark")]
mod row;

use groups::Group;
use row::Row;

const GROUPS: [Group<Row>; 2] = [("chains", chains::rows), ("crowds", crowds::rows)];

fn main() {
    if crowds::works() {
        return;
    }
    println!("{}", row::object("air", &groups::run(&GROUPS)));
}
