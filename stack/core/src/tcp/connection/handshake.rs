//! How a connection begins: actively, from a SYN, or from a SYN cookie; and what both sides agree on.

use std::sync::Arc;
use std::time::Duration;

use super::ingress::{Arrived, Disposition};
use super::lacking::Unmet;
use super::loss::Loss;
use super::opening::{Opening, Wishes};
use super::receiving::Receiving;
use super::sending::Sending;
use super::{CloseReason, Connection, Events, Flow, Origin, Urges, own_shift};
use crate::agent::{
    Count, HopSource, LossKind, Path, ReceiverAgent, Rule, SenderAgents, Tunables, Turn, Why,
};
use crate::tcp::config::{AckMerge, RttMeasure, TcpConfig};
use crate::tcp::cx::Cx;
use crate::tcp::ledger::{AckKind, AckLedger};
use crate::tcp::mtu::{Discovery, MtuSearch, Sizes};
use crate::tcp::progress::Progress;
use crate::tcp::rtt::{RtoBounds, RttEstimator, RttMode};
use crate::tcp::senders::Senders;
use crate::tcp::timers::{Timer, Timers};
use crate::trace::{DropReason, Lacking, StateName, TraceKind};
use crate::wire::{Flags, SourceRoute, TcpOptions, TcpView};
use crate::{Instant, Seq};

/// Everything that a new connection is made of.
pub(crate) struct Setup {
    pub(crate) number: u32,
    pub(crate) flow: Flow,
    pub(crate) config: Arc<TcpConfig>,
    pub(crate) receiver: Box<dyn ReceiverAgent>,
    pub(crate) shadows: Vec<Box<dyn ReceiverAgent>>,
    pub(crate) senders: SenderAgents,
    pub(crate) iss: Seq,
    pub(crate) ts_offset: u32,
    pub(crate) link_mtu: u16,
    pub(crate) path_mtu: Option<u16>,
    /// The endpoint's; the connection's own settings may want it besides.
    pub(crate) ack_merge: AckMerge,
    pub(crate) source_route: Option<Box<SourceRoute>>,
}

/// What a SYN cookie had room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CookieOpening {
    pub(crate) mss: u16,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
}

impl Connection {
    pub(crate) fn open_active(cx: &mut Cx<'_>, setup: Setup) -> Connection {
        let mut connection = Connection::new(setup, Origin::Active);
        connection.enter(cx, StateName::SynSent);
        connection.begin_syn(cx.now);
        connection
    }

    /// A SYN came to a listener.
    pub(crate) fn open_passive(cx: &mut Cx<'_>, setup: Setup, syn: &TcpView<'_>) -> Connection {
        let mut connection = Connection::new(setup, Origin::Passive);
        connection.enter(cx, StateName::SynReceived);
        connection.take_syn(cx, syn);
        connection.begin_syn(cx.now);
        connection
    }

    /// An ACK brought back a valid cookie: the handshake is over, and it could carry little.
    pub(crate) fn open_from_cookie(
        cx: &mut Cx<'_>,
        setup: Setup,
        cookie: CookieOpening,
        ack: &TcpView<'_>,
    ) -> Connection {
        let mut connection = Connection::new(setup, Origin::Passive);
        let needs = connection.wishes().of_all();
        let options = TcpOptions {
            mss: Some(cookie.mss),
            window_scale: cookie.window_scale,
            sack_permitted: cookie.sack,
            timestamps: ack.options.timestamps,
            ..TcpOptions::default()
        };
        let mut flags = Flags::SYN;
        if cookie.ecn {
            flags = flags | Flags::ECE | Flags::CWR;
        }
        let syn = TcpView { seq: ack.seq - 1, flags, options, payload: &[], ..*ack };
        connection.enter(cx, StateName::SynReceived);
        connection.take_syn(cx, &syn);
        connection.sending.syn_left();
        if needs.peer_cwnd || needs.dup_count || needs.ack_after || needs.ack_rate {
            cx.trace(TraceKind::Fallback(Lacking::OptionsUnderCookie));
        }
        connection
    }

    fn new(setup: Setup, origin: Origin) -> Connection {
        let config = setup.config;
        let senders = Senders::new(setup.senders);
        let tunables = tuned(&config, &senders);
        let turn = senders.member().map(|_| Turn::Free);
        let peer_ip = setup.flow.remote.ip();
        let discovery = if config.path_mtu_discovery { Discovery::On } else { Discovery::Off };
        let sizes = Sizes { link: setup.link_mtu, known: setup.path_mtu, least: config.least_path_mtu };
        let iss = setup.iss;
        let merge = if setup.ack_merge == AckMerge::Read { AckMerge::Read } else { config.ack_merge };
        let ledger = AckLedger::new(setup.receiver, setup.shadows, config.ack_ceiling, merge);
        let hops = config.hops.configured.map(|hops| (hops, HopSource::Config));
        let opening = Opening::new(setup.flow, origin, setup.ts_offset, setup.source_route);
        let mss = u32::from(opening.peer_mss());
        Connection {
            number: setup.number,
            changed_options: None,
            state: StateName::Closed,
            opening,
            closed: None,
            sending: Sending::new(iss, config.send_buffer.initial, mss, turn),
            receiving: Receiving::new(config.recv_buffer.initial.max(1 << own_shift(&config)), ledger),
            loss: Loss::new(iss, rtt_estimator(&config, &tunables, iss), &tunables),
            timers: Timers::new(),
            path: Path { hops_to_peer: hops, hops_from_peer: hops, ..Path::default() },
            mtu: MtuSearch::new(peer_ip, sizes, discovery),
            urges: Urges::default(),
            events: Events::default(),
            stats: super::ConnectionStats::default(),
            progress: Progress::new(iss),
            senders,
            config,
        }
    }

