//! Result of a measurement, from what both ends saw.

use std::time::Duration;

use hopwise_agents::spec::senders_of;
use hopwise_lab::shadow::Shadow;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;

use crate::measure::protocol::{FlowSeen, FlowWork};
use crate::measure::side::{AckCounts, SentCounts, TcpReport};
use crate::measure::{kbps, to_f64};
use hopwise_daemon::stations::StationSnapshot;

/// One flow as both ends saw it, without the values that the kernel's TCP does not give.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FlowReport {
    pub(super) id: String,
    pub(super) from: String,
    pub to: String,
    /// The hops of the data and of the ACKs, each from the end with the better source, and that source.
    pub hops: Option<u8>,
    pub(super) hops_source: Option<String>,
    hops_back: Option<u8>,
    hops_back_source: Option<String>,
    /// The receiver agent of the end that received data, and the sender agents of the end that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) receiver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sender: Option<Vec<String>>,
    pub(super) goodput_kbps: f64,
    pub(super) bytes_delivered: u64,
    #[serde(flatten)]
    pub(super) sent: Option<SentCounts>,
    #[serde(flatten)]
    pub(super) acked: Option<AckCounts>,
    /// The watching agents of the end that received data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) shadows: Vec<Shadow>,
    /// The first links on the way of the data and of the ACKs, as the drivers there tell of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<StationSnapshot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_back: Option<StationSnapshot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl FlowReport {
    pub(super) fn new(nth: u32, source: &FlowSeen, sink: &FlowSeen) -> FlowReport {
        let (from, to) = (source.side.tcp.as_ref(), sink.side.tcp.as_ref());
        let way = |one: Option<&TcpReport>, other: Option<&TcpReport>| {
            let to_peer = one.and_then(|end| end.path.way_there());
            to_peer.or_else(|| other.and_then(|end| end.path.way_back())).unzip()
        };
        let ((hops, hops_source), (hops_back, hops_back_source)) = (way(from, to), way(to, from));
        FlowReport {
            id: format!("f{nth}"),
            from: source.side.local.clone(),
            to: source.side.remote.clone(),
            hops,
            hops_source,
            hops_back,
            hops_back_source,
            receiver: to.map(|tcp| tcp.receiver.clone()),
            sender: from.map(|tcp| senders_of(&tcp.senders)),
            goodput_kbps: kbps(sink.bytes, sink.time()),
            bytes_delivered: sink.bytes,
            sent: from.map(|tcp| tcp.sent.clone()),
            acked: to.map(|tcp| tcp.acked.clone()),
            shadows: to.map(|tcp| tcp.shadows.clone()).unwrap_or_default(),
            link: from.and_then(|tcp| tcp.link.clone()),
            link_back: to.and_then(|tcp| tcp.link.clone()),
            problem: both(source.problem.as_deref(), sink.problem.as_deref()),
        }
    }
}

/// Both problems, if both ends have one: each end usually saw another one.
fn both(source: Option<&str>, sink: Option<&str>) -> Option<String> {
    match (source, sink) {
        (Some(source), Some(sink)) => Some(format!("{source} where data came from, {sink} where it went")),
        (one, None) | (None, one) => one.map(str::to_owned),
    }
}

/// Round trips of requests and responses.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RequestRoundTrips {
    pub(super) count: u64,
    pub(super) per_s: f64,
    pub(super) mean_us: f64,
    pub(super) p50_us: u32,
    p90_us: u32,
    pub(super) p99_us: u32,
    pub(super) max_us: u32,
}

