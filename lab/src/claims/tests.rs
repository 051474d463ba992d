use std::collections::BTreeMap;

use hopwise_air::random::{NumberStream, Purpose};

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
        against_at: BTreeMap::new(),
        per_at: BTreeMap::new(),
        over: PointCombination::Mean,
        bound: Bound::About,
        ratio: Some(ratio),
        value: None,
        tolerance: None,
        ours: false,
        premise: None,
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

fn judge(claim: &Claim, baseline: &str, records: &[Record]) -> Judged {
    super::judge(claim, baseline, &records.iter().collect::<Vec<_>>())
}

fn outcome_of(claim: &Claim, ratios: [f64; 2]) -> ClaimOutcome {
    judge(claim, "every", &records(ratios)).outcome
}

#[test]
fn a_claim_is_reproduced_within_its_tolerance_only() {
    assert_eq!(outcome_of(&claim(1.3), [1.28, 1.33]), ClaimOutcome::Reproduced);
    assert_eq!(outcome_of(&claim(1.3), [1.18, 1.20]), ClaimOutcome::NotReproduced);
    assert_eq!(outcome_of(&claim(1.3), [1.45, 1.40]), ClaimOutcome::NotReproduced);
    let at_least = Claim { bound: Bound::AtLeast, ..claim(1.2) };
    assert_eq!(outcome_of(&at_least, [1.45, 1.40]), ClaimOutcome::Reproduced);
    let at_most = Claim { bound: Bound::AtMost, ..claim(1.0) };
    assert_eq!(outcome_of(&at_most, [0.7, 0.8]), ClaimOutcome::Reproduced);
}

#[test]
fn a_claim_is_contradicted_when_the_whole_interval_says_the_opposite() {
    assert_eq!(outcome_of(&claim(1.3), [0.9, 0.95]), ClaimOutcome::Contradicted);
    assert_eq!(outcome_of(&claim(0.7), [1.1, 1.05]), ClaimOutcome::Contradicted);
    assert_eq!(outcome_of(&claim(1.3), [1.0, 1.0]), ClaimOutcome::NotReproduced, "equal is no opposite");
    assert_eq!(
        outcome_of(&claim(1.0), [1.2, 1.2]),
        ClaimOutcome::Contradicted,
        "it said that nothing changes"
    );
    assert_eq!(outcome_of(&claim(1.3), [0.98, 0.98]), ClaimOutcome::NotReproduced, "2 % less is no opposite");
    assert_eq!(outcome_of(&claim(1.0), [1.02, 1.01]), ClaimOutcome::Reproduced);
}

#[test]
fn up_to_takes_the_largest_point_from_the_smallest_and_a_mean_takes_all() {
    let most = Claim { over: PointCombination::Most, ..claim(1.4) };
    let judged = judge(&most, "every", &records([1.1, 1.4]));
    assert_eq!(judged.outcome, ClaimOutcome::Reproduced);
    assert_eq!(judged.point.and_then(|point| point["topology.hops"].as_i64()), Some(8));
    let least = judge(&Claim { over: PointCombination::Least, ..claim(1.1) }, "every", &records([1.1, 1.4]));
    assert_eq!(least.outcome, ClaimOutcome::Reproduced);
    assert_eq!(least.point.and_then(|point| point["topology.hops"].as_i64()), Some(4));
    let mean = judge(&claim(1.4), "every", &records([1.1, 1.4])).measured.number.expect("a ratio");
    assert!((mean - (1.1_f64 * 1.4).sqrt()).abs() < 0.01, "{mean}");
    let at = BTreeMap::from([("topology.hops".to_owned(), vec![4.into()])]);
    let only = judge(&Claim { at, ..claim(1.1) }, "every", &records([1.1, 1.4]));
    assert_eq!(only.outcome, ClaimOutcome::Reproduced, "points that are not meant take no part");
}

