//! Chooses the connections that give way.
//!
//! It compares a few connections of a class, drawn with a key, and takes the oldest of them, or the oldest of the
//! greediest source among them. A choice costs the same however many connections there are, and a peer can predict
//! none. A class that is no larger than the sample is compared as a whole.
//!
//! **Scarce memory.** An orphan behind a closed window goes first. Next is a connection of a source that holds more
//! than a quarter of the memory, and there of the address with the most. It goes also while its data moves. Last is an
//! orphan, or a connection whose data stands still. If the data of all connections moves, they are left alone. A peer
//! that has proven its address gets memory of a source that holds more than twice the memory of its own source, even if
//! all its connections move.
//!
//! **A full table.** A TIME-WAIT makes room for anyone. All else makes room only for our program and for a peer that
//! has proven its address, else forged SYNs could end connections. The order is: a handshake that is overdue, then a
//! connection of a source that has opened two more than the peer's source, then one that has been quiet for a minute,
//! of a source with no fewer. Connections that our program opened stay.

use std::cmp::Reverse;
use std::hash::BuildHasher;
use std::net::IpAddr;

use arrayvec::ArrayVec;

use super::{Account, Class, Endpoint, Footprint, shares_of};
use crate::Instant;
use crate::endpoint::table::Table;
use crate::ip::{Share, Shares, Source};
use crate::narrow::as_usize;
use crate::secrets::KeyedState;
use crate::tcp::cx::Cx;
use crate::trace::{Scarce, TraceKind};

/// The connections that one choice compares.
const SAMPLE: usize = 16;
/// RSTs that may wait for their link. Any more are dropped, and the peer gets one when it next sends.
const MOST_RESETS_WAITING: usize = 1024;
/// A program's connection keeps its buffers if its data moves at least this often.
const STILL_FOR_MS: u32 = 5000;
/// A connection keeps its place beside sources with as many connections if its data has moved within this time.
const QUIET_FOR_MS: u32 = 60_000;

/// Numbers that peers cannot predict, and that the endpoint's key repeats.
#[derive(Debug)]
pub(super) struct Draws {
    key: KeyedState,
    drawn: u64,
}

impl Draws {
    pub(super) fn new(key: KeyedState) -> Draws {
        Draws { key, drawn: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        as_usize(self.key.hash_one(self.drawn) % bound as u64)
    }
}

/// A connection that may give way.
#[derive(Clone, Copy)]
struct Candidate {
    slot: u32,
    counted_as: IpAddr,
    footprint: Footprint,
}

impl Candidate {
    /// The greatest is the oldest; of candidates of one age it is the first in the table.
    fn age(&self, now: Instant) -> (u32, Reverse<u32>) {
        (self.footprint.age_ms(now), Reverse(self.slot))
    }
}

type Sample = ArrayVec<Candidate, SAMPLE>;

impl Shares {
    /// The oldest candidate of the source with the most, and there of the address with the most, if the source
    /// outweighs the peer's. Addresses of the peer's own source are compared likewise.
    fn greediest(
        &self,
        now: Instant,
        (sample, peer): (&Sample, IpAddr),
        weight: fn(Share) -> usize,
        outweighs: fn(usize, usize) -> bool,
    ) -> Option<u32> {
        let own = self.of(peer).map(weight);
        let weighed = sample.iter().filter_map(|candidate| {
            let theirs = self.of(candidate.counted_as).map(weight);
            let level = usize::from(Source::of(candidate.counted_as) == Source::of(peer));
            outweighs(theirs[level], own[level]).then_some((theirs, candidate.age(now)))
        });
        weighed.max().map(|(_, (_, Reverse(slot)))| slot)
    }
}

impl Account {
    /// Begins to count by source, unless that is done already.
    fn count_by_source(&mut self, table: &Table) -> &Shares {
        self.shares.get_or_insert_with(|| Box::new(shares_of(table)))
    }

    /// Connections of these classes: all, or a sample of them.
    fn sample(&mut self, table: &Table, classes: &[Class]) -> Sample {
        let Account { members, draws, .. } = self;
        let slots = || classes.iter().flat_map(|class| &members[*class as usize]).copied();
        let count: usize = classes.iter().map(|class| members[*class as usize].len()).sum();
        let candidate = |slot: u32| {
            let counted_as = table.counted_as(slot)?;
            Some(Candidate { slot, counted_as, footprint: table.get(slot)?.footprint })
        };
        if count <= SAMPLE {
            return slots().filter_map(candidate).collect();
        }
        // It skips a class at a time.
        (0..SAMPLE).filter_map(|_| slots().nth(draws.below(count))).filter_map(candidate).collect()
    }
}

impl Endpoint {
    /// Gives connections up until no resource is scarce, or the data of all holders moves.
    #[inline]
    pub(crate) fn make_room(&mut self, now: Instant) {
        if !self.account.is_settled {
            self.settle_account(now);
        }
    }

