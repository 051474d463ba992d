//! Result of a measurement: rows for people, one JSON object for programs.

use std::time::Duration;

use hopwise_agents::spec::senders_of;
use hopwise_core::Instant;
use hopwise_core::agent::{HopSource, Path};
use hopwise_core::tcp::Info;
use hopwise_lab::shadow::Shadow;
use hopwise_lab::units::Size;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use super::protocol::{FlowSeen, Work};
use crate::daemon::stations::StationSnapshot;

/// One end's view of a connection; empty for the kernel's TCP.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SideReport {
    pub(crate) local: String,
    pub(crate) remote: String,
    pub(crate) tcp: Option<TcpReport>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TcpReport {
    pub(crate) receiver: String,
    pub(crate) senders: String,
    /// The hops to the peer, or those from it if an end knows only these.
    pub(crate) hops: Option<u8>,
    #[serde(flatten)]
    pub(crate) path: Hops,
    pub(crate) rtt_us: Option<u64>,
    pub(crate) segments_sent: u64,
    pub(crate) segments_retransmitted: u64,
    pub(crate) timeouts: u32,
    pub(crate) fast_retransmits: u32,
    pub(crate) acks_sent: u64,
    pub(crate) acks_repeated: u64,
    /// Receiver agents that watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) shadows: Vec<Shadow>,
    /// The facts about this end's own link on the way to the peer, if a driver tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<StationSnapshot>,
}

/// The hops to the peer and back as an end counts them, and the source: `routing`, `ttl` or `config`. An end of an
/// older version sends none of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Hops {
    hops_to_peer: Option<u8>,
    hops_to_peer_source: Option<String>,
    hops_from_peer: Option<u8>,
    hops_from_peer_source: Option<String>,
}

impl Hops {
    fn of(path: &Path) -> Hops {
        let number = |hops: Option<(u8, HopSource)>| hops.map(|(hops, _)| hops);
        let source = |hops: Option<(u8, HopSource)>| hops.map(|(_, source)| source.name().to_owned());
        Hops {
            hops_to_peer: number(path.hops_to_peer),
            hops_to_peer_source: source(path.hops_to_peer),
            hops_from_peer: number(path.hops_from_peer),
            hops_from_peer_source: source(path.hops_from_peer),
        }
    }

    fn either(&self) -> Option<u8> {
        self.hops_to_peer.or(self.hops_from_peer)
    }

    fn way_there(&self) -> Option<(u8, String)> {
        Some((self.hops_to_peer?, self.hops_to_peer_source.clone()?))
    }

    pub(crate) fn way_back(&self) -> Option<(u8, String)> {
        Some((self.hops_from_peer?, self.hops_from_peer_source.clone()?))
    }
}

impl SideReport {
    pub(crate) fn of(now: Instant, info: &Info) -> SideReport {
        let stats = &info.stats;
        let path = Hops::of(&info.path);
        let tcp = TcpReport {
            receiver: info.receiver.clone(),
            senders: info.senders.clone(),
            hops: path.either(),
            path,
            rtt_us: info.path.rtt.smoothed.and_then(|rtt| u64::try_from(rtt.as_micros()).ok()),
            segments_sent: stats.segments_sent,
            segments_retransmitted: stats.segments_retransmitted,
            timeouts: stats.timeouts,
            fast_retransmits: stats.fast_retransmits,
            acks_sent: stats.acks_sent,
            acks_repeated: stats.acks_repeated,
            shadows: Shadow::of(info),
            link: StationSnapshot::of_path(&info.path, now),
        };
        let (local, remote) = (info.flow.local.to_string(), info.flow.remote.to_string());
        SideReport { local, remote, tcp: Some(tcp) }
    }
}

