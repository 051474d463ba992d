//! What runs a mesh: the routing daemon, and radios of the air for stations that have none.

pub(crate) mod air;
pub(crate) mod route;
