//! The beginning of the ways to peers: whether the kernel routes there, or which station gets the packets.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use hopwise_core::{Endpoint, LinkFacts, NextHop, StationAddress};

use crate::driver::Driver;

/// The facts about our own link on the way to each peer.
pub type FirstLinks = BTreeMap<IpAddr, Arc<LinkFacts>>;

/// The beginning of the way to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The kernel routes.
    ByKernel,
    /// The station that gets the packets, on the device of a link.
    To(String, StationAddress),
}

/// Adds the ways to the peers of an endpoint's connections, up to `most`. Returns the number of connections.
pub(crate) fn add_ways(driver: &Driver<Endpoint>, ways: &mut BTreeMap<IpAddr, Way>, most: usize) -> usize {
    for peer in driver.machine().peers() {
        if ways.len() < most
            && !ways.contains_key(&peer)
            && let Some(way) = way_to(driver, peer)
        {
            ways.insert(peer, way);
        }
    }
    driver.machine().connections()
}

/// None while the station is unknown.
fn way_to(driver: &Driver<Endpoint>, peer: IpAddr) -> Option<Way> {
    let (link, hop) = driver.machine().way_to(peer)?;
    let link = driver.link(link)?;
    match hop {
        NextHop::Neighbour(hop) => Some(Way::To(link.name().to_owned(), link.station_of(hop)?)),
        NextHop::Link if link.is_routed() => Some(Way::ByKernel),
        NextHop::Link | NextHop::All => None,
    }
}
