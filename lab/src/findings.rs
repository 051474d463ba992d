//! Findings from a trial's records: each arm's goodput at every point, and the figures that decide, compared with the
//! baseline. Points are questions of their own: Holm's correction is over the arms and figures of one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::metric::{self, METRICS, Metric};
use super::plain::{line, no_room, wrapped};
use super::record::{Record, Trial};
use super::statistics::{
    Better, Comparison, Figure, GOODPUT, MeanSummary, Samples, change, compare_all, digits, questions,
    summarize, watch_all,
};
use crate::scenario::point::{MatrixPoint, Stop, plain};

mod advice;
mod answer;
mod table;

/// The findings at all points of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The points in the trial's order.
    pub points: Vec<PointFindings>,
    /// The name of the delay that is shown with goodput; none where the runs know no delay.
    pub delay: Option<&'static str>,
}

/// The findings at one point.
#[derive(Clone, Debug, PartialEq)]
pub struct PointFindings {
    /// The values that make this point.
    pub point: MatrixPoint,
    /// The arms in the trial's order, the baseline first.
    pub arms: Vec<ArmFindings>,
    /// The figures that decide.
    pub figures: Vec<Figure>,
    /// The comparisons of all arms with the baseline, figure by figure.
    pub comparisons: Vec<Comparison>,
    /// What to deploy, where the names of the arms say what each costs.
    pub advice: Option<String>,
}

/// One arm at one point.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmFindings {
    /// The name of the arm.
    pub arm: String,
    /// The arm's goodput; none while there is no run.
    pub summary: Option<MeanSummary>,
    /// Its delay, by the measure of [`Findings::delay`].
    pub delay: Option<MeanSummary>,
    /// Its values in each of the figures that decide.
    pub samples: Vec<Samples>,
    /// The means of all metrics.
    pub means: MetricMeans,
    /// Sentences about what its agents did without, because the other end did not agree to it.
    pub lacks: Vec<String>,
    agents: [String; 2],
}

/// Means over an arm's runs, by the names of the metrics that the runs know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricMeans {
    summaries: BTreeMap<&'static str, MeanSummary>,
    /// Several flows share the goodput.
    has_shares: bool,
}

impl MetricMeans {
    pub(crate) fn of(records: &[&Record]) -> MetricMeans {
        let summary = |metric: &Metric| {
            let values: Vec<f64> = records.iter().filter_map(|record| (metric.of)(&record.result)).collect();
            Some((metric.name, summarize(&values)?))
        };
        MetricMeans {
            summaries: METRICS.iter().filter_map(summary).collect(),
            has_shares: records.iter().any(|record| metric::shares(&record.result) > 1),
        }
    }

    /// The mean of a metric, with its interval.
    pub(crate) fn summary(&self, name: &str) -> Option<MeanSummary> {
        self.summaries.get(name).copied()
    }

    /// The mean of a metric.
    pub fn of_metric(&self, name: &str) -> Option<f64> {
        self.summary(name).map(|summary| summary.mean)
    }

    /// The mean with that many digits behind the point; empty where it is not known.
    pub(crate) fn shown(&self, name: &str, digits: usize) -> String {
        self.of_metric(name).map_or(String::new(), |mean| format!("{mean:.digits$}"))
    }

    fn pair(&self, median: &str, p95: &str, digits: usize) -> String {
        let pair = self.of_metric(median).zip(self.of_metric(p95));
        pair.map_or(String::new(), |(median, p95)| format!("{median:.digits$} ({p95:.digits$})"))
    }

    /// The median delay of datagrams in ms, its 95 % quantile and, where clocks differ, the largest error.
    fn one_way(&self) -> String {
        let error = self.of_metric("datagram_delay_error_ms").filter(|error| *error > 0.0);
        let error = error.map_or(String::new(), |error| format!(" ± {error:.1}"));
        self.pair("datagram_delay_median_ms", "datagram_delay_p95_ms", 1) + &error
    }

    /// The median round trip in ms, and its 95 % quantile; empty where it is not known.
    pub(crate) fn round_trips(&self) -> String {
        self.pair("rtt_median_ms", "rtt_p95_ms", 0)
    }
}

/// A cell of a table; empty where the runs do not know it.
pub(crate) type MeansCell = fn(&MetricMeans) -> String;

