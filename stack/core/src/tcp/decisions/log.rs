//! Writes the log while connections live, and holds what no reader has fetched yet.

use std::collections::BTreeMap;

use super::entry::{Begun, Call, Entry, Outcome, What};
use super::numbers::{put, put_change, put_row, put_text};
use super::row::{self, CALL_FIELDS, CallRow, DecidedRow, HeldRow, LeftRow, MergedRow, WhyRow};

/// Connections that the log follows at a time.
pub(super) const MOST_CONNECTIONS: usize = 1 << 16;
/// The bytes that may wait for a reader. Entries beyond them are lost, and the log says so.
const MOST_BYTES: usize = 4 << 20;

/// The first byte of an entry, after the number of its connection. The numbers are the format.
pub(super) mod tag {
    pub(in super::super) const BEGUN: u8 = 0;
    pub(in super::super) const UNKNOWN: u8 = 1;
    /// Entries were lost: what follows of earlier connections means nothing.
    pub(in super::super) const GAP: u8 = 2;
    pub(in super::super) const ARRIVED: u8 = 3;
    pub(in super::super) const DUE: u8 = 4;
    pub(in super::super) const FORCED: u8 = 5;
    pub(in super::super) const LEAVES: u8 = 6;
    pub(in super::super) const RIDES: u8 = 7;
    pub(in super::super) const PASSES: u8 = 8;
    pub(in super::super) const ENDED: u8 = 9;
    pub(in super::super) const HELD: u8 = 10;
    pub(in super::super) const DECIDED: u8 = 11;
    pub(in super::super) const MERGED: u8 = 12;
    pub(in super::super) const LEFT: u8 = 13;
    pub(in super::super) const LEFT_NONE: u8 = 14;
}

/// The last rows of one connection. An entry holds the differences from them.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) at: u64,
    /// The last packet that arrived, and the last that left.
    pub(super) packets: [u64; 2],
    pub(super) call: CallRow,
    pub(super) forced: WhyRow,
    pub(super) held: HeldRow,
    pub(super) decided: DecidedRow,
    pub(super) merged: MergedRow,
    pub(super) left: LeftRow,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows {
            at: 0,
            packets: [0; 2],
            call: [0; CALL_FIELDS],
            forced: WhyRow::default(),
            held: HeldRow::default(),
            decided: DecidedRow::default(),
            merged: MergedRow::default(),
            left: LeftRow::default(),
        }
    }
}

/// The log of one machine.
#[derive(Debug, Default)]
pub(crate) struct DecisionLog {
    bytes: Vec<u8>,
    /// None for a connection whose beginning is not in the log.
    connections: BTreeMap<u32, Option<Box<Rows>>>,
    /// Entries were lost since the last reading.
    is_lossy: bool,
}

impl DecisionLog {
    pub(crate) fn push(&mut self, conn: u32, entry: &Entry) {
        if self.is_lossy {
            return;
        }
        if self.bytes.len() > MOST_BYTES {
            self.is_lossy = true;
            self.connections.clear();
            return;
        }
        match entry {
            Entry::Begun(begun) => self.begin(conn, begun),
            Entry::Call(call) => self.call(conn, call),
            Entry::Outcome(outcome) => self.outcome(conn, outcome),
            Entry::Unknown => {}
        }
    }

    /// Hands over what has come since the last call, and forgets it.
    pub(crate) fn drain(&mut self, sink: &mut dyn FnMut(&[u8])) {
        if !self.bytes.is_empty() {
            sink(&self.bytes);
            self.bytes.clear();
        }
        if std::mem::take(&mut self.is_lossy) {
            self.bytes.extend([0, tag::GAP]);
        }
    }

    fn head(&mut self, conn: u32, tag: u8) {
        put(&mut self.bytes, conn.into());
        self.bytes.push(tag);
    }

