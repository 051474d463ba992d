//! What the command, the examples, the benches and the tests share.

pub mod memory;
pub mod swarm;
