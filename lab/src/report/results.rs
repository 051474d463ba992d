//! The results: a table of each point with bars in its cells, the best arm first, and a map of a matrix above them.

use std::fmt::Write as _;

use super::chart::escape;
use super::tables::{ASIDE, SWATCH, arm_row, point_row, prose};
use super::{View, short};
use crate::findings::{
    ArmFindings, DELAY_AND_FAIRNESS, INTERVALS, MeansCell, PointFindings, cells, ends, label,
};
use crate::metric::{self, Metric};
use crate::statistics::{Comparison, ComparisonVerdict, Figure, GOODPUT, change, digits};

/// Undecided arms of a point beyond these are folded.
const MOST_OPEN: usize = 8;

/// The tables of all points, below the map of a matrix.
pub(super) fn section(view: &View<'_>) -> String {
    let points = &view.findings.points;
    let tables: String = match (view.is_large(), points.len()) {
        (true, 2..) => points.iter().map(|point| folded(view, point)).collect(),
        _ => table(view, &points.iter().map(|point| (point, point.best_first())).collect::<Vec<_>>()),
    };
    maps(view) + &tables + &remarks(view)
}

/// The table of a point of a large matrix, with its undecided arms folded once more.
fn folded(view: &View<'_>, point: &PointFindings) -> String {
    let (open, decided): (Vec<_>, Vec<_>) =
        point.best_first().into_iter().partition(|arm| is_open(point, arm));
    let label = escape(&label(&point.point));
    let of = |arms: Vec<_>| table(view, &[(point, arms)]);
    let body = if open.len() > MOST_OPEN {
        let count = open.len();
        format!("{}<details><summary>{count} undecided arms</summary>{}</details>", of(decided), of(open))
    } else {
        of(point.best_first())
    };
    format!("<details><summary>{label}</summary>{body}</details>\n")
}

/// A column group of the table: a mean with a bar, and the comparison by it.
struct FigureGroup<'a> {
    figure: &'a Figure,
    /// True if it decides.
    decides: bool,
    /// The largest of its means.
    most: f64,
}

/// Arms at points as rows. Kernels' arms have no agents: they stand apart, below ours.
fn table(view: &View<'_>, points: &[(&PointFindings, Vec<&ArmFindings>)]) -> String {
    let figures = view.bundle.trial.figures();
    let goodput_decides = figures.contains(&GOODPUT);
    let others = figures.iter().filter(|figure| !figure.is_goodput());
    let groups: Vec<_> = std::iter::once((&GOODPUT, goodput_decides))
        .chain(others.map(|figure| (figure, true)))
        .map(|(figure, decides)| FigureGroup { figure, decides, most: most(points, figure) })
        .collect();
    let beside = beside(points, &figures);
    let against = escape(view.bundle.trial.arms.first().map_or("", String::as_str));
    let mut heads = "<th>arm</th>".to_owned();
    for (nth, group) in groups.iter().enumerate() {
        heads.push_str(&group.heads(&against, groups.len() == 1));
        let each = beside.iter().filter(|_| nth == 0);
        heads.extend(each.map(|(head, _)| format!("<th class=\"beside\">{}</th>", escape(head))));
    }
    let count = heads.matches("<th").count();
    let several = if groups.len() > 1 { " several" } else { "" };
    let mut html =
        format!("<div class=\"scroll\"><table class=\"results{several}\"><thead><tr>{heads}</tr></thead>");
    for (point, arms) in points {
        html.push_str("<tbody>");
        if points.len() > 1 {
            html.push_str(&point_row(&point.point, count));
        }
        let row = |arm: &&ArmFindings| {
            let mut cells = String::new();
            for (nth, group) in groups.iter().enumerate() {
                cells.push_str(&group.cells(point, arm, groups.len() == 1));
                let each = beside.iter().filter(|_| nth == 0);
                cells.extend(each.map(|(_, of)| format!("<td class=\"beside\">{}</td>", of(&arm.means))));
            }
            let open = if is_open(point, arm) { " open" } else { "" };
            format!(
                "<tr class=\"{}{open}\"><th>{SWATCH}{}</th>{cells}</tr>",
                view.class(&arm.arm),
                escape(&arm.arm)
            )
        };
        let (kernels, ours): (Vec<_>, Vec<_>) = arms.iter().partition(|arm| view.is_kernels(&arm.arm));
        html.extend(ours.into_iter().map(row));
        if !kernels.is_empty() {
            let _ = write!(html, "<tr><th colspan=\"{count}\" class=\"point\">the kernel's TCP</th></tr>");
        }
        html.extend(kernels.into_iter().map(row));
        html.push_str("</tbody>");
    }
    html + "</table></div>\n"
}

