use super::location::{holm, quantile};
use super::*;

mod coverage;
mod draw;
mod figures;
mod peeking;
mod trials;

fn samples(arm: &str, values: &[f64]) -> Samples {
    Samples { arm: arm.to_owned(), values: (1..).zip(values.iter().copied()).collect() }
}

fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= 1e-6 * wanted.abs().max(1.0), "{found} is not {wanted}");
}

fn one(baseline: &[f64], arm: &[f64]) -> Comparison {
    compare(&samples("every", baseline), &[samples("dca", arm)], MARGIN).remove(0)
}

/// The hours of sleep that two drugs added for ten patients (Student 1908), a common check of statistics since.
const SLEEP: [f64; 10] = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];

#[test]
fn students_own_example_comes_to_the_published_figures() {
    let sleep = Location::of(&SLEEP).expect("ten values");
    close(sleep.mean, 1.58);
    close(sleep.mean / sleep.error.expect("ten values"), 4.062_127_683_382_037);
    close(sleep.p_away(0.0).expect("ten values"), 0.002_832_890_197_384_427);
    let [low, high] = sleep.interval(0.95).expect("ten values");
    close(low, 0.700_114_211_9);
    close(high, 2.459_885_788_1);
}

#[test]
fn quantiles_are_those_of_the_printed_tables() {
    for (freedom, wanted) in
        [(1, 12.706_204_7), (2, 4.302_652_7), (4, 2.776_445_1), (9, 2.262_157_2), (19, 2.093_024_1)]
    {
        close(quantile(freedom, 0.95).expect("a freedom"), wanted);
    }
}

#[test]
fn holm_corrects_as_in_the_textbook() {
    let found = holm(&[Some(0.01), Some(0.04), None, Some(0.03), Some(0.005)]);
    for (found, wanted) in found.into_iter().zip([Some(0.03), Some(0.06), None, Some(0.06), Some(0.02)]) {
        assert_eq!(found.is_some(), wanted.is_some());
        close(found.unwrap_or(0.0), wanted.unwrap_or(0.0));
    }
}

#[test]
fn a_summary_leaves_out_what_is_no_goodput_and_has_no_interval_from_one_run() {
    let summary = summarize(&[100.0, f64::NAN, 110.0, -1.0, 120.0, f64::INFINITY]).expect("three values");
    assert_eq!((summary.mean, summary.n), (110.0, 3));
    let [low, high] = summary.ci95.expect("three values");
    close(high - 110.0, 4.302_652_7 * 10.0 / 3.0_f64.sqrt());
    close(110.0 - low, high - 110.0);
    assert_eq!(summarize(&[7.0]), Some(MeanSummary { mean: 7.0, ci95: None, n: 1 }));
    assert_eq!(summarize(&[f64::NAN]), None);
    assert_eq!(
        summarize(&[0.0, 1.0]).and_then(|s| s.ci95).map(|ci| ci[0]),
        Some(0.0),
        "no goodput is below 0"
    );
}

#[test]
fn a_clear_difference_has_its_direction_and_its_ratio() {
    let baseline = [100.0, 104.0, 98.0, 101.0, 99.0];
    let faster = one(&baseline, &[131.0, 134.0, 129.0, 130.0, 131.0]);
    assert_eq!(faster.verdict, ComparisonVerdict::Faster);
    close(
        faster.ratio.expect("a ratio"),
        (131.0_f64 * 134.0 * 129.0 * 130.0 * 131.0 / (100.0 * 104.0 * 98.0 * 101.0 * 99.0)).powf(0.2),
    );
    assert!(
        faster.sentence.starts_with("dca is 30.5 % faster than every (95 % interval +"),
        "{}",
        faster.sentence
    );
    let slower = one(&baseline, &[70.0, 74.0, 69.0, 70.0, 68.0]);
    assert_eq!(slower.verdict, ComparisonVerdict::Slower);
    assert!(slower.sentence.starts_with("dca is 30.1 % slower than every"), "{}", slower.sentence);
}

