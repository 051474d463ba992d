//! The time-sequence graphs of runs with captures, folded.

use std::fmt::Write as _;

use super::View;
use super::chart::escape;
use super::short;
use crate::record::Record;

/// The graph of one run, drawn from a capture of it.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The record's id.
    pub run: String,
    /// The capture's name below the folder of the trial.
    pub file: String,
    /// An SVG with classes of its own.
    pub svg: String,
    /// Packets that are drawn.
    pub drawn: u64,
    /// Packets for which there was no room.
    pub left: u64,
}

/// The section; nothing where no run has a capture.
pub(super) fn section(view: &View<'_>) -> String {
    let record = |graph: &Graph| view.bundle.records.iter().find(|record| record.id == graph.run);
    let each: String =
        view.bundle.graphs.iter().filter_map(|graph| Some(folded(view, record(graph)?, graph))).collect();
    if each.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"sequence\"><h2>Segments and ACKs</h2><p class=\"lead\">The first run of each arm, from the \
         capture of its receiver. Data is a line from its first byte to its last; red was sent again. Dots are ACKs, \
         in a colour for each rule; under the pointer they tell the agent, the rule and the wait. The dashed line is \
         the window.</p>{each}</section>\n"
    )
}

fn folded(view: &View<'_>, record: &Record, graph: &Graph) -> String {
    let Graph { file, svg, drawn, left, .. } = graph;
    let at = if record.point.is_empty() { String::new() } else { format!(", {}", short(&record.point)) };
    let mut html = format!(
        "<details class=\"{}\"><summary>{}{at}, seed {}</summary><figure>{svg}<figcaption>{drawn} packets of {}.",
        view.class(&record.arm),
        escape(&record.arm),
        record.seed,
        escape(file),
        at = escape(&at)
    );
    if *left > 0 {
        let _ = write!(html, " {left} later ones are left out: `hopwise capture graph` draws all.");
    }
    html + "</figcaption></figure></details>\n"
}
