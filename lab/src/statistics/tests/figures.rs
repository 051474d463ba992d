//! Figures other than goodput, alone and several at once.

use super::super::{
    Better, Comparison, ComparisonVerdict, Figure, GOODPUT, MARGIN, Question, Samples, compare, compare_all,
    watch_all,
};
use super::draw::{Draws, Scatter};
use super::samples;

const DONE: Figure = Figure { name: "completion_p95_s", unit: "s", better: Better::Less };
const JAIN: Figure = Figure { name: "jain", unit: "", better: Better::More };
const BEFORE: [f64; 5] = [2.0, 2.1, 1.9, 2.05, 1.95];

fn by(figure: Figure, baseline: &[f64], arm: &[f64]) -> Comparison {
    let (baseline, others) = (samples("every", baseline), [samples("train", arm)]);
    compare_all(&[Question { figure, baseline: &baseline, others: &others }], MARGIN).remove(0)
}

#[test]
fn less_is_better_where_the_figure_says_so_and_means_stand_in_its_unit() {
    let shorter = by(DONE, &BEFORE, &BEFORE.map(|time| 0.62 * time));
    assert_eq!(
        (shorter.verdict, shorter.figure.as_deref()),
        (ComparisonVerdict::Better, Some("completion_p95_s"))
    );
    assert_eq!(
        shorter.sentence,
        "train is better than every in completion_p95_s: 38 % less, 1.240 s instead of 2.000 s in the mean (95 % \
         interval −38.0 % to −38.0 %, 5 blocks, p < 0.001)."
    );
    let longer = by(DONE, &BEFORE, &BEFORE.map(|time| 2.5 * time));
    assert_eq!(longer.verdict, ComparisonVerdict::Worse);
    assert!(
        longer
            .sentence
            .starts_with("train is worse than every in completion_p95_s: 2.50 times as much, 5.000 s"),
        "{}",
        longer.sentence
    );
    let fairer = by(JAIN, &[0.8, 0.81, 0.79], &[0.96, 0.972, 0.948]);
    assert_eq!(fairer.verdict, ComparisonVerdict::Better);
    assert!(fairer.sentence.contains("20 % more, 0.960 instead of 0.800 in the mean"), "{}", fairer.sentence);
    let same = by(DONE, &BEFORE, &BEFORE.map(|time| 1.01 * time));
    assert_eq!(same.verdict, ComparisonVerdict::NoDifference);
    assert!(
        same.sentence
            .starts_with("train and every do not differ by more than 3 % in completion_p95_s: +1.0 %")
    );
    let unsure = by(DONE, &BEFORE, &[1.0, 3.0, 2.0, 1.5, 2.5]);
    assert_eq!(unsure.verdict, ComparisonVerdict::Undecided);
    assert!(
        unsure
            .sentence
            .starts_with("5 blocks do not tell whether train differs from every in completion_p95_s"),
        "{}",
        unsure.sentence
    );
}

#[test]
fn goodput_has_its_own_words_and_no_name_in_json() {
    let slower =
        compare(&samples("every", &BEFORE), &[samples("train", &BEFORE.map(|v| 0.5 * v))], MARGIN).remove(0);
    assert_eq!((slower.verdict, &slower.figure), (ComparisonVerdict::Slower, &None));
    assert!(!serde_json::to_string(&slower).expect("a text").contains("figure"));
    assert!(slower.is_of(&GOODPUT) && !slower.is_of(&DONE));
    let json = serde_json::to_value(by(DONE, &BEFORE, &BEFORE.map(|v| 0.5 * v))).expect("a value");
    assert_eq!((&json["figure"], &json["verdict"]), (&"completion_p95_s".into(), &"better".into()));
}

#[test]
fn a_figure_that_runs_lack_or_that_is_zero_stays_undecided_with_the_reason() {
    let lacking = by(DONE, &[], &[1.0, 2.0]);
    assert_eq!(lacking.verdict, ComparisonVerdict::Undecided);
    assert_eq!(lacking.sentence, "No block has completion_p95_s of both train and every.");
    let timeouts = Figure { name: "timeouts", unit: "", better: Better::Less };
    let neither = by(timeouts, &[0.0; 4], &[0.0; 4]);
    assert_eq!(neither.verdict, ComparisonVerdict::Undecided);
    assert_eq!(neither.sentence, "timeouts of train and every is 0 in all of 4 blocks.");
    let worse = by(timeouts, &[0.0; 5], &[10.0, 9.0, 11.0, 9.5, 10.5]);
    assert_eq!(worse.verdict, ComparisonVerdict::Worse, "the baseline had none");
    assert_eq!(
        worse.sentence,
        "train is worse than every in timeouts, which is 0 for every in all of 5 blocks."
    );
    let none = by(timeouts, &[10.0, 9.0, 11.0, 9.5, 10.5], &[0.0; 5]);
    assert_eq!(none.verdict, ComparisonVerdict::Better);
    assert!(none.sentence.contains("100 % less, 0.000 instead of 10.00"), "{}", none.sentence);
    let (baseline, others) = (samples("every", &[3.0, 0.0, 2.0]), [samples("train", &[1.0, 1.0, 1.0])]);
    let question = Question { figure: timeouts, baseline: &baseline, others: &others };
    let watched = watch_all(&[question], MARGIN).remove(0);
    assert_eq!(watched.verdict, ComparisonVerdict::Undecided);
    assert!(
        watched.sentence.starts_with("In some block timeouts of train or every is 0"),
        "{}",
        watched.sentence
    );
}

/// p just below 5 %: alone it is sure, with a second figure it is not.
#[test]
fn figures_are_corrected_for_one_another_as_arms_are() {
    let (baseline, arm) =
        (samples("every", &[100.0, 103.0, 98.0, 101.0]), [samples("dca", &[104.0, 105.5, 106.0, 104.5])]);
    let question = |figure| Question { figure, baseline: &baseline, others: &arm };
    let alone = compare_all(&[question(DONE)], 0.001).remove(0);
    assert_eq!(alone.verdict, ComparisonVerdict::Worse, "{alone:?}");
    let both = compare_all(&[question(GOODPUT), question(DONE)], 0.001);
    assert_eq!(both.len(), 2);
    for found in &both {
        assert_eq!((found.p, found.verdict), (alone.p, ComparisonVerdict::Undecided), "{found:?}");
        assert!(found.sentence.contains("after correcting for 2 comparisons"), "{}", found.sentence);
    }
}

#[test]
fn of_1000_trials_of_equal_arms_in_three_figures_at_most_64_have_a_false_verdict() {
    let is_false = |found: &Comparison| {
        !matches!(found.verdict, ComparisonVerdict::NoDifference | ComparisonVerdict::Undecided)
    };
    let trial = |seed: u64| {
        let mut draws = Draws::new(seed);
        let mut drawn = |arm: &str| -> Samples {
            let values = (1..=10).map(|block| (block, draws.goodput(Scatter::Even(0.15)))).collect();
            Samples { arm: arm.to_owned(), values }
        };
        let by_figure: Vec<Vec<Samples>> = (0..3).map(|_| ["a", "b", "c"].map(&mut drawn).to_vec()).collect();
        compare_all(&super::super::questions(&[GOODPUT, DONE, JAIN], &by_figure), MARGIN)
    };
    let found = (0..1_000).filter(|seed| trial(*seed).iter().any(is_false)).count();
    println!("3 figures, 2 arms: {found} of 1000");
    assert!(found <= 64, "{found} false verdicts");
}
