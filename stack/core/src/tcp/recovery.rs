//! The state of loss recovery: which phase it is in, and what each mechanism remembers. What to do with it is in
//! `connection/loss` and `repair`; how much may leave belongs to the sender agents and, in fast recovery, to PRR.

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

#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) phase: Phase,
    /// `snd_nxt` when the loss was found; RFC 6582's `recover` also when the phase is over.
    pub(crate) point: Seq,
    pub(crate) dup_acks: u32,
    /// Of the fast recovery under way.
    pub(crate) partial_acks: u32,
    /// Without SACK each duplicate ACK says that one segment arrived: how many are believed to have (RFC 9937
    /// counts them as delivered).
    pub(crate) assumed_arrived: u32,
    pub(crate) ssthresh: u64,
    /// What may be in flight during fast recovery, set anew by each ACK.
    pub(crate) window: u64,
    pub(crate) rack: Rack,
    /// Made when a loss is found, and kept for the next: most connections are idle, and few of them have lost anything.
    repair: Option<Box<Repair>>,
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

/// What is remembered of the newest loss alone.
#[derive(Debug)]
struct Repair {
    gauge: Gauge,
    undo: Undo,
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
        if let Some(undo) = self.undo() {
            undo.passed(una);
        }
    }

    /// A fast recovery begins, and lets out so much.
    pub(crate) fn begin_fast(&mut self, gauge: Gauge) {
        self.phase = Phase::Fast;
        let repair = self.repair();
        (repair.gauge, repair.undo) = (gauge, Undo::begin());
    }

    /// Of the loss that a timeout has found, which `is_new` unless one was found before.
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

    /// Gives the heap back once nothing can be said of the newest loss any more.
    pub(crate) fn relax(&mut self) {
        let is_open = self.phase != Phase::Open || self.undo().is_some_and(|undo| undo.is_open());
        self.repair = self.repair.take().filter(|_| is_open);
    }

    /// Of the newest loss, if there ever was one.
    #[inline]
    pub(crate) fn undo(&mut self) -> Option<&mut Undo> {
        self.repair.as_deref_mut().map(|repair| &mut repair.undo)
    }

    /// Of the fast recovery under way.
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
