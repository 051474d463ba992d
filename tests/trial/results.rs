//! The output and files of a trial, which do not depend on the steps of its making.

use std::io::{BufRead, BufReader, Read};
use std::process::Command;

use serde_json::Value;

use crate::folder::{Folder, text};

#[test]
fn json_has_its_fixed_shape() {
    let folder = Folder::new("json");
    let printed = folder.done(&["--json"]);
    assert_eq!(printed.lines().count(), 1);
    let whole: Value = serde_json::from_str(&printed).expect("it is JSON");
    assert_eq!(whole["scenario"], "small");
    for arm in ["every", "delayed", "dca"] {
        for figure in ["goodput_kbps", "acks_sent", "timeouts", "airtime_s", "collisions"] {
            let figure = &whole["arms"][arm][figure];
            assert!(figure["mean"].is_f64() && figure["n"] == 4, "{arm}: {figure}");
            assert!(figure["ci95"].as_array().is_some_and(|ends| ends.len() == 2), "{arm}: {figure}");
        }
    }
    let compared = whole["comparisons"].as_array().expect("a list");
    let arms: Vec<_> = compared.iter().map(|one| one["arm"].as_str().expect("a name")).collect();
    assert_eq!(arms, ["delayed", "dca"]);
    for one in compared {
        assert!(one["against"] == "every" && one["ratio"].is_f64() && one["ci95"][1].is_f64(), "{one}");
        let verdicts = ["faster", "slower", "no difference", "undecided"];
        assert!(one["verdict"].as_str().is_some_and(|verdict| verdicts.contains(&verdict)), "{one}");
    }
    let kept = text(&folder.files("results/small")["summary.json"]);
    assert_eq!(kept, printed);
}

#[test]
fn points_of_a_matrix_have_their_own_arms_and_comparisons() {
    let folder = Folder::new("matrix");
    let matrix = "matrix={ topology.hops: [1, 2, 3] }";
    let whole = folder.done(&["--json", "--seeds", "2", "--set", matrix]);
    let whole: Value = serde_json::from_str(&whole).expect("it is JSON");
    let points = whole["points"].as_array().expect("a list");
    assert_eq!(points.len(), 3);
    let kbps = |point: &Value| point["arms"]["every"]["goodput_kbps"]["mean"].as_f64().expect("a number");
    assert!(kbps(&points[0]) > kbps(&points[1]) && kbps(&points[1]) > kbps(&points[2]));
    assert_eq!(points[2]["point"]["topology.hops"], 3);
    assert_eq!(points[2]["comparisons"].as_array().map(Vec::len), Some(2));
    let table = text(&folder.files("results/small")["records.csv"]);
    assert!(table.starts_with("id,scenario,topology.hops,arm,seed,block,counted_s,goodput_kbps,"), "{table}");
    assert_eq!(table.lines().count(), 1 + 3 * 3 * 2);
}

#[test]
fn people_read_the_answer_a_table_and_where_the_rest_is() {
    let folder = Folder::new("table");
    let printed = folder.done(&["--out", "here"]);
    for part in [
        "small: A small trial",
        "verdict",
        "(baseline)",
        " carries most: ",
        " kbit/s, ",
        "here/report.html shows it all",
    ] {
        assert!(printed.contains(part), "{part} is missing in {printed}");
    }
}

#[test]
fn a_check_fails_where_an_arm_is_surely_worse_alone() {
    let folder = Folder::new("check");
    let checked = |change: &str| {
        let arm = "receiver: delayed, sender: [newreno]";
        let arms = format!("arms={{ usual: {{ {arm} }}, new: {{ {arm}, set: {{ {change} }} }} }}");
        folder.command(&["--check", "--seeds", "6", "--set", &arms]).output().expect("it starts")
    };
    assert_eq!(checked("radio.queue_packets: 50").status.code(), Some(0));
    let worse = checked("channel.loss: 30%");
    assert_eq!(worse.status.code(), Some(1));
    let said = String::from_utf8_lossy(&worse.stderr).into_owned();
    assert!(said.contains("check the arms: new"), "{said}");
    let several = folder.command(&["--check", "--world", "sim,netns"]).output().expect("it starts");
    assert_eq!(several.status.code(), Some(2));
}

