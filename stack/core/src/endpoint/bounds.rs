//! Bounds the resources that peers make an endpoint hold: counts them by class, exactly, and sends connections off in
//! a fixed order of classes. `eviction` draws a sample of a class, and chooses the connection that goes.

mod eviction;

use std::net::IpAddr;

use super::table::{Entry, Owner, Table};
use super::{ConnId, Endpoint};
use crate::Instant;
use crate::ip::{Share, Shares};
use crate::narrow::{as_u32, as_usize};
use crate::secrets::KeyedState;
use crate::tcp::connection::Connection;
pub use crate::tcp::cx::Memory;
use crate::trace::{Scarce, StateName};

/// The most that an endpoint holds because of its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections that their program has left and that end by themselves, without those in TIME-WAIT.
    pub orphans: usize,
    /// Bytes of the buffers of these connections.
    pub orphan_bytes: u64,
    /// Connections in TIME-WAIT that their program has left.
    pub time_waits: usize,
    /// Bytes of the buffers of all connections. From three quarters of this on, no buffer's limit grows.
    pub buffer_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { orphans: 4096, orphan_bytes: 32 << 20, time_waits: 32_768, buffer_bytes: 256 << 20 }
    }
}

impl Bounds {
    /// The share of one of `endpoints` endpoints that run side by side.
    #[must_use]
    pub fn of_one_in(self, endpoints: usize) -> Bounds {
        let (count, bytes) = (endpoints.max(1), endpoints.max(1) as u64);
        Bounds {
            orphans: self.orphans.div_ceil(count),
            orphan_bytes: self.orphan_bytes.div_ceil(bytes),
            time_waits: self.time_waits.div_ceil(count),
            buffer_bytes: self.buffer_bytes.div_ceil(bytes),
        }
    }
}

/// The amounts that an endpoint holds because of its peers, or the most that it may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Connections that are not over. There are at most as many as the
    /// [table](super::EndpointConfig::most_connections) has room for.
    pub connections: usize,
    /// Connections that their program has left, without those in TIME-WAIT.
    pub orphans: usize,
    /// Bytes allocated for the buffers and scoreboards of these connections.
    pub orphan_bytes: u64,
    /// Connections in TIME-WAIT that their program has left.
    pub time_waits: usize,
    /// Bytes allocated for the send and receive buffers and the scoreboards of all connections.
    pub buffer_bytes: u64,
    /// Handshakes of all [listeners](super::ListenOptions::half_open).
    pub handshakes: usize,
    /// Incomplete datagrams.
    pub fragments: usize,
    /// Bytes of incomplete datagrams, with an overhead for each fragment.
    pub fragment_bytes: u64,
}

/// The progress of a connection's data is noted at most this often.
const PROGRESS_EVERY_MS: u32 = 1000;

/// The reason to hold memory. If buffers are scarce, the first three classes give way in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Class {
    /// An orphan with data behind the peer's closed window.
    Stuck,
    /// Any other orphan.
    Orphan,
    /// A connection with buffers that a program holds or may accept.
    Holder,
    /// A connection without buffers that a program holds or may accept.
    Live,
    TimeWait,
    /// A closed connection that only owes a RST.
    Over,
    /// A closed connection that its program has yet to leave.
    Gone,
    /// A TIME-WAIT that owes its peer an ACK, without which the peer would send its FIN to nobody.
    LastAck,
    #[default]
    Handshake,
}

impl Class {
    fn of(owner: Owner, conn: &Connection, bytes: u32) -> Class {
        let is_over = conn.closed.is_some();
        match (owner, conn.state()) {
            (Owner::Nobody, _) if is_over => Class::Over,
            (Owner::Nobody, StateName::TimeWait) if conn.has_ack_to_send() => Class::LastAck,
            (Owner::Nobody, StateName::TimeWait) => Class::TimeWait,
            (Owner::Nobody, _) if conn.is_stuck() => Class::Stuck,
            (Owner::Nobody, _) => Class::Orphan,
            (Owner::Listener | Owner::Application, state) => match (is_over, state.is_synchronized()) {
                (true, _) => Class::Gone,
                (false, false) => Class::Handshake,
                (false, true) if bytes > 0 => Class::Holder,
                (false, true) => Class::Live,
            },
        }
    }
}

/// The classes before this one have their members listed.
const LISTED: usize = Class::LastAck as usize;

/// A connection's class, and what it holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Footprint {
    class: Class,
    /// A peer opened it.
    is_incoming: bool,
    /// Its place among the members of its class.
    index: u32,
    bytes: u32,
    /// The progress of its data when that was last noted, and the time of the note, or of the change of class.
    progress: u32,
    since_ms: u32,
}

