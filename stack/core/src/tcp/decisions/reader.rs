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
#[expect(clippy::large_enum_variant, reason = "it is handed on at once and kept nowhere")]
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::entry::Seen;
    use super::super::log::DecisionLog;
    use super::*;
    use crate::agent::{AckRequest, AckRule, By, Class, HopSource, Path, Rtt, Why};
    use crate::tcp::decisions::LeftAck;
    use crate::tcp::ledger::{AckKind, FactsOf, Heard};
    use crate::{Instant, LinkFacts, Seq, StationAddress};

    fn link() -> LinkFacts {
        LinkFacts {
            inactive: Some(Duration::from_millis(51)),
            signal_dbm: Some(-61),
            signal_average_dbm: Some(-62),
            tx_packets: Some(63),
            tx_retries: Some(64),
            tx_failed: Some(65),
            rx_packets: Some(66),
            rx_bytes: Some(67),
            tx_bitrate_bps: Some(68),
            expected_throughput_bps: Some(69),
            tx_duration: Some(Duration::from_millis(70)),
            rx_duration: Some(Duration::from_millis(71)),
            ..LinkFacts::new(StationAddress([0xfe, 1, 2, 3, 4, 5]), Instant(4))
        }
    }

    /// A state in which no two fields are the same, and none is the default.
    fn seen() -> Seen {
        let ms = |ms| Some(Duration::from_millis(ms));
        let facts = FactsOf {
            path: Path {
                hops_to_peer: Some((3, HopSource::Config)),
                hops_from_peer: Some((4, HopSource::Routing)),
                link_bps: std::num::NonZeroU64::new(2_000_000),
                link: Some(Arc::new(link())),
                rtt: Rtt {
                    latest: ms(31),
                    smoothed: ms(32),
                    variance: Duration::from_millis(33),
                    min: ms(34),
                },
            },
            peer_cwnd: Some(41),
            mss: 1_448,
            advertised: 65_535,
            holes: 5,
            rcv_nxt: Seq(4_000_000_000),
            last_decided: Seq(3_999_999_000),
            ts_recent: 77,
        };
        Seen { facts, has_sack: true, twice: Some((Seq(4_294_967_290), Seq(6))) }
    }

    fn call(at: u64, packet: u64, what: What) -> Entry {
        Entry::Call(Call { at: Instant(at), packet, seen: seen(), what })
    }

    fn each_entry() -> Vec<Entry> {
        let heard = Heard {
            class: Class::OutOfOrder,
            bytes: 1_400,
            each: 700,
            push: true,
            ce: true,
            ack_request: Some(AckRequest::After(9)),
            rtt: Some(Duration::from_nanos(123_456_789)),
            timestamp: Some(88),
            part_of: Some((Seq(4_000_001_000), Seq(4_000_002_400))),
        };
        let why = Why::new(AckRule::Count, 2, 3);
        let left = LeftAck {
            number: Seq(12),
            decided: Seq(11),
            decision: 65_535,
            echo: Some(u32::MAX),
            dup_count: Some(255),
            repeat: true,
            twice: Some((Seq(1), Seq(2))),
            part_of: Some((Seq(3), Seq(4))),
        };
        vec![
            Entry::Begun(Begun {
                local: "[fd00::1]:7".parse().expect("a socket"),
                remote: "[fd00::2]:40000".parse().expect("a socket"),
                receiver: "dup-count(delayed:d=3,hold=200ms)".into(),
                ceiling: Duration::from_millis(490),
                merges_reads: true,
            }),
            call(5, 1, What::Arrived { heard, segments: 2 }),
            Entry::Outcome(Outcome::Held { why }),
            Entry::Outcome(Outcome::Decided { number: Seq(9), decision: 1, by: By::Repeat, why }),
            Entry::Outcome(Outcome::Merged { number: Seq(9), decision: 1, into: 2 }),
            call(5, 0, What::Due),
            call(6, 2, What::Forced { kind: AckKind::Duplicate, why: Why::plain(AckRule::Forced) }),
            call(7, 9, What::Leaves),
            Entry::Outcome(Outcome::Left(Some(left))),
            call(8, 10, What::Rides),
            Entry::Outcome(Outcome::Left(None)),
            call(9, 11, What::Passes),
        ]
    }

    fn logged(entries: &[Entry]) -> Vec<u8> {
        let (mut log, mut bytes) = (DecisionLog::default(), Vec::new());
        entries.iter().for_each(|entry| log.push(3, entry));
        log.drain(&mut |entries| bytes.extend_from_slice(entries));
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<News>, Damaged> {
        let mut news = Vec::new();
        LogReader::default().read(bytes, &mut |one| news.push(one))?;
        Ok(news)
    }

    #[test]
    fn every_entry_is_read_with_every_field_as_it_was_logged() {
        let entries = each_entry();
        let expected: Vec<_> = entries.iter().map(|entry| News::Entry(3, entry.clone())).collect();
        let news = read(&logged(&entries)).expect("it is whole");
        // Two paths with the same row are equal, but not the same text.
        assert_eq!(format!("{news:?}"), format!("{expected:?}"));
    }

    #[test]
    fn a_log_cut_anywhere_gives_the_entries_before_or_is_damaged() {
        let bytes = logged(&each_entry());
        for len in 0..bytes.len() {
            if let Err(Damaged { after }) = read(&bytes[..len]) {
                assert!(after < len && read(&bytes[..after]).is_ok(), "{len} {after}");
            }
        }
    }

    #[test]
    fn time_that_goes_back_is_damage() {
        let [begun, ..] = &each_entry()[..] else { panic!("it begins") };
        let back = [begun.clone(), call(9, 1, What::Leaves), call(8, 2, What::Leaves)];
        assert!(read(&logged(&back)).is_err());
    }

    #[test]
    fn a_connection_without_beginning_is_told_once_and_its_entries_are_passed_over() {
        let entries = each_entry();
        let unknown = News::Entry(3, Entry::Unknown);
        assert_eq!(read(&logged(&entries[1..])), Ok(vec![unknown]));
        let mut reader = LogReader::default();
        let bytes = logged(&entries);
        let begun = logged(&entries[..1]).len();
        let mut news = 0;
        reader.read(&bytes[..begun], &mut |_| news += 1).expect("it is whole");
        reader.skip();
        reader.read(&bytes[begun..], &mut |_| news += 1).expect("it can be passed over");
        assert_eq!(news, 1);
    }

    #[test]
    fn more_than_the_log_may_hold_is_a_gap_and_new_connections_go_on() {
        let mut log = DecisionLog::default();
        let entries = each_entry();
        log.push(1, &entries[0]);
        for _ in 0..1_000_000 {
            log.push(1, &entries[1]);
        }
        let mut bytes = Vec::new();
        log.drain(&mut |entries| bytes.extend_from_slice(entries));
        assert!((4 << 20..5 << 20).contains(&bytes.len()), "{}", bytes.len());
        log.push(1, &entries[1]);
        log.push(2, &entries[0]);
        log.drain(&mut |entries| bytes.extend_from_slice(entries));
        let news = read(&bytes).expect("it is whole");
        let [.., gap, unknown, begun] = &news[..] else { panic!("{}", news.len()) };
        assert_eq!((gap, unknown), (&News::Gap, &News::Entry(1, Entry::Unknown)));
        assert_eq!(begun, &News::Entry(2, entries[0].clone()));
    }
}
