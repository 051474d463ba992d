//! What is heard of the path from outside: ICMP errors (RFC 5927), and routing, which may freeze a connection or
//! say what has arrived (`elfn`, TCP-pgy).
//!
//! None of it ends an established connection, and none of it moves `snd_una`.

use std::time::Duration;

use super::acks::{AckNews, micros};
use super::ends::End;
use super::{Arrived, CloseReason, Connection};
use crate::agent::{HopSource, Path, PathEvent, PathReaction};
use crate::tcp::cx::Cx;
use crate::tcp::timers::Timer;
use crate::trace::{DropReason, MtuHow, StateName, TraceKind};
use crate::wire::IcmpKind;
use crate::{Instant, Seq};

impl Connection {
    /// An ICMP error quotes a segment of ours. It is advice, when the quoted number is one in flight (RFC 5927
    /// §4.1): a blind attacker has to guess it.
    pub(crate) fn handle_icmp(
        &mut self,
        cx: &mut Cx<'_>,
        kind: IcmpKind,
        quoted: Seq,
        lowered_mtu: Option<u16>,
    ) {
        let is_in_flight = self.sending.una() <= quoted && quoted < self.sending.max();
        if !is_in_flight || self.state == StateName::Closed {
            cx.dropped(DropReason::IcmpUnverified);
            return;
        }
        match kind {
            IcmpKind::PacketTooBig { .. } => self.lower_mtu(cx, lowered_mtu),
            // Source quench says nothing that loss does not (RFC 6633, MUST-55).
            IcmpKind::SourceQuench => {}
            IcmpKind::Unreachable { code } => {
                cx.trace(TraceKind::IcmpError { kind: 3, code });
                let is_hard =
                    self.opening.remote().is_ipv4() && matches!(code, 2 | 3) || self.is_v6_port(code);
                self.note_icmp(cx, (3, code), is_hard);
            }
            IcmpKind::TimeExceeded { code } => {
                cx.trace(TraceKind::IcmpError { kind: 11, code });
                self.note_icmp(cx, (11, code), false);
            }
            IcmpKind::ParameterProblem { code, .. } => {
                cx.trace(TraceKind::IcmpError { kind: 12, code });
                self.note_icmp(cx, (12, code), false);
            }
        }
    }

    /// Nobody answers for the next hop's address. Only our own link can say so, and so it is believed where an attempt
    /// to open is still waiting (RFC 5461 §4.1).
    pub(crate) fn handle_undelivered(&mut self, cx: &mut Cx<'_>) {
        const HOST_UNREACHABLE: (u8, u8) = (3, 1);
        let (kind, code) = HOST_UNREACHABLE;
        cx.trace(TraceKind::IcmpError { kind, code });
        self.note_icmp(cx, HOST_UNREACHABLE, true);
    }

    fn is_v6_port(&self, code: u8) -> bool {
        self.opening.remote().is_ipv6() && code == 4
    }

    /// "No such protocol or port" ends an attempt to open (SHLD-26); everything else is passed on as a soft error
    /// (MUST-56, RFC 5461).
    fn note_icmp(&mut self, cx: &mut Cx<'_>, error: (u8, u8), is_hard: bool) {
        if is_hard && self.state == StateName::SynSent {
            self.finish(cx, CloseReason::Unreachable);
        } else if self.options().report_errors {
            self.events.icmp = Some(error);
        }
    }

    /// What is too large is sent again in smaller pieces at once, and cwnd is left alone (RFC 1191 §6.5).
    fn lower_mtu(&mut self, cx: &mut Cx<'_>, lowered: Option<u16>) {
        let Some(size) = lowered.filter(|size| *size >= smallest_mtu(self.opening.remote())) else {
            cx.dropped(DropReason::IcmpUnverified);
            return;
        };
        if self.mtu.on_icmp(size) {
            self.path_mtu_changed(cx, MtuHow::Icmp);
            // A router has dropped everything larger than it carries, even what we do not make smaller.
            self.loss.lose_larger(self.opening.carried_by(self.mtu.told()).min(self.sending.mss()));
        }
    }

    pub(crate) fn path_mtu(&self) -> u16 {
        self.mtu.told()
    }

    /// `rcv_nxt`, if in-order data came within the last `window`.
    pub(crate) fn received_since(&self, now: Instant, window: Duration) -> Option<Seq> {
        let is_recent = self.receiving.last_arrival().get().is_some_and(|at| now.since(at) <= window);
        (is_recent && self.stats.bytes_received > 0).then_some(self.receiving.nxt())
    }

