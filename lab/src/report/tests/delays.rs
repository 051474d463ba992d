//! Delay, reordering and bursts: a folded table, and a figure of completion times.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Bundle, html, record, trial};
use crate::record::Record;

/// A run whose flow has what the table shows.
fn with_delays(arm: &str, block: u32) -> Record {
    let mut run = record(4, arm, block, 200.0);
    let mut flow = serde_json::to_value(&run.result.flows[0]).expect("a flow's row");
    flow["round_trips"] =
        json!({ "count": 9, "median_ms": 100.0, "p95_ms": 200.0, "p99_ms": 300.0 + f64::from(block) });
    flow["burst_mean"] = json!(1.5);
    flow["burst_longest"] = json!(7);
    flow["completed"] =
        json!({ "count": 3, "mean_s": 0.5, "median_s": 0.5, "p95_s": 0.75, "longest_s": 0.8 });
    run.result.flows[0] = serde_json::from_value(flow).expect("a flow's row");
    run.result.total.jain_over_time = Some(0.875);
    run
}

#[test]
fn delay_reordering_and_bursts_stand_folded_for_each_arm_where_runs_know_them() {
    let records = (1..=3).flat_map(|block| ["every", "dca"].map(|arm| with_delays(arm, block)));
    let html = html(&Bundle::new(trial(&["every", "dca"], &[4]), records.collect(), BTreeMap::new()));
    let (_, table) = html.split_once("<details id=\"delays\">").expect("a table");
    let (table, _) = table.split_once("</details>").expect("its end");
    assert!(table.starts_with("<summary>Delay, reordering and bursts</summary>"), "{table}");
    assert!(table.contains("<th title=\"rtt_p99_ms: 99 % of the round trips"), "{table}");
    assert!(!table.contains("probe"), "no run has any");
    assert!(!table.contains("Jain"), "one flow shares with no other");
    let cells = ["100.0", "200.0", "302.0", "0.500", "0.750", "1.500", "7.000"];
    let row = format!("dca</th><td>{}</td></tr>", cells.join("</td><td>"));
    assert!(table.contains(&row), "{table}");
    assert!(table.contains(">topology.hops = 4</th>"), "{table}");
}

#[test]
fn completion_times_have_a_figure_wherever_requests_or_transfers_end() {
    let records = (1..=3).map(|block| with_delays("every", block)).collect();
    let with = html(&Bundle::new(trial(&["every"], &[4]), records, BTreeMap::new()));
    let (_, figure) = with.split_once("<figure id=\"fig-completions\">").expect("a figure");
    assert!(figure.starts_with("<h3>Completion times</h3>") && figure.contains("every, seed 2: 0.75"));
    let without =
        html(&Bundle::new(trial(&["every"], &[4]), vec![record(4, "every", 1, 1.0)], BTreeMap::new()));
    assert!(!without.contains("fig-completions"));
}
