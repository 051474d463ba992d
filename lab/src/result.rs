//! The result of one run, as programs read it.

mod air;

use std::collections::BTreeMap;

use hopwise_agents::spec::senders_of;
use serde::{Deserialize, Serialize};

use crate::live::mesh::MeshRun;
use crate::live::part::{ProxiedPackets, SettingRow, ThinnedAcks};
use crate::programs::{CompletionTimes, EndResult, Probed, Spread};
use crate::scenario::Prepared;
use crate::shadow::Shadow;
use crate::sim::{DataDirection, FlowResult, Results, certificate_hash};
pub use air::{Air, QueueRow, RateRow};

/// Its shape is fixed: programs outside this project read it. The cost of a run is kept elsewhere: two runs of one seed
/// are equal to the byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The stem of the scenario's file.
    pub scenario: String,
    /// The name of the world.
    pub world: String,
    /// The name of the arm.
    pub arm: String,
    /// The seed of all chance in the run.
    pub seed: u64,
    /// The seconds that results count: the duration without the warm-up.
    pub counted_s: f64,
    /// One row for each direction of a flow that has data.
    pub flows: Vec<FlowRow>,
    /// All flows together, without background.
    pub total: FlowTotals,
    /// The radios together.
    pub air: Air,
    /// The routing protocol at all nodes together.
    pub routing: RoutingResult,
    /// The waits at each node that sent TCP's packets. Live worlds and older records have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueRow>,
    /// The load that each rate carried over each link; none at a fixed rate, in live worlds and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateRow>,
    /// The hash of the results of the radio world's probes.
    pub certificate: String,
    /// Lateness of a run in real time (only in live worlds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
}

/// Lateness of a run in real time, and the machine's load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// The longest time by which the radios were late.
    pub air_late_ms: f64,
    /// The longest time by which a timer of a node's programs was late.
    pub programs_late_ms: f64,
    /// The share of all processors that other programs used; absent where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_elsewhere: Option<f64>,
    /// Frames and packets that no program or processor of the machine took in time; absent where the system does not
    /// tell. A run with one does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Runs before this one that do not count.
    pub repeated: u32,
    /// Nodes of `hwsim` that did not hear all of their neighbours before the run. A run with one does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deaf: Vec<String>,
    /// The release of the nodes' kernel, as `uname -r` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The offloads of each node's interfaces that join or cut segments (GRO, LRO, TSO, GSO), as they were on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offloads: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// The ACKs of the kernels that `hopwise thin` judged, by node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thinned: BTreeMap<String, ThinnedAcks>,
    /// What the proxy of the gateway did, by node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proxied: BTreeMap<String, ProxiedPackets>,
    /// The settings that the run changed, by node. A run during which one moved does not count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub host: BTreeMap<String, Vec<SettingRow>>,
    /// The hosts of a mesh, and what they saw during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshRun>,
}