/// Delay and fairness in tables: heads and cells.
pub(crate) const DELAY_AND_FAIRNESS: [(&str, MeansCell); 7] = [
    ("RTT ms (95 %)", MetricMeans::round_trips),
    ("mean RTT ms", |means| means.shown("rtt_ms", 0)),
    ("done in s (95 %)", |means| means.pair("completion_median_s", "completion_p95_s", 2)),
    // One flow shares with no other.
    ("Jain", |means| if means.has_shares { means.shown("jain", 3) } else { String::new() }),
    ("one way ms (95 %)", MetricMeans::one_way),
    ("jitter ms", |means| means.shown("datagram_jitter_ms", 2)),
    ("lost", |means| means.shown("datagram_loss", 4)),
];

impl Findings {
    /// The findings from these records of the trial.
    pub fn of(trial: &Trial, records: &[Record]) -> Findings {
        let figures = trial.figures();
        let delay = delay(&figures, trial, records);
        let cells = by_cell(records);
        let at = |point: &MatrixPoint| {
            let arm = |arm: &String| ArmFindings::of(arm, (&figures, delay), of_cell(&cells, point, arm));
            let arms: Vec<_> = trial.arms.iter().map(arm).collect();
            let of_figure =
                |nth: usize| arms.iter().map(|arm: &ArmFindings| arm.samples[nth].clone()).collect();
            let samples: Vec<Vec<Samples>> = (0..figures.len()).map(of_figure).collect();
            let compared = match trial.stop {
                Stop::AllSeeds => compare_all,
                Stop::WhenSure => watch_all,
            };
            let comparisons = compared(&questions(&figures, &samples), trial.margin);
            let judge = advice::Judge { figures: &figures, margin: trial.margin };
            let advice = advice::advice(&arms, &comparisons, &judge);
            PointFindings { point: point.clone(), arms, figures: figures.clone(), comparisons, advice }
        };
        Findings { points: trial.points.iter().map(at).collect(), delay: delay.map(|metric| metric.name) }
    }

    /// The findings as text: the answer, a table for each point, and sentences on what its table does not tell. Before
    /// them stand all points of a matrix in one table. With a width, sentences break at spaces, and tables leave out
    /// their least columns until lines are no wider; a line names these.
    pub fn text(&self, width: Option<usize>) -> String {
        let said = |line: &str| match width {
            Some(width) => wrapped("", line, width),
            None => line.to_owned(),
        };
        let mut text = String::new();
        for sentence in self.answer() {
            let _ = writeln!(text, "{}", said(&sentence));
        }
        text.push_str(if text.is_empty() { "" } else { "\n" });
        if self.points.len() > 1 {
            let _ = writeln!(text, "{}", table::of_points(&self.points));
        }
        let mut left_out: Vec<String> = Vec::new();
        let mut fit = |table: table::FittedTable| {
            let new: Vec<_> = table.left_out.into_iter().filter(|head| !left_out.contains(head)).collect();
            left_out.extend(new);
            table.text
        };
        for point in &self.points {
            if !point.point.is_empty() {
                let _ = writeln!(text, "{}", label(&point.point));
            }
            text.push_str(&fit(table::of_point(point, width)));
            for figure in point.figures.iter().filter(|figure| !figure.is_goodput()) {
                let shown = fit(table::of_figure(point, figure, width));
                let _ = write!(text, "\n{}\n{shown}", heading(figure));
            }
            for line in point.lines() {
                let _ = writeln!(text, "{}", said(&line));
            }
            text.push('\n');
        }
        if !left_out.is_empty() {
            let _ = writeln!(text, "{}\n", said(&no_room(&left_out, "trial --json")));
        }
        text
    }
}

/// The delay that is shown with goodput: one that decides, or else the one that most arms know.
fn delay(figures: &[Figure], trial: &Trial, records: &[Record]) -> Option<&'static Metric> {
    let decides = figures.iter().map(|figure| figure.name).filter(|name| is_delay(name));
    let all = decides.chain(["probe_p95_ms", "rtt_median_ms", "rtt_ms"]).filter_map(metric::named);
    let arms = |metric: &Metric| {
        let knows = records.iter().filter(|run| (metric.of)(&run.result).is_some());
        let known: BTreeSet<&str> = knows.map(|run| &*run.arm).collect();
        trial.arms.iter().filter(|arm| known.contains(arm.as_str())).count()
    };
    // The first of equals counts.
    all.rev().max_by_key(|metric| arms(metric)).filter(|metric| arms(metric) > 0)
}

