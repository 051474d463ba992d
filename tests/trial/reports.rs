//! `hopwise report` and `hopwise report --why` of folders that a trial of this version has not just finished.

use std::process::Output;

use hopwise_lab::VERSION;
use hopwise_lab::seal::seal;

use crate::folder::{Folder, text};

fn hopwise(folder: &Folder, words: &[&str]) -> Output {
    folder.hopwise(words).output().expect("the command was built with the tests")
}

fn refused(folder: &Folder, words: &[&str], wanted: &[&str]) {
    let done = hopwise(folder, words);
    let shown = text(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{words:?}: {shown}");
    for part in wanted {
        assert!(shown.contains(part), "{words:?}: {part} is missing in {shown}");
    }
}

/// Rewrites every file of a trial as another version would have written it.
fn as_of_another_version(folder: &Folder, out: &str) {
    for (name, bytes) in folder.files(out) {
        let text = text(&bytes).replace(VERSION, "0.0.1+old");
        let text = match name.rsplit_once('.') {
            Some((_, "jsonl")) => text.lines().map(|line| resealed(line) + "\n").collect(),
            Some((_, "json")) => resealed(&text),
            _ => continue,
        };
        std::fs::write(folder.path(out).join(&name), text).expect("a file");
    }
}

/// Replaces the checksum with the present text's, if it has one.
pub(crate) fn resealed(text: &str) -> String {
    let Some((before, _)) = text.rsplit_once("\"sum\"") else { return text.to_owned() };
    seal(&format!("{}}}", before.trim_end().trim_end_matches(',')))
}

#[test]
fn what_another_version_made_is_told_with_a_word_and_never_mixed() {
    let folder = Folder::new("versions");
    for part in ["1", "2"] {
        folder.done(&["--shard", &format!("{part}/2"), "--seeds", "2", "--out", part]);
    }
    as_of_another_version(&folder, "1");
    for words in [&["report", "1"][..], &["report", "--why", "1"]] {
        let done = hopwise(&folder, words);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{words:?}: {said}");
        assert!(said.contains("the runs were made by hopwise 0.0.1+old") && said.contains(VERSION), "{said}");
        assert!(!text(&done.stdout).is_empty());
    }
    let page = text(&folder.files("1")["report.html"]);
    // A commit stands behind each version, where the build knows one.
    let both = ["<dd>hopwise 0.0.1+old", &format!(", drawn by {VERSION}")].map(|part| page.contains(part));
    assert_eq!(both, [true; 2], "the page says it as well");
    let quiet = hopwise(&folder, &["report", "2"]);
    assert!(quiet.stderr.is_empty() && !text(&folder.files("2")["report.html"]).contains("drawn by"));
    refused(
        &folder,
        &["report", "2", "1"],
        &["1: is not of the trial in 2: version is 0.0.1+old here and", VERSION],
    );
    // One folder with runs of both, as a user may put them together by hand.
    let both = [&folder.files("1")["records.jsonl"][..], &folder.files("2")["records.jsonl"]].concat();
    folder.write("1/records.jsonl", &text(&both));
    refused(&folder, &["report", "1"], &["runs of two versions are not mixed", "0.0.1+old", VERSION]);
    // Text that it does not understand may be valid for another version.
    let plan = text(&folder.files("1")["trial.json"]);
    folder.write("1/trial.json", &plan.replace("\"margin\"", "\"marge\""));
    refused(&folder, &["report", "1"], &["hopwise 0.0.1+old wrote this", "missing field `margin`"]);
}

#[test]
fn parts_with_other_settings_are_no_parts_of_one_trial() {
    let folder = Folder::new("parts");
    for (part, duration) in [("1", "run.duration=10s"), ("2", "run.duration=12s")] {
        let shard = format!("{part}/2");
        folder.done(&["--shard", &shard, "--seeds", "2", "--set", duration, "--out", part]);
    }
    refused(&folder, &["report", "1", "2"], &["other settings", "run.duration is 12s here and 10s there"]);
}

#[test]
fn a_trial_that_has_not_finished_is_told_as_far_as_it_came() {
    let folder = Folder::new("unfinished");
    folder.done(&["--seeds", "2", "--out", "cut"]);
    std::fs::remove_file(folder.path("cut/records.jsonl")).expect("it was there");
    let runs: Vec<String> =
        folder.files("cut").into_keys().filter(|name| name.starts_with("runs/")).collect();
    std::fs::remove_file(folder.path("cut").join(&runs[0])).expect("a run");
    folder.write("cut/runs/0.json.part", "half");
    let done = hopwise(&folder, &["report", "cut"]);
    let (printed, said) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("cut: the trial has not finished") && said.contains("--resume"), "{said}");
    assert!(printed.contains("5 of 6 runs are there"), "{printed}");
    assert!(text(&folder.files("cut")["report.html"]).contains("<dd>5 of 6</dd>"));
    for run in &runs[1..] {
        std::fs::remove_file(folder.path("cut").join(run)).expect("a run");
    }
    refused(&folder, &["report", "cut"], &["none of its runs has", "--resume"]);
    refused(&folder, &["report", "--why", "nowhere"], &["expected a folder that hopwise trial has written"]);
    let run = hopwise(&folder, &["run", "small.yaml", "--arm", "dca", "--out", "single"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    refused(
        &folder,
        &["report", "single"],
        &["it holds what hopwise run has written; expected a folder that"],
    );
}

#[test]
fn a_single_run_says_with_which_settings_and_where_it_was_made() {
    let folder = Folder::new("settings");
    let sets = ["--set", "topology.hops=3", "--set", "run.duration=5s"];
    let done =
        hopwise(&folder, &[&["run", "small.yaml", "--arm", "dca", "--out", "single"], &sets[..]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let read = |name: &str| -> serde_json::Value {
        let bytes = std::fs::read(folder.path("single").join(name)).expect("a file");
        serde_json::from_slice(&bytes).expect("it is JSON")
    };
    let settings = read("settings.json");
    assert_eq!(settings["hopwise"]["version"], VERSION);
    assert_eq!((&settings["topology"]["hops"], &settings["run"]["duration"]), (&3.into(), &"5s".into()));
    assert_eq!(settings["arm"]["receiver"], "dca");
    assert!(read("cost.json")["host"].is_string() && read("run.json").get("host").is_none());
}

#[test]
fn going_on_with_other_settings_is_refused_before_anything_is_written_over() {
    let folder = Folder::new("resumed");
    folder.done(&["--seeds", "2", "--out", "here"]);
    let before = folder.files("here");
    let goes_on = |more: &[&str], wanted: &[&str]| {
        let done = folder.trial(&[&["--seeds", "2", "--out", "here", "--resume"], more].concat());
        let shown = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{more:?}: {shown}");
        for part in wanted {
            assert!(shown.contains(part), "{more:?}: {part} is missing in {shown}");
        }
        assert!(folder.files("here") == before, "{more:?}");
    };
    goes_on(
        &["--set", "run.duration=12s"],
        &["run.duration is 12s here and 10s there", "choose another --out"],
    );
    goes_on(&["--set", "arms.dca.receiver=delayed"], &["its runs of `dca` have other settings"]);
    goes_on(&["--set", "matrix={ topology.hops: [2, 3] }"], &["it holds runs without a matrix"]);
    goes_on(
        &["--set", "arms={ every: { receiver: immediate, sender: [newreno] } }"],
        &["the arm `d", "has not"],
    );
    // Fewer seeds make no other trial.
    folder.done(&["--seeds", "1", "--out", "here", "--resume"]);
}
