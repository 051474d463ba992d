//! Opening: the agreement that the two ends make in their handshake. It decides the options and the payload of all
//! later segments.
//!
//! This part knows no sequence number and no buffer. Other parts read its fields. It changes them itself, or in its
//! submodules: `offer` writes SYNs, `negotiated` is the agreement, `sizes` counts headers.

mod negotiated;
mod offer;
mod sizes;

pub(super) use negotiated::Negotiated;
use negotiated::Scale;
pub(super) use offer::Wishes;
use offer::is_ecn_setup;
pub(crate) use offer::own_shift;

use std::time::Duration;

use super::ends::{End, Ends};
use super::{Flow, Origin};
use crate::Instant;
use crate::narrow::low_u16;
use crate::tcp::config::{RttMeasure, TcpConfig};
use crate::trace::Lacking;
use crate::wire::{Flags, SourceRoute, TcpView};

/// An older echo is the peer's mistake, or an attack on our RTO.
const MOST_BELIEVABLE: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct Opening {
    pub(super) ends: Ends,
    pub(super) origin: Origin,
    pub(super) agreed: Negotiated,
    /// The most payload and options that the peer accepts in one segment.
    pub(super) peer_mss: u16,
    /// Added to our timestamps, so that they begin at another value for each connection.
    ts_offset: u32,
    /// The source route of our packets, if one is prescribed.
    source_route: Option<Box<SourceRoute>>,
    /// True once a SYN or SYN-ACK of ours left without ECN.
    plain_syn_sent: bool,
    pub(super) syns_sent: u8,
    /// True if a connection in TIME-WAIT made way for this one.
    pub(super) follows: bool,
}

impl Opening {
    pub(super) fn new(
        flow: Flow,
        origin: Origin,
        ts_offset: u32,
        source_route: Option<Box<SourceRoute>>,
    ) -> Opening {
        let ends = Ends::from(flow);
        Opening {
            ends,
            origin,
            agreed: Negotiated::default(),
            peer_mss: sizes::default_mss(&ends),
            ts_offset,
            source_route,
            plain_syn_sent: false,
            syns_sent: 0,
            follows: false,
        }
    }

    pub(super) fn remote(&self) -> &End {
        &self.ends.remote
    }

    /// Takes the offers of the peer's SYN or SYN-ACK.
    pub(super) fn take_syn(&mut self, syn: &TcpView<'_>, wishes: Wishes, config: &TcpConfig) {
        self.agreed = self.negotiate(syn, wishes, config);
        self.peer_mss = syn.options.mss.unwrap_or_else(|| sizes::default_mss(&self.ends));
    }

    /// Takes a repeated SYN of the peer. It may have given up ECN; then the peer need not get marks (RFC 3168 §6.1.1).
    pub(super) fn take_syn_again(&mut self, flags: Flags) {
        self.agreed.ecn &= is_ecn_setup(flags);
    }

    pub(super) fn syn_left(&mut self, flags: Flags) {
        self.plain_syn_sent |= !flags.contains(Flags::ECE);
        self.syns_sent = self.syns_sent.saturating_add(1);
    }

    /// RFC 3168 §6.1.1: after a SYN or SYN-ACK of ours without ECN, our data is not ECN-capable. The peer's own marks
    /// are still echoed as agreed.
    pub(super) fn sends_ect(&self) -> bool {
        self.agreed.ecn && !self.plain_syn_sent
    }

    /// Timestamp clock: one tick a millisecond.
    pub(super) fn ts_now(&self, now: Instant) -> u32 {
        now.millis_u32().wrapping_add(self.ts_offset)
    }

    /// The round trip of an echo in whole milliseconds, rounded up: the clock may have ticked once more than it shows.
    pub(super) fn echoed_rtt(&self, now: Instant, echo: u32) -> Option<Duration> {
        let ticks = self.ts_now(now).wrapping_sub(echo);
        let rtt = Duration::from_millis(u64::from(ticks) + 1);
        (echo != 0 && rtt < MOST_BELIEVABLE).then_some(rtt)
    }

    /// Returns whether one segment at a time is timed. With timestamps every ACK is a sample, as in ns-2
    /// (`ts_option_`).
    pub(super) fn uses_one_timed(&self, config: &TcpConfig) -> bool {
        matches!(config.rto.measure, RttMeasure::OneTimed { .. }) && !self.agreed.timestamps
    }

    /// The identification of the first packet. It is made from a secret and from the clock of sequence numbers, so that
    /// a stranger learns nothing (RFC 7739).
    pub(super) fn first_identification(&self, iss: crate::Seq) -> u16 {
        let first = (self.ts_offset >> 16) as u16;
        first.wrapping_add(low_u16(u64::from(iss.0 >> 8)))
    }
    pub(super) fn source_route(&self) -> Option<&SourceRoute> {
        self.source_route.as_deref()
    }

    /// RFC 9293 MUST-53, SHLD-24: a passive connection answers over the reverse route of the newest segment. A route of
    /// the application's choice stays (MUST-52). Returns whether the route has changed.
    pub(super) fn take_source_route(&mut self, route: Option<&SourceRoute>) -> bool {
        if self.origin == Origin::Passive
            && let Some(route) = route
            && self.source_route() != Some(route)
        {
            self.source_route = Some(Box::new(route.clone()));
            return true;
        }
        false
    }

    /// Adds the cookie as a cause if features are missing: its SYN-ACK had no room for their options.
    pub(super) fn with_cookie(&self, mut lacking: Vec<Lacking>, is_synchronized: bool) -> Vec<Lacking> {
        let is_cookie = self.origin == Origin::Passive && self.syns_sent == 0;
        if is_synchronized && is_cookie && !lacking.is_empty() {
            lacking.push(Lacking::OptionsUnderCookie);
        }
        lacking
    }

    /// Acts as if both SYNs had agreed on it.
    #[cfg(test)]
    pub(super) fn pretend_ecn(&mut self) {
        self.agreed.ecn = true;
        self.plain_syn_sent = false;
    }
}