#[test]
fn a_small_difference_is_none_even_where_it_is_certain() {
    let comparison = one(&[100.0, 101.0, 102.0, 103.0, 104.0], &[101.0, 102.1, 103.0, 104.1, 105.0]);
    assert!(comparison.p_holm.expect("five blocks") < 0.001, "it is certain");
    assert_eq!(comparison.verdict, ComparisonVerdict::NoDifference);
    assert!(comparison.sentence.starts_with("dca and every do not differ by more than 3 %: +1.0 %"));
}

#[test]
fn a_margin_means_the_same_from_either_side() {
    let (one_arm, other) = ([100.0, 101.0, 99.0, 102.0], [102.0, 103.5, 100.9, 103.6]);
    for margin in [0.01, 0.02, 0.025, 0.03, 0.05] {
        let there = compare(&samples("a", &one_arm), &[samples("b", &other)], margin).remove(0);
        let back = compare(&samples("b", &other), &[samples("a", &one_arm)], margin).remove(0);
        close(there.p_equivalence.expect("four blocks"), back.p_equivalence.expect("four blocks"));
        close(there.ratio.expect("a ratio"), 1.0 / back.ratio.expect("a ratio"));
    }
}

#[test]
fn scatter_leaves_a_comparison_undecided_and_says_how_many_blocks_would_decide() {
    let comparison = one(&[100.0, 80.0, 120.0, 90.0, 110.0], &[110.0, 100.0, 105.0, 80.0, 140.0]);
    assert_eq!(comparison.verdict, ComparisonVerdict::Undecided);
    assert!(
        comparison.sentence.starts_with(
            "5 blocks do not tell whether dca differs from every; about 69 would, were this the true ratio: +"
        ),
        "{}",
        comparison.sentence
    );
}

#[test]
fn blocks_that_only_one_arm_finished_are_left_out() {
    let baseline =
        Samples { arm: "every".into(), values: vec![(3, 100.0), (1, 100.0), (2, 90.0), (7, 50.0)] };
    let arm = Samples {
        arm: "dca".into(),
        values: vec![(2, 180.0), (3, 200.0), (1, 200.0), (9, 1.0), (7, f64::NAN)],
    };
    let comparison = compare(&baseline, &[arm], MARGIN).remove(0);
    assert_eq!((comparison.blocks, comparison.verdict), (3, ComparisonVerdict::Faster));
    close(comparison.ratio.expect("a ratio"), 2.0);
    assert!(comparison.sentence.starts_with("dca is 2.00 times as fast as every"));
}

#[test]
fn one_block_or_none_decides_nothing() {
    let single = one(&[100.0], &[200.0]);
    assert_eq!((single.verdict, single.p, single.ci95), (ComparisonVerdict::Undecided, None, None));
    assert_eq!(single.sentence, "One block says nothing of chance: dca had +100.0 % against every in it.");
    let none = one(&[], &[200.0]);
    assert_eq!((none.verdict, none.ratio), (ComparisonVerdict::Undecided, None));
    assert_eq!(none.sentence, "dca and every have no finished block in common.");
}

#[test]
fn equal_runs_are_no_difference_and_have_no_doubt() {
    let comparison = one(&[100.0, 90.0, 95.0], &[100.0, 90.0, 95.0]);
    assert_eq!((comparison.verdict, comparison.ratio), (ComparisonVerdict::NoDifference, Some(1.0)));
    assert_eq!((comparison.p, comparison.ci95), (Some(1.0), Some([1.0, 1.0])));
}

#[test]
fn an_arm_that_once_delivered_nothing_is_compared_by_means() {
    let baseline = [100.0, 104.0, 98.0, 101.0, 99.0];
    let comparison = one(&baseline, &[20.0, 0.0, 25.0, 30.0, 15.0]);
    assert_eq!(comparison.verdict, ComparisonVerdict::Slower);
    close(comparison.ratio.expect("a ratio"), 90.0 / 502.0);
    let dead = one(&baseline, &[0.0; 5]);
    assert_eq!((dead.verdict, dead.ratio), (ComparisonVerdict::Slower, Some(0.0)));
}

