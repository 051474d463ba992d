//! What each source has of the room for fragments.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::ip::Source;

/// What is held for one source, or for one address of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) datagrams: usize,
    pub(super) bytes: usize,
}

/// Shares of those that hold something. An address counts beside its source, so that in a network of many hosts the
/// one that floods is found.
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

    /// What the source of `of` holds, and what `of` holds itself, when `src` is given `more`.
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

/// One that holds nothing is forgotten.
fn change_at<K: Ord + Copy>(shares: &mut BTreeMap<K, Share>, key: K, change: impl Fn(&mut Share)) {
    let share = shares.entry(key).or_default();
    change(share);
    if *share == Share::default() {
        shares.remove(&key);
    }
}
