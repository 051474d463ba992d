//! The summary of a trial in a fixed shape: programs outside this project read it.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::findings::{Findings, PointFindings};
use super::metric::METRICS;
use super::record::{Record, Trial};
use super::statistics::{self, Comparison, summarize};
use crate::scenario::point::MatrixPoint;

/// The summary of all points.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The scenario of the trial.
    pub scenario: String,
    /// The points in the trial's order.
    pub points: Vec<PointSummary>,
}

/// The summary of one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointSummary {
    /// The values that make this point.
    pub point: MatrixPoint,
    /// For each arm the figures of its runs by name, with mean and interval.
    pub arms: OrderedObject<OrderedObject<statistics::MeanSummary>>,
    /// The comparisons of all arms with the baseline.
    pub comparisons: Vec<Comparison>,
    /// What to deploy, where the names of the arms say what each costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// An object whose keys keep their order.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderedObject<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for OrderedObject<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl Summary {
    /// Sums up these records of a trial, with the findings from them.
    pub fn of(trial: &Trial, records: &[Record], findings: &Findings) -> Summary {
        let points = findings.points.iter().map(|point| PointSummary::of(trial, point, records));
        Summary { scenario: trial.scenario.clone(), points: points.collect() }
    }

    /// The summary as one line.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("nothing in it but texts and numbers")
    }
}

/// A trial of one point has its arms and comparisons at the top; with several points, each has its own.
impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("scenario", &self.scenario)?;
        match &self.points[..] {
            [only] => {
                map.serialize_entry("arms", &only.arms)?;
                map.serialize_entry("comparisons", &only.comparisons)?;
                only.advice.iter().try_for_each(|advice| map.serialize_entry("advice", advice))?;
            }
            points => map.serialize_entry("points", points)?,
        }
        map.end()
    }
}

impl PointSummary {
    fn of(trial: &Trial, found: &PointFindings, records: &[Record]) -> PointSummary {
        let of_arm = |arm: &'_ String| -> Vec<&Record> {
            records.iter().filter(|record| record.point == found.point && record.arm == *arm).collect()
        };
        let figures = |arm: &String| {
            let figure = |metric: &super::metric::Metric| {
                let values: Vec<f64> =
                    of_arm(arm).into_iter().filter_map(|record| (metric.of)(&record.result)).collect();
                Some((metric.name.to_owned(), summarize(&values)?))
            };
            (arm.clone(), OrderedObject(METRICS.iter().filter_map(figure).collect()))
        };
        PointSummary {
            point: found.point.clone(),
            arms: OrderedObject(trial.arms.iter().map(figures).collect()),
            comparisons: found.comparisons.clone(),
            advice: found.advice.clone(),
        }
    }
}
