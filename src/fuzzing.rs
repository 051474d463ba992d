//! Entrances for fuzz targets, which are no users of the API: readers of what users, other programs and earlier starts
//! hand to daemons. Each takes any bytes and checks what holds for all of them.

pub use crate::measure::fuzzing as measure;
pub use crate::mesh::route::fuzzing as route;
pub use crate::node::fuzzing as node;
pub use crate::proxy::fuzzing as proxy;