#[test]
fn other_measures_than_goodput_can_be_claimed() {
    let mut records = records([1.0, 1.0]);
    records.iter_mut().filter(|record| record.arm == "dca").for_each(|record| {
        record.result.flows[0].acks_sent = Some(100);
        record.result.flows[0].timeouts = Some(0);
    });
    let acks = Claim { measure: Measure::AcksPerSegment, ..claim(0.2) };
    assert_eq!(judge(&acks, "every", &records).outcome, ClaimOutcome::Reproduced);
    let timeouts = Claim { measure: Measure::Timeouts, ..claim(0.05) };
    assert_eq!(judge(&timeouts, "every", &records).outcome, ClaimOutcome::Reproduced);
}

/// Records of an arm that has this ratio in the mean, and up to that many times more or less in single blocks.
fn scattered(ratio: f64, times: f64) -> Vec<Record> {
    let mut records = records([ratio; 2]);
    records.iter_mut().filter(|record| record.arm == "dca" && record.block < 5).for_each(|record| {
        let times = if record.block % 2 == 0 { times } else { 1.0 / times };
        record.result.total.goodput_kbps *= times;
    });
    records
}

#[test]
fn a_claim_is_undecided_where_its_interval_meets_it_and_leaves_it() {
    let of = |claim: &Claim, records: &[Record]| {
        let judged = judge(claim, "every", records);
        (judged.outcome, judged.why.trim_end_matches(", and would with 40 seeds").to_owned())
    };
    let goes_beyond = "the interval goes beyond what is claimed".to_owned();
    assert_eq!(of(&claim(1.3), &scattered(1.3, 1.5)), (ClaimOutcome::Undecided, goes_beyond.clone()));
    // The mean lies outside, and the interval reaches in.
    assert_eq!(of(&claim(1.3), &scattered(1.1, 1.5)), (ClaimOutcome::Undecided, goes_beyond.clone()));
    let wide = Claim { tolerance: Some(Share(900_000)), ..claim(1.3) };
    assert_eq!(of(&wide, &scattered(1.3, 1.1)).0, ClaimOutcome::Reproduced, "it lies within");
    assert_eq!(of(&claim(1.3), &scattered(2.0, 1.1)).0, ClaimOutcome::NotReproduced, "it lies outside");
    let value = Claim { ratio: None, value: Some(260.0), ..claim(1.0) };
    assert_eq!(of(&value, &scattered(1.3, 1.5)), (ClaimOutcome::Undecided, goes_beyond));
    let one: Vec<Record> = records([1.3; 2]).into_iter().filter(|record| record.block == 1).collect();
    assert_eq!(of(&claim(1.3), &one).0, ClaimOutcome::Undecided, "a single run has no interval");
}

