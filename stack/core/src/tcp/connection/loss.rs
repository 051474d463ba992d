//! Loss: the segments in flight, the losses among them, and the RTO.
//!
//! This part books each segment that leaves and each that the peer reports. It knows no bytes, no window of the peer
//! and no agent. Its callers pass the state of other parts as [`Space`], and read its fields. It changes them itself,
//! or in its submodules: `detection` finds losses, `denial` takes them back, `samples` measures round trips.
//!
//! The scoreboard's invariants are S1 to S3 (`tcp/scoreboard.rs`). The connection checks C1, which joins the scoreboard
//! to the sent numbers.

mod denial;
mod detection;
mod samples;

use std::time::Duration;

use super::acks::{AckNews, Before};
use crate::agent::{Count, FastEnd, Path, Recovered, Tunables};
use crate::tcp::config::RecoveryStyle;
use crate::tcp::recovery::{Frto, Gauge, Inflate, Phase, Prr, Recovery};
use crate::tcp::rtt::RttEstimator;
use crate::tcp::scoreboard::{Delivered, Scoreboard, SegmentState};
use crate::tcp::timers::{Timer, Timers};
use crate::wire::TcpView;
use crate::{Instant, Moment, Seq};

/// The wait for a tail probe without any RTT sample (RFC 8985 §7.2).
const PROBE_WITHOUT_RTT: Duration = Duration::from_secs(1);
/// The extra wait for the probe of a lone segment, since the peer may delay its ACK (RFC 8985 §7.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Loss {
    pub(super) board: Scoreboard,
    /// The highest number that a SACK block ever reported above `una`.
    highest_sacked: Option<Seq>,
    pub(super) recovery: Recovery,
    pub(super) rtt: RttEstimator,
    /// The end and the departure of the timed segment. Only one segment at a time is timed where timestamps of segments
    /// do not count (`RttMeasure::OneTimed`).
    timed_end: Seq,
    timed_at: Moment,
    /// Duplicate ACKs that show a loss. A sender agent may choose it.
    dup_threshold: u8,
    /// Timeouts in a row that leave the RTO as it is. A sender agent may choose it.
    rto_held: u8,
    /// The end of a fast recovery without SACK. A sender agent may choose it.
    fast_end: FastEnd,
}

/// The state of other parts that this part may know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    pub(super) una: Seq,
    pub(super) nxt: Seq,
    /// Payload of a full segment.
    pub(super) mss: u32,
    pub(super) has_sack: bool,
    /// True if losses are found by time (RFC 8985).
    pub(super) uses_rack: bool,
    /// The peer tells an agent the number of its duplicate ACKs.
    pub(super) peer_counts: bool,
}

impl Loss {
    pub(super) fn new(iss: Seq, rtt: RttEstimator, tunables: &Tunables) -> Loss {
        Loss {
            board: Scoreboard::default(),
            highest_sacked: None,
            recovery: Recovery::new(iss),
            rtt,
            timed_end: iss,
            timed_at: Moment::NEVER,
            dup_threshold: tunables.dup_threshold,
            rto_held: tunables.rto_held,
            fast_end: tunables.fast_end,
        }
    }

    /// RFC 6675's pipe; without SACK, duplicate ACKs stand for segments that have left the network.
    pub(super) fn flight(&self) -> Count {
        if self.recovery.assumed_arrived > 0 { self.flight_without_assumed() } else { self.board.flight() }
    }

    #[cold]
    fn flight_without_assumed(&self) -> Count {
        let mut flight = self.board.flight();
        let assumed = self.recovery.assumed_arrived.min(flight.segments);
        // Segments are whole, but the last may be short: an average keeps bytes and segments in step.
        flight.bytes -= flight.bytes * u64::from(assumed) / u64::from(flight.segments.max(1));
        flight.segments -= assumed;
        flight
    }

    pub(super) fn before(&self) -> Before {
        let (flight, lost, sacked) = (self.board.flight(), self.board.lost(), self.board.sacked());
        let outstanding = Count {
            segments: flight.segments + lost.segments + sacked.segments,
            bytes: flight.bytes + lost.bytes + sacked.bytes,
        };
        Before { pipe: self.flight(), outstanding }
    }

    /// Books new data that has left as `segments` of `each` bytes; the last one may be shorter. Each may be lost alone.
    /// `end` is beyond the data, where a FIN stands.
    pub(super) fn book_new(
        &mut self,
        now: Instant,
        (seq, end): (Seq, Seq),
        (segments, each): (u32, u32),
        fin: bool,
    ) {
        let mut last = seq;
        if segments > 1 {
            let before_last = segments - 1;
            self.board.push_alike(seq, each, before_last, now);
            last += before_last * each;
        }
        self.board.push(last, end.bytes_since(last) + u32::from(fin), fin, now);
    }

