//! A connection's report about itself: the data of Linux's `TCP_INFO`, and the work of the agents.

use std::time::Duration;

use super::sending::Sending;
use super::{CloseReason, Connection, Flow};
use crate::agent::{AgentSpecs, Allowance, CWND_GAUGE, Count, Path, SSTHRESH_GAUGE, Turn};
use crate::tcp::progress::BusyTime;
use crate::tcp::recovery::Phase;
use crate::tcp::timers::Timer;
use crate::trace::{Lacking, StateName};
use crate::{Instant, Seq};

/// Counters since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Segments with data, retransmissions included.
    pub segments_sent: u64,
    pub segments_retransmitted: u64,
    pub bytes_sent: u64,
    pub bytes_acked: u64,
    /// Segments of any kind that came in for this connection.
    pub segments_received: u64,
    pub segments_in_order: u64,
    pub segments_out_of_order: u64,
    /// Segments with data that had already arrived.
    pub segments_duplicate: u64,
    /// In-order payload.
    pub bytes_received: u64,
    /// Pure ACKs, repeated ones included.
    pub acks_sent: u64,
    pub acks_repeated: u64,
    pub timeouts: u32,
    pub fast_retransmits: u32,
    pub tail_probes: u32,
    pub window_probes: u32,
    /// Reductions of cwnd that were taken back.
    pub undone: u32,
    /// Reports of the peer that something arrived twice (RFC 2883).
    pub dsacks: u32,
}

