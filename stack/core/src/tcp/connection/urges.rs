//! Urges: segments that must leave besides data and owed ACKs, and counts of those that have. Each urge ends when its
//! segment has left.

use std::time::Duration;

use crate::Instant;

/// Interval of limited answers in the long run, per connection: a limit shared by all of them would tell an attacker
/// about connections that are not its own.
const ANSWER_EVERY: Duration = Duration::from_secs(1);

/// Limited answers that may leave at once after a silence. With [`ANSWER_EVERY`], 10 leave in 5 s at the most, as in
/// RFC 5961 §7. A peer that probes a closed window from 200 ms on and doubles that gets each probe answered.
const ANSWERS_AT_ONCE: u32 = 5;

#[derive(Debug, Default)]
pub(super) struct Urges {
    syn: bool,
    /// The connection was aborted and says so.
    rst: bool,
    /// What routing said has arrived leaves nothing above it to send: the last segment asks again.
    below_highest_ack: bool,
    /// Timeouts since `highest_ack` was raised above `una`.
    timeouts_above: u8,
    window_probe: bool,
    keep_alive: bool,
    frozen_probe: bool,
    tail_probe: bool,
    keep_alives_sent: u8,
    /// Each limited answer pays for a while; those for more than a few whiles ahead do not leave (RFC 5961 §7).
    answers_paid_until: Instant,
    window_probes_sent: u8,
    /// Packets that have left, for their identifications.
    packets_sent: u16,
    /// The interval of probes over a frozen path.
    probe_every_us: u32,
}

impl Urges {
    pub(super) fn any(&self) -> bool {
        self.syn
            || self.rst
            || self.below_highest_ack
            || self.window_probe
            || self.keep_alive
            || self.frozen_probe
            || self.tail_probe
    }

    /// The end: a RST may still be due.
    pub(super) fn finish(&mut self) {
        let Urges { rst, packets_sent, .. } = *self;
        *self = Urges { rst, packets_sent, ..Urges::default() };
    }

    pub(super) fn is_reset_due(&self) -> bool {
        self.rst
    }

    pub(super) fn set_reset(&mut self, is_due: bool) {
        self.rst = is_due;
    }

    pub(super) fn is_syn_due(&self) -> bool {
        self.syn
    }

    pub(super) fn set_syn(&mut self, is_due: bool) {
        self.syn = is_due;
    }

    /// The last segment below `highest_ack` is to ask again.
    pub(super) fn asks_below_highest_ack(&self) -> bool {
        self.below_highest_ack
    }

    /// It has left, or something is acknowledged.
    pub(super) fn ask_nothing_below(&mut self) {
        self.below_highest_ack = false;
    }

    /// `highest_ack` is not below what a timeout has put in doubt any more.
    pub(super) fn forget_timeouts_above(&mut self) {
        self.timeouts_above = 0;
    }

    /// A timeout after `highest_ack` was raised: once, something above or the last segment below asks. Answers whether
    /// that has stayed unanswered.
    pub(super) fn doubts_highest_ack(&mut self, has_lost_above: bool) -> bool {
        if self.timeouts_above == 0 {
            self.timeouts_above = 1;
            self.below_highest_ack = !has_lost_above;
            return false;
        }
        self.timeouts_above = 0;
        self.below_highest_ack = false;
        true
    }

    pub(super) fn is_window_probe_due(&self) -> bool {
        self.window_probe
    }

    pub(super) fn probe_window(&mut self) {
        self.window_probe = true;
        self.window_probes_sent = self.window_probes_sent.saturating_add(1);
    }

    pub(super) fn window_probe_left(&mut self) {
        self.window_probe = false;
    }

    pub(super) fn window_probes_sent(&self) -> u8 {
        self.window_probes_sent
    }

    /// The window that was probed has opened, or what probed it is acknowledged.
    pub(super) fn forget_window_probes(&mut self) {
        self.window_probes_sent = 0;
    }

    pub(super) fn is_keep_alive_due(&self) -> bool {
        self.keep_alive
    }

    pub(super) fn send_keep_alive(&mut self) {
        self.keep_alives_sent += 1;
        self.keep_alive = true;
    }

    pub(super) fn keep_alive_left(&mut self) {
        self.keep_alive = false;
    }

    pub(super) fn keep_alives_sent(&self) -> u8 {
        self.keep_alives_sent
    }

    pub(super) fn forget_keep_alives(&mut self) {
        self.keep_alives_sent = 0;
    }

    pub(super) fn is_frozen_probe_due(&self) -> bool {
        self.frozen_probe
    }

    pub(super) fn set_frozen_probe(&mut self, is_due: bool) {
        self.frozen_probe = is_due;
    }

    pub(super) fn set_probe_every(&mut self, micros: u32) {
        self.probe_every_us = micros;
    }

    /// The interval of probes over a frozen path.
    pub(super) fn probe_every(&self) -> Duration {
        Duration::from_micros(self.probe_every_us.into())
    }

    pub(super) fn is_tail_probe_due(&self) -> bool {
        self.tail_probe
    }

    pub(super) fn set_tail_probe(&mut self, is_due: bool) {
        self.tail_probe = is_due;
    }

    /// A limited answer may leave, and is paid for.
    pub(super) fn pay_for_answer(&mut self, now: Instant) -> bool {
        let paid_until = self.answers_paid_until.max(now);
        if paid_until.since(now) > (ANSWERS_AT_ONCE - 1) * ANSWER_EVERY {
            return false;
        }
        self.answers_paid_until = paid_until + ANSWER_EVERY;
        true
    }

    /// Packets that had left before these do, for their identifications.
    pub(super) fn count_packets(&mut self, leaving: u16) -> u16 {
        let before = self.packets_sent;
        self.packets_sent = before.wrapping_add(leaving);
        before
    }
}
