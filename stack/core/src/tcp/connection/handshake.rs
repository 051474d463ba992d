//! How a connection begins: actively, from a SYN, or from a SYN cookie; and what both sides agree on.

use std::sync::Arc;
use std::time::Duration;

use super::{Connection, Ecn, Events, Flow, Negotiated, Origin, Rcv, Scale, Snd, Urges};
use crate::agent::{HopSource, Needs, Path, ReceiverAgent, SenderAgents, Tunables, Turn};
use crate::tcp::config::{AckMerge, RttMeasure, TcpConfig};
use crate::tcp::cx::Cx;
use crate::tcp::ledger::AckLedger;
use crate::tcp::mtu::{Discovery, MtuSearch, Sizes};
use crate::tcp::progress::Progress;
use crate::tcp::recovery::Recovery;
use crate::tcp::rtt::{RtoBounds, RttEstimator, RttMode};
use crate::tcp::scoreboard::Scoreboard;
use crate::tcp::senders::Senders;
use crate::tcp::timers::{Timer, Timers};
use crate::trace::{Lacking, StateName, TraceKind};
use crate::wire::{
    Flags, HopwiseOption, OfferFlags, RateRequest, SourceRoute, TcpOptions, TcpView, Timestamps,
};
use crate::{Instant, Moment, Seq};

/// What a peer that names no MSS can take (RFC 9293 MUST-15).
const DEFAULT_MSS_V4: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1220;
/// Fixed part of a TCP header.
const TCP_HEADER: u16 = 20;
/// Timestamps with their padding.
const TIMESTAMPS_LEN: u32 = 12;

/// Everything that a new connection is made of.
pub(crate) struct Opening {
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
    pub(crate) fn open_active(cx: &mut Cx<'_>, opening: Opening) -> Connection {
        let mut connection = Connection::new(opening, Origin::Active);
        connection.enter(cx, StateName::SynSent);
        connection.begin_syn(cx.now);
        connection
    }

    /// A SYN came to a listener.
    pub(crate) fn open_passive(cx: &mut Cx<'_>, opening: Opening, syn: &TcpView<'_>) -> Connection {
        let mut connection = Connection::new(opening, Origin::Passive);
        connection.enter(cx, StateName::SynReceived);
        connection.take_syn(cx, syn);
        connection.begin_syn(cx.now);
        connection
    }

    /// An ACK brought back a valid cookie: the handshake is over, and it could carry little.
    pub(crate) fn open_from_cookie(
        cx: &mut Cx<'_>,
        opening: Opening,
        cookie: CookieOpening,
        ack: &TcpView<'_>,
    ) -> Connection {
        let mut connection = Connection::new(opening, Origin::Passive);
        let needs = connection.needs();
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
        connection.snd.nxt = connection.snd.iss + 1;
        connection.snd.max = connection.snd.nxt;
        if needs.peer_cwnd || needs.dup_count || needs.ack_after || needs.ack_rate {
            cx.trace(TraceKind::Fallback(Lacking::OptionsUnderCookie));
        }
        connection
    }

