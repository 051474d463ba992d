//! Settings of a connection, and the two profiles that they start from.

use std::time::Duration;

/// All settings of a TCP that no agent decides. A profile sets every key; single keys may then be overridden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Largest payload of a segment; the link's MTU may allow less.
    pub segment_bytes: u16,
    /// True if selective acknowledgments are offered (RFC 2018).
    pub sack: bool,
    /// True if timestamps are offered (RFC 7323 §3). Their clock ticks every millisecond.
    pub timestamps: bool,
    /// True if window scaling is offered (RFC 7323 §2). Without it no window exceeds 65,535 bytes.
    pub window_scale: bool,
    /// True if ECN is offered (RFC 3168). If the peer agrees, new data is sent as ECT(0).
    pub ecn: bool,
    /// RACK-TLP (RFC 8985); works only where SACK was negotiated.
    pub rack: bool,
    /// It counts in fast recovery only; after a timeout the agents alone decide.
    pub recovery: RecoveryStyle,
    /// Takes a reduction of cwnd back when nothing was lost after all (Eifel, F-RTO, D-SACK).
    pub undo: bool,
    /// True if the first duplicate ACKs let new data leave (RFC 3042). With SACK they do so anyway.
    pub limited_transmit: bool,
    /// True if a short segment waits while data is unacknowledged (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// True if packets follow the path MTU (RFC 1191, 8201, 4821). Otherwise IPv6 packets have 1280 bytes at most.
    pub path_mtu_discovery: bool,
    /// An ICMP message makes packets over IPv4 no smaller than this. Routers may cut the packets where a path carries
    /// less. Without this floor, a forged message could make each byte cost forty bytes of headers. Over IPv6 the floor
    /// is 1280.
    pub least_path_mtu: u16,
    /// For data that the peer has not acknowledged, and data that has not left.
    pub send_buffer: BufferLimits,
    /// For data that the program has not read. Its `max` sets the window scale.
    pub recv_buffer: BufferLimits,
    /// The retransmission timeout (RFC 6298).
    pub rto: RtoConfig,
    /// None sends no keep-alives.
    pub keep_alive: Option<KeepAlive>,
    /// The longest time that sent data may stay unacknowledged before the connection is given up (RFC 9293 §3.8.3, R2).
    /// A peer that answers probes of its closed window may take longer. Once the application has left, that peer has a
    /// quarter of an hour.
    pub user_timeout: Duration,
    /// The same limit for a SYN; RFC 9293 MUST-23 wants at least 3 minutes.
    pub syn_timeout: Duration,
    /// Maximum segment lifetime; TIME-WAIT lasts twice that.
    pub msl: Duration,
    /// The time that a connection waits for the peer's FIN after the application has left.
    pub fin_wait_2: Duration,
    /// For all packets; TTL in IPv4. A peer counts hops from it by its own [`HopCounting::peers_hop_limit`].
    pub hop_limit: u8,
    /// The source of the number of hops where routing reports none.
    pub hops: HopCounting,
    /// The six bits of RFC 2474, for all packets.
    pub dscp: u8,
    /// [`AckMerge::Read`] holds whatever the links say; [`AckMerge::Off`] leaves it to them.
    pub ack_merge: AckMerge,
    /// The longest time without an ACK for in-order data; RFC 9293 MUST-40 wants less than 500 ms. Values other than
    /// the default are only for tests of the ceiling.
    pub ack_ceiling: Duration,
}

/// A buffer begins with `initial` bytes of window and grows up to `max` when the connection needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// In bytes. A receive buffer has at least one unit of its window scale.
    pub initial: u32,
    /// In bytes. If it equals `initial`, the size is fixed.
    pub max: u32,
}

/// The rule for the number of segments that leave during fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryStyle {
    /// RFC 9937.
    Prr,
    /// RFC 6582 window inflation with partial deflation: at most `per_ack` segments leave for an ACK.
    Inflate {
        /// Segments, retransmissions included.
        per_ack: u8,
    },
}

/// The retransmission timeout (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// The floor, which sender agents may change. RFC 6298 §2.4 has one second.
    pub min: Duration,
    /// The ceiling, back-off included. RFC 6298 §2.5 wants at least 60 s.
    pub max: Duration,
    /// Until the first sample, thus also for the SYN (RFC 6298 §2.1).
    pub initial: Duration,
    /// The samples that it is computed from.
    pub measure: RttMeasure,
}

