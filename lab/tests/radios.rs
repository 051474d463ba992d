//! Chains of 802.11n beside ns-3 3.37's measurements, which `configs/calibration/ns3_ht.csv` has. No setting is
//! tuned to a cell.
//!
//! `cargo test -p hopwise-lab --test radios -- --nocapture` prints the cells.

use std::path::Path;
use std::sync::LazyLock;

use hopwise_lab::parallel::in_parallel;
use hopwise_lab::scenario::Scenario;
use hopwise_lab::sim::{Plan, TrafficPlan, run};

const CHAINS: &str = include_str!("../../configs/calibration/ns3_ht.csv");
const DATAGRAMS: &str = include_str!("../../configs/calibration/ns3_ht_udp.csv");

/// A chain that ns-3 has measured.
#[derive(Clone, Debug)]
struct Cell {
    mcs: u8,
    is_aggregated: bool,
    hops: u32,
    /// The segments for each ACK; 0 for datagrams.
    segments: u32,
    /// The mean of ns-3's seeds, and what the lowest and the highest gave.
    kbps: f64,
    range: (f64, f64),
}

impl Cell {
    fn name(&self) -> String {
        let Cell { mcs, is_aggregated, hops, segments, .. } = self;
        let how = if *is_aggregated { "A-MPDU" } else { "single frames" };
        format!("MCS {mcs}, {how}, {hops} hops, an ACK for {segments} segments")
    }

    fn plan(&self, seed: u64) -> Plan {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/calibration/ns3-ht.yaml");
        let mut sets = vec![
            format!("radio.profile=ht20-mcs{}", self.mcs),
            format!("radio.ampdu={}", if self.is_aggregated { "64" } else { "off" }),
            format!("topology.hops={}", self.hops),
        ];
        if self.mcs == 0 {
            sets.extend(["run.warmup=4s", "run.duration=19s"].map(str::to_owned));
        }
        let arm = if self.segments == 2 { "d2" } else { "d1" };
        let scenario = Scenario::load(&path, &sets).expect("a scenario");
        let mut plan = scenario.plan(Some(arm), seed).expect("an arm of it").plan;
        if self.segments == 0 {
            let marks = plan.routing.marks(0);
            plan.flows[0].traffic = TrafficPlan::Datagrams { bytes: 1_472, every: None, marks };
        }
        plan
    }
}

fn chains() -> Vec<Cell> {
    let cell = |line: &str| {
        let fields: Vec<_> = line.split(',').collect();
        let [_, _, mcs, ampdu, _, hops, segments, _, kbps, least, most] = fields[..] else {
            panic!("eleven fields: {line}")
        };
        let number = |text: &str| text.parse().expect("kbit/s");
        Cell {
            mcs: mcs.parse().expect("an MCS"),
            is_aggregated: ampdu == "on",
            hops: hops.parse().expect("hops"),
            segments: segments.parse().expect("segments"),
            kbps: number(kbps),
            range: (number(least), number(most)),
        }
    };
    CHAINS.lines().skip(1).map(cell).collect()
}

fn datagrams() -> Vec<Cell> {
    let cell = |line: &str| {
        let fields: Vec<_> = line.split(',').collect();
        let [mcs, ampdu, hops, kbps] = fields[..] else { panic!("four fields: {line}") };
        let kbps = kbps.parse().expect("kbit/s");
        Cell {
            mcs: mcs.parse().expect("an MCS"),
            is_aggregated: ampdu == "on",
            hops: hops.parse().expect("hops"),
            segments: 0,
            kbps,
            range: (kbps, kbps),
        }
    };
    DATAGRAMS.lines().skip(1).map(cell).collect()
}

/// A cell with the mean of our seeds in kbit/s.
#[derive(Clone, Debug)]
struct Run {
    cell: Cell,
    kbps: f64,
}

/// Runs the cells with so many seeds each, and prints what they carry beside ns-3's figures.
fn runs(cells: Vec<Cell>, seeds: impl Fn(&Cell) -> u64) -> Vec<Run> {
    let plans: Vec<_> = cells.iter().flat_map(|cell| (1..=seeds(cell)).map(|seed| cell.plan(seed))).collect();
    let kbps = in_parallel(plans, |plan| run(&plan).expect("a plan that can be built").total_kbps());
    let mut kbps = kbps.into_iter();
    let of_cell = |cell: Cell| {
        let seeds = seeds(&cell);
        let sum: f64 = kbps.by_ref().take(seeds as usize).sum();
        let run = Run { kbps: sum / seeds as f64, cell };
        println!("{}", run.line());
        run
    };
    cells.into_iter().map(of_cell).collect()
}

