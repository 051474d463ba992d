//! A connection's report about itself: the data of Linux's `TCP_INFO`, and the work of the agents.

use std::time::Duration;

use super::sending::Sending;
use super::{CloseReason, Connection, Flow};
use crate::agent::{AgentSpecs, Allowance, CWND_GAUGE, Count, Path, SSTHRESH_GAUGE, Turn};
use crate::tcp::progress::BusyTime;
use crate::tcp::recovery::Phase;
use crate::trace::{Lacking, StateName};
use crate::{Instant, Seq};

/// Counters since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Segments with data, retransmissions included.
    pub segments_sent: u64,
    /// Those sent again: after losses, as tail probes, or as probes of a frozen path.
    pub segments_retransmitted: u64,
    /// Payload, each retransmission included.
    pub bytes_sent: u64,
    /// Payload that the peer has acknowledged cumulatively.
    pub bytes_acked: u64,
    /// Segments of any kind that came in for this connection.
    pub segments_received: u64,
    /// Segments with data that moved `rcv_nxt`, those that filled a hole included.
    pub segments_in_order: u64,
    /// Segments with data above a hole that were kept.
    pub segments_out_of_order: u64,
    /// Segments with data that had already arrived.
    pub segments_duplicate: u64,
    /// In-order payload.
    pub bytes_received: u64,
    /// Pure ACKs, repeated ones included.
    pub acks_sent: u64,
    /// Those that an agent had repeated in case the first was lost.
    pub acks_repeated: u64,
    /// Retransmission timeouts, those of SYNs included.
    pub timeouts: u32,
    /// Starts of fast recovery; each may retransmit several segments.
    pub fast_retransmits: u32,
    /// RFC 8985 §7.
    pub tail_probes: u32,
    /// Probes of a closed window (RFC 9293 §3.8.6.1).
    pub window_probes: u32,
    /// Reductions of cwnd that were taken back.
    pub undone: u32,
    /// Reports of the peer that something arrived twice (RFC 2883).
    pub dsacks: u32,
}

