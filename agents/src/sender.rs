//! Agents that decide how much may be in flight, and not before when.

pub mod ask_rate;
pub mod cubic;
pub mod cwl;
pub mod daa_peer;
pub mod elfn;
pub mod limit;
pub mod newreno;
pub mod paced;
pub mod pgy;
mod seldom;
pub mod tcp_ap;
pub mod tell_cwnd;
pub mod train;
pub mod westwood;
mod window;
