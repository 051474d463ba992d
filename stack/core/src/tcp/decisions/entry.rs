//! The entries of the log: what a ledger was asked, with all that its agents could see, and what it decided.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use super::super::ledger::{AckKind, Facts, FactsOf, Heard, Stretch};
use crate::agent::{By, Path, Why};
use crate::{Instant, Seq};

/// One entry of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The connection begins.
    Begun(Begun),
    /// Its beginning is not in the log; no other entry of it follows.
    Unknown,
    /// The ledger was asked.
    Call(Call),
    /// A result of the last call.
    Outcome(Outcome),
}

/// The parts of a connection that stay the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Our end.
    pub local: SocketAddr,
    /// The peer.
    pub remote: SocketAddr,
    /// The spec of the receiver agent.
    pub receiver: String,
    /// The longest hold that the ledger allows.
    pub ceiling: Duration,
    /// ACKs of one read merge.
    pub merges_reads: bool,
}

/// A call of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The time of the driver's call.
    pub at: Instant,
    /// The running number of the arrived packet, or the id of the one that leaves; 0 for a timer.
    pub packet: u64,
    pub(crate) seen: Seen,
    pub(crate) what: What,
}

/// The state of a connection at a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) facts: FactsOf<Path>,
    pub(crate) has_sack: bool,
    /// The range that came twice and that no decision has reported.
    pub(crate) twice: Option<Stretch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Arrived {
        heard: Heard,
        segments: u16,
    },
    /// The ledger's timer.
    Due,
    Forced {
        kind: AckKind,
        why: Why,
    },
    /// The link has room for a pure ACK.
    Leaves,
    /// A segment leaves that takes an ACK along.
    Rides,
    /// A segment leaves that carries the number, while no agent owes anything.
    Passes,
    /// The connection is over.
    Ended,
}

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The agent holds.
    Held {
        /// Its reason.
        why: Why,
    },
    /// An ACK was decided.
    Decided {
        /// The number that it acknowledges.
        number: Seq,
        /// The running number of the decision.
        decision: u16,
        /// The cause.
        by: By,
        /// The reason.
        why: Why,
    },
    /// An ACK does not leave: another one carries its news.
    Merged {
        /// The number that it would have carried.
        number: Seq,
        /// Its decision.
        decision: u16,
        /// The decision that leaves for both.
        into: u16,
    },
    /// An ACK left, alone or on data; None if the segment took none along.
    Left(Option<LeftAck>),
}

/// The content of an ACK that left, as far as the ledger decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftAck {
    /// The header's field.
    pub number: Seq,
    /// The number at the decision.
    pub decided: Seq,
    /// The running number of the decision.
    pub decision: u16,
    /// The timestamp that it echoes, if it is the first to acknowledge a segment.
    pub echo: Option<u32>,
    /// The note's count of duplicates.
    pub dup_count: Option<u8>,
    /// True if it is a copy of the last one.
    pub repeat: bool,
    /// The range that it reports as received twice.
    pub twice: Option<(Seq, Seq)>,
    /// The stretch that its first SACK block reports.
    pub part_of: Option<(Seq, Seq)>,
}

impl Seen {
    pub(crate) fn facts(&self) -> Facts<'_> {
        self.facts.with_path(&self.facts.path)
    }
}

/// Paths are the same if agents see no difference.
impl PartialEq for Seen {
    fn eq(&self, other: &Seen) -> bool {
        super::row::of_seen(self) == super::row::of_seen(other)
    }
}

impl Eq for Seen {}

impl Call {
    /// The segments that arrived with data; more than 1 if a link joined them.
    pub fn segments(&self) -> u64 {
        if let What::Arrived { segments, .. } = self.what { segments.into() } else { 0 }
    }

    /// Returns whether the connection ended.
    pub fn is_end(&self) -> bool {
        self.what == What::Ended
    }

    /// Returns whether the number of its packet is the id of one that left.
    pub fn is_of_leaving(&self) -> bool {
        matches!(self.what, What::Leaves | What::Rides | What::Passes)
    }
}

/// For example "data arrived".
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.what {
            What::Arrived { .. } => "data arrived",
            What::Due => "a timer ran out",
            What::Forced { .. } => "the protocol demanded an ACK",
            What::Leaves => "the link had room for an ACK",
            What::Rides | What::Passes => "a segment left",
            What::Ended => "the connection ended",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Held { why } => write!(f, "no ACK yet, {why}"),
            Outcome::Decided { number, by, why, .. } => match by {
                By::Agent => write!(f, "ACK {number}, {why}"),
                By::Repeat => write!(f, "ACK {number} repeated, {why}"),
                By::Forced => write!(f, "ACK {number}, forced, {why}"),
                By::Piggyback => write!(f, "ACK {number} on a segment that left anyway"),
            },
            Outcome::Merged { number, into, .. } => write!(f, "ACK {number} went into decision {into}"),
            Outcome::Left(None) => f.write_str("no ACK left"),
            Outcome::Left(Some(ack)) => {
                write!(f, "ACK {} left", ack.number)?;
                ack.echo.map_or(Ok(()), |echo| write!(f, ", echo {echo}"))?;
                ack.dup_count.map_or(Ok(()), |count| write!(f, ", {count} duplicates"))?;
                ack.twice.map_or(Ok(()), |(from, to)| write!(f, ", twice {from} to {to}"))?;
                ack.part_of.map_or(Ok(()), |(from, to)| write!(f, ", block {from} to {to}"))
            }
        }
    }
}
