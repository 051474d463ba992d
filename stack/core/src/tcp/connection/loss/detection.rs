//! Finds lost segments by ACKs and by time. Until they are repaired, recovery bounds the bytes in flight.

use super::{Loss, Space};
use crate::Instant;
use crate::agent::{DupAck, FastEnd, Path, Recovered};
use crate::narrow::low_u32;
use crate::tcp::connection::acks::AckNews;
use crate::tcp::connection::in_32_bits;
use crate::tcp::cx::Cx;
use crate::tcp::recovery::{Certainty, Gauge, Phase, Safety};
use crate::tcp::timers::{Timer, Timers};
use crate::trace::{LostBy, TraceKind};

impl Loss {
    /// Returns whether an ACK of new data is one of the many that show nothing: no loss is known or repaired, no probe
    /// is out, and RACK's newest segment tells of none. It is weighed here; the other steps would change nothing.
    #[inline]
    pub(crate) fn passes_calmly(&mut self, news: &AckNews) -> bool {
        let (recovery, board) = (&mut self.recovery, &self.board);
        let is_calm = recovery.phase == Phase::Open
            && recovery.tail_probe.is_none()
            && board.lost().segments == 0
            && board.sacked().segments == 0
            && news.shows_arrival_alone()
            && !recovery.rack.newest.is_some_and(|newest| board.may_show_loss(&newest));
        if is_calm {
            recovery.dup_acks = 0;
            recovery.assumed_arrived = 0;
            recovery.timeouts = 0;
        }
        is_calm
    }

    /// Weighs an ACK of new data. Returns how a recovery ended, if it did.
    pub(crate) fn weigh_advance(
        &mut self,
        cx: &mut Cx<'_>,
        news: &AckNews,
        space: Space,
    ) -> Option<Recovered> {
        if news.advanced == 0 {
            return None;
        }
        let covers_point = self.recovery.point <= space.una;
        match self.recovery.phase {
            Phase::Fast if self.fast_end == FastEnd::NewAck && !space.has_sack => {
                // Reno remembers no point: duplicates count again at once.
                self.recovery.point = space.una - 1;
                Some(Recovered::Full)
            }
            Phase::Fast | Phase::AfterTimeout if covers_point => Some(Recovered::Full),
            Phase::Open | Phase::AfterTimeout => {
                self.recovery.assumed_arrived = 0;
                self.recovery.timeouts = 0;
                None
            }
            Phase::Fast => {
                self.weigh_partial(cx, news, space);
                None
            }
        }
    }

    /// Handles a partial ACK: the segment at its number is lost too (RFC 6582 §3.2).
    fn weigh_partial(&mut self, cx: &mut Cx<'_>, news: &AckNews, space: Space) {
        let segments = news.delivered.acked.segments;
        self.recovery.partial_acks += 1;
        let assumed = self.recovery.assumed_arrived;
        self.recovery.assumed_arrived = assumed.saturating_sub(segments.saturating_sub(1));
        if !space.has_sack && self.board.mark_first_lost() {
            cx.trace(TraceKind::Lost { segments: 1, by: LostBy::PartialAck });
        }
        if let Some(Gauge::Inflate(inflate)) = self.recovery.gauge_mut() {
            inflate.on_partial_ack(news.delivered.acked.bytes, u64::from(space.mss));
        }
        cx.trace(TraceKind::Window {
            allowed: in_32_bits(self.recovery.window),
            flight: low_u32(self.flight().bytes),
        });
    }

    /// Counts a duplicate ACK. Returns the event for the sender agents, if it is one.
    pub(crate) fn weigh_duplicate(
        &mut self,
        now: Instant,
        news: &AckNews,
        space: Space,
        limited_transmit: bool,
    ) -> Option<DupAck> {
        if !news.is_dup {
            return None;
        }
        self.count_duplicate(space, limited_transmit);
        Some(DupAck {
            now,
            seen: self.recovery.dup_acks,
            dup_count: news.dup_count,
            newly_sacked: news.delivered.sacked,
        })
    }

    fn count_duplicate(&mut self, space: Space, limited_transmit: bool) {
        self.recovery.dup_acks += 1;
        match self.recovery.gauge_mut() {
            Some(Gauge::Inflate(inflate)) => inflate.on_dup_ack(u64::from(space.mss)),
            _ if !space.has_sack => self.assume_one_arrived(limited_transmit),
            _ => {}
        }
    }

    /// A duplicate ACK without SACK stands for one segment that left the network. In recovery each counts (as RFC 9937
    /// does), outside of it only the first two (limited transmit, RFC 3042).
    fn assume_one_arrived(&mut self, limited_transmit: bool) {
        let most = self.board.flight().segments.saturating_sub(1);
        let limit = match self.recovery.phase {
            Phase::Open if !limited_transmit => 0,
            Phase::Open => u32::from(self.dup_threshold).saturating_sub(1),
            Phase::AfterTimeout => 0,
            Phase::Fast => u32::MAX,
        };
        if self.recovery.assumed_arrived < most.min(limit) {
            self.recovery.assumed_arrived += 1;
        }
    }

