//! The windowed filters of the model: the highest rate, the shortest round trip, the largest ACK burst, and the
//! detector of a full pipe.

use std::time::Duration;

use hopwise_core::Instant;

use super::rate::RateSample;

/// The highest of this window and of the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TwoWindows<T> {
    now: T,
    before: T,
}

impl<T: Copy + Default + PartialOrd> TwoWindows<T> {
    pub(super) fn take(&mut self, value: T) {
        if value > self.now {
            self.now = value;
        }
    }

    pub(super) fn highest(&self) -> T {
        if self.before > self.now { self.before } else { self.now }
    }

    pub(super) fn advance(&mut self) {
        *self = TwoWindows { now: T::default(), before: self.now };
    }
}

/// §5.3.4.3: the shortest round trip of ten seconds, for which ProbeRTT looks every five.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    /// The shortest so far, and its time.
    pub(super) long: Option<(Duration, Instant)>,
    /// The shortest since the last ProbeRTT was due.
    probe: Option<(Duration, Instant)>,
}

impl MinRtt {
    const PROBE_INTERVAL: Duration = Duration::from_secs(5);
    const FILTER: Duration = Duration::from_secs(10);

    pub(super) fn get(&self) -> Option<Duration> {
        self.long.map(|(rtt, _)| rtt)
    }

    /// Returns whether ProbeRTT is due.
    pub(super) fn take(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let is_due = self.probe.is_some_and(|(_, at)| now > at + MinRtt::PROBE_INTERVAL);
        if let Some(rtt) = rtt
            && self.probe.is_none_or(|(least, _)| is_due || rtt < least)
        {
            self.probe = Some((rtt, now));
        }
        let is_expired = self.long.is_none_or(|(_, at)| now > at + MinRtt::FILTER);
        if let Some((least, _)) = self.probe
            && (is_expired || self.get().is_none_or(|long| least < long))
        {
            self.long = self.probe;
        }
        is_due
    }

    /// A ProbeRTT is over: the next one is due after the interval.
    pub(super) fn probed(&mut self, now: Instant) {
        self.probe = self.probe.map(|(rtt, _)| (rtt, now));
    }
}

/// §5.5.9: the bytes that ACKs deliver at once, beyond what the rate explains. The highest of ten rounds counts, and in
/// Startup the highest of one round.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct ExtraAcked {
    since: Instant,
    delivered: u64,
    highest: TwoWindows<u64>,
    rounds: u32,
}

impl ExtraAcked {
    const HALF_FILTER_ROUNDS: u32 = 5;

    pub(in crate::sender) fn restart(&mut self, now: Instant) {
        (self.since, self.delivered) = (now, 0);
    }

    pub(in crate::sender) fn take(
        &mut self,
        now: Instant,
        newly: u64,
        expected: impl Fn(Duration) -> u64,
        most: u64,
    ) {
        let mut explained = expected(now.since(self.since));
        if self.delivered <= explained {
            self.restart(now);
            explained = 0;
        }
        self.delivered += newly;
        self.highest.take(self.delivered.saturating_sub(explained).min(most));
    }

    pub(in crate::sender) fn end_round(&mut self, is_startup: bool) {
        self.rounds += 1;
        if is_startup || self.rounds >= ExtraAcked::HALF_FILTER_ROUNDS {
            self.rounds = 0;
            self.highest.advance();
        }
    }

    pub(in crate::sender) fn highest(&self) -> u64 {
        self.highest.highest()
    }
}

/// §5.3.1.2: the pipe is full when three rounds have not brought a quarter more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    rate: f64,
    rounds: u32,
    /// In the present search.
    pub(super) now: bool,
    /// At any time.
    pub(super) ever: bool,
}

impl FullPipe {
    pub(super) fn begin(&mut self, rate: f64) {
        *self = FullPipe { rate, rounds: 0, now: false, ever: self.ever };
    }

    /// Takes the sample that ends a round.
    pub(super) fn end_round(&mut self, sample: &RateSample) {
        if self.now || sample.app_limited {
            return;
        }
        if sample.rate >= self.rate * 1.25 {
            return self.begin(sample.rate);
        }
        self.rounds += 1;
        self.now = self.rounds >= 3;
        self.ever |= self.now;
    }
}
