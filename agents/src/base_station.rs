//! Agents that decide what a base station does with the packets of a link that fades.

pub mod forecast;
pub mod plan;

use crate::descriptor::agents;

agents! { "base_station":
    pub mod none;
    pub mod ack_hold;
    pub mod snoop;
    pub mod delayed_dupacks;
    pub mod freeze;
    pub mod m_tcp;
    pub mod split;
    pub mod ack_filter;
}
