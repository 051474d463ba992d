//! Entrances for fuzz targets, which are no users of the API: readers of what users, other programs and earlier starts
//! hand to daemons. Each takes any bytes and checks what holds for all of them.

pub use hopwise_node::fuzzing as node;
pub use hopwise_node::measure::fuzzing as measure;
#[cfg(feature = "mesh")]
pub use hopwise_router::proxy::fuzzing as proxy;
#[cfg(feature = "mesh")]
pub use hopwise_router::route::fuzzing as route;
