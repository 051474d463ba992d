//! What a flow's sender is like: by its SYN, and by what it did after the last fade.

use std::time::Duration;

use hopwise_core::agent::{Dialect, FlowView, Passing};
use hopwise_core::{Instant, Seq};

use crate::base_station::plan::Sender;

/// Round trips in which a sender shows whether it took its timeouts back.
const ROUND_TRIPS: u32 = 4;
/// A smaller window grows back too soon to tell.
const LEAST_WINDOW_SEGMENTS: u32 = 16;

#[derive(Debug)]
pub(super) struct Learnt {
    /// As the spec says; else it is found out.
    given: Option<Sender>,
    takes_back: Option<bool>,
    /// What had been sent and what was in flight when the link went.
    sent: Option<Seq>,
    flight_bytes: u32,
    /// Segments that came again while it was away.
    resent: u32,
    watching: Option<Watch>,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    until: Instant,
    data_end: Seq,
}

impl Learnt {
    pub(super) fn new(given: Option<Sender>) -> Learnt {
        Learnt { given, takes_back: None, sent: None, flight_bytes: 0, resent: 0, watching: None }
    }

    pub(super) fn sender(&self, view: &FlowView) -> Sender {
        match (self.given, self.takes_back, view.dialect) {
            (Some(given), ..) => given,
            (None, Some(true), _) | (None, None, Dialect::Linux) => Sender::Linux,
            (None, None, Dialect::Bsd) => Sender::FreeBsd,
            // No floor is assumed: many who have no other name wait for less than the second of RFC 6298.
            (None, Some(false), _) | (None, None, Dialect::Other) => Sender::Textbook,
        }
    }

    pub(super) fn begin_fade(&mut self, view: &FlowView) {
        self.watching = None;
        (self.sent, self.flight_bytes, self.resent) = (view.data_end, view.flight_bytes(), 0);
    }

    pub(super) fn see_in_fade(&mut self, passing: &Passing<'_>) {
        if passing.len > 0 && self.sent.is_some_and(|sent| passing.end() <= sent) {
            self.resent += 1;
        }
        self.sent = self.sent.map(|sent| sent.max(passing.end()));
    }

    /// A sender that keeps its window sends it once each round trip; one that has halved it sends half.
    pub(super) fn end_fade(&mut self, now: Instant, view: &FlowView) {
        let is_telling = self.resent > 0 && view.flight_segments() >= LEAST_WINDOW_SEGMENTS;
        if let (true, Some(rtt), Some(data_end)) = (is_telling, view.whole.smoothed, view.data_end) {
            let rtt = rtt.max(Duration::from_millis(1));
            self.flight_bytes = view.flight_bytes();
            self.watching = Some(Watch { until: now + rtt * ROUND_TRIPS, data_end });
        }
    }

    pub(super) fn on_deadline(&mut self, now: Instant, view: &FlowView) {
        let Some(watch) = self.watching.filter(|watch| watch.until <= now) else { return };
        self.watching = None;
        let sent = view.data_end.map_or(0, |end| end.bytes_since(watch.data_end));
        self.takes_back = Some(sent >= self.flight_bytes.saturating_mul(2));
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.watching.map(|watch| watch.until)
    }

    pub(super) fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("resent_segments", self.resent.into());
        sink("takes_back", self.takes_back.map_or(2, u64::from));
    }
}
