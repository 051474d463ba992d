//! The share of each source in the memory for fragments.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::ip::Source;

/// The share of one source, or of one of its addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) datagrams: usize,
    pub(super) bytes: usize,
}

/// The shares of all holders. Each address counts in addition to its source, to find the flooding host in a network of
/// many.
#[derive(Debug, Default)]
pub(super) struct Shares {
    sources: BTreeMap<Source, Share>,
    addresses: BTreeMap<IpAddr, Share>,
}

impl Shares {
    pub(super) fn change(&mut self, src: IpAddr, change: impl Fn(&mut Share)) {
        change_at(&mut self.sources, Source::of(src), &change);
        change_at(&mut self.addresses, src, &change);
    }

    /// The weight of `of`: the share of its source, and its own, with `more` added for `src`.
    pub(super) fn weight(
        &self,
        of: IpAddr,
        held: impl Fn(&Share) -> usize,
        (src, more): (IpAddr, usize),
    ) -> (usize, usize) {
        let (source, is_same) = (Source::of(of), Source::of(of) == Source::of(src));
        let of_source = self.sources.get(&source).map_or(0, &held) + if is_same { more } else { 0 };
        let of_address = self.addresses.get(&of).map_or(0, &held) + if of == src { more } else { 0 };
        (of_source, of_address)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.addresses.is_empty()
    }
}

/// Applies a change; an empty share is removed.
fn change_at<K: Ord + Copy>(shares: &mut BTreeMap<K, Share>, key: K, change: impl Fn(&mut Share)) {
    let share = shares.entry(key).or_default();
    change(share);
    if *share == Share::default() {
        shares.remove(&key);
    }
}
