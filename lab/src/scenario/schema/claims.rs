//! `claims:`, the statements of a paper about a scenario. A trial ignores them; `hopwise claims` compares them with
//! runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Deserializer};

use crate::units::Share;

/// A statement of a paper: the ratio of two arms in one figure, or the value of one arm.
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
    /// Points of the matrix that the statement is about, by path and values (default: all points). A path of `sweep`
    /// leaves out the other readings.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub at: BTreeMap<String, Vec<serde_json::Value>>,
    /// Points of the matrix among which `against` is taken, by path and values (default: the points of `arm`). The one
    /// with its largest mean counts.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub against_at: BTreeMap<String, Vec<serde_json::Value>>,
    /// Points of the matrix by whose ratio that of the points `at` is divided, by path and values (default: none).
    /// `ratio` is then the ratio of the two, such as a gain over long chains over that over short ones.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub per_at: BTreeMap<String, Vec<serde_json::Value>>,
    /// Way to combine several points into one (default mean).
    #[serde(default, deserialize_with = "over")]
    pub over: PointCombination,
    /// Condition that the measured number must meet with its whole 95 % interval (default about).
    #[serde(default)]
    pub bound: Bound,
    /// Ratio that the paper states: the value of `arm` divided by the value of `against` (default: none; required
    /// without `value`).
    #[schemars(extend("x-range" = "above 0", "x-unit" = "no unit"))]
    pub ratio: Option<f64>,
    /// Value of `arm` alone that the paper states, in the unit of `measure` (default: none; required without
    /// `ratio`).
    #[schemars(extend("x-range" = "0 or more", "x-unit" = "in the unit of `measure`"))]
    pub value: Option<f64>,
    /// Largest difference from the stated ratio, added and not multiplied: 5% is 0.05. A ratio of 2.0 then allows 1.95
    /// to 2.05. Around a `value` it is a share of the value (default 5%; with a bound, unless the ratio is 1, 0%).
    pub tolerance: Option<Share>,
    /// Quantity on which the statement rests, such as losses that its paper takes for granted. A picture has the
    /// measured ratio over it, with a dot for each reading and each set of rules (default: none).
    pub premise: Option<Premise>,
    /// The statement is ours, and no paper's: the table has it apart, and counts it nowhere (default false).
    #[serde(default)]
    pub ours: bool,
    /// If one claim has it, `hopwise claims --quick` runs the scenario and checks all its claims (default false).
    #[serde(default)]
    pub quick: bool,
    /// Note for readers of the table of claims (default: none).
    pub note: Option<String>,
}

/// Quantity of one arm on which a claim rests.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Premise {
    /// Arm that has the quantity.
    pub arm: String,
    /// Quantity that is meant.
    pub measure: Measure,
}

/// Number that a claim states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stated {
    /// The ratio of two arms.
    Ratio(f64),
    /// The value of one arm.
    Value(f64),
}

impl Claim {
    /// The number that it states; none, or both, is refused before.
    pub fn stated(&self) -> Stated {
        match (self.ratio, self.value) {
            (None, Some(value)) => Stated::Value(value),
            (ratio, _) => Stated::Ratio(ratio.unwrap_or(1.0)),
        }
    }

    /// The tolerance of what is stated. A paper's "at least 20 %" has none, and "no less" has some: nothing measured
    /// is surely equal.
    pub fn tolerance(&self) -> Share {
        let is_exact = self.bound != Bound::About && !matches!(self.stated(), Stated::Ratio(1.0));
        self.tolerance.unwrap_or(Share(if is_exact { 0 } else { 50_000 }))
    }
}

/// An arm stands under `against`, where `over` sounds like it.
fn over<'de, D: Deserializer<'de>>(from: D) -> Result<PointCombination, D::Error> {
    let word = String::deserialize(from)?;
    PointCombination::deserialize(StrDeserializer::<D::Error>::new(&word)).map_err(|_| {
        let expected = "`mean`, `most` or `least` of several points; the other arm stands under `against`";
        D::Error::custom(format_args!("unknown variant `{word}`, expected {expected}"))
    })
}

/// Quantity that a claim compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Sum of the goodput of all flows that are not in the background, in kbit/s.
    #[default]
    Goodput,
    /// Number of data segments sent, with those retransmitted.
    Segments,
    /// Number of pure ACKs sent.
    Acks,
    /// Pure ACKs per data segment sent.
    AcksPerSegment,
    /// Number of segments retransmitted.
    SentAgain,
    /// Number of segments retransmitted although the receiver had them.
    SentNeedlessly,
    /// Number of retransmission timeouts.
    Timeouts,
    /// Number of retransmission timeouts while a link was out (`channel.outages`) or announced to go (`gateway.lead`).
    TimeoutsInOutages,
    /// Median of the round trips that TCP measures, in ms; mean of the flows.
    RttMedian,
    /// Number of data segments that did not arrive. Those under way at the end of the run count, of which a flow with
    /// an earlier `stop` has none.
    SegmentsLost,
    /// Number of pure ACKs that did not arrive before their flow ended, of flows with data in one direction.
    AcksLost,
    /// ACKs that did not arrive, per data segment that did not arrive.
    AcksLostPerSegmentLost,
}

impl Measure {
    /// The unit of its values, for people.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::Goodput => "kbit/s",
            Measure::Segments | Measure::SentAgain | Measure::SentNeedlessly | Measure::SegmentsLost => {
                "segments"
            }
            Measure::Acks | Measure::AcksLost => "ACKs",
            Measure::AcksLostPerSegmentLost => "lost ACKs a lost segment",
            Measure::AcksPerSegment => "ACKs a segment",
            Measure::Timeouts => "timeouts",
            Measure::TimeoutsInOutages => "timeouts in outages",
            Measure::RttMedian => "ms",
        }
    }
}

/// Way to combine the ratios of several points into one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PointCombination {
    /// The geometric mean of the points' ratios. If an arm has a value of 0, plain means of its values are used.
    #[default]
    Mean,
    /// The largest ratio of any point, for claims of "up to".
    Most,
    /// The smallest ratio of any point, for the lower end of a range.
    Least,
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
