//! The cost of the radio world: simulated seconds in a second of CPU time, for chains of several lengths under both
//! profiles. Debian's ns-2 2.35 runs some of them in turn. Other rows show the growth of cost with the number of nodes.
//! `scripts/bench air` installs ns-2 and runs the bench.

mod chains;
mod cpu;
mod crowds;
#[path = "../core/groups.rs"]
mod groups;
mod ns2;
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
