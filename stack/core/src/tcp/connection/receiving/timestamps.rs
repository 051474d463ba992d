//! The peer's timestamps: they show old segments, and one of them is echoed (RFC 7323).

use std::time::Duration;

use super::Receiving;
use crate::Instant;
use crate::agent::Path;
use crate::tcp::connection::ConnectionStats;
use crate::tcp::connection::ingress::{Answer, Arrived, Step};
use crate::tcp::connection::opening::{Negotiated, Opening};
use crate::trace::DropReason;
use crate::wire::{Flags, TcpView};

/// After so long a silence an old timestamp means nothing: its clock may have wrapped (RFC 7323 §5.5).
const PAWS_IDLE: Duration = Duration::from_secs(24 * 24 * 3600);

/// Ticks that a timestamp may be behind. Two segments that leave around a tick may overtake each other. No clock may
/// tick so often that numbers wrap within one tick (RFC 7323 §5.4).
const PAWS_GRACE: i32 = 1;

/// The slowest clock that timestamps may have (RFC 7323 §5.4).
const SLOWEST_TICK: Duration = Duration::from_secs(1);

impl Receiving {
    /// PAWS (RFC 7323 §5): returns whether the segment was sent before one that has already come.
    fn is_old_timestamp(&self, now: Instant, value: u32) -> bool {
        let is_old = (value.wrapping_sub(self.ts_recent) as i32) < -PAWS_GRACE;
        is_old && !self.is_timestamp_stale(now)
    }

    /// Returns the step's result if an old timestamp, or a missing one, stops the segment.
    pub(crate) fn check_paws(
        &mut self,
        now: Instant,
        arrived: &Arrived<'_>,
        agreed: &Negotiated,
        stats: &mut ConnectionStats,
    ) -> Option<Step> {
        let segment = arrived.segment;
        if !agreed.timestamps || segment.flags.contains(Flags::RST) {
            return None;
        }
        let Some(timestamps) = segment.options.timestamps else {
            // RFC 7323 §3.2: once agreed, they are on every segment. A SYN belongs to another connection and gets an
            // answer.
            let is_syn = segment.flags.contains(Flags::SYN);
            return (!is_syn).then_some(Step::Drop(DropReason::Paws));
        };
        if self.is_old_timestamp(now, timestamps.value) {
            self.note_old_duplicate(arrived, agreed, stats);
            let answer = if segment.payload.is_empty() { Answer::Limited } else { Answer::Always };
            return Some(Step::Answer(DropReason::Paws, answer));
        }
        None
    }

    /// An end that only receives measures round trips by the echoes of its timestamps on data. Each sample contains the
    /// peer's waiting time, so only the minimum counts for the path. The receiver agent gets each sample while nothing
    /// of our own, which would measure better, is in flight.
    #[inline]
    pub(crate) fn hear_echo(
        &mut self,
        now: Instant,
        segment: &TcpView<'_>,
        opening: &Opening,
        path: &mut Path,
    ) -> Option<Duration> {
        let echo = self.new_echo(segment, &opening.agreed)?;
        let rtt = opening.echoed_rtt(now, echo);
        if let Some(rtt) = rtt {
            path.rtt.min = Some(path.rtt.min.map_or(rtt, |min| min.min(rtt)));
        }
        rtt
    }

    /// Returns whether the segment has a timestamp that is no older than the last, or needs none.
    #[inline]
    pub(crate) fn is_timestamp_in_order(&self, segment: &TcpView<'_>, agreed: &Negotiated) -> bool {
        match segment.options.timestamps {
            Some(timestamps) => (timestamps.value.wrapping_sub(self.ts_recent) as i32) >= 0,
            None => !agreed.timestamps,
        }
    }

    pub(crate) fn take_timestamp(&mut self, now: Instant, segment: &TcpView<'_>, agreed: &Negotiated) {
        if segment.seq <= self.last_ack_decided
            && let Some(value) = self.timestamp_of(now, segment, agreed)
        {
            self.ts_recent = value;
            self.ts_recent_at = now;
        }
    }

    /// The segment's timestamp, if TS.Recent may take it.
    pub(super) fn timestamp_of(
        &self,
        now: Instant,
        segment: &TcpView<'_>,
        agreed: &Negotiated,
    ) -> Option<u32> {
        let value = segment.options.timestamps.filter(|_| agreed.timestamps)?.value;
        let is_newer = (value.wrapping_sub(self.ts_recent) as i32) >= 0;
        (is_newer || self.is_timestamp_stale(now)).then_some(value)
    }

    fn is_timestamp_stale(&self, now: Instant) -> bool {
        now.since(self.ts_recent_at) > PAWS_IDLE
    }

    /// Returns whether old segments of the previous connection cannot pass for new ones. Timestamps or higher numbers
    /// tell them apart (RFC 7323 appendix B.2, RFC 6191 §2).
    #[cold]
    pub(crate) fn is_told_from_before(&self, syn: &TcpView<'_>) -> bool {
        syn.options.timestamps.is_some() || self.irs < syn.seq
    }

    /// Returns whether a SYN in TIME-WAIT cannot be an old duplicate (RFC 6191 §2).
    #[cold]
    pub(crate) fn is_surely_new(&self, syn: &TcpView<'_>, agreed: &Negotiated) -> bool {
        match syn.options.timestamps {
            Some(timestamps) if agreed.timestamps => {
                let ahead = timestamps.value.wrapping_sub(self.ts_recent) as i32;
                ahead > 0 || (ahead == 0 && self.nxt < syn.seq)
            }
            _ => self.nxt < syn.seq,
        }
    }

    /// Returns whether both clocks have ticked since the last segment. All timestamps of a new connection are then
    /// newer (RFC 7323 appendix B.2).
    #[cold]
    pub(crate) fn has_ticked_since(&self, now: Instant) -> bool {
        now.since(self.ts_recent_at) > SLOWEST_TICK
    }

    /// The echo of our timestamp on this segment, if it is a new one. A repeated echo measures too much.
    #[inline]
    fn new_echo(&mut self, segment: &TcpView<'_>, agreed: &Negotiated) -> Option<u32> {
        let echo = segment.options.timestamps.filter(|_| agreed.timestamps)?.echo;
        if echo == self.last_echo {
            return None;
        }
        self.last_echo = echo;
        Some(echo)
    }
}
