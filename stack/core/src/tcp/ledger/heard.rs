//! The input of the ledger: the state of its connection, arrivals, and reasons to answer.

use std::time::Duration;

use crate::Seq;
use crate::agent::{AckRequest, Class, Owed, Path, RecvView};

/// The first number of a range, and the first number beyond it.
pub(crate) type Stretch = (Seq, Seq);

/// The reason for an ACK, as far as it decides which segment may carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckKind {
    /// Acknowledges data in order; the newest of these may ride on a data segment.
    InOrder,
    /// A duplicate ACK or a forced answer. Each must be seen, so it leaves alone.
    Duplicate,
    Repeat,
}

/// The connection's state at an arrival, as far as agents may see it.
pub(crate) type Facts<'a> = FactsOf<&'a Path>;

/// The same with a path that is borrowed, or kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FactsOf<P> {
    pub(crate) path: P,
    pub(crate) peer_cwnd: Option<u16>,
    pub(crate) mss: u32,
    pub(crate) advertised: u32,
    pub(crate) holes: u32,
    /// Goes out as the ACK's number.
    pub(crate) rcv_nxt: Seq,
    /// The number of the last decision.
    pub(crate) last_decided: Seq,
    /// The timestamp echo of an ACK that acknowledges more than that number.
    pub(crate) ts_recent: u32,
}

impl<P> FactsOf<P> {
    pub(crate) fn with_path<Q>(&self, path: Q) -> FactsOf<Q> {
        let FactsOf { path: _, peer_cwnd, mss, advertised, holes, rcv_nxt, last_decided, ts_recent } = *self;
        FactsOf { path, peer_cwnd, mss, advertised, holes, rcv_nxt, last_decided, ts_recent }
    }
}

impl<'a> Facts<'a> {
    pub(super) fn view(&self, owed: Owed) -> RecvView<'a> {
        RecvView {
            owed,
            path: self.path,
            peer_cwnd: self.peer_cwnd,
            mss: self.mss,
            advertised: self.advertised,
            holes: self.holes,
        }
    }
}

/// An arrival for the agents: one segment, or several that a link joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) class: Class,
    pub(crate) bytes: u32,
    /// The payload of each segment but the last, which has the rest.
    pub(crate) each: u32,
    pub(crate) push: bool,
    pub(crate) ce: bool,
    pub(crate) ack_request: Option<AckRequest>,
    pub(crate) rtt: Option<Duration>,
    /// The echo for ACKs that are the first to acknowledge a part of this read; its segments share one timestamp.
    pub(crate) timestamp: Option<u32>,
    /// The stretch above a hole to which the data now belongs. None where no SACK block may report it.
    pub(crate) part_of: Option<Stretch>,
}
