//! The state of loss recovery: which phase it is in, and what each mechanism remembers. What to do with it is in
//! `connection/loss.rs`; how much may leave belongs to the sender agents and, in fast recovery, to PRR.

mod inflate;
mod prr;
mod rack;
mod undo;

pub(crate) use inflate::Inflate;
pub(crate) use prr::Prr;
pub(crate) use rack::{Certainty, Rack};
pub(crate) use undo::{Frto, Undo};

use crate::Seq;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    /// Fast recovery until `point` is acknowledged (RFC 6582, 6675).
    Fast,
    /// After a retransmission timeout, until `point` is acknowledged.
    AfterTimeout,
}

#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) phase: Phase,
    /// `snd_nxt` when the loss was found; RFC 6582's `recover` also when the phase is over.
    pub(crate) point: Seq,
    pub(crate) dup_acks: u32,
    /// Of the fast recovery under way.
    pub(crate) partial_acks: u32,
    /// Without SACK each duplicate ACK says that one segment arrived: how many are believed to have (RFC 6937
    /// counts them as delivered).
    pub(crate) assumed_arrived: u32,
    pub(crate) ssthresh: u64,
    /// What may be in flight during fast recovery, set anew by each ACK.
    pub(crate) window: u64,
    pub(crate) gauge: Gauge,
    pub(crate) rack: Rack,
    pub(crate) undo: Undo,
    pub(crate) frto: Frto,
    /// A timeout was needless: round trips of what begins below `point` are those of the delay that made it so.
    pub(crate) was_delayed: bool,
    /// Retransmission timeouts in a row.
    pub(crate) timeouts: u32,
    /// `snd_nxt` when the window was last reduced: marks of data before it are not counted again.
    pub(crate) reduced_at: Option<Seq>,
    pub(crate) tail_probe: Option<TailProbe>,
    /// The agent's own fast retransmit was honoured in this window already.
    pub(crate) asked_at: Option<Seq>,
}

/// How much fast recovery lets out: by what is delivered, or by inflating the window.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gauge {
    Prr(Prr),
    Inflate(Inflate),
}

/// A tail loss probe under way (RFC 8985 §7.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailProbe {
    pub(crate) end: Seq,
    pub(crate) was_resent: bool,
}

impl Recovery {
    pub(crate) fn new(iss: Seq) -> Recovery {
        Recovery {
            phase: Phase::Open,
            point: iss,
            dup_acks: 0,
            partial_acks: 0,
            assumed_arrived: 0,
            ssthresh: u64::MAX,
            window: u64::MAX,
            gauge: Gauge::Prr(Prr::default()),
            rack: Rack::default(),
            undo: Undo::default(),
            frto: Frto::Off,
            was_delayed: false,
            timeouts: 0,
            reduced_at: None,
            tail_probe: None,
            asked_at: None,
        }
    }

    /// An ACK came while `una` was not acknowledged: what was sent before a needless timeout tells of the delay that
    /// made it so, what was sent after it measures the path (RFC 4015).
    pub(crate) fn on_ack_of(&mut self, una: Seq) {
        self.was_delayed &= una < self.point;
    }

    /// What `una` has passed says nothing any more, and two gibibytes on would seem to lie ahead of it.
    pub(crate) fn passed(&mut self, una: Seq) {
        let ahead = |at: &Seq| una < *at;
        if self.phase == Phase::Open && self.point < una {
            self.point = una - 1;
        }
        self.reduced_at = self.reduced_at.filter(|at| una <= *at);
        self.asked_at = self.asked_at.filter(ahead);
        self.rack.passed(una);
        self.undo.passed(una);
    }
}
