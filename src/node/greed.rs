//! Which of those that share something takes the most of it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopwise_core::ip::Source;

/// For each of these clients, how many there are of its source, and how many of its very address: in a network of many
/// hosts that is one source, the host that takes the most is found all the same.
pub(super) fn weights(addresses: impl Iterator<Item = IpAddr> + Clone) -> Vec<(usize, usize)> {
    let counts = Counts::of(addresses.clone());
    addresses.map(|address| counts.at(address)).collect()
}

/// How many there are of each source, and of each address.
#[derive(Debug, Default)]
pub(super) struct Counts {
    sources: BTreeMap<Source, usize>,
    addresses: BTreeMap<IpAddr, usize>,
}

impl Counts {
    pub(super) fn of(addresses: impl Iterator<Item = IpAddr>) -> Counts {
        let mut counts = Counts::default();
        for address in addresses {
            *counts.sources.entry(Source::of(address)).or_default() += 1;
            *counts.addresses.entry(address).or_default() += 1;
        }
        counts
    }

    /// Of the source of an address, and of the address.
    pub(super) fn at(&self, address: IpAddr) -> (usize, usize) {
        let of_source = self.sources.get(&Source::of(address)).copied().unwrap_or(0);
        (of_source, self.addresses.get(&address).copied().unwrap_or(0))
    }
}
