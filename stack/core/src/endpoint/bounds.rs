//! Bounds the resources that peers make an endpoint hold: counts them by kind, and gives them up in a fixed order.
//!
//! A connection is in one list at most; in each list the oldest is first. No operation takes longer with more
//! connections.

mod full;
mod held;
mod scarce;
mod shares;

use super::Endpoint;
use super::table::{Owner, Table};
use crate::Instant;
use crate::tcp::connection::Connection;
use crate::tcp::cx::Cx;
pub use crate::tcp::cx::Memory;
use crate::trace::{Scarce, StateName, TraceKind};
pub use held::Held;
use shares::BySource;

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

/// RSTs that may wait for their link. Any more are dropped, and the peer gets one when it next sends.
const MOST_RESETS_WAITING: usize = 1024;
/// A program's connection keeps its buffers if its data moves at least this often.
const STILL_FOR_MS: u32 = 5000;
/// A connection whose data moves is refiled at most this often.
const MOVES_EVERY_MS: u32 = 1000;
/// No slot.
const NONE: u32 = u32::MAX;

/// The reason to hold memory. If buffers are scarce, connections give way in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum LruList {
    /// An orphan with data behind the peer's closed window.
    Stuck,
    /// Any other orphan.
    Orphan,
    /// A connection with buffers that a program holds or may accept.
    Holder,
    TimeWait,
    /// A closed connection that only owes a RST.
    Over,
    /// A closed connection that its program has yet to leave.
    Gone,
    /// A TIME-WAIT that owes its peer an ACK, without which the peer would send its FIN to nobody.
    LastAck,
    /// A connection without buffers that a program holds or may accept.
    Live,
    /// A handshake.
    #[default]
    Free,
}

/// The lists in which connections are in an order.
const LISTS: usize = LruList::LastAck as usize;

/// A connection's place in its list, and its counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListNode {
    before: u32,
    after: u32,
    bytes: u32,
    /// The progress of its data when it was last filed, and the time of that.
    moved: u32,
    since_ms: u32,
    list: LruList,
    /// A peer opened it.
    is_incoming: bool,
}

impl ListNode {
    pub(super) fn new(now: Instant) -> ListNode {
        let since_ms = now.millis_u32();
        let (before, after, list) = (NONE, NONE, LruList::Free);
        ListNode { before, after, bytes: 0, moved: 0, since_ms, list, is_incoming: false }
    }

    pub(super) fn of_incoming(now: Instant) -> ListNode {
        ListNode { is_incoming: true, ..ListNode::new(now) }
    }

    pub(super) fn owes_last_ack(&self) -> bool {
        self.list == LruList::LastAck
    }

    /// Returns whether its peer opened it, and it is neither a handshake nor over.
    fn is_guest(&self) -> bool {
        self.is_incoming
            && matches!(self.list, LruList::Stuck | LruList::Orphan | LruList::Holder | LruList::Live)
    }

    /// The time since it was last filed.
    pub(super) fn age_ms(&self, now: Instant) -> u32 {
        now.millis_u32().wrapping_sub(self.since_ms)
    }
}

#[derive(Clone, Copy, Debug)]
struct Row {
    first: u32,
    last: u32,
    count: usize,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct Account {
    bounds: Bounds,
    rows: [Row; LISTS],
    bytes: u64,
    /// True if no resource was scarce after the last change. Most packets change nothing here.
    is_settled: bool,
    /// The state of the memory that this endpoint shares with others.
    shared: Memory,
    /// The scarcer of that state and its own. It is kept, because it is read at each call and changes seldom.
    memory: Memory,
    /// One pointer: it counts for each half of a split connection.
    by_source: Option<Box<BySource>>,
    /// Small counters: a base station has an endpoint for each half of a split connection.
    gave_way: [u32; Scarce::ALL.len()],
}

impl Account {
    pub(super) fn new(bounds: Bounds) -> Account {
        let row = Row { first: NONE, last: NONE, count: 0, bytes: 0 };
        let mut account = Account {
            bounds,
            rows: [row; LISTS],
            bytes: 0,
            is_settled: true,
            shared: Memory::Plenty,
            memory: Memory::Plenty,
            by_source: None,
            gave_way: [0; Scarce::ALL.len()],
        };
        account.weigh();
        account
    }

    /// Lifts the bounds on orphans: a host that closes everything makes them itself.
    pub(super) fn let_all_finish(&mut self) {
        let Bounds { orphans, orphan_bytes, time_waits, .. } = &mut self.bounds;
        (*orphans, *orphan_bytes, *time_waits) = (usize::MAX, u64::MAX, usize::MAX);
    }

