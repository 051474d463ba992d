//! What a node tells about itself, as it goes over the control socket.

use std::collections::BTreeMap;
use std::time::Duration;

use hopwise_core::tcp::Info;
use hopwise_core::trace::DropReason;
use hopwise_core::{Endpoint, Instant};
use hopwise_host::{LinkCounters, Stack};
use serde::{Deserialize, Serialize};

/// Connections that a snapshot shows one by one; of more it tells the number.
pub(crate) const MOST_SHOWN: usize = 1000;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) node: String,
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) uptime_s: f64,
    pub(crate) addresses: Vec<String>,
    pub(crate) links: Vec<LinkSnapshot>,
    /// All connections, also those that end by themselves.
    pub(crate) connections_open: usize,
    pub(crate) connections: Vec<ConnSnapshot>,
    /// Packets that went no further, by reason.
    pub(crate) drops: BTreeMap<String, u64>,
    pub(crate) relays: BTreeMap<String, u64>,
    pub(crate) capture: Option<CaptureSnapshot>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LinkSnapshot {
    pub(crate) name: String,
    pub(crate) received_packets: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) drops: BTreeMap<String, u64>,
    pub(crate) gone: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ConnSnapshot {
    pub(crate) id: u32,
    pub(crate) local: String,
    pub(crate) remote: String,
    pub(crate) state: String,
    pub(crate) receiver: String,
    pub(crate) sender: String,
    /// To the peer and from it, and who says so: `routing`, `ttl` or `config`.
    pub(crate) hops: Option<u8>,
    pub(crate) hops_source: Option<String>,
    pub(crate) hops_back: Option<u8>,
    pub(crate) hops_back_source: Option<String>,
    /// What the peer did not agree to, so that agents follow their written fallbacks.
    pub(crate) receiver_lacks: Vec<String>,
    pub(crate) sender_lacks: Vec<String>,
    pub(crate) cwnd_bytes: u64,
    pub(crate) flight_bytes: u64,
    pub(crate) rtt_ms: Option<f64>,
    pub(crate) rto_ms: f64,
    /// Over the last round trip that was full of data.
    pub(crate) delivery_kbps: Option<f64>,
    pub(crate) pacing_kbps: Option<f64>,
    /// Something was in flight; of this, held back by the peer's window, or by a full send buffer.
    pub(crate) busy_s: f64,
    pub(crate) held_by_window_s: f64,
    pub(crate) held_by_buffer_s: f64,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_delivered: u64,
    pub(crate) segments_sent: u64,
    pub(crate) segments_retransmitted: u64,
    pub(crate) segments_received: u64,
    pub(crate) timeouts: u32,
    pub(crate) fast_retransmits: u32,
    pub(crate) acks_sent: u64,
    pub(crate) acks_repeated: u64,
    /// Pure ACKs for each data segment that came; nothing before the first came.
    pub(crate) acks_per_segment: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CaptureSnapshot {
    pub(crate) file: String,
    pub(crate) packets_written: u64,
    pub(crate) bytes_written: u64,
    pub(crate) packets_missed: u64,
    pub(crate) events_missed: u64,
    pub(crate) packets_unwritten: u64,
    pub(crate) last_error: Option<String>,
}

impl Snapshot {
    /// What the stack alone knows; it holds the endpoint's lock, and looks at a bounded number of connections.
    pub(crate) fn of_stack(stack: &Stack) -> Snapshot {
        let (connections_open, connections, drops, uptime) = stack.with(|now, endpoint| {
            (endpoint.connections(), connections(now, endpoint), drops(endpoint), now.since(Instant::ZERO))
        });
        Snapshot {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_s: uptime.as_secs_f64(),
            links: stack.counters().iter().map(LinkSnapshot::of).collect(),
            connections_open,
            connections,
            drops,
            ..Snapshot::default()
        }
    }
}

fn connections(now: Instant, endpoint: &Endpoint) -> Vec<ConnSnapshot> {
    let ids = endpoint.ids().take(MOST_SHOWN);
    let one = |id| {
        let info = endpoint.info(now, id).ok()?;
        Some(ConnSnapshot::of(endpoint.trace_number(id).unwrap_or(0), &info))
    };
    ids.filter_map(one).collect()
}

fn drops(endpoint: &Endpoint) -> BTreeMap<String, u64> {
    let all = DropReason::ALL.iter().map(|reason| (reason.name().to_owned(), endpoint.drops(*reason)));
    all.filter(|(_, count)| *count > 0).collect()
}

impl LinkSnapshot {
    fn of(counters: &LinkCounters) -> LinkSnapshot {
        let LinkCounters { name, received, sent, drops, is_gone } = counters;
        LinkSnapshot {
            name: name.clone(),
            received_packets: received.packets,
            received_bytes: received.bytes,
            sent_packets: sent.packets,
            sent_bytes: sent.bytes,
            drops: drops.iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
            gone: *is_gone,
        }
    }
}

fn kbps(bytes_per_s: u64) -> f64 {
    bytes_per_s as f64 * 8.0 / 1000.0
}

impl ConnSnapshot {
    pub(crate) fn of(id: u32, info: &Info) -> ConnSnapshot {
        let stats = &info.stats;
        let data_segments = stats.segments_in_order + stats.segments_out_of_order + stats.segments_duplicate;
        ConnSnapshot {
            id,
            local: info.flow.local.to_string(),
            remote: info.flow.remote.to_string(),
            state: info.state.name().to_owned(),
            receiver: info.receiver.clone(),
            sender: info.senders.clone(),
            hops: info.path.hops_to_peer.map(|(hops, _)| hops),
            hops_source: info.path.hops_to_peer.map(|(_, source)| source.name().to_owned()),
            hops_back: info.path.hops_from_peer.map(|(hops, _)| hops),
            hops_back_source: info.path.hops_from_peer.map(|(_, source)| source.name().to_owned()),
            receiver_lacks: info.receiver_lacks.iter().map(|what| what.name().to_owned()).collect(),
            sender_lacks: info.senders_lack.iter().map(|what| what.name().to_owned()).collect(),
            cwnd_bytes: info.allowed_bytes,
            delivery_kbps: info.delivery_rate.map(kbps),
            pacing_kbps: info.pacing_rate.map(kbps),
            busy_s: info.busy_time.busy.as_secs_f64(),
            held_by_window_s: info.busy_time.held_by_window.as_secs_f64(),
            held_by_buffer_s: info.busy_time.held_by_buffer.as_secs_f64(),
            flight_bytes: info.flight.bytes,
            rtt_ms: info.path.rtt.smoothed.map(millis),
            rto_ms: millis(info.rto),
            bytes_acked: stats.bytes_acked,
            bytes_delivered: stats.bytes_received,
            segments_sent: stats.segments_sent,
            segments_retransmitted: stats.segments_retransmitted,
            segments_received: stats.segments_received,
            timeouts: stats.timeouts,
            fast_retransmits: stats.fast_retransmits,
            acks_sent: stats.acks_sent,
            acks_repeated: stats.acks_repeated,
            acks_per_segment: share(stats.acks_sent, data_segments),
        }
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// As f64 only for people to read.
#[expect(clippy::cast_precision_loss, reason = "a ratio that is shown with two decimals")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