fn is_delay(name: &str) -> bool {
    ["probe_", "rtt_", "completion_", "datagram_delay_"].iter().any(|group| name.starts_with(group))
        && name != "probe_loss"
}

impl ArmFindings {
    fn of(arm: &str, (figures, delay): (&[Figure], Option<&Metric>), mine: &[&Record]) -> ArmFindings {
        let means = MetricMeans::of(mine);
        ArmFindings {
            arm: arm.to_owned(),
            summary: means.summary(GOODPUT.name),
            delay: delay.and_then(|metric| means.summary(metric.name)),
            samples: figures.iter().map(|figure| samples(arm, figure, mine)).collect(),
            means,
            lacks: sentences(arm, mine),
            agents: mine.first().map(|record| advice::agents(record)).unwrap_or_default(),
        }
    }
}

/// The runs of each arm at each point, by the point's label. A trial has too many cells to look for the runs of each.
pub(crate) type RunsByCell<'a> = BTreeMap<(String, &'a str), Vec<&'a Record>>;

pub(crate) fn by_cell(records: &[Record]) -> RunsByCell<'_> {
    let mut cells = RunsByCell::new();
    for record in records {
        cells.entry((label(&record.point), &*record.arm)).or_default().push(record);
    }
    cells
}

/// The runs of an arm at a point.
pub(crate) fn of_cell<'a>(cells: &'a RunsByCell<'a>, point: &MatrixPoint, arm: &'a str) -> &'a [&'a Record] {
    cells.get(&(label(point), arm)).map_or(&[], Vec::as_slice)
}

/// The values of an arm in a figure, where its runs have it.
pub(crate) fn samples(arm: &str, figure: &Figure, records: &[&Record]) -> Samples {
    let of = metric::named(figure.name).map(|metric| metric.of);
    let values = records.iter().filter_map(|record| Some((record.block, of?(&record.result)?))).collect();
    Samples { arm: arm.to_owned(), values }
}

impl PointFindings {
    /// The comparison of an arm with the baseline in one figure; `None` for the baseline itself.
    pub fn comparison(&self, arm: &str, figure: &Figure) -> Option<&Comparison> {
        self.comparisons.iter().find(|comparison| comparison.arm == arm && comparison.is_of(figure))
    }

    /// The arms by the first figure that decides, the best first; arms without it come last.
    pub fn best_first(&self) -> Vec<&ArmFindings> {
        let mut arms: Vec<_> = self.arms.iter().collect();
        let Some(figure) = self.figures.first() else { return arms };
        let mean = |arm: &ArmFindings| arm.means.summary(figure.name).map(|summary| summary.mean);
        arms.sort_by(|one, other| match (mean(one), mean(other)) {
            (Some(one), Some(other)) if figure.better == Better::Less => one.total_cmp(&other),
            (one, other) => other.unwrap_or(-1.0).total_cmp(&one.unwrap_or(-1.0)),
        });
        arms
    }

    /// The digits behind the point with which a figure's means align.
    pub(crate) fn digits(&self, figure: &Figure) -> usize {
        let means = self.arms.iter().filter_map(|arm| arm.means.summary(figure.name));
        if figure.is_goodput() { 1 } else { digits(means.map(|summary| summary.mean).fold(0.0, f64::max)) }
    }

    /// Sentences on what the tables do not tell: undecided arms with the blocks that would decide, arms without a
    /// ratio, what agents did without, and the correction.
    pub(crate) fn lines(&self) -> Vec<String> {
        let (alone, undecided) =
            table::folded(self, self.comparisons.iter().filter(|comparison| !comparison.is_plain()));
        let sentences = alone.into_iter().map(|comparison| comparison.sentence.clone());
        sentences.chain(undecided).chain(self.without()).chain(self.correction()).collect()
    }

    /// Sentences on what agents did without.
    pub(crate) fn without(&self) -> Vec<String> {
        self.arms.iter().flat_map(|arm| arm.lacks.clone()).collect()
    }

    /// The correction that is behind p and the verdicts, where several figures decide.
    pub(crate) fn correction(&self) -> Option<String> {
        let (figures, all) = (self.figures.len(), self.comparisons.len());
        (figures > 1 && all > 0).then(|| {
            let arms = all / figures;
            let plural = if arms == 1 { "" } else { "s" };
            format!(
                "p and the verdicts are corrected for {all} comparisons at once (Holm): {arms} arm{plural} by \
                 {figures} figures."
            )
        })
    }
}