    #[inline]
    pub(super) fn memory(&self) -> Memory {
        self.memory
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

    fn row(&self, list: LruList) -> &Row {
        &self.rows[list as usize]
    }

    fn orphans(&self) -> (usize, u64) {
        let [stuck, others] = [LruList::Stuck, LruList::Orphan].map(|list| self.row(list));
        (stuck.count + others.count, stuck.bytes + others.bytes)
    }

    /// The resource that exceeds its bound.
    fn scarce(&self) -> Option<Scarce> {
        let (orphans, orphan_bytes) = self.orphans();
        let Bounds { orphans: most, orphan_bytes: most_bytes, time_waits, buffer_bytes } = self.bounds;
        if orphans > most {
            Some(Scarce::Orphans)
        } else if orphan_bytes > most_bytes {
            Some(Scarce::OrphanBytes)
        } else if self.row(LruList::TimeWait).count > time_waits {
            Some(Scarce::TimeWaits)
        } else if self.bytes >= buffer_bytes {
            Some(Scarce::BufferBytes)
        } else {
            None
        }
    }

    /// Takes a connection out of its list.
    fn unlink(&mut self, table: &mut Table, place: ListNode) {
        let Some(row) = self.rows.get_mut(place.list as usize) else { return };
        row.count -= 1;
        row.bytes -= u64::from(place.bytes);
        match table.get_mut(place.before) {
            Some(before) => before.place.after = place.after,
            None => row.first = place.after,
        }
        match table.get_mut(place.after) {
            Some(after) => after.place.before = place.before,
            None => row.last = place.before,
        }
    }

    /// Puts a connection at the end of its list.
    fn link(&mut self, table: &mut Table, slot: u32, mut place: ListNode) {
        (place.before, place.after) = (NONE, NONE);
        if let Some(row) = self.rows.get_mut(place.list as usize) {
            place.before = std::mem::replace(&mut row.last, slot);
            row.count += 1;
            row.bytes += u64::from(place.bytes);
            match table.get_mut(place.before) {
                Some(before) => before.place.after = slot,
                None => row.first = slot,
            }
        }
        if let Some(entry) = table.get_mut(slot) {
            entry.place = place;
        }
    }

    /// Files a connection after a change, unless its place and its bytes are the same.
    #[inline]
    pub(super) fn file(&mut self, now: Instant, table: &mut Table, slot: u32) {
        let Some(entry) = table.get(slot) else { return };
        let was = &entry.place;
        let bytes = entry.conn.buffered();
        let list = list(entry.owner, &entry.conn, bytes);
        let moved = entry.conn.moved();
        let has_moved = moved != was.moved && was.age_ms(now) >= MOVES_EVERY_MS;
        if list != was.list || has_moved {
            self.move_to(now, table, slot, ListNode { bytes, moved, list, ..*was });
        } else if bytes != was.bytes {
            self.resize(table, slot, bytes);
        }
    }

    /// Counts a connection's new bytes where it is.
    #[inline(never)]
    fn resize(&mut self, table: &mut Table, slot: u32, bytes: u32) {
        let Some(entry) = table.get_mut(slot) else { return };
        let was = std::mem::replace(&mut entry.place.bytes, bytes);
        let list = entry.place.list;
        self.recount(list, was, bytes);
        self.weigh_holder(table, slot);
    }

    /// Moves a connection to the end of a list.
    #[inline(never)]
    fn move_to(&mut self, now: Instant, table: &mut Table, slot: u32, place: ListNode) {
        let Some(entry) = table.get(slot) else { return };
        let was = entry.place;
        self.change_bytes(was.bytes, place.bytes);
        self.unlink(table, was);
        // A handshake keeps the time of its start.
        let since_ms = if place.list == LruList::Free { was.since_ms } else { now.millis_u32() };
        self.link(table, slot, ListNode { since_ms, ..place });
        self.file_guest(table, slot);
        self.file_holder(table, slot);
    }

    fn recount(&mut self, list: LruList, was: u32, is: u32) {
        self.change_bytes(was, is);
        if let Some(row) = self.rows.get_mut(list as usize) {
            row.bytes = row.bytes - u64::from(was) + u64::from(is);
        }
    }

    fn change_bytes(&mut self, was: u32, is: u32) {
        self.is_settled = false;
        self.bytes = self.bytes - u64::from(was) + u64::from(is);
        self.weigh();
    }

    /// Removes a connection from the account before it is forgotten.
    pub(super) fn strike(&mut self, table: &mut Table, slot: u32) {
        let Some(entry) = table.get_mut(slot) else { return };
        let place = entry.place;
        entry.place = ListNode { list: LruList::Free, bytes: 0, ..place };
        self.change_bytes(place.bytes, 0);
        self.unlink(table, place);
        self.file_guest(table, slot);
        self.file_holder(table, slot);
    }
}

fn list(owner: Owner, conn: &Connection, bytes: u32) -> LruList {
    let is_over = conn.close_reason().is_some();
    match (owner, conn.state()) {
        (Owner::Nobody, _) if is_over => LruList::Over,
        (Owner::Nobody, StateName::TimeWait) if conn.has_ack_to_send() => LruList::LastAck,
        (Owner::Nobody, StateName::TimeWait) => LruList::TimeWait,
        (Owner::Nobody, _) if conn.is_stuck() => LruList::Stuck,
        (Owner::Nobody, _) => LruList::Orphan,
        (Owner::Listener | Owner::Application, state) => match (is_over, state.is_synchronized()) {
            (true, _) => LruList::Gone,
            (false, false) => LruList::Free,
            (false, true) if bytes > 0 => LruList::Holder,
            (false, true) => LruList::Live,
        },
    }
}

impl Endpoint {
    /// Sets the state of the memory that this endpoint shares with others. The scarcer of this state and its own
    /// [bounds](super::EndpointConfig::bounds) counts.
    pub fn set_shared_memory(&mut self, left: Memory) {
        self.account.shared = left;
        self.account.weigh();
    }