#[test]
fn the_recipe_advise_says_over_a_scenario_what_to_deploy() {
    let folder = Folder::new("advise");
    let words = ["--recipe", "advise", "--seeds", "2", "--set", "run.duration=6s"];
    let printed = folder.done(&words);
    assert!(printed.starts_with("small-advise: A small trial"), "{printed}");
    let whole: Value = serde_json::from_str(&folder.done(&[&words[..], &["--json", "--resume"]].concat()))
        .expect("it is JSON");
    let advice = whole["advice"].as_str().expect("a sentence");
    let begins = ["Leave Linux's TCP as it is. It carries ", "Keep Linux's TCP, ", "Put the receiver "];
    let begin = begins.iter().find(|begin| advice.starts_with(**begin)).expect(advice);
    assert!(printed.contains(advice), "{printed}");
    let report = text(&folder.files("results/small-advise")["report.html"]);
    let begin = begin.split('\'').next().expect("the words before an apostrophe");
    assert!(report.contains(&format!("<p class=\"answer\">{begin}")), "{report}");
    assert!(
        folder.done(&["--seeds", "1", "--json"]).contains("\"every\""),
        "the file's own trial is another"
    );
}

fn kill_after_a_run(mut command: Command) {
    let mut child = command.spawn().expect("it begins");
    // It reports when the first run is there.
    let mut line = String::new();
    let mut told = BufReader::new(child.stderr.take().expect("a pipe"));
    told.read_line(&mut line).expect("a line");
    assert!(line.contains("1 of 18 runs"), "{line}");
    child.kill().expect("SIGKILL");
    child.wait().expect("it ends");
}

#[test]
fn killed_at_any_moment_it_goes_on_to_the_same_files() {
    let folder = Folder::new("killed");
    let longer = ["--set", "run.duration=100s", "--seeds", "6"];
    folder.done(&[&longer[..], &["--out", "whole"]].concat());
    // If this test is held up, the trial may have finished before the signal comes.
    let is_cut = (0..10).any(|_| {
        let _ = std::fs::remove_dir_all(folder.path("cut"));
        kill_after_a_run(folder.command(&[&longer[..], &["--out", "cut", "--jobs", "1"]].concat()));
        let cut = folder.files("cut");
        let runs = cut.keys().filter(|name| name.starts_with("runs/") && name.ends_with(".json")).count();
        (1..18).contains(&runs) && !cut.contains_key("records.jsonl")
    });
    assert!(is_cut, "{:?}", folder.files("cut").keys());
    let cut = folder.files("cut");
    // Half a file, as a dying disk may leave one, is no record. A file that was being written is none either.
    let (name, record) = cut.iter().find(|(name, _)| name.starts_with("runs/")).expect("a run");
    std::fs::write(folder.path("cut").join(name), &record[..record.len() / 2]).expect("a file");
    std::fs::write(folder.path("cut/runs/0.json.part"), "half").expect("a file");

    let printed = folder.done(&[&longer[..], &["--out", "cut", "--resume", "--json"]].concat());
    let (whole, cut) = (folder.files("whole"), folder.files("cut"));
    assert_eq!(whole.keys().collect::<Vec<_>>(), cut.keys().collect::<Vec<_>>());
    for (name, bytes) in &whole {
        assert!(*bytes == cut[name], "{name} differs");
    }
    assert_eq!(printed.as_bytes(), whole["summary.json"]);
}

