//! The radios' part of a result: their counters, the waits in their queues, and the load of each rate.

use hopwise_air::airtime::AirLoad;
use hopwise_air::dcf::RateUse;
use serde::{Deserialize, Serialize};

use crate::scenario::Prepared;
use crate::sim::{AirTotals, NodeResult, QueueWait, WaitsByLoad};

/// The radios' counters over the whole run. A counter that a world does not know is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Air {
    /// Frames of all kinds that the radios sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_sent: Option<u64>,
    /// Receptions that were lost to another frame at the addressee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collisions: Option<u64>,
    /// Packets that a radio gave up after its last try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_drops: Option<u64>,
    /// Missing packets for which receivers of aggregates waited no longer. Absent without a reorder timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder_timeouts: Option<u64>,
    /// Those of them that came later and were dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder_late: Option<u64>,
    /// Packets that interface queues dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_drops: Option<u64>,
    /// CoDel's part of them, as their flow had waited too long. Absent where no queue has CoDel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codel_drops: Option<u64>,
    /// Packets that CoDel marked in place of dropping them. Absent where no queue has CoDel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_marks: Option<u64>,
    /// The sum of all frames' durations, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub airtime_s: Option<f64>,
    /// The parts of `airtime_s` for TCP's data and for its ACKs, each with its RTS, CTS and MAC ACK. The rest belongs
    /// to beacons, ARP, routing, and all else, such as UDP. Older records have none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_airtime_s: Option<f64>,
    /// The part for TCP's ACKs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_airtime_s: Option<f64>,
    /// The part for beacons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beacon_airtime_s: Option<f64>,
    /// The part for ARP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arp_airtime_s: Option<f64>,
    /// The part for messages of routing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_airtime_s: Option<f64>,
    /// The time of a segment with payload at a hop, from the interface queue to its first frame: over all hops, the
    /// mean and the time that 95 % do not exceed. Absent where a kernel has a part of the queue, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_wait_ms: Option<f64>,
    /// The time in milliseconds that 95 % of the segments did not exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_wait_p95_ms: Option<f64>,
    /// The mean time of TCP's ACKs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_queue_wait_ms: Option<f64>,
}

/// The waits at a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    /// The name of the node.
    pub node: String,
    /// The waits of segments with payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<QueueWait>,
    /// The waits of TCP's ACKs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acks: Option<QueueWait>,
}

impl QueueRow {
    pub(super) fn new(name: &str, node: &NodeResult) -> Option<QueueRow> {
        let WaitsByLoad { data, acks } = node.waits;
        data.or(acks).map(|_| QueueRow { node: name.to_owned(), data, acks })
    }
}

impl From<&AirTotals> for Air {
    fn from(air: &AirTotals) -> Air {
        let of = |load: AirLoad| Some(air.airtime_s_by_load[load as usize]);
        Air {
            frames_sent: Some(air.frames_sent),
            collisions: Some(air.collisions),
            retry_drops: Some(air.retry_drops),
            reorder_timeouts: air.reorder.map(|reorder| reorder.timeouts),
            reorder_late: air.reorder.map(|reorder| reorder.late),
            queue_drops: air.queues.drops,
            codel_drops: air.queues.codel_drops,
            ce_marks: air.queues.marks,
            airtime_s: Some(air.airtime_s),
            data_airtime_s: of(AirLoad::TcpData),
            ack_airtime_s: of(AirLoad::TcpAck),
            beacon_airtime_s: of(AirLoad::Beacon),
            arp_airtime_s: of(AirLoad::Arp),
            routing_airtime_s: of(AirLoad::Routing),
            queue_wait_ms: air.waits.data.map(|wait| wait.mean_ms),
            queue_wait_p95_ms: air.waits.data.map(|wait| wait.p95_ms),
            ack_queue_wait_ms: air.waits.acks.map(|wait| wait.mean_ms),
        }
    }
}

/// The load that a rate carried from one node to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateRow {
    /// The name of the node.
    pub node: String,
    /// The name of the receiver.
    pub to: String,
    /// The rate.
    pub rate: String,
    /// The bits of the rate in Mbit/s.
    pub mbps: f64,
    /// Data frames at this rate.
    pub frames: u64,
    /// Packets in them.
    pub packets: u64,
    /// Those of them that were acknowledged.
    pub acknowledged: u64,
    /// The airtime of the frames, in seconds.
    pub airtime_s: f64,
}

impl RateRow {
    /// The rows of a node, by receiver, the fastest rates first.
    pub(super) fn of(prepared: &Prepared, node: u32, rates: &[RateUse]) -> Vec<RateRow> {
        let mut rates = rates.to_vec();
        rates.sort_by_key(|used| (used.to, std::cmp::Reverse(used.rate.bits_per_second)));
        let row = |used: RateUse| RateRow {
            node: prepared.name_of(node).to_owned(),
            to: prepared.name_of(used.to).to_owned(),
            rate: used.rate.to_string(),
            mbps: used.rate.bits_per_second as f64 / 1e6,
            frames: used.frames,
            packets: used.packets,
            acknowledged: used.came,
            airtime_s: used.airtime_ns as f64 / 1e9,
        };
        rates.into_iter().map(row).collect()
    }
}
