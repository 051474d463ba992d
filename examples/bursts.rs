//! Datagrams that leave in bursts over chains of radios that aggregate: where their edge is, and what announces it.
//!
//! `cargo run --release --example bursts` prints a table of Markdown for the radios of `configs/radios-limit.yaml`.
//! Words behind `--` are settings that go over this file, as `radio.profile=ht20-mcs3`. Each tenth of a second a probe
//! of 64 bytes leaves behind a burst. Its round trip is that of a burst whose last segment an ACK answers.

use std::env;
use std::path::Path;

use hopwise_lab::parallel::in_parallel;
use hopwise_lab::scenario::Scenario;
use hopwise_lab::sim;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;
const HOPS: [u32; 6] = [1, 2, 4, 6, 8, 12];
/// Single segments, two fifths of an aggregate of MCS 7, a whole one, and two.
const BURSTS: [u32; 4] = [1, 11, 28, 56];
const PAYLOAD: f64 = 1448.0;
const ACK_MS: f64 = 100.0;
/// The edge is the highest rate of which this part arrives.
const ARRIVES: f64 = 0.98;
const BISECTIONS: u32 = 6;
/// Rates at which the round trips are shown, as parts of the edge.
const BESIDE_THE_EDGE: [f64; 7] = [0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1];

#[derive(Clone, Copy, Debug)]
struct Load {
    hops: u32,
    burst: u32,
    mbps: f64,
}

/// Means over the seeds.
#[derive(Clone, Copy, Debug, Default)]
struct Means {
    mbps: f64,
    rtt_ms: f64,
    rtt_p95_ms: f64,
}

fn main() {
    let settings: Vec<String> = env::args().skip(1).collect();
    let heads: String = BESIDE_THE_EDGE.iter().map(|part| format!(" {part:.2} |")).collect();
    println!("| hops | segments in a burst | edge, Mbit/s | the most that arrives |{heads}");
    println!("|---|---|---|---|{}", "---|".repeat(BESIDE_THE_EDGE.len()));
    let paths: Vec<(u32, u32)> = HOPS.iter().flat_map(|hops| BURSTS.map(|burst| (*hops, burst))).collect();
    for row in in_parallel(paths, |(hops, burst)| row(hops, burst, &settings)) {
        println!("{row}");
    }
}

fn row(hops: u32, burst: u32, settings: &[String]) -> String {
    let at = |mbps| measure(Load { hops, burst, mbps }, settings);
    let edge = edge(at);
    let beside = BESIDE_THE_EDGE.map(|part| at(edge * part));
    let most = beside.iter().map(|means| means.mbps).fold(0.0, f64::max);
    let cells: String =
        beside.iter().map(|means| format!(" {:.0}, {:.0} |", means.rtt_ms, means.rtt_p95_ms)).collect();
    format!("| {hops} | {burst} | {edge:.1} | {most:.1} |{cells}")
}

fn edge(at: impl Fn(f64) -> Means) -> f64 {
    let arrives = |mbps: f64| at(mbps).mbps >= ARRIVES * mbps;
    let mut most = 1.0;
    while arrives(most) {
        most *= 2.0;
    }
    let mut least = most / 2.0;
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(least, most);
        *(if arrives(middle) { &mut least } else { &mut most }) = middle;
    }
    least
}

fn measure(load: Load, settings: &[String]) -> Means {
    let gap_ms = f64::from(load.burst) * PAYLOAD * 8.0 / load.mbps / 1e3;
    let gap_us = (gap_ms * 1e3).round();
    let ack_us = gap_us * (ACK_MS / gap_ms).ceil();
    let mut sets = vec![
        format!("topology.hops={}", load.hops),
        format!(
            "traffic=[{{ from: first, to: last, kind: cbr, segment_bytes: {PAYLOAD}, flows: {}, apart: 0s, start: 1s, \
             every: {gap_us}us }}, {{ from: first, to: last, kind: probe, start: 1s, every: {ack_us}us }}]",
            load.burst
        ),
    ];
    sets.extend_from_slice(settings);
    let scenario = Scenario::load(Path::new("configs/radios-limit.yaml"), &sets)
        .unwrap_or_else(|error| panic!("{error:?}"));
    let armed = scenario.under("datagrams").expect("an arm");
    let count = SEEDS.count() as f64;
    let mut means = Means::default();
    for seed in SEEDS {
        let prepared = armed.prepare(seed).expect("a plan");
        let run = sim::run(&prepared.plan).expect("a sound plan");
        let ms = |ns: u64| ns as f64 / 1e6;
        let spread = run.flows.iter().find_map(|flow| flow.probed?.spread);
        means.mbps += run.total_kbps() / 1e3 / count;
        means.rtt_ms += spread.map_or(0.0, |spread| ms(spread.median_ns)) / count;
        means.rtt_p95_ms += spread.map_or(0.0, |spread| ms(spread.p95_ns)) / count;
    }
    means
}
