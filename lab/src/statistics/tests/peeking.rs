//! Trials that are looked at after every block and stop at the first verdict.

use super::super::{ComparisonVerdict, MARGIN, Samples, compare, is_sure, watch};
use super::draw::{Draws, Scatter};

const MOST_BLOCKS: u32 = 60;

type Look = fn(&Samples, &[Samples], f64) -> Vec<super::Comparison>;

/// The verdict at which a trial stopped, and the number of its blocks.
fn stopped(seed: u64, scatter: Scatter, ratio: f64, look: Look) -> (ComparisonVerdict, u32) {
    let mut draws = Draws::new(seed);
    let mut baseline = Samples { arm: "baseline".into(), ..Samples::default() };
    let mut arm = Samples { arm: "arm".into(), ..Samples::default() };
    for block in 1..=MOST_BLOCKS {
        baseline.values.push((block, draws.goodput(scatter)));
        arm.values.push((block, ratio * draws.goodput(scatter)));
        let found = look(&baseline, std::slice::from_ref(&arm), MARGIN);
        if is_sure(&found) {
            return (found[0].verdict, block);
        }
    }
    (ComparisonVerdict::Undecided, MOST_BLOCKS)
}

fn count(
    trials: u64,
    scatter: Scatter,
    ratio: f64,
    look: Look,
    counts: fn(ComparisonVerdict) -> bool,
) -> usize {
    (0..trials).filter(|seed| counts(stopped(*seed, scatter, ratio, look).0)).count()
}

fn is_a_difference(verdict: ComparisonVerdict) -> bool {
    matches!(verdict, ComparisonVerdict::Faster | ComparisonVerdict::Slower)
}

#[test]
fn looking_after_every_block_errs_in_less_than_5_percent_of_trials() {
    for scatter in [Scatter::Even(0.05), Scatter::Even(0.2), Scatter::Stalls(0.1), Scatter::TwoWays(0.05)] {
        let found = count(500, scatter, 1.0, watch, is_a_difference);
        println!("{scatter:?}: {found} of 500 find what is not there");
        assert!(found <= 25, "{found} of 500: {scatter:?}");
    }
    for deviation in [0.01, 0.03] {
        let equal = |verdict| verdict == ComparisonVerdict::NoDifference;
        let found = count(500, Scatter::Even(deviation), 1.0 + MARGIN, watch, equal);
        println!("at the margin, {deviation}: {found} of 500 taken for equal");
        assert!(found <= 25, "{found} of 500: {deviation}");
    }
}

#[test]
fn looking_after_every_block_with_a_fixed_interval_errs_far_more_often() {
    let found = count(200, Scatter::Even(0.2), 1.0, compare, is_a_difference);
    println!("fixed intervals: {found} of 200 find what is not there");
    assert!(found > 30, "{found} of 200");
}

#[test]
fn a_watched_trial_ends_early_when_the_difference_is_plain() {
    let (verdict, blocks) = stopped(1, Scatter::Even(0.02), 1.3, watch);
    assert_eq!(verdict, ComparisonVerdict::Faster);
    assert!(blocks <= 6, "{blocks} blocks for 30 % over 2 %");
    let found = (0..200)
        .filter(|seed| stopped(*seed, Scatter::Even(0.03), 1.05, watch).0 == ComparisonVerdict::Faster)
        .count();
    println!("5 % over 3 %: {found} of 200 found");
    assert!(found >= 190, "{found} of 200");
    let equal =
        count(200, Scatter::Even(0.02), 1.0, watch, |verdict| verdict == ComparisonVerdict::NoDifference);
    println!("equal arms over 2 %: {equal} of 200 are told so");
    assert!(equal >= 180, "{equal} of 200");
}

#[test]
fn a_block_without_goodput_leaves_a_watched_trial_undecided() {
    let baseline = Samples { arm: "every".into(), values: vec![(1, 100.0), (2, 0.0), (3, 100.0)] };
    let arm = Samples { arm: "dca".into(), values: vec![(1, 130.0), (2, 130.0), (3, 130.0)] };
    let found = watch(&baseline, &[arm], MARGIN);
    assert_eq!(found[0].verdict, ComparisonVerdict::Undecided);
    assert!(found[0].sentence.contains("delivered nothing"), "{}", found[0].sentence);
}
