//! The daemon's protocol, with its settings.

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_mesh::aodv::Interface;
use hopwise_mesh::aodv::rfc3561::Aodv;
use hopwise_mesh::aodvv2::Aodvv2;
use hopwise_mesh::{OnDemand, Trust, aodv, aodvv2, rfc5444};

#[derive(Clone, Debug)]
pub(super) enum Speaks {
    Aodv(Box<aodv::Settings>),
    Dymo(Box<aodvv2::Settings>),
}

/// The parameters of a router beside its settings.
#[derive(Clone, Debug)]
pub(super) struct Birth {
    pub(super) interfaces: Vec<Interface>,
    pub(super) serves: Vec<Ipv4Addr>,
    /// The sequence number to start from, if the node has kept one.
    pub(super) seq: u16,
    pub(super) seed: u64,
    pub(super) counter: u64,
    pub(super) wakes_at: Instant,
    pub(super) trust: Trust,
}

impl Speaks {
    /// The UDP port of both ends.
    pub(super) fn port(&self) -> u16 {
        match self {
            Speaks::Aodv(_) => aodv::PORT,
            Speaks::Dymo(_) => rfc5444::PORT,
        }
    }

    /// The destination of broadcast or multicast messages.
    pub(super) fn everyone(&self) -> Ipv4Addr {
        match self {
            Speaks::Aodv(_) => Ipv4Addr::BROADCAST,
            Speaks::Dymo(_) => rfc5444::ALL_ROUTERS,
        }
    }

    /// Returns whether messages carry arrivals.
    pub(super) fn says_arrivals(&self) -> bool {
        match self {
            Speaks::Aodv(settings) => settings.ack_seq,
            Speaks::Dymo(settings) => settings.ack_seq,
        }
    }

    /// The time for which a node that has lost its numbers is silent.
    pub(super) fn rest(&self) -> Duration {
        match self {
            Speaks::Aodv(settings) => settings.delete_period(),
            Speaks::Dymo(settings) => settings.max_seqnum_lifetime,
        }
    }

    pub(super) fn router(&self, birth: Birth) -> Box<dyn OnDemand> {
        let Birth { interfaces, serves, seq, seed, counter, wakes_at, trust } = birth;
        match self {
            Speaks::Aodv(settings) => {
                let settings = (**settings).clone();
                Box::new(Aodv::new(aodv::Config {
                    settings,
                    interfaces,
                    serves,
                    seed,
                    counter,
                    wakes_at,
                    trust,
                }))
            }
            Speaks::Dymo(settings) => {
                let settings = (**settings).clone();
                Box::new(Aodvv2::new(aodvv2::Config {
                    settings,
                    interfaces,
                    serves,
                    seq,
                    seed,
                    counter,
                    wakes_at,
                    trust,
                }))
            }
        }
    }
}
