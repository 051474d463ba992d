//! Prints the result of a measurement for people, or for a program.

use hopwise_lab::units::Size;

use crate::measure::protocol::{FlowSeen, Plan};
use crate::measure::rate::rate_of;

/// A line for each flow, or one JSON object.
pub(super) fn result(plan: &Plan, flows: &[FlowSeen], is_json: bool) -> String {
    if is_json {
        let json = serde_json::json!({ "plan": plan, "flows": flows });
        json.to_string() + "\n"
    } else {
        flows.iter().map(row).collect()
    }
}

fn row(seen: &FlowSeen) -> String {
    let FlowSeen { flow, bytes, side, sha256, problem, .. } = seen;
    let mut row = format!("f{flow}  {}  {}  {}", side.remote, Size(*bytes), rate_of(*bytes, seen.time()));
    if let Some(tcp) = &side.tcp {
        if let Some((hops, source)) = tcp.path.way_back() {
            row.push_str(&format!("  {hops} hops ({source})"));
        }
        row.extend(tcp.shadows.iter().map(|shadow| format!("  {shadow}")));
    }
    if let Some(sha256) = sha256 {
        row.push_str(&format!("  SHA-256 {sha256}"));
    }
    if let Some(problem) = problem {
        row.push_str(&format!("  ended early: {problem}"));
    }
    row + "\n"
}
