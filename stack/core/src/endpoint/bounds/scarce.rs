//! Memory for buffers that is scarce.
//!
//! An orphan behind a closed window goes first. Next is a connection of the source that holds the most, if that is more
//! than a quarter of the memory. It goes also while its data moves. Last is an orphan, or a connection whose data
//! stands still. Others are left alone. A peer that has proven its address gets memory of a source with more than twice
//! as much, even if all of that source's connections move.

use std::net::IpAddr;

use super::super::Endpoint;
use super::shares::Shares;
use super::{Account, LruList, STILL_FOR_MS, Table};
use crate::Instant;
use crate::trace::Scarce;

impl Account {
    /// Begins the account of memory by source, unless it is kept already.
    fn keep_holders(&mut self, now: Instant, table: &Table) {
        let holders = &mut self.by_source.get_or_insert_default().holders;
        if holders.is_none() {
            *holders = Some(Shares::default());
            table.by_age(now).into_iter().for_each(|slot| self.file_holder(table, slot));
        }
    }

    /// Files a connection among those that hold memory if it is one, as the last that moved.
    pub(super) fn file_holder(&mut self, table: &Table, slot: u32) {
        if let Some(holders) = self.holders() {
            holders.remove(slot);
        }
        self.weigh_holder(table, slot);
    }

    /// Files a connection by the present size of its buffers.
    pub(super) fn weigh_holder(&mut self, table: &Table, slot: u32) {
        let Some(holders) = self.holders() else { return };
        let Some(entry) = table.get(slot) else { return };
        let place = entry.place;
        if place.bytes == 0 || !matches!(place.list, LruList::Stuck | LruList::Orphan | LruList::Holder) {
            holders.remove(slot);
        } else if !holders.reweigh(slot, place.bytes.into()) {
            holders.add(slot, entry.conn.ends().remote.ip(), place.list, place.bytes.into());
        }
    }

    /// Ends the account of memory by source once much is free.
    pub(super) fn forget_holders(&mut self) {
        if self.bytes < self.bounds.buffer_bytes / 2
            && let Some(kept) = &mut self.by_source
        {
            kept.holders = None;
            self.by_source.take_if(|kept| kept.is_empty());
        }
    }

    fn holders(&mut self) -> Option<&mut Shares> {
        self.by_source.as_mut()?.holders.as_mut()
    }
}

impl Endpoint {
    pub(super) fn first_holder_to_go(&mut self, now: Instant) -> Option<u32> {
        let lists =
            [LruList::Stuck, LruList::Orphan, LruList::Holder].map(|list| (list, self.account.row(list)));
        let (list, row) = lists.into_iter().find(|(_, row)| row.bytes > 0)?;
        let first = row.first;
        let age_ms = self.table.get(first)?.place.age_ms(now);
        if list == LruList::Holder && age_ms < STILL_FOR_MS {
            return None;
        }
        self.account.keep_holders(now, &self.table);
        let share = self.account.bounds.buffer_bytes / 4;
        let greediest = self.account.holders().and_then(|holders| holders.of_more_than(share));
        greediest.filter(|_| list != LruList::Stuck).or(Some(first))
    }

    /// The connection that gives its memory to this peer.
    fn holder_to_go_for(&mut self, now: Instant, peer: IpAddr) -> Option<u32> {
        self.account.keep_holders(now, &self.table);
        let holders = self.account.holders()?;
        let first = holders.of_the_greediest(peer, |most, own| most / 2 > own)?;
        self.table.get(first).filter(|entry| entry.place.is_incoming).map(|_| first)
    }

    /// Returns whether there will be memory for this peer once it has proven its address.
    pub(in super::super) fn will_have_memory_for(&mut self, now: Instant, peer: IpAddr) -> bool {
        self.holder_to_go_for(now, peer).is_some()
    }

    /// Returns whether there is memory for a connection with this peer, which has proven its address. If there is none,
    /// another connection gives its memory up.
    pub(in super::super) fn has_memory_for(&mut self, now: Instant, peer: IpAddr) -> bool {
        if !self.account.is_overdrawn() {
            return true;
        }
        let Some(slot) = self.holder_to_go_for(now, peer) else { return false };
        self.give_way(now, slot, Scarce::BufferBytes);
        true
    }
}
