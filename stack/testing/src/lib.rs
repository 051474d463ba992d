//! Shared code of tests, examples and benches: endpoints over a path in memory, and a swarm that draws plans over it.

#![expect(missing_docs, reason = "only tests, benches and examples of this workspace use it")]

pub mod book;
pub mod make;
pub mod memory;
pub mod swarm;
