//! The delivery rate of the path, and the reasons that held sending back, as in Linux's `TCP_INFO`.

use std::time::Duration;

use crate::narrow::low_u32;
use crate::{Instant, Seq};

/// The reason why no more leaves now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HeldBy {
    /// No data is in flight or waits to be sent.
    #[default]
    Rest,
    /// The path (the agents' allowance) holds data back, or nothing does.
    Path,
    /// The peer's window has no room for the waiting data.
    Window,
    /// The program has more data, but the send buffer is full and all of it in flight.
    Buffer,
}

/// Times since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTime {
    /// Data was in flight or waited; the two times below are parts of this one.
    pub busy: Duration,
    /// The peer's window had no room for the waiting data.
    pub held_by_window: Duration,
    /// The program had more data, but the send buffer was full and all of it in flight.
    pub held_by_buffer: Duration,
}

/// It is small, since idle connections keep it. Times are whole milliseconds (49 days); each remainder passes on to the
/// next period, so that errors do not add up.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The instant up to which times are added up.
    counted_to: Instant,
    round_began: Instant,
    /// The round ends when data beyond this number is acknowledged: it was sent after the start.
    round_end: Seq,
    /// The low bits of the delivered bytes when the round began.
    round_from: u32,
    /// The rate of the last round in units of 16 bytes, so that 68 GB/s fit.
    rate_16_bytes_per_s: u32,
    path_ms: u32,
    window_ms: u32,
    buffer_ms: u32,
    held_by: HeldBy,
    /// In this round the program gave less data than could have been sent.
    round_lacked_data: bool,
}

const _: () = assert!(size_of::<Progress>() <= 48);

impl Progress {
    pub(crate) fn new(iss: Seq) -> Progress {
        Progress { round_began: Instant::FAR, round_end: iss, ..Progress::default() }
    }

    /// Notes why nothing more leaves now.
    #[inline]
    pub(crate) fn hold(&mut self, now: Instant, by: HeldBy) {
        if self.held_by == by {
            return;
        }
        self.count(now);
        self.held_by = by;
    }

    fn count(&mut self, now: Instant) {
        let spent_ms = now.millis_since(self.counted_to);
        let sum = match self.held_by {
            HeldBy::Rest => {
                self.counted_to = now;
                return;
            }
            HeldBy::Path => &mut self.path_ms,
            HeldBy::Window => &mut self.window_ms,
            HeldBy::Buffer => &mut self.buffer_ms,
        };
        *sum = sum.saturating_add(spent_ms);
        self.counted_to = self.counted_to.after_millis(spent_ms);
    }

    /// Notes that data was lacking: the round's rate then measures the program, not the path.
    pub(crate) fn lacked_data(&mut self) {
        self.round_lacked_data = true;
    }

    /// New data from `seq` on leaves; `delivered` counts the bytes that have arrived so far.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, seq: Seq, delivered: u64) {
        if self.round_began == Instant::FAR {
            self.begin_round(now, seq, delivered);
        }
    }

    /// Everything below `una` has arrived, `delivered` bytes in all; `nxt` is the next number to send.
    #[inline]
    pub(crate) fn on_acked(&mut self, now: Instant, una: Seq, nxt: Seq, delivered: u64) {
        let is_under_way = self.round_began != Instant::FAR;
        if is_under_way && una > self.round_end {
            self.end_round(now, delivered);
            self.begin_round(now, nxt, delivered);
        }
        if una == nxt {
            self.round_began = Instant::FAR;
        }
    }

    fn end_round(&mut self, now: Instant, delivered: u64) {
        let bytes = low_u32(delivered).wrapping_sub(self.round_from);
        let elapsed_us = (now.0.saturating_sub(self.round_began.0) / 1_000).max(1);
        let rate = u64::from(bytes) * 1_000_000 / elapsed_us / 16;
        let rate = u32::try_from(rate).unwrap_or(u32::MAX);
        if !self.round_lacked_data || rate > self.rate_16_bytes_per_s {
            self.rate_16_bytes_per_s = rate;
        }
    }

    fn begin_round(&mut self, now: Instant, nxt: Seq, delivered: u64) {
        self.round_began = now;
        self.round_end = nxt;
        self.round_from = low_u32(delivered);
        self.round_lacked_data = false;
    }

    /// Bytes a second over the last round trip. Round trips in which the program gave too little count only if they
    /// were faster.
    pub(crate) fn delivery_rate(&self) -> Option<u64> {
        (self.rate_16_bytes_per_s > 0).then(|| u64::from(self.rate_16_bytes_per_s) * 16)
    }

    pub(crate) fn busy_time(&self, now: Instant) -> BusyTime {
        let spent = |held_by, ms: u32| {
            let current = if self.held_by == held_by { now.since(self.counted_to) } else { Duration::ZERO };
            Duration::from_millis(u64::from(ms)) + current
        };
        let held_by_window = spent(HeldBy::Window, self.window_ms);
        let held_by_buffer = spent(HeldBy::Buffer, self.buffer_ms);
        BusyTime {
            busy: spent(HeldBy::Path, self.path_ms) + held_by_window + held_by_buffer,
            held_by_window,
            held_by_buffer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    #[test]
    fn times_of_parts_of_a_millisecond_add_up_to_whole_ones() {
        let mut progress = Progress::new(Seq(0));
        let mut now = 1_000_000;
        progress.hold(at_us(now), HeldBy::Path);
        for _ in 0..1_000 {
            now += 300;
            progress.hold(at_us(now), HeldBy::Window);
            now += 400;
            progress.hold(at_us(now), HeldBy::Path);
        }
        let spent = progress.busy_time(at_us(now));
        assert!(spent.busy.abs_diff(Duration::from_millis(700)) <= Duration::from_millis(1), "{spent:?}");
        let share = spent.held_by_window.as_secs_f64() / spent.busy.as_secs_f64();
        assert!((0.4..0.75).contains(&share), "{share}");
    }

    #[test]
    fn rest_is_not_counted_and_what_runs_is() {
        let mut progress = Progress::new(Seq(0));
        progress.hold(at_us(0), HeldBy::Buffer);
        progress.hold(at_us(5_000), HeldBy::Rest);
        progress.hold(at_us(90_000), HeldBy::Window);
        let spent = progress.busy_time(at_us(97_000));
        let ms = Duration::from_millis;
        assert_eq!(spent, BusyTime { busy: ms(12), held_by_window: ms(7), held_by_buffer: ms(5) });
    }

    #[test]
    fn a_round_that_lacked_data_only_raises_the_rate() {
        let mut progress = Progress::new(Seq(0));
        progress.on_sent(at_us(0), Seq(0), 0);
        progress.on_acked(at_us(10_000), Seq(1_000), Seq(2_000), 1_000);
        assert_eq!(progress.delivery_rate(), Some(100_000));
        progress.lacked_data();
        progress.on_acked(at_us(110_000), Seq(2_500), Seq(2_500), 2_500);
        assert_eq!(progress.delivery_rate(), Some(100_000));
        progress.on_sent(at_us(200_000), Seq(2_500), 2_500);
        progress.on_acked(at_us(300_000), Seq(3_500), Seq(3_500), 3_500);
        assert_eq!(progress.delivery_rate(), Some(10_000));
    }
}
