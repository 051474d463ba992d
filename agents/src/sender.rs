//! Agents that decide how much data may be in flight, and from when on segments may leave.

mod hystart;
mod seldom;
mod window;

use crate::descriptor::agents;

agents! { "sender":
    pub mod newreno;
    pub mod reno;
    pub mod cubic;
    pub mod westwood;
    pub mod vegas;
    pub mod copa;
    pub mod bbr;
    pub mod tack;
    pub mod train;
    pub mod convoy;
    pub mod limit;
    pub mod cwl;
    pub mod paced;
    pub mod tcp_ap;
    pub mod elfn;
    pub mod pgy;
    pub mod daa_peer;
    pub mod tell_cwnd;
    pub mod ask_rate;
}