    fn begin_syn(&mut self, now: Instant) {
        self.urges.set_syn(true);
        self.sending.wait_from(now);
        self.timers.arm(Timer::UserTimeout, now + self.patience());
    }

    pub(super) fn wishes(&self) -> Wishes {
        Wishes { receiver: self.receiving.needs(), senders: self.senders.needs() }
    }

    pub(super) fn unmet(&self) -> Unmet<'_> {
        Unmet {
            wishes: self.wishes(),
            opening: &self.opening,
            path: &self.path,
            is_synchronized: self.state.is_synchronized(),
            is_unasked: !self.receiving.was_asked() && self.stats.bytes_received > 0,
        }
    }

    #[cold]
    pub(super) fn update_mss(&mut self) {
        self.sending.set_mss(self.opening.full_payload(&self.mtu, &self.config));
    }

    /// Takes the peer's SYN or SYN-ACK: its number and everything that it offers.
    fn take_syn(&mut self, cx: &mut Cx<'_>, syn: &TcpView<'_>) {
        let wishes = self.wishes();
        self.opening.take_syn(syn, wishes, &self.config);
        let agreed = self.opening.agreed();
        self.receiving.begin(cx.now, syn, agreed);
        self.sending.set_ack_requests(agreed.ack_requests());
        self.unmet().trace_fallbacks(cx);
        self.update_mss();
        self.sending.begin_window(syn);
    }
}

/// RFC 9293 §3.10.7.3: an answer to our SYN, or the peer's own SYN when both open at once.
impl Connection {
    #[cold]
    pub(super) fn handle_in_syn_sent(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) -> Disposition {
        let segment = arrived.segment;
        let has_ack = segment.flags.contains(Flags::ACK);
        let is_our_ack =
            has_ack && segment.ack == self.sending.nxt() && self.sending.nxt() != self.sending.iss();
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
        self.take_syn(cx, segment);
        if is_our_ack {
            self.complete_open(cx, arrived);
        } else {
            // Both sides opened at once (MUST-10): our SYN goes again, now with an ACK.
            self.enter(cx, StateName::SynReceived);
            self.urges.set_syn(true);
        }
        Disposition::Done
    }

    fn complete_open(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>) {
        self.establish(cx, arrived.segment);
        self.count_hops(cx, arrived);
        if arrived.segment.sequence_len() > 1 {
            self.take_data(cx, arrived);
            self.take_fin(cx, arrived);
        }
        // One ACK for the SYN and for what came with it, whatever the agent thinks of that.
        if arrived.segment.sequence_len() == 1 || !self.receiving.has_decided_all() {
            self.force_ack(cx, AckKind::InOrder, Why::plain(Rule::Forced));
        }
    }

    /// The handshake is over: our SYN is acknowledged.
    #[cold]
    pub(super) fn establish(&mut self, cx: &mut Cx<'_>, segment: &TcpView<'_>) {
        self.sending.open();
        self.timers.disarm(Timer::UserTimeout);
        self.timers.disarm(Timer::Retransmit);
        self.sample_handshake(cx, segment);
        self.unmet().trace_unmeasured(cx);
        self.begin_after_lost_syn(cx);
        self.enter(cx, StateName::Established);
        self.events.connected = true;
        self.urges.set_syn(false);
        self.sending.expect_window_of(segment);
        self.take_window(cx, segment);
        self.note_alive(cx);
    }

    /// A SYN that timed out leaves one segment to begin with (RFC 5681 §3.1). Agents are told now, when the size of a
    /// segment is known.
    fn begin_after_lost_syn(&mut self, cx: &Cx<'_>) {
        let nth = self.loss.take_syn_timeouts();
        if nth > 0 {
            self.ask_for_reduction(cx, LossKind::Timeout { nth }, Count::default());
        }
    }
}

fn tuned(config: &TcpConfig, senders: &Senders) -> Tunables {
    let mut tunables = Tunables { dup_threshold: 3, rto_min: config.rto.min, rto_factor: 1, rto_held: 0 };
    senders.tune(&mut tunables);
    tunables
}

fn rtt_estimator(config: &TcpConfig, tunables: &Tunables, iss: Seq) -> RttEstimator {
    let mode = match config.rto.measure {
        RttMeasure::EveryAck => RttMode::Modern { granularity: Duration::from_millis(1) },
        // The phase of the tick clock is as random as the initial sequence number.
        RttMeasure::OneTimed { tick } => RttMode::Ticks { tick, phase: tick * (iss.0 % 1000) / 1000 },
    };
    let bounds = RtoBounds { min: tunables.rto_min, max: config.rto.max, initial: config.rto.initial };
    let mut rtt = RttEstimator::new(mode, bounds);
    rtt.set_factor(tunables.rto_factor);
    rtt
}
