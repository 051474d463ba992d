//! A mesh node without I/O: interfaces with their queues, forwarding, a routing protocol, and an endpoint for the
//! node's own traffic. The node is a [`Machine`](hopwise_core::Machine) and may not know what a radio is.
//!
//! This crate's README follows.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod aodv;
pub mod aodvv2;
pub mod batman;
mod behind;
pub mod constants;
pub mod dsr;
mod forward;
mod gateway;
pub mod gpsr;
pub mod hwmp;
mod link_source;
mod node;
mod on_demand;
mod proxy;
mod queue;
pub mod rfc5444;
mod router;
mod routing;
mod shim;
mod static_routes;

pub use behind::behind_routing;
pub use gateway::Gateway;
pub use link_source::{LinkSource, Schedule, TimedEvent};
pub use node::{EndpointObserver, Interface, Node, NodeConfig, OWN_LINK};
pub use on_demand::{Change, Keys, KeysError, OnDemand, Trust, first_stamp};
pub use proxy::{FlowKey, Proxy, ProxyConfig, ProxyCounts, ProxyRule};
pub use queue::{InterfaceQueue, QueueConfig, WhenFull};
pub use router::{Drops, Forward, Router, RouterConfig};
pub use routing::{Control, Cx, Order, Purged, Routed, Routing, Undelivered, Verdict};
pub use static_routes::{Hop, Neighbour, StaticRoutes, towards};
