//! Statements of a paper about its own arithmetic: files with `plan:` or `figures:` in place of a scenario. They need
//! no run.
//!
//! Plans are about held ACKs (`hopwise_agents::base_station::plan`). Arithmetic does not scatter: a missed bound is
//! contradicted. A figure that is read off a picture is reproduced or not. With `sweep:` each claim is computed under
//! each combination of the settings that the paper leaves open, as a scenario's claims are.

use std::collections::BTreeMap;
use std::path::Path;

use hopwise_agents::base_station::plan::{self, Ask, Mode, Plan, Sender, Stakes, final_rto_by_n};
use serde::Deserialize;

use super::{ClaimOutcome, Judged, MeasuredClaim, Reading, allowed, choices};
use crate::located::{Checked, Document, LoadError, YamlPath};
use crate::scenario::{Bound, Sweep};
use crate::units::{Share, Time};

/// A file of such statements.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// The title of the table.
    pub title: String,
    plan: Option<AskConfig>,
    /// Settings that the paper leaves open, as in scenarios: paths such as `plan.rtt`, each with a list of values.
    sweep: Option<Sweep>,
    /// Pairs of printed figures by name: with the paper's proposal, and without.
    #[serde(default)]
    figures: BTreeMap<String, [f64; 2]>,
    /// The statements, in the order of the table.
    pub claims: Vec<PlanClaim>,
}

/// Input of a plan, as files have it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskConfig {
    acks: u32,
    outage: Time,
    rtt: Time,
    rttvar: Time,
}

/// Input of another plan, in which it differs from the file's own.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OtherAsk {
    outage: Time,
}

/// One statement of the paper, with the paper's value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanClaim {
    /// The statement in words.
    pub says: String,
    /// The mode of the plan, and the quantity in it.
    mode: Option<String>,
    value: Option<PlanQuantity>,
    /// The pair of figures: the claim is the percentage by which its first figure exceeds its second.
    gain: Option<String>,
    /// The claim is the ratio of the value to this.
    per: Option<PlanQuantity>,
    /// The claim is the ratio of the value to this plan's value of its quantity.
    against: Option<OtherAsk>,
    #[serde(default)]
    bound: Bound,
    claimed: f64,
    /// The share of the claimed value that is allowed on either side.
    #[serde(default)]
    tolerance: Share,
    /// The statement is ours, and no paper's: nothing counts it.
    #[serde(default)]
    pub ours: bool,
    /// A remark that the table prints with it.
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PlanQuantity {
    /// Number of ACKs that wait as long as they can.
    N,
    /// Number of ACKs at the beginning, each with a longer wait than the one before.
    RisingGaps,
    LongestGapS,
    LastGapS,
    LongestRtoS,
    FinalRtoS,
    /// Number of timeouts before the outage is over.
    Timeouts,
    /// Number of minima of equation 11 over n.
    Minima,
}

/// A claim as it stands in tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Computed {
    /// The value in the paper, with its unit or bound.
    pub claimed: String,
    /// The value under each combination of what is open, and whether it is the paper's; at least one.
    pub readings: Vec<Reading>,
}

/// The file, if it is one of these.
pub fn load(file: &Path) -> Result<Option<(Document, PlanFile)>, LoadError> {
    let document = Document::load(file)?;
    if document.value_at("plan").or_else(|| document.value_at("figures")).is_none() {
        return Ok(None);
    }
    let read = document.read().map_err(LoadError::Refused)?;
    Ok(Some((document, read)))
}

/// All claims of a file, in its order.
pub fn judge(document: &Document, file: &PlanFile) -> Checked<Vec<Computed>> {
    let names = Sweep::names(document, file.sweep.as_ref())?;
    let claimed = |claim: &PlanClaim| Computed { claimed: claim.in_words(), readings: Vec::new() };
    let mut computed: Vec<Computed> = file.claims.iter().map(claimed).collect();
    for (open, document) in Sweep::documents(document, file.sweep.as_ref())? {
        let judged = judge_reading(&document, &document.read()?)?;
        for (of, judged) in computed.iter_mut().zip(judged) {
            let (choices, measured) =
                (choices(&open, &names), judged.measured.number.map_or_else(String::new, number));
            of.readings.push(Reading { open: open.clone(), choices, judged, measured, premise: None });
        }
    }
    Ok(computed)
}

