//! How a connection begins: actively, from a SYN, or from a SYN cookie; and what both sides agree on.

use std::sync::Arc;
use std::time::Duration;

use super::lacking::Unmet;
use super::loss::Loss;
use super::opening::{Opening, Wishes};
use super::receiving::Receiving;
use super::sending::Sending;
use super::{Connection, Events, Flow, Origin, Urges, own_shift};
use crate::agent::{HopSource, Path, ReceiverAgent, SenderAgents, Tunables, Turn};
use crate::tcp::config::{AckMerge, RttMeasure, TcpConfig};
use crate::tcp::cx::Cx;
use crate::tcp::ledger::AckLedger;
use crate::tcp::mtu::{Discovery, MtuSearch, Sizes};
use crate::tcp::progress::Progress;
use crate::tcp::rtt::{RtoBounds, RttEstimator, RttMode};
use crate::tcp::senders::Senders;
use crate::tcp::timers::{Timer, Timers};
use crate::trace::{Lacking, StateName, TraceKind};
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
    pub(super) fn take_syn(&mut self, cx: &mut Cx<'_>, syn: &TcpView<'_>) {
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