    fn new(opening: Opening, origin: Origin) -> Connection {
        let config = opening.config;
        let senders = Senders::new(opening.senders);
        let tunables = tuned(&config, &senders);
        let turn = senders.member().map(|_| Turn::Free);
        let peer_ip = opening.flow.remote.ip();
        let discovery = if config.path_mtu_discovery { Discovery::On } else { Discovery::Off };
        let sizes = Sizes { link: opening.link_mtu, known: opening.path_mtu, least: config.least_path_mtu };
        let iss = opening.iss;
        let merge = if opening.ack_merge == AckMerge::Read { AckMerge::Read } else { config.ack_merge };
        let hops = config.hops.configured.map(|hops| (hops, HopSource::Config));
        Connection {
            number: opening.number,
            flow: opening.flow.into(),
            changed_options: None,
            state: StateName::Closed,
            origin,
            closed: None,
            snd: Snd { turn, ..Snd::new(iss, config.send_buffer.initial, default_mss(&opening.flow)) },
            rcv: Rcv::new(config.recv_buffer.initial.max(1 << own_shift(&config))),
            peer: Negotiated::default(),
            ledger: AckLedger::new(opening.receiver, opening.shadows, config.ack_ceiling, merge),
            dup_threshold: tunables.dup_threshold,
            rto_held: tunables.rto_held,
            board: Scoreboard::default(),
            highest_sacked: None,
            recovery: Recovery::new(iss),
            rtt: rtt_estimator(&config, &tunables, iss),
            timers: Timers::new(),
            path: Path { hops_to_peer: hops, hops_from_peer: hops, ..Path::default() },
            mtu: MtuSearch::new(peer_ip, sizes, discovery),
            ecn: Ecn::default(),
            urges: Urges::default(),
            events: Events::default(),
            stats: super::ConnectionStats::default(),
            progress: Progress::new(iss),
            ts_offset: opening.ts_offset,
            source_route: opening.source_route,
            more_comes: false,
            probe_every_us: 0,
            senders,
            config,
        }
    }

    fn begin_syn(&mut self, now: Instant) {
        self.urges.syn = true;
        self.snd.waiting_since = Moment::at(now);
        self.timers.arm(Timer::UserTimeout, now + self.patience());
    }

    fn needs(&self) -> Needs {
        self.ledger.needs().union(self.senders.needs())
    }

    /// The SYN's own options (`reply`: what the peer offered, when this is a SYN-ACK).
    #[cold]
    pub(super) fn syn_options(&self, now: Instant) -> TcpOptions {
        let is_reply = self.state == StateName::SynReceived;
        let offer = if is_reply { self.agreed_offer() } else { self.own_offer() };
        let timestamps = if is_reply { self.peer.timestamps } else { self.config.timestamps };
        let sack = if is_reply { self.peer.sack } else { self.config.sack };
        let scale = if is_reply { self.peer.scale.is_some() } else { self.config.window_scale };
        let agreed = self.peer.tell_ack_rate || self.peer.use_ack_rate;
        let rate = if is_reply { agreed } else { self.needs().ack_rate };
        TcpOptions {
            mss: Some(self.own_mss()),
            window_scale: scale.then_some(own_shift(&self.config)),
            sack_permitted: sack,
            timestamps: timestamps.then(|| Timestamps {
                value: self.ts_now(now),
                echo: if is_reply { self.rcv.ts_recent } else { 0 },
            }),
            hopwise: (offer != OfferFlags::default()).then_some(HopwiseOption::Offer(offer)),
            rate_request: rate.then_some(RateRequest::Offer),
            ..TcpOptions::default()
        }
    }

    /// What the largest packet that reaches us may carry (RFC 9293 MUST-67, RFC 6691).
    pub(super) fn own_mss(&self) -> u16 {
        self.mtu.link().saturating_sub(self.ip_header_len() + TCP_HEADER)
    }

    pub(super) fn ip_header_len(&self) -> u16 {
        if self.flow.remote.is_ipv4() { 20 } else { 40 }
    }

    fn own_offer(&self) -> OfferFlags {
        let (receiver, sender) = (self.ledger.needs(), self.senders.needs());
        offer_flags([
            (sender.peer_cwnd, OfferFlags::TELL_CWND),
            (sender.cwnd_in_window, OfferFlags::TELL_IN_WINDOW),
            (receiver.peer_cwnd, OfferFlags::USE_CWND),
            (receiver.dup_count, OfferFlags::TELL_DUP_COUNT),
            (sender.dup_count, OfferFlags::USE_DUP_COUNT),
            (sender.ack_after, OfferFlags::TELL_ACK_AFTER),
            (receiver.ack_after, OfferFlags::USE_ACK_AFTER),
        ])
    }