fn judge_reading(document: &Document, file: &PlanFile) -> Checked<Vec<Judged>> {
    let ask = |path: &YamlPath, of: &AskConfig| {
        let seconds = |time: Time| time.0.as_secs_f64();
        Ask::new(of.acks, seconds(of.outage), seconds(of.rtt), seconds(of.rttvar))
            .map_err(|error| document.refuse(path, "no such plan", &error.to_string()))
    };
    let own = file.plan.map(|plan| ask(&YamlPath::root().key("plan"), &plan)).transpose()?;
    let mut judged = Vec::new();
    for (nth, claim) in file.claims.iter().enumerate() {
        let path = YamlPath::root().key("claims").index(nth);
        let value = match (claim.value, &claim.mode, &claim.gain, &own) {
            (Some(quantity), Some(mode), None, Some(own)) => {
                let mode = Mode::named(mode).ok_or_else(|| {
                    let problem = format!("no mode is called `{mode}`");
                    document.refuse(&path.key("mode"), problem, &Mode::NAMES.join(", "))
                })?;
                let mut value = value(quantity, mode, own);
                if let Some(per) = claim.per {
                    value /= self::value(per, mode, own);
                }
                if let (Some(other), Some(plan)) = (claim.against, &file.plan) {
                    let other = AskConfig { outage: other.outage, ..*plan };
                    value /= self::value(quantity, mode, &ask(&path.key("against"), &other)?);
                }
                value
            }
            (None, None, Some(name), _) if claim.per.is_none() && claim.against.is_none() => {
                gain(document, file, &path, name)?
            }
            _ => {
                let accepted = "`mode` and `value` of the file's `plan`, or `gain` of its `figures`";
                return Err(document.refuse(&path, "it is not said what the claim is about", accepted));
            }
        };
        judged.push(claim.hold_against(value));
    }
    Ok(judged)
}

/// The percentage by which the first of two printed figures exceeds the second.
fn gain(document: &Document, file: &PlanFile, path: &YamlPath, name: &str) -> Checked<f64> {
    let [with, without] = file.figures.get(name).copied().ok_or_else(|| {
        let known = file.figures.keys().cloned().collect::<Vec<_>>().join(", ");
        let accepted = if known.is_empty() { "`figures` of the file, by their names" } else { &known };
        document.refuse(&path.key("gain"), format!("no figures are called `{name}`"), accepted)
    })?;
    if !(with.is_finite() && without.is_finite() && without > 0.0) {
        let problem = format!("no gain of {with} over {without}");
        let figures = YamlPath::root().key("figures").key(name);
        return Err(document.refuse(&figures, problem, "two numbers, the second above 0"));
    }
    Ok(100.0 * (with / without - 1.0))
}

fn value(quantity: PlanQuantity, mode: Mode, ask: &Ask) -> f64 {
    let stakes = Stakes { window_segments: 2 * ask.acks(), cache_segments: 2 * ask.acks() };
    let plan = plan::plan(mode, ask, Sender::Textbook.into(), &stakes);
    let gaps = gaps(&plan);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    match quantity {
        PlanQuantity::N => f64::from(plan.n),
        PlanQuantity::RisingGaps => {
            let rising = gaps.windows(2).take_while(|pair| pair[1] > pair[0]).count();
            if gaps.is_empty() { 0.0 } else { rising as f64 + 1.0 }
        }
        PlanQuantity::LongestGapS => most(&gaps),
        PlanQuantity::LastGapS => gaps.last().copied().unwrap_or_default(),
        PlanQuantity::LongestRtoS => most(&plan.rto_s),
        PlanQuantity::FinalRtoS => plan.final_rto_s,
        PlanQuantity::Timeouts => f64::from(plan.timeouts),
        PlanQuantity::Minima => minima(&final_rto_by_n(ask)) as f64,
    }
}