/// The result of one direction of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRow {
    /// The name of the row: `f0` for flow 0, `f0-back` for its data in the other direction.
    pub id: String,
    /// The node that sent the data.
    pub from: String,
    /// The node that received it.
    pub to: String,
    /// The hops from sender to receiver, where they are known.
    pub hops: Option<u8>,
    /// The source of `hops`: `routing`, `ttl` or `config`.
    pub hops_source: Option<String>,
    /// The spec of the receiver agent.
    pub receiver: String,
    /// The specs of the sender agents.
    pub sender: Vec<String>,
    /// Abilities that the peer did not agree to, in the words of the trace; the agents follow their written fallbacks.
    #[serde(default)]
    pub receiver_lacks: Vec<String>,
    /// The same for the sender agents.
    #[serde(default)]
    pub sender_lacks: Vec<String>,
    /// The goodput in kbit/s: payload in order, to the application, in the counted time.
    pub goodput_kbps: f64,
    /// The payload in bytes that the application got in the counted time.
    pub bytes_delivered: u64,
    // Counters that a TCP does not tell are absent; the kernel's has fewer.
    /// Data segments of the sender, retransmissions included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_sent: Option<u64>,
    /// Data segments that the sender sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_retransmitted: Option<u64>,
    /// Retransmission timeouts of the sender, SYNs' timeouts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u32>,
    /// The part of these that came while a link was out or announced to go; absent where the scenario has no outage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts_in_outages: Option<u32>,
    /// Starts of fast recovery at the sender; each may send several segments again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_retransmits: Option<u32>,
    /// Pure ACKs of the receiver, repeated ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acks_sent: Option<u64>,
    /// ACKs that the receiver agent had repeated in case the first was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acks_repeated: Option<u64>,
    /// Segments that the receiver had already: needless retransmissions. Older records have none of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_received_again: Option<u64>,
    /// Data segments that arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_arrived: Option<u64>,
    /// Data segments that arrived above a hole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_out_of_order: Option<u64>,
    /// Segments without data that arrived at the sender, without the handshake's. Older records do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acks_arrived: Option<u64>,
    /// The most segments of data that left upon one packet or timer, and the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_longest: Option<u64>,
    /// The mean number of data segments that left upon one packet or timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_mean: Option<f64>,
    /// Mean of the smoothed round-trip time in milliseconds (only in live worlds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// The round trips that the sender's TCP measured in the counted time: from sending a segment until its ACK, with
    /// the receiver's wait. Absent where a TCP does not tell each, as the kernel's, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trips: Option<RoundTripQuantiles>,
    /// Receiver agents that only observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadows: Vec<Shadow>,
    /// Completed transfers or requests (only for such flows).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Completed>,
    /// The fate of a probe's datagrams (only for such flows).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeResult>,
    /// The fate of datagrams at a rate, and of a probe's until they are sent back (only for such flows).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramResult>,
    /// True if the flow stands in no total.
    #[serde(default, skip_serializing_if = "is_false")]
    pub background: bool,
}

/// Transfers or requests that ended in the counted time, and how long they took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completed {
    /// The number of transfers or requests that ended.
    pub count: u64,
    /// The mean duration in seconds; absent if none ended.
    pub mean_s: Option<f64>,
    /// The longest duration in seconds; 0 if none ended.
    pub longest_s: f64,
    /// Half of them, and 95 %, took no longer; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_s: Option<f64>,
    /// The duration in seconds that 95 % did not exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_s: Option<f64>,
}

/// A probe's datagrams of the counted time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// Those that were answered, or left two seconds before the end or earlier.
    pub sent: u64,
    /// Those whose answers came back.
    pub answered: u64,
    /// Absent if none was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trips: Option<RoundTripQuantiles>,
}

impl From<&Probed> for ProbeResult {
    fn from(of: &Probed) -> ProbeResult {
        ProbeResult {
            sent: of.sent,
            answered: of.answered,
            round_trips: of.spread.as_ref().map(RoundTripQuantiles::from),
        }
    }
}

/// Datagrams of the counted time that left two seconds before its end or earlier.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatagramResult {
    /// Those that were to leave: one that finds no room at its own node is lost.
    pub sent: u64,
    /// Those that arrived, without copies.
    pub arrived: u64,
    /// The share that did not arrive.
    pub loss: f64,
    /// Absent if fewer than two arrived.
    #[serde(flatten)]
    pub times: Option<DatagramTimes>,
}

/// Jitter and delays of the datagrams that arrived, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatagramTimes {
    /// The mean of the jitter of RFC 3550, section 6.4.1, over all arrivals.
    pub jitter_ms: f64,
    /// The mean delay from the sender's program to the receiver's.
    pub delay_ms: f64,
    /// Half of them took no longer.
    pub delay_median_ms: f64,
    /// 95 % took no longer.
    pub delay_p95_ms: f64,
    /// The largest error of the delays by the two clocks; 0 where sender and receiver have one.
    pub delay_error_ms: f64,
}

