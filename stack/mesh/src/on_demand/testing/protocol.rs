//! The protocol of a network's nodes, as the network asks it.

use std::fmt::Debug;
use std::time::Duration;

use crate::protocol::RoutingSetup;
use crate::routing::Routing;

/// The protocol of the nodes.
pub(crate) trait Protocol: Debug {
    fn port(&self) -> u16;
    /// The IP protocol of its own header, whose packets are overheard too.
    fn header(&self) -> Option<u8> {
        None
    }
    fn router(&self, setup: RoutingSetup) -> Box<dyn Routing>;
    /// The time for which a node is silent after a restart.
    fn rest(&self) -> Duration;
    fn data_hop_limit(&self) -> u8;
    /// A message as text, received with that TTL.
    fn describe(&self, ttl: u8, message: &[u8]) -> String;
    fn boxed(&self) -> Box<dyn Protocol>;
}
