//! The state of loss recovery: its phase, and the memory of each mechanism. `connection/loss` and `repair` act on it.
//! The sender agents, and PRR in fast recovery, bound the bytes that may leave.

mod rack;
mod undo;

pub(crate) use rack::{Certainty, Rack};
pub(crate) use undo::{Frto, Undo};

use crate::Seq;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Open,
    /// Fast recovery until `point` is acknowledged (RFC 6582, 6675).
    Fast,
    /// After a retransmission timeout, until `point` is acknowledged.
    AfterTimeout,
}

#[derive(Debug, Default, PartialEq, Eq)]
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
        Recovery { point: iss, ssthresh: u64::MAX, window: u64::MAX, ..Recovery::default() }
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
        undo.has_timed_out = true;
    }

    fn repair(&mut self) -> &mut Repair {
        self.repair.get_or_insert_with(|| {
            Box::new(Repair { gauge: Gauge::Prr(Prr::default()), undo: Undo::default() })
        })
    }

    /// Frees the heap once the newest loss can no longer be undone.
    pub(crate) fn relax(&mut self) {
        let is_open = self.phase != Phase::Open || self.undo().is_some_and(|undo| undo.is_open);
        self.repair = self.repair.take().filter(|_| is_open);
    }

    /// The undo state of the newest loss, if there ever was one.
    pub(crate) fn undo(&mut self) -> Option<&mut Undo> {
        self.repair.as_deref_mut().map(|repair| &mut repair.undo)
    }

    /// The gauge of the current fast recovery.
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

// Window inflation of RFC 6582 §3.2, for the compatible profile. Each duplicate ACK inflates the window by one
// segment, which has left the network. A partial ACK deflates it by the acknowledged bytes, less one segment.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inflate {
    inflation: u64,
    per_ack: u8,
    /// Segments that may still leave for the current ACK.
    credit: u8,
    /// The lost segment leaves at once, whatever the window is (RFC 5681 §3.2 step 3, RFC 6582 §3.2).
    owes_resend: bool,
}

impl Inflate {
    pub(crate) fn begin(dup_acks: u32, mss: u64, per_ack: u8) -> Inflate {
        Inflate { inflation: u64::from(dup_acks) * mss, per_ack, credit: per_ack, owes_resend: true }
    }

    pub(crate) fn on_dup_ack(&mut self, mss: u64) {
        self.inflation += mss;
        self.credit = self.per_ack;
    }

    pub(crate) fn on_partial_ack(&mut self, acked: u64, mss: u64) {
        self.inflation = self.inflation.saturating_sub(acked.saturating_sub(mss));
        self.credit = self.per_ack;
        self.owes_resend = true;
    }

    pub(crate) fn on_sent(&mut self) {
        self.credit = self.credit.saturating_sub(1);
        self.owes_resend = false;
    }

    pub(crate) fn window(&self, ssthresh: u64, pipe: u64, mss: u64) -> u64 {
        let inflated = ssthresh.saturating_add(self.inflation);
        if self.owes_resend { inflated.max(pipe + mss) } else { inflated }
    }

    pub(crate) fn may_send(&self) -> bool {
        self.credit > 0
    }
}

// Proportional Rate Reduction (RFC 9937). During fast recovery, sending is in proportion to arrivals, so that the
// window shrinks to ssthresh over one round trip without a stop.

/// All counts are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prr {
    delivered: u64,
    out: u64,
    /// The bytes that recovery may see delivered (`RecoverFS`).
    flight_at_start: u64,
}

/// The evidence of an ACK during recovery (`SafeACK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Safety {
    /// It acknowledges new data, and shows no further loss.
    Safe,
    Doubtful,
}

