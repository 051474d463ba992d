//! Room in a table that is full.
//!
//! The oldest TIME-WAIT makes room for anyone. All else makes room only for our program and for a peer that has proven
//! its address, else forged SYNs could end connections. The order is: a handshake that is overdue, then a connection
//! of the source that has opened the most, then the quietest that a peer opened. Connections that our program opened
//! stay.

use std::net::IpAddr;

use super::super::Endpoint;
use super::shares::Shares;
use super::{Account, LruList, Table};
use crate::Instant;
use crate::trace::Scarce;

/// A connection keeps its place beside sources with as many if its data has moved within this time.
const QUIET_FOR_MS: u32 = 60_000;

impl Account {
    /// The connections that are over, and stay for a RST that is due or for a program that has yet to leave them.
    fn over(&self) -> usize {
        self.row(LruList::Over).count + self.row(LruList::Gone).count
    }

    /// Begins the account of guests, unless it is kept already.
    fn keep_guests(&mut self, now: Instant, table: &Table) {
        let guests = &mut self.by_source.get_or_insert_default().guests;
        if guests.is_none() {
            *guests = Some(Shares::default());
            table.by_age(now).into_iter().for_each(|slot| self.file_guest(table, slot));
        }
    }

    fn forget_guests(&mut self) {
        if let Some(kept) = &mut self.by_source {
            kept.guests = None;
        }
        self.by_source.take_if(|kept| kept.is_empty());
    }

    /// Files a connection among the guests if it is one.
    pub(super) fn file_guest(&mut self, table: &Table, slot: u32) {
        let Some(guests) = self.by_source.as_mut().and_then(|kept| kept.guests.as_mut()) else { return };
        guests.remove(slot);
        if let Some(entry) = table.get(slot).filter(|entry| entry.place.is_guest()) {
            guests.add(slot, entry.conn.ends().remote.ip(), LruList::Live, 1);
        }
    }
}

impl Endpoint {
    /// The number of connections that are not over.
    pub(super) fn alive(&self) -> usize {
        self.table.len() - self.account.over()
    }

    fn has_room(&self) -> bool {
        self.alive() < self.config.most_connections && !self.is_overfull()
    }

    /// Returns whether too many connections that are over still wait for a RST to leave, or for their program.
    fn is_overfull(&self) -> bool {
        let most = self.config.most_connections;
        self.table.len() >= most.saturating_add(most.div_ceil(4))
    }

    /// Returns whether the table has room for another connection. If it is full, the oldest TIME-WAIT makes room.
    pub(in super::super) fn has_place(&mut self, now: Instant) -> bool {
        if self.table.len() < self.config.most_connections / 4 {
            self.account.forget_guests();
        }
        let oldest = self.account.row(LruList::TimeWait).first;
        if !self.has_room() && self.table.get(oldest).is_some() {
            self.give_way(now, oldest, Scarce::TimeWaits);
        }
        self.has_room()
    }

    /// Returns whether the table has room for a connection with a peer that has proven its address, or that our program
    /// has named. If it is full, another connection makes room.
    pub(in super::super) fn has_place_for(&mut self, now: Instant, peer: IpAddr) -> bool {
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
    pub(in super::super) fn will_have_place_for(&mut self, now: Instant, peer: IpAddr) -> bool {
        !self.is_overfull()
            && (self.overdue_handshake(now).is_some() || self.first_guest_to_go(now, peer).is_some())
    }

    fn first_guest_to_go(&mut self, now: Instant, peer: IpAddr) -> Option<u32> {
        self.account.keep_guests(now, &self.table);
        let guests = self.account.by_source.as_ref()?.guests.as_ref()?;
        let is_quiet =
            |slot: &u32| self.table.get(*slot).is_some_and(|entry| entry.place.age_ms(now) >= QUIET_FOR_MS);
        let has_two_more = |most, own| most >= own + 2;
        guests.of_the_greediest(peer, has_two_more).or_else(|| guests.first(peer).filter(is_quiet))
    }
}
