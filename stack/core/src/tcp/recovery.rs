//! The state of loss recovery: its phase, and the memory of each mechanism. `connection/loss` and `repair` act on it.
//! The sender agents, and PRR in fast recovery, bound the bytes that may leave.

mod inflate;
mod prr;
mod rack;
mod undo;

pub(crate) use inflate::Inflate;
pub(crate) use prr::{Prr, Safety};
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

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recovery {
    pub(crate) phase: Phase,
    /// `snd_nxt` when the loss was found; RFC 6582's `recover` also when the phase is over.
    pub(crate) point: Seq,
    pub(crate) dup_acks: u32,
    /// The partial ACKs of the current fast recovery.
    pub(crate) partial_acks: u32,
    /// The segments that are believed to have arrived: without SACK each duplicate ACK stands for one (RFC 9937 counts
    /// them as delivered).
    pub(crate) assumed_arrived: u32,
    pub(crate) ssthresh: u64,
    /// The bytes that may be in flight during fast recovery; each ACK sets it anew.
    pub(crate) window: u64,
    pub(crate) rack: Rack,
    /// Allocated at a loss and kept for the next one: most connections are idle, and few have lost data.
    repair: Option<Box<Repair>>,
    pub(crate) frto: Frto,
    /// A timeout was needless: round trips of data below `point` contain the delay that caused it.
    pub(crate) was_delayed: bool,
    /// Retransmission timeouts in a row.
    pub(crate) timeouts: u32,
    /// `snd_nxt` at the last reduction of the window: marks of data before it do not count again.
    pub(crate) reduced_at: Option<Seq>,
    pub(crate) tail_probe: Option<TailProbe>,
    /// The agent has already had its fast retransmit in this window.
    pub(crate) asked_at: Option<Seq>,
}

/// The memory of the newest loss.
#[derive(Debug, PartialEq, Eq)]
struct Repair {
    gauge: Gauge,
    undo: Undo,
}

/// The measure of fast recovery: by delivered bytes, or by an inflated window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gauge {
    Prr(Prr),
    Inflate(Inflate),
}

/// A tail loss probe in flight (RFC 8985 §7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
            rack: Rack::default(),
            repair: None,
            frto: Frto::Off,
            was_delayed: false,
            timeouts: 0,
            reduced_at: None,
            tail_probe: None,
            asked_at: None,
        }
    }

    /// An ACK came while `una` was not acknowledged. Data sent before a needless timeout shows the delay that caused
    /// it. Data sent after it measures the path (RFC 4015).
    pub(crate) fn on_ack_of(&mut self, una: Seq) {
        self.was_delayed &= una < self.point;
    }

    /// Drops marks that `una` has passed. Two gibibytes later they would seem to lie ahead of it.
    pub(crate) fn passed(&mut self, una: Seq) {
        let ahead = |at: &Seq| una < *at;
        if self.phase == Phase::Open && self.point < una {
            self.point = una - 1;
        }
        self.reduced_at = self.reduced_at.filter(|at| una <= *at);
        self.asked_at = self.asked_at.filter(ahead);
        self.rack.passed(una);
        if let Some(undo) = self.undo() {
            undo.passed(una);
        }
    }

    /// A copy that touches no heap.
    pub(crate) fn without_repair(&self) -> Recovery {
        Recovery { repair: None, ..*self }
    }

    /// Begins a fast recovery with this gauge.
    pub(crate) fn begin_fast(&mut self, gauge: Gauge) {
        self.phase = Phase::Fast;
        let repair = self.repair();
        (repair.gauge, repair.undo) = (gauge, Undo::begin());
    }

    /// Starts the undo state of a timeout; `is_new` unless an earlier loss is being repaired.
    pub(crate) fn undo_timeout(&mut self, is_new: bool) {
        let undo = &mut self.repair().undo;
        if is_new {
            *undo = Undo::begin();
        }
        undo.on_timeout();
    }

    fn repair(&mut self) -> &mut Repair {
        self.repair.get_or_insert_with(|| {
            Box::new(Repair { gauge: Gauge::Prr(Prr::default()), undo: Undo::default() })
        })
    }

    /// Frees the heap once the newest loss can no longer be undone.
    pub(crate) fn relax(&mut self) {
        let is_open = self.phase != Phase::Open || self.undo().is_some_and(|undo| undo.is_open());
        self.repair = self.repair.take().filter(|_| is_open);
    }

    /// The undo state of the newest loss, if there ever was one.
    #[inline]
    pub(crate) fn undo(&mut self) -> Option<&mut Undo> {
        self.repair.as_deref_mut().map(|repair| &mut repair.undo)
    }

    /// The gauge of the current fast recovery.
    #[inline]
    pub(crate) fn gauge(&self) -> Option<&Gauge> {
        self.repair.as_deref().filter(|_| self.phase == Phase::Fast).map(|repair| &repair.gauge)
    }

    #[inline]
    pub(crate) fn gauge_mut(&mut self) -> Option<&mut Gauge> {
        let is_fast = self.phase == Phase::Fast;
        self.repair.as_deref_mut().filter(|_| is_fast).map(|repair| &mut repair.gauge)
    }

    pub(crate) fn allocated(&self) -> usize {
        self.repair.as_deref().map_or(0, size_of_val)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_loss_stays_until_nothing_can_be_said_of_it() {
        let mut recovery = Recovery::new(Seq(0));
        recovery.begin_fast(Gauge::Prr(Prr::begin(1000)));
        recovery.relax();
        assert!(recovery.gauge().is_some(), "it goes on");
        recovery.phase = Phase::Open;
        recovery.undo().expect("a loss was found").keep_until(Seq(100));
        recovery.passed(Seq(100));
        recovery.relax();
        assert!(recovery.undo().is_some(), "a D-SACK may still deny it");
        recovery.passed(Seq(101));
        recovery.relax();
        assert_eq!(recovery.allocated(), 0);
    }
}
