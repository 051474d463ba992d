//! Agreement as tables and sentences.

use std::fmt::Write as _;

use super::{ArmOrder, AtPoint, BESIDE, Contradiction, OfArm, WorldMeans};
use crate::findings::{INTERVALS, cells, columns, ends, heading};
use crate::statistics::{ComparisonVerdict, Figure, change, digits};

impl AtPoint {
    /// A table for each figure that decides, and one table of all other measurements.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        for figure in &self.figures {
            if !figure.is_goodput() {
                let _ = writeln!(text, "{}", heading(figure));
            }
            let _ = writeln!(text, "{}", self.table_of(figure));
        }
        let heads = ["arm", "world"].into_iter().chain(BESIDE.iter().map(|counter| counter.head));
        let mut beside = vec![heads.map(str::to_owned).collect()];
        for of_arm in &self.arms {
            beside.extend(of_arm.worlds.iter().map(|measured| of_arm.row_beside(measured)));
        }
        format!("{text}Means of what was measured beside it:\n{}\n", columns(&beside))
    }

    fn table_of(&self, figure: &Figure) -> String {
        let reference = self.orders.first().map_or("", |order| order.world.as_str());
        let against = format!("against {reference}");
        let unit = if figure.unit.is_empty() { "mean" } else { figure.unit };
        let [of_mean, of_gain] = INTERVALS;
        let heads = ["arm", "world", unit, of_mean, "runs", &against, of_gain, "verdict"];
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        for of_arm in &self.arms {
            rows.extend(of_arm.worlds.iter().map(|measured| of_arm.row(figure, measured)));
        }
        columns(&rows)
    }

    pub(super) fn sentences(&self, text: &mut String) {
        for comparison in self.arms.iter().flat_map(|arm| &arm.comparisons) {
            let _ = writeln!(text, "{}", comparison.sentence);
        }
        for of_arm in &self.arms {
            of_arm.causes.iter().for_each(|cause| _ = writeln!(text, "{}", cause.sentence(&of_arm.arm)));
        }
        for ArmOrder { world, figure, arms } in self.orders.iter().filter(|order| order.arms.len() > 1) {
            let of = figure.map_or(String::new(), |name| format!(" of {name}"));
            let _ = writeln!(text, "Order in {world}, by means{of}: {}.", arms.join(", "));
        }
        for Contradiction { figure, faster, slower, world, elsewhere } in &self.contradictions {
            let _ = match figure {
                None => {
                    writeln!(text, "{faster} is faster than {slower} in {world}, and slower in {elsewhere}.")
                }
                Some(name) => writeln!(
                    text,
                    "By {name} {faster} is better than {slower} in {world}, and worse in {elsewhere}."
                ),
            };
        }
        if self.orders.len() > 1 && self.contradictions.is_empty() {
            let _ = writeln!(text, "No two arms are surely in another order.");
        }
    }
}

impl OfArm {
    fn row(&self, figure: &Figure, measured: &WorldMeans) -> Vec<String> {
        let place = self.worlds.iter().position(|other| other.world == measured.world);
        let mut of_figure = self.comparisons.iter().filter(|comparison| comparison.is_of(figure));
        let comparison = place.and_then(|place| of_figure.nth(place.checked_sub(1)?));
        let known = measured.figures.iter().find(|(name, _)| *name == figure.name);
        let (mean, interval, runs) = match known {
            Some((_, summary)) => {
                cells(summary.as_ref(), summary.as_ref().map_or(1, |summary| digits(summary.mean)))
            }
            None => cells(measured.goodput_kbps.as_ref(), 1),
        };
        let mut row = vec![self.arm.clone(), measured.world.clone(), mean, interval, runs];
        row.push(comparison.and_then(|found| found.ratio).map_or(String::new(), change));
        row.push(comparison.and_then(|found| found.ci95).map_or(String::new(), ends));
        row.push(comparison.map_or(String::new(), |found| agrees(found.verdict).to_owned()));
        row
    }

    fn row_beside(&self, measured: &WorldMeans) -> Vec<String> {
        let shown = |mean: Option<f64>| mean.map_or(String::new(), |mean| format!("{mean:.1}"));
        let means = measured.beside.iter().map(|(_, mean)| shown(*mean));
        [self.arm.clone(), measured.world.clone()].into_iter().chain(means).collect()
    }
}

/// The verdict between two worlds.
fn agrees(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::NoDifference => "agrees",
        other => other.name(),
    }
}
