//! Connections by source, and by the order in which they go. Each has a weight: 1, or the bytes of its buffers. No
//! operation takes longer than O(log n).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::LruList;
use crate::ip::Source;

/// The place of a connection in the order: by list, then by a number that grows with each filing.
type Age = (LruList, u64);

/// The accounts of an endpoint that are kept for now.
#[derive(Debug, Default)]
pub(super) struct BySource {
    /// Connections that peers opened. Kept from the time that the table is full until it is less than a quarter full.
    pub(super) guests: Option<Shares>,
    /// Connections with buffers. Kept from the time that memory is spent until less than half of it is taken.
    pub(super) holders: Option<Shares>,
}

impl BySource {
    pub(super) fn is_empty(&self) -> bool {
        self.guests.is_none() && self.holders.is_none()
    }
}

#[derive(Debug, Default)]
pub(super) struct Shares {
    /// The number of the last filing.
    last: u64,
    of_slot: BTreeMap<u32, Age>,
    by_age: BTreeMap<Age, Filed>,
    of_address: BTreeMap<IpAddr, Own>,
    shares: BTreeMap<Source, Share>,
    /// Sources by their weight.
    by_weight: BTreeSet<(u64, Source)>,
}

#[derive(Clone, Copy, Debug)]
struct Filed {
    slot: u32,
    peer: IpAddr,
    weight: u64,
}

/// The connections of one address.
#[derive(Debug, Default)]
struct Own {
    weight: u64,
    ages: BTreeSet<Age>,
}

/// The connections of one source.
#[derive(Debug, Default)]
struct Share {
    weight: u64,
    /// Addresses by their weight. All nodes of a mesh may be one source.
    addresses: BTreeSet<(u64, IpAddr)>,
}

impl Shares {
    /// Files a connection as the last of its list.
    pub(super) fn add(&mut self, slot: u32, peer: IpAddr, list: LruList, weight: u64) {
        self.last += 1;
        let age = (list, self.last);
        self.of_slot.insert(slot, age);
        self.by_age.insert(age, Filed { slot, peer, weight });
        let own = self.of_address.entry(peer).or_default();
        own.ages.insert(age);
        let was = own.weight;
        self.weigh(peer, was, was + weight);
    }

