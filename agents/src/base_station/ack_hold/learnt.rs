//! What a flow's sender is like: by its SYN, and by what it did after the last fade.

use std::time::Duration;

use hopwise_core::agent::{Dialect, FlowView, Passing};
use hopwise_core::{Instant, Seq};

use crate::base_station::plan::{Model, Sender, Timer};

/// Round trips in which a sender shows whether it took its timeouts back.
const ROUND_TRIPS: u32 = 4;
/// A smaller window grows back too soon to tell.
const LEAST_WINDOW_SEGMENTS: u32 = 16;

/// A pause of so many round trips is one that the sender makes, and not the path.
const QUIET: f64 = 1.5;

/// What the spec says of the sender; the rest is found out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    pub(super) sender: Option<Sender>,
    pub(super) tlp: Option<bool>,
    pub(super) rack: Option<bool>,
    pub(super) frto: Option<bool>,
}

#[derive(Debug)]
pub(super) struct Learnt {
    given: Given,
    takes_back: Option<bool>,
    /// Whether the first thing after a pause came before the timer.
    probes: Option<bool>,
    /// The last of the fixed end's in this fade; none after its first pause.
    heard_at: Option<Instant>,
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
    pub(super) fn new(given: Given) -> Learnt {
        let (takes_back, probes, heard_at, sent, watching) = (None, None, None, None, None);
        Learnt { given, takes_back, probes, heard_at, sent, flight_bytes: 0, resent: 0, watching }
    }

    /// Nothing that can be seen from here tells RACK, nor F-RTO from timestamps: they are as the sender's kind has
    /// them.
    pub(super) fn model(&self, view: &FlowView) -> Model {
        let Given { tlp, rack, frto, .. } = self.given;
        Model::from(self.sender(view)).but(tlp.or(self.probes), rack, frto)
    }

    fn sender(&self, view: &FlowView) -> Sender {
        match (self.given.sender, self.takes_back, view.dialect) {
            (Some(given), ..) => given,
            (None, Some(true), _) | (None, None, Dialect::Linux) => Sender::Linux,
            (None, None, Dialect::Bsd) => Sender::FreeBsd,
            // No floor is assumed: many who have no other name wait for less than the second of RFC 6298.
            (None, Some(false), _) | (None, None, Dialect::Other) => Sender::Textbook,
        }
    }

    pub(super) fn begin_fade(&mut self, now: Instant, view: &FlowView) {
        (self.watching, self.heard_at) = (None, Some(view.passed_at.unwrap_or(now)));
        (self.sent, self.flight_bytes, self.resent) = (view.data_end, view.flight_bytes(), 0);
    }

    pub(super) fn see_in_fade(&mut self, passing: &Passing<'_>, view: &FlowView) {
        self.time(passing.now, view);
        if passing.len > 0 && self.sent.is_some_and(|sent| passing.end() <= sent) {
            self.resent += 1;
        }
        self.sent = self.sent.map(|sent| sent.max(passing.end()));
    }

    /// The first thing after a pause is a probe or a timeout, and a probe is the sooner: by how much tells them apart.
    fn time(&mut self, now: Instant, view: &FlowView) {
        let (Some(before), Some(rtt)) = (self.heard_at, view.whole.smoothed) else { return };
        let rtt_s = rtt.as_secs_f64().max(0.001);
        let paused_s = now.since(before.max(view.passed_at.unwrap_or(before))).as_secs_f64();
        if paused_s < QUIET * rtt_s {
            self.heard_at = Some(now);
            return;
        }
        self.heard_at = None;
        let model = self.model(view);
        let rttvar_s = view.whole.variance.as_secs_f64();
        let rto_s = Timer::new(model.sender, rtt_s, rttvar_s).rto_s();
        let probe_s = model.probes_after_s(rtt_s);
        if rto_s > QUIET * probe_s {
            self.probes = Some(paused_s < (probe_s + rto_s) / 2.0);
        }
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
        sink("probes", self.probes.map_or(2, u64::from));
    }
}

#[cfg(test)]
mod tests {
    use hopwise_core::agent::{Kind, Rtt, Side};
    use hopwise_core::wire::Flags;

    use super::*;

    /// What is taken for the sender after it has sent at these times of a fade that began at 0.
    fn told(given: Given, times_ms: &[u64]) -> Model {
        let ms = Duration::from_millis;
        let whole = Rtt { smoothed: Some(ms(50)), variance: ms(5), ..Rtt::default() };
        let view = FlowView {
            whole,
            dialect: Dialect::Linux,
            passed_at: Some(Instant::ZERO),
            ..FlowView::default()
        };
        let mut learnt = Learnt::new(given);
        learnt.begin_fade(Instant::from_millis(10), &view);
        for at_ms in times_ms {
            let passing = Passing {
                now: Instant::from_millis(*at_ms),
                from: Side::Fixed,
                seq: Seq(1),
                ack: None,
                len: 1_000,
                flags: Flags::ACK,
                window: 9_000,
                sack: &[],
                ce: false,
                kind: Kind::Data,
            };
            learnt.see_in_fade(&passing, &view);
        }
        learnt.model(&view)
    }

    #[test]
    fn a_probe_is_told_from_a_timeout_by_when_it_comes() {
        // Of an RTT of 50 ms: a probe 100 ms after the last ACK, and a timer of 250.
        let nothing = Given::default();
        assert!(told(nothing, &[20, 60, 160, 300]).tlp);
        assert!(!told(nothing, &[20, 60, 310, 810]).tlp);
        assert!(told(nothing, &[20, 60]).tlp, "its kind has them");
        assert!(!told(Given { tlp: Some(false), ..nothing }, &[20, 60, 160]).tlp, "the spec stands over all");
        // A timer that is no longer than a probe takes tells nothing.
        let textbook = Given { sender: Some(Sender::Textbook), ..nothing };
        assert!(!told(textbook, &[20, 60, 160]).tlp);
    }
}
