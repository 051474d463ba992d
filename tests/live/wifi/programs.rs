//! Programs of users on bare radios: the examples, each by the command at its head.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::hwsim::{Folder, LIMIT, can_run, said};

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");

/// The words of the command in a script's comments, which begins with `#   hopwise`.
fn command_of(script: &str) -> Vec<String> {
    let comments = script.lines().map_while(|line| line.strip_prefix("# "));
    let lines: Vec<_> = comments.skip_while(|line| !line.trim_start().starts_with("hopwise ")).collect();
    let shell = format!("printf '%s\\n' {}", lines.join("\n").replace("\\\n", " "));
    let words = Command::new("sh").args(["-c", &shell]).output().expect("sh runs");
    String::from_utf8(words.stdout).expect("text").lines().skip(1).map(str::to_owned).collect()
}

/// Runs an example with a change to its words, and returns its standard output.
fn played(script: &str, folder: &Folder, change: impl FnOnce(&mut Vec<String>)) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("examples/wifi").join(script)).expect("an example");
    let mut words = command_of(&text);
    change(&mut words);
    let out = folder.path("out").to_string_lossy().into_owned();
    words.splice(2..2, ["--limit", LIMIT, "--out", &out].map(str::to_owned));
    let mut command = Command::new(HOPWISE);
    let done = command.current_dir(root).args(words).env("TMPDIR", folder.path("tmp")).output();
    let done = done.expect("it starts");
    assert!(done.status.success(), "{script}: {}", said(&done));
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn every_example_runs_by_the_command_at_its_head() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("programs");
    for (script, more, ends) in [
        ("wpa2.sh", None, " 0% packet loss"),
        ("wpa2.sh", Some("sae"), " 0% packet loss"),
        ("mesh.sh", None, " 0% packet loss"),
        ("babel.sh", None, " 0% packet loss"),
        ("roam.sh", None, "ok: with keys"),
    ] {
        let printed = played(script, &folder, |words| words.extend(more.map(str::to_owned)));
        assert!(printed.contains(ends), "{script} {more:?}: {printed}");
    }
}

/// The receiver's share of lost datagrams is the last word in brackets of iperf3's line.
fn lost_percent(printed: &str) -> f64 {
    let of_line = |line: &str| line.split(['(', '%']).nth(1)?.parse::<f64>().ok();
    printed.lines().filter(|line| line.contains("receiver")).filter_map(of_line).fold(0.0, f64::max)
}

#[test]
fn clients_that_do_not_hear_each_other_lose_packets_and_rts_mends_it() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("hidden");
    let without = lost_percent(&played("hidden.sh", &folder, |_| ()));
    let with = lost_percent(&played("hidden.sh", &folder, |words| {
        let rts = words.iter_mut().find(|word| *word == "radio.rts_threshold=off").expect("it is off");
        "radio.rts_threshold=0".clone_into(rts);
    }));
    println!("without RTS {without} % are lost, with RTS {with} %");
    assert!(without > 10.0 && with < 2.0, "{without} {with}");
}