    /// The intersection: I tell what you use, I use what you tell.
    fn agreed_offer(&self) -> OfferFlags {
        let agreed = self.peer;
        offer_flags([
            (agreed.tell_cwnd, OfferFlags::TELL_CWND),
            (agreed.use_in_window, OfferFlags::USE_IN_WINDOW),
            (agreed.use_cwnd, OfferFlags::USE_CWND),
            (agreed.tell_dup_count, OfferFlags::TELL_DUP_COUNT),
            (agreed.use_dup_count, OfferFlags::USE_DUP_COUNT),
            (agreed.tell_ack_after, OfferFlags::TELL_ACK_AFTER),
            (agreed.use_ack_after, OfferFlags::USE_ACK_AFTER),
        ])
    }

    /// Takes the peer's SYN or SYN-ACK: its number and everything that it offers.
    pub(super) fn take_syn(&mut self, cx: &mut Cx<'_>, syn: &TcpView<'_>) {
        let options = &syn.options;
        self.rcv.irs = syn.seq;
        self.rcv.nxt = syn.seq + 1;
        self.rcv.edge = self.rcv.nxt + self.rcv.buffer.limit().min(u32::from(u16::MAX));
        self.rcv.advertised = self.rcv.edge;
        self.rcv.last_ack_decided = self.rcv.nxt;
        self.rcv.last_told = self.rcv.nxt;
        self.peer = self.negotiate(syn);
        self.ledger.agree_on_sack(self.peer.sack);
        self.snd.ack_requests = self.peer.ack_requests();
        self.rcv.buffer.set_unit(1 << self.peer.scale.map_or(0, |scale| scale.rcv));
        self.trace_fallbacks(cx);
        if let Some(timestamps) = options.timestamps.filter(|_| self.peer.timestamps) {
            self.rcv.ts_recent = timestamps.value;
            self.rcv.ts_recent_at = cx.now;
        }
        self.snd.peer_mss = options.mss.unwrap_or_else(|| default_mss(&self.flow.into()));
        self.update_mss();
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        self.snd.wnd = u32::from(syn.window);
        self.snd.max_wnd = self.snd.wnd;
        self.snd.wl1 = syn.seq;
        self.snd.wl2 = if syn.flags.contains(Flags::ACK) { syn.ack } else { self.snd.iss };
    }

    fn negotiate(&self, syn: &TcpView<'_>) -> Negotiated {
        let (config, options) = (&self.config, &syn.options);
        let is_reply = syn.flags.contains(Flags::ACK);
        let scale = options.window_scale.filter(|_| config.window_scale);
        let theirs = match options.hopwise {
            Some(HopwiseOption::Offer(flags)) => flags,
            _ => OfferFlags::default(),
        };
        let mine = self.own_offer();
        let both = |own, other| mine.contains(own) && theirs.contains(other);
        Negotiated {
            timestamps: config.timestamps && options.timestamps.is_some(),
            sack: config.sack && options.sack_permitted,
            ecn: config.ecn && is_ecn_setup(syn.flags),
            scale: scale.map(|snd| Scale { snd, rcv: own_shift(config) }),
            tell_cwnd: both(OfferFlags::TELL_CWND, OfferFlags::USE_CWND),
            use_cwnd: both(OfferFlags::USE_CWND, OfferFlags::TELL_CWND),
            // Whoever opens asks, and a listener agrees: nothing else shows both that the other one knows.
            tell_in_window: is_reply && both(OfferFlags::TELL_IN_WINDOW, OfferFlags::USE_IN_WINDOW),
            use_in_window: self.origin == Origin::Passive
                && self.ledger.needs().peer_cwnd
                && theirs.contains(OfferFlags::TELL_IN_WINDOW),
            tell_dup_count: both(OfferFlags::TELL_DUP_COUNT, OfferFlags::USE_DUP_COUNT),
            use_dup_count: both(OfferFlags::USE_DUP_COUNT, OfferFlags::TELL_DUP_COUNT),
            tell_ack_after: both(OfferFlags::TELL_ACK_AFTER, OfferFlags::USE_ACK_AFTER),
            use_ack_after: both(OfferFlags::USE_ACK_AFTER, OfferFlags::TELL_ACK_AFTER),
            tell_ack_rate: self.senders.needs().ack_rate && options.rate_request.is_some(),
            use_ack_rate: self.ledger.needs().ack_rate && options.rate_request.is_some(),
        }
    }

