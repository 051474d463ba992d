//! Outbound: the parts of a connection that decide what leaves, and that learn from the peer's ACKs.
//!
//! The rungs of [`egress`](super::egress), [`acks`](super::acks), [`repair`](super::repair) and [`emit`](super::emit)
//! are its methods.

use std::sync::Arc;
use std::time::Duration;

use super::loss::Loss;
use super::opening::Opening;
use super::receiving::Around;
use super::sending::Sending;
use super::urges::Urges;
use super::{ConnectionStats, Options};
use crate::agent::{Allowance, Count, Path, Recovering, SendView};
use crate::tcp::config::TcpConfig;
use crate::tcp::mtu::MtuSearch;
use crate::tcp::progress::Progress;
use crate::tcp::recovery::Phase;
use crate::tcp::senders::Senders;
use crate::tcp::timers::{Timer, Timers};
use crate::trace::StateName;
use crate::{Instant, Moment};

/// The receive side and the program are not among its parts.
pub(super) struct Outbound {
    pub(super) config: Arc<TcpConfig>,
    /// Set once the application has changed an option.
    pub(super) changed_options: Option<Box<Options>>,
    pub(super) state: StateName,
    pub(super) opening: Opening,
    pub(super) sending: Sending,
    pub(super) senders: Senders,
    pub(super) loss: Loss,
    pub(super) timers: Timers,
    pub(super) path: Path,
    pub(super) mtu: MtuSearch,
    pub(super) urges: Urges,
    pub(super) stats: ConnectionStats,
    pub(super) progress: Progress,
}

impl Outbound {
    pub(super) fn allowance(&self, now: Instant) -> Allowance {
        let mut from = Allowance::UNLIMITED;
        if self.loss.recovery.phase == Phase::Fast {
            from.flight_bytes = self.loss.recovery.window;
        }
        self.senders.narrow(now, &self.send_view(), from)
    }

    pub(super) fn send_view(&self) -> SendView<'_> {
        send_view(&self.sending, &self.path, &self.loss)
    }

    pub(super) fn arm_retransmit(&mut self, now: Instant) {
        self.timers.arm(Timer::Retransmit, self.loss.rtt.expiry(now));
    }

    /// What the receive side may see of the rest of the connection.
    pub(super) fn around(&self) -> Around<'_> {
        Around { agreed: &self.opening.agreed, path: &self.path, mss: self.sending.mss }
    }

    pub(super) fn rto(&self) -> Duration {
        self.loss.rtt.rto()
    }

    pub(super) fn arm_tail_probe(&mut self, now: Instant) {
        let uses_rack = self.opening.agreed.sack && self.config.rack;
        self.loss.arm_tail_probe(now, uses_rack, &self.path, &mut self.timers);
    }

    /// Starts the wait now, unless one is already running.
    pub(super) fn wait_for_ack(&mut self, now: Instant) {
        if self.sending.waiting_since == Moment::NEVER {
            self.sending.wait_from(now);
            if !self.timers.is_armed(Timer::UserTimeout) {
                self.timers.arm(Timer::UserTimeout, now + self.patience());
            }
        }
    }

    /// The time to wait for an acknowledgment before giving up; for a SYN at least three minutes (MUST-23).
    pub(super) fn patience(&self) -> Duration {
        if self.state.is_synchronized() { self.user_timeout() } else { self.config.syn_timeout }
    }
    pub(super) fn user_timeout(&self) -> Duration {
        self.changed_options.as_deref().map_or(self.config.user_timeout, |changed| changed.user_timeout)
    }
}

pub(super) fn send_view<'a>(sending: &Sending, path: &'a Path, loss: &Loss) -> SendView<'a> {
    let unsent_bytes = sending.unsent();
    SendView {
        mss: sending.mss,
        snd_una: sending.una,
        highest_ack: sending.highest_ack,
        snd_nxt: sending.nxt,
        flight: loss.flight(),
        unsent: Count {
            segments: if unsent_bytes == 0 { 0 } else { unsent_bytes.div_ceil(sending.mss.max(1)) },
            bytes: u64::from(unsent_bytes),
        },
        snd_wnd: sending.wnd,
        path,
        recovering: match loss.recovery.phase {
            Phase::Open => None,
            Phase::Fast => Some(Recovering::Fast { ssthresh: loss.recovery.ssthresh }),
            Phase::AfterTimeout => Some(Recovering::AfterTimeout),
        },
        ack_requests: sending.ack_requests,
        turn: sending.turn.unwrap_or_default(),
        lost_bytes: loss.board.lost_ever(),
        app_limited: sending.app_limited,
    }
}
