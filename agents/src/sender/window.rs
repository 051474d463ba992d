//! The rules that all owners of a congestion window share. They are slow start, bounds after a loss, and the return of
//! a window that a false loss took. A window that is not filled proves nothing.
//!
//! - Initial window: RFC 6928, in segments. A segment counts as at most 1460 bytes, unless the window would then be
//!   below two segments.
//! - Slow start: RFC 5681 §3.1 adds at most a segment per ACK. Byte counting (RFC 3465) adds the acknowledged bytes: at
//!   most two segments, or one after a timeout.
//! - HyStart++ (`hystart.rs`): as long as ssthresh has its first value, growing round trips slow slow start down, and
//!   end it.
//! - Validation (RFC 7661 in spirit): the window does not grow while the application is the limit. It does not grow
//!   while less than half of cwnd was in flight during the last two rounds, either. After an idle time longer than an
//!   RTO, cwnd falls back to the initial window (RFC 5681 §4.1). Then ssthresh remembers three quarters of the old
//!   cwnd.
//! - After fast recovery cwnd is ssthresh. With validation it is RFC 6582's min(ssthresh, max(flight, MSS) + MSS). A
//!   window whose data has all left the network then does not go out as one burst.

use std::time::Duration;

use hopwise_core::agent::{
    Acked, Allowance, CWND_GAUGE, Loss, LossKind, Recovered, Recovering, Reduction, Rtt, SSTHRESH_GAUGE,
    SendView, Sent,
};
use hopwise_core::{Instant, Moment, Seq};

use super::hystart::{HyStart, HyStartVerdict, SLOWER};
use super::seldom::Seldom;
use crate::param::{Form, OFF, ON, Param, Switch};

/// The RTO of RFC 6298 §2.1 before a sample, and a floor for paths whose variance has died down.
const FIRST_RTO: Duration = Duration::from_secs(1);
const LEAST_RTO: Duration = Duration::from_millis(200);
/// RFC 6928: a segment of the initial window counts as at most this many bytes.
const INITIAL_SEGMENT_BYTES: u64 = 1460;
/// L of RFC 3465: the most segments that slow start counts for one ACK.
const MOST_COUNTED_SEGMENTS: u64 = 2;

/// Names the events that a sender agent leaves to its `window` alone.
macro_rules! by_window {
    ($($event:ident),+ $(,)?) => { $( crate::sender::window::by_window!(@one $event); )+ };
    (@one on_sent) => {
        fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) { self.window.on_sent(sent, view); }
    };
    (@one on_recovered) => {
        fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>) { self.window.on_recovered(end, view); }
    };
    (@one narrow) => {
        fn narrow(&self, now: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance {
            self.window.narrow(now, view, so_far)
        }
    };
    (@one gauges) => {
        fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) { self.window.gauges(sink); }
    };
}
pub(super) use by_window;

pub(super) const IW: Param = Form::count("segments", 1, 1_000)
    .is(10)
    .ns2(2)
    .means("initial window, and the window after an idle time");

pub(super) const SSTHRESH: Param = Form::count("segments", 2, 1_000_000)
    .unset("unlimited")
    .ns2(2_000)
    .means("slow-start threshold before the first loss");

pub(super) const VALIDATE: Param = Form::Switch
    .is(ON)
    .ns2(OFF)
    .means("do not grow a window that is not filled; begin anew after an idle time");

#[derive(Clone, Copy, Debug)]
struct WindowSettings {
    initial_segments: u32,
    ssthresh_segments: Option<u32>,
    /// Off: an ACK counts as a segment at most. On: it counts by the bytes that it acknowledges (RFC 3465).
    abc: Switch,
    validate: Switch,
    hystart: Switch,
}

/// cwnd and ssthresh, in bytes.
///
/// Invariant 1: `open` is `None` until something changes the window. Before that the window follows the MSS. Invariant
/// 2: cwnd is never below one segment, and after a loss ssthresh is never below two.
#[derive(Clone, Debug)]
pub(super) struct Window {
    settings: WindowSettings,
    open: Option<WindowSize>,
    /// The window before the last loss.
    before: Seldom<WindowSize>,
    recovery: RecoveryPhase,
    used: PeakFlight,
    hystart: HyStart,
    last_sent: Moment,
    /// RFC 5681 §3.1: a lost SYN leaves one segment to begin with.
    syn_was_lost: bool,
    /// The size of a segment, for gauges; 0 before one was sent.
    newest_mss: u32,
}

