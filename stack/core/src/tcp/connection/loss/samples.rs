//! Round trips: which of them the RTO is made of, and which the agents hear.

use std::time::Duration;

use super::Loss;
use crate::agent::{Path, Rtt};
use crate::tcp::connection::acks::micros;
use crate::tcp::cx::Cx;
use crate::tcp::recovery::Phase;
use crate::tcp::scoreboard::Delivered;
use crate::trace::TraceKind;
use crate::{Instant, Moment, Seq};

impl Loss {
    /// New data up to `end` has left, and is timed unless other data is.
    pub(in crate::tcp::connection) fn time(&mut self, now: Instant, end: Seq) {
        if self.timed_at == Moment::NEVER {
            (self.timed_end, self.timed_at) = (end, Moment::at(now));
        }
    }

    /// What is sent again measures nothing.
    pub(in crate::tcp::connection) fn forget_timed(&mut self) {
        self.timed_at = Moment::NEVER;
    }

    /// The one timed segment is acknowledged.
    fn take_timed(&mut self, ack: Seq) -> Option<Instant> {
        if ack < self.timed_end {
            return None;
        }
        std::mem::replace(&mut self.timed_at, Moment::NEVER).get()
    }

    /// RTO hears of the segment that the ACK waited for, holds and all; agents hear of the newest, which tells the
    /// path. An ACK that covers what was sent again for a loss tells nothing (Karn, RFC 6298 §3); one that covers a
    /// tail probe does, or else a receiver that holds its ACKs would be probed each time. After a needless timeout the
    /// RTO hears of new data first. `age` is that of our timestamp that came back, in milliseconds.
    pub(in crate::tcp::connection) fn take_samples(
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

    /// `of_path`: a sample that leaves out what the peer waited, where there is one.
    pub(in crate::tcp::connection) fn take_rtt(
        &mut self,
        cx: &mut Cx<'_>,
        sample: Duration,
        of_path: Option<Duration>,
        path: &mut Path,
    ) {
        self.rtt.on_sample(cx.now, sample);
        let min = [of_path, path.rtt.min, Some(sample)].into_iter().flatten().min();
        path.rtt = Rtt { min, latest: of_path.or(Some(sample)), ..self.rtt.as_path_rtt() };
        cx.trace(TraceKind::Rtt {
            sample_us: micros(sample),
            srtt_us: micros(self.rtt.smoothed().unwrap_or_default()),
            rto_us: micros(self.rtt.rto()),
        });
    }

    /// RFC 4015: the RTO stays doubled until new data measures the path, then is at least what that sample asks for.
    /// A receiver that waits for more than may be sent would else be timed out for every ACK.
    pub(super) fn learn_from_needless_timeout(&mut self) {
        if self.recovery.undo().is_none_or(|undo| !undo.has_timed_out()) {
            return;
        }
        self.recovery.was_delayed = true;
        self.rtt.on_needless_timeout();
        if self.rto_held > 0 && self.rtt.backoff() == 0 {
            // Held as it was, there would never be a sample.
            self.rtt.on_timeout();
        }
    }

    /// After a timeout. Agents may have so many leave the RTO as it is.
    pub(in crate::tcp::connection) fn back_off(&mut self) {
        if self.recovery.timeouts > self.rto_held.into() {
            self.rtt.on_timeout();
        }
    }

    /// After the timeout of a SYN: before a path is known nothing excuses to ask it as often (RFC 6298 §5.5).
    pub(in crate::tcp::connection) fn back_off_syn(&mut self) {
        self.rtt.on_timeout();
    }

    /// The handshake is over. Answers how many of its timers ran out. A SYN that timed out leaves three seconds to wait
    /// for the first ACK (RFC 6298 §5.7).
    pub(in crate::tcp::connection) fn take_syn_timeouts(&mut self) -> u32 {
        let nth = std::mem::take(&mut self.recovery.timeouts);
        if nth > 0 {
            self.rtt.after_syn_timeout();
        }
        nth
    }
}

/// The oldest segment that an ACK covers was what it waited for, unless an earlier ACK was lost: the echo tells
/// (RFC 7323 §4.1), as exactly as its clock ticks.
fn waited_for((newest, oldest): (Duration, Duration), age: Option<u32>) -> Duration {
    let Some(age) = age else { return oldest };
    oldest.min(Duration::from_millis(u64::from(age) + 1)).max(newest)
}
