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
    /// The statement in our own words.
    pub says: String,
    /// Figure of the paper (default: the one that the title names).
    pub figure: Option<String>,
    /// Arm that the statement is about.
    pub arm: String,
    /// Arm that it is compared with (default: the first arm).
    pub against: Option<String>,
    /// Quantity that is compared (default goodput).
    #[serde(default)]
    pub measure: Measure,
    /// Points of the matrix that the statement is about, by path and values (default: all points).
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub at: BTreeMap<String, Vec<serde_json::Value>>,
    /// Way in which several points make one ratio (default mean).
    #[serde(default)]
    pub over: Over,
    /// Meaning of the ratio: about, at least or at most (default about).
    #[serde(default)]
    pub bound: Bound,
    /// Stated ratio: the arm's value over the other arm's value.
    pub ratio: f64,
    /// Deviation from the stated ratio that still counts as reproduced (default 5%).
    #[serde(default = "five_per_cent")]
    pub tolerance: Share,
    /// The scenario takes only seconds, so that `hopwise claims --quick` runs it too (default false).
    #[serde(default)]
    pub quick: bool,
    /// Note for readers of the table of claims.
    pub note: Option<String>,
}

fn five_per_cent() -> Share {
    Share(50_000)
}

/// Quantity that a claim compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Goodput of all flows.
    #[default]
    Goodput,
    /// Pure ACKs per data segment sent.
    AcksPerSegment,
    /// Segments retransmitted.
    SentAgain,
    /// Segments retransmitted although the receiver had them.
    SentNeedlessly,
    /// Retransmission timeouts.
    Timeouts,
}

/// Way in which several points make one ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The mean of the points' ratios.
    #[default]
    Mean,
    /// The largest ratio of all points ("up to").
    Most,
}

/// Meaning of a stated ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The ratio, within the tolerance.
    #[default]
    About,
    /// The ratio or more.
    AtLeast,
    /// The ratio or less.
    AtMost,
}
