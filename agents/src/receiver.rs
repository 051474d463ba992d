//! Agents that decide when to acknowledge.

mod gaps;
pub(crate) mod hold;
mod repeat;

use crate::descriptor::agents;

agents! { "receiver":
    pub mod immediate;
    pub mod delayed;
    pub mod linux;
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
    pub mod convoy;
    pub mod dup_count;
}
