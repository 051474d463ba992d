//! Agents of a base station: what it does with the packets of a link that fades.

pub mod ack_filter;
pub mod ack_hold;
pub mod delayed_dupacks;
pub mod forecast;
pub mod freeze;
pub mod m_tcp;
pub mod none;
pub mod plan;
pub mod snoop;
pub mod split;
