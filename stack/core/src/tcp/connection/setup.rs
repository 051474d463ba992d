//! Makes a connection: an active one, one from a SYN, or one from a SYN cookie.

use std::sync::Arc;

use super::loss::Loss;
use super::opening::Opening;
use super::receiving::Receiving;
use super::sending::Sending;
use super::{Connection, ConnectionStats, Events, Flow, Origin, Outbound, Urges, own_shift};
use crate::Seq;
use crate::agent::{FastEnd, HopSource, Path, ReceiverAgent, SenderAgents, Tunables, Turn};
use crate::tcp::config::{AckMerge, RtoConfig, TcpConfig};
use crate::tcp::cx::Cx;
use crate::tcp::ledger::AckLedger;
use crate::tcp::mtu::{MtuSearch, Sizes};
use crate::tcp::progress::Progress;
use crate::tcp::rtt::RttEstimator;
use crate::tcp::senders::Senders;
use crate::tcp::timers::Timers;
use crate::trace::{Lacking, StateName, TraceKind};
use crate::wire::{Flags, SourceRoute, TcpOptions, TcpView};

/// The parts of a new connection.
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
    /// The endpoint's choice; the connection's own settings may also switch it on.
    pub(crate) ack_merge: AckMerge,
    pub(crate) source_route: Option<Box<SourceRoute>>,
    /// RCV.NXT of the connection that made way for this one.
    pub(crate) follows: Option<Seq>,
}

/// The options that a SYN cookie has room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CookieOpening {
    pub(crate) mss: u16,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
}

/// Opens a new connection of ours.
pub(crate) fn open_active(cx: &mut Cx<'_>, connection: &mut Connection) {
    connection.enter(cx, StateName::SynSent);
    connection.begin_syn(cx.now);
}

/// Opens a new connection for a SYN to a listener.
pub(crate) fn open_passive(cx: &mut Cx<'_>, connection: &mut Connection, syn: &TcpView<'_>) {
    connection.enter(cx, StateName::SynReceived);
    connection.take_syn(cx, syn);
    connection.begin_syn(cx.now);
}

impl CookieOpening {
    /// Opens a new connection by an ACK with a valid cookie. The handshake is over, and it agreed on little.
    pub(crate) fn open(self, cx: &mut Cx<'_>, connection: &mut Connection, ack: &TcpView<'_>) {
        let needs = connection.wishes().of_all();
        let options = TcpOptions {
            mss: Some(self.mss),
            window_scale: self.window_scale,
            sack_permitted: self.sack,
            timestamps: ack.options.timestamps,
            ..TcpOptions::default()
        };
        let mut flags = Flags::SYN;
        if self.ecn {
            flags = flags | Flags::ECE | Flags::CWR;
        }
        let syn = TcpView { seq: ack.seq - 1, flags, options, payload: &[], ..*ack };
        connection.enter(cx, StateName::SynReceived);
        connection.take_syn(cx, &syn);
        connection.out.sending.syn_left();
        if needs.peer_cwnd || needs.dup_count || needs.ack_after || needs.ack_rate {
            cx.trace(TraceKind::Fallback(Lacking::OptionsUnderCookie));
        }
    }
}

impl Setup {
    /// Makes the connection. It is opened where it stays, since it is too large to be moved at each step.
    pub(crate) fn make(self, origin: Origin) -> Connection {
        let config = self.config;
        let merge = if self.ack_merge == AckMerge::Read { AckMerge::Read } else { config.ack_merge };
        let iss = self.iss;
        let senders = Senders::new(self.senders);
        let tunables = tuned(&config, &senders);
        let mut rtt = RttEstimator::new(&RtoConfig { min: tunables.rto_min, ..config.rto }, iss.0 % 1000);
        rtt.factor = tunables.rto_factor.max(1);
        let turn = senders.member().map(|_| Turn::Free);
        let peer_ip = self.flow.remote.ip();
        let (link, known, least) = (self.link_mtu, self.path_mtu, config.least_path_mtu);
        let sizes = Sizes { link, known, least, discovers: config.path_mtu_discovery };
        let ledger = AckLedger::new(self.receiver, self.shadows, config.ack_ceiling, merge);
        let hops = config.hops.configured.map(|hops| (hops, HopSource::Config));
        let mut opening = Opening::new(self.flow, origin, self.ts_offset, self.source_route);
        let mut receiving = Receiving::new(config.recv_buffer.initial.max(1 << own_shift(&config)), ledger);
        if let Some(received) = self.follows {
            opening.follows = true;
            receiving.irs = received;
        }
        let mss = u32::from(opening.peer_mss);
        let out = Outbound {
            changed_options: None,
            state: StateName::Closed,
            opening,
            sending: Sending::new(iss, config.send_buffer.initial, mss, turn),
            loss: Loss::new(iss, rtt, &tunables),
            timers: Timers::new(),
            path: Path { hops_to_peer: hops, hops_from_peer: hops, ..Path::default() },
            mtu: MtuSearch::new(peer_ip, sizes),
            urges: Urges::default(),
            stats: ConnectionStats::default(),
            progress: Progress::new(iss),
            senders,
            config,
        };
        Connection { number: self.number, out, receiving, closed: None, events: Events::default() }
    }
}

fn tuned(config: &TcpConfig, senders: &Senders) -> Tunables {
    let (rto_min, fast_end) = (config.rto.min, FastEnd::FullAck);
    let mut tunables = Tunables { dup_threshold: 3, rto_min, rto_factor: 1, rto_held: 0, fast_end };
    senders.tune(&mut tunables);
    tunables
}
