//! The properties of a flow's sender, from its SYN and from its behaviour in and after the last fade.

use std::time::Duration;

use hopwise_core::agent::{Dialect, FlowView, Passing};
use hopwise_core::{Instant, Seq};

use crate::base_station::plan::{Model, Sender, Timer};

/// The number of round trips in which a sender shows whether it took its timeouts back.
const ROUND_TRIPS: u32 = 4;
/// A smaller window grows back too soon to show anything.
const LEAST_WINDOW_SEGMENTS: u32 = 16;

/// A pause of this many round trips comes from the sender, and not from the path.
const QUIET: f64 = 1.5;

/// The properties that the spec gives; the rest is found out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SenderTraits {
    pub(super) sender: Option<Sender>,
    pub(super) tlp: Option<bool>,
    pub(super) rack: Option<bool>,
    pub(super) frto: Option<bool>,
}

#[derive(Debug)]
pub(super) struct Learnt {
    given: SenderTraits,
    takes_back: Option<bool>,
    /// True if the first repeated segment after a pause came before the timer.
    probes: Option<bool>,
    /// The time of the fixed end's last data in this fade; `None` after its first pause.
    heard_at: Option<Instant>,
    /// The end of the data that was sent, and the bytes in flight when the link went or came back.
    sent: Option<Seq>,
    flight_bytes: u32,
    /// Segments that came again during the fade.
    resent: u32,
    watching: Option<RepeatWatch>,
}

#[derive(Clone, Copy, Debug)]
struct RepeatWatch {
    until: Instant,
    data_end: Seq,
}

impl Learnt {
    pub(super) fn new(given: SenderTraits) -> Learnt {
        let (takes_back, probes, heard_at, sent, watching) = (None, None, None, None, None);
        Learnt { given, takes_back, probes, heard_at, sent, flight_bytes: 0, resent: 0, watching }
    }

    /// RACK, and F-RTO by timestamps, cannot be seen from here. Unless the spec gives them, the sender's kind decides.
    pub(super) fn model(&self, view: &FlowView) -> Model {
        let SenderTraits { tlp, rack, frto, .. } = self.given;
        Model::from(self.sender(view)).but(tlp.or(self.probes), rack, frto)
    }

    fn sender(&self, view: &FlowView) -> Sender {
        match (self.given.sender, self.takes_back, view.dialect) {
            (Some(given), ..) => given,
            (None, Some(true), _) | (None, None, Dialect::Linux) => Sender::Linux,
            (None, None, Dialect::Bsd) => Sender::FreeBsd,
            // No floor is assumed: many senders of no known kind wait for less than the second of RFC 6298.
            (None, Some(false), _) | (None, None, Dialect::Other) => Sender::Textbook,
        }
    }

    pub(super) fn begin_fade(&mut self, now: Instant, view: &FlowView) {
        (self.watching, self.heard_at) = (None, Some(view.passed_at.unwrap_or(now)));
        (self.sent, self.flight_bytes, self.resent) = (view.data_end, view.flight_bytes(), 0);
    }

    /// A segment without data may answer the mobile. No timer of the sender sends it.
    pub(super) fn see_in_fade(&mut self, passing: &Passing<'_>, view: &FlowView) {
        if passing.len == 0 {
            return;
        }
        let (now, end) = (passing.now, passing.end());
        if self.sent.is_some_and(|sent| end <= sent) {
            self.time(now, view);
            self.resent += 1;
        } else if self.heard_at.is_some() {
            // New data after a pause comes from a probe or from a program that had paused; the two look alike.
            let is_resting = self.sent.is_some_and(|sent| view.passed.is_some_and(|passed| sent <= passed));
            self.heard_at = (is_resting || !self.has_paused(now, view)).then_some(now);
        }
        self.sent = Some(self.sent.map_or(end, |sent| sent.max(end)));
    }

    fn paused(&self, now: Instant, view: &FlowView) -> Option<Duration> {
        self.heard_at.map(|before| now.since(before.max(view.passed_at.unwrap_or(before))))
    }

    fn has_paused(&self, now: Instant, view: &FlowView) -> bool {
        let rtt_s = view.whole.smoothed.map_or(0.001, |rtt| rtt.as_secs_f64().max(0.001));
        self.paused(now, view).is_some_and(|paused| paused.as_secs_f64() >= QUIET * rtt_s)
    }

    /// The first repeated segment after a pause is a probe or a timeout. A probe comes sooner, and by its time the two
    /// differ.
    fn time(&mut self, now: Instant, view: &FlowView) {
        let (Some(paused), Some(rtt)) = (self.paused(now, view), view.whole.smoothed) else { return };
        if !self.has_paused(now, view) {
            self.heard_at = Some(now);
            return;
        }
        self.heard_at = None;
        let (rtt_s, rttvar_s) = (rtt.as_secs_f64().max(0.001), view.whole.variance.as_secs_f64());
        let model = self.model(view);
        let rto_s = Timer::new(model.sender, rtt_s, rttvar_s).rto_s();
        let probe_s = model.probes_after_s(rtt_s);
        if rto_s > QUIET * probe_s {
            self.probes = Some(paused.as_secs_f64() < (probe_s + rto_s) / 2.0);
        }
    }

