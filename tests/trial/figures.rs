//! Trials that another figure than goodput decides.

use serde_json::Value;

use crate::folder::{Folder, text};

const BY: [&str; 2] = ["--set", "run.figure=[goodput, rtt-p95]"];

#[test]
fn several_figures_decide_and_the_same_runs_can_be_judged_by_another_one() {
    let folder = Folder::new("figures");
    let whole: Value =
        serde_json::from_str(&folder.done(&[&BY[..], &["--json"]].concat())).expect("it is JSON");
    let compared: Vec<_> = whole["comparisons"].as_array().expect("a list").iter().collect();
    let named: Vec<_> = compared.iter().map(|one| (one["arm"].as_str(), one["figure"].as_str())).collect();
    let rtt = Some("rtt_p95_ms");
    assert_eq!(
        named,
        [(Some("delayed"), None), (Some("dca"), None), (Some("delayed"), rtt), (Some("dca"), rtt)]
    );
    for one in &compared {
        let verdicts = match one["figure"].is_string() {
            true => ["better", "worse", "no difference", "undecided"],
            false => ["faster", "slower", "no difference", "undecided"],
        };
        assert!(one["verdict"].as_str().is_some_and(|verdict| verdicts.contains(&verdict)), "{one}");
        assert!(one["p_holm"].as_f64() >= one["p"].as_f64(), "{one}");
    }
    let records = |folder: &Folder| text(&folder.files("results/small")["records.jsonl"]);
    let before = records(&folder);
    let again = folder.trial(&["--set", "run.figure=rtt-median", "--resume"]);
    let (said, printed) = (text(&again.stderr), text(&again.stdout));
    assert!(said.contains("12 of 12 runs are there already"), "{said}");
    assert!(printed.contains("By rtt_median_ms, in ms; less is better:\narm"), "{printed}");
    assert!(!printed.contains("Holm") || printed.contains("2 arms"), "{printed}");
    assert!(records(&folder) == before, "no record depends on the figure");
    let explained =
        folder.hopwise(&["report", "--why", "results/small"]).output().expect("it was built with the tests");
    assert!(text(&explained.stdout).contains("\ngoodput, kbit/s "), "{explained:?}");
    let plan = text(&folder.files("results/small")["trial.json"]);
    assert!(plan.contains("\"rtt_median_ms\""), "{plan}");
}

#[test]
fn a_figure_that_decides_nothing_is_refused_before_the_first_run() {
    let folder = Folder::new("no-figures");
    for (figure, wanted) in [
        ("completion-p95", "no run of `every` has completion_p95_s: no flow has transfers"),
        ("acks_sent", "neither more nor less of `acks_sent` is better"),
        ("goodputs", "no figure is called `goodputs`"),
    ] {
        let refused = folder.trial(&["--set", &format!("run.figure={figure}")]);
        assert_eq!(refused.status.code(), Some(2));
        let said = text(&refused.stderr);
        assert!(said.contains(wanted), "{said}");
        assert!(!folder.path("results").exists(), "{figure}");
    }
}

#[test]
fn a_trial_stops_when_it_is_sure_in_every_figure() {
    let folder = Folder::new("sure-figures");
    let blocks = |figure: &str| {
        let figure = format!("run.figure={figure}");
        let sets = ["run.stop=when-sure", "run.margin=8%", "run.duration=5s", &figure];
        let sets = sets.map(|set| ["--set", set]).concat();
        let out = ["--seeds", "40", "--json", "--out", &figure[11..]];
        folder.done(&[&sets[..], &out].concat());
        text(&folder.files(&figure[11..])["records.jsonl"]).lines().count() / 3
    };
    let (goodput, both) = (blocks("goodput"), blocks("[goodput, timeouts]"));
    assert!(goodput < both, "{goodput} {both}");
    assert_eq!(both, 40, "timeouts are too rare here for any verdict");
}