    /// RFC 3168 §6.1.1: once a SYN or SYN-ACK left without ECN, the peer may not hear of marks. It may still mark, and
    /// is answered as agreed.
    #[inline]
    pub(super) fn sends_ect(&self) -> bool {
        self.peer.ecn && !self.ecn.plain_syn_sent
    }

    /// One end tells and the other uses: each is told when the peer does not do its part.
    fn trace_fallbacks(&self, cx: &mut Cx<'_>) {
        let mut told = Vec::new();
        for what in self.senders_miss_in_peer().into_iter().chain(self.receiver_misses_in_peer()) {
            if !told.contains(&what) {
                told.push(what);
                cx.trace(TraceKind::Fallback(what));
            }
        }
    }

    /// What the receiver agent does without.
    pub(super) fn receiver_lacks(&self) -> Vec<Lacking> {
        let of_path = self.unknown_of_path(self.ledger.needs());
        self.receiver_misses_in_peer().into_iter().chain(of_path).collect()
    }

    fn receiver_misses_in_peer(&self) -> Vec<Lacking> {
        let agreed = self.peer.receiver_lacks(self.ledger.needs());
        let unasked = self.was_never_asked().then_some(Lacking::RateRequest);
        self.with_cookie(agreed.chain(unasked).collect())
    }

    /// What agents would know of the path, and nothing has told so far.
    fn unknown_of_path(&self, needs: Needs) -> impl Iterator<Item = Lacking> {
        let no_hops = self.path.hops_from_peer.or(self.path.hops_to_peer).is_none();
        let unknown = [
            (needs.hops && no_hops, Lacking::Hops),
            (needs.rtt && self.path.rtt.min.is_none(), Lacking::Rtt),
        ];
        unknown.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what)
    }

    /// An end that obeys ACK-rate requests offers what one that sends them does: which of them the peer is, its data
    /// shows. So far nothing has asked.
    fn was_never_asked(&self) -> bool {
        self.peer.use_ack_rate && !self.rcv.was_asked && self.stats.bytes_received > 0
    }

    /// For when the peer's data is over.
    pub(super) fn trace_never_asked(&self, cx: &mut Cx<'_>) {
        if self.was_never_asked() {
            cx.trace(TraceKind::Fallback(Lacking::RateRequest));
        }
    }

    /// The handshake was not measured (Karn), and no timestamps will measure what comes.
    pub(super) fn trace_unmeasured(&self, cx: &mut Cx<'_>) {
        if self.ledger.needs().rtt && self.path.rtt.min.is_none() && !self.peer.timestamps {
            cx.trace(TraceKind::Fallback(Lacking::Rtt));
        }
    }

    /// A sender measures the path with its first data.
    pub(super) fn senders_lack(&self) -> Vec<Lacking> {
        let of_path = self.unknown_of_path(Needs { rtt: false, ..self.senders.needs() });
        self.senders_miss_in_peer().into_iter().chain(of_path).collect()
    }

    fn senders_miss_in_peer(&self) -> Vec<Lacking> {
        self.with_cookie(self.peer.senders_lack(self.senders.needs()).collect())
    }

    /// Nothing can be told of a SYN cookie's SYN-ACK, which had no room for what lacks.
    fn with_cookie(&self, mut lacking: Vec<Lacking>) -> Vec<Lacking> {
        let is_known = self.state.is_synchronized();
        if is_known && self.origin == Origin::Passive && self.urges.syns_sent == 0 && !lacking.is_empty() {
            lacking.push(Lacking::OptionsUnderCookie);
        }
        lacking
    }

    /// RFC 9293 §3.7.1: what fits the peer, the path and our own setting, less the options that every segment
    /// carries (RFC 6691).
    #[cold]
    pub(super) fn update_mss(&mut self) {
        let configured = u32::from(self.config.segment_bytes).max(1);
        let wanted = self.payload_of(self.mtu.size()).min(configured);
        // What others say has a floor; our own link is believed.
        let headers = self.fixed_header_bytes() + self.option_bytes();
        let from_link = u32::from(self.mtu.link()).saturating_sub(headers).max(1);
        self.snd.mss = wanted.min(from_link);
    }

    /// Payload of a packet of `size` octets.
    pub(super) fn payload_of(&self, size: u16) -> u32 {
        self.room_in(size).saturating_sub(self.option_bytes())
    }

    /// Payload and TCP options of a packet of `size` octets. The peer's MSS leaves out what fixed headers take, and
    /// nothing else.
    pub(super) fn room_in(&self, size: u16) -> u32 {
        let from_path = size.saturating_sub(self.ip_header_len() + TCP_HEADER);
        let room = u32::from(from_path.min(self.snd.peer_mss)).saturating_sub(self.route_bytes());
        room.max(LEAST_ROOM)
    }

    /// Payload that leaves in a packet of `size` octets, however little that is.
    pub(super) fn carried_by(&self, size: u16) -> u32 {
        let headers = self.fixed_header_bytes() + self.option_bytes();
        u32::from(size).saturating_sub(headers).min(self.snd.mss)
    }

    /// Size of a packet with `payload` octets.
    pub(super) fn packet_of(&self, payload: u32) -> u16 {
        u16::try_from(payload + self.fixed_header_bytes() + self.option_bytes()).unwrap_or(u16::MAX)
    }

    fn fixed_header_bytes(&self) -> u32 {
        u32::from(self.ip_header_len() + TCP_HEADER) + self.route_bytes()
    }

    fn route_bytes(&self) -> u32 {
        self.source_route.as_ref().map_or(0, |_| SOURCE_ROUTE_MOST)
    }

    /// Options on every data segment.
    fn option_bytes(&self) -> u32 {
        let timestamps = if self.peer.timestamps { TIMESTAMPS_LEN } else { 0 };
        timestamps + self.notes_len()
    }

    /// The most that our own option takes, padded to whole words.
    fn notes_len(&self) -> u32 {
        let fields = 2 * u32::from(self.peer.tell_cwnd && !self.peer.tell_in_window)
            + u32::from(self.peer.tell_dup_count)
            + u32::from(self.peer.tell_ack_after);
        let notes = if fields > 0 { 5 + fields } else { 0 };
        let rate = if self.peer.tell_ack_rate { 5 } else { 0 };
        (notes + rate).next_multiple_of(4)
    }
}

