//! One TCP connection: its state and its parts, each with one task.
//!
//! Packets come in through [`ingress`]. Segments go out through [`egress`]; only [`emit`] writes them. [`acks`] digests
//! the peer's ACKs and [`repair`] retransmits lost data. [`signals`] acts on timers and on news of the path. The
//! program calls [`application`].
//!
//! Invariants (checked after every event in debug builds)
//! - C1: see [`sending`]; and the scoreboard spans exactly una..nxt (less the SYN).
//! - C2: see [`receiving`].
//! - C3: anything that waits to be sent has a timer, or waits for room on the link or for its turn. It may also wait
//!   for more data that the application has announced.

mod acks;
mod application;
mod egress;
mod emit;
mod ends;
mod hops;
mod info;
mod ingress;
mod lacking;
mod loss;
mod opening;
mod outbound;
mod receiving;
mod repair;
mod sending;
mod setup;
mod signals;
mod urges;

use std::time::Duration;

pub(crate) use egress::{Left, LinkHelp};
pub use ends::Flow;
pub(crate) use ends::{End, Ends};
pub use info::{ConnectionStats, Info};
pub(crate) use ingress::{Arrived, Disposition};
use lacking::Unmet;
use opening::Wishes;
pub(crate) use opening::own_shift;
use outbound::{Outbound, send_view};
use receiving::Receiving;
pub(crate) use setup::{CookieOpening, Setup, open_active, open_passive};
use urges::Urges;

use super::config::{KeepAlive, TcpConfig};
use super::cx::Cx;
use super::ledger::AckKind;
use super::timers::{Timer, Timers};
use crate::agent::{AckRule, AgentSpecs, Count, LossKind, Why};
use crate::narrow::low_u32;
use crate::trace::{DropReason, StateName, TraceKind};
use crate::wire::{Flags, TcpView};
use crate::{Instant, Seq};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Active,
    Passive,
}

pub(crate) struct Connection {
    pub(crate) number: u32,
    out: Outbound,
    receiving: Receiving,
    pub(crate) closed: Option<CloseReason>,
    pub(crate) events: Events,
}

/// An idle connection holds 1,600 bytes of heap at most, its agents and its place in the endpoint's tables included
/// (`tests/allocations`). State that few connections have at a time is boxed.
const _: () = assert!(size_of::<Connection>() <= 1240);

/// The options that the application may change while the connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// True if a short segment waits while data is unacknowledged (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// A change starts its timer anew; None stops it.
    pub keep_alive: Option<KeepAlive>,
    /// As [`TcpConfig::user_timeout`]. It also counts for data that already waits.
    pub user_timeout: Duration,
    /// For all packets from now on; TTL in IPv4.
    pub hop_limit: u8,
    /// The six bits of RFC 2474, for all packets from now on.
    pub dscp: u8,
    /// Soft errors (ICMP, many retransmissions) become events (RFC 9293 §3.9.1.8: a program may turn them off).
    pub report_errors: bool,
}

impl Options {
    pub(crate) fn from_config(config: &TcpConfig) -> Options {
        Options {
            nagle: config.nagle,
            keep_alive: config.keep_alive.map(KeepAlive::with_time_between),
            user_timeout: config.user_timeout,
            hop_limit: config.hop_limit,
            dscp: config.dscp,
            report_errors: true,
        }
    }
}

/// News for the application. Each kind is reported once until it is fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    pub(crate) connected: bool,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) peer_closed: bool,
    pub(crate) closed: bool,
    pub(crate) urgent: bool,
    pub(crate) struggling: bool,
    pub(crate) icmp: Option<(u8, u8)>,
    /// The application found no room and waits for some.
    pub(crate) wants_room: bool,
}

impl Events {
    pub(crate) fn any(&self) -> bool {
        self.connected
            || self.readable
            || self.writable
            || self.peer_closed
            || self.closed
            || self.urgent
            || self.struggling
            || self.icmp.is_some()
    }
}

impl Connection {
    pub(crate) fn ends(&self) -> &Ends {
        &self.out.opening.ends
    }

    pub(crate) fn flow(&self) -> Flow {
        self.out.opening.ends.into()
    }

    pub(crate) fn state(&self) -> StateName {
        self.out.state
    }
    #[inline]
    pub(crate) fn options(&self) -> Options {
        self.out
            .changed_options
            .as_deref()
            .map_or_else(|| Options::from_config(&self.out.config), |changed| *changed)
    }

    /// The number after all numbers that were sent; a successor begins above it.
    pub(crate) fn sent_up_to(&self) -> Seq {
        self.out.sending.max
    }