#[test]
fn a_trial_that_is_interrupted_says_how_it_goes_on() {
    let folder = Folder::new("stopped");
    let longer = ["--set", "run.duration=100s", "--seeds", "40", "--jobs", "1", "--out", "cut"];
    let mut child = folder.command(&longer).spawn().expect("it begins");
    let mut told = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    told.read_line(&mut said).expect("the first run is there");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is ours");
    let status = child.wait().expect("it ends");
    told.read_to_string(&mut said).expect("its last words");
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("hopwise: stopped after ") && said.contains(" of 120 runs"), "{said}");
    assert!(said.ends_with("the same command with --resume goes on\n"), "{said}");
}

#[test]
fn the_number_of_jobs_changes_nothing_and_captures_stand_beside() {
    let folder = Folder::new("jobs");
    folder.done(&["--jobs", "1", "--out", "one"]);
    folder.done(&["--jobs", "3", "--out", "three", "--capture"]);
    let (one, mut three) = (folder.files("one"), folder.files("three"));
    let (ends, radios): (Vec<&String>, Vec<&String>) = three
        .keys()
        .filter(|name| name.starts_with("captures/") && name.ends_with(".pcapng"))
        .partition(|name| name.contains("/ends/"));
    assert_eq!(
        (radios.len(), ends.len()),
        (3 * 4 * 3, 3 * 4 * 2),
        "one for each run and node, and for each end"
    );
    three.retain(|name, _| !name.starts_with("captures/"));
    let report = text(&three["report.html"]);
    three.retain(|name, _| name != "report.html");
    let mut one = one;
    let without = text(&one.remove("report.html").expect("a report"));
    assert!(one == three);
    assert!(!without.contains("class=\"sequence\""));
    // Another command draws an equal figure, and nothing where the captures are gone.
    let again = |name: &str| {
        let (from, out) = (folder.path("three"), folder.path(name));
        let words = ["report", &from.to_string_lossy(), "--out", &out.to_string_lossy()].map(str::to_owned);
        let done = folder.hopwise(&words.each_ref().map(String::as_str)).output().expect("it was built");
        assert!(done.status.success(), "{}", text(&done.stderr));
        std::fs::read_to_string(out).expect("a report")
    };
    assert!(again("again.html") == report);
    std::fs::remove_dir_all(folder.path("three/captures")).expect("it is there");
    assert!(again("bare.html") == without);
    let records = text(&one["records.jsonl"]);
    let arms: Vec<_> = records
        .lines()
        .take(4)
        .map(|line| {
            let record: Value = serde_json::from_str(line).expect("a record");
            (record["block"].as_u64(), record["arm"].as_str().map(str::to_owned))
        })
        .collect();
    let named = |block, arm: &str| (Some(block), Some(arm.to_owned()));
    assert_eq!(arms, [named(1, "every"), named(1, "delayed"), named(1, "dca"), named(2, "every")]);
    tells_day_and_machine_apart(&folder.path("one"), &records);
}

/// The costs have them for each of the twelve runs, and the records never.
fn tells_day_and_machine_apart(folder: &std::path::Path, records: &str) {
    let costs = std::fs::read_to_string(folder.join("costs.jsonl")).expect("costs");
    for key in ["\"host\"", "\"day\"", "\"machine\""] {
        assert_eq!((costs.matches(key).count(), records.matches(key).count()), (12, 0), "{key}");
    }
}