#[derive(Clone, Copy, Debug)]
struct WindowSize {
    cwnd: u64,
    ssthresh: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecoveryPhase {
    None,
    Fast,
    AfterTimeout,
}

/// Congestion avoidance of RFC 5681: one segment for each window that is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Linear {
    /// RFC 3465: bytes acknowledged since byte counting last made cwnd grow.
    counted_bytes: u64,
}

impl Linear {
    /// Adds eq. 3 of §3.1 for each ACK, or a segment for each window of bytes.
    pub(super) fn avoid(&mut self, window: &mut Window, newly_bytes: u64, mss: u64) {
        let cwnd = window.cwnd(mss);
        match window.settings.abc {
            Switch::Off => window.grow((newly_bytes.min(mss) * mss / cwnd).max(1), mss),
            Switch::On => {
                self.counted_bytes = self.counted_bytes.saturating_add(newly_bytes);
                if self.counted_bytes >= cwnd {
                    self.counted_bytes -= cwnd;
                    window.grow(mss, mss);
                }
            }
        }
    }

    pub(super) fn on_loss(&mut self) {
        self.counted_bytes = 0;
    }
}

/// The effect of an ACK on the window. Congestion avoidance is left to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// No growth: recovery, or a window that is not filled.
    None,
    SlowStart,
    Avoidance,
}

impl Window {
    pub(super) fn new(iw: u32, ssthresh: Option<u32>, abc: Switch, validate: Switch) -> Window {
        let settings = WindowSettings {
            initial_segments: iw,
            ssthresh_segments: ssthresh,
            abc,
            validate,
            hystart: Switch::Off,
        };
        Window {
            settings,
            open: None,
            before: Seldom::NONE,
            recovery: RecoveryPhase::None,
            used: PeakFlight::default(),
            hystart: HyStart::NEW,
            last_sent: Moment::NEVER,
            syn_was_lost: false,
            newest_mss: 0,
        }
    }

    /// The same window, whose first slow start ends as RFC 9406 says.
    pub(super) fn with_hystart(mut self, hystart: Switch) -> Window {
        self.settings.hystart = hystart;
        self
    }

    pub(super) fn cwnd(&self, mss: u64) -> u64 {
        self.opened(mss).cwnd
    }

    /// The most data in flight during the last two rounds, at most cwnd.
    pub(super) fn filled(&self, loss: &Loss, mss: u64) -> u64 {
        self.used.most().max(loss.flight_before.bytes).min(self.cwnd(mss))
    }

    /// Adds to cwnd; each owner has its own rule of congestion avoidance.
    pub(super) fn grow(&mut self, bytes: u64, mss: u64) {
        let open = self.open_mut(mss);
        open.cwnd = open.cwnd.saturating_add(bytes);
    }

    /// Takes from cwnd, down to two segments, and ends slow start.
    pub(super) fn shrink(&mut self, bytes: u64, mss: u64) {
        let open = self.open_mut(mss);
        open.cwnd = open.cwnd.saturating_sub(bytes).max(2 * mss);
        open.ssthresh = open.cwnd;
    }