impl Run {
    fn line(&self) -> String {
        let Run { cell, kbps } = self;
        format!("{:<58} {kbps:>8.0} of {:>6.0}  {:.4}", cell.name(), cell.kbps, kbps / cell.kbps)
    }
}

/// The chains that carry TCP, which all tests share.
static TCP: LazyLock<Vec<Run>> = LazyLock::new(|| runs(chains(), |cell| if cell.hops > 2 { 4 } else { 3 }));

/// The runs that are further than `most` beyond the range of ns-3's seeds.
fn further_off(runs: &[Run], most: f64) -> Vec<String> {
    let is_off = |run: &&Run| {
        let (lowest, highest) = run.cell.range;
        run.kbps < lowest * (1.0 - most) || run.kbps > highest * (1.0 + most)
    };
    runs.iter().filter(is_off).map(Run::line).collect()
}

fn chosen(is_wanted: impl Fn(&Cell) -> bool) -> Vec<Run> {
    let chosen: Vec<_> = TCP.iter().filter(|run| is_wanted(&run.cell)).cloned().collect();
    assert!(!chosen.is_empty());
    chosen
}

#[test]
fn datagrams_over_one_hop_are_within_one_percent() {
    let off = further_off(&runs(datagrams(), |_| 2), 0.01);
    assert!(off.is_empty(), "{off:#?}");
}

#[test]
fn tcp_is_within_three_percent_over_one_and_two_hops() {
    let off = further_off(&chosen(|cell| cell.hops <= 2), 0.03);
    assert!(off.is_empty(), "{off:#?}");
}

/// ns-3's seeds agree if the lowest with one arm carries more than the highest with the other.
#[test]
fn the_order_of_arms_is_that_of_ns3_where_its_seeds_agree_on_one() {
    let two = chosen(|cell| cell.segments == 2);
    let mut agreed = 0;
    for two in &two {
        let Cell { mcs, is_aggregated, hops, .. } = two.cell;
        let is_same = |cell: &Cell| (cell.mcs, cell.is_aggregated, cell.hops) == (mcs, is_aggregated, hops);
        let one = &chosen(|cell| cell.segments == 1 && is_same(cell))[0];
        let (of_one, of_two) = (one.cell.range, two.cell.range);
        if of_two.0 > of_one.1 || of_one.0 > of_two.1 {
            agreed += 1;
            let is_more = of_two.0 > of_one.1;
            assert_eq!(two.kbps > one.kbps, is_more, "{}\n{}", one.line(), two.line());
        }
    }
    assert_eq!((agreed, two.len()), (12, 16), "pairs on whose order ns-3's seeds agree");
}

#[test]
fn tcp_in_aggregates_at_mcs_0_is_within_ten_percent_over_four_and_eight_hops() {
    let off = further_off(&chosen(|cell| cell.is_aggregated && cell.mcs == 0 && cell.hops > 2), 0.1);
    assert!(off.is_empty(), "{off:#?}");
}

/// Between hidden stations ns-3 gives packets up since it counts failures for all neighbours together. These are the
/// lowest and the highest of three seeds with that mended: `--mended=1` of `scripts/ns3/ht.cc`.
fn of_ns3_mended(cell: &Cell) -> (f64, f64) {
    match (cell.hops, cell.segments) {
        (4, 1) => (9_250.6, 9_848.2),
        (4, 2) => (10_165.5, 10_344.6),
        (8, 1) => (6_686.8, 7_070.3),
        (8, 2) => (7_218.2, 7_621.2),
        _ => panic!("{} was not measured", cell.name()),
    }
}

#[test]
fn tcp_in_aggregates_at_mcs_7_is_within_three_percent_of_what_a_mended_ns3_carries() {
    for run in chosen(|cell| cell.is_aggregated && cell.mcs == 7 && cell.hops > 2) {
        let (least, most) = of_ns3_mended(&run.cell);
        assert!((0.97 * least..=1.03 * most).contains(&run.kbps), "{}: {least} to {most}", run.line());
    }
}

#[test]
fn tcp_in_single_frames_is_within_ten_percent_over_four_and_eight_hops() {
    let off = further_off(&chosen(|cell| !cell.is_aggregated && cell.hops > 2), 0.1);
    assert!(off.is_empty(), "{off:#?}");
}