#[test]
fn parts_of_a_trial_make_up_the_whole() {
    let folder = Folder::new("shards");
    let matrix = ["--set", "matrix={ topology.hops: [1, 2] }"];
    folder.done(&[&matrix[..], &["--out", "whole"]].concat());
    let mut lines = Vec::new();
    for part in ["1", "2", "3"] {
        folder.done(&[&matrix[..], &["--shard", &format!("{part}/3"), "--out", part]].concat());
        lines.extend(text(&folder.files(part)["records.jsonl"]).lines().map(str::to_owned));
    }
    lines.sort();
    let mut whole: Vec<String> =
        text(&folder.files("whole")["records.jsonl"]).lines().map(str::to_owned).collect();
    whole.sort();
    assert!(whole == lines);
    // `hopwise report` of the parts is the report of the whole.
    let reported = Command::new(env!("CARGO_BIN_EXE_hopwise"))
        .args(["report", "1", "2", "3", "--out", "joined.html"])
        .current_dir(folder.path(""))
        .output()
        .expect("the command was built with the tests");
    assert_eq!(reported.status.code(), Some(0), "{}", text(&reported.stderr));
    let joined = std::fs::read(folder.path("joined.html")).expect("a report");
    assert!(joined == folder.files("whole")["report.html"]);
    // Runs are named by their determinants: the runs of all parts in one folder are the whole trial.
    std::fs::create_dir_all(folder.path("joined")).expect("a folder");
    let plan = std::fs::read(folder.path("whole/trial.json")).expect("a plan");
    std::fs::write(folder.path("joined/trial.json"), plan).expect("a file");
    for part in ["1", "2", "3"] {
        for kind in ["runs", "series", "costs"] {
            std::fs::create_dir_all(folder.path("joined").join(kind)).expect("a folder");
            for entry in std::fs::read_dir(folder.path(part).join(kind)).expect("a folder") {
                let entry = entry.expect("an entry");
                std::fs::copy(entry.path(), folder.path("joined").join(kind).join(entry.file_name()))
                    .expect("a copy");
            }
        }
    }
    let joined = folder.trial(&[&matrix[..], &["--out", "joined", "--resume"]].concat());
    assert!(text(&joined.stderr).contains("24 of 24 runs are there already"), "{}", text(&joined.stderr));
    assert!(folder.files("joined") == folder.files("whole"));
}

#[test]
fn a_trial_that_may_stop_early_does_so_and_comes_to_the_same_end_again() {
    let folder = Folder::new("sure");
    // An ACK for every second segment changes little here; with a margin of 3 % the verdict needs more blocks.
    let sure = ["run.stop=when-sure", "run.margin=8%", "run.duration=5s"].map(|set| ["--set", set]).concat();
    let sure = [&sure[..], &["--seeds", "40"]].concat();
    let printed = folder.done(&[&sure[..], &["--out", "one", "--jobs", "1"]].concat());
    assert!(printed.contains("sure after ") && printed.contains(" of 40 seeds"), "{printed}");
    folder.done(&[&sure[..], &["--out", "two", "--jobs", "3"]].concat());
    let (one, two) = (folder.files("one"), folder.files("two"));
    for name in ["records.jsonl", "records.csv", "summary.json"] {
        assert!(one[name] == two[name], "{name} differs");
    }
}

#[test]
fn a_trial_out_of_time_ends_with_a_whole_block_and_goes_on_later() {
    let folder = Folder::new("time");
    let short =
        ["--set", "run.duration=1s", "--set", "run.warmup=0s", "--seeds", "6", "--jobs", "1", "--out", "one"];
    let printed = folder.done(&[&short[..], &["--for", "1us"]].concat());
    assert!(printed.contains("out of time after 1 of 6 seeds"), "{printed}");
    let arms = 3;
    assert_eq!(text(&folder.files("one")["records.jsonl"]).lines().count(), arms);
    let printed = folder.done(&[&short[..], &["--resume"]].concat());
    assert!(!printed.contains(" of 6 seeds"), "{printed}");
    assert_eq!(text(&folder.files("one")["records.jsonl"]).lines().count(), 6 * arms);
}

