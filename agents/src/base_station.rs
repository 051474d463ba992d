//! Agents that decide what a base station does with the packets of a link that fades.

/// What an agent answers that keeps no packet and waits for no time.
macro_rules! keeps_nothing {
    () => {
        fn on_deadline(&mut self, _: Instant, _: &FlowView, _: &mut Orders) {}
        fn on_overflow(&mut self, _: Instant) {}
        fn takes_back(&self) -> bool {
            false
        }
        fn deadline(&self) -> Option<Instant> {
            None
        }
    };
}

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
