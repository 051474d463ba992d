//! AODV (RFC 3561): routes that are found when a packet needs them.
//!
//! [`Settings::rules`] say whose rules a node follows: the RFC's, or those of ns-2 2.35, with which the papers were
//! measured ([`ns2`]). What both share stands beside them by nouns: messages, what waits for routes, what was seen,
//! what is to be sent, what is told of arrivals.

pub mod ack_seq;
mod buffer;
mod key;
pub mod messages;
pub mod ns2;
mod outbox;
pub mod rfc3561;
mod seen;
mod settings;
#[cfg(test)]
mod testing;

use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::Instant;
use hopwise_core::agent::{HopSource, Path, PathEvent};
use hopwise_core::wire::{IpView, protocol};

pub use key::Key;
pub use outbox::Interface;
pub use settings::{Rules, Settings};

use crate::routing::{Order, Routing};

/// UDP's (RFC 3561 §8).
pub const PORT: u16 = 654;

/// What a node is given once.
#[derive(Clone, Debug)]
pub struct Config {
    pub settings: Settings,
    /// At least one; the first one's address is the node's name.
    pub interfaces: Vec<Interface>,
    /// Other addresses that are to be reached through this node, and ask through it (`rules: rfc3561`).
    pub serves: Vec<Ipv4Addr>,
    /// What chance is drawn from.
    pub seed: u64,
    /// Where counters of signed messages begin: higher at every start of the same node.
    pub counter: u64,
    /// A node that may have routed before, and has lost its numbers, passes nothing on until then (RFC 3561 §6.13).
    pub wakes_at: Instant,
}

/// A node that follows the rules of its settings.
pub fn routing(config: Config) -> Box<dyn Routing> {
    match config.settings.rules {
        Rules::Ns2 => Box::new(ns2::Ns2Aodv::new(config)),
        Rules::Rfc3561 => Box::new(rfc3561::Aodv::new(config)),
    }
}

fn first_address(interfaces: &[Interface]) -> Ipv4Addr {
    interfaces.first().map_or(Ipv4Addr::UNSPECIFIED, |interface| interface.address)
}

/// RFC 3561's messages name nodes by IPv4 addresses.
fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(_) => None,
    }
}

fn path_of(hops: Option<u8>) -> Path {
    let hops = hops.map(|hops| (hops, HopSource::Routing));
    Path { hops_to_peer: hops, hops_from_peer: hops, ..Path::default() }
}

fn tell(peer: Ipv4Addr, event: PathEvent, hops: Option<u8>) -> Order {
    Order::Tell { peer: peer.into(), ports: None, event, path: path_of(hops) }
}

/// What connections should hear when a route has become `now`, having heard `told`.
fn news(told: &mut Option<u8>, now: Option<u8>) -> Option<PathEvent> {
    let before = std::mem::replace(told, now);
    match (before, now) {
        (None, Some(_)) => Some(PathEvent::RouteFound),
        (Some(_), None) => Some(PathEvent::RouteFailed),
        (Some(before), Some(now)) if before != now => Some(PathEvent::HopsChanged),
        _ => None,
    }
}

/// Whether a packet that came back is one of the protocol's own.
fn is_message(packet: &[u8]) -> bool {
    let Ok(view) = IpView::parse(packet) else { return false };
    let port = PORT.to_be_bytes();
    view.protocol == protocol::UDP && view.payload.get(2..4) == Some(&port[..])
}