impl DatagramResult {
    /// The result from the ends that sent and received; none where nothing was measured.
    pub(crate) fn of((from, to): (&EndResult, &EndResult)) -> Option<DatagramResult> {
        let ((sent, _), (arrived, times)) = (from.datagrams, to.datagrams);
        let later_ms = to.began_ms.0 - from.began_ms.0;
        let times = times.map(|[jitter_ms, mean_ms, median_ms, p95_ms]| DatagramTimes {
            jitter_ms,
            delay_ms: mean_ms + later_ms,
            delay_median_ms: median_ms + later_ms,
            delay_p95_ms: p95_ms + later_ms,
            delay_error_ms: from.began_ms.1 + to.began_ms.1,
        });
        let loss = sent.saturating_sub(arrived) as f64 / sent as f64;
        (sent > 0).then_some(DatagramResult { sent, arrived, loss, times })
    }
}

/// Round trips by nearest rank: half of them, 95 % and 99 % took no longer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTripQuantiles {
    /// The number of round trips.
    pub count: u64,
    /// Half of all took no longer, in milliseconds.
    pub median_ms: f64,
    /// 95 % took no longer, in milliseconds.
    pub p95_ms: f64,
    /// 99 % took no longer, in milliseconds.
    pub p99_ms: f64,
}