    fn begin(&mut self, conn: u32, begun: &Begun) {
        if self.connections.len() >= MOST_CONNECTIONS
            && let Some((oldest, Some(_))) = self.connections.pop_first()
        {
            self.head(oldest, tag::UNKNOWN);
        }
        self.connections.insert(conn, Some(Box::default()));
        self.head(conn, tag::BEGUN);
        let Begun { local, remote, receiver, ceiling, merges_reads } = begun;
        put_text(&mut self.bytes, &local.to_string());
        put_text(&mut self.bytes, &remote.to_string());
        put_text(&mut self.bytes, receiver);
        put(&mut self.bytes, u64::try_from(ceiling.as_micros()).unwrap_or(u64::MAX));
        self.bytes.push(u8::from(*merges_reads));
    }

    /// The rows of a connection that is followed.
    fn is_followed(&mut self, conn: u32) -> bool {
        if let Some(rows) = self.connections.get(&conn) {
            return rows.is_some();
        }
        if self.connections.len() < MOST_CONNECTIONS {
            self.connections.insert(conn, None);
            self.head(conn, tag::UNKNOWN);
        }
        false
    }

    fn call(&mut self, conn: u32, call: &Call) {
        let is_over = call.what == What::Ended;
        if is_over && !self.connections.contains_key(&conn) {
            return;
        }
        if self.is_followed(conn) {
            let tag = match call.what {
                What::Arrived { .. } => tag::ARRIVED,
                What::Due => tag::DUE,
                What::Forced { .. } => tag::FORCED,
                What::Leaves => tag::LEAVES,
                What::Rides => tag::RIDES,
                What::Passes => tag::PASSES,
                What::Ended => tag::ENDED,
            };
            self.head(conn, tag);
            let DecisionLog { bytes, connections, .. } = self;
            if let Some(Some(rows)) = connections.get_mut(&conn) {
                rows.put_call(bytes, call);
            }
        }
        if is_over {
            self.connections.remove(&conn);
        }
    }

    fn outcome(&mut self, conn: u32, outcome: &Outcome) {
        if !self.is_followed(conn) {
            return;
        }
        let tag = match outcome {
            Outcome::Held { .. } => tag::HELD,
            Outcome::Decided { .. } => tag::DECIDED,
            Outcome::Merged { .. } => tag::MERGED,
            Outcome::Left(Some(_)) => tag::LEFT,
            Outcome::Left(None) => tag::LEFT_NONE,
        };
        self.head(conn, tag);
        let DecisionLog { bytes, connections, .. } = self;
        let Some(Some(rows)) = connections.get_mut(&conn) else { return };
        match *outcome {
            Outcome::Held { why } => put_row(bytes, &mut rows.held, row::of_held(why)),
            Outcome::Decided { number, decision, by, why } => {
                put_row(bytes, &mut rows.decided, row::of_decided(number, decision, by, why));
            }
            Outcome::Merged { number, decision, into } => {
                put_row(bytes, &mut rows.merged, row::of_merged(number, decision, into));
            }
            Outcome::Left(Some(ack)) => put_row(bytes, &mut rows.left, row::of_left(&ack)),
            Outcome::Left(None) => {}
        }
    }
}

impl Rows {
    fn put_call(&mut self, bytes: &mut Vec<u8>, call: &Call) {
        put_change(bytes, self.at, call.at.0);
        self.at = call.at.0;
        if call.what == What::Ended {
            return;
        }
        if call.what != What::Due {
            let packet = &mut self.packets[usize::from(call.is_of_leaving())];
            put_change(bytes, *packet, call.packet);
            *packet = call.packet;
        }
        // A call that is no arrival leaves the fields of the last one as they are.
        let mut fields = self.call;
        row::set_seen(&mut fields, &call.seen);
        if let What::Arrived { heard, segments } = &call.what {
            row::set_heard(&mut fields, heard, *segments);
        }
        put_row(bytes, &mut self.call, fields);
        if let What::Forced { kind, why } = call.what {
            put_row(bytes, &mut self.forced, row::of_forced(kind, why));
        }
    }
}
