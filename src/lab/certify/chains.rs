//! Chains of nodes against the goodputs that ns-2 measured over them.

use hopwise_air::certificate::{Expected, Probe};
use hopwise_lab::parallel::in_parallel;
use hopwise_lab::sim::{self, calibration};

/// Largest distance of a chain's goodput from that of ns-2, in per cent.
struct Bounds {
    routing: &'static str,
    seeds: usize,
    short: f64,
    /// Beyond six hops.
    long: f64,
    mean: f64,
}

const STATIC: Bounds = Bounds { routing: "static", seeds: 5, short: 2.5, long: 2.5, mean: 0.7 };
/// Under AODV seeds differ by 7 to 17 % beyond six hops, and ns-2's own means with them.
const AODV: Bounds = Bounds { routing: "aodv", seeds: 20, short: 3.0, long: 20.0, mean: 3.0 };

/// Returns whether ns-2 has measured chains with this profile.
pub(super) fn are_measured(profile: &str) -> bool {
    calibration::chains().any(|row| row.profile == profile)
}

/// The chains that ns-2 measured, run with our TCP in the nodes.
pub(super) fn probes(profile: &str) -> Vec<Probe> {
    [agreement(profile, &STATIC), agreement(profile, &AODV)].concat()
}

fn agreement(profile: &str, bounds: &Bounds) -> Vec<Probe> {
    let &Bounds { routing, seeds, .. } = bounds;
    let is_wanted = |row: &calibration::Row| row.routing == routing && row.profile == profile;
    let rows: Vec<_> = calibration::chains().filter(is_wanted).collect();
    let plans = rows.iter().flat_map(|row| (1..=seeds as u64).map(|seed| row.cell().plan(seed)));
    let kbps = in_parallel(plans.collect(), |plan| sim::run(&plan).map_or(0.0, |r| r.total_kbps()));
    let mut probes = Vec::new();
    let mut ratios = 0.0;
    for (row, kbps) in rows.iter().zip(kbps.chunks(seeds)) {
        let measured = kbps.iter().sum::<f64>() / seeds as f64;
        ratios += measured / row.kbps;
        let percent = if row.hops() <= Some(6) { bounds.short } else { bounds.long };
        let expected = Expected::About { value: row.kbps, percent };
        let name = format!("ns-2 {routing}, {} {}", row.agent, row.detail.trim_end_matches("/n:1"));
        probes.push(Probe { name, unit: "kbit/s", measured, expected });
    }
    if !rows.is_empty() {
        let expected = Expected::About { value: 100.0, percent: bounds.mean };
        let measured = 100.0 * ratios / rows.len() as f64;
        probes.push(Probe {
            name: format!("ns-2 {routing}, mean of the ratios"),
            unit: "%",
            measured,
            expected,
        });
    }
    probes
}