/// The heading of a figure's own table.
pub fn heading(figure: &Figure) -> String {
    let unit = if figure.unit.is_empty() { String::new() } else { format!(", in {}", figure.unit) };
    format!("By {}{unit}; {} is better:", figure.name, figure.better.name())
}

/// A summary as its mean, interval and number of runs, with that many digits behind the point.
pub(crate) fn cells(summary: Option<&MeanSummary>, digits: usize) -> (String, String, String) {
    let Some(summary) = summary else { return ("none".to_owned(), String::new(), "0".to_owned()) };
    let interval =
        summary.ci95.map_or(String::new(), |[low, high]| format!("{low:.digits$} to {high:.digits$}"));
    (format!("{:.digits$}", summary.mean), interval, summary.n.to_string())
}

/// The heads of the 95 % intervals of a mean, and of the gain over the baseline.
pub(crate) const INTERVALS: [&str; 2] = ["interval of mean", "interval of gain"];

/// A gain's ends: `+15.7 to +18.1 %`.
pub(crate) fn ends([low, high]: [f64; 2]) -> String {
    format!("{} to {}", change(low).trim_end_matches(" %"), change(high))
}

/// The paths that a point sets, with their values.
pub fn label(point: &MatrixPoint) -> String {
    let set = point.iter().map(|(path, value)| format!("{path} = {}", plain(value)));
    set.collect::<Vec<_>>().join(", ")
}

/// The widest column: `std::fmt` pads to no more.
const WIDEST: usize = u16::MAX as usize;

/// Lines with the first and the last column to the left, figures to the right. A cell that is wider than any column is
/// cut, with a mark.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.first().map_or(0, Vec::len);
    let chars = |row: &Vec<String>, nth: usize| row[nth].chars().take(WIDEST).count();
    let width = |nth| rows.iter().map(|row| chars(row, nth)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cell = |(nth, cell): (usize, &String)| {
            let (width, cell) = (widths[nth], cut(cell));
            if nth == 0 || nth + 1 == count { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        };
        let line: Vec<_> = row.iter().enumerate().map(cell).collect();
        let _ = writeln!(text, "{}", line.join("  ").trim_end());
    }
    text
}

fn cut(cell: &str) -> Cow<'_, str> {
    let is_wider = cell.char_indices().nth(WIDEST).is_some();
    let end = cell.char_indices().nth(WIDEST - 1).map_or(cell.len(), |(at, _)| at);
    if is_wider { format!("{}…", &cell[..end]).into() } else { cell.into() }
}

// Needs of agents that the other end did not agree to, in words.

fn with_agent(lacking: &str) -> String {
    let agent = match lacking {
        "peer-cwnd" => "sender tell-cwnd",
        "rate-request" => "sender ask-rate",
        "dup-count" => "receiver dup-count(…)",
        _ => return lacking.to_owned(),
    };
    format!("{lacking} (needs the {agent})")
}

/// The lacking needs of an agent, each with the agent of the other end that gives it.
pub fn in_words(lacking: &[String]) -> String {
    lacking.iter().map(|one| with_agent(one)).collect::<Vec<_>>().join(", ")
}

/// A sentence for each end of an arm's flows that did without something, from the arm's runs.
pub(crate) fn sentences(arm: &str, runs: &[&Record]) -> Vec<String> {
    let mut found: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for record in runs {
        let flows = || record.result.flows.iter().filter(|flow| !flow.background);
        let ends = [
            ("receiver", flows().map(|flow| &flow.receiver_lacks).find(|lacks| !lacks.is_empty())),
            ("sender", flows().map(|flow| &flow.sender_lacks).find(|lacks| !lacks.is_empty())),
        ];
        for (end, lacks) in ends.into_iter().filter_map(|(end, lacks)| Some((end, lacks?))) {
            *found.entry((end, line(&in_words(lacks)))).or_default() += 1;
        }
    }
    let sentence = |((end, lacks), count): ((&str, String), usize)| {
        let some =
            if count == runs.len() { String::new() } else { format!(", in {count} of {} runs", runs.len()) };
        format!("The {end} of {arm} does without {lacks}{some}: its figures are those of its fallback.")
    };
    found.into_iter().map(sentence).collect()
}

#[cfg(test)]
pub(crate) mod tests;