#[test]
fn a_bound_asks_for_the_whole_interval_and_a_mean_on_its_side_is_a_tendency() {
    let at_least = |ratio| Claim { bound: Bound::AtLeast, ..claim(ratio) };
    let of = |claim: &Claim, records: &[Record]| {
        let judged = judge(claim, "every", records);
        (judged.outcome, judged.why.starts_with("in tendency, "))
    };
    assert_eq!(of(&at_least(1.2), &records([1.3; 2])), (ClaimOutcome::Reproduced, false));
    // 17 % is less than 20 %, whatever tolerance numbers without a bound have.
    assert_eq!(of(&at_least(1.2), &records([1.17; 2])), (ClaimOutcome::NotReproduced, true));
    assert_eq!(of(&at_least(1.2), &scattered(1.3, 1.3)), (ClaimOutcome::Undecided, true));
    assert_eq!(of(&at_least(1.2), &scattered(0.95, 1.3)), (ClaimOutcome::Undecided, false));
    assert_eq!(of(&at_least(1.2), &records([0.99; 2])), (ClaimOutcome::NotReproduced, false));
    let at_most = |ratio| Claim { bound: Bound::AtMost, ..claim(ratio) };
    assert_eq!(of(&at_most(0.9), &records([0.85; 2])), (ClaimOutcome::Reproduced, false));
    assert_eq!(of(&at_most(0.9), &records([0.93; 2])), (ClaimOutcome::NotReproduced, true));
    // Nothing measured is surely equal: "no less" has a tolerance.
    assert_eq!(of(&at_least(1.0), &records([0.98; 2])), (ClaimOutcome::Reproduced, false));
    let exact = Claim { tolerance: Some(Share(0)), ..at_least(1.0) };
    assert_eq!(of(&exact, &records([0.98; 2])).0, ClaimOutcome::NotReproduced);
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

fn readings_of(claim: &Claim, ratios: [f64; 2]) -> Vec<Reading> {
    readings(claim, "every", &records(ratios), (&["topology.hops".to_owned()], &[]))
}

/// A claim's outcomes where hops are left open, and what they say together.
fn over_hops(claim: &Claim, ratios: [f64; 2]) -> (Vec<ClaimOutcome>, String) {
    let readings = readings_of(claim, ratios);
    let outcomes = readings.iter().map(|reading| reading.judged.outcome).collect();
    (outcomes, JointVerdict::of(&readings).in_words(readings.len()))
}

#[test]
fn a_claim_is_judged_under_each_open_setting_and_the_verdict_says_where_it_holds() {
    use ClaimOutcome::{Contradicted, NotReproduced, Reproduced};
    let of = |ratios| over_hops(&claim(1.3), ratios);
    assert_eq!(of([1.3, 1.31]), (vec![Reproduced; 2], "reproduced everywhere".into()));
    assert_eq!(
        of([1.3, 1.1]),
        (vec![Reproduced, NotReproduced], "reproduced in 1 of 2 readings, where topology.hops = 4".into())
    );
    assert_eq!(of([1.1, 1.15]), (vec![NotReproduced; 2], "not reproduced".into()));
    assert_eq!(of([0.8, 0.9]), (vec![Contradicted; 2], "contradicted everywhere".into()));
    let scattered =
        readings(&claim(1.3), "every", &scattered(1.3, 1.5), (&["topology.hops".to_owned()], &[]));
    assert_eq!(JointVerdict::of(&scattered).in_words(2), "undecided");
    let mixed = [scattered[0].clone(), readings_of(&claim(1.3), [1.1; 2])[0].clone()];
    assert_eq!(JointVerdict::of(&mixed).in_words(2), "undecided");
    let one_of_two = (vec![Contradicted, NotReproduced], "not reproduced".into());
    assert_eq!(of([0.8, 1.1]), one_of_two, "one choice of ours accuses nobody");
    let at = BTreeMap::from([("topology.hops".to_owned(), vec![8.into()])]);
    let only = over_hops(&Claim { at, ..claim(1.3) }, [0.8, 1.3]);
    assert_eq!(only, (vec![Reproduced], "reproduced".into()), "a reading that is not meant takes no part");
    assert_eq!(JointVerdict::of(&[]), JointVerdict::NotReproduced, "nothing was run");
}

/// Readings of two settings, `a` of which has names, with the outcome of each.
fn verdict_over(all: &[(u64, u64, bool)]) -> String {
    let mut records = Vec::new();
    for (a, b, is_met) in all {
        for mut record in records_of_one_point(if *is_met { 1.3 } else { 1.1 }) {
            record.point = BTreeMap::from([("a".to_owned(), (*a).into()), ("b".to_owned(), (*b).into())]);
            records.push(record);
        }
    }
    let names = [("none", 0_u64), ("one", 1)]
        .map(|(name, a)| (name.to_owned(), BTreeMap::from([("a".to_owned(), a.into())])));
    let open = ["a", "b"].map(str::to_owned);
    let readings = readings(&claim(1.3), "every", &records, (&open, &names));
    assert_eq!(readings.len(), all.len());
    place_of(&readings)
}

/// The place of a claim's readings, behind their share.
fn place_of(readings: &[Reading]) -> String {
    let words = JointVerdict::of(readings).in_words(readings.len());
    let met = readings.iter().filter(|reading| reading.judged.outcome == ClaimOutcome::Reproduced).count();
    let share = format!("reproduced in {met} of {} readings, ", readings.len());
    words.strip_prefix(&share).unwrap_or_else(|| panic!("{words} has no share {share}")).to_owned()
}

fn records_of_one_point(ratio: f64) -> Vec<Record> {
    records([ratio; 2]).into_iter().filter(|record| record.point["topology.hops"] == 4).collect()
}

#[test]
fn a_verdict_names_the_readings_under_which_it_holds_by_what_tells_them_from_others() {
    let of = |met: [[bool; 2]; 2]| {
        let all = [(0, 0), (0, 1), (1, 0), (1, 1)];
        verdict_over(&all.map(|(a, b)| (a, b, met[a as usize][b as usize])))
    };
    assert_eq!(of([[true, true], [false, false]]), "where none");
    assert_eq!(of([[false, false], [false, true]]), "where one and b = 1");
    assert_eq!(of([[false, true], [true, false]]), "where none and b = 1; or one and b = 0");
    assert_eq!(of([[true, true], [true, false]]), "where none; or b = 0");
    // Only some of all combinations were run.
    let some = [(0, 0, true), (0, 1, true), (0, 2, false), (1, 0, false)];
    assert_eq!(verdict_over(&some), "where none and (b = 0 or b = 1)");
}

/// Readings of two settings that go together under one name, with these outcomes.
fn verdict_over_names(all: [(&str, bool); 3]) -> String {
    let (mut records, mut names) = (Vec::new(), Vec::new());
    for ((name, is_met), nth) in all.into_iter().zip(0_u64..) {
        // The third differs from the second in `b` alone.
        let values = BTreeMap::from([("a", nth.min(1)), ("b", nth / 2)]);
        let values: MatrixPoint =
            values.into_iter().map(|(path, value)| (path.to_owned(), value.into())).collect();
        for mut record in records_of_one_point(if is_met { 1.3 } else { 1.1 }) {
            record.point.clone_from(&values);
            records.push(record);
        }
        names.push((name.to_owned(), values));
    }
    let open = ["a", "b"].map(str::to_owned);
    place_of(&readings(&claim(1.3), "every", &records, (&open, &names)))
}

#[test]
fn a_name_that_begins_another_one_or_has_a_comma_stands_in_quotes() {
    let of = |[w, x, y]: [bool; 3]| verdict_over_names([("W", w), ("X", x), ("X, no RTS", y)]);
    assert_eq!(of([true, true, false]), "where W or \"X\"");
    assert_eq!(of([false, true, true]), "where \"X\" or \"X, no RTS\"");
    assert_eq!(of([false, false, true]), "where \"X, no RTS\"");
    assert_eq!(of([true, false, false]), "where W");
    let other = verdict_over_names([("least RTO 1", false), ("least RTO 10", true), ("none", false)]);
    assert_eq!(other, "where least RTO 10");
    let other = verdict_over_names([("least RTO 1", true), ("least RTO 10", false), ("none", false)]);
    assert_eq!(other, "where least RTO 1", "another number is another word");
}

#[test]
fn the_other_arm_may_be_taken_at_its_best_point() {
    let mut records = records([1.0, 1.0]);
    records.iter_mut().filter(|record| record.point["topology.hops"] == 4).for_each(|record| {
        record.result.total.goodput_kbps *= 2.0;
    });
    let hops = |hops: &[u64]| {
        BTreeMap::from([("topology.hops".to_owned(), hops.iter().map(|hops| (*hops).into()).collect())])
    };
    let claim = Claim { at: hops(&[8]), against_at: hops(&[4, 8]), ..claim(0.5) };
    assert_eq!(
        judge(&claim, "every", &records).outcome,
        ClaimOutcome::Reproduced,
        "at 4 hops the other one has twice as much"
    );
}

/// A claim that the ratio at 8 hops is this multiple of the ratio at 4.
fn per(ratio: f64) -> Claim {
    let hops = |hops: u64| BTreeMap::from([("topology.hops".to_owned(), vec![hops.into()])]);
    Claim { at: hops(8), per_at: hops(4), bound: Bound::AtLeast, tolerance: Some(Share(0)), ..claim(ratio) }
}

#[test]
fn a_ratio_of_two_ratios_is_judged_by_its_own_interval_over_blocks() {
    assert_eq!(outcome_of(&per(1.03), [1.1, 1.3]), ClaimOutcome::Reproduced);
    assert_eq!(outcome_of(&per(1.03), [1.3, 1.3]), ClaimOutcome::NotReproduced, "both gain, by as much");
    assert_eq!(outcome_of(&per(1.03), [1.3, 1.1]), ClaimOutcome::Contradicted);
    let judged = judge(&per(1.03), "every", &records([1.0, 1.25]));
    let MeasuredClaim { number, ci95, blocks } = judged.measured;
    assert!(number.is_some_and(|number| (number - 1.25).abs() < 1e-9), "{number:?}");
    let [low, high] = ci95.expect("an interval");
    // Both ratios scatter alike in a block, and their quotient does not scatter at all.
    assert!(high - low < 1e-9 && blocks == 5, "{low} to {high}");
    assert_eq!(claimed(&per(1.03)), "at least +3.0 % over the ratio at topology.hops = 4");
    assert!(measured(&per(1.03), &judged).starts_with("+25.0 % ("), "{}", measured(&per(1.03), &judged));
}

#[test]
fn blocks_that_scatter_leave_a_ratio_of_two_ratios_unsure() {
    let mut records = records([1.0, 1.25]);
    let odd = records.iter_mut().filter(|r| r.arm == "dca" && r.block % 2 == 1);
    odd.filter(|r| r.point["topology.hops"] == 4).for_each(|r| r.result.total.goodput_kbps *= 3.0);
    let judged = judge(&per(1.03), "every", &records);
    assert_eq!(judged.outcome, ClaimOutcome::Undecided);
    assert!(judged.measured.ci95.is_some_and(|[low, high]| low < 1.0 && high > 1.0), "{judged:?}");
}

#[test]
fn a_block_without_a_run_takes_no_part_in_it_and_one_with_a_0_leaves_no_ratio() {
    let mut records = records([1.0, 1.25]);
    records.retain(|record| record.block != 2 || record.arm != "dca" || record.point["topology.hops"] != 4);
    let judged = judge(&per(1.03), "every", &records);
    assert_eq!((judged.outcome, judged.measured.blocks), (ClaimOutcome::Reproduced, 4));
    records[0].result.total.goodput_kbps = 0.0;
    let judged = judge(&per(1.03), "every", &records);
    assert_eq!((judged.outcome, judged.measured.number), (ClaimOutcome::NotReproduced, None));
}

#[test]
fn a_printed_value_is_held_against_one_arm_and_never_contradicted() {
    let value = |value| Claim { ratio: None, value: Some(value), ..claim(1.0) };
    let judged = judge(&value(260.0), "every", &records([1.3, 1.3]));
    assert_eq!(judged.outcome, ClaimOutcome::Reproduced, "{judged:?}");
    assert!(measured(&value(260.0), &judged).starts_with("261 kbit/s (26"), "{judged:?}");
    assert_eq!(claimed(&value(260.0)), "260 kbit/s");
    let far = judge(&value(100.0), "every", &records([1.3, 1.3]));
    assert_eq!(
        far.outcome,
        ClaimOutcome::NotReproduced,
        "an absolute figure hangs on more than the paper sets"
    );
    let timeouts = Claim { measure: Measure::Timeouts, bound: Bound::AtMost, ..value(0.0) };
    let mut records = records([1.0, 1.0]);
    records.iter_mut().for_each(|record| record.result.flows[0].timeouts = Some(0));
    assert_eq!(judge(&timeouts, "every", &records).outcome, ClaimOutcome::Reproduced);
    records[1].result.flows[0].timeouts = Some(1);
    assert_eq!(judge(&timeouts, "every", &records).outcome, ClaimOutcome::NotReproduced);
}

#[test]
fn a_value_with_a_bound_is_reproduced_only_if_its_whole_interval_keeps_to_it() {
    // Runs of `every` scatter from 200 to 202 kbit/s.
    let outcome = |bound, value| {
        let claim = Claim {
            arm: "every".into(),
            bound,
            ratio: None,
            value: Some(value),
            tolerance: Some(Share(0)),
            ..claim(1.0)
        };
        judge(&claim, "every", &records([1.0, 1.0])).outcome
    };
    assert_eq!(outcome(Bound::AtLeast, 199.0), ClaimOutcome::Reproduced);
    assert_eq!(
        outcome(Bound::AtLeast, 201.0),
        ClaimOutcome::Undecided,
        "the mean is 201, and its interval goes below"
    );
    assert_eq!(outcome(Bound::AtMost, 203.0), ClaimOutcome::Reproduced);
    assert_eq!(outcome(Bound::AtMost, 201.5), ClaimOutcome::Undecided);
    assert_eq!(outcome(Bound::AtMost, 199.0), ClaimOutcome::NotReproduced);
}

/// A row of a claim of 30 % more, with these ratios at 4 and at 8 hops, each of which is a reading.
fn row(ours: bool, ratios: [f64; 2]) -> table::ClaimRow {
    row_of(ours, &readings_of(&claim(1.3), ratios))
}

fn row_of(ours: bool, readings: &[Reading]) -> table::ClaimRow {
    table::ClaimRow {
        paper: "dca".into(),
        title: "Fig. 2".into(),
        figure: "Fig. 2".into(),
        says: "an arm is faster, by far".into(),
        note: None,
        ours,
        claimed: claimed(&claim(1.3)),
        stated: Some(Stated::Ratio(1.3)),
        premise: None,
        results: vec![table::Under::new("ns2", readings.to_vec())],
    }
}

#[test]
fn a_figure_has_the_readings_that_hold_most_of_its_claims_together() {
    let told = |rows: &[table::ClaimRow]| table::jointly(rows);
    let rows = [row(false, [1.3, 1.1]), row(false, [1.3, 1.3]), row(true, [1.1, 1.1])];
    let both = "jointly 2 of 2 claims hold, in the reading: topology.hops = 4";
    assert_eq!(told(&rows).as_deref(), Some(both));
    // Each claim holds in some reading, and no reading holds both.
    let rows = [row(false, [1.3, 1.1]), row(false, [1.1, 1.3])];
    let one = "jointly 1 of 2 claims hold, in 2 readings, such as: topology.hops = 4";
    assert_eq!(told(&rows).as_deref(), Some(one));
    assert_eq!(told(&[row(false, [1.1, 1.1])]).as_deref(), Some("jointly 0 of 1 claims hold"));
    assert_eq!(told(&[row(true, [1.3, 1.3])]), None, "no paper claims anything");
    let only = readings(&claim(1.3), "every", &records([1.3; 2]), (&[], &[]));
    assert_eq!(told(&[row_of(false, &only)]).as_deref(), Some("jointly 1 of 1 claims hold"));
}

#[test]
fn the_table_has_a_line_for_each_reading_and_counts_no_claim_of_ours() {
    let rows = [row(false, [1.3, 1.1]), row(false, [1.3, 1.3]), row(true, [1.3, 1.3])];
    assert_eq!(table::counts(&rows, None), [1, 1, 0, 0, 0]);
    let csv = table::csv(&rows);
    assert_eq!(csv.lines().count(), 1 + 6, "{csv}");
    assert!(csv.contains("dca,Fig. 2,\"an arm is faster, by far\",false,"), "{csv}");
    let under = &rows[0].results[0];
    assert_eq!(under.why(), "1 reproduced, 1 not reproduced");
    assert_eq!(under.seeds().as_deref(), Some("5"));
    assert!(under.measured().ends_with(" in 2 readings"), "{}", under.measured());
    let picture = crate::report::picture_of_claims(&rows);
    assert_eq!(picture.matches("class=\"claimed\"").count(), 6, "{picture}");
    assert!(picture.contains("xmlns=") && picture.contains("topology.hops = 4"), "{picture}");
}

/// A claim of the arm that rests on the losses of the other one, and records of these losses: 100 segments at each
/// point, with 50 ACKs at 4 hops and 100 at 8.
fn resting() -> (Claim, Vec<Record>) {
    let premise = Premise { arm: "every".into(), measure: Measure::AcksLostPerSegmentLost };
    let mut records = records([1.0, 1.3]);
    for record in &mut records {
        let lost = if record.point["topology.hops"] == 4 { 50 } else { 100 };
        let flow = &mut record.result.flows[0];
        (flow.segments_arrived, flow.acks_arrived) = (Some(900), Some(500 - lost));
    }
    (Claim { premise: Some(premise), ..claim(1.3) }, records)
}

#[test]
fn a_claim_has_the_value_of_its_premise_under_each_reading() {
    let (resting, mut records) = resting();
    let found = readings(&resting, "every", &records, (&["topology.hops".to_owned()], &[]));
    assert_eq!(found.iter().map(|reading| reading.premise).collect::<Vec<_>>(), [Some(0.5), Some(1.0)]);
    assert!(
        found[0].measured.ends_with(" at 0.50 lost ACKs a lost segment of every"),
        "{}",
        found[0].measured
    );
    // A run without lost data has no such ratio.
    records.iter_mut().for_each(|record| record.result.flows[0].segments_arrived = Some(1000));
    let found = readings(&resting, "every", &records, (&[], &[]));
    assert!(found[0].premise.is_none() && found[0].measured.ends_with(')'), "{}", found[0].measured);
}

#[test]
fn a_claim_is_drawn_over_its_premise() {
    let (resting, records) = resting();
    let found = readings(&resting, "every", &records, (&["topology.hops".to_owned()], &[]));
    let row = table::ClaimRow {
        paper: "pgy".into(),
        title: "Fig. 1".into(),
        figure: "Fig. 1".into(),
        says: "an arm is faster where ACKs are lost".into(),
        note: None,
        ours: true,
        claimed: claimed(&resting),
        stated: Some(Stated::Ratio(1.3)),
        premise: rests_on(&resting),
        results: vec![table::Under::new("ns2", found)],
    };
    let rests_on_nothing = table::ClaimRow { premise: None, ..row.clone() };
    assert_eq!(crate::report::picture_of_premises(&[rests_on_nothing]), "");
    let picture = crate::report::picture_of_premises(std::slice::from_ref(&row));
    assert_eq!(picture.matches("<circle class=\"c0\"").count(), 2, "{picture}");
    assert!(picture.contains("lost ACKs a lost segment of every") && picture.contains("xmlns="), "{picture}");
    assert!(table::csv(&[row]).lines().nth(1).is_some_and(|line| line.ends_with(",0.5")), "it ends the line");
}

#[test]
fn more_runs_are_made_only_if_an_interval_that_is_as_much_narrower_decides() {
    let may = |claim: &Claim, number: f64, half: f64, blocks: usize| {
        let measured =
            MeasuredClaim { number: Some(number), ci95: Some([number - half, number + half]), blocks };
        let (outcome, why) = judge_number(claim, &measured);
        assert_eq!(outcome, ClaimOutcome::Undecided);
        let may = may_be_decided(claim, &measured);
        let is_told = why.ends_with("the interval goes beyond what is claimed, and would with 40 seeds");
        assert_eq!(is_told, !may && blocks < 40, "{why}");
        may
    };
    // Ten runs have intervals that are twice as wide as those of forty.
    let at_least = Claim { bound: Bound::AtLeast, ..claim(1.2) };
    assert!(may(&at_least, 1.3, 0.19, 10), "1.205 is more");
    assert!(!may(&at_least, 1.3, 0.21, 10), "1.195 is less");
    assert!(may(&at_least, 1.1, 0.19, 10), "1.195 is surely less");
    assert!(!may(&at_least, 1.1, 0.21, 10));
    assert!(may(&at_least, 1.3, 0.28, 5) && !may(&at_least, 1.3, 0.29, 5));
    assert!(may(&claim(1.3), 1.3, 0.09, 10), "both ends are within");
    assert!(!may(&claim(1.3), 1.3, 0.11, 10));
    assert!(!may(&at_least, 1.3, 0.11, 40), "it has all seeds");
    let of = |blocks| may_be_decided(&at_least, &MeasuredClaim { number: Some(1.3), ci95: None, blocks });
    assert!(of(1) && !of(40), "one run shows no scatter");
}

/// The outcome of a line after its last look at these values, and the number of them. If it may end early, it does so
/// where more are not likely to decide.
fn looked_at(claim: &Claim, values: &[f64], may_end: bool) -> (ClaimOutcome, usize) {
    let mut blocks = 5;
    loop {
        let summary = summarize(&values[..blocks]).expect("some values");
        let measured = MeasuredClaim { number: Some(summary.mean), ci95: summary.ci95, blocks };
        let (outcome, _) = judge_number(claim, &measured);
        let is_left = may_end && !may_be_decided(claim, &measured);
        if outcome != ClaimOutcome::Undecided || blocks == values.len() || is_left {
            return (outcome, blocks);
        }
        blocks *= 2;
    }
}

#[test]
fn lines_that_end_early_save_most_runs_and_make_no_wrong_verdict() {
    const LINES: u32 = 4000;
    const BOUND: f64 = 260.0;
    let line = Claim {
        bound: Bound::AtLeast,
        ratio: None,
        value: Some(BOUND),
        tolerance: Some(Share(0)),
        ..claim(1.0)
    };
    let mut numbers = NumberStream::new(1, 0, Purpose::Traffic);
    // The sum of twelve even draws scatters almost normally, by 1.
    let normal = |numbers: &mut NumberStream| (0..12).map(|_| numbers.unit()).sum::<f64>() - 6.0;
    let (mut seeds, mut wrong, mut decided, mut left) = ([0, 0], [0, 0], 0, 0);
    for _ in 0..LINES {
        let truth = BOUND + 2.0 * numbers.unit() - 1.0;
        let values: Vec<f64> = (0..MOST_SEEDS).map(|_| truth + normal(&mut numbers)).collect();
        let each = [true, false].map(|may_end| looked_at(&line, &values, may_end));
        for (nth, (outcome, blocks)) in each.into_iter().enumerate() {
            let said = outcome == ClaimOutcome::Reproduced;
            seeds[nth] += blocks;
            wrong[nth] += u32::from(outcome != ClaimOutcome::Undecided && said != (truth >= BOUND));
        }
        let [with, without] = each.map(|(outcome, _)| outcome != ClaimOutcome::Undecided);
        decided += u32::from(without);
        left += u32::from(without && !with);
    }
    let mean = |all: usize| all as f64 / f64::from(LINES);
    println!("{:.1} seeds, and {:.1} with all that are undecided", mean(seeds[0]), mean(seeds[1]));
    println!(
        "{left} of {decided} decided lines are left; wrong are {} and {} of {LINES}",
        wrong[0], wrong[1]
    );
    assert!(2 * seeds[0] < seeds[1] && 5 * left < 2 * decided, "{seeds:?}, {left} of {decided}");
    assert!(wrong[0] <= wrong[1] && 40 * wrong[1] < LINES, "{wrong:?}");
}

#[test]
fn a_claim_needs_runs_of_its_arms_at_its_points_alone() {
    let point = |hops: u64| MatrixPoint::from([("topology.hops".to_owned(), hops.into())]);
    let of = |claim: &Claim| {
        let all =
            [4, 8].map(|hops| ["every", "dca", "tda"].map(|arm| needs(claim, "every", (&point(hops), arm))));
        all.map(|arms| arms.map(u8::from))
    };
    assert_eq!(of(&claim(1.3)), [[1, 1, 0], [1, 1, 0]]);
    assert_eq!(of(&Claim { against: Some("tda".into()), ..claim(1.3) }), [[0, 1, 1], [0, 1, 1]]);
    let at = point(8).into_iter().map(|(path, value)| (path, vec![value])).collect::<BTreeMap<_, _>>();
    let there = Claim { at: at.clone(), ..claim(1.3) };
    assert_eq!(of(&there), [[0, 0, 0], [1, 1, 0]]);
    assert_eq!(of(&per(1.03)), [[1, 1, 0], [1, 1, 0]], "it divides by the ratio at 4 hops");
    let value = Claim { ratio: None, value: Some(260.0), ..there.clone() };
    assert_eq!(of(&value), [[0, 0, 0], [0, 1, 0]], "a value has one arm");
    let premise = Premise { arm: "tda".into(), measure: Measure::AcksLost };
    assert_eq!(of(&Claim { premise: Some(premise), ..there.clone() }), [[0, 0, 0], [1, 1, 1]]);
    let four = BTreeMap::from([("topology.hops".to_owned(), vec![4.into()])]);
    assert_eq!(of(&Claim { against_at: four, ..there }), [[1, 1, 0], [1, 1, 0]]);
}
