//! Delivery-rate samples (§4.1): the bytes that the path delivered while a segment was under way, over the longer of
//! the times that they took to send and to acknowledge.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{Acked, SendView, Sent};

/// The state when a segment left.
#[derive(Clone, Copy, Debug)]
struct SentRecord {
    sent_at: Instant,
    /// The departure of the segment that was the newest delivered one.
    first_sent_at: Instant,
    delivered_at: Instant,
    delivered: u64,
    /// [`SendView::lost_bytes`], which wraps.
    lost: u32,
    in_flight: u64,
    app_limited: bool,
}

/// The news of an ACK about the path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RateSample {
    /// The bytes that this ACK delivered.
    pub(super) newly_acked: u64,
    /// The bytes that were delivered when the segment left.
    pub(super) prior_delivered: u64,
    /// The bytes delivered since then.
    pub(super) delivered: u64,
    /// In bytes per second; 0 if the sample is shorter than the path.
    pub(super) rate: f64,
    /// The bytes in flight when the segment had left.
    pub(super) tx_in_flight: u64,
    /// The bytes found lost since then.
    pub(super) lost: u64,
    pub(super) app_limited: bool,
}

/// The connection's part of the sampler.
#[derive(Debug, Default)]
pub(super) struct RateSampler {
    /// In the order of sending. Those are dropped that no ACK can mean any more.
    records: VecDeque<SentRecord>,
    pub(super) delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Samples of data up to this count are limited by the application.
    limited_until: Option<u64>,
}

impl RateSampler {
    pub(super) fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        if view.flight.bytes <= sent.carried.bytes {
            (self.first_sent_at, self.delivered_at) = (sent.now, sent.now);
        }
        let record = SentRecord {
            sent_at: sent.now,
            first_sent_at: self.first_sent_at,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost: view.lost_bytes,
            in_flight: view.flight.bytes,
            app_limited: self.is_limited(),
        };
        match self.records.back_mut() {
            Some(last) if last.sent_at == sent.now => last.in_flight = record.in_flight,
            _ => self.records.push_back(record),
        }
    }

    /// The sample of an ACK; none if it delivered nothing whose departure is known.
    pub(super) fn on_acked(
        &mut self,
        acked: &Acked,
        view: &SendView<'_>,
        least: Option<Duration>,
    ) -> Option<RateSample> {
        if view.app_limited && view.unsent.bytes == 0 {
            self.mark_limited(acked.flight_before.bytes);
        }
        let newly_acked = acked.newly.bytes + acked.sacked.bytes;
        self.delivered += newly_acked;
        self.delivered_at = acked.now;
        let record = self.find(acked.newest_sent_at?, view)?;
        let is_limited = record.app_limited || view.app_limited;
        self.limited_until = self.limited_until.filter(|until| self.delivered <= *until);
        self.first_sent_at = record.sent_at;
        let took = record.sent_at.since(record.first_sent_at).max(acked.now.since(record.delivered_at));
        let delivered = self.delivered - record.delivered;
        let is_sound = !took.is_zero() && least.is_none_or(|least| took >= least);
        Some(RateSample {
            newly_acked,
            prior_delivered: record.delivered,
            delivered,
            rate: if is_sound { delivered as f64 / took.as_secs_f64() } else { 0.0 },
            tx_in_flight: record.in_flight,
            lost: view.lost_bytes.wrapping_sub(record.lost).into(),
            app_limited: is_limited,
        })
    }

    /// Marks the samples of all data in flight as limited by the application.
    pub(super) fn mark_limited(&mut self, flight_bytes: u64) {
        self.limited_until = Some((self.delivered + flight_bytes).max(1));
    }

    pub(super) fn is_limited(&self) -> bool {
        self.limited_until.is_some()
    }

    /// Finds the record of a departure. Segments that left two round trips before it have been delivered or sent again.
    fn find(&mut self, sent_at: Instant, view: &SendView<'_>) -> Option<SentRecord> {
        let index = self.records.binary_search_by_key(&sent_at, |record| record.sent_at).ok()?;
        let found = self.records[index];
        let kept = 2 * view.path.rtt.smoothed.unwrap_or_default();
        let old = self.records.partition_point(|record| record.sent_at + kept < sent_at);
        self.records.drain(..old.min(index));
        Some(found)
    }
}
