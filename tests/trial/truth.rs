//! Trials in the radio world whose truth is known: arms that differ in their seeds alone, and arms with 5 % planted.
//!
//! `lab/src/statistics/tests` does this with goodputs drawn from distributions; here they come from runs, as for a
//! user. By default there are fewer trials than in the documents; with `HOPWISE_LONG` set, all of them.

use std::thread;

use hopwise_lab::scenario::Scenario;
use hopwise_lab::sim;
use hopwise_lab::statistics::{Comparison, ComparisonVerdict, MARGIN, Samples, compare};

/// Static routes: runs scatter a little.
const CHAIN: &str = "
topology: { kind: chain, hops: 4 }
radio: { profile: dsss-11mbps }
traffic: [{ from: first, to: last, kind: bulk }]
arms: { x: { receiver: delayed, sender: [newreno] } }
run: { duration: 11s, warmup: 1s }
";

/// Nodes that stand elsewhere in every run, and routes that are found and break: runs have little in common.
const FIELD: &str = "
topology: { kind: random, nodes: 14, width_m: 700, height_m: 500 }
mobility: { speed_mps: [1, 20] }
routing: { protocol: aodv }
traffic: [{ from: first, to: last, kind: bulk }]
arms: { x: { receiver: delayed, sender: [newreno] } }
run: { duration: 6s, warmup: 1s }
";

const BLOCKS: usize = 5;

fn trials() -> usize {
    if std::env::var_os("HOPWISE_LONG").is_some() { 1_000 } else { 150 }
}

/// The goodputs of runs with seeds of their own.
fn goodputs(scenario: &str, count: usize) -> Vec<f64> {
    let scenario = Scenario::parse("truth", scenario, &[]).expect("a scenario");
    let goodput = |seed: u64| {
        let prepared = scenario.plan(Some("x"), seed).expect("a plan");
        sim::run(&prepared.plan).expect("a world").total_kbps()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let seeds: Vec<u64> = (1..=count as u64).collect();
    let parts = seeds.chunks(count.div_ceil(threads));
    thread::scope(|scope| {
        let part = |seeds: &[u64]| seeds.iter().copied().map(goodput).collect::<Vec<_>>();
        let threads: Vec<_> = parts.map(|seeds| scope.spawn(move || part(seeds))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("runs end")).collect()
    })
}

/// Trials of two arms, whose every run had a seed of its own. The second arm's goodputs are multiplied by `ratio`.
fn verdicts(goodputs: &[f64], ratio: f64) -> Vec<Comparison> {
    let samples = |arm: &str, values: &[f64], ratio: f64| Samples {
        arm: arm.to_owned(),
        values: (1..).zip(values.iter().map(|value| value * ratio)).collect(),
    };
    let trial = |values: &[f64]| {
        let (baseline, arm) = values.split_at(BLOCKS);
        compare(&samples("a", baseline, 1.0), &[samples("b", arm, ratio)], MARGIN).remove(0)
    };
    goodputs.chunks_exact(2 * BLOCKS).map(trial).collect()
}

fn count(found: &[Comparison], verdicts: &[ComparisonVerdict]) -> usize {
    found.iter().filter(|comparison| verdicts.contains(&comparison.verdict)).count()
}

/// 5 % of the trials and two standard errors: 64 of 1,000.
fn most_false(trials: usize) -> usize {
    let trials = trials as f64;
    (0.05 * trials + 2.0 * (0.05 * 0.95 * trials).sqrt()).ceil() as usize
}

/// The standard deviation of single runs, as a share of their mean.
fn scatter(goodputs: &[f64]) -> f64 {
    let n = goodputs.len() as f64;
    let mean = goodputs.iter().sum::<f64>() / n;
    let squares: f64 = goodputs.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / (n - 1.0)).sqrt() / mean
}

#[test]
fn trials_of_equal_arms_in_the_radio_world_seldom_have_a_false_verdict_and_find_5_percent() {
    let trials = trials();
    let goodputs = goodputs(CHAIN, trials * 2 * BLOCKS);
    let equal = verdicts(&goodputs, 1.0);
    let scatter = scatter(&goodputs);
    let wrong = count(&equal, &[ComparisonVerdict::Faster, ComparisonVerdict::Slower]);
    let planted = verdicts(&goodputs, 1.05);
    let (found, opposite) =
        (count(&planted, &[ComparisonVerdict::Faster]), count(&planted, &[ComparisonVerdict::Slower]));
    let same = count(&planted, &[ComparisonVerdict::NoDifference]);
    println!(
        "chains, {BLOCKS} seeds, {:.1} % scatter: {wrong} of {trials} equal arms told apart; of 5 % planted {found} \
         found, {same} taken for equal, {opposite} for slower",
        scatter * 100.0
    );
    assert!(wrong <= most_false(trials), "{wrong} of {trials}");
    // The value in docs/statistics.md for 5 seeds and this scatter, less two standard errors.
    assert!(scatter < 0.02, "{scatter}");
    let stated = 0.80 * trials as f64 - 2.0 * (0.8 * 0.2 * trials as f64).sqrt();
    assert!(found as f64 >= stated && opposite == 0, "{found} of {trials}");
    assert!(same <= most_false(trials), "{same} of {trials}");
}

#[test]
fn trials_of_equal_arms_over_fields_that_differ_seldom_have_a_false_verdict() {
    let trials = trials();
    let goodputs = goodputs(FIELD, trials * 2 * BLOCKS);
    let wrong = count(&verdicts(&goodputs, 1.0), &[ComparisonVerdict::Faster, ComparisonVerdict::Slower]);
    let silent = goodputs.iter().filter(|goodput| **goodput == 0.0).count();
    println!(
        "fields, {BLOCKS} seeds, {:.0} % scatter, {silent} runs without goodput: {wrong} of {trials} equal arms told \
         apart",
        scatter(&goodputs) * 100.0
    );
    assert!(wrong <= most_false(trials), "{wrong} of {trials}");
}