    /// Removes a connection, unless it is not filed.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(age) = self.of_slot.remove(&slot) else { return };
        let Some(Filed { peer, weight, .. }) = self.by_age.remove(&age) else { return };
        let Some(own) = self.of_address.get_mut(&peer) else { return };
        own.ages.remove(&age);
        let was = own.weight;
        self.weigh(peer, was, was - weight);
    }

    /// Gives a connection another weight, and leaves it its age. Returns whether it is filed.
    pub(super) fn reweigh(&mut self, slot: u32, weight: u64) -> bool {
        let Some(age) = self.of_slot.get(&slot) else { return false };
        let Some(filed) = self.by_age.get_mut(age) else { return false };
        let was = std::mem::replace(&mut filed.weight, weight);
        let peer = filed.peer;
        let own = self.of_address.get(&peer).map_or(0, |own| own.weight);
        self.weigh(peer, own, own - was + weight);
        true
    }

    /// Files an address and its source by a new weight.
    fn weigh(&mut self, peer: IpAddr, was: u64, is: u64) {
        if let Some(own) = self.of_address.get_mut(&peer) {
            own.weight = is;
            if own.ages.is_empty() {
                self.of_address.remove(&peer);
            }
        }
        let source = Source::of(peer);
        let share = self.shares.entry(source).or_default();
        share.addresses.remove(&(was, peer));
        self.by_weight.remove(&(share.weight, source));
        share.weight = share.weight + is - was;
        if is > 0 {
            share.addresses.insert((is, peer));
        }
        if share.weight > 0 {
            self.by_weight.insert((share.weight, source));
        } else {
            self.shares.remove(&source);
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.by_age.len()
    }

    #[cfg(test)]
    pub(super) fn weight(&self) -> u64 {
        self.shares.values().map(|share| share.weight).sum()
    }

    fn of_source(&self, peer: IpAddr) -> u64 {
        self.shares.get(&Source::of(peer)).map_or(0, |share| share.weight)
    }

    /// The first connection of the source with the most, if that outweighs what the peer's source has. Among the
    /// addresses of the peer's own source the same rule holds.
    pub(super) fn of_the_greediest(&self, peer: IpAddr, outweighs: impl Fn(u64, u64) -> bool) -> Option<u32> {
        let (most, source) = self.by_weight.last()?;
        if outweighs(*most, self.of_source(peer)) {
            return self.first_of(*source);
        }
        let (most, address) = self.shares.get(&Source::of(peer))?.addresses.last()?;
        let own = self.of_address.get(&peer).map_or(0, |own| own.weight);
        if outweighs(*most, own) { self.first_at(*address) } else { None }
    }

    /// The first connection of the source that has the most, if it has more than this.
    pub(super) fn of_more_than(&self, weight: u64) -> Option<u32> {
        let (_, source) = self.by_weight.last().filter(|(most, _)| *most > weight)?;
        self.first_of(*source)
    }

    /// The first connection of all. It is one of the peer's own source if the first of all is of a source with less.
    pub(super) fn first(&self, peer: IpAddr) -> Option<u32> {
        let (_, first) = self.by_age.first_key_value()?;
        if self.of_source(first.peer) >= self.of_source(peer) {
            return Some(first.slot);
        }
        self.first_of(Source::of(peer))
    }

    /// The first connection of the source's address with the most.
    fn first_of(&self, source: Source) -> Option<u32> {
        let (_, address) = self.shares.get(&source)?.addresses.last()?;
        self.first_at(*address)
    }

    fn first_at(&self, address: IpAddr) -> Option<u32> {
        let age = self.of_address.get(&address)?.ages.first()?;
        self.by_age.get(age).map(|filed| filed.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn guests(peers: &[&str]) -> Shares {
        let mut guests = Shares::default();
        for (slot, peer) in (0u32..).zip(peers) {
            guests.add(slot, address(peer), LruList::Live, 1);
        }
        guests
    }

    fn greediest(guests: &Shares, peer: &str) -> Option<u32> {
        guests.of_the_greediest(address(peer), |most, own| most >= own + 2)
    }

    #[test]
    fn a_source_with_two_more_makes_room_by_its_quietest() {
        let mut guests = guests(&["10.0.0.3", "10.0.0.2", "10.0.0.2", "10.0.0.2"]);
        assert_eq!(greediest(&guests, "10.0.0.4"), Some(1));
        assert_eq!(greediest(&guests, "10.0.0.3"), Some(1));
        assert_eq!(greediest(&guests, "10.0.0.2"), None, "it has the most itself");
        // Its data moves.
        guests.remove(1);
        guests.add(1, address("10.0.0.2"), LruList::Live, 1);
        assert_eq!(greediest(&guests, "10.0.0.4"), Some(2));
        guests.remove(2);
        assert_eq!(greediest(&guests, "10.0.0.3"), None, "it would have the most then");
        assert_eq!(greediest(&guests, "10.0.0.4"), Some(3));
    }

    #[test]
    fn addresses_of_one_network_share_as_sources_do() {
        let guests = guests(&["fd07::3", "fd07::66", "fd07::66", "fd07::66"]);
        assert_eq!(greediest(&guests, "fd07::4"), Some(1));
        assert_eq!(greediest(&guests, "fd07::66"), None);
        assert_eq!(greediest(&guests, "fd08::1"), Some(1));
    }

    #[test]
    fn a_source_makes_no_room_for_itself_among_those_with_fewer() {
        let guests = guests(&["10.0.0.3", "10.0.0.2", "10.0.0.2"]);
        assert_eq!(guests.first(address("10.0.0.4")), Some(0));
        assert_eq!(guests.first(address("10.0.0.3")), Some(0));
        assert_eq!(guests.first(address("10.0.0.2")), Some(1));
    }

    #[test]
    fn nothing_stays_of_a_guest_that_has_left() {
        let mut guests = guests(&["10.0.0.3", "fd07::1", "fd07::2"]);
        (0..3).for_each(|slot| guests.remove(slot));
        guests.remove(2);
        let Shares { of_slot, by_age, of_address, shares, by_weight, .. } = guests;
        assert!(
            of_slot.is_empty()
                && by_age.is_empty()
                && of_address.is_empty()
                && shares.is_empty()
                && by_weight.is_empty()
        );
    }

    #[test]
    fn a_source_goes_by_the_bytes_of_all_its_connections_and_in_the_order_of_lists() {
        let mut holders = Shares::default();
        for (slot, peer, list, bytes) in [
            (0, "10.0.0.2", LruList::Holder, 60),
            (1, "10.0.0.2", LruList::Orphan, 10),
            (2, "10.0.0.3", LruList::Orphan, 65),
        ] {
            holders.add(slot, address(peer), list, bytes);
        }
        assert_eq!((holders.of_more_than(70), holders.of_more_than(69)), (None, Some(1)));
        assert!(holders.reweigh(2, 80) && !holders.reweigh(7, 80));
        assert_eq!(holders.of_more_than(70), Some(2));
        holders.remove(2);
        holders.remove(1);
        assert_eq!((holders.of_more_than(0), holders.weight()), (Some(0), 60));
    }
}
