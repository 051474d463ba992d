//! What one run came to, as programs read it.

use serde::{Deserialize, Serialize};

use crate::scenario::Prepared;
use crate::sim::{Results, certificate_hash};

/// Its shape is fixed: programs outside this project read it. What a run cost is kept elsewhere, so that two runs of
/// one seed are the same to the byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    pub scenario: String,
    pub world: String,
    pub arm: String,
    pub seed: u64,
    pub counted_s: f64,
    pub flows: Vec<FlowRow>,
    pub total: Total,
    pub air: Air,
    pub routing: Routing,
    /// The hash of what the radio world's probes come to.
    pub certificate: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRow {
    pub id: String,
    pub from: String,
    pub to: String,
    pub hops: Option<u8>,
    pub receiver: String,
    pub sender: Vec<String>,
    pub goodput_kbps: f64,
    pub bytes_delivered: u64,
    pub segments_sent: u64,
    pub segments_retransmitted: u64,
    pub timeouts: u32,
    pub fast_retransmits: u32,
    pub acks_sent: u64,
    pub acks_repeated: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Total {
    pub goodput_kbps: f64,
    pub jain: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Air {
    pub frames_sent: u64,
    pub collisions: u64,
    pub retry_drops: u64,
    pub queue_drops: u64,
    pub airtime_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routing {
    pub discoveries: u64,
    pub route_failures: u64,
}

impl RunResult {
    pub fn new(scenario: &str, world: &str, prepared: &Prepared, results: &Results) -> RunResult {
        let plan = &prepared.plan;
        let flows = results.flows.iter().enumerate().map(|(index, flow)| FlowRow {
            id: format!("f{index}"),
            from: prepared.name_of(flow.from).to_owned(),
            to: prepared.name_of(flow.to).to_owned(),
            hops: flow.hops,
            receiver: plan.arm.receiver.clone(),
            sender: prepared.senders.clone(),
            goodput_kbps: flow.goodput_kbps,
            bytes_delivered: flow.counted_bytes,
            segments_sent: flow.sender.segments_sent,
            segments_retransmitted: flow.sender.segments_retransmitted,
            timeouts: flow.sender.timeouts,
            fast_retransmits: flow.sender.fast_retransmits,
            acks_sent: flow.receiver.acks_sent,
            acks_repeated: flow.receiver.acks_repeated,
        });
        let air = &results.air;
        RunResult {
            scenario: scenario.to_owned(),
            world: world.to_owned(),
            arm: plan.arm.name.clone(),
            seed: plan.seed,
            counted_s: results.counted_s,
            flows: flows.collect(),
            total: Total { goodput_kbps: results.total_kbps(), jain: results.jain() },
            air: Air {
                frames_sent: air.frames_sent,
                collisions: air.collisions,
                retry_drops: air.retry_drops,
                queue_drops: air.queue_drops,
                airtime_s: air.airtime_s,
            },
            routing: Routing { discoveries: results.discoveries, route_failures: results.route_failures },
            certificate: certificate_hash(),
        }
    }
}
