use std::collections::BTreeMap;

use super::*;
use crate::located::Document;
use crate::report::tests::record;
use crate::units::Share;

fn claim(ratio: f64) -> Claim {
    Claim {
        figure: None,
        says: "an arm is faster".into(),
        arm: "dca".into(),
        against: None,
        measure: Measure::Goodput,
        at: BTreeMap::new(),
        over: Over::Mean,
        bound: Bound::About,
        ratio,
        tolerance: Share(50_000),
        quick: false,
        note: None,
    }
}

/// Five blocks at 4 and at 8 hops, at which the arm has these ratios.
fn records(ratios: [f64; 2]) -> Vec<Record> {
    let mut records = Vec::new();
    for (hops, ratio) in [4, 8].into_iter().zip(ratios) {
        for block in 1..=5 {
            let scatter = f64::from(block % 3);
            records.push(record(hops, "every", block, 200.0 + scatter));
            records.push(record(hops, "dca", block, ratio * (200.0 + f64::from((block + 1) % 3))));
        }
    }
    records
}

fn outcome_of(claim: &Claim, ratios: [f64; 2]) -> Outcome {
    judge(claim, "every", &records(ratios)).outcome
}

#[test]
fn a_claim_is_reproduced_within_its_tolerance_only() {
    assert_eq!(outcome_of(&claim(1.3), [1.28, 1.33]), Outcome::Reproduced);
    assert_eq!(outcome_of(&claim(1.3), [1.18, 1.20]), Outcome::NotReproduced);
    assert_eq!(outcome_of(&claim(1.3), [1.45, 1.40]), Outcome::NotReproduced);
    let at_least = Claim { bound: Bound::AtLeast, ..claim(1.2) };
    assert_eq!(outcome_of(&at_least, [1.45, 1.40]), Outcome::Reproduced);
    let at_most = Claim { bound: Bound::AtMost, ..claim(1.0) };
    assert_eq!(outcome_of(&at_most, [0.7, 0.8]), Outcome::Reproduced);
}

#[test]
fn a_claim_is_contradicted_when_the_whole_interval_says_the_opposite() {
    assert_eq!(outcome_of(&claim(1.3), [0.9, 0.95]), Outcome::Contradicted);
    assert_eq!(outcome_of(&claim(0.7), [1.1, 1.05]), Outcome::Contradicted);
    assert_eq!(outcome_of(&claim(1.3), [1.0, 1.0]), Outcome::NotReproduced, "equal is no opposite");
    assert_eq!(outcome_of(&claim(1.0), [1.2, 1.2]), Outcome::Contradicted, "it said that nothing changes");
    assert_eq!(outcome_of(&claim(1.3), [0.98, 0.98]), Outcome::NotReproduced, "2 % less is no opposite");
    assert_eq!(outcome_of(&claim(1.0), [1.02, 1.01]), Outcome::Reproduced);
}

#[test]
fn up_to_takes_the_largest_point_and_a_mean_takes_all() {
    let most = Claim { over: Over::Most, ..claim(1.4) };
    let judged = judge(&most, "every", &records([1.1, 1.4]));
    assert_eq!(judged.outcome, Outcome::Reproduced);
    assert_eq!(judged.point.and_then(|point| point["topology.hops"].as_i64()), Some(8));
    let mean = judge(&claim(1.4), "every", &records([1.1, 1.4])).measured.ratio.expect("a ratio");
    assert!((mean - (1.1_f64 * 1.4).sqrt()).abs() < 0.01, "{mean}");
    let at = BTreeMap::from([("topology.hops".to_owned(), vec![4.into()])]);
    let only = judge(&Claim { at, ..claim(1.1) }, "every", &records([1.1, 1.4]));
    assert_eq!(only.outcome, Outcome::Reproduced, "points that are not meant take no part");
}

#[test]
fn other_measures_than_goodput_can_be_claimed() {
    let mut records = records([1.0, 1.0]);
    records.iter_mut().filter(|record| record.arm == "dca").for_each(|record| {
        record.result.flows[0].acks_sent = Some(100);
        record.result.flows[0].timeouts = Some(0);
    });
    let acks = Claim { measure: Measure::AcksPerSegment, ..claim(0.2) };
    assert_eq!(judge(&acks, "every", &records).outcome, Outcome::Reproduced);
    let timeouts = Claim { measure: Measure::Timeouts, ..claim(0.05) };
    assert_eq!(judge(&timeouts, "every", &records).outcome, Outcome::Reproduced);
}

#[test]
fn what_would_fit_is_not_reproduced_where_runs_scatter_too_far() {
    let mut records = records([1.3, 1.3]);
    records.iter_mut().filter(|record| record.arm == "dca").for_each(|record| {
        record.result.total.goodput_kbps *= if record.block % 2 == 0 { 4.0 } else { 0.4 };
    });
    let judged = judge(&Claim { tolerance: Share(900_000), ..claim(1.3) }, "every", &records);
    assert_eq!(judged.outcome, Outcome::NotReproduced, "{judged:?}");
    assert!(judged.why.contains("not sure"), "{}", judged.why);
}

#[test]
fn gains_of_printed_figures_are_refused_where_they_are_none() {
    let refused = |figures: &str, more: &str| {
        let text = format!(
            "title: T\nfigures: {figures}\nclaims: [{{says: x, gain: one, bound: at-least, claimed: 1, note: y{more}}}]"
        );
        let document = Document::parse("t.yaml", &text).expect("it is YAML");
        let refusal = plans::judge(&document, &document.read().expect("a plan's file")).unwrap_err();
        refusal.to_string()
    };
    assert!(refused("{ one: [1, 0] }", "").contains("no gain of 1 over 0"));
    assert!(refused("{ one: [.nan, 2] }", "").contains("no gain of NaN over 2"));
    assert!(refused("{ two: [1, 2] }", "").contains("no figures are called `one`"));
    assert!(refused("{ one: [1, 2] }", ", per: n").contains("it is not said what the claim is about"));
}
