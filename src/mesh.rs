//! Commands that run a mesh: the routing daemon, and simulated radios for kernels that have none.

pub(crate) mod air;
mod lag;
pub(crate) mod route;
pub(crate) mod world;