    pub(crate) fn received_up_to(&self) -> Seq {
        self.receiving.nxt
    }

    /// The next instant at which [`handle_timeout`](Connection::handle_timeout) may have something to do, or never. It
    /// is no later than the first deadline, and exact after `handle_timeout`.
    pub(crate) fn deadline(&self) -> Instant {
        self.receiving.ledger.due.min(self.out.timers.wake())
    }

    fn enter(&mut self, cx: &mut Cx<'_>, state: StateName) {
        if self.out.state != state {
            self.out.state = state;
            cx.trace(TraceKind::State(state));
        }
    }

    /// Ends the connection: it sends no more, but received data may still be read.
    #[cold]
    fn finish(&mut self, cx: &mut Cx<'_>, reason: CloseReason) {
        if self.closed.is_some() {
            return;
        }
        self.closed = Some(reason);
        if !self.out.state.peer_has_closed() {
            self.unmet().trace_never_asked(cx);
        }
        // At TIME-WAIT the application already had this event.
        self.events.closed |= self.out.state != StateName::TimeWait;
        self.enter(cx, StateName::Closed);
        self.out.timers = Timers::new();
        self.receiving.ledger.clear();
        self.receiving.ledger.relax();
        self.out.loss.board.clear();
        self.out.loss.board.relax();
        self.out.sending.drop_buffer();
        self.out.urges.finish();
        self.events.writable = false;
    }

    /// Sends an ACK that no agent may withhold.
    #[cold]
    fn force_ack(&mut self, cx: &mut Cx<'_>, kind: AckKind, why: Why) {
        self.receiving.force_ack(cx, kind, why, self.out.around());
    }

    pub(crate) fn info(&self, now: Instant, specs: &AgentSpecs) -> Info {
        Info::of(self, now, specs)
    }

    /// The heap bytes of this connection's own fields, for the test of allocations.
    pub(crate) fn allocated(&self) -> usize {
        size_of::<Connection>()
            + self.out.sending.buffer.allocated()
            + self.receiving.allocated()
            + self.out.loss.allocated()
            + self.out.changed_options.as_deref().map_or(0, size_of_val)
    }

