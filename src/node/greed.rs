//! Which of those that share something takes the most of it.

use std::collections::BTreeMap;

use super::origin::{Origin, Sharer};

/// For each of these clients, how many there are of its source, and how many of its very address: in a network of many
/// hosts that is one source, the host that takes the most is found all the same.
pub(super) fn weights(clients: impl Iterator<Item = Origin> + Clone) -> Vec<(usize, usize)> {
    let counts = Counts::of(clients.clone());
    clients.map(|client| counts.at(client)).collect()
}

/// How many there are of each source, and of each address.
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

    /// Of the source of a client, and of its address.
    pub(super) fn at(&self, client: Origin) -> (usize, usize) {
        let of_source = self.sources.get(&client.sharer()).copied().unwrap_or(0);
        (of_source, self.addresses.get(&client).copied().unwrap_or(0))
    }
}