    /// A sender that keeps its window sends it once each round trip. A sender that has halved it sends half.
    pub(super) fn end_fade(&mut self, now: Instant, view: &FlowView) {
        let is_telling = self.resent > 0 && view.flight_segments() >= LEAST_WINDOW_SEGMENTS;
        if let (true, Some(rtt), Some(data_end)) = (is_telling, view.whole.smoothed, view.data_end) {
            let rtt = rtt.max(Duration::from_millis(1));
            self.flight_bytes = view.flight_bytes();
            self.watching = Some(RepeatWatch { until: now + rtt * ROUND_TRIPS, data_end });
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

    use super::*;

    /// The model of a sender that has sent at these times of a fade, and whose last ACK passed at 0.
    fn learned(given: SenderTraits, times_ms: &[u64]) -> Model {
        let segments: Vec<_> = times_ms.iter().map(|at_ms| (*at_ms, 1, 1_000)).collect();
        learned_from(given, None, &segments)
    }

    /// The same for segments: their time, first number and length. All data up to `known` is sent and acknowledged.
    fn learned_from(given: SenderTraits, known: Option<Seq>, segments: &[(u64, u32, u32)]) -> Model {
        let ms = Duration::from_millis;
        let whole = Rtt { smoothed: Some(ms(50)), variance: ms(5), ..Rtt::default() };
        let mut view = FlowView::default();
        (view.whole, view.dialect) = (whole, Dialect::Linux);
        (view.passed_at, view.passed, view.data_end) = (Some(Instant::ZERO), known, known);
        let mut learnt = Learnt::new(given);
        learnt.begin_fade(Instant::from_millis(10), &view);
        for (at_ms, seq, len) in segments.iter().copied() {
            let now = Instant::from_millis(at_ms);
            let passing = Passing::new(now, Side::Fixed, Kind::Data, Seq(seq), len);
            learnt.see_in_fade(&passing, &view);
        }
        learnt.model(&view)
    }

    #[test]
    fn a_probe_is_told_from_a_timeout_by_when_it_comes() {
        // With an RTT of 50 ms, a probe comes 100 ms after the last ACK, and the timer ends after 250 ms.
        let nothing = SenderTraits::default();
        assert!(learned(nothing, &[20, 60, 160, 300]).tlp);
        assert!(!learned(nothing, &[20, 60, 310, 810]).tlp);
        assert!(learned(nothing, &[20, 60]).tlp, "its kind has them");
        assert!(
            !learned(SenderTraits { tlp: Some(false), ..nothing }, &[20, 60, 160]).tlp,
            "the spec stands over all"
        );
        // A timer that is no longer than the wait for a probe shows nothing.
        let textbook = SenderTraits { sender: Some(Sender::Textbook), ..nothing };
        assert!(!learned(textbook, &[20, 60, 160]).tlp);
    }

    #[test]
    fn only_what_comes_again_tells_a_probe_from_a_timeout() {
        // Both have a timer that is longer than the wait for a probe. The second sends no probes by default.
        let [linux, freebsd] = [Sender::Linux, Sender::FreeBsd]
            .map(|sender| SenderTraits { sender: Some(sender), ..SenderTraits::default() });
        assert_eq!([linux, freebsd].map(|given| learned(given, &[]).tlp), [true, false]);
        let begun = [(20, 1, 1_000), (60, 1, 1_000)];
        let then =
            |given, more: &[(u64, u32, u32)]| learned_from(given, None, &[&begun[..], more].concat()).tlp;
        // A program goes on after a pause, as soon as a probe comes or as late as a timeout.
        assert!(then(linux, &[(400, 1_001, 1_000)]));
        assert!(!then(freebsd, &[(160, 1_001, 1_000)]));
        // The new data may have been a probe. The timeout after it does not show that there was none.
        assert!(then(linux, &[(160, 1_001, 1_000), (410, 1, 1_000)]));
        // An ACK of the mobile's data is neither, and changes nothing for what follows.
        assert!(!then(freebsd, &[(160, 1_001, 0)]));
        assert!(!then(linux, &[(160, 1_001, 0), (310, 1, 1_000)]));
        // While nothing is in flight no timer runs. It starts with the program's next data.
        let first = [(1_000, 1_001, 1_000), (1_100, 1_001, 1_000)];
        assert!(learned_from(freebsd, Some(Seq(1_001)), &first).tlp);
    }
}
