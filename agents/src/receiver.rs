//! Agents that decide when to acknowledge.

pub mod aad;
pub mod ada;
pub mod adw;
pub mod altman_jimenez;
pub mod daa;
pub mod dca;
pub mod delayed;
pub mod dup_count;
mod gap_average;
mod hold;
pub mod immediate;
mod quick_gaps;
mod repeat;
pub mod tack;
pub mod tarr;
pub mod tda;
pub mod train;