    /// Books that the segment at this place has left again. Returns its number.
    pub(super) fn book_again(&mut self, now: Instant, index: usize, una: Seq, ts: u32) -> Seq {
        let seq = self.board.get(index).seq;
        self.board.resent(index, now);
        if let Some(undo) = self.recovery.undo() {
            undo.on_resent(seq, una, ts);
        }
        seq
    }

    /// Counts new data: it may have contained one of F-RTO's two new segments.
    pub(super) fn new_data_left(&mut self) {
        if let Frto::SecondAck { new_left } = &mut self.recovery.frto {
            *new_left = new_left.saturating_sub(1);
        }
    }

    /// Counts everything that left, for fast recovery.
    pub(super) fn count_left(&mut self, bytes: u32) {
        match self.recovery.gauge_mut() {
            None => {}
            Some(Gauge::Prr(prr)) => prr.on_sent(u64::from(bytes)),
            Some(Gauge::Inflate(inflate)) => inflate.on_sent(),
        }
    }

    /// Takes an ACK's number and SACK blocks, and adds the newly delivered segments. Returns the D-SACK's range (RFC
    /// 2883 §4). `space` is the state before the ACK.
    pub(super) fn take_report(
        &mut self,
        segment: &TcpView<'_>,
        space: Space,
        delivered: &mut Delivered,
    ) -> Option<(Seq, Seq)> {
        let highest_sacked = self.highest_sacked;
        self.recovery.on_ack_of(space.una);
        let has_blocks = space.has_sack && !segment.options.sack.is_empty();
        let dsack = if has_blocks { self.take_sacks(segment, space, delivered) } else { None };
        if segment.ack.bytes_since(space.una) > 0 {
            self.board.ack(segment.ack, highest_sacked, delivered);
        }
        dsack
    }

    /// Marks the ranges of SACK blocks. Returns the first block if it is a D-SACK.
    #[inline(never)]
    fn take_sacks(
        &mut self,
        segment: &TcpView<'_>,
        space: Space,
        delivered: &mut Delivered,
    ) -> Option<(Seq, Seq)> {
        let blocks = &segment.options.sack;
        let dsack = match blocks.as_slice() {
            [first, ..] if first.right <= segment.ack => Some(first),
            [first, second, ..] if second.left <= first.left && first.right <= second.right => Some(first),
            _ => None,
        };
        // A segment is out of order if an earlier ACK already reported a higher one.
        let highest_before = self.highest_sacked;
        for block in blocks.iter().skip(usize::from(dsack.is_some())) {
            let is_sane = block.left < block.right && segment.ack < block.right && block.right <= space.nxt;
            if is_sane && space.una <= block.left {
                self.board.sack(block.left, block.right, highest_before, delivered);
                let highest = self.highest_sacked.map_or(block.right, |highest| highest.max(block.right));
                self.highest_sacked = Some(highest);
            }
        }
        dsack.map(|block| (block.left, block.right))
    }

    /// Forgets what lies below `una`.
    pub(super) fn passed(&mut self, una: Seq) {
        self.recovery.passed(una);
        self.highest_sacked = self.highest_sacked.filter(|highest| una < *highest);
    }

    /// Begins fast recovery. PRR must not wait for bytes that were SACKed before, since they are not delivered again
    /// (RFC 9937 §6.1).
    pub(super) fn begin_fast(&mut self, before: Before, style: RecoveryStyle, space: Space) {
        let recovery = &mut self.recovery;
        recovery.point = space.nxt;
        recovery.tail_probe = None;
        recovery.partial_acks = 0;
        let gauge = match style {
            RecoveryStyle::Prr => Gauge::Prr(Prr::begin(before.pipe.bytes)),
            RecoveryStyle::Inflate { per_ack } => {
                recovery.assumed_arrived = 0;
                Gauge::Inflate(Inflate::begin(recovery.dup_acks, u64::from(space.mss), per_ack))
            }
        };
        recovery.begin_fast(gauge);
    }

    /// Ends recovery. Returns the phase that it was in.
    pub(super) fn end(&mut self, end: Recovered, nxt: Seq) -> Phase {
        let was = self.recovery.phase;
        self.recovery.phase = Phase::Open;
        self.recovery.assumed_arrived = 0;
        self.recovery.dup_acks = 0;
        self.recovery.timeouts = 0;
        self.recovery.frto = Frto::Off;
        if let Some(undo) = self.recovery.undo() {
            undo.until = Some(nxt);
            undo.is_open &= end != Recovered::Undone;
        }
        if end == Recovered::Undone {
            self.board.unmark_lost();
            self.learn_from_needless_timeout();
        }
        if was == Phase::Fast {
            self.recovery.rack.on_recovered(end);
        }
        was
    }

