//! The laboratory: what a run came to, what is kept of it, and what many runs say together.

pub mod cost;
pub mod findings;
pub mod record;
pub mod report;
pub mod result;
pub mod statistics;