/// One flow as both ends saw it, without the values that the kernel's TCP does not give.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FlowReport {
    id: String,
    from: String,
    to: String,
    /// The hops of the data and of the ACKs, each from the end with the better source, and that source.
    hops: Option<u8>,
    hops_source: Option<String>,
    hops_back: Option<u8>,
    hops_back_source: Option<String>,
    /// The receiver agent of the end that received data, and the sender agents of the end that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<Vec<String>>,
    pub(crate) goodput_kbps: f64,
    pub(crate) bytes_delivered: u64,
    #[serde(flatten)]
    sent: Option<SentCounts>,
    #[serde(flatten)]
    acked: Option<AckCounts>,
    /// The watching agents of the end that received data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shadows: Vec<Shadow>,
    /// The first links on the way of the data and of the ACKs, as the drivers there tell of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<StationSnapshot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_back: Option<StationSnapshot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct SentCounts {
    segments_sent: u64,
    segments_retransmitted: u64,
    timeouts: u32,
    fast_retransmits: u32,
}

#[derive(Clone, Debug, Serialize)]
struct AckCounts {
    acks_sent: u64,
    acks_repeated: u64,
}

impl FlowReport {
    pub(crate) fn new(nth: u32, source: &FlowSeen, sink: &FlowSeen) -> FlowReport {
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
            sent: from.map(|tcp| SentCounts {
                segments_sent: tcp.segments_sent,
                segments_retransmitted: tcp.segments_retransmitted,
                timeouts: tcp.timeouts,
                fast_retransmits: tcp.fast_retransmits,
            }),
            acked: to.map(|tcp| AckCounts { acks_sent: tcp.acks_sent, acks_repeated: tcp.acks_repeated }),
            shadows: to.map(|tcp| tcp.shadows.clone()).unwrap_or_default(),
            link: from.and_then(|tcp| tcp.link.clone()),
            link_back: to.and_then(|tcp| tcp.link.clone()),
            problem: both(source.problem.as_deref(), sink.problem.as_deref()),
        }
    }

    fn row(&self) -> Vec<String> {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        vec![
            self.id.clone(),
            self.from.clone(),
            self.to.clone(),
            or_dash(
                self.hops.zip(self.hops_source.as_ref()).map(|(hops, source)| format!("{hops} ({source})")),
            ),
            Size(self.bytes_delivered).to_string(),
            rate(self.goodput_kbps),
            or_dash(
                self.sent
                    .as_ref()
                    .map(|sent| format!("{}/{}", sent.segments_retransmitted, sent.segments_sent)),
            ),
            or_dash(self.acked.as_ref().map(|acked| acked.acks_sent.to_string())),
            or_dash(self.receiver.clone()),
            or_dash(self.sender.as_ref().map(|sender| sender.join(" "))),
        ]
    }
}

/// Both problems, if both ends have one: each end usually saw another one.
fn both(source: Option<&str>, sink: Option<&str>) -> Option<String> {
    match (source, sink) {
        (Some(source), Some(sink)) => Some(format!("{source} where data came from, {sink} where it went")),
        (one, None) | (None, one) => one.map(str::to_owned),
    }
}

const COLUMNS: [&str; 10] =
    ["flow", "from", "to", "hops", "delivered", "goodput", "resent", "acks", "receiver", "sender"];

/// Round trips of requests and responses.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Requests {
    count: u64,
    per_s: f64,
    mean_us: f64,
    p50_us: u32,
    p90_us: u32,
    p99_us: u32,
    max_us: u32,
}

