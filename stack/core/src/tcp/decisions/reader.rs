//! Reads the log. Any bytes are read or refused, in bounded memory.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::entry::{Begun, Call, Entry, Outcome, What};
use super::log::{MOST_CONNECTIONS, Rows, tag};
use super::numbers::Bytes;
use super::row;

/// The longest text of an entry: a spec, or a socket.
const LONGEST_TEXT: usize = 4096;
/// No ledger lets data wait longer.
const LONGEST_CEILING: u64 = 1_000_000;

/// Reads the log of one machine, from its beginning.
#[derive(Debug, Default)]
pub struct LogReader {
    /// None for a connection whose beginning is not in the log.
    connections: BTreeMap<u32, Option<Box<Rows>>>,
}

/// Bytes that no log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The bytes of sound entries before them.
    pub after: usize,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} bytes of sound entries comes none", self.after)
    }
}

impl std::error::Error for Damaged {}

/// News for the reader's caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// An entry of the connection with that number.
    Entry(u32, Entry),
    /// Entries were lost. No more comes of the connections that have begun.
    Gap,
}

impl LogReader {
    /// Reads whole entries, as the writer handed them over.
    pub fn read(&mut self, bytes: &[u8], sink: &mut dyn FnMut(News)) -> Result<(), Damaged> {
        let mut left = Bytes(bytes);
        while !left.is_empty() {
            let after = bytes.len() - left.0.len();
            let news = self.entry(&mut left).ok_or(Damaged { after })?;
            news.into_iter().for_each(&mut *sink);
        }
        Ok(())
    }

    /// Bytes are missing: forgets the connections so far.
    pub fn skip(&mut self) {
        self.connections.values_mut().for_each(|rows| *rows = None);
    }

    /// The outer `None` stands for damage.
    fn entry(&mut self, left: &mut Bytes<'_>) -> Option<Option<News>> {
        let conn = u32::try_from(left.number()?).ok()?;
        let tag = left.byte()?;
        if tag == tag::GAP {
            self.skip();
            return Some(Some(News::Gap));
        }
        if tag == tag::BEGUN {
            let begun = begun(left)?;
            self.make_room();
            self.connections.insert(conn, Some(Box::default()));
            return Some(Some(News::Entry(conn, Entry::Begun(begun))));
        }
        if tag == tag::UNKNOWN {
            self.make_room();
            self.connections.insert(conn, None);
            return Some(Some(News::Entry(conn, Entry::Unknown)));
        }
        let known = self.connections.get_mut(&conn).and_then(Option::as_mut);
        let is_known = known.is_some();
        let mut unknown = Rows::default();
        let entry = match known {
            Some(rows) => Some(rows.entry(tag, left)?),
            // It only has to be passed over.
            None => unknown.pass(tag, left).map(|()| None)?,
        };
        if tag == tag::ENDED {
            self.connections.remove(&conn);
        }
        Some(entry.filter(|_| is_known).map(|entry| News::Entry(conn, entry)))
    }

    fn make_room(&mut self) {
        if self.connections.len() >= MOST_CONNECTIONS {
            self.connections.pop_first();
        }
    }
}

fn begun(left: &mut Bytes<'_>) -> Option<Begun> {
    let mut socket = || left.text(LONGEST_TEXT)?.parse().ok();
    let (local, remote) = (socket()?, socket()?);
    let receiver = left.text(LONGEST_TEXT)?.to_owned();
    let ceiling = left.number().filter(|us| *us <= LONGEST_CEILING)?;
    let merges_reads = left.byte()? != 0;
    Some(Begun { local, remote, receiver, ceiling: Duration::from_micros(ceiling), merges_reads })
}

impl Rows {
    fn entry(&mut self, tag: u8, left: &mut Bytes<'_>) -> Option<Entry> {
        let outcome = match tag {
            tag::HELD => {
                left.row(&mut self.held)?;
                row::to_held(&self.held)?
            }
            tag::DECIDED => {
                left.row(&mut self.decided)?;
                row::to_decided(&self.decided)?
            }
            tag::MERGED => {
                left.row(&mut self.merged)?;
                row::to_merged(&self.merged)?
            }
            tag::LEFT => {
                left.row(&mut self.left)?;
                row::to_left(&self.left)?
            }
            tag::LEFT_NONE => Outcome::Left(None),
            _ => return self.call(tag, left).map(Entry::Call),
        };
        Some(Entry::Outcome(outcome))
    }

    fn call(&mut self, tag: u8, left: &mut Bytes<'_>) -> Option<Call> {
        let before = self.at;
        self.numbers(tag, left)?;
        let at = row::to_instant(self.at).filter(|_| before <= self.at)?;
        let packet = match tag {
            tag::DUE | tag::ENDED => 0,
            _ => self.packets[usize::from(is_of_leaving(tag))],
        };
        let what = match tag {
            tag::ARRIVED => row::to_heard(&self.call)?,
            tag::FORCED => row::to_forced(&self.forced)?,
            tag::DUE => What::Due,
            tag::LEAVES => What::Leaves,
            tag::RIDES => What::Rides,
            tag::PASSES => What::Passes,
            _ => What::Ended,
        };
        Some(Call { at, packet, seen: row::to_seen(&self.call)?, what })
    }

    /// Reads the numbers of a call into the rows.
    fn numbers(&mut self, tag: u8, left: &mut Bytes<'_>) -> Option<()> {
        if !(tag::ARRIVED..=tag::ENDED).contains(&tag) {
            return None;
        }
        self.at = left.changed(self.at)?;
        if tag == tag::ENDED {
            return Some(());
        }
        if tag != tag::DUE {
            let packet = &mut self.packets[usize::from(is_of_leaving(tag))];
            *packet = left.changed(*packet)?;
        }
        left.row(&mut self.call)?;
        if tag == tag::FORCED {
            left.row(&mut self.forced)?;
        }
        Some(())
    }

    /// Passes over an entry whose numbers mean nothing.
    fn pass(&mut self, tag: u8, left: &mut Bytes<'_>) -> Option<()> {
        match tag {
            tag::HELD => left.row(&mut self.held),
            tag::DECIDED => left.row(&mut self.decided),
            tag::MERGED => left.row(&mut self.merged),
            tag::LEFT => left.row(&mut self.left),
            tag::LEFT_NONE => Some(()),
            _ => self.numbers(tag, left),
        }
    }
}

fn is_of_leaving(tag: u8) -> bool {
    matches!(tag, tag::LEAVES | tag::RIDES | tag::PASSES)
}