impl Prr {
    pub(crate) fn begin(flight: u64) -> Prr {
        Prr { delivered: 0, out: 0, flight_at_start: flight.max(1) }
    }

    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Bytes that recovery has yet to see delivered. Without SACK, more duplicate ACKs than these are forged (RFC 9937
    /// §6.2).
    pub(crate) fn undelivered(&self) -> u64 {
        self.flight_at_start.saturating_sub(self.delivered)
    }

    /// The bytes that may be in flight after an ACK that delivered `delivered` and left `pipe`.
    pub(crate) fn on_ack(
        &mut self,
        delivered: u64,
        safety: Safety,
        pipe: u64,
        ssthresh: u64,
        mss: u64,
    ) -> u64 {
        self.delivered += delivered;
        let send = if pipe > ssthresh {
            (self.delivered * ssthresh).div_ceil(self.flight_at_start).saturating_sub(self.out)
        } else {
            // As many bytes leave as arrive, plus a segment while all goes well (the reduction bounds).
            let conserved = self.delivered.saturating_sub(self.out).max(delivered);
            let limit = conserved + if safety == Safety::Safe { mss } else { 0 };
            (ssthresh - pipe).min(limit)
        };
        // The first retransmission leaves at once; otherwise the ACKs might stop.
        let send = if self.out == 0 { send.max(mss) } else { send };
        pipe + send
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
        recovery.undo().expect("a loss was found").until = Some(Seq(100));
        recovery.passed(Seq(100));
        recovery.relax();
        assert!(recovery.undo().is_some(), "a D-SACK may still deny it");
        recovery.passed(Seq(101));
        recovery.relax();
        assert_eq!(recovery.allocated(), 0);
    }

    #[test]
    fn a_partial_ack_takes_off_what_it_acknowledged_less_one() {
        let mut inflate = Inflate::begin(3, 1000, 2);
        assert_eq!(inflate.window(5000, 0, 1000), 8000);
        inflate.on_partial_ack(3000, 1000);
        assert_eq!(inflate.window(5000, 0, 1000), 6000);
        inflate.on_partial_ack(1000, 1000);
        assert_eq!(inflate.window(5000, 0, 1000), 6000);
    }

    #[test]
    fn what_was_found_lost_leaves_whatever_is_in_flight() {
        let mut inflate = Inflate::begin(3, 1000, 2);
        assert_eq!(inflate.window(5000, 9000, 1000), 10_000);
        inflate.on_sent();
        assert_eq!(inflate.window(5000, 10_000, 1000), 8000);
        inflate.on_partial_ack(1000, 1000);
        assert_eq!(inflate.window(5000, 9000, 1000), 10_000);
    }

    #[test]
    fn two_segments_leave_for_an_ack() {
        let mut inflate = Inflate::begin(3, 1000, 2);
        inflate.on_sent();
        assert!(inflate.may_send());
        inflate.on_sent();
        assert!(!inflate.may_send());
        inflate.on_dup_ack(1000);
        assert!(inflate.may_send());
    }

    const MSS: u64 = 1000;

    /// Twenty segments in flight, one lost, ssthresh at half: ACKs come for the other nineteen.
    #[test]
    fn half_of_what_arrives_leaves_while_the_pipe_is_above_ssthresh() {
        let (ssthresh, mut pipe, mut sent) = (10 * MSS, 19 * MSS, 0);
        let mut prr = Prr::begin(20 * MSS);
        for _ in 0..19 {
            pipe -= MSS;
            let allowed = prr.on_ack(MSS, Safety::Doubtful, pipe, ssthresh, MSS);
            while pipe + MSS <= allowed {
                pipe += MSS;
                sent += 1;
                prr.on_sent(MSS);
            }
        }
        assert_eq!(pipe, 10 * MSS);
        assert_eq!(sent, 10);
    }

    /// RFC 9937 §6.2 takes the CEIL. Here seven of twenty octets in flight are to stay.
    #[test]
    fn a_part_of_an_octet_that_may_leave_counts_as_a_whole_one() {
        let mut prr = Prr::begin(20);
        let left = (1..=10).map(|_| {
            let octets = prr.on_ack(1, Safety::Doubtful, 15, 7, 1) - 15;
            prr.on_sent(octets);
            octets
        });
        assert_eq!(left.collect::<Vec<_>>(), [1, 0, 1, 0, 0, 1, 0, 0, 1, 0]);
    }

    /// Fifteen of twenty segments are lost (RFC 9937 §8, the second example).
    #[test]
    fn after_a_heavy_loss_what_arrives_leaves_and_one_more_while_all_goes_well() {
        for (safety, each) in [(Safety::Doubtful, MSS), (Safety::Safe, 2 * MSS)] {
            let (ssthresh, mut pipe) = (10 * MSS, 5 * MSS);
            let mut prr = Prr::begin(20 * MSS);
            for _ in 0..3 {
                pipe -= MSS;
                let allowed = prr.on_ack(MSS, safety, pipe, ssthresh, MSS);
                assert_eq!(allowed - pipe, each, "{safety:?}");
                prr.on_sent(allowed - pipe);
                pipe = allowed;
            }
        }
    }

    #[test]
    fn never_more_than_ssthresh_and_the_first_segment_at_once() {
        let mut prr = Prr::begin(20 * MSS);
        assert_eq!(prr.on_ack(0, Safety::Doubtful, 15 * MSS, 10 * MSS, MSS), 16 * MSS);
        prr.on_sent(MSS);
        assert_eq!(prr.on_ack(9 * MSS, Safety::Safe, 9 * MSS, 10 * MSS, MSS), 10 * MSS);
        assert_eq!(prr.undelivered(), 11 * MSS);
    }
}