    /// The bounds in force.
    pub fn bounds(&self) -> Bounds {
        self.account.bounds
    }

    /// The most connections that the table has room for.
    pub fn most_connections(&self) -> usize {
        self.config.most_connections
    }

    /// The number of connections that were given up because this resource was scarce.
    pub fn gave_way(&self, to: Scarce) -> u64 {
        u64::from(self.account.gave_way[to as usize])
    }

    /// Gives connections up until no resource is scarce, or all holders use theirs.
    #[inline]
    pub(super) fn make_room(&mut self, now: Instant) {
        if !self.account.is_settled {
            self.settle_account(now);
        }
    }

    #[inline(never)]
    fn settle_account(&mut self, now: Instant) {
        self.account.forget_holders();
        loop {
            let Some(scarce) = self.account.scarce() else {
                self.account.is_settled = true;
                return;
            };
            // Those that use theirs now may stand still later.
            let Some(slot) = self.first_to_go(now, scarce) else { return };
            self.give_way(now, slot, scarce);
            if self.account.row(LruList::Over).count > MOST_RESETS_WAITING {
                self.forget(now, self.account.row(LruList::Over).first);
            }
        }
    }

    fn first_to_go(&mut self, now: Instant, scarce: Scarce) -> Option<u32> {
        let lists: &[LruList] = match scarce {
            Scarce::TimeWaits => &[LruList::TimeWait],
            Scarce::Orphans | Scarce::OrphanBytes => &[LruList::Stuck, LruList::Orphan],
            Scarce::BufferBytes => return self.first_holder_to_go(now),
            Scarce::Handshakes | Scarce::Connections => &[],
        };
        let frees = |row: &Row| row.count > 0 && (row.bytes > 0 || scarce != Scarce::OrphanBytes);
        let row = lists.iter().map(|list| self.account.row(*list)).find(|row| frees(row))?;
        Some(row.first)
    }

    /// Ends a connection for the sake of others. The peer gets a RST if it may still wait. No RST goes to a TIME-WAIT's
    /// peer or to a handshake's peer, whose address may be forged.
    pub(super) fn give_way(&mut self, now: Instant, slot: u32, to: Scarce) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let memory = self.account.memory();
        let mut cx =
            Cx { now, conn: entry.conn.number, packet: self.packets_in, memory, ring: &mut self.trace };
        cx.trace(TraceKind::GaveWay(to));
        let count = &mut self.account.gave_way[to as usize];
        *count = count.saturating_add(1);
        if matches!(to, Scarce::TimeWaits | Scarce::Handshakes) {
            return self.forget(now, slot);
        }
        entry.conn.give_way(&mut cx);
        self.file_and_queue(now, slot);
    }
}

#[cfg(test)]
mod tests;
