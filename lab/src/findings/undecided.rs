//! Undecided arms of a table in one line: their sentences differ in nothing that the table does not have.

use super::PointFindings;
use crate::metric::{self, Metric};
use crate::statistics::{Comparison, Figure};

/// The comparisons that need a sentence each, and a line for every figure with several undecided arms.
pub(super) fn folded<'a>(
    point: &PointFindings,
    said: impl Iterator<Item = &'a Comparison>,
) -> (Vec<&'a Comparison>, Vec<String>) {
    let mut alone: Vec<&Comparison> = said.collect();
    let mut lines = Vec::new();
    for figure in &point.figures {
        let is_open = |found: &&Comparison| found.is_of(figure) && found.is_open();
        let open: Vec<_> = alone.iter().copied().filter(is_open).collect();
        if !open.is_empty() {
            lines.push(line(figure, &open));
            alone.retain(|found| !is_open(found));
        }
    }
    (alone, lines)
}

fn line(figure: &Figure, open: &[&Comparison]) -> String {
    let title = metric::named(figure.name).map_or(figure.name.to_owned(), Metric::title);
    let within = if figure.is_goodput() { String::new() } else { format!(" in {title}") };
    let mut is_told = false;
    let arm = |found: &&Comparison| match found.need {
        None => found.arm.clone(),
        Some(need) if is_told => format!("{} ({need})", found.arm),
        Some(need) => {
            is_told = true;
            format!("{} (about {need} blocks would do, were this the true ratio)", found.arm)
        }
    };
    format!("undecided{within}: {}", open.iter().map(arm).collect::<Vec<_>>().join(", "))
}