    /// Marks everything in flight as lost. F-RTO may check this.
    pub(super) fn lose_all(&mut self, nth: u32, nxt: Seq, may_use_frto: bool) {
        // The peer has dropped a first segment that is SACKed but not acknowledged (RFC 2018 §8).
        if self.board.front().is_some_and(|front| front.state == SegmentState::Sacked) {
            self.board.forget_sacks();
            self.highest_sacked = None;
        }
        self.board.mark_all_lost();
        let may_be_spurious = nth == 1 && self.recovery.phase == Phase::Open;
        let recovery = &mut self.recovery;
        recovery.frto = if may_be_spurious && may_use_frto { Frto::FirstAck } else { Frto::Off };
        // Within a fast recovery, the first retransmission that counts is that recovery's.
        recovery.undo_timeout(nth == 1 && recovery.phase != Phase::Fast);
        recovery.phase = Phase::AfterTimeout;
        recovery.point = nxt;
        recovery.dup_acks = 0;
        recovery.assumed_arrived = 0;
        recovery.tail_probe = None;
        self.forget_timed();
    }

    /// Grants an agent's request for a fast retransmit of the first segment, once a window.
    pub(super) fn grant(&mut self, space: Space) -> bool {
        let is_new_window = self.recovery.asked_at.is_none_or(|at| at <= space.una);
        if !is_new_window || self.recovery.phase != Phase::Open {
            return false;
        }
        self.recovery.asked_at = Some(space.nxt);
        self.board.mark_first_lost();
        true
    }

    /// Returns whether an ACK restarts the timer. Without SACK a recovery repairs one hole a round trip, and only its
    /// first partial ACK restarts the timer. Thus slow start ends a long one ("impatient", RFC 6582 §3.2 and §4).
    pub(super) fn ack_restarts_timer(&self, has_sack: bool) -> bool {
        has_sack || self.recovery.phase != Phase::Fast || self.recovery.partial_acks == 1
    }

    /// Returns whether a tail may be lost unseen: outside of recovery, without SACKed segments or a tail probe in
    /// flight.
    fn may_lose_tail(&self) -> bool {
        self.recovery.phase == Phase::Open
            && self.recovery.tail_probe.is_none()
            && self.board.sacked().segments == 0
            && !self.board.is_empty()
    }

    /// Arms the tail loss probe: later than an ACK could take, earlier than the RTO.
    pub(super) fn arm_tail_probe(&self, now: Instant, uses_rack: bool, path: &Path, timers: &mut Timers) {
        if !uses_rack || !self.may_lose_tail() {
            timers.disarm(Timer::TailProbe);
            return;
        }
        let mut wait = path.rtt.smoothed.map_or(PROBE_WITHOUT_RTT, |srtt| srtt + srtt);
        if self.board.flight().segments <= 1 {
            wait += MAX_ACK_DELAY;
        }
        let rto_at = timers.deadline(Timer::Retransmit).unwrap_or_else(|| self.rtt.expiry(now));
        timers.arm(Timer::TailProbe, (now + wait).min(rto_at));
    }

    /// The bytes of our payload that the peer is known to have.
    pub(super) fn arrived(&self, bytes_acked: u64) -> u64 {
        bytes_acked + self.board.sacked().bytes
    }

    /// RFC 8985 §7.4: a probe that repaired a loss hides it, so the window must shrink as if the loss had been seen.
    /// The ACK that covers the probe decides nothing: it may answer the first copy, with the D-SACK still to come.
    pub(super) fn resolve_tail_probe(&mut self, news: &AckNews, una: Seq) -> bool {
        let Some(probe) = self.recovery.tail_probe.filter(|probe| probe.end <= una) else { return false };
        let came_twice = news.dsack.is_some() || (news.advanced == 0 && news.says_only_ack);
        let is_more_acked = probe.end < una;
        if probe.was_resent && !came_twice && !is_more_acked {
            return false;
        }
        self.recovery.tail_probe = None;
        probe.was_resent && !came_twice && self.recovery.phase == Phase::Open
    }

    /// Frees memory that is kept for future segments.
    pub(super) fn relax(&mut self) {
        self.board.relax();
        self.recovery.relax();
    }

    pub(super) fn allocated(&self) -> usize {
        self.board.allocated() + self.recovery.allocated()
    }

    #[cfg(test)]
    pub(super) fn recovery_mut(&mut self) -> &mut Recovery {
        &mut self.recovery
    }
}
