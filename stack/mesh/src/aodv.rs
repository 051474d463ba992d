//! AODV (RFC 3561): routes that are found when a packet needs them.
//!
//! [`Settings::rules`] choose a node's rules: the RFC's, or those of ns-2 2.35, with which the papers were measured
//! (`ns2`). Both share the messages and the table of seen requests. The common part of all on-demand protocols is in
//! `on_demand`.

mod ack_seq;
mod icv;
#[cfg(test)]
mod losses;
pub mod messages;
mod ns2;
pub mod rfc3561;
mod seen;
mod settings;
#[cfg(test)]
mod testing;

use std::net::Ipv4Addr;

use hopwise_core::Instant;

pub use crate::on_demand::{Interface, Key, Trust};
pub use settings::{AodvRules, Settings};

use crate::on_demand::ack_seq::AckSeqs;
use crate::on_demand::{BufferBounds, Desk, Form, Manners, Outbox};
use crate::routing::Routing;

/// The UDP port (RFC 3561 §8).
pub const PORT: u16 = 654;

const FORM: Form = Form { sign: icv::sign, verify: icv::verify, cost: icv::COST };

/// The configuration of a node, given at construction.
#[derive(Clone, Debug)]
pub struct Config {
    /// The constants of the protocol.
    pub settings: Settings,
    /// At least one; the first one's address is the node's name.
    pub interfaces: Vec<Interface>,
    /// Other addresses that this node makes reachable and searches for (`rules: rfc3561`).
    pub serves: Vec<Ipv4Addr>,
    /// Seed of all random draws.
    pub seed: u64,
    /// The start of the counters in signed messages: higher at every start of the same node.
    pub counter: u64,
    /// A node that may have routed before and has lost its numbers forwards nothing until then (RFC 3561 §6.13).
    pub wakes_at: Instant,
    /// The limits on messages of others.
    pub trust: Trust,
}

/// A node that follows the rules of its settings.
pub fn routing(config: Config) -> Box<dyn Routing> {
    match config.settings.rules {
        AodvRules::Ns2 => Box::new(ns2::Ns2Aodv::new(config)),
        AodvRules::Rfc3561 => Box::new(rfc3561::Aodv::new(config)),
    }
}

fn desk(config: &Config) -> Desk {
    let Config { settings, interfaces, seed, counter, trust, .. } = config;
    let outbox = Outbox::new(Manners { port: PORT, everyone: Ipv4Addr::BROADCAST }, *seed);
    let is_shared = settings.rules == AodvRules::Rfc3561;
    let bounds = BufferBounds { packets: settings.buffer_packets, time: settings.buffer_time, is_shared };
    let ack_seqs = AckSeqs::new(settings.ack_seq, settings.key, *counter);
    Desk::new(interfaces.clone(), outbox, bounds, ack_seqs).with_trust(trust.clone(), FORM, *counter)
}
