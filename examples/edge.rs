//! Pairs of agents beside CUBIC over the scenes of `configs/edge`, as a table of Markdown. The last pair is compared. A
//! second table has what each pair carries beside the first one where it carries least.
//!
//! `cargo run --release --example edge -- tuning` runs `configs/edge/tuning.yaml`, of which the rule of the pair may
//! know. With `test` it runs `configs/edge/test.yaml`, which is for a rule that is done, and with `wires`
//! `configs/edge/wires.yaml`, which judges when the rule takes a path for a wire. Further words choose arms of
//! `configs/edge.yaml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use hopwise_lab::scenario::Scenario;
use hopwise_lab::sim;
use serde::Deserialize;

const TUNING_SEEDS: std::ops::RangeInclusive<u64> = 1..=2;
const TEST_SEEDS: std::ops::RangeInclusive<u64> = 201..=203;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scene {
    scene: String,
    /// True if flows are alike: their shares are shown then.
    #[serde(default)]
    alike: bool,
    /// The goal for the ratio of goodputs.
    least: Option<f64>,
    /// The goal for the ratio of the probe's waits.
    most: Option<f64>,
    set: BTreeMap<String, serde_yaml::Value>,
}

/// The means of one arm in one scene.
#[derive(Clone, Copy, Debug, Default)]
struct Means {
    mbps: f64,
    probe_ms: f64,
    jain: f64,
    /// Half of the transfers that end took no longer.
    page_ms: f64,
}

fn main() {
    let mut words = env::args().skip(1);
    let set = words.next().unwrap_or_else(|| "test".to_owned());
    let mut arms: Vec<String> = words.collect();
    if arms.is_empty() {
        arms = ["cubic", "vegas", "copa", "tack", "convoy"].map(str::to_owned).to_vec();
    }
    let seeds = if set == "test" { TEST_SEEDS } else { TUNING_SEEDS };
    let file = format!("configs/edge/{set}.yaml");
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let scenes: Vec<Scene> = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    println!("| scene | {} | goodput | probe | goal |", arms.join(" | "));
    println!("|---|{}---|---|---|", "---|".repeat(arms.len()));
    let mut goodputs: Vec<Vec<f64>> = Vec::new();
    for scene in &scenes {
        let means: Vec<Means> = arms.iter().map(|arm| measure(scene, arm, seeds.clone())).collect();
        println!("{}", row(scene, &means));
        goodputs.push(means.iter().map(|arm| arm.mbps / means[0].mbps).collect());
    }
    println!("\n| arm | its least goodput | in the scene | scenes below −2 % |\n|---|---|---|---|");
    for (nth, arm) in arms.iter().enumerate().skip(1) {
        let ratios = goodputs.iter().map(|ratios| ratios[nth]);
        let below = ratios.clone().filter(|ratio| *ratio < 0.98).count();
        let (least, scene) = ratios.zip(&scenes).min_by(|a, b| a.0.total_cmp(&b.0)).expect("a scene");
        println!("| {arm} | {:+.1} % | {} | {below} |", (least - 1.0) * 1e2, scene.scene);
    }
}

fn measure(scene: &Scene, arm: &str, seeds: std::ops::RangeInclusive<u64>) -> Means {
    let in_a_line = |value| serde_json::to_string(value).expect("what was read can be written");
    let sets: Vec<_> = scene.set.iter().map(|(path, value)| format!("{path}={}", in_a_line(value))).collect();
    let scenario = Scenario::load(Path::new("configs/edge.yaml"), &sets).expect("a scenario");
    let armed = scenario.under(arm).unwrap_or_else(|refusal| panic!("{arm}: {refusal:?}"));
    let count = seeds.clone().count() as f64;
    let mut means = Means::default();
    for seed in seeds {
        let prepared = armed.prepare(seed).expect("a plan");
        let run = sim::run(&prepared.plan).expect("a sound plan");
        let ms = |ns: u64| ns as f64 / 1e6;
        let probe = run.flows.iter().find_map(|flow| flow.probed?.spread);
        let page = run.flows.iter().find_map(|flow| flow.completions.as_ref()?.spread);
        means.mbps += run.total_kbps() / 1e3 / count;
        means.jain += run.jain() / count;
        means.probe_ms += probe.map_or(0.0, |spread| ms(spread.p95_ns)) / count;
        means.page_ms += page.map_or(0.0, |spread| ms(spread.median_ns)) / count;
    }
    means
}

fn row(scene: &Scene, means: &[Means]) -> String {
    let cell = |means: &Means| {
        let share = if scene.alike { format!(" ({:.2})", means.jain) } else { String::new() };
        let page = if means.page_ms > 0.0 { format!(", a page {:.0}", means.page_ms) } else { String::new() };
        format!(" {:.1}, {:.0}{share}{page} |", means.mbps, means.probe_ms)
    };
    let (first, last) = (means.first().expect("an arm"), means.last().expect("an arm"));
    let (goodput, probe) = (last.mbps / first.mbps, last.probe_ms / first.probe_ms);
    let is_met = scene.least.is_none_or(|least| goodput >= least)
        && scene.most.is_none_or(|most| probe <= most)
        && (!scene.alike || last.jain >= 0.95);
    let goal = match (scene.least, scene.most) {
        (Some(least), Some(most)) => {
            format!("{:+.0} %, {most}{}", (least - 1.0) * 1e2, if is_met { "" } else { ": **missed**" })
        }
        _ => String::new(),
    };
    let cells: String = means.iter().map(cell).collect();
    format!("| {} |{cells} {:+.1} % | {probe:.2} | {goal} |", scene.scene, (goodput - 1.0) * 1e2)
}