    #[inline(never)]
    fn settle_account(&mut self, now: Instant) {
        let is_half_spent = self.account.bytes >= self.account.bounds.buffer_bytes / 2;
        if !is_half_spent && self.table.len() < self.config.most_connections / 4 {
            self.account.shares = None;
        }
        while let Some(scarce) = self.account.scarce() {
            // Holders whose data moves now may stand still later.
            let Some(slot) = self.first_to_go(now, scarce) else { return };
            self.give_way(now, slot, scarce);
            if self.account.count(Class::Over) > MOST_RESETS_WAITING
                && let Some(slot) = self.oldest(now, Class::Over)
            {
                self.forget(now, slot);
            }
        }
        self.account.is_settled = true;
    }

    fn first_to_go(&mut self, now: Instant, scarce: Scarce) -> Option<u32> {
        match scarce {
            Scarce::TimeWaits => self.oldest(now, Class::TimeWait),
            Scarce::Orphans | Scarce::OrphanBytes => {
                self.oldest(now, Class::Stuck).or_else(|| self.oldest(now, Class::Orphan))
            }
            Scarce::BufferBytes => self.oldest(now, Class::Stuck).or_else(|| self.first_holder_to_go(now)),
            Scarce::Handshakes | Scarce::Connections => None,
        }
    }

    /// The oldest of a sample of this class.
    fn oldest(&mut self, now: Instant, class: Class) -> Option<u32> {
        let sample = self.account.sample(&self.table, &[class]);
        sample.iter().map(|candidate| candidate.age(now)).max().map(|(_, Reverse(slot))| slot)
    }

    fn first_holder_to_go(&mut self, now: Instant) -> Option<u32> {
        // Packets come more often than holders fall still.
        if self.account.all_moved_ms == now.millis_u32() {
            return None;
        }
        let mut sample = self.account.sample(&self.table, &[Class::Orphan, Class::Holder]);
        sample.retain(|candidate| candidate.footprint.bytes > 0);
        let still = sample.iter().filter_map(|candidate| {
            let (class, age) = (candidate.footprint.class, candidate.age(now));
            (class == Class::Orphan || age.0 >= STILL_FOR_MS).then_some((Reverse(class), age))
        });
        let Some((_, (_, Reverse(oldest)))) = still.max() else {
            self.account.all_moved_ms = now.millis_u32();
            return None;
        };
        let share = self.account.bounds.buffer_bytes / 4;
        let shares = self.account.count_by_source(&self.table);
        let weighed = sample.iter().map(|candidate| {
            (shares.of(candidate.counted_as).map(|share| share.bytes as u64), candidate.age(now))
        });
        let greediest = weighed.max().filter(|([of_source, _], _)| *of_source > share);
        Some(greediest.map_or(oldest, |(_, (_, Reverse(slot)))| slot))
    }

    /// Ends a connection, so that another one gets its resources. The peer gets a RST if it may still wait. No RST goes
    /// to a TIME-WAIT's peer or to a handshake's peer, whose address may be forged.
    pub(crate) fn give_way(&mut self, now: Instant, slot: u32, to: Scarce) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let mut cx = Cx::new(now, entry.conn.number, self.packets_in, self.account.memory, &mut self.trace);
        cx.trace(TraceKind::GaveWay(to));
        let count = &mut self.account.gave_way[to as usize];
        *count = count.saturating_add(1);
        if matches!(to, Scarce::TimeWaits | Scarce::Handshakes) {
            return self.forget(now, slot);
        }
        entry.conn.give_way(&mut cx);
        self.file_and_queue(now, slot);
    }

    /// Returns whether there will be memory for this peer once it has proven its address.
    pub(crate) fn will_have_memory_for(&mut self, now: Instant, peer: IpAddr) -> bool {
        self.holder_to_go_for(now, peer).is_some()
    }

    /// Returns whether there is memory for a connection with this peer, which has proven its address. If there is none,
    /// another connection gives its memory up.
    pub(crate) fn has_memory_for(&mut self, now: Instant, peer: IpAddr) -> bool {
        if !self.account.is_overdrawn() {
            return true;
        }
        let Some(slot) = self.holder_to_go_for(now, peer) else { return false };
        self.give_way(now, slot, Scarce::BufferBytes);
        true
    }

    /// The connection that gives its memory to this peer.
    fn holder_to_go_for(&mut self, now: Instant, peer: IpAddr) -> Option<u32> {
        let mut sample = self.account.sample(&self.table, &[Class::Stuck, Class::Orphan, Class::Holder]);
        sample.retain(|candidate| candidate.footprint.is_incoming && candidate.footprint.bytes > 0);
        let shares = self.account.count_by_source(&self.table);
        shares.greediest(now, (&sample, peer), |share| share.bytes, |most, own| most / 2 > own)
    }

    /// The number of connections that are not over. The rest stay for a RST that is due, or for a program that has yet
    /// to leave them.
    pub(super) fn alive(&self) -> usize {
        self.table.len() - self.account.count(Class::Over) - self.account.count(Class::Gone)
    }

