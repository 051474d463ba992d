//! Agents that decide when to acknowledge.

mod gap_average;
pub(crate) mod hold;
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
