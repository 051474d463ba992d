//! Commands that run a mesh: the routing daemon, and simulated radios for machines that have none.

pub(crate) mod air;
pub(crate) mod route;