    pub(super) fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        let mss = mss_of(view);
        self.newest_mss = view.mss;
        let flight_before = view.flight.bytes.saturating_sub(sent.carried.bytes);
        if self.is_idle(sent.now, flight_before, view) {
            let restart = self.initial(mss);
            let open = self.open_mut(mss);
            // RFC 7661 §4.4: slow start may end at what the path carried before the pause.
            open.ssthresh = open.ssthresh.max(open.cwnd / 4 * 3);
            open.cwnd = open.cwnd.min(restart);
        }
        self.last_sent = Moment::at(sent.now);
        self.used.on_sent(sent, view);
    }

    /// Slow start happens here; congestion avoidance is left to the caller.
    pub(super) fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>) -> Growth {
        let mss = mss_of(view);
        self.used.take(acked.flight_before.bytes);
        let filled = self.is_filled(view);
        let ends_round = self.used.end_round(view);
        let growth = self.growth(acked, view, filled);
        if growth == Growth::SlowStart {
            let counted = self.counted(acked, view);
            self.grow(counted, mss);
        }
        if self.is_first_slow_start(mss) && self.hystart.hear(acked.rtt, ends_round) == HyStartVerdict::Over {
            let open = self.open_mut(mss);
            open.ssthresh = open.cwnd;
        }
        growth
    }

    fn growth(&self, acked: &Acked, view: &SendView<'_>, filled: bool) -> Growth {
        // RFC 3168 §6.1.2: an ACK that echoes a mark does not open the window.
        let fast = matches!(view.recovering, Some(Recovering::Fast { .. }));
        if fast || !filled || acked.ece || acked.newly.bytes == 0 {
            return Growth::None;
        }
        let open = self.opened(mss_of(view));
        if open.cwnd < open.ssthresh { Growth::SlowStart } else { Growth::Avoidance }
    }

    /// The bytes that an ACK adds in slow start.
    fn counted(&self, acked: &Acked, view: &SendView<'_>) -> u64 {
        let mss = mss_of(view);
        let most = match (self.settings.abc, view.recovering) {
            (Switch::On, None) => MOST_COUNTED_SEGMENTS * mss,
            // RFC 3465 §2.3: data that one ACK covers after a timeout may have arrived long before.
            (Switch::On, Some(_)) | (Switch::Off, _) => mss,
        };
        acked.newly.bytes.min(most) / if self.hystart.is_slow() { SLOWER } else { 1 }
    }

    /// RFC 9406 §4.3: HyStart++ is for the slow start before the first loss.
    fn is_first_slow_start(&self, mss: u64) -> bool {
        let open = self.opened(mss);
        self.settings.hystart == Switch::On
            && open.cwnd < open.ssthresh
            && open.ssthresh == self.first_ssthresh(mss)
    }

    /// `reduced` is the new ssthresh by the owner's own rule.
    pub(super) fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>, reduced: u64) -> Reduction {
        let mss = mss_of(view);
        if is_without_flight(loss) {
            self.begin_again(loss, mss);
            return Reduction { ssthresh: self.ssthresh(mss).max(2 * mss) };
        }
        self.hystart = HyStart::NEW;
        let open = *self.open_mut(mss);
        let mut after = WindowSize { cwnd: open.cwnd, ssthresh: reduced.max(2 * mss) };
        match loss.kind {
            LossKind::Fast => self.recovery = RecoveryPhase::Fast,
            LossKind::Marked => {}
            LossKind::Timeout { .. } => self.recovery = RecoveryPhase::AfterTimeout,
        }
        match loss.kind {
            LossKind::Fast => after.cwnd = after.ssthresh,
            LossKind::Marked => after.cwnd = open.cwnd.min(after.ssthresh),
            LossKind::Timeout { .. } => after.cwnd = mss,
        }
        match loss.kind {
            // Only the first timeout of a series took anything.
            LossKind::Timeout { nth: 2.. } => {}
            LossKind::Fast | LossKind::Timeout { .. } => self.before.set(Some(open)),
            // A mark comes from the network itself, so it cannot turn out to be no loss.
            LossKind::Marked => self.before.set(None),
        }
        self.open = Some(after);
        Reduction { ssthresh: after.ssthresh }
    }

    /// One segment again; the timeout shows nothing of the path.
    fn begin_again(&mut self, loss: &Loss, mss: u64) {
        match &mut self.open {
            // A SYN's: the peer has not announced its MSS yet.
            None => self.syn_was_lost = true,
            Some(open) => {
                if !matches!(loss.kind, LossKind::Timeout { nth: 2.. }) {
                    self.before.set(Some(*open));
                }
                open.cwnd = mss;
                self.recovery = RecoveryPhase::AfterTimeout;
            }
        }
    }

    /// The current ssthresh, for a timeout that does not change it.
    pub(super) fn ssthresh(&self, mss: u64) -> u64 {
        self.opened(mss).ssthresh
    }

    pub(super) fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>) {
        let mss = mss_of(view);
        let recovery = std::mem::replace(&mut self.recovery, RecoveryPhase::None);
        let open = self.opened(mss);
        match end {
            Recovered::Full if recovery == RecoveryPhase::Fast => {
                let cwnd = match self.settings.validate {
                    Switch::On => open.ssthresh.min(view.flight.bytes.max(mss) + mss),
                    Switch::Off => open.ssthresh,
                };
                self.open = Some(WindowSize { cwnd, ..open });
            }
            Recovered::Full => {}
            Recovered::Undone => {
                let before = self.before.take().unwrap_or(open);
                let cwnd = open.cwnd.max(before.cwnd);
                self.open = Some(WindowSize { cwnd, ssthresh: open.ssthresh.max(before.ssthresh) });
            }
        }
    }

    pub(super) fn narrow(&self, now: Instant, view: &SendView<'_>, mut so_far: Allowance) -> Allowance {
        if let Some(Recovering::Fast { .. }) = view.recovering {
            return so_far;
        }
        let mss = mss_of(view);
        let mut cwnd = self.cwnd(mss).max(mss);
        if self.is_idle(now, view.flight.bytes, view) {
            cwnd = cwnd.min(self.initial(mss));
        }
        so_far.flight_bytes = so_far.flight_bytes.min(cwnd);
        so_far
    }

    pub(super) fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        if self.open.is_some() || self.newest_mss > 0 {
            let open = self.opened(self.newest_mss.max(1).into());
            sink(CWND_GAUGE, open.cwnd);
            sink(SSTHRESH_GAUGE, open.ssthresh);
        }
    }

    fn is_filled(&self, view: &SendView<'_>) -> bool {
        match self.settings.validate {
            Switch::Off => true,
            Switch::On => !view.app_limited && self.used.most() >= self.cwnd(mss_of(view)) / 2,
        }
    }

    fn is_idle(&self, now: Instant, flight_bytes: u64, view: &SendView<'_>) -> bool {
        let Some(last_sent) = self.last_sent.get() else { return false };
        if self.settings.validate == Switch::Off || flight_bytes > 0 {
            return false;
        }
        // An RTO is computed only after a silence that any RTO is longer than.
        now > last_sent + LEAST_RTO && now.since(last_sent) > expected_rto(&view.path.rtt)
    }

    fn initial(&self, mss: u64) -> u64 {
        initial_window(self.settings.initial_segments, mss)
    }

    fn opened(&self, mss: u64) -> WindowSize {
        self.open.unwrap_or_else(|| WindowSize {
            cwnd: if self.syn_was_lost { mss } else { self.initial(mss) },
            ssthresh: self.first_ssthresh(mss),
        })
    }

    fn first_ssthresh(&self, mss: u64) -> u64 {
        self.settings.ssthresh_segments.map_or(u64::MAX, |segments| u64::from(segments) * mss)
    }

    fn open_mut(&mut self, mss: u64) -> &mut WindowSize {
        let opened = self.opened(mss);
        self.open.insert(opened)
    }
}