fn gaps(plan: &Plan) -> Vec<f64> {
    let mut before = 0.0;
    let gap = |at: &f64| {
        let gap = at - before;
        before = *at;
        gap
    };
    plan.release_at_s.iter().map(gap).collect()
}

/// Number of values below the one before and not above the one after.
fn minima(values: &[f64]) -> usize {
    let is_least = |nth: &usize| {
        let value = values[*nth];
        let before = nth.checked_sub(1).map_or(f64::INFINITY, |before| values[before]);
        let after = values.get(nth + 1).copied().unwrap_or(f64::INFINITY);
        value < before && value <= after
    };
    (0..values.len()).filter(is_least).count()
}

impl PlanClaim {
    fn in_words(&self) -> String {
        let bound = match self.bound {
            Bound::About => "",
            Bound::AtLeast => "at least ",
            Bound::AtMost => "at most ",
        };
        format!("{bound}{}", number(self.claimed))
    }

    fn hold_against(&self, value: f64) -> Judged {
        let tolerance = self.claimed.abs() * f64::from(self.tolerance.0) / 1e6;
        let (outcome, why) =
            match (ClaimOutcome::of(allowed(self.bound, self.claimed, tolerance), [value; 2]), self.bound) {
                (ClaimOutcome::Reproduced, _) => (ClaimOutcome::Reproduced, "within what is claimed"),
                (_, Bound::About) => (ClaimOutcome::NotReproduced, "the arithmetic comes to something else"),
                _ => (ClaimOutcome::Contradicted, "the arithmetic says the opposite"),
            };
        let measured = MeasuredClaim { number: Some(value), ..MeasuredClaim::default() };
        Judged { outcome, measured, point: None, why: why.to_owned() }
    }
}