    /// Routing speaks.
    pub(crate) fn handle_path(&mut self, cx: &mut Cx<'_>, event: &PathEvent, path: &Path) {
        self.path.hops_to_peer = path.hops_to_peer.or(self.path.hops_to_peer.filter(not_by_routing));
        let from_peer = path.hops_from_peer.or(self.path.hops_from_peer.filter(not_by_routing));
        self.set_hops_from_peer(cx, from_peer);
        if from_peer.is_none() {
            self.receiving.forget_hop_limit(); // The next segment tells.
        }
        self.path.link_bps = path.link_bps;
        if !self.state.is_synchronized() {
            return;
        }
        let view = super::send_view(&self.sending, &self.path, &self.loss);
        for reaction in self.senders.on_path(event, &view) {
            match reaction {
                PathReaction::None => {}
                PathReaction::Freeze { probe_every } => self.freeze(cx, probe_every),
                PathReaction::RaiseHighestAck(seq) => self.raise_highest_ack(cx, seq),
            }
        }
        if *event == PathEvent::RouteFound && self.timers.is_armed(Timer::Frozen) {
            self.urges.set_frozen_probe(true);
        }
    }

    /// Only routing and the configuration know better than the hop limit of what came.
    #[inline]
    pub(super) fn count_hops(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) {
        if self.receiving.take_hop_limit(arrived) {
            self.recount_hops(cx, arrived);
        }
    }

    fn recount_hops(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) {
        if self.path.hops_from_peer.is_none_or(|(_, source)| source == HopSource::Ttl) {
            let counted = self.config.hops.hops(arrived.hop_limit, arrived.crossings);
            self.set_hops_from_peer(cx, counted.map(|hops| (hops, HopSource::Ttl)));
        }
    }

    fn set_hops_from_peer(&mut self, cx: &mut Cx<'_>, hops: Option<(u8, HopSource)>) {
        if self.path.hops_from_peer != hops {
            self.path.hops_from_peer = hops;
            let (hops, source) = hops.map_or((0, None), |(hops, source)| (hops, Some(source)));
            cx.trace(TraceKind::Hops { from_peer: hops, source });
        }
    }

    fn freeze(&mut self, cx: &mut Cx<'_>, probe_every: Duration) {
        if self.loss.board().is_empty() {
            return; // Nothing is under way that a timeout could punish.
        }
        if !self.timers.is_armed(Timer::Frozen) {
            cx.trace(TraceKind::Frozen);
        }
        for timer in [Timer::Retransmit, Timer::TailProbe, Timer::Reorder, Timer::Persist] {
            self.timers.disarm(timer);
        }
        self.urges.set_probe_every(micros(probe_every.max(SHORTEST_PROBE)));
        self.timers.arm(Timer::Frozen, cx.now + self.urges.probe_every());
    }

    pub(super) fn on_frozen_timer(&mut self, now: Instant) {
        self.urges.set_frozen_probe(true);
        self.timers.arm(Timer::Frozen, now + self.urges.probe_every());
    }

    /// Any acceptable ACK shows that the path is back; the RTO is what it was.
    pub(super) fn thaw_on(&mut self, cx: &mut Cx<'_>, news: &AckNews) {
        if !self.timers.is_armed(Timer::Frozen) || (news.advanced == 0 && !news.is_dup) {
            return;
        }
        self.timers.disarm(Timer::Frozen);
        self.urges.set_frozen_probe(false);
        cx.trace(TraceKind::Thawed);
        if !self.loss.board().is_empty() && !self.ladder().has_probe_out() {
            self.arm_retransmit(cx.now);
        }
    }

    /// Believed only within what is in flight; nothing is sampled and nothing grows by it.
    fn raise_highest_ack(&mut self, cx: &mut Cx<'_>, seq: Seq) {
        if self.sending.raise_highest_ack(seq) {
            self.urges.forget_timeouts_above();
            cx.trace(TraceKind::HighestAckRaised { to: seq });
        }
    }

    /// After a timeout: once, something above or the last segment below asks; if that stays unanswered the raised
    /// number is given up, else a lost last ACK would leave both sides waiting for ever.
    pub(super) fn lower_highest_ack(&mut self) {
        let highest_ack = self.sending.highest_ack();
        if highest_ack <= self.sending.una() {
            return;
        }
        let has_lost_above = self.loss.board().next_lost(highest_ack).is_some();
        if self.urges.doubts_highest_ack(has_lost_above) {
            self.sending.lower_highest_ack();
        }
    }
}

/// Faster probing than this would be a flood.
const SHORTEST_PROBE: Duration = Duration::from_millis(10);

fn not_by_routing((_, source): &(u8, HopSource)) -> bool {
    *source != HopSource::Routing
}

fn smallest_mtu(remote: &End) -> u16 {
    if remote.is_ipv4() { 68 } else { 1280 }
}