impl Requests {
    /// From the microseconds of each request.
    pub(crate) fn of(mut took: Vec<u32>, counted: Duration) -> Option<Requests> {
        took.sort_unstable();
        let count = u64::try_from(took.len()).ok()?;
        let (last, sum) = (*took.last()?, took.iter().map(|us| u64::from(*us)).sum::<u64>());
        let at = |share: usize| took[(took.len() * share / 100).min(took.len() - 1)];
        Some(Requests {
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
struct Total {
    goodput_kbps: f64,
    /// Jain's index: 1 if all flows got the same.
    jain: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Sha256 {
    sent: String,
    received: Option<String>,
    matches: bool,
}

/// The resources that this process used.
#[derive(Clone, Debug, Serialize)]
struct Cost {
    cpu_s: f64,
    wall_s: f64,
    peak_rss_mib: f64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    scenario: &'static str,
    world: &'static str,
    reverse: bool,
    counted_s: f64,
    pub(crate) flows: Vec<FlowReport>,
    total: Total,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Requests>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<Sha256>,
    cost: Cost,
}

impl Report {
    /// From pairs of each flow's view at its source and at its sink.
    pub(crate) fn new(work: Work, reverse: bool, flows: &[(FlowSeen, FlowSeen)], took: Vec<u32>) -> Report {
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
        Report {
            scenario: match work {
                Work::BulkFor { .. } => "bulk",
                Work::Bytes { .. } => "bytes",
                Work::File { .. } => "file",
                Work::Requests { .. } => "requests",
            },
            world: "host",
            reverse,
            counted_s: counted.as_secs_f64(),
            flows: reports,
            total: Total { goodput_kbps: kbps(delivered, counted), jain: jain(&rates) },
            requests: Requests::of(took, counted),
            sha256,
            cost: Cost::so_far(counted),
        }
    }

    /// Why the measurement counts for nothing, if so.
    pub(crate) fn problem(&self) -> Option<String> {
        let broken = self.flows.iter().find_map(|flow| flow.problem.clone());
        let spoilt = self.sha256.as_ref().filter(|sha256| !sha256.matches);
        broken.or_else(|| spoilt.map(|_| "the file arrived with another SHA-256".to_owned()))
    }

    pub(crate) fn page(&self) -> String {
        let rows: Vec<_> = self.flows.iter().map(FlowReport::row).collect();
        let mut lines = crate::table::lines(&COLUMNS, &rows);
        for flow in &self.flows {
            lines.extend(flow.shadows.iter().map(|shadow| format!("{}: {shadow}", flow.id)));
        }
        if self.flows.len() > 1 {
            let Total { goodput_kbps, jain } = self.total;
            lines.push(format!("total {}, Jain's index {jain:.3}", rate(goodput_kbps)));
        }
        if let Some(Requests { count, per_s, mean_us, p50_us, p99_us, max_us, .. }) = self.requests {
            lines.push(format!(
                "{count} round trips, {per_s:.0}/s; mean {mean_us:.0} µs, median {p50_us}, p99 {p99_us}, max {max_us}"
            ));
        }
        if let Some(sha256) = &self.sha256 {
            let verdict = if sha256.matches { "the same at both ends" } else { "DIFFERENT at the other end" };
            lines.push(format!("SHA-256 {}, {verdict}", sha256.sent));
        }
        let Cost { cpu_s, peak_rss_mib, .. } = self.cost;
        lines.push(format!(
            "{:.2} s, this end used {cpu_s:.2} s of CPU and {peak_rss_mib:.1} MiB",
            self.counted_s
        ));
        lines.join("\n") + "\n"
    }
}

impl Cost {
    fn so_far(wall: Duration) -> Cost {
        let (cpu_us, rss_kib) = getrusage(UsageWho::RUSAGE_SELF).map_or((0, 0), |usage| {
            let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
            (cpu.max(0).unsigned_abs(), usage.max_rss().max(0).unsigned_abs())
        });
        Cost {
            cpu_s: Duration::from_micros(cpu_us).as_secs_f64(),
            wall_s: wall.as_secs_f64(),
            peak_rss_mib: to_f64(rss_kib) / 1024.0,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures that are shown with a few digits")]
fn to_f64(value: u64) -> f64 {
    value as f64
}

fn kbps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { to_f64(bytes) * 8.0 / time.as_secs_f64() / 1000.0 }
}

fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let n = rates.len().max(1);
    if squares > 0.0 { sum * sum / (to_f64(u64::try_from(n).unwrap_or(1)) * squares) } else { 1.0 }
}

pub(crate) fn rate(kbps: f64) -> String {
    match kbps {
        _ if kbps >= 1e6 => format!("{:.2} Gbit/s", kbps / 1e6),
        _ if kbps >= 1e3 => format!("{:.1} Mbit/s", kbps / 1e3),
        _ => format!("{kbps:.0} kbit/s"),
    }
}

/// The rate of bytes that moved in a time.
pub(crate) fn rate_of(bytes: u64, time: Duration) -> String {
    rate(kbps(bytes, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(bytes: u64, tcp: Option<TcpReport>) -> FlowSeen {
        let side = SideReport { local: "a:1".into(), remote: "b:2".into(), tcp };
        FlowSeen { bytes, micros: 1_000_000, side, ..FlowSeen::default() }
    }

    #[test]
    fn a_peer_that_claims_too_much_breaks_no_sum() {
        let flows = vec![(seen(u64::MAX, None), seen(u64::MAX, None)); 3];
        let report = Report::new(Work::Bytes { bytes: 1 }, false, &flows, Vec::new());
        assert!(report.total.goodput_kbps > 1e14 && report.page().lines().count() > 3);
    }

    #[test]
    fn a_report_has_the_names_that_results_have() {
        let tcp =
            TcpReport { senders: "[newreno, limit:4]".into(), segments_sent: 9, ..TcpReport::default() };
        let flows = [(seen(1000, Some(tcp.clone())), seen(1000, Some(tcp)))];
        let report = Report::new(Work::Bytes { bytes: 1000 }, false, &flows, Vec::new());
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
        let report = Report::new(Work::Bytes { bytes: 1 }, false, &flows, Vec::new());
        assert!(report.page().len() < 2_000, "{}", report.page().len());
    }

    #[test]
    fn an_end_that_knows_the_way_back_alone_has_hops() {
        let (there, back) = ((3, HopSource::Routing), (1, HopSource::Ttl));
        for (to, from, hops) in
            [(None, Some(back), Some(1)), (Some(there), Some(back), Some(3)), (None, None, None)]
        {
            let path = Path { hops_to_peer: to, hops_from_peer: from, ..Path::default() };
            assert_eq!(Hops::of(&path).either(), hops);
        }
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_left_out() {
        let report =
            Report::new(Work::BulkFor { micros: 1 }, true, &[(seen(5, None), seen(5, None))], Vec::new());
        let json = serde_json::to_value(&report).expect("it is JSON");
        assert!(json["flows"][0].get("segments_sent").is_none());
        assert!(report.page().contains("40 bit") || report.page().contains("0 kbit/s"), "{}", report.page());
    }

    #[test]
    fn what_broke_a_flow_is_told_of_both_ends() {
        let with = |problem: Option<&str>| FlowSeen { problem: problem.map(str::to_owned), ..seen(1, None) };
        let problem = |source, sink| {
            Report::new(Work::Bytes { bytes: 9 }, false, &[(with(source), with(sink))], Vec::new()).problem()
        };
        assert_eq!(problem(None, None), None);
        assert_eq!(problem(None, Some("disk full")).as_deref(), Some("disk full"));
        let both = problem(Some("reset"), Some("disk full")).expect("a problem");
        assert!(both.contains("reset") && both.contains("disk full"), "{both}");
    }

    #[test]
    fn a_file_that_arrives_otherwise_is_a_failure() {
        let with = |sha: &str| FlowSeen { sha256: Some(sha.into()), ..seen(1, None) };
        let report = |a, b| Report::new(Work::File { bytes: 1 }, false, &[(with(a), with(b))], Vec::new());
        assert_eq!(report("x", "x").problem(), None);
        assert!(report("x", "y").problem().is_some_and(|problem| problem.contains("SHA-256")));
    }

    #[test]
    fn percentiles_are_taken_from_the_sorted_times() {
        let requests =
            Requests::of((1..=100).rev().collect(), Duration::from_secs(1)).expect("there are some");
        assert_eq!((requests.p50_us, requests.p99_us, requests.max_us), (51, 100, 100));
        assert!(Requests::of(Vec::new(), Duration::ZERO).is_none());
    }

    #[test]
    fn jains_index_falls_with_unfairness() {
        assert!((jain(&[1.0, 1.0]) - 1.0).abs() < 1e-9);
        assert!((jain(&[1.0, 0.0]) - 0.5).abs() < 1e-9);
    }
}