impl Footprint {
    pub(super) fn new(now: Instant, is_incoming: bool) -> Footprint {
        let since_ms = now.millis_u32();
        Footprint { class: Class::Handshake, is_incoming, index: 0, bytes: 0, progress: 0, since_ms }
    }

    pub(super) fn owes_last_ack(&self) -> bool {
        self.class == Class::LastAck
    }

    /// The part that counts for its source.
    fn share(&self) -> Share {
        let holds = matches!(self.class, Class::Stuck | Class::Orphan | Class::Holder);
        let is_guest = self.is_incoming && (holds || self.class == Class::Live);
        Share { count: is_guest.into(), bytes: if holds { as_usize(self.bytes.into()) } else { 0 } }
    }

    fn orphan_bytes(&self) -> u64 {
        if matches!(self.class, Class::Stuck | Class::Orphan) { self.bytes.into() } else { 0 }
    }

    /// The time since its data last moved, or its class changed.
    pub(super) fn age_ms(&self, now: Instant) -> u32 {
        now.millis_u32().wrapping_sub(self.since_ms)
    }
}

#[derive(Debug)]
pub(super) struct Account {
    bounds: Bounds,
    /// The connections of each class, in no order.
    members: [Vec<u32>; LISTED],
    bytes: u64,
    orphan_bytes: u64,
    /// True if no resource was scarce after the last change. Most packets change nothing here.
    is_settled: bool,
    /// The state of the memory that this endpoint shares with other endpoints.
    shared: Memory,
    /// The scarcer of that state and its own. It is kept, because it is read at each call and changes seldom.
    pub(super) memory: Memory,
    /// One pointer: a base station has an endpoint for each half of a split connection.
    shares: Option<Box<Shares>>,
    /// Small counters, for the same reason.
    gave_way: [u32; Scarce::ALL.len()],
    draws: eviction::Draws,
    /// The last time at which the data of all holders of a sample moved.
    all_moved_ms: u32,
}

impl Account {
    pub(super) fn new(bounds: Bounds, key: KeyedState) -> Account {
        let mut account = Account {
            bounds,
            members: Default::default(),
            bytes: 0,
            orphan_bytes: 0,
            is_settled: true,
            shared: Memory::Plenty,
            memory: Memory::Plenty,
            shares: None,
            gave_way: [0; Scarce::ALL.len()],
            draws: eviction::Draws::new(key),
            all_moved_ms: 0,
        };
        account.weigh();
        account
    }

    /// Lifts the bounds on orphans: a host that closes everything makes them itself.
    pub(super) fn let_all_finish(&mut self) {
        let Bounds { orphans, orphan_bytes, time_waits, .. } = &mut self.bounds;
        (*orphans, *orphan_bytes, *time_waits) = (usize::MAX, u64::MAX, usize::MAX);
    }

    /// Must follow each change of what `memory` depends on.
    fn weigh(&mut self) {
        let own = if self.bytes >= self.bounds.buffer_bytes {
            Memory::Spent
        } else if self.bytes >= self.bounds.buffer_bytes / 4 * 3 {
            Memory::Tight
        } else {
            Memory::Plenty
        };
        self.memory = own.max(self.shared);
    }

    /// Returns whether even the guaranteed buffers exceed the bound; then no new connection is taken.
    pub(super) fn is_overdrawn(&self) -> bool {
        self.bytes >= self.bounds.buffer_bytes.saturating_add(self.bounds.buffer_bytes / 4)
    }

    fn count(&self, class: Class) -> usize {
        self.members[class as usize].len()
    }

    fn orphans(&self) -> usize {
        self.count(Class::Stuck) + self.count(Class::Orphan)
    }

    /// The resource that exceeds its bound.
    fn scarce(&self) -> Option<Scarce> {
        let Bounds { orphans, orphan_bytes, time_waits, buffer_bytes } = self.bounds;
        if self.orphans() > orphans {
            Some(Scarce::Orphans)
        } else if self.orphan_bytes > orphan_bytes {
            Some(Scarce::OrphanBytes)
        } else if self.count(Class::TimeWait) > time_waits {
            Some(Scarce::TimeWaits)
        } else if self.bytes >= buffer_bytes {
            Some(Scarce::BufferBytes)
        } else {
            None
        }
    }

    /// Removes a connection from the account before it is forgotten.
    pub(super) fn strike(&mut self, table: &mut Table, slot: u32) {
        self.change(table, slot, Class::Handshake, 0);
    }