#[test]
fn a_baseline_that_delivered_nothing_leaves_no_ratio_and_no_false_word() {
    let faster = one(&[0.0; 5], &[100.0, 90.0, 110.0, 95.0, 105.0]);
    assert_eq!((faster.verdict, faster.ratio, faster.ci95), (ComparisonVerdict::Faster, None, None));
    assert_eq!(faster.sentence, "dca delivered data and every none, in all of 5 blocks.");
    let neither = one(&[0.0; 5], &[0.0; 5]);
    assert_eq!((neither.verdict, neither.p), (ComparisonVerdict::Undecided, None));
    assert_eq!(neither.sentence, "Neither dca nor every delivered anything.");
}

#[test]
fn fiellers_interval_ends_where_the_t_test_does() {
    let pairs = [(110.0, 100.0), (0.0, 80.0), (130.0, 120.0), (95.0, 90.0), (150.0, 110.0), (120.0, 105.0)];
    let found = paired(&pairs, MARGIN);
    for end in found.ci95.expect("six blocks") {
        let differences: Vec<f64> = pairs.iter().map(|(arm, baseline)| arm - end * baseline).collect();
        let p = Location::of(&differences).and_then(|location| location.p_away(0.0)).expect("six blocks");
        close(p, 0.05);
    }
}

#[test]
fn many_arms_are_corrected_for_one_another() {
    let baseline = samples("every", &[100.0, 101.0, 99.0, 100.5]);
    let arm =
        |name: &str, scale: f64| samples(name, &[107.0, 104.0, 108.0, 104.0].map(|value| value * scale));
    let alone = compare(&baseline, &[arm("a", 1.0)], MARGIN).remove(0);
    assert_eq!(alone.verdict, ComparisonVerdict::Faster);
    let others: Vec<Samples> = (0..9).map(|n| arm(&format!("a{n}"), 1.0 - 0.001 * f64::from(n))).collect();
    let crowd = compare(&baseline, &others, MARGIN);
    assert_eq!(crowd[0].p, alone.p);
    assert!(crowd[0].p_holm > alone.p_holm);
    assert_eq!(
        crowd[0].verdict,
        ComparisonVerdict::Undecided,
        "among nine arms chance finds more: {:?}",
        crowd[0].p_holm
    );
}

/// Two arms with p just below 5 % each: corrected for both, neither is sure, though each interval alone excludes 0.
#[test]
fn an_interval_beside_a_corrected_p_is_told_to_be_that_of_one_comparison() {
    let baseline = samples("every", &[100.0, 103.0, 98.0, 101.0]);
    let arm = |name: &str| samples(name, &[104.0, 105.5, 106.0, 104.5]);
    let two = compare(&baseline, &[arm("dca"), arm("tda")], 0.001);
    assert!(two[0].is_apart_alone() && two[0].p < Some(0.05), "{:?}", two[0]);
    assert_eq!(two[0].verdict, ComparisonVerdict::Undecided, "{:?}", two[0]);
    assert!(
        two[0].sentence.ends_with("after correcting for 2 comparisons; the interval is not corrected)."),
        "{}",
        two[0].sentence
    );
    // The same words where the verdict is sure, and where the interval has room for no difference.
    let far =
        |name: &str, scale: f64| samples(name, &[104.0, 105.5, 106.0, 104.5].map(|value| value * scale));
    let level = samples("level", &[98.0, 104.0, 99.5, 100.0]);
    for found in compare(&baseline, &[far("sure", 1.5), level], 0.001) {
        assert!(
            found.sentence.ends_with("after correcting for 2 comparisons; the interval is not corrected)."),
            "{}",
            found.sentence
        );
    }
    let one = compare(&baseline, &[arm("dca")], 0.001);
    assert!(
        one[0].verdict == ComparisonVerdict::Faster && !one[0].sentence.contains("correcting"),
        "{:?}",
        one[0]
    );
}