    /// Looks for lost segments by the rule in force: time (RACK), SACKed bytes above, or duplicate ACKs. If the peer
    /// counts those, an agent judges by its count alone. Returns the rule, and whether there are new losses.
    pub(crate) fn detect(
        &mut self,
        cx: &mut Cx<'_>,
        space: Space,
        path: &Path,
        timers: &mut Timers,
    ) -> (LostBy, bool) {
        let (lost_before, sacked) = (self.board.lost().segments, self.board.sacked().segments);
        let (by, found) = if space.uses_rack {
            (LostBy::Rack, self.detect_by_time(cx.now, path, timers))
        } else if space.has_sack {
            (LostBy::Sack, sacked > 0 && self.board.mark_lost_by_sack(self.dup_threshold, space.mss))
        } else {
            // RFC 6582 §3.2 step 1: ignores duplicates that our own retransmissions caused.
            let is_due = self.recovery.phase == Phase::Open && self.recovery.point < space.una;
            let are_enough = !space.peer_counts && self.recovery.dup_acks >= u32::from(self.dup_threshold);
            (LostBy::DupAcks, is_due && are_enough && self.board.mark_first_lost())
        };
        if found {
            let segments = self.board.lost().segments.saturating_sub(lost_before);
            cx.trace(TraceKind::Lost { segments, by });
        }
        (by, found)
    }

    fn detect_by_time(&mut self, now: Instant, path: &Path, timers: &mut Timers) -> bool {
        let enough_sacked = self.board.sacked().segments >= u32::from(self.dup_threshold);
        let certain = if self.recovery.phase != Phase::Open || enough_sacked {
            Certainty::Enough
        } else {
            Certainty::Little
        };
        let rack = &self.recovery.rack;
        let newest = rack.newest.filter(|newest| self.board.may_show_loss(newest));
        let Some(newest) = newest else {
            timers.disarm(Timer::Reorder);
            return false;
        };
        let window = rack.window(certain, path.rtt.min, path.rtt.smoothed);
        let (found, wait) = self.board.mark_lost_by_time(now, &newest, rack.rtt + window);
        match wait {
            Some(wait) => timers.arm(Timer::Reorder, now + wait),
            None => timers.disarm(Timer::Reorder),
        }
        found
    }

    /// Computes how much may be in flight until the next ACK.
    pub(crate) fn gauge(&mut self, news: &AckNews, safety: Safety, space: Space) {
        if self.recovery.phase != Phase::Fast {
            return;
        }
        let delivered = match (space.has_sack, news.is_dup, news.advanced > 0) {
            (true, ..) => news.delivered.bytes(),
            (false, true, _) | (false, _, true) => u64::from(space.mss),
            _ => 0,
        };
        // A segment that delivers nothing, such as the peer's own data, lets nothing leave (packet conservation).
        if delivered > 0 {
            self.regauge(delivered, safety, space);
        }
    }

    pub(crate) fn regauge(&mut self, delivered: u64, safety: Safety, space: Space) {
        let (pipe, mss) = (self.flight().bytes, u64::from(space.mss));
        let ssthresh = self.recovery.ssthresh;
        let Some(gauge) = self.recovery.gauge_mut() else { return };
        self.recovery.window = match gauge {
            Gauge::Prr(prr) => {
                let delivered = if space.has_sack { delivered } else { delivered.min(prr.undelivered()) };
                prr.on_ack(delivered, safety, pipe, ssthresh, mss)
            }
            Gauge::Inflate(inflate) => inflate.window(ssthresh, pipe, mss),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seq;
    use crate::agent::Tunables;
    use crate::tcp::config::{RecoveryStyle, RtoConfig, RttMeasure};
    use crate::tcp::rtt::RttEstimator;

    /// RFC 9937 §6.2: more duplicate ACKs without SACK than segments were in flight are forged.
    #[test]
    fn forged_duplicates_let_no_more_leave_than_was_in_flight() {
        let second = std::time::Duration::from_secs(1);
        let measure = RttMeasure::EveryAck;
        let rtt = RttEstimator::new(&RtoConfig { min: second, max: second, initial: second, measure }, 0);
        let (rto_min, fast_end) = (second, FastEnd::FullAck);
        let tunables = Tunables { dup_threshold: 3, rto_min, rto_factor: 1, rto_held: 0, fast_end };
        let mut loss = Loss::new(Seq(0), rtt, &tunables);
        let (una, nxt) = (Seq(1), Seq(20_001));
        let space = Space { una, nxt, mss: 1000, has_sack: false, uses_rack: false, peer_counts: false };
        loss.book_new(Instant::ZERO, (una, nxt), (20, 1000), false);
        loss.recovery.ssthresh = 10_000;
        loss.begin_fast(loss.before(), RecoveryStyle::Prr, space);
        (0..100).for_each(|_| loss.regauge(1000, Safety::Doubtful, space));
        assert_eq!(loss.recovery.window, 20_000 + 10_000);
    }
}
