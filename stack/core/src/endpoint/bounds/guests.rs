//! The connections that peers opened, by source, and by the time since their data last moved. No operation takes longer
//! than O(log n).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::ip::Source;

/// A number that grows with each filing, so it orders guests by their last move.
type Filed = u64;

#[derive(Debug, Default)]
pub(super) struct Guests {
    /// The number of the last filing.
    last: Filed,
    of_slot: BTreeMap<u32, Filed>,
    /// The slot and the peer of each guest, the quietest first.
    by_age: BTreeMap<Filed, (u32, IpAddr)>,
    of_address: BTreeMap<IpAddr, BTreeSet<Filed>>,
    shares: BTreeMap<Source, Share>,
    /// Sources by their number of guests.
    by_count: BTreeSet<(usize, Source)>,
}

/// The guests of one source.
#[derive(Debug, Default)]
struct Share {
    count: usize,
    /// Addresses by their number of guests. All nodes of a mesh may be one source.
    addresses: BTreeSet<(usize, IpAddr)>,
}

impl Guests {
    /// Files a connection as the one that moved last.
    pub(super) fn add(&mut self, slot: u32, peer: IpAddr) {
        self.last += 1;
        let filed = self.last;
        self.of_slot.insert(slot, filed);
        self.by_age.insert(filed, (slot, peer));
        let own = self.of_address.entry(peer).or_default();
        own.insert(filed);
        let is = own.len();
        self.recount(peer, is - 1, is);
    }

    /// Removes a guest, unless it is none.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(filed) = self.of_slot.remove(&slot) else { return };
        let Some((_, peer)) = self.by_age.remove(&filed) else { return };
        let Some(own) = self.of_address.get_mut(&peer) else { return };
        own.remove(&filed);
        let is = own.len();
        if is == 0 {
            self.of_address.remove(&peer);
        }
        self.recount(peer, is + 1, is);
    }

    /// Files an address and its source by a new number of guests.
    fn recount(&mut self, peer: IpAddr, was: usize, is: usize) {
        let source = Source::of(peer);
        let share = self.shares.entry(source).or_default();
        share.addresses.remove(&(was, peer));
        self.by_count.remove(&(share.count, source));
        share.count = share.count + is - was;
        if is > 0 {
            share.addresses.insert((is, peer));
        }
        if share.count > 0 {
            self.by_count.insert((share.count, source));
        } else {
            self.shares.remove(&source);
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.by_age.len()
    }

    fn of_source(&self, peer: IpAddr) -> usize {
        self.shares.get(&Source::of(peer)).map_or(0, |share| share.count)
    }

    /// The quietest guest of the source with the most, if that source has at least two more than the peer's. Among the
    /// addresses of the peer's own source the same rule holds.
    pub(super) fn of_the_greediest(&self, peer: IpAddr) -> Option<u32> {
        let (most, source) = self.by_count.last()?;
        if *most >= self.of_source(peer) + 2 {
            return self.quietest_of(*source);
        }
        let (most, address) = self.shares.get(&Source::of(peer))?.addresses.last()?;
        let own = self.of_address.get(&peer).map_or(0, BTreeSet::len);
        if *most >= own + 2 { self.quietest_at(*address) } else { None }
    }

    /// The quietest guest. It is one of the peer's own source if the quietest of all is of a source with fewer.
    pub(super) fn quietest(&self, peer: IpAddr) -> Option<u32> {
        let (_, (slot, other)) = self.by_age.first_key_value()?;
        if self.of_source(*other) >= self.of_source(peer) {
            return Some(*slot);
        }
        self.quietest_of(Source::of(peer))
    }

    /// The quietest guest of the source's address with the most.
    fn quietest_of(&self, source: Source) -> Option<u32> {
        let (_, address) = self.shares.get(&source)?.addresses.last()?;
        self.quietest_at(*address)
    }

    fn quietest_at(&self, address: IpAddr) -> Option<u32> {
        let filed = self.of_address.get(&address)?.first()?;
        self.by_age.get(filed).map(|(slot, _)| *slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn guests(peers: &[&str]) -> Guests {
        let mut guests = Guests::default();
        for (slot, peer) in (0u32..).zip(peers) {
            guests.add(slot, address(peer));
        }
        guests
    }

    #[test]
    fn a_source_with_two_more_makes_room_by_its_quietest() {
        let mut guests = guests(&["10.0.0.3", "10.0.0.2", "10.0.0.2", "10.0.0.2"]);
        assert_eq!(guests.of_the_greediest(address("10.0.0.4")), Some(1));
        assert_eq!(guests.of_the_greediest(address("10.0.0.3")), Some(1));
        assert_eq!(guests.of_the_greediest(address("10.0.0.2")), None, "it has the most itself");
        // Its data moves.
        guests.remove(1);
        guests.add(1, address("10.0.0.2"));
        assert_eq!(guests.of_the_greediest(address("10.0.0.4")), Some(2));
        guests.remove(2);
        assert_eq!(guests.of_the_greediest(address("10.0.0.3")), None, "it would have the most then");
        assert_eq!(guests.of_the_greediest(address("10.0.0.4")), Some(3));
    }

    #[test]
    fn addresses_of_one_network_share_as_sources_do() {
        let guests = guests(&["fd07::3", "fd07::66", "fd07::66", "fd07::66"]);
        assert_eq!(guests.of_the_greediest(address("fd07::4")), Some(1));
        assert_eq!(guests.of_the_greediest(address("fd07::66")), None);
        assert_eq!(guests.of_the_greediest(address("fd08::1")), Some(1));
    }

    #[test]
    fn a_source_makes_no_room_for_itself_among_those_with_fewer() {
        let guests = guests(&["10.0.0.3", "10.0.0.2", "10.0.0.2"]);
        assert_eq!(guests.quietest(address("10.0.0.4")), Some(0));
        assert_eq!(guests.quietest(address("10.0.0.3")), Some(0));
        assert_eq!(guests.quietest(address("10.0.0.2")), Some(1));
    }

    #[test]
    fn nothing_stays_of_a_guest_that_has_left() {
        let mut guests = guests(&["10.0.0.3", "fd07::1", "fd07::2"]);
        (0..3).for_each(|slot| guests.remove(slot));
        guests.remove(2);
        let Guests { of_slot, by_age, of_address, shares, by_count, .. } = guests;
        assert!(
            of_slot.is_empty()
                && by_age.is_empty()
                && of_address.is_empty()
                && shares.is_empty()
                && by_count.is_empty()
        );
    }
}
