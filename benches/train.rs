//! What `train` carries beside the published agents, and whether that is what it is meant to: the goals under ns-2's
//! MAC rules and under the standard's, and the scenes of `configs/train`. `scripts/bench train` runs it.
//!
//! Every figure is the mean of five seeds in the arms of `configs/train.yaml`, in virtual time.

#[path = "train/goals.rs"]
mod goals;
#[path = "core/groups.rs"]
mod groups;
#[path = "train/measure.rs"]
mod measure;
#[path = "train/row.rs"]
mod row;
#[path = "train/scenes.rs"]
mod scenes;

use groups::Group;
use row::Row;

const GROUPS: [Group<Row>; 5] = [
    ("goals", goals::under_ns2),
    ("standard", goals::under_standard),
    ("bound", goals::beside_datagrams),
    ("tuning", || scenes::rows("tuning")),
    ("test", || scenes::rows("test")),
];

fn main() {
    println!("{}", row::object(&groups::run(&GROUPS)));
}
