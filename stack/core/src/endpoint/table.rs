//! The connections of an endpoint, by handle and by flow. Hashing is keyed, so that outsiders cannot choose flows that
//! collide. Iteration never follows the hash order.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::HashTable;

use super::bounds::Footprint;
use super::rules::Chosen;
use super::{ConnId, ListenerId};
use crate::secrets::KeyedState;
use crate::tcp::connection::{Connection, End, Ends};

/// A connection and the endpoint's state for it.
pub(super) struct Entry {
    pub(super) conn: Connection,
    pub(super) chosen: Arc<Chosen>,
    pub(super) link: u32,
    pub(super) id: ConnId,
    /// The listener that has not handed out the connection yet.
    pub(super) listener: Option<ListenerId>,
    pub(super) owner: Owner,
    /// The handshake is unfinished and counts against the listener's queue.
    pub(super) is_half_open: bool,
    /// The SYN waits for the program's answer: nothing leaves before.
    pub(super) is_withheld: bool,
    /// The connection is in its link's queue.
    pub(super) is_queued: bool,
    /// The connection is in the queue of news for the application.
    pub(super) is_reported: bool,
    pub(super) footprint: Footprint,
}

impl Entry {
    /// Returns whether it may send nothing yet. Once it is over, it may send a RST.
    pub(super) fn is_silenced(&self) -> bool {
        self.is_withheld && self.conn.closed.is_none()
    }

    /// Returns whether its handshake is over, and its listener does not know it yet.
    pub(super) fn has_shaken_hands(&self) -> bool {
        self.is_half_open && self.owner == Owner::Listener && self.conn.state().is_synchronized()
    }

    /// Returns whether it has news that the queue does not hold yet; from now on it counts as queued.
    pub(super) fn begins_to_report(&mut self) -> bool {
        let has_news = self.owner == Owner::Application && self.conn.events.any();
        has_news && !std::mem::replace(&mut self.is_reported, true)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The handshake is unfinished, or the connection is not accepted yet.
    Listener,
    Application,
    /// The application has left; the connection ends by itself.
    Nobody,
}

pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots by flow. Only the connection stores the flow; a packet reads the connection in any case.
    by_flow: HashTable<u32>,
    /// The addresses that programs have named for [`counted_as`](Table::counted_as), by slot. Few connections have one.
    counted_as: BTreeMap<u32, IpAddr>,
    hasher: KeyedState,
    /// The slot of the last packet, or of a newer connection, while it can be found by its flow.
    last_found: Option<u32>,
}

enum Slot {
    Free { next_generation: u32 },
    Used(Box<Entry>),
}

impl Table {
    pub(super) fn new(hasher: KeyedState) -> Table {
        let (slots, free, by_flow) = (Vec::new(), Vec::new(), HashTable::new());
        Table { slots, free, by_flow, counted_as: BTreeMap::new(), hasher, last_found: None }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, make: impl FnOnce(ConnId) -> Entry) -> (u32, &mut Entry) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::Free { next_generation: 1 });
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let generation = match &self.slots[slot as usize] {
            Slot::Free { next_generation } => *next_generation,
            Slot::Used(_) => unreachable!("a free slot is free"),
        };
        let entry = Box::new(make(ConnId { slot, generation }));
        let hash = self.hasher.hash_one(entry.conn.ends());
        assert!(self.find(hash, entry.conn.ends()).is_none(), "a flow has one connection");
        self.slots[slot as usize] = Slot::Used(entry);
        self.last_found = Some(slot);
        let Table { slots, by_flow, hasher, .. } = self;
        let rehash = |slot: &u32| match &slots[*slot as usize] {
            Slot::Used(entry) => hasher.hash_one(entry.conn.ends()),
            Slot::Free { .. } => unreachable!("only used slots stand in the table"),
        };
        by_flow.insert_unique(hash, slot, rehash);
        match &mut self.slots[slot as usize] {
            Slot::Used(entry) => (slot, entry),
            Slot::Free { .. } => unreachable!("it was just used"),
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.detach(slot);
        let Slot::Used(entry) = &self.slots[slot as usize] else { return };
        let next_generation = entry.id.generation.wrapping_add(1);
        self.slots[slot as usize] = Slot::Free { next_generation };
        self.free.push(slot);
        self.counted_as.remove(&slot);
    }

    /// The address whose share a connection is part of: the peer's, unless the program has named another one.
    pub(super) fn counted_as(&self, slot: u32) -> Option<IpAddr> {
        let peer = self.get(slot)?.conn.ends().remote.ip;
        Some(*self.counted_as.get(&slot).unwrap_or(&peer))
    }

    pub(super) fn count_as(&mut self, slot: u32, address: IpAddr) {
        self.counted_as.insert(slot, address);
    }

    /// Removes the flow of a connection, so that packets miss it and a new connection may take the flow.
    pub(super) fn detach(&mut self, slot: u32) {
        let Some(Slot::Used(entry)) = self.slots.get(slot as usize) else { return };
        let hash = self.hasher.hash_one(entry.conn.ends());
        if let Ok(found) = self.by_flow.find_entry(hash, |other| *other == slot) {
            found.remove();
        }
        if self.last_found == Some(slot) {
            self.last_found = None;
        }
    }

    pub(super) fn slot_of(&self, ends: &Ends) -> Option<u32> {
        self.find(self.hasher.hash_one(ends), ends)
    }

    fn find(&self, hash: u64, ends: &Ends) -> Option<u32> {
        let is_it = |slot: &u32| self.get(*slot).is_some_and(|entry| entry.conn.ends() == ends);
        self.by_flow.find(hash, is_it).copied()
    }

    /// The slot for an arriving packet, which is often that of the packet before.
    pub(super) fn slot_of_packet(&mut self, src: (&IpAddr, u16), dst: (&IpAddr, u16)) -> Option<u32> {
        let is_it = |slot: &u32| {
            self.get(*slot).is_some_and(|entry| {
                let Ends { local, remote } = entry.conn.ends();
                *local == dst && *remote == src
            })
        };
        if self.last_found.as_ref().is_some_and(is_it) {
            return self.last_found;
        }
        self.last_found = self.slot_of(&Ends { local: End::of(dst), remote: End::of(src) });
        self.last_found
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Entry> {
        match self.slots.get(slot as usize) {
            Some(Slot::Used(entry)) => Some(entry),
            _ => None,
        }
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        match self.slots.get_mut(slot as usize) {
            Some(Slot::Used(entry)) => Some(entry),
            _ => None,
        }
    }

    /// The connection of that name, unless its slot has got another one.
    pub(super) fn named(&self, id: ConnId) -> Option<&Entry> {
        self.get(id.slot).filter(|entry| entry.id == id)
    }

    /// The slot of the connection of that name.
    pub(super) fn resolve(&self, id: ConnId) -> Option<u32> {
        self.named(id).map(|_| id.slot)
    }

    pub(super) fn is_half_open(&self, id: ConnId) -> bool {
        self.named(id).is_some_and(|entry| entry.is_half_open)
    }

    /// The slots of the connections that are meant. They may be changed meanwhile.
    pub(super) fn slots(&self, is_meant: impl Fn(&Entry) -> bool) -> Vec<u32> {
        self.iter().filter(|(_, entry)| is_meant(entry)).map(|(slot, _)| slot).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Entry)> {
        (0u32..).zip(&self.slots).filter_map(|(slot, entry)| match entry {
            Slot::Used(entry) => Some((slot, &**entry)),
            Slot::Free { .. } => None,
        })
    }
}