#[test]
fn what_is_there_already_gives_way_or_is_gone_on_with() {
    let folder = Folder::new("again");
    folder.done(&["--seeds", "2"]);
    let before = folder.files("results/small");
    let again = folder.trial(&["--seeds", "2"]);
    assert!(text(&again.stderr).contains("is in results/small.1 now"), "{}", text(&again.stderr));
    assert!(folder.files("results/small.1") == before && folder.files("results/small") == before);
    // More seeds are more runs of the trial.
    let more = folder.trial(&["--seeds", "3", "--resume"]);
    assert!(text(&more.stderr).contains("6 of 9 runs are there already"), "{}", text(&more.stderr));
    let now = folder.files("results/small");
    assert!(before.iter().filter(|(name, _)| name.starts_with("runs/")).all(|(name, run)| now[name] == *run));
}

#[test]
fn a_run_has_a_folder_of_its_own_and_never_takes_another_ones_place() {
    let folder = Folder::new("own");
    let run = |arm: &str, words: &[&str]| {
        let done = folder.hopwise(&[&["run", "small.yaml", "--arm", arm], words].concat()).output();
        let done = done.expect("it was built with the tests");
        (done.status.code(), text(&done.stderr))
    };
    folder.done(&["--seeds", "1"]);
    let trial = folder.files("results/small");
    assert_eq!(run("every", &[]).0, Some(0));
    assert_eq!(run("every", &["--seed", "2"]).0, Some(0));
    assert!(folder.files("results/small") == trial, "the trial is left alone");
    let first = folder.files("results/small-every-1");
    assert!(first["run.json"] != folder.files("results/small-every-2")["run.json"]);
    // A name is used again: the older run stays under another name.
    let (code, said) = run("every", &["--set", "topology.hops=3"]);
    assert_eq!(code, Some(0), "{said}");
    let moved = "the run that was in results/small-every-1 is in results/small-every-1.1 now";
    assert!(said.contains(moved), "{said}");
    assert!(
        folder.files("results/small-every-1.1") == first && folder.files("results/small-every-1") != first
    );
    // A run in a trial's folder, and a trial in a run's.
    let (code, said) = run("every", &["--out", "results/small"]);
    assert!(code == Some(2) && said.contains("it holds a trial") && said.contains("another --out"), "{said}");
    assert!(folder.files("results/small") == trial);
    let refused = folder.trial(&["--out", "results/small-every-1"]);
    assert!(text(&refused.stderr).contains("it holds a single run: choose another --out"));
}

/// `scripts/slurm-trial` with the variables that a task of a job array has.
#[test]
fn tasks_of_a_job_array_run_the_parts_of_a_trial() {
    let folder = Folder::new("slurm");
    folder.done(&["--out", "whole"]);
    let task = |variables: &[(&str, &str)]| {
        let mut command = Command::new("scripts/slurm-trial");
        command.arg(folder.path("small.yaml")).env("HOPWISE", env!("CARGO_BIN_EXE_hopwise"));
        command.env("HOPWISE_PARTS", folder.path("parts")).envs(variables.iter().copied());
        command.output().expect("the script runs")
    };
    let mut lines = Vec::new();
    // --array=10-14:2
    for (nth, id) in ["10", "12", "14"].into_iter().enumerate() {
        let of_array =
            [("SLURM_ARRAY_TASK_COUNT", "3"), ("SLURM_ARRAY_TASK_MIN", "10"), ("SLURM_ARRAY_TASK_STEP", "2")];
        let mut variables = of_array.to_vec();
        variables.extend([("SLURM_ARRAY_TASK_ID", id), ("SLURM_CPUS_PER_TASK", "2")]);
        // A task may be queued again.
        for _ in 0..2 {
            let done = task(&variables);
            assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        }
        lines.extend(
            text(&folder.files(&format!("parts/{}", nth + 1))["records.jsonl"]).lines().map(str::to_owned),
        );
    }
    lines.sort();
    let mut whole: Vec<String> =
        text(&folder.files("whole")["records.jsonl"]).lines().map(str::to_owned).collect();
    whole.sort();
    assert!(whole == lines);
    let alone = task(&[]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("no task of a job array"), "{}", text(&alone.stderr));
}
