//! Agents that decide when to acknowledge.

mod gap_average;
mod hold;
mod quick_gaps;
mod repeat;

use crate::descriptor::agents;

agents! { "receiver":
    pub mod immediate;
    pub mod delayed;
    pub mod altman_jimenez;
    pub mod daa;
    pub mod dca;
    pub mod tda;
    pub mod ada;
    pub mod adw;
    pub mod aad;
    pub mod tack;
    pub mod tarr;
    pub mod train;
    pub mod dup_count;
}

/// The agent of `docs/own-agent.md`. It is in no table, and only tests find it.
#[cfg(test)]
#[path = "../../docs/own-agent/growing.rs"]
pub(crate) mod shown;