impl RequestRoundTrips {
    /// From the microseconds of each request.
    pub(super) fn of(mut took: Vec<u32>, counted: Duration) -> Option<RequestRoundTrips> {
        took.sort_unstable();
        let count = u64::try_from(took.len()).ok()?;
        let (last, sum) = (*took.last()?, took.iter().map(|us| u64::from(*us)).sum::<u64>());
        let at = |share: usize| took[(took.len() * share / 100).min(took.len() - 1)];
        Some(RequestRoundTrips {
            count,
            per_s: to_f64(count) / counted.as_secs_f64().max(f64::MIN_POSITIVE),
            mean_us: to_f64(sum) / to_f64(count),
            p50_us: at(50),
            p90_us: at(90),
            p99_us: at(99),
            max_us: last,
        })
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Total {
    pub(super) goodput_kbps: f64,
    /// Jain's index: 1 if all flows had an equal rate.
    pub(super) jain: f64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Sha256 {
    pub(super) sent: String,
    received: Option<String>,
    pub(super) matches: bool,
}

/// The resources that this process used.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ProcessCost {
    pub(super) cpu_s: f64,
    wall_s: f64,
    pub(super) peak_rss_mib: f64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct MeasurementReport {
    scenario: &'static str,
    world: &'static str,
    reverse: bool,
    pub(super) counted_s: f64,
    pub(super) flows: Vec<FlowReport>,
    pub(super) total: Total,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requests: Option<RequestRoundTrips>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<Sha256>,
    pub(super) cost: ProcessCost,
}

impl MeasurementReport {
    /// From pairs of each flow's view at its source and at its sink.
    pub(super) fn new(
        work: FlowWork,
        reverse: bool,
        flows: &[(FlowSeen, FlowSeen)],
        took: Vec<u32>,
    ) -> MeasurementReport {
        let counted = flows.iter().map(|(_, sink)| sink.time()).max().unwrap_or_default();
        let numbered = (0..).zip(flows);
        let reports: Vec<_> = numbered.map(|(nth, (from, to))| FlowReport::new(nth, from, to)).collect();
        let rates: Vec<f64> = reports.iter().map(|flow| flow.goodput_kbps).collect();
        // A peer may report any count.
        let delivered = reports.iter().fold(0_u64, |sum, flow| sum.saturating_add(flow.bytes_delivered));
        let sha256 = flows.iter().find_map(|(from, to)| {
            let sent = from.sha256.clone()?;
            let matches = to.sha256.as_ref() == Some(&sent);
            Some(Sha256 { sent, received: to.sha256.clone(), matches })
        });
        MeasurementReport {
            scenario: match work {
                FlowWork::BulkFor { .. } => "bulk",
                FlowWork::Bytes { .. } => "bytes",
                FlowWork::File { .. } => "file",
                FlowWork::Requests { .. } => "requests",
            },
            world: "host",
            reverse,
            counted_s: counted.as_secs_f64(),
            flows: reports,
            total: Total { goodput_kbps: kbps(delivered, counted), jain: jain(&rates) },
            requests: RequestRoundTrips::of(took, counted),
            sha256,
            cost: ProcessCost::so_far(counted),
        }
    }

    /// Why the measurement counts for nothing, if so.
    pub(super) fn problem(&self) -> Option<String> {
        let broken = self.flows.iter().find_map(|flow| flow.problem.clone());
        let spoilt = self.sha256.as_ref().filter(|sha256| !sha256.matches);
        broken.or_else(|| spoilt.map(|_| "the file arrived with another SHA-256".to_owned()))
    }
}

impl ProcessCost {
    fn so_far(wall: Duration) -> ProcessCost {
        let (cpu_us, rss_kib) = getrusage(UsageWho::RUSAGE_SELF).map_or((0, 0), |usage| {
            let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
            (cpu.max(0).unsigned_abs(), u64::try_from(usage.max_rss()).unwrap_or(0))
        });
        ProcessCost {
            cpu_s: Duration::from_micros(cpu_us).as_secs_f64(),
            wall_s: wall.as_secs_f64(),
            peak_rss_mib: to_f64(rss_kib) / 1024.0,
        }
    }
}

fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let n = rates.len().max(1);
    if squares > 0.0 { sum * sum / (to_f64(u64::try_from(n).unwrap_or(1)) * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::send::printing::page;
    use crate::measure::side::SideReport;

    fn seen(bytes: u64, tcp: Option<TcpReport>) -> FlowSeen {
        let side = SideReport { local: "a:1".into(), remote: "b:2".into(), tcp };
        FlowSeen { bytes, micros: 1_000_000, side, ..FlowSeen::default() }
    }

    #[test]
    fn a_peer_that_claims_too_much_breaks_no_sum() {
        let flows = vec![(seen(u64::MAX, None), seen(u64::MAX, None)); 3];
        let report = MeasurementReport::new(FlowWork::Bytes { bytes: 1 }, false, &flows, Vec::new());
        assert!(report.total.goodput_kbps > 1e14 && page(&report).lines().count() > 3);
    }

    #[test]
    fn a_report_has_the_names_that_results_have() {
        let sent = SentCounts { segments_sent: 9, ..SentCounts::default() };
        let tcp = TcpReport { senders: "[newreno, limit:4]".into(), sent, ..TcpReport::default() };
        let flows = [(seen(1000, Some(tcp.clone())), seen(1000, Some(tcp)))];
        let report = MeasurementReport::new(FlowWork::Bytes { bytes: 1000 }, false, &flows, Vec::new());
        let json = serde_json::to_value(&report).expect("it is JSON");
        assert_eq!(json["flows"][0]["id"], "f0");
        assert_eq!(json["flows"][0]["sender"], serde_json::json!(["newreno", "limit:4"]));
        assert_eq!(json["flows"][0]["goodput_kbps"], 8.0);
        assert_eq!(json["flows"][0]["segments_sent"], 9);
        assert_eq!(json["total"]["jain"], 1.0);
        assert!(json["cost"]["cpu_s"].is_number() && json.get("requests").is_none());
    }

    #[test]
    fn a_list_of_senders_is_no_document() {
        for bomb in ["[&a [x, x], *a, *a]", "[&a x, *a]", "{a: &b 1, c: *b}", "[[[["] {
            assert_eq!(senders_of(bomb), [bomb]);
        }
        assert_eq!(senders_of("[cubic, limit:4]"), ["cubic", "limit:4"]);
    }

    #[test]
    fn a_peer_s_long_name_breaks_no_page() {
        let tcp = TcpReport { receiver: "r".repeat(70_000), ..TcpReport::default() };
        let flows = [(seen(1, None), seen(1, Some(tcp)))];
        let report = MeasurementReport::new(FlowWork::Bytes { bytes: 1 }, false, &flows, Vec::new());
        assert!(page(&report).len() < 2_000, "{}", page(&report).len());
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_left_out() {
        let report = MeasurementReport::new(
            FlowWork::BulkFor { micros: 1 },
            true,
            &[(seen(5, None), seen(5, None))],
            Vec::new(),
        );
        let json = serde_json::to_value(&report).expect("it is JSON");
        assert!(json["flows"][0].get("segments_sent").is_none());
        assert!(page(&report).contains("40 bit") || page(&report).contains("0 kbit/s"), "{}", page(&report));
    }

    #[test]
    fn what_broke_a_flow_is_told_of_both_ends() {
        let with = |problem: Option<&str>| FlowSeen { problem: problem.map(str::to_owned), ..seen(1, None) };
        let problem = |source, sink| {
            MeasurementReport::new(
                FlowWork::Bytes { bytes: 9 },
                false,
                &[(with(source), with(sink))],
                Vec::new(),
            )
            .problem()
        };
        assert_eq!(problem(None, None), None);
        assert_eq!(problem(None, Some("disk full")).as_deref(), Some("disk full"));
        let both = problem(Some("reset"), Some("disk full")).expect("a problem");
        assert!(both.contains("reset") && both.contains("disk full"), "{both}");
    }

    #[test]
    fn a_file_that_arrives_otherwise_is_a_failure() {
        let with = |sha: &str| FlowSeen { sha256: Some(sha.into()), ..seen(1, None) };
        let report = |a, b| {
            MeasurementReport::new(FlowWork::File { bytes: 1 }, false, &[(with(a), with(b))], Vec::new())
        };
        assert_eq!(report("x", "x").problem(), None);
        assert!(report("x", "y").problem().is_some_and(|problem| problem.contains("SHA-256")));
    }

    #[test]
    fn percentiles_are_taken_from_the_sorted_times() {
        let requests =
            RequestRoundTrips::of((1..=100).rev().collect(), Duration::from_secs(1)).expect("there are some");
        assert_eq!((requests.p50_us, requests.p99_us, requests.max_us), (51, 100, 100));
        assert!(RequestRoundTrips::of(Vec::new(), Duration::ZERO).is_none());
    }

    #[test]
    fn jains_index_falls_with_unfairness() {
        assert!((jain(&[1.0, 1.0]) - 1.0).abs() < 1e-9);
        assert!((jain(&[1.0, 0.0]) - 0.5).abs() < 1e-9);
    }
}
