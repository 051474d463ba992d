//! Figures of a run.

use super::result::{FlowRow, RunResult};

/// A figure of a run, over all its flows.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    pub name: &'static str,
    /// The figure; none where the run has no such figure.
    pub of: fn(&RunResult) -> Option<f64>,
}

/// The first one is compared between arms.
pub const METRICS: [Metric; 20] = [
    Metric { name: "goodput_kbps", of: |run| Some(run.total.goodput_kbps) },
    Metric { name: "jain", of: |run| Some(run.total.jain) },
    Metric { name: "segments_sent", of: |run| sum(run, |flow| flow.segments_sent) },
    Metric { name: "segments_retransmitted", of: |run| sum(run, |flow| flow.segments_retransmitted) },
    Metric { name: "timeouts", of: |run| sum(run, |flow| flow.timeouts.map(u64::from)) },
    Metric { name: "fast_retransmits", of: |run| sum(run, |flow| flow.fast_retransmits.map(u64::from)) },
    Metric { name: "acks_sent", of: |run| sum(run, |flow| flow.acks_sent) },
    Metric { name: "acks_repeated", of: |run| sum(run, |flow| flow.acks_repeated) },
    Metric { name: "acks_per_segment", of: acks_per_segment },
    Metric { name: "segments_received_again", of: received_again },
    Metric { name: "completion_s", of: completion_s },
    Metric { name: "frames_sent", of: |run| count(run.air.frames_sent) },
    Metric { name: "collisions", of: |run| count(run.air.collisions) },
    Metric { name: "retry_drops", of: |run| count(run.air.retry_drops) },
    Metric { name: "queue_drops", of: |run| count(run.air.queue_drops) },
    Metric { name: "airtime_s", of: |run| run.air.airtime_s },
    Metric { name: "data_airtime_s", of: |run| run.air.data_airtime_s },
    Metric { name: "ack_airtime_s", of: |run| run.air.ack_airtime_s },
    Metric { name: "route_discoveries", of: |run| count(run.routing.discoveries) },
    Metric { name: "route_failures", of: |run| count(run.routing.route_failures) },
];

fn count(counter: Option<u64>) -> Option<f64> {
    counter.map(|counter| counter as f64)
}

/// The sum over the flows that are not in the background; none if one of them does not tell it.
pub fn sum(run: &RunResult, of: fn(&FlowRow) -> Option<u64>) -> Option<f64> {
    let foreground = run.flows.iter().filter(|flow| !flow.background);
    count(foreground.map(of).sum())
}

/// Pure ACKs for each data segment sent, with retransmissions.
pub fn acks_per_segment(run: &RunResult) -> Option<f64> {
    let (acks, segments) = (sum(run, |flow| flow.acks_sent)?, sum(run, |flow| flow.segments_sent)?);
    (segments > 0.0).then(|| acks / segments)
}

/// Segments that were retransmitted needlessly.
pub fn received_again(run: &RunResult) -> Option<f64> {
    sum(run, |flow| flow.segments_received_again)
}

/// Mean completion time of all transfers and requests.
fn completion_s(run: &RunResult) -> Option<f64> {
    let completed: Vec<_> =
        run.flows.iter().filter(|flow| !flow.background).filter_map(|f| f.completed).collect();
    let count: u64 = completed.iter().map(|completed| completed.count).sum();
    let total: f64 = completed.iter().filter_map(|c| Some(c.mean_s? * c.count as f64)).sum();
    (count > 0).then(|| total / count as f64)
}
