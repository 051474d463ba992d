//! What a paper says of a scenario: `claims:`. A trial takes no notice of it; `hopwise claims` holds it against runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::units::Share;

/// A ratio of two arms.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// What is said, in our words.
    pub says: String,
    /// Which figure says it, where the title names another.
    pub figure: Option<String>,
    pub arm: String,
    /// The first arm where nothing is said.
    pub against: Option<String>,
    #[serde(default)]
    pub measure: Measure,
    /// The points that it is about, by the values of their paths; all where nothing is said.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub at: BTreeMap<String, Vec<serde_json::Value>>,
    #[serde(default)]
    pub over: Over,
    #[serde(default)]
    pub bound: Bound,
    /// The arm's value over the other's.
    pub ratio: f64,
    /// Of the other's value, so much to either side is still what is said.
    #[serde(default = "five_per_cent")]
    pub tolerance: Share,
    /// Its scenario takes seconds: `hopwise claims --quick` runs it as well.
    #[serde(default)]
    pub quick: bool,
    /// What a reader should know of the figure.
    pub note: Option<String>,
}

fn five_per_cent() -> Share {
    Share(50_000)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    #[default]
    Goodput,
    /// Pure ACKs for each data segment sent.
    AcksPerSegment,
    /// Segments sent again.
    SentAgain,
    /// Of these, those that the receiver had already.
    SentNeedlessly,
    Timeouts,
}

/// How several points make one figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The mean of the points' ratios.
    #[default]
    Mean,
    /// The point with the largest ratio: "up to".
    Most,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    #[default]
    About,
    AtLeast,
    AtMost,
}
