//! Agents that decide when to acknowledge.

pub mod delayed;
pub mod dup_count;
pub mod immediate;
