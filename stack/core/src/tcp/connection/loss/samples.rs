//! Round-trip samples for the RTO and for the agents.

use std::time::Duration;

use super::Loss;
use crate::agent::{Path, Rtt};
use crate::tcp::cx::Cx;
use crate::tcp::recovery::Phase;
use crate::tcp::scoreboard::Delivered;
use crate::time::micros_u32;
use crate::trace::TraceKind;
use crate::{Instant, Moment, Seq};

impl Loss {
    /// Times new data up to `end`, unless other data is being timed.
    pub(crate) fn time(&mut self, now: Instant, end: Seq) {
        if self.timed_at == Moment::NEVER {
            (self.timed_end, self.timed_at) = (end, Moment::at(now));
        }
    }

    /// Stops the timing: retransmitted data measures nothing.
    pub(crate) fn forget_timed(&mut self) {
        self.timed_at = Moment::NEVER;
    }

    /// Returns when the timed segment left, if this ACK covers it.
    fn take_timed(&mut self, ack: Seq) -> Option<Instant> {
        if ack < self.timed_end {
            return None;
        }
        std::mem::replace(&mut self.timed_at, Moment::NEVER).get()
    }

    /// Takes the samples of an ACK. The RTO gets the segment that the ACK waited for, with all waiting; agents get the
    /// newest, which measures the path. An ACK of a retransmission gives no sample (Karn, RFC 6298 §3). An ACK of a
    /// tail probe does: otherwise each wait of a slow receiver would cause a probe. After a needless timeout the RTO
    /// starts with new data. `age` is the age of our echoed timestamp, in milliseconds.
    pub(crate) fn take_samples(
        &mut self,
        cx: &mut Cx<'_>,
        delivered: &Delivered,
        (ack, age): (Seq, Option<u32>),
        is_one_timed: bool,
        path: &mut Path,
    ) -> Option<Duration> {
        let is_ambiguous = delivered.covers_resent && self.recovery.phase != Phase::Open;
        let newest = delivered.last_sent.filter(|_| !is_ambiguous);
        let newest = newest.map(|sent_at| cx.now.since(sent_at));
        let for_rto = if is_one_timed {
            self.take_timed(ack).map(|sent_at| cx.now.since(sent_at))
        } else {
            let oldest = delivered.first_acked.map(|sent_at| cx.now.since(sent_at));
            newest.map(|newest| oldest.map_or(newest, |oldest| waited_for((newest, oldest), age)))
        };
        if let Some(sample) = for_rto.filter(|_| !self.recovery.was_delayed) {
            self.take_rtt(cx, sample, newest, path);
        }
        newest
    }

    /// Takes a sample. `of_path` is a sample without the peer's waiting time, if there is one.
    pub(crate) fn take_rtt(
        &mut self,
        cx: &mut Cx<'_>,
        sample: Duration,
        of_path: Option<Duration>,
        path: &mut Path,
    ) {
        self.rtt.on_sample(cx.now, sample);
        let min = Some(path.rtt.min.unwrap_or(sample).min(of_path.unwrap_or(sample)).min(sample));
        path.rtt = Rtt { min, latest: of_path.or(Some(sample)), ..self.rtt.as_path_rtt() };
        cx.trace(TraceKind::Rtt {
            sample_us: micros_u32(sample),
            srtt_us: micros_u32(self.rtt.smoothed().unwrap_or_default()),
            rto_us: micros_u32(self.rtt.rto()),
        });
    }

    /// RFC 4015: the RTO stays doubled until new data measures the path. Then it is at least what the sample demands.
    /// Otherwise a receiver that waits for more than the sender may send would cause a timeout for every ACK.
    pub(super) fn learn_from_needless_timeout(&mut self) {
        if self.recovery.undo().is_none_or(|undo| !undo.has_timed_out) {
            return;
        }
        self.recovery.was_delayed = true;
        self.rtt.on_needless_timeout();
        if self.rto_held > 0 && self.rtt.backoff == 0 {
            // If it were held, there would never be a sample.
            self.rtt.on_timeout();
        }
    }

    /// Backs off after a timeout. Agents may exempt the first few.
    pub(crate) fn back_off(&mut self) {
        if self.recovery.timeouts > self.rto_held.into() {
            self.rtt.on_timeout();
        }
    }

    /// Ends the handshake. Returns how many of its timers ran out. After a SYN timeout, the first ACK has three seconds
    /// (RFC 6298 §5.7).
    pub(crate) fn take_syn_timeouts(&mut self) -> u32 {
        let nth = std::mem::take(&mut self.recovery.timeouts);
        if nth > 0 {
            self.rtt.after_syn_timeout();
        }
        nth
    }
}

/// The sample for the RTO. An ACK usually waited for the oldest segment that it covers. If an earlier ACK was lost, the
/// echo gives a better bound (RFC 7323 §4.1), as exact as its clock.
fn waited_for((newest, oldest): (Duration, Duration), age: Option<u32>) -> Duration {
    let Some(age) = age else { return oldest };
    oldest.min(Duration::from_millis(u64::from(age) + 1)).max(newest)
}
