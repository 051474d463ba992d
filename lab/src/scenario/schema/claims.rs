//! `claims:`, the statements of a paper about a scenario. A trial ignores them; `hopwise claims` compares them with
//! runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::units::Share;

/// A statement of a paper: the ratio of two arms in one figure.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The statement, as the table of claims prints it.
    pub says: String,
    /// Figure of the paper, as the table of claims prints it (default: the title of the scenario).
    pub figure: Option<String>,
    /// Arm that the statement is about.
    pub arm: String,
    /// Arm that `arm` is compared with (default: the first arm).
    pub against: Option<String>,
    /// Quantity that is compared (default goodput).
    #[serde(default)]
    pub measure: Measure,
    /// Points of the matrix that the statement is about, by path and values (default: all points).
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub at: BTreeMap<String, Vec<serde_json::Value>>,
    /// Rule that makes one ratio from those of several points (default mean).
    #[serde(default)]
    pub over: Over,
    /// Condition that the measured ratio must meet: about, at-least or at-most (default about).
    #[serde(default)]
    pub bound: Bound,
    /// Stated ratio: the arm's value over the other arm's value.
    #[schemars(extend("x-range" = "above 0", "x-unit" = "no unit"))]
    pub ratio: f64,
    /// Tolerance of the ratio, as a share of the other arm's value: at 5%, a stated 2.0 allows 1.95 to 2.05 (default
    /// 5%).
    #[serde(default = "five_per_cent")]
    pub tolerance: Share,
    /// The scenario takes only seconds, and `hopwise claims --quick` runs it too (default false).
    #[serde(default)]
    pub quick: bool,
    /// Note for readers of the table of claims (default: none).
    pub note: Option<String>,
}

fn five_per_cent() -> Share {
    Share(50_000)
}

/// Quantity that a claim compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Sum of the goodput of all flows.
    #[default]
    Goodput,
    /// Pure ACKs per data segment sent.
    AcksPerSegment,
    /// Number of segments retransmitted.
    SentAgain,
    /// Number of segments retransmitted although the receiver had them.
    SentNeedlessly,
    /// Number of retransmission timeouts.
    Timeouts,
}

/// Rule that makes one ratio from those of several points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The mean of the points' ratios.
    #[default]
    Mean,
    /// The largest ratio of all points ("up to").
    Most,
}

/// Condition that the measured ratio must meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// From the stated ratio minus the tolerance to the stated ratio plus the tolerance.
    #[default]
    About,
    /// The stated ratio minus the tolerance, or more.
    AtLeast,
    /// The stated ratio plus the tolerance, or less.
    AtMost,
}
