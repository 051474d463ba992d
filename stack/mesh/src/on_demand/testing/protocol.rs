//! The protocol of a network's nodes, as the network asks it.

use std::fmt::Debug;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;

use crate::routing::Routing;

/// The protocol of the nodes.
pub(crate) trait Protocol: Debug {
    fn port(&self) -> u16;
    /// The IP protocol of its own header, whose packets are overheard too.
    fn header(&self) -> Option<u8> {
        None
    }
    fn router(&self, birth: &Birth) -> Box<dyn Routing>;
    /// The time for which a node is silent after a restart.
    fn rest(&self) -> Duration;
    fn data_hop_limit(&self) -> u8;
    /// A message as text, received with that TTL.
    fn describe(&self, ttl: u8, message: &[u8]) -> String;
    fn boxed(&self) -> Box<dyn Protocol>;
}

/// The parameters of a new router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    pub(crate) address: Ipv4Addr,
    pub(crate) seed: u64,
    /// Higher at every start.
    pub(crate) counter: u64,
    pub(crate) wakes_at: Instant,
}