    /// Must follow each change of a connection that [has changed its footprint](Entry::changed_footprint).
    #[inline(never)]
    pub(super) fn change(&mut self, table: &mut Table, slot: u32, class: Class, bytes: u32) {
        let Some(entry) = table.get_mut(slot) else { return };
        let was = entry.footprint;
        let is = Footprint { class, bytes, ..was };
        entry.footprint = is;
        if was.share() != is.share()
            && let Some(shares) = &mut self.shares
            && let Some(address) = table.counted_as(slot)
        {
            shares.change(address, was.share(), is.share());
        }
        self.change_bytes(was.bytes, bytes);
        self.orphan_bytes = self.orphan_bytes - was.orphan_bytes() + is.orphan_bytes();
        if class == was.class {
            return;
        }
        if let Some(joined) = self.members.get_mut(class as usize)
            && let Some(entry) = table.get_mut(slot)
        {
            entry.footprint.index = as_u32(joined.len());
            joined.push(slot);
        }
        if let Some(left) = self.members.get_mut(was.class as usize) {
            left.swap_remove(was.index as usize);
            let last = left.get(was.index as usize).and_then(|slot| table.get_mut(*slot));
            if let Some(last) = last {
                last.footprint.index = was.index;
            }
        }
    }

    fn change_bytes(&mut self, was: u32, is: u32) {
        self.is_settled = false;
        self.bytes = self.bytes - u64::from(was) + u64::from(is);
        self.weigh();
    }
}

impl Entry {
    /// Notes the progress of its data. Returns its class and its bytes if they have changed.
    #[inline]
    pub(super) fn changed_footprint(&mut self, now: Instant) -> Option<(Class, u32)> {
        let (bytes, progress) = (self.conn.buffered(), self.conn.moved());
        let class = Class::of(self.owner, &self.conn, bytes);
        let footprint = &mut self.footprint;
        let changes_class = class != footprint.class;
        let has_moved = progress != footprint.progress && footprint.age_ms(now) >= PROGRESS_EVERY_MS;
        // A handshake keeps the time of its start.
        if class != Class::Handshake && (changes_class || has_moved) {
            (footprint.progress, footprint.since_ms) = (progress, now.millis_u32());
        }
        (changes_class || bytes != footprint.bytes).then_some((class, bytes))
    }
}

impl Endpoint {
    /// Sets the state of the memory that this endpoint shares with other endpoints. The scarcer of this state and its
    /// own [bounds](super::EndpointConfig::bounds) counts.
    pub fn set_shared_memory(&mut self, left: Memory) {
        self.account.shared = left;
        self.account.weigh();
    }

    /// Counts a connection for this address in place of its peer's, where the shares of sources are compared. A relay
    /// thus tells for whom it has the connection: its peer may be one relay for many hosts.
    pub fn count_as(&mut self, id: ConnId, address: IpAddr) {
        let Some(slot) = self.table.resolve(id) else { return };
        let (Some(before), Some(entry)) = (self.table.counted_as(slot), self.table.get(slot)) else { return };
        let share = entry.footprint.share();
        self.table.count_as(slot, address);
        if let Some(shares) = &mut self.account.shares {
            shares.change(before, share, Share::default());
            shares.change(address, Share::default(), share);
        }
    }

    /// The number of connections that were given up because this resource was scarce.
    pub fn gave_way(&self, to: Scarce) -> u64 {
        u64::from(self.account.gave_way[to as usize])
    }

    /// The amounts of all bounded resources.
    pub fn holds(&self) -> Held {
        Held {
            connections: self.alive(),
            orphans: self.account.orphans(),
            orphan_bytes: self.account.orphan_bytes,
            time_waits: self.account.count(Class::TimeWait),
            buffer_bytes: self.account.bytes,
            handshakes: self.handshakes().map(|(half_open, _)| half_open).sum(),
            fragments: self.fragments.datagrams(),
            fragment_bytes: self.fragments.held_bytes() as u64,
        }
    }

    /// The most that it may hold of each. [`Bounds`] has some of them.
    pub fn may_hold(&self) -> Held {
        let Bounds { orphans, orphan_bytes, time_waits, buffer_bytes } = self.account.bounds;
        let fragments = self.config.fragments;
        Held {
            connections: self.config.most_connections,
            orphans,
            orphan_bytes,
            time_waits,
            buffer_bytes,
            handshakes: self.handshakes().map(|(_, most)| most).fold(0, usize::saturating_add),
            fragments: fragments.datagrams,
            fragment_bytes: fragments.bytes as u64,
        }
    }
}

/// Counts the shares of all sources.
fn shares_of(table: &Table) -> Shares {
    let mut shares = Shares::default();
    for (slot, entry) in table.iter() {
        if let Some(address) = table.counted_as(slot) {
            shares.change(address, Share::default(), entry.footprint.share());
        }
    }
    shares
}

#[cfg(test)]
mod tests;