impl From<&Spread> for RoundTripQuantiles {
    fn from(of: &Spread) -> RoundTripQuantiles {
        let ms = |ns: u64| ns as f64 / 1e6;
        let Spread { count, median_ns, p95_ns, p99_ns } = *of;
        RoundTripQuantiles { count, median_ms: ms(median_ns), p95_ms: ms(p95_ns), p99_ms: ms(p99_ns) }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The flows of a run together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowTotals {
    /// The sum of the flows' goodputs, in kbit/s.
    pub goodput_kbps: f64,
    /// Jain's index of the flows' goodputs; 1 for equal shares.
    pub jain: f64,
    /// The mean of Jain's index over the intervals of the counted time; absent for one flow, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jain_over_time: Option<f64>,
}

/// Counts of the routing protocol; absent where there is none, or it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutingResult {
    /// Route discoveries that nodes began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discoveries: Option<u64>,
    /// Routes that broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_failures: Option<u64>,
}

impl RunResult {
    /// The result of a prepared run in the world of that name.
    pub fn new(scenario: &str, world: &str, prepared: &Prepared, results: &Results) -> RunResult {
        let plan = &prepared.plan;
        let flows = results.flows.iter().map(|flow| FlowRow::new(prepared, flow));
        let rates = (0..).zip(&results.nodes);
        let rates = rates.flat_map(|(nth, node)| RateRow::of(prepared, nth, &node.rates));
        let queues = (0..).zip(&results.nodes);
        let queues = queues.filter_map(|(nth, node)| QueueRow::new(prepared.name_of(nth), node));
        RunResult {
            scenario: scenario.to_owned(),
            world: world.to_owned(),
            arm: plan.arm.name.clone(),
            seed: plan.seed,
            counted_s: results.counted_s,
            flows: flows.collect(),
            total: FlowTotals {
                goodput_kbps: results.total_kbps(),
                jain: results.jain(),
                jain_over_time: results.jain_over_time(),
            },
            air: Air::from(&results.air),
            routing: RoutingResult {
                discoveries: Some(results.discoveries),
                route_failures: Some(results.route_failures),
            },
            queues: queues.collect(),
            rates: rates.collect(),
            certificate: certificate_hash(),
            live: None,
        }
    }
}

impl FlowRow {
    fn new(prepared: &Prepared, flow: &FlowResult) -> FlowRow {
        let (arm, agents) = (&prepared.plan.arm, flow.agents.as_ref());
        let shadows = agents.map(|at_end| {
            Shadow::each(&at_end.shadows, &flow.receiver.shadow_acks, &flow.receiver.shadow_holds)
        });
        FlowRow {
            id: id_of(flow),
            from: prepared.name_of(flow.from).to_owned(),
            to: prepared.name_of(flow.to).to_owned(),
            hops: flow.hops.as_ref().map(|hops| hops.count),
            hops_source: flow.hops.as_ref().map(|hops| hops.source.clone()),
            receiver: agents.map_or(&arm.receiver, |agents| &agents.receiver).clone(),
            sender: senders_of(agents.map_or(&arm.senders, |agents| &agents.senders)),
            receiver_lacks: agents.map(|agents| agents.receiver_lacks.clone()).unwrap_or_default(),
            sender_lacks: agents.map(|agents| agents.senders_lack.clone()).unwrap_or_default(),
            goodput_kbps: flow.goodput_kbps,
            bytes_delivered: flow.counted_bytes,
            segments_sent: flow.sender.segments_sent,
            segments_retransmitted: flow.sender.segments_retransmitted,
            timeouts: flow.sender.timeouts,
            timeouts_in_outages: flow.timeouts_in_outages,
            fast_retransmits: flow.sender.fast_retransmits,
            acks_sent: flow.receiver.acks_sent,
            acks_repeated: flow.receiver.acks_repeated,
            segments_received_again: flow.receiver.segments_received_again,
            segments_arrived: flow.receiver.segments_arrived,
            segments_out_of_order: flow.receiver.segments_out_of_order,
            acks_arrived: flow.sender.acks_arrived,
            burst_longest: flow.bursts.map(|bursts| bursts.longest),
            burst_mean: flow.bursts.map(|bursts| bursts.segments as f64 / bursts.count as f64),
            rtt_ms: flow.rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
            round_trips: flow.round_trips.as_ref().map(RoundTripQuantiles::from),
            shadows: shadows.unwrap_or_default(),
            completed: flow.completions.as_ref().map(completed),
            probe: flow.probed.as_ref().map(ProbeResult::from),
            datagrams: flow.datagrams,
            background: flow.is_background,
        }
    }
}

/// `f0`, and `f0-back` for the other direction of its connection.
fn id_of(flow: &FlowResult) -> String {
    match flow.direction {
        DataDirection::First => format!("f{}", flow.flow),
        DataDirection::Back => format!("f{}-back", flow.flow),
    }
}

fn completed(of: &CompletionTimes) -> Completed {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let mean_s = (of.count > 0).then(|| seconds(of.total_ns) / of.count as f64);
    Completed {
        count: of.count,
        mean_s,
        longest_s: seconds(of.longest_ns),
        median_s: of.spread.map(|spread| seconds(spread.median_ns)),
        p95_s: of.spread.map(|spread| seconds(spread.p95_ns)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn delays_are_by_the_trials_clock_with_the_errors_of_both_ends() {
        let end = |datagrams, began_ms| EndResult { datagrams, began_ms, ..EndResult::default() };
        let from = end((10, None), (1000.0, 0.5));
        // It began 10 ms later, and so each of its times is 10 ms less than by the sender's clock.
        let to = end((9, Some([2.0, 30.0, 20.0, 50.0])), (1010.0, 0.25));
        let result = DatagramResult::of((&from, &to)).expect("ten were sent");
        let wanted = json!({
            "sent": 10, "arrived": 9, "loss": 0.1, "jitter_ms": 2.0, "delay_ms": 40.0, "delay_median_ms": 30.0,
            "delay_p95_ms": 60.0, "delay_error_ms": 0.75
        });
        assert_eq!(serde_json::to_value(result).expect("JSON"), wanted);
        assert_eq!(serde_json::from_value::<DatagramResult>(wanted).expect("a result"), result);
    }

    #[test]
    fn what_did_not_arrive_has_no_times_and_what_was_not_sent_no_result() {
        let end = |datagrams| EndResult { datagrams, ..EndResult::default() };
        let none = DatagramResult::of((&end((4, None)), &end((0, None)))).expect("four were sent");
        let wanted = json!({ "sent": 4, "arrived": 0, "loss": 1.0 });
        assert_eq!(serde_json::to_value(none).expect("JSON"), wanted);
        assert_eq!(serde_json::from_value::<DatagramResult>(wanted).expect("a result"), none);
        assert_eq!(DatagramResult::of((&end((0, None)), &end((0, None)))), None);
    }
}