/// A snapshot of a connection.
#[derive(Clone, Debug)]
pub struct Info {
    /// Our socket and the peer's.
    pub flow: Flow,
    /// RFC 9293 §3.3.2.
    pub state: StateName,
    /// None while the connection lives. Unread data may outlive it.
    pub closed: Option<CloseReason>,
    /// Specs of the agents, in their canonical form.
    pub receiver: String,
    /// A list: the owner of cwnd, and the agents that narrow it.
    pub senders: String,
    /// A list: receiver agents that only watch.
    pub shadows: String,
    /// They are never reset.
    pub stats: ConnectionStats,
    /// The part of `bytes_sent` that was sent before.
    pub bytes_retransmitted: u64,
    /// RTT, hops and link rate, as the agents see them.
    pub path: Path,
    /// The timeout in force, back-off included.
    pub rto: Duration,
    /// Doublings in `rto` (RFC 6298 §5.5).
    pub backoff: u8,
    /// The oldest unacknowledged number.
    pub snd_una: Seq,
    /// The number that new data gets next.
    pub snd_nxt: Seq,
    /// The next number expected from the peer.
    pub rcv_nxt: Seq,
    /// Payload of our full segments in bytes, options taken off.
    pub snd_mss: u32,
    /// The option of the peer's SYN; without it 536 over IPv4 and 1220 over IPv6.
    pub peer_mss: u32,
    /// Payload of the largest segment that came, but at least `snd_mss`.
    pub rcv_mss: u32,
    /// The MSS that our SYN announced.
    pub told_mss: u32,
    /// The largest packet that we send, in bytes, by ICMP reports and by our own probes.
    pub path_mtu: u16,
    /// The bytes that the sender agents, and in fast recovery its window, allow in flight.
    pub allowed_bytes: u64,
    /// The cwnd that its owner allows, from the first data on; other agents may allow less.
    pub cwnd_bytes: Option<u64>,
    /// `u64::MAX` while none was ever set.
    pub ssthresh_bytes: u64,
    /// Sent, and not acknowledged, reported by SACK or lost (the pipe of RFC 6675).
    pub flight: Count,
    /// Judged lost, and not retransmitted yet.
    pub lost: Count,
    /// Reported by SACK above `snd_una`.
    pub sacked: Count,
    /// True in fast recovery, and in the repair after a timeout.
    pub is_recovering: bool,
    /// Bytes per second over the last round trip that was full of data, or over a later one that was faster.
    pub delivery_rate: Option<u64>,
    /// Bytes per second that the sender agents' pacing allows.
    pub pacing_rate: Option<u64>,
    /// The time in which there was data to send, and the limits on it.
    pub busy_time: BusyTime,
    /// The peer's window in bytes, with its scale applied.
    pub snd_wnd: u32,
    /// Bytes from `rcv_nxt` on that the peer may send.
    pub rcv_wnd: u32,
    /// The current limits of the buffers; both are tuned.
    pub send_buffer_bytes: u32,
    /// Unread bytes and those above holes share it.
    pub recv_buffer_bytes: u32,
    /// Written by the program, and never sent.
    pub unsent_bytes: u32,
    /// In order, and not read by the program.
    pub unread_bytes: u32,
    /// Bytes above the first hole.
    pub out_of_order_bytes: u32,
    /// In-order segments since the last ACK.
    pub owed_segments: u32,
    /// Second full-sized segments that the receiver agent left open (RFC 9293 SHLD-19).
    pub seconds_held: u32,
    /// True if both SYNs offered SACK.
    pub has_sack: bool,
    /// True if both SYNs offered timestamps.
    pub has_timestamps: bool,
    /// True if our new data is sent as ECT(0).
    pub has_ecn: bool,
    /// The shifts of the peer's windows and of ours; None without window scaling.
    pub window_scales: Option<(u8, u8)>,
    /// True if an agent has stopped the RTO over a broken route, and no ACK has come since.
    pub is_frozen: bool,
    /// The place among the flows to the same peer that take turns.
    pub turn: Turn,
    /// Probes since the window closed, or since the peer fell silent.
    pub probes: u8,
    /// None before data or a SYN has left.
    pub since_last_sent: Option<Duration>,
    /// None before any segment has come.
    pub since_last_received: Option<Duration>,
    /// Features that the peer did not agree to or has not used so far, such as ACK-rate requests that it never sent.
    /// Agents then follow their written fallbacks. Empty before the peer answered.
    pub receiver_lacks: Vec<Lacking>,
    /// The same of the sender agents. They measure the RTT themselves, so it is not missed.
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
        connection.out.senders.gauges(&mut |name, value| gauges.push((name, value)));
        connection.receiving.ledger.gauges(&mut |name, value| gauges.push((name, value)));
        let gauge = |wanted| gauges.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        let allowed = connection.out.allowance(now);
        let has_answer = connection.out.state != StateName::SynSent;
        Info {
            cwnd_bytes: gauge(CWND_GAUGE),
            ssthresh_bytes: gauge(SSTHRESH_GAUGE).unwrap_or(connection.out.loss.recovery.ssthresh),
            flow: connection.flow(),
            state: connection.out.state,
            closed: connection.closed,
            receiver: specs.receiver.clone().into_owned(),
            senders: specs.senders.clone().into_owned(),
            shadows: specs.shadows.clone().into_owned(),
            stats: connection.out.stats,
            bytes_retransmitted: connection.out.stats.bytes_sent.saturating_sub(
                connection.out.stats.bytes_acked + u64::from(connection.out.sending.outstanding()),
            ),
            path: connection.out.path.clone(),
            rto: connection.out.loss.rtt.rto(),
            backoff: connection.out.loss.rtt.backoff,
            snd_una: connection.out.sending.una,
            snd_nxt: connection.out.sending.nxt,
            rcv_nxt: connection.receiving.nxt,
            snd_mss: connection.out.sending.mss,
            peer_mss: u32::from(connection.out.opening.peer_mss),
            rcv_mss: connection.receiving.segment_bytes(connection.out.sending.mss),
            told_mss: u32::from(connection.out.opening.own_mss(connection.out.mtu.link)),
            path_mtu: connection.out.mtu.size(),
            allowed_bytes: allowed.flight_bytes,
            flight: connection.out.loss.flight(),
            lost: connection.out.loss.board.lost(),
            sacked: connection.out.loss.board.sacked(),
            is_recovering: connection.out.loss.recovery.phase != Phase::Open,
            delivery_rate: connection.out.progress.delivery_rate(),
            pacing_rate: pacing_rate(&connection.out.sending, &allowed),
            busy_time: connection.out.progress.busy_time(now),
            snd_wnd: connection.out.sending.wnd,
            rcv_wnd: connection.receiving.advertised_bytes(),
            send_buffer_bytes: connection.out.sending.buffer.limit(),
            recv_buffer_bytes: connection.receiving.buffer.limit(),
            unsent_bytes: connection.out.sending.unsent(),
            unread_bytes: connection.receiving.buffer.readable(),
            out_of_order_bytes: connection.receiving.buffer.ranges.bytes(),
            owed_segments: connection.receiving.ledger.owed().segments,
            seconds_held: connection.receiving.ledger.seconds_held,
            has_sack: connection.out.opening.agreed.sack,
            has_timestamps: connection.out.opening.agreed.timestamps,
            has_ecn: connection.out.opening.sends_ect(),
            window_scales: connection.out.opening.agreed.scale.map(|scale| (scale.snd, scale.rcv)),
            is_frozen: connection.out.is_frozen(),
            turn: connection.out.sending.turn.unwrap_or_default(),
            probes: connection.out.urges.window_probes_sent.max(connection.out.urges.keep_alives_sent),
            since_last_sent: connection.out.sending.last_sent_at.get().map(|at| now.since(at)),
            since_last_received: connection.receiving.last_arrival.get().map(|at| now.since(at)),
            receiver_lacks: if has_answer { connection.unmet().for_receiver() } else { Vec::new() },
            senders_lack: if has_answer { connection.unmet().for_senders() } else { Vec::new() },
            shadow_acks: connection.receiving.ledger.shadow_acks().collect(),
            shadow_holds: connection.receiving.ledger.shadow_holds().collect(),
            gauges,
        }
    }
}

/// The bytes that leave at once, divided by the time until the agents allow the next ones.
fn pacing_rate(sending: &Sending, allowed: &Allowance) -> Option<u64> {
    let gap = allowed.new_from.since(sending.last_sent_at.get()?);
    let bytes = allowed.burst_bytes.min(sending.mss);
    let rate = u128::from(bytes) * 1_000_000_000 / Some(gap.as_nanos()).filter(|ns| *ns > 0)?;
    u64::try_from(rate).ok()
}