    /// The bytes of its buffers and of its scoreboard.
    #[inline]
    pub(crate) fn buffered(&self) -> u32 {
        let bytes = self.out.sending.buffer.allocated()
            + self.receiving.buffer.ring_bytes()
            + self.out.loss.board.allocated();
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// A number that changes whenever data moves, towards the peer or to the program.
    pub(crate) fn moved(&self) -> u32 {
        low_u32(self.out.stats.bytes_acked).wrapping_add(self.receiving.read_to().0)
    }

    /// Returns whether data waits behind a closed window of the peer.
    pub(crate) fn is_stuck(&self) -> bool {
        self.out.is_blocked_by_window()
    }

    #[cfg(debug_assertions)]
    pub(crate) fn check(&self) {
        self.out.loss.board.check();
        self.out.sending.check();
        self.receiving.check();
        if let (Some(front), Some(back)) = (self.out.loss.board.front(), self.out.loss.board.back()) {
            assert_eq!(back.end(), self.out.sending.nxt, "C1");
            assert_eq!(front.seq, self.out.sending.first_held(), "C1");
        }
    }

    #[cfg(not(debug_assertions))]
    #[expect(clippy::unused_self, reason = "the checks are for debug builds")]
    pub(crate) fn check(&self) {}
}

/// The 32-bit form in which the trace keeps bytes.
fn in_32_bits(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The handshake.
impl Connection {
    fn begin_syn(&mut self, now: Instant) {
        self.out.urges.syn = true;
        self.out.sending.wait_from(now);
        self.out.timers.arm(Timer::UserTimeout, now + self.out.patience());
    }

    fn wishes(&self) -> Wishes {
        Wishes { receiver: self.receiving.ledger.needs(), senders: self.out.senders.needs() }
    }

    fn unmet(&self) -> Unmet<'_> {
        Unmet {
            wishes: self.wishes(),
            opening: &self.out.opening,
            path: &self.out.path,
            is_synchronized: self.out.state.is_synchronized(),
            is_unasked: !self.receiving.was_asked && self.out.stats.bytes_received > 0,
        }
    }

    #[cold]
    fn update_mss(&mut self) {
        self.out.sending.mss = self.out.opening.full_payload(&self.out.mtu, &self.out.config);
    }

    /// Takes the peer's SYN or SYN-ACK: its number and all its offers.
    fn take_syn(&mut self, cx: &mut Cx<'_>, syn: &TcpView<'_>) {
        let wishes = self.wishes();
        self.out.opening.take_syn(syn, wishes, &self.out.config);
        let agreed = &self.out.opening.agreed;
        self.receiving.begin(cx.now, syn, agreed);
        self.out.sending.ack_requests = agreed.ack_requests();
        self.unmet().trace_fallbacks(cx);
        self.update_mss();
        self.out.sending.begin_window(syn);
    }
}

/// RFC 9293 §3.10.7.3: an answer to our SYN, or the peer's own SYN when both open at once.
impl Connection {
    #[cold]
    fn handle_in_syn_sent(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Disposition {
        let segment = arrived.segment;
        let has_ack = segment.flags.contains(Flags::ACK);
        let is_our_ack =
            has_ack && segment.ack == self.out.sending.nxt && self.out.sending.nxt != self.out.sending.iss;
        if segment.flags.contains(Flags::RST) {
            if is_our_ack {
                self.finish(cx, CloseReason::Refused);
            } else {
                cx.dropped(DropReason::RstNotExact);
            }
            return Disposition::Done;
        }
        if has_ack && !is_our_ack {
            cx.dropped(DropReason::AckOfUnsent);
            return Disposition::Refuse;
        }
        if !segment.flags.contains(Flags::SYN) {
            cx.dropped(DropReason::NoAck);
            return Disposition::Done;
        }
        if self.out.opening.follows && !self.receiving.is_told_from_before(segment) {
            cx.dropped(DropReason::Paws);
            if !is_our_ack {
                // Any host can forge a bare SYN.
                return Disposition::Done;
            }
            self.finish(cx, CloseReason::Aborted);
            return Disposition::Refuse;
        }
        self.take_syn(cx, segment);
        if is_our_ack {
            self.complete_open(cx, arrived);
        } else {
            // Both sides opened at once (MUST-10): our SYN goes again, now with an ACK.
            self.enter(cx, StateName::SynReceived);
            self.out.urges.syn = true;
        }
        Disposition::Done
    }

    fn complete_open(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) {
        self.establish(cx, arrived.segment);
        if self.receiving.take_hop_limit(arrived) {
            hops::count(cx, arrived, &self.out.config, &mut self.out.path);
        }
        if arrived.segment.sequence_len() > 1 {
            self.take_data(cx, arrived);
            self.take_fin(cx, arrived);
        }
        // One ACK for the SYN and its data, whatever the agent decided.
        if arrived.segment.sequence_len() == 1 || !self.receiving.has_decided_all() {
            self.force_ack(cx, AckKind::InOrder, Why::plain(AckRule::Forced));
        }
    }

    /// The handshake is over: our SYN is acknowledged.
    #[cold]
    fn establish(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) {
        self.out.sending.open();
        self.out.timers.disarm(Timer::UserTimeout);
        self.out.timers.disarm(Timer::Retransmit);
        self.out.sample_handshake(cx, segment);
        self.unmet().trace_unmeasured(cx);
        self.begin_after_lost_syn(cx);
        self.enter(cx, StateName::Established);
        self.events.connected = true;
        self.out.urges.syn = false;
        self.out.sending.expect_window_of(segment);
        self.take_window(cx, segment);
        self.note_alive(cx);
    }

    /// A SYN that timed out leaves one segment to begin with (RFC 5681 §3.1). Agents learn of it here, once the size of
    /// a segment is known.
    fn begin_after_lost_syn(&mut self, cx: &Cx<'_>) {
        let nth = self.out.loss.take_syn_timeouts();
        if nth > 0 {
            self.out.ask_for_reduction(cx, LossKind::Timeout { nth }, Count::default());
        }
    }
}

impl Connection {
    pub(crate) fn segments_sent(&self) -> u64 {
        self.out.stats.segments_sent
    }

    /// The newest round trip and its number modulo 256.
    pub(crate) fn newest_rtt(&self) -> Option<(Duration, u8)> {
        self.out.loss.rtt.newest()
    }
}

#[cfg(test)]
pub(crate) mod tests;

// The reason why a connection is over.

/// The end of a connection, as its program gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both sides have closed and everything was delivered.
    Finished,
    /// The peer reset the connection.
    Reset,
    /// The peer refused to open it.
    Refused,
    /// The peer was silent for the user timeout, or did not answer the keep-alives.
    TimedOut,
    /// This side aborted.
    Aborted,
    /// The endpoint needed its memory or its place for other connections.
    GaveWay,
    /// ICMP or our link reported that the peer cannot be reached. This is believed only before the peer's SYN.
    Unreachable,
}
