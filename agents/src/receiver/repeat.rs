//! Saying the last ACK again when no data answers it (TCP-DCA §IV-D; `tda` borrows it).

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{AckDecided, By, Rtt};

/// RFC 6298 §2.1, before the path is measured.
const WITHOUT_RTT: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Invariant 1: `next` is set only while the last thing that happened is an ACK.
#[derive(Debug)]
pub(super) struct Repeats {
    most: u32,
    least_wait: Duration,
    next: Option<Next>,
}

#[derive(Clone, Copy, Debug)]
struct Next {
    due: Instant,
    wait: Duration,
    left: u32,
}

impl Repeats {
    /// At most `most` times in a row, none at all when that is zero.
    pub(super) fn new(most: u32, least_wait: Duration) -> Repeats {
        Repeats { most, least_wait, next: None }
    }

    /// Data shows that the ACK arrived, or asks for another one.
    pub(super) fn on_arrival(&mut self) {
        self.next = None;
    }

    /// A repeat waits twice as long as what it repeated.
    pub(super) fn on_ack(&mut self, ack: &AckDecided, rtt: &Rtt) {
        let (wait, left) = match (ack.by, self.next) {
            (By::Repeat, Some(next)) => ((next.wait * 2).min(LONGEST), next.left.saturating_sub(1)),
            (By::Repeat, None) => return,
            (By::Agent | By::Forced | By::Piggyback, _) => (self.rto(rtt), self.most),
        };
        self.next = (left > 0).then_some(Next { due: ack.now + wait, wait, left });
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.next.map(|next| next.due)
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| next.due <= now)
    }

    fn rto(&self, rtt: &Rtt) -> Duration {
        let rto =
            rtt.smoothed.map_or(WITHOUT_RTT, |srtt| srtt.saturating_add(rtt.variance.saturating_mul(4)));
        rto.max(self.least_wait).min(LONGEST)
    }
}
