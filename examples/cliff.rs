//! Goodput against the gap between segments on a chain of eight hops, as a picture: the reason why `train` looks for a
//! gap.
//!
//! `cargo run --release --example cliff > docs/cliff.svg`. Datagrams of 1000 bytes leave at fixed gaps under both MAC
//! rules, three seeds each. Horizontal lines show the goodput of the arms of `configs/train.yaml`.

use std::fmt::Write;
use std::path::Path;

use hopwise_lab::parallel::in_parallel;
use hopwise_lab::scenario::Scenario;
use hopwise_lab::sim;

const SEEDS: u64 = 3;
const GAPS_US: std::ops::RangeInclusive<u32> = 12_000..=32_000;
const STEP_US: usize = 500;
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const MARGIN: f64 = 60.0;
const MOST_KBPS: f64 = 450.0;

/// MAC rules, their colour, and the arms whose figures go across.
const RULES: [(&str, &str); 2] = [("ns2", "#c0392b"), ("standard", "#2467a8")];
const ARMS: [&str; 3] = ["dca", "tda", "train"];

fn main() {
    let mut out = String::new();
    begin(&mut out);
    for (rules, colour) in RULES {
        let gaps: Vec<u32> = GAPS_US.step_by(STEP_US).collect();
        let carried = in_parallel(gaps.clone(), |gap_us| {
            let paced = ["traffic.0.kind=cbr".to_owned(), format!("traffic.0.every={gap_us}us")];
            mean(rules, "delayed", &paced)
        });
        let points: Vec<_> = gaps
            .iter()
            .zip(&carried)
            .map(|(gap_us, kbps)| format!("{:.1},{:.1}", x(f64::from(*gap_us) / 1e3), y(*kbps)))
            .collect();
        line(
            &mut out,
            format_args!(
                r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
                points.join(" ")
            ),
        );
        for arm in ARMS {
            across(&mut out, colour, &format!("{arm}, {rules}"), mean(rules, arm, &[]));
        }
    }
    line(&mut out, format_args!("</svg>"));
    print!("{out}");
}

fn mean(rules: &str, arm: &str, more: &[String]) -> f64 {
    let mut sets = vec![format!("mac.rules={rules}"), "run.duration=150s".to_owned()];
    sets.extend_from_slice(more);
    let scenario = Scenario::load(Path::new("configs/train.yaml"), &sets).expect("a scenario");
    let arm = scenario.under(arm).expect("an arm");
    let kbps = |seed| {
        let prepared = arm.prepare(seed).expect("a plan");
        sim::run(&prepared.plan).expect("a sound plan").total_kbps()
    };
    (1..=SEEDS).map(kbps).sum::<f64>() / SEEDS as f64
}

fn x(gap_ms: f64) -> f64 {
    let (from, to) = (f64::from(*GAPS_US.start()) / 1e3, f64::from(*GAPS_US.end()) / 1e3);
    MARGIN + (gap_ms - from) / (to - from) * (WIDTH - 3.0 * MARGIN)
}

fn y(kbps: f64) -> f64 {
    HEIGHT - MARGIN - kbps / MOST_KBPS * (HEIGHT - 1.5 * MARGIN)
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a String grows");
}

fn begin(out: &mut String) {
    line(
        out,
        format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">
<style>text {{ font: 12px sans-serif }}</style>"#
        ),
    );
    line(out, format_args!(r##"<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>"##));
    for kbps in (0..=400).step_by(100) {
        let at = y(f64::from(kbps));
        let right = WIDTH - 2.0 * MARGIN;
        line(out, format_args!(r##"<path d="M{MARGIN} {at:.1}H{right}" stroke="#dddddd" fill="none"/>"##));
        line(out, format_args!(r#"<text x="20" y="{:.1}">{kbps}</text>"#, at + 4.0));
    }
    for gap_ms in (12..=32).step_by(4) {
        line(
            out,
            format_args!(
                r#"<text x="{:.1}" y="{}" text-anchor="middle">{gap_ms}</text>"#,
                x(f64::from(gap_ms)),
                HEIGHT - 38.0
            ),
        );
    }
    line(
        out,
        format_args!(
            r#"<text x="{}" y="{}" text-anchor="middle">gap between segments, ms</text>"#,
            WIDTH / 2.0 - MARGIN / 2.0,
            HEIGHT - 14.0
        ),
    );
    line(out, format_args!(r#"<text x="12" y="16">kbit/s, 8 hops, 2 Mbit/s</text>"#));
}

fn across(out: &mut String, colour: &str, name: &str, kbps: f64) {
    let (at, right) = (y(kbps), WIDTH - 2.0 * MARGIN);
    line(
        out,
        format_args!(
            r#"<path d="M{MARGIN} {at:.1}H{right}" stroke="{colour}" stroke-dasharray="3 4" fill="none"/>"#
        ),
    );
    line(out, format_args!(r#"<text x="{}" y="{:.1}" fill="{colour}">{name}</text>"#, right + 6.0, at + 4.0));
}
