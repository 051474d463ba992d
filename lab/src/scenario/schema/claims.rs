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
    /// Name of the diagram in the paper, as the table of claims prints it (default: the title of the scenario).
    pub figure: Option<String>,
    /// Arm that the statement is about.
    pub arm: String,
    /// Arm that `arm` is compared with (default: the baseline).
    pub against: Option<String>,
    /// Quantity that is compared (default goodput).
    #[serde(default)]
    pub measure: Measure,
    /// Points of the matrix that the statement is about, by path and values (default: all points).
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub at: BTreeMap<String, Vec<serde_json::Value>>,
    /// Way to combine the ratios of several points into one (default mean).
    #[serde(default)]
    pub over: Over,
    /// Condition that the measured ratio must meet (default about). Its 95 % interval must also exclude the opposite of
    /// the claim.
    #[serde(default)]
    pub bound: Bound,
    /// Ratio that the paper states: the value of `arm` divided by the value of `against`.
    #[schemars(extend("x-range" = "above 0", "x-unit" = "no unit"))]
    pub ratio: f64,
    /// Largest difference from the stated ratio, added and not multiplied: 5% is 0.05. A ratio of 2.0 then allows 1.95
    /// to 2.05 (default 5%).
    #[serde(default = "five_per_cent")]
    pub tolerance: Share,
    /// If one claim has it, `hopwise claims --quick` runs the scenario and checks all its claims (default false).
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
    /// Sum of the goodput of all flows that are not in the background.
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

/// Way to combine the ratios of several points into one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The geometric mean of the points' ratios. If an arm has a value of 0, plain means of its values are used.
    #[default]
    Mean,
    /// The largest ratio of any point, for claims of "up to".
    Most,
}

/// Condition that the measured ratio must meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The measured ratio differs from the stated one by the tolerance or less.
    #[default]
    About,
    /// The measured ratio is at least the stated one minus the tolerance.
    AtLeast,
    /// The measured ratio is at most the stated one plus the tolerance.
    AtMost,
}
