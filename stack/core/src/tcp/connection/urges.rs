//! Urges: segments that must leave besides data and owed ACKs, and their counts. Each urge ends when its segment has
//! left.

use std::time::Duration;

use crate::Instant;

/// The long-run interval of limited answers for each connection. A shared limit would reveal other connections to an
/// attacker.
const ANSWER_EVERY: Duration = Duration::from_secs(1);

/// Limited answers that may leave at once after a silence. With [`ANSWER_EVERY`], at most 10 leave in 5 s, as in RFC
/// 5961 §7. A peer that probes a closed window after 200 ms, and doubles the interval, gets an answer to each probe.
const ANSWERS_AT_ONCE: u32 = 5;

#[derive(Debug, Default)]
pub(super) struct Urges {
    pub(super) syn: bool,
    /// The connection was aborted and owes a RST.
    pub(super) rst: bool,
    doubt: Doubt,
    /// An agent takes what lies below the number from routing as acknowledged.
    pub(super) takes_as_acknowledged: bool,
    pub(super) window_probe: bool,
    pub(super) keep_alive: bool,
    pub(super) frozen_probe: bool,
    pub(super) tail_probe: bool,
    pub(super) keep_alives_sent: u8,
    /// Each limited answer adds its interval; an answer too far ahead does not leave (RFC 5961 §7).
    answers_paid_until: Instant,
    pub(super) window_probes_sent: u8,
    /// The packets that have left, for identifications.
    packets_sent: u16,
    /// The interval of probes over a frozen path.
    pub(super) probe_every_us: u32,
}

/// The doubt about the number from routing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doubt {
    /// No timeout since `highest_ack` was raised above `una`.
    #[default]
    None,
    /// After a timeout nothing is lost above it: the last segment below goes again.
    Asks,
    /// The segment that the timeout asked for has left.
    Asked,
}

impl Urges {
    pub(super) fn any(&self) -> bool {
        self.syn
            || self.rst
            || self.asks_below_highest_ack()
            || self.window_probe
            || self.keep_alive
            || self.frozen_probe
            || self.tail_probe
    }

    /// The end: only a RST may still be due.
    pub(super) fn finish(&mut self) {
        let Urges { rst, packets_sent, .. } = *self;
        *self = Urges { rst, packets_sent, ..Urges::default() };
    }

    /// Returns whether the last segment below `highest_ack` should go again.
    pub(super) fn asks_below_highest_ack(&self) -> bool {
        self.doubt == Doubt::Asks
    }

    /// The segment has left, or new data is acknowledged.
    pub(super) fn ask_nothing_below(&mut self) {
        if self.doubt == Doubt::Asks {
            self.doubt = Doubt::Asked;
        }
    }

    /// `highest_ack` has moved, so earlier timeouts no longer count against it.
    pub(super) fn forget_timeouts_above(&mut self) {
        self.doubt = Doubt::None;
    }

    /// Counts a timeout after `highest_ack` was raised. After the first, a segment above or the last one below goes
    /// again. Returns whether that stayed unanswered.
    pub(super) fn doubts_highest_ack(&mut self, has_lost_above: bool) -> bool {
        let is_doubted = self.doubt != Doubt::None;
        self.doubt = match has_lost_above {
            _ if is_doubted => Doubt::None,
            true => Doubt::Asked,
            false => Doubt::Asks,
        };
        is_doubted
    }

    pub(super) fn probe_window(&mut self) {
        self.window_probe = true;
        self.window_probes_sent = self.window_probes_sent.saturating_add(1);
    }

    pub(super) fn send_keep_alive(&mut self) {
        self.keep_alives_sent += 1;
        self.keep_alive = true;
    }

    /// The interval of probes over a frozen path.
    pub(super) fn probe_every(&self) -> Duration {
        Duration::from_micros(self.probe_every_us.into())
    }

    /// Returns whether a limited answer may leave; if so, it is counted.
    pub(super) fn pay_for_answer(&mut self, now: Instant) -> bool {
        let paid_until = self.answers_paid_until.max(now);
        if paid_until.since(now) > (ANSWERS_AT_ONCE - 1) * ANSWER_EVERY {
            return false;
        }
        self.answers_paid_until = paid_until + ANSWER_EVERY;
        true
    }

    /// The packets that had left before these, for identifications.
    pub(super) fn count_packets(&mut self, leaving: u16) -> u16 {
        let before = self.packets_sent;
        self.packets_sent = before.wrapping_add(leaving);
        before
    }
}