/// A SYN, or SYN-ACK, that offers ECN (RFC 3168 §6.1.1).
pub(super) fn is_ecn_setup(flags: Flags) -> bool {
    let ecn = Flags(flags.0 & (Flags::ECE | Flags::CWR).0);
    if flags.contains(Flags::ACK) { ecn == Flags::ECE } else { ecn == Flags::ECE | Flags::CWR }
}

/// Segments with less room for payload and options are not worth their headers, whatever a peer or a path says. RFC
/// 9293 §3.7.1 knows no floor; attackers do.
const LEAST_ROOM: u32 = 48;
/// An IPv4 header has 40 octets of options at most.
const SOURCE_ROUTE_MOST: u32 = 40;

fn default_mss(flow: &Flow) -> u16 {
    if flow.remote.is_ipv4() { DEFAULT_MSS_V4 } else { DEFAULT_MSS_V6 }
}

fn offer_flags<const N: usize>(bits: [(bool, OfferFlags); N]) -> OfferFlags {
    bits.iter().filter(|(on, _)| *on).fold(OfferFlags::default(), |flags, (_, bit)| flags.union(*bit))
}

/// The shift that lets the largest window we may ever offer fit in 16 bits (RFC 7323 §2.3).
pub(crate) fn own_shift(config: &TcpConfig) -> u8 {
    let mut shift = 0;
    while shift < 14 && (config.recv_buffer.max >> shift) > u32::from(u16::MAX) {
        shift += 1;
    }
    shift
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
