//! The refusals of a trial, and their messages.

use std::fs::File;
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};

use crate::folder::{Folder, SCENARIO, text};

/// Exit status 2, a sentence, and nothing on standard output.
fn refused(folder: &Folder, words: &[&str], wanted: &[&str]) {
    let done = folder.trial(words);
    let shown = text(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{words:?}: {shown}");
    assert!(done.stdout.is_empty(), "{words:?}");
    for part in wanted {
        assert!(shown.contains(part), "{words:?}: {part} is missing in {shown}");
    }
}

#[test]
fn a_scenario_that_makes_no_sense_is_refused_with_its_line_and_column() {
    let folder = Folder::new("scenarios");
    for (from, to, wanted) in [
        ("title:", "titel:", &["small.yaml:1:1", "did you mean `title`?"][..]),
        ("receiver: delayed", "reciever: delayed", &["small.yaml:8:14", "did you mean `receiver`?"]),
        ("  dca:", "  every:", &["small.yaml:9:3", "`every` is there already", "another name"]),
        ("seeds: 4", "seeds: 0", &["small.yaml:10:42", "seeds: 0 is out of range"]),
        ("to: last", "to: n3", &["small.yaml:5:24", "no node is called `n3`", "n0 to n2"]),
        ("hops: 2", "hops: 20000", &["small.yaml:2:32", "hops: 20000 is out of range"]),
        (
            "topology:",
            "world: moon\ntopology:",
            &["small.yaml:2:8", "`moon` does not fit here", "expected `sim`"],
        ),
        (
            "topology:",
            "routing: { protocol: olsr }\ntopology:",
            &["small.yaml:2:22", "`olsr` does not fit here"],
        ),
        ("seeds: 4", "seeds: 4, margin: 3", &["small.yaml:10:53", "a share from 0% to 100%"]),
        ("  every: {", "  every: { set: { topology.hops: 0 },", &["small.yaml:7:34", "hops: 0"]),
    ] {
        assert!(SCENARIO.contains(from), "{from}");
        folder.write("small.yaml", &SCENARIO.replacen(from, to, 1));
        refused(&folder, &[], wanted);
        assert!(!folder.path("results").exists(), "{to}: nothing is made for what is refused");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let folder = Folder::new("options");
    refused(&folder, &["--seeds", "0"], &["--seeds", "expected a whole number from 1 to 100000"]);
    refused(&folder, &["--seeds", "five"], &["--seeds", "expected a whole number from 1 to 100000"]);
    refused(&folder, &["--jobs", "0"], &["--jobs", "expected a whole number, 1 or more"]);
    for part in ["3/2", "0/2", "2", "a/b"] {
        refused(&folder, &["--shard", part], &["expected a part and their number, such as 2/8"]);
    }
    refused(&folder, &["--world", "sim,sim"], &["--world", "sim stands there twice"]);
    refused(&folder, &["--world", "sim,moon"], &["--world", "expected sim or netns or hwsim or mesh"]);
    refused(&folder, &["--world", "sim,netns", "--shard", "1/2"], &["--shard", "expected one world"]);
    refused(&folder, &["--shard", "1/2", "--set", "run.stop=when-sure"], &["a part does not know"]);
    refused(&folder, &["--set", "topology.hopps=3"], &["--set:1:10", "did you mean `hops`?"]);
    // Names stay whole where the list of them is broken into lines.
    let names = ["did you mean `ofdm-12mbps`?", "ofdm-6mbps,", "ofdm-24mbps,", "and 97 more"];
    refused(&folder, &["--set", "radio.profile=ofdm-13mbps"], &names);
    refused(&folder, &["--set", "topology.hops=none"], &["--set:1:15"]);
}

#[test]
fn an_inventory_belongs_to_a_mesh_and_names_its_nodes() {
    let folder = Folder::new("inventory");
    let inventory = ["--inventory", concat!(env!("CARGO_MANIFEST_DIR"), "/configs/inventory.yaml")];
    refused(&folder, &inventory, &["--inventory", "no other world has hosts"]);
    refused(&folder, &["--world", "mesh", inventory[0], inventory[1]], &["--inventory", "no host n0"]);
    refused(&folder, &["--world", "mesh"], &["--world", "expected --inventory FILE"]);
}

#[test]
fn what_one_world_cannot_play_is_refused_before_another_has_run() {
    let folder = Folder::new("worlds");
    for (worlds, hops, wanted) in [
        ("sim,netns", "topology.hops=200", "201 nodes, expected at most 200"),
        ("sim,hwsim", "topology.hops=64", "65 nodes, expected at most 64"),
        ("netns", "topology.hops=200", "201 nodes, expected at most 200"),
    ] {
        // A way of 200 hops is too long in any world.
        let near = "traffic.0.to=n1";
        refused(&folder, &["--world", worlds, "--set", hops, "--set", near], &["topology", wanted]);
        assert!(!folder.path("results").exists(), "{worlds}: nothing is made for what is refused");
    }
}

#[test]
fn a_time_in_which_no_block_of_live_runs_ends_is_refused() {
    let folder = Folder::new("times");
    for (words, wanted) in [
        (["--world", "netns", "--for", "0s"], "0 s for the world netns, expected 30 s or more"),
        (["--world", "netns", "--for", "29s"], "29 s for the world netns, expected 30 s or more"),
        (["--world", "sim,hwsim,netns", "--for", "50s"], "25 s for the world hwsim, expected 30 s or more"),
    ] {
        refused(&folder, &words, &["--for", wanted]);
        assert!(!folder.path("results").exists(), "{words:?}: nothing is made for what is refused");
    }
}

#[test]
fn a_folder_that_does_not_serve_is_refused_and_left_alone() {
    let folder = Folder::new("folders");
    // A folder with another user's files.
    std::fs::create_dir(folder.path("others")).expect("a folder");
    folder.write("others/thesis.tex", "all of it");
    refused(&folder, &["--out", "others"], &["others: it holds what is no trial's, such as thesis.tex"]);
    assert_eq!(folder.files("others").into_keys().collect::<Vec<_>>(), ["thesis.tex"]);
    // No folder, and none can be made.
    refused(&folder, &["--out", "small.yaml"], &["small.yaml: no trial can be written there"]);
    refused(
        &folder,
        &["--out", "small.yaml/below"],
        &["no trial can be written there", "choose another --out"],
    );
    // A folder in use.
    folder.done(&["--seeds", "1", "--out", "used"]);
    let before = folder.files("used");
    let lock = File::open(folder.path("used/lock")).expect("a lock");
    flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
    refused(&folder, &["--out", "used", "--resume"], &["used: somebody else writes there"]);
    let words = ["run", "small.yaml", "--arm", "every", "--out", "used"];
    let run = folder.hopwise(&words).output().expect("it starts");
    assert_eq!(run.status.code(), Some(2), "{}", text(&run.stdout));
    assert_eq!(folder.files("used"), before, "nothing of the run is there");
    drop(lock);
    // An unfinished trial.
    std::fs::remove_file(folder.path("used/records.jsonl")).expect("it was there");
    refused(&folder, &["--out", "used"], &["has not finished: --resume goes on with it"]);
    // A trial of another program.
    let plan = text(&before["trial.json"]);
    let version = format!("\"version\": \"{}\"", hopwise_lab::VERSION);
    for (from, to, wanted) in [
        (version.as_str(), "\"version\": \"0.0.1\"", "made by hopwise 0.0.1"),
        ("\"scenario\": \"small\"", "\"scenario\": \"large\"", "a trial of `large`, not of `small`"),
        ("\"certificate\": \"", "\"certificate\": \"0", "another certificate"),
        ("{", "", "trial.json is not understood"),
    ] {
        assert!(plan.contains(from), "{from}");
        folder.write("used/trial.json", &plan.replacen(from, to, 1));
        refused(&folder, &["--out", "used", "--resume"], &[wanted, "choose another --out"]);
    }
    folder.write("used/trial.json", &plan);
    folder.done(&["--seeds", "1", "--out", "used", "--resume"]);
    assert!(folder.files("used") == before);
}

/// A disk of its own, where the system allows one. It holds the files of three runs, and two are made at a time: one
/// record at least is whole before the disk is full.
#[test]
fn records_stay_whole_when_the_disk_is_full() {
    let folder = Folder::new("full");
    std::fs::create_dir(folder.path("disk")).expect("a folder");
    let on_disk = |script: &str| {
        let script = format!("mount -t tmpfs -o size=320k tmpfs disk && {script}");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
        command.env("HOPWISE", env!("CARGO_BIN_EXE_hopwise")).current_dir(folder.path(""));
        command.stdin(Stdio::null()).output()
    };
    match on_disk("true") {
        Ok(done) if done.status.success() => {}
        _ => {
            println!(
                "skipped: records_stay_whole_when_the_disk_is_full: no user namespace may mount a tmpfs here"
            );
            return;
        }
    }
    let done = on_disk(
        "\"$HOPWISE\" trial small.yaml --seeds 40 --jobs 2 --out disk/a; status=$?; cat disk/a/runs/*.json; \
         test ! -e disk/a/records.jsonl && ls disk/a/runs && exit $status",
    )
    .expect("the shell runs");
    let shown = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{shown}");
    assert!(shown.contains("No space left on device") && shown.contains("--resume goes on"), "{shown}");
    let kept = text(&done.stdout);
    let records = kept.lines().filter(|line| line.starts_with('{')).count();
    let names = kept.lines().filter(|line| line.ends_with(".json")).count();
    assert!(records > 0 && records == names, "{records} {names}");
    for line in kept.lines().filter(|line| line.starts_with('{')) {
        serde_json::from_str::<serde_json::Value>(line).expect("a whole record");
    }
    assert!(!kept.contains(".part"), "{kept}");
}