    fn has_room(&self) -> bool {
        self.alive() < self.config.most_connections && !self.is_overfull()
    }

    /// Returns whether too many connections that are over still wait for a RST to leave, or for their program.
    fn is_overfull(&self) -> bool {
        let most = self.config.most_connections;
        self.table.len() >= most.saturating_add(most.div_ceil(4))
    }

    /// Returns whether the table has room for another connection. If it is full, a TIME-WAIT makes room.
    pub(crate) fn has_place(&mut self, now: Instant) -> bool {
        if !self.has_room()
            && let Some(slot) = self.oldest(now, Class::TimeWait)
        {
            self.give_way(now, slot, Scarce::TimeWaits);
        }
        self.has_room()
    }

    /// Returns whether the table has room for a connection with a peer that has proven its address, or that our program
    /// has named. If it is full, another connection makes room.
    pub(crate) fn has_place_for(&mut self, now: Instant, peer: IpAddr) -> bool {
        if !self.has_place(now) && !self.is_overfull() {
            if let Some(slot) = self.overdue_handshake(now) {
                self.give_way(now, slot, Scarce::Handshakes);
            } else if let Some(slot) = self.first_guest_to_go(now, peer) {
                self.give_way(now, slot, Scarce::Connections);
            }
        }
        self.has_room()
    }

    /// Returns whether the full table will have room for this peer once it has proven its address.
    pub(crate) fn will_have_place_for(&mut self, now: Instant, peer: IpAddr) -> bool {
        !self.is_overfull()
            && (self.overdue_handshake(now).is_some() || self.first_guest_to_go(now, peer).is_some())
    }

    fn first_guest_to_go(&mut self, now: Instant, peer: IpAddr) -> Option<u32> {
        let classes = [Class::Stuck, Class::Orphan, Class::Holder, Class::Live];
        let mut sample = self.account.sample(&self.table, &classes);
        sample.retain(|candidate| candidate.footprint.is_incoming);
        let shares = self.account.count_by_source(&self.table);
        let has_two_more = |most, own| most >= own + 2;
        let greediest = shares.greediest(now, (&sample, peer), |share| share.count, has_two_more);
        greediest.or_else(|| {
            let guests = |peer: IpAddr| shares.of(peer)[0].count;
            let quiet = sample.iter().filter(|candidate| {
                candidate.footprint.age_ms(now) >= QUIET_FOR_MS
                    && guests(candidate.counted_as) >= guests(peer)
            });
            quiet.map(|candidate| candidate.age(now)).max().map(|(_, Reverse(slot))| slot)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(100);

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Live connections of these peers; the first is the oldest.
    fn guests(peers: &[&str]) -> (Shares, Sample) {
        let (mut shares, mut sample) = (Shares::default(), Sample::new());
        for (slot, peer) in (0u32..).zip(peers) {
            let began = Footprint::new(Instant::from_secs(slot.into()), true);
            let footprint = Footprint { class: Class::Live, ..began };
            shares.change(address(peer), began.share(), footprint.share());
            sample.push(Candidate { slot, counted_as: address(peer), footprint });
        }
        (shares, sample)
    }

    fn greediest((shares, sample): &(Shares, Sample), peer: &str) -> Option<u32> {
        shares.greediest(NOW, (sample, address(peer)), |share| share.count, |most, own| most >= own + 2)
    }

    #[test]
    fn a_source_with_two_more_makes_room_by_its_oldest() {
        let mut guests = guests(&["10.0.0.3", "10.0.0.2", "10.0.0.2", "10.0.0.2"]);
        assert_eq!(greediest(&guests, "10.0.0.4"), Some(1));
        assert_eq!(greediest(&guests, "10.0.0.3"), Some(1));
        assert_eq!(greediest(&guests, "10.0.0.2"), None, "it has the most itself");
        // Its data moves.
        guests.1[1].footprint.since_ms = NOW.millis_u32();
        assert_eq!(greediest(&guests, "10.0.0.4"), Some(2));
        guests.1.retain(|candidate| candidate.counted_as == address("10.0.0.3"));
        assert_eq!(greediest(&guests, "10.0.0.4"), None, "the sample has nothing of the greediest");
    }

    #[test]
    fn addresses_of_one_network_share_as_sources_do() {
        let guests = guests(&["fd07::3", "fd07::66", "fd07::66", "fd07::66"]);
        assert_eq!(greediest(&guests, "fd07::4"), Some(1));
        assert_eq!(greediest(&guests, "fd07::66"), None);
        assert_eq!(greediest(&guests, "fd08::1"), Some(1));
    }

    #[test]
    fn nothing_stays_of_a_guest_that_has_left() {
        let (mut shares, sample) = guests(&["10.0.0.3", "fd07::1", "fd07::2"]);
        for Candidate { counted_as, footprint, .. } in sample {
            shares.change(
                counted_as,
                footprint.share(),
                Footprint { class: Class::Handshake, ..footprint }.share(),
            );
        }
        assert_eq!(format!("{shares:?}"), "Shares({})");
    }
}
