//! The configuration of a node: its links, its addresses and its routing protocol.

use std::net::IpAddr;

use hopwise_core::LinkId;

use crate::queue::{QueueConfig, WhenFull};
use crate::routing::Routing;

/// One of the node's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The node's name for the link.
    pub link: LinkId,
    /// The packets that wait for the link.
    pub queue: QueueConfig,
    /// The fate of the node's own packets when the queue is full.
    pub when_full: WhenFull,
    /// Broadcast and multicast packets of the node leave here.
    pub is_shared: bool,
}

/// The configuration of a node, given at construction.
#[derive(Debug)]
pub struct NodeConfig {
    /// The links, beside the one to its endpoint.
    pub interfaces: Vec<Interface>,
    /// The addresses of the node itself; packets for them go to its endpoint.
    pub addresses: Vec<IpAddr>,
    /// The routing protocol.
    pub routing: Box<dyn Routing>,
    /// Events kept until they are drained, apart from the endpoint's own.
    pub trace_events: usize,
}