/// True if the arm is undecided in every figure.
fn is_open(point: &PointFindings, arm: &ArmFindings) -> bool {
    let mut mine = point.comparisons.iter().filter(|found| found.arm == arm.arm).peekable();
    mine.peek().is_some() && mine.all(|found| found.verdict == ComparisonVerdict::Undecided)
}

/// The largest mean of a figure, which bars are drawn against.
fn most(points: &[(&PointFindings, Vec<&ArmFindings>)], figure: &Figure) -> f64 {
    let arms = points.iter().flat_map(|(_, arms)| arms);
    let means = arms.filter_map(|arm| arm.means.of_metric(figure.name));
    means.fold(0.0, f64::max)
}

/// The head of a column, and the text of its cell.
type BesideColumn = (&'static str, MeansCell);

/// Delay and fairness that some arm knows and that no figure shows already.
fn beside(points: &[(&PointFindings, Vec<&ArmFindings>)], figures: &[Figure]) -> Vec<BesideColumn> {
    const SHOWN_BY: [(&str, &str); 4] = [
        ("RTT ms (95 %)", "rtt_median_ms"),
        ("mean RTT ms", "rtt_ms"),
        ("done in s (95 %)", "completion_median_s"),
        ("Jain", "jain"),
    ];
    let is_shown = |head: &str| {
        SHOWN_BY.iter().any(|(known, by)| *known == head && figures.iter().any(|figure| figure.name == *by))
    };
    let is_known =
        |of: MeansCell| points.iter().any(|(_, arms)| arms.iter().any(|arm| !of(&arm.means).is_empty()));
    DELAY_AND_FAIRNESS.into_iter().filter(|(head, of)| !is_shown(head) && is_known(*of)).collect()
}

impl FigureGroup<'_> {
    fn heads(&self, against: &str, is_alone: bool) -> String {
        let title = metric::named(self.figure.name).map_or(String::new(), Metric::title);
        let [of_mean, of_gain] = INTERVALS.map(|head| format!("95 % {}", head.replace(" of ", "<br>of ")));
        let mut heads = format!("<th>{}<br>{}</th>", escape(&title), escape(self.figure.unit));
        if is_alone {
            let _ = write!(heads, "<th{ASIDE}>{of_mean}</th>");
        }
        if self.decides {
            let _ = write!(
                heads,
                "<th class=\"gain\">against<br>{against}</th><th{ASIDE}>{of_gain}</th><th class=\"said\">verdict</th>"
            );
        }
        heads
    }

    fn cells(&self, point: &PointFindings, arm: &ArmFindings, is_alone: bool) -> String {
        let summary =
            if self.figure.is_goodput() { arm.summary } else { arm.means.summary(self.figure.name) };
        let digits = if self.figure.is_goodput() { 1 } else { digits(self.most) };
        let (mean, interval, runs) = cells(summary.as_ref(), digits);
        let share =
            summary.filter(|_| self.most > 0.0).map_or(0.0, |summary| 100.0 * summary.mean / self.most);
        let plural = if runs == "1" { "" } else { "s" };
        let title = match (is_alone, interval.is_empty()) {
            (false, false) => format!("{runs} run{plural}, 95 % interval {interval}"),
            _ => format!("{runs} run{plural}"),
        };
        let mut html =
            format!("<td class=\"bar\" style=\"--w:{share:.1}%\" title=\"{title}\"><b>{mean}</b></td>");
        if is_alone {
            let _ = write!(html, "<td{ASIDE}>{interval}</td>");
        }
        if self.decides {
            html.push_str(&comparison(point.comparison(&arm.arm, self.figure)));
        }
        html
    }
}

/// The cells of an arm's comparison with the baseline; none for the baseline itself.
fn comparison(found: Option<&Comparison>) -> String {
    let cell = |class: &str, text: Option<String>| format!("<td{class}>{}</td>", text.unwrap_or_default());
    let (verdict, class) = found.map_or(("baseline", "baseline"), |found| {
        let name = found.verdict.name();
        (name, if name == "no difference" { "none" } else { name })
    });
    let p = found.and_then(|found| found.p_holm).map_or(String::new(), |p| {
        let p = if p < 0.001 { "&lt; 0.001".to_owned() } else { format!("= {p:.3}") };
        format!(" title=\"p {p} (Holm)\"")
    });
    format!(
        "{}{}<td class=\"said\"><span class=\"verdict {class}\"{p}>{verdict}</span></td>",
        cell(" class=\"gain\"", found.and_then(|found| found.ratio).map(change)),
        cell(ASIDE, found.and_then(|found| found.ci95).map(ends)),
    )
}

