//! Finds the client that takes the most of a shared resource.

use std::collections::BTreeMap;

use super::origin::{Origin, Sharer};

/// Number of clients of each client's source, and of its address. A network of many hosts is one source; the second
/// number finds the host that takes the most there.
pub(super) fn weights(clients: impl Iterator<Item = Origin> + Clone) -> Vec<(usize, usize)> {
    let counts = Counts::of(clients.clone());
    clients.map(|client| counts.weight(client)).collect()
}

/// The number of clients of each source, and of each address.
#[derive(Debug, Default)]
pub(super) struct Counts {
    sources: BTreeMap<Sharer, usize>,
    addresses: BTreeMap<Origin, usize>,
}

impl Counts {
    pub(super) fn of(clients: impl Iterator<Item = Origin>) -> Counts {
        let mut counts = Counts::default();
        for client in clients {
            *counts.sources.entry(client.sharer()).or_default() += 1;
            *counts.addresses.entry(client).or_default() += 1;
        }
        counts
    }

    /// The counts of a client's source, and of its address.
    pub(super) fn at(&self, client: Origin) -> (usize, usize) {
        let of_source = self.sources.get(&client.sharer()).copied().unwrap_or(0);
        (of_source, self.addresses.get(&client).copied().unwrap_or(0))
    }

    /// The same, as it weighs against other clients. A client of this machine without a known user may be any user's
    /// second one. It counts as if it had the most, and gives way first.
    pub(super) fn weight(&self, client: Origin) -> (usize, usize) {
        if client == Origin::Unknown { (usize::MAX, usize::MAX) } else { self.at(client) }
    }
}