/// Writes two decimals, if there are any.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(claims: &str) -> Checked<Vec<Computed>> {
        let text = format!(
            "title: a figure\nplan: {{ acks: 30, outage: 1000s, rtt: 1s, rttvar: 300ms }}\nclaims:\n{claims}"
        );
        let document = Document::parse("fig.yaml", &text)?;
        judge(&document, &document.read()?)
    }

    fn outcome(computed: &Computed) -> ClaimOutcome {
        let [only] = &computed.readings[..] else { panic!("{computed:?}") };
        only.judged.outcome
    }

    fn text(computed: &Computed) -> String {
        computed.readings[0].measured.clone()
    }

    #[test]
    fn arithmetic_is_held_against_what_is_claimed() {
        let computed = judged(
            "  - { says: a, mode: corrected, value: n, claimed: 9 }\n\
             \x20 - { says: b, mode: corrected, value: n, claimed: 8 }\n\
             \x20 - { says: c, mode: corrected, value: n, claimed: 8, tolerance: 20% }\n\
             \x20 - { says: d, mode: corrected, value: timeouts, bound: at-most, claimed: 0 }\n\
             \x20 - { says: e, mode: paper, value: timeouts, bound: at-most, claimed: 0 }\n\
             \x20 - { says: f, mode: corrected, value: last-gap-s, per: longest-gap-s, bound: at-most, claimed: 1 }\n\
             \x20 - { says: g, mode: corrected, value: minima, bound: at-most, claimed: 1 }\n",
        )
        .expect("claims");
        let outcomes: Vec<_> = computed.iter().map(outcome).collect();
        use ClaimOutcome::{Contradicted, NotReproduced, Reproduced};
        let expected =
            [Reproduced, NotReproduced, Reproduced, Reproduced, Contradicted, Reproduced, Contradicted];
        assert_eq!(outcomes, expected, "{computed:?}");
        assert_eq!((computed[3].claimed.as_str(), text(&computed[0])), ("at most 0", "9".to_owned()));
    }

    #[test]
    fn a_printed_gain_is_held_against_the_figures_beside_it() {
        let judged = |claim: &str| {
            let text = format!("title: a table\nfigures: {{ one: [7688, 6361] }}\nclaims:\n  - {claim}\n");
            let document = Document::parse("table.yaml", &text)?;
            judge(&document, &document.read()?)
        };
        let computed = judged("{ says: a, gain: one, bound: at-least, claimed: 120.9 }").expect("a claim");
        assert_eq!(
            (outcome(&computed[0]), text(&computed[0])),
            (ClaimOutcome::Contradicted, "20.86".to_owned())
        );
        let computed = judged("{ says: a, gain: one, claimed: 20.9, tolerance: 1% }").expect("a claim");
        assert_eq!(outcome(&computed[0]), ClaimOutcome::Reproduced);
        for (claim, problem) in [
            ("{ says: a, gain: two, claimed: 1 }", "no figures are called `two`"),
            ("{ says: a, mode: paper, value: n, claimed: 1 }", "it is not said what the claim is about"),
            ("{ says: a, gain: one, mode: paper, claimed: 1 }", "it is not said what the claim is about"),
        ] {
            let refused = judged(claim).expect_err(problem).to_string();
            assert!(refused.contains(problem), "{refused}");
        }
    }

    #[test]
    fn a_plan_is_held_against_another_and_nonsense_is_refused_where_it_stands() {
        let other = "{ outage: 500s }";
        let computed = judged(&format!(
            "  - {{ says: a, mode: corrected, value: final-rto-s, against: {other}, bound: at-least, claimed: 1.1 }}\n"
        ));
        assert_eq!(outcome(&computed.expect("a claim")[0]), ClaimOutcome::Reproduced);
        for (claim, problem) in [
            (
                "{ says: a, mode: printed, value: n, claimed: 9 }",
                "fig.yaml:4:22: no mode is called `printed`",
            ),
            ("{ says: a, mode: paper, value: m, claimed: 9 }", "`m` does not fit here"),
            ("{ says: a, mode: paper, value: n, claimed: 9, against: { outage: 0s } }", "no such plan"),
        ] {
            let refused = judged(&format!("  - {claim}\n")).expect_err(problem).to_string();
            assert!(refused.contains(problem), "{refused}");
        }
    }

    /// The RTT of a plan, in a file whose claims hang on it; `claims` are the claims after the first.
    fn swept(sweep: &str, claims: &str) -> Checked<Vec<Computed>> {
        let text = format!(
            "title: a figure\nplan: {{ acks: 20, outage: 250s, rtt: 1s, rttvar: 300ms }}\nsweep: {sweep}\nclaims:\n\
             \x20 - {{ says: a, mode: corrected, value: rising-gaps, claimed: 5 }}\n{claims}"
        );
        let document = Document::parse("fig.yaml", &text)?;
        judge(&document, &document.read()?)
    }

    #[test]
    fn what_a_plan_leaves_open_is_swept_and_another_plan_has_the_same() {
        let sweep = "{ together: [{ plan.rtt: [1s, 5s], plan.rttvar: [300ms, 2s] }], \
                     named: { short: { plan.rtt: 1s, plan.rttvar: 300ms }, long: { plan.rtt: 5s, plan.rttvar: 2s } } }";
        let against =
            "  - { says: b, mode: corrected, value: final-rto-s, against: { outage: 250s }, claimed: 1 }\n";
        let computed = swept(sweep, against).expect("claims");
        let names: Vec<String> = computed[0].readings.iter().map(Reading::name).collect();
        assert_eq!(names, ["short", "long"]);
        let values: Vec<&String> = computed[0].readings.iter().map(|reading| &reading.measured).collect();
        assert_ne!(values[0], values[1], "the value is computed anew for each reading");
        let same: Vec<&String> = computed[1].readings.iter().map(|reading| &reading.measured).collect();
        assert_eq!(same, ["1", "1"], "what is not said of the other plan is swept as well");
    }

    #[test]
    fn a_sweep_of_a_plan_is_refused_where_it_is_wrong() {
        for (sweep, problem) in [
            ("{ plan.rtt: 1s }", "no list"),
            ("{ plan.rtt: [1s, later] }", "later"),
            ("{ plan.rtd: [1s, 2s] }", "unknown field `rtd`"),
            ("{ plan.rtt: [1s, 2s], named: { fast: { plan.rtt: 3s } } }", "no reading has these values"),
        ] {
            let refused = swept(sweep, "").expect_err(problem).to_string();
            assert!(refused.contains(problem) && refused.contains("fig.yaml:3:"), "{refused}");
        }
    }
}
