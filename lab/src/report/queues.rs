//! The waits in the queues, hop by hop.

use std::fmt::Write as _;

use super::View;
use super::chart::escape;
use super::tables::point_row;
use crate::result::{QueueRow, RunResult};
use crate::scenario::point::MatrixPoint;
use crate::sim::QueueWait;
use crate::statistics::summarize;

/// Nodes beyond these stand in the records alone.
const MOST_NODES: usize = 64;

/// The kinds of packets whose waits are told apart.
type PacketKind = (&'static str, fn(&QueueRow) -> Option<QueueWait>);
const KINDS: [PacketKind; 2] = [("data", |row| row.data), ("ACKs", |row| row.acks)];

/// A row for each node and kind of packets, and a cell for each arm; nothing where no run knows its waits. Two columns
/// for each arm would be wider than a page.
pub(super) fn table(view: &View<'_>) -> String {
    let records = &view.bundle.records;
    if records.iter().all(|record| record.result.queues.is_empty()) {
        return String::new();
    }
    let arms = view.arms_over_time();
    let heads: String =
        arms.iter().map(|arm| format!("<th class=\"{}\">{}</th>", view.class(arm), escape(arm))).collect();
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"queues\"><thead><tr><th>node</th><th>packets</th>{heads}</tr></thead>"
    );
    for point in &view.bundle.trial.points {
        let _ = write!(html, "<tbody>{}", point_row(point, arms.len() + 2));
        nodes(view, point).into_iter().for_each(|node| html.push_str(&rows(view, point, node)));
        html.push_str("</tbody>");
    }
    html.push_str("</table></div>");
    let lead = "Milliseconds from the interface queue of a node to a packet's first frame, and in brackets the time \
                that 95 % did not exceed: means over the runs.";
    format!(
        "<section id=\"queues\"><h2>Waits in queues</h2><p class=\"lead\">{lead}</p>{}</section>\n",
        view.folded("Node by node", &html)
    )
}

/// The rows of a node: one for each kind of packets that it sent in some run.
fn rows(view: &View<'_>, point: &MatrixPoint, node: &str) -> String {
    let arms = view.arms_over_time();
    let row = |(kind, of): PacketKind| {
        let cells: Vec<_> = arms.iter().map(|arm| cell(&waits(view, (point, arm), node, of))).collect();
        let is_known = cells.iter().any(|cell| !cell.is_empty());
        is_known.then(|| format!("<th>{kind}</th><td>{}</td></tr>", cells.join("</td><td>")))
    };
    let rows: Vec<_> = KINDS.into_iter().filter_map(row).collect();
    let head = format!("<tr><th rowspan=\"{}\">{}</th>", rows.len(), escape(node));
    if rows.is_empty() { String::new() } else { head + &rows.join("<tr>") }
}

/// The nodes that sent in some run, as the runs have them.
fn nodes<'a>(view: &'a View<'_>, point: &'a MatrixPoint) -> Vec<&'a str> {
    let mut nodes: Vec<&str> = Vec::new();
    for QueueRow { node, .. } in view.at_point(point).flat_map(|record| &record.result.queues) {
        if !nodes.contains(&node.as_str()) && nodes.len() < MOST_NODES {
            nodes.push(node);
        }
    }
    nodes
}

/// The waits at a node in the runs of an arm.
fn waits(
    view: &View<'_>,
    (point, arm): (&MatrixPoint, &str),
    node: &str,
    of: fn(&QueueRow) -> Option<QueueWait>,
) -> Vec<QueueWait> {
    let at = |result: &RunResult| result.queues.iter().find(|row| row.node == node).and_then(of);
    view.runs(point, arm).filter_map(|record| at(&record.result)).collect()
}

fn cell(waits: &[QueueWait]) -> String {
    let mean = |of: fn(&QueueWait) -> f64| Some(summarize(&waits.iter().map(of).collect::<Vec<_>>())?.mean);
    let both = mean(|wait| wait.mean_ms).zip(mean(|wait| wait.p95_ms));
    both.map_or(String::new(), |(mean, p95)| format!("{mean:.1} ({p95:.1})"))
}
