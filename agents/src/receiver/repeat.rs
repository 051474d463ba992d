//! Repeats the last ACK if no data answers it (TCP-DCA §IV-D; `tda` borrows this).

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{
    AckDecided, AckNote, AckRule, AckVerdict, Arrival, Basis, By, Needs, ReceiverAgent, RecvView, Rtt, Why,
};

use super::hold::{HoldingReceiver, Holds};

/// RFC 6298 §2.1: the RTO before the path is measured.
const WITHOUT_RTT: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Samples include the time that the sender waited. The paper accepts that for so coarse a timer.
///
/// Invariant 1: `next` is set only while an ACK is the last event. 2: its `left` is above zero.
#[derive(Debug)]
struct Repeats {
    most: u32,
    least_wait: Duration,
    next: Option<NextRepeat>,
    heard: Option<Smoothed>,
}

/// SRTT and RTTVAR of the round trips that come back with data.
#[derive(Clone, Copy, Debug)]
struct Smoothed {
    srtt: Duration,
    variance: Duration,
}

impl Smoothed {
    fn of(sample: Duration) -> Smoothed {
        Smoothed { srtt: sample, variance: sample / 2 }
    }

    /// The variance uses the new SRTT, as in TCP-DCA.
    fn with(self, sample: Duration) -> Smoothed {
        let srtt = self.srtt.saturating_mul(7).saturating_add(sample) / 8;
        Smoothed { srtt, variance: self.variance.saturating_mul(3).saturating_add(sample.abs_diff(srtt)) / 4 }
    }
}

#[derive(Clone, Copy, Debug)]
struct NextRepeat {
    due: Instant,
    wait: Duration,
    left: u32,
}

impl Repeats {
    /// Repeats an ACK at most `most` times in a row; zero means never.
    fn new(most: u32, least_wait: Duration) -> Repeats {
        Repeats { most, least_wait, next: None, heard: None }
    }

    /// Data shows that the ACK has arrived, or it needs another ACK.
    fn on_arrival(&mut self, arrival: &Arrival, path: &Rtt) {
        self.next = None;
        if let Some(sample) = arrival.rtt {
            let before = self.heard.or(Repeats::of_path(path));
            self.heard = Some(before.map_or(Smoothed::of(sample), |before| before.with(sample)));
        }
    }

    fn of_path(path: &Rtt) -> Option<Smoothed> {
        path.smoothed.map(|srtt| Smoothed { srtt, variance: path.variance })
    }

    fn on_ack(&mut self, ack: &AckDecided, rtt: &Rtt) {
        if ack.by != By::Repeat {
            self.begin(ack.now, self.rto(rtt), self.most);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.next.map(|next| next.due)
    }

    /// Returns whether the last ACK is to be repeated now. The next wait is twice as long.
    fn take_due(&mut self, now: Instant) -> bool {
        let Some(next) = self.next.filter(|next| next.due <= now) else { return false };
        self.begin(now, (next.wait * 2).min(LONGEST), next.left - 1);
        true
    }

    fn begin(&mut self, now: Instant, wait: Duration, left: u32) {
        self.next = (left > 0).then_some(NextRepeat { due: now + wait, wait, left });
    }

    fn rto(&self, path: &Rtt) -> Duration {
        let known = self.heard.or(Repeats::of_path(path));
        let rto =
            known.map_or(WITHOUT_RTT, |known| known.srtt.saturating_add(known.variance.saturating_mul(4)));
        rto.max(self.least_wait).min(LONGEST)
    }
}

/// A host that repeats its last ACK at most `most` times in a row.
pub(super) fn repeating<R: Holds>(most: u32, least_wait: Duration, rule: R) -> Box<dyn ReceiverAgent> {
    Box::new(Repeating { host: HoldingReceiver::new(rule), repeats: Repeats::new(most, least_wait) })
}

#[derive(Debug)]
struct Repeating<R> {
    host: HoldingReceiver<R>,
    repeats: Repeats,
}

impl<R: Holds> ReceiverAgent for Repeating<R> {
    fn needs(&self) -> Needs {
        self.host.needs()
    }

    fn on_arrival(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> AckVerdict {
        self.repeats.on_arrival(arrival, &view.path.rtt);
        self.host.on_arrival(arrival, view)
    }

    fn on_deadline(&mut self, now: Instant, view: &RecvView<'_>) -> AckVerdict {
        match self.host.on_deadline(now, view) {
            AckVerdict::Hold(_) if self.repeats.take_due(now) => {
                AckVerdict::Repeat(Why::plain(AckRule::LostAck))
            }
            verdict => verdict,
        }
    }

    fn on_ack(&mut self, ack: &AckDecided, view: &RecvView<'_>) {
        self.host.on_ack(ack, view);
        self.repeats.on_ack(ack, &view.path.rtt);
    }

    fn deadline(&self) -> Option<Instant> {
        self.host.deadline().or(self.repeats.due())
    }

    fn note(&self) -> AckNote {
        self.host.note()
    }

    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.host.gauges(sink);
    }

    fn basis(&self, now: Instant, view: &RecvView<'_>) -> Option<Basis> {
        self.host.basis(now, view)
    }
}
