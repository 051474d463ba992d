//! Settings of a connection, and the two profiles they start from.

use std::time::Duration;

/// Everything about a TCP that is not an agent's. A profile sets all keys; single keys may then be overridden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Largest payload of a segment; the link's MTU may allow less.
    pub segment_bytes: u16,
    pub sack: bool,
    pub timestamps: bool,
    pub window_scale: bool,
    pub ecn: bool,
    /// RACK-TLP (RFC 8985); works only where SACK was negotiated.
    pub rack: bool,
    pub recovery: RecoveryStyle,
    /// Takes a reduction back when the loss was none (Eifel, F-RTO, D-SACK).
    pub undo: bool,
    pub limited_transmit: bool,
    pub nagle: bool,
    pub path_mtu_discovery: bool,
    /// An ICMP message makes packets over IPv4 no smaller than this. Where a path carries less, routers may cut them.
    /// A forged message could have every byte sent with forty of headers otherwise. Over IPv6 it is 1280.
    pub least_path_mtu: u16,
    pub send_buffer: BufferLimits,
    pub recv_buffer: BufferLimits,
    pub rto: RtoConfig,
    pub keep_alive: Option<KeepAlive>,
    /// How long sent data may stay unacknowledged before the connection is given up (RFC 9293 §3.8.3, R2). A peer that
    /// answers probes of its closed window may take longer; for a quarter of an hour once the application has left.
    pub user_timeout: Duration,
    /// The same for SYN; RFC 9293 MUST-23 wants at least 3 minutes.
    pub syn_timeout: Duration,
    /// Maximum segment lifetime; TIME-WAIT lasts twice that.
    pub msl: Duration,
    /// How long a connection that the application has left waits for the peer's FIN.
    pub fin_wait_2: Duration,
    pub hop_limit: u8,
    pub hops: HopCounting,
    pub dscp: u8,
    pub ack_merge: AckMerge,
    /// Allowed for tests of the ceiling alone; RFC 9293 MUST-40 wants less than 500 ms.
    pub ack_ceiling: Duration,
}

/// A buffer begins with `initial` bytes of window and is tuned up to `max` as the connection shows a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    pub initial: u32,
    pub max: u32,
}

/// How much leaves during fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryStyle {
    /// RFC 9937.
    Prr,
    /// RFC 6582 window inflation with partial deflation: at most `per_ack` segments leave for an ACK.
    Inflate { per_ack: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    pub min: Duration,
    pub max: Duration,
    pub initial: Duration,
    pub measure: RttMeasure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttMeasure {
    /// Every ACK of new data gives a sample (RFC 7323, RFC 6298).
    EveryAck,
    /// One segment a round trip is timed, in whole ticks, as older stacks and ns-2 do. With timestamps, each ACK of new
    /// data gives a sample, in whole ticks too.
    OneTimed { tick: Duration },
}

/// How many links a path has, where no routing tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopCounting {
    /// Known beforehand: the hop limits of packets are not looked at.
    pub configured: Option<u8>,
    /// What peers write into packets that they send.
    pub peers_hop_limit: u8,
}

impl HopCounting {
    /// Neighbours are one hop apart, and each router takes one off. `crossings` of the routers are no radio's: see
    /// [`LinkConfig`](crate::endpoint::LinkConfig). None where the peer began with another number.
    pub(crate) fn hops(&self, hop_limit: u8, crossings: u8) -> Option<u8> {
        let steps = self.peers_hop_limit.checked_sub(hop_limit)?;
        steps.saturating_sub(crossings).checked_add(1)
    }
}

impl Default for HopCounting {
    fn default() -> HopCounting {
        HopCounting { configured: None, peers_hop_limit: 64 }
    }
}

/// Off unless asked for (RFC 9293 MUST-25); `idle` is at least two hours unless set (MUST-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    pub idle: Duration,
    pub interval: Duration,
    pub probes: u8,
}

impl KeepAlive {
    /// Timers of no length would run out for ever at one instant.
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

/// What happens to an ACK that still waits for the link when a later one is decided, both for data in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckMerge {
    /// Each leaves.
    Off,
    /// The later one leaves for both: what was read in a row is answered once.
    Read,
}

impl TcpConfig {
    /// What trials and hosts use.
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
pub const NS2_WINDOW_SEGMENTS: u32 = 2000;