/// A snapshot of a connection.
#[derive(Clone, Debug)]
pub struct Info {
    pub flow: Flow,
    pub state: StateName,
    pub closed: Option<CloseReason>,
    /// Specs of the agents, in their canonical form.
    pub receiver: String,
    pub senders: String,
    pub shadows: String,
    pub stats: ConnectionStats,
    /// The part of `bytes_sent` that was sent before.
    pub bytes_retransmitted: u64,
    pub path: Path,
    pub rto: Duration,
    pub backoff: u8,
    pub snd_una: Seq,
    pub snd_nxt: Seq,
    pub rcv_nxt: Seq,
    pub snd_mss: u32,
    pub peer_mss: u32,
    /// Payload of the peer's full segments; zero before any came.
    pub rcv_mss: u32,
    /// The MSS that our SYN announced.
    pub told_mss: u32,
    pub path_mtu: u16,
    /// The bytes that the sender agents allow in flight.
    pub allowed_bytes: u64,
    /// The cwnd that its owner allows, from the first data on; other agents may allow less.
    pub cwnd_bytes: Option<u64>,
    /// `u64::MAX` while none was ever set.
    pub ssthresh_bytes: u64,
    pub flight: Count,
    pub lost: Count,
    pub sacked: Count,
    pub is_recovering: bool,
    /// Bytes per second over the last round trip that was full of data, or over a later one that was faster.
    pub delivery_rate: Option<u64>,
    /// Bytes per second that the sender agents' pacing allows.
    pub pacing_rate: Option<u64>,
    pub busy_time: BusyTime,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    /// The current limits of the buffers; both are tuned.
    pub send_buffer_bytes: u32,
    pub recv_buffer_bytes: u32,
    pub unsent_bytes: u32,
    pub unread_bytes: u32,
    pub out_of_order_bytes: u32,
    pub owed_segments: u32,
    /// Second full-sized segments that the receiver agent left open (RFC 9293 SHLD-19).
    pub seconds_held: u32,
    pub has_sack: bool,
    pub has_timestamps: bool,
    pub has_ecn: bool,
    pub window_scales: Option<(u8, u8)>,
    pub is_frozen: bool,
    /// The place among the flows to the same peer that take turns.
    pub turn: Turn,
    /// Probes since the window closed, or since the peer fell silent.
    pub probes: u8,
    pub since_last_sent: Option<Duration>,
    pub since_last_received: Option<Duration>,
    /// Features that the peer did not agree to or has not used so far, such as ACK-rate requests that it never sent.
    /// Agents then follow their written fallbacks. Empty before the peer answered.
    pub receiver_lacks: Vec<Lacking>,
    pub senders_lack: Vec<Lacking>,
    /// ACKs that each shadow would have sent.
    pub shadow_acks: Vec<u64>,
    /// The total time that the first segments of these ACKs would have waited.
    pub shadow_holds: Vec<Duration>,
    /// The agents' own measures.
    pub gauges: Vec<(&'static str, u64)>,
}

impl Info {
    pub(super) fn of(connection: &Connection, now: Instant, specs: &AgentSpecs) -> Info {
        let mut gauges = Vec::new();
        connection.senders.gauges(&mut |name, value| gauges.push((name, value)));
        connection.receiving.ledger().gauges(&mut |name, value| gauges.push((name, value)));
        let gauge = |wanted| gauges.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        let allowed = connection.allowance(now);
        let has_answer = connection.state != StateName::SynSent;
        Info {
            cwnd_bytes: gauge(CWND_GAUGE),
            ssthresh_bytes: gauge(SSTHRESH_GAUGE).unwrap_or(connection.loss.recovery().ssthresh),
            flow: connection.flow(),
            state: connection.state,
            closed: connection.closed,
            receiver: specs.receiver.clone(),
            senders: specs.senders.clone(),
            shadows: specs.shadows.clone(),
            stats: connection.stats,
            bytes_retransmitted: connection
                .stats
                .bytes_sent
                .saturating_sub(connection.stats.bytes_acked + u64::from(connection.sending.outstanding())),
            path: connection.path,
            rto: connection.loss.rtt().rto(),
            backoff: connection.loss.rtt().backoff(),
            snd_una: connection.sending.una(),
            snd_nxt: connection.sending.nxt(),
            rcv_nxt: connection.receiving.nxt(),
            snd_mss: connection.sending.mss(),
            peer_mss: u32::from(connection.opening.peer_mss()),
            rcv_mss: connection.receiving.segment_bytes(connection.sending.mss()),
            told_mss: u32::from(connection.opening.own_mss(connection.mtu.link())),
            path_mtu: connection.mtu.size(),
            allowed_bytes: allowed.flight_bytes,
            flight: connection.loss.flight(),
            lost: connection.loss.board().lost(),
            sacked: connection.loss.board().sacked(),
            is_recovering: connection.loss.recovery().phase != Phase::Open,
            delivery_rate: connection.progress.delivery_rate(),
            pacing_rate: pacing_rate(&connection.sending, &allowed),
            busy_time: connection.progress.busy_time(now),
            snd_wnd: connection.sending.window(),
            rcv_wnd: connection.receiving.advertised_bytes(),
            send_buffer_bytes: connection.sending.buffer().limit(),
            recv_buffer_bytes: connection.receiving.buffer().limit(),
            unsent_bytes: connection.sending.unsent(),
            unread_bytes: connection.receiving.buffer().readable(),
            out_of_order_bytes: connection.receiving.buffer().out_of_order_bytes(),
            owed_segments: connection.receiving.ledger().owed().segments,
            seconds_held: connection.receiving.ledger().seconds_held(),
            has_sack: connection.opening.agreed().sack,
            has_timestamps: connection.opening.agreed().timestamps,
            has_ecn: connection.opening.sends_ect(),
            window_scales: connection.opening.agreed().scale.map(|scale| (scale.snd, scale.rcv)),
            is_frozen: connection.timers.is_armed(Timer::Frozen),
            turn: connection.sending.turn().unwrap_or_default(),
            probes: connection.urges.window_probes_sent().max(connection.urges.keep_alives_sent()),
            since_last_sent: connection.sending.last_sent_at().get().map(|at| now.since(at)),
            since_last_received: connection.receiving.last_arrival().get().map(|at| now.since(at)),
            receiver_lacks: if has_answer { connection.unmet().for_receiver() } else { Vec::new() },
            senders_lack: if has_answer { connection.unmet().for_senders() } else { Vec::new() },
            shadow_acks: connection.receiving.ledger().shadow_acks().collect(),
            shadow_holds: connection.receiving.ledger().shadow_holds().collect(),
            gauges,
        }
    }
}

/// The bytes that leave at once, divided by the time until the agents allow the next ones.
fn pacing_rate(sending: &Sending, allowed: &Allowance) -> Option<u64> {
    let gap = allowed.new_from.since(sending.last_sent_at().get()?);
    let bytes = allowed.burst_bytes.min(sending.mss());
    let rate = u128::from(bytes) * 1_000_000_000 / Some(gap.as_nanos()).filter(|ns| *ns > 0)?;
    u64::try_from(rate).ok()
}
