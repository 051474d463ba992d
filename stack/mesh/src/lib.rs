//! A mesh node without I/O: interfaces with their queues, forwarding, a routing protocol, and an endpoint for the
//! node's own traffic. The node is a [`Machine`](hopwise_core::Machine) and may not know what a radio is.
//!
//! This crate's README follows.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod aodv;
pub mod aodvv2;
pub mod batman;
pub mod constants;
pub mod dsr;
mod gateway;
pub mod gpsr;
pub mod hwmp;
mod node;
mod on_demand;
mod protocol;
mod proxy;
mod queue;
pub mod rfc5444;
mod router;
mod routing;
mod shim;
mod static_routes;
mod thin;

pub use gateway::Gateway;
pub use gateway::{LinkSource, Schedule, TimedEvent};
pub use node::{EndpointObserver, Interface, Node, NodeConfig, OWN_LINK};
pub use on_demand::{Auth, Keys, KeysError, OnDemand, RouteChange, Trust, first_stamp};
pub use protocol::{
    DaemonProtocol, LiveRouter, PROTOCOLS, PacketMark, RoutingProtocol, RoutingSetup, behind_routing,
    is_routing_port,
};
pub use proxy::{FlowKey, Proxy, ProxyConfig, ProxyCounts, ProxyRule};
pub use queue::{InterfaceQueue, QueueConfig, WhenFull};
pub use router::{Drops, Forward, Router, RouterConfig};
pub use routing::{
    ControlMessage, Cx, Hop, Purged, RoutedPacket, Routing, RoutingOrder, RoutingVerdict, Undelivered,
};
pub use static_routes::{FirstStep, StaticNeighbour, StaticRoutes, towards};
pub use thin::{AckFate, Thin, ThinConfig, ThinCounts, ThinRule};