/// The initial window of RFC 6928 in bytes.
pub(super) fn initial_window(segments: u32, mss: u64) -> u64 {
    let segments = u64::from(segments);
    (segments * mss).min((2 * mss).max(segments * INITIAL_SEGMENT_BYTES)).max(mss)
}

/// The MSS for arithmetic: at least 1.
pub(super) fn mss_of(view: &SendView<'_>) -> u64 {
    u64::from(view.mss.max(1))
}

/// A timeout without data in flight: of a SYN, or of data that is taken as acknowledged.
pub(super) fn is_without_flight(loss: &Loss) -> bool {
    matches!(loss.kind, LossKind::Timeout { .. }) && loss.flight_before.bytes == 0
}

fn expected_rto(rtt: &Rtt) -> Duration {
    rtt.smoothed.map_or(FIRST_RTO, |srtt| (srtt + 4 * rtt.variance).max(LEAST_RTO))
}

/// The most data in flight in this round and in the one before. It shows the real worth of a window that the
/// application, the receiver or another agent did not let fill. Counts are in bytes, and below 4 GiB.
#[derive(Clone, Copy, Debug, Default)]
struct PeakFlight {
    this_round: u32,
    last_round: u32,
    /// The round ends when this is acknowledged.
    until: Option<Seq>,
}

impl PeakFlight {
    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>) {
        self.take(view.flight.bytes.max(sent.carried.bytes));
        self.until.get_or_insert(view.snd_nxt);
    }

    fn take(&mut self, flight_bytes: u64) {
        self.this_round = self.this_round.max(in_32_bits(flight_bytes));
    }

    /// Returns whether this ACK ends the round.
    fn end_round(&mut self, view: &SendView<'_>) -> bool {
        let is_over = self.until.is_some_and(|until| until <= view.snd_una);
        if is_over {
            self.last_round = std::mem::replace(&mut self.this_round, in_32_bits(view.flight.bytes));
            self.until = Some(view.snd_nxt);
        }
        is_over
    }

    fn most(&self) -> u64 {
        self.this_round.max(self.last_round).into()
    }
}

fn in_32_bits(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