/// Remarks on what the tables do not tell: for one point in full, for a matrix what agents did without.
fn remarks(view: &View<'_>) -> String {
    let points = &view.findings.points;
    let mut said: Vec<String> = Vec::new();
    for line in points.iter().flat_map(|point| if points.len() > 1 { point.without() } else { point.lines() })
    {
        if !said.contains(&line) {
            said.push(line);
        }
    }
    let lines: String = said.iter().map(|line| format!("<li>{}</li>", prose(line))).collect();
    if lines.is_empty() { lines } else { format!("<ul class=\"sentences\">{lines}</ul>") }
}

/// Arms by points, for goodput and for the delay; nothing where there is one point.
fn maps(view: &View<'_>) -> String {
    if view.findings.points.len() < 2 || view.bundle.trial.arms.len() < 2 {
        return String::new();
    }
    let goodput = Map { view, figure: GOODPUT.name, of: |arm| Some(arm.summary?.mean), is_more: true };
    let delay = view.findings.delay;
    let delay = delay.map(|figure| Map { view, figure, of: |arm| Some(arm.delay?.mean), is_more: false });
    let each: String = std::iter::once(goodput).chain(delay).map(|map| map.html()).collect();
    format!(
        "<div class=\"maps\">{each}</div><p class=\"lead\">The deeper a cell's colour, the nearer it is to the best of \
         its column, which is bold. Pale figures are undecided against {}.</p>\n",
        escape(view.bundle.trial.arms.first().map_or("", String::as_str))
    )
}

/// The means of arms by points, in a figure.
struct Map<'a> {
    view: &'a View<'a>,
    figure: &'a str,
    of: fn(&ArmFindings) -> Option<f64>,
    /// True if more is better.
    is_more: bool,
}

impl Map<'_> {
    fn at(&self, point: &PointFindings, arm: &str) -> Option<f64> {
        point.arms.iter().find(|known| known.arm == arm).and_then(self.of)
    }

    /// The mean as a share of the best of its column: 1 for the best.
    fn share(&self, point: &PointFindings, mean: f64) -> f64 {
        let known = point.arms.iter().filter_map(self.of).filter(|mean| *mean > 0.0);
        let share = if self.is_more {
            mean / known.fold(0.0, f64::max)
        } else {
            known.fold(f64::INFINITY, f64::min) / mean
        };
        // A column without any delivery has no best.
        if share.is_finite() { share } else { 0.0 }
    }

    fn html(&self) -> String {
        let points = &self.view.findings.points;
        let score = |arm: &str| {
            let each = points.iter().filter_map(|point| Some(self.share(point, self.at(point, arm)?)));
            each.sum::<f64>()
        };
        let mut arms: Vec<&String> = self.view.bundle.trial.arms.iter().collect();
        arms.sort_by(|one, other| score(other).total_cmp(&score(one)));
        let all = points.iter().flat_map(|point| point.arms.iter().filter_map(self.of));
        let digits = digits(all.fold(0.0, f64::max)).min(1);
        let row = |arm: &&String| {
            let cells: String = points.iter().map(|point| self.cell(point, arm, digits)).collect();
            arm_row(self.view, arm, &cells)
        };
        let rows: String = arms.iter().map(row).collect();
        let heads: String = points.iter().map(head).collect();
        let title = metric::named(self.figure).map_or(String::new(), Metric::title_with_unit);
        format!(
            "<div class=\"scroll\"><table class=\"heat\"><caption>{}</caption><thead><tr><th>{}</th>{heads}</tr>\
             </thead><tbody>{rows}</tbody></table></div>",
            escape(&title),
            escape(&varied(points))
        )
    }

    fn cell(&self, point: &PointFindings, arm: &str, digits: usize) -> String {
        let Some(mean) = self.at(point, arm) else { return "<td></td>".to_owned() };
        let share = self.share(point, mean);
        let shade = (150.0 * share - 95.0).clamp(0.0, 55.0);
        let mut found = point.comparisons.iter().filter(|found| found.arm == arm);
        let found = found.find(|found| found.figure.as_deref().unwrap_or(GOODPUT.name) == self.figure);
        let is_open = found.is_some_and(|found| found.verdict == ComparisonVerdict::Undecided);
        let class = match (share >= 1.0, is_open) {
            (true, _) => " class=\"best\"",
            (false, true) => " class=\"open\"",
            (false, false) => "",
        };
        format!("<td{class} style=\"--s:{shade:.0}%\">{mean:.digits$}</td>")
    }
}

/// The names of what the points vary: they are values alone in the heads.
fn varied(points: &[PointFindings]) -> String {
    let bare = |path: &String| path.rsplit('.').next().unwrap_or(path).to_owned();
    points.first().map_or(String::new(), |point| point.point.keys().map(bare).collect::<Vec<_>>().join(", "))
}

fn head(point: &PointFindings) -> String {
    let values: Vec<_> =
        point.point.values().map(|value| escape(&crate::scenario::point::plain(value))).collect();
    format!("<th title=\"{}\">{}</th>", escape(&short(&point.point)), values.join("<br>"))
}