/// The choice of the segments whose round trip is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttMeasure {
    /// Every ACK of new data gives a sample (RFC 7323, RFC 6298).
    EveryAck,
    /// Times one segment a round trip, in whole ticks, as older stacks and ns-2 do. With timestamps, each ACK of new
    /// data gives a sample, also in whole ticks.
    OneTimed {
        /// Not zero; ns-2 has 10 ms.
        tick: Duration,
    },
}

/// The number of links of a path, for use without routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopCounting {
    /// A number known beforehand: the hop limits of packets are ignored.
    pub configured: Option<u8>,
    /// The hop limit that peers write into the packets they send.
    pub peers_hop_limit: u8,
}

impl HopCounting {
    /// Neighbours are one hop apart, and each router takes one off. `crossings` of the routers are not radio hops; see
    /// [`LinkConfig`](crate::endpoint::LinkConfig). Returns None if the peer began with a larger number.
    pub fn hops(&self, hop_limit: u8, crossings: u8) -> Option<u8> {
        let steps = self.peers_hop_limit.checked_sub(hop_limit)?;
        steps.saturating_sub(crossings).checked_add(1)
    }
}

impl Default for HopCounting {
    fn default() -> HopCounting {
        HopCounting { configured: None, peers_hop_limit: 64 }
    }
}

/// Keep-alives are off by default (RFC 9293 MUST-25). Unless set, `idle` is two hours (MUST-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The silence before the first probe; less than 10 ms counts as 10 ms.
    pub idle: Duration,
    /// The wait for the answer to a probe; less than 10 ms counts as 10 ms.
    pub interval: Duration,
    /// The connection is given up after this many unanswered probes.
    pub probes: u8,
}

impl KeepAlive {
    /// Keeps timers above zero: a timer without length would run out at the same instant for ever.
    pub(crate) fn with_time_between(self) -> KeepAlive {
        let least = Duration::from_millis(1);
        KeepAlive { idle: self.idle.max(least), interval: self.interval.max(least), ..self }
    }
}

impl Default for KeepAlive {
    fn default() -> KeepAlive {
        KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// The fate of an ACK that still waits for the link when a later ACK is decided. Both acknowledge data in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckMerge {
    /// Each ACK leaves.
    Off,
    /// The later ACK leaves for both: data that was read in a row is answered once.
    Read,
}

impl TcpConfig {
    /// The profile for trials and hosts.
    pub fn modern() -> TcpConfig {
        TcpConfig {
            segment_bytes: 65_495,
            sack: true,
            timestamps: true,
            window_scale: true,
            ecn: true,
            rack: true,
            recovery: RecoveryStyle::Prr,
            undo: true,
            limited_transmit: true,
            nagle: true,
            path_mtu_discovery: true,
            least_path_mtu: 552,
            send_buffer: BufferLimits { initial: 64 << 10, max: 4 << 20 },
            recv_buffer: BufferLimits { initial: 64 << 10, max: 6 << 20 },
            rto: RtoConfig {
                min: Duration::from_millis(200),
                max: Duration::from_secs(60),
                initial: Duration::from_secs(1),
                measure: RttMeasure::EveryAck,
            },
            keep_alive: None,
            user_timeout: Duration::from_secs(900),
            syn_timeout: Duration::from_secs(180),
            msl: Duration::from_secs(30),
            fin_wait_2: Duration::from_secs(60),
            hop_limit: 64,
            hops: HopCounting::default(),
            dscp: 0,
            ack_merge: AckMerge::Off,
            ack_ceiling: Duration::from_millis(490),
        }
    }

    /// Behaves as the TCP of the papers' simulator, for calibration against its figures.
    pub fn ns2(segment_bytes: u16) -> TcpConfig {
        let window = u32::from(segment_bytes) * NS2_WINDOW_SEGMENTS;
        TcpConfig {
            segment_bytes,
            sack: false,
            timestamps: false,
            ecn: false,
            rack: false,
            recovery: RecoveryStyle::Inflate { per_ack: 2 },
            undo: false,
            nagle: false,
            path_mtu_discovery: false,
            send_buffer: BufferLimits { initial: 2 * window, max: 2 * window },
            recv_buffer: BufferLimits { initial: window, max: window },
            rto: RtoConfig {
                min: Duration::from_millis(200),
                max: Duration::from_secs(60),
                initial: Duration::from_secs(3),
                measure: RttMeasure::OneTimed { tick: Duration::from_millis(10) },
            },
            ..TcpConfig::modern()
        }
    }
}

/// The fixed window of the papers' simulator.
pub(crate) const NS2_WINDOW_SEGMENTS: u32 = 2000;
