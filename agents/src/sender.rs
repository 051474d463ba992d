//! Agents that decide how much may be in flight, and not before when.

pub mod limit;
pub mod newreno;
mod window;
