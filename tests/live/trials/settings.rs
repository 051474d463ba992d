//! Settings of hosts that arms change: what the record tells, what a driver ignores, and what kills leave.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Scenario, children, lives};
use crate::world::{until, within_patience};

/// The kernel's TCP over a node that forwards, with and without settings.
fn text(settings: &str) -> String {
    format!(
        "topology: {{ kind: chain, hops: 2 }}\n\
         radio: {{ profile: dsss-11mbps }}\n\
         traffic: [{{ from: first, to: last, kind: bulk }}]\n\
         arms:\n\
         \x20 as-it-is: {{ receiver: kernel, sender: kernel:reno }}\n\
         \x20 changed: {{ receiver: kernel, sender: kernel:reno, host: {{ {settings} }} }}\n\
         run: {{ duration: 2s, warmup: 500ms, seeds: 1 }}\n"
    )
}

const SWITCH: &str = "net.ipv4.tcp_slow_start_after_idle";

#[test]
fn a_run_has_the_settings_of_its_arm_at_every_node_and_its_record_tells_them() {
    needs![];
    let mark = std::env::temp_dir().join(format!("hopwise-settings-{}", std::process::id()));
    let shown = mark.display();
    let settings = format!(
        "gro: false, txqueuelen: 9, sysctl: {{ {SWITCH}: 0 }}, settle: 100ms, before: {{ n1: 'touch {shown}' }}, \
         after: {{ n1: 'rm {shown}; touch {shown}.after' }}"
    );
    let scenario = Scenario::new("settings", "netns", &text(&settings));
    let output = scenario.trial(&[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = scenario.records();
    let of = |arm: &str| {
        let record = records.iter().find(|record| record["arm"] == arm).expect("it has run");
        record["result"]["live"]["host"].clone()
    };
    assert_eq!(of("as-it-is"), Value::Null);
    let changed = of("changed");
    for node in ["n0", "n1", "n2"] {
        let rows = changed[node].as_array().expect("each node has some").iter();
        let rows: Vec<_> = rows.map(|row| row["name"].as_str().expect("a name").to_owned()).collect();
        assert_eq!(rows, ["gro", SWITCH, "txqueuelen"], "{changed}");
        for (row, (before, wanted)) in
            changed[node].as_array().into_iter().flatten().zip([("on", "off"), ("1", "0"), ("31", "9")])
        {
            assert_eq!((&row["before"], &row["wanted"]), (&before.into(), &wanted.into()), "{row}");
            assert_eq!(row["after"], wanted, "{row}");
        }
    }
    assert!(!mark.exists(), "the command before the run is undone");
    fs::remove_file(mark.with_extension("after")).expect("the command after it has run");
}

#[test]
fn a_setting_that_a_driver_takes_and_ignores_refuses_the_arm_with_the_drivers_name() {
    needs![];
    let scenario = Scenario::new("ignored", "netns", &text("tso: true"));
    let output = scenario.trial(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("(driver tun) takes tso on, and stays at off"), "{said}");
}

/// The file of old values of a namespace.
fn old_values(namespace: &str) -> Option<PathBuf> {
    let facts = fs::metadata(format!("/run/netns/{namespace}")).ok()?;
    Some(PathBuf::from(format!("/run/hopwise-mesh/trial.{}-{}.up", facts.dev(), facts.ino())))
}

fn switch_in(namespace: &str) -> String {
    let file = format!("/proc/sys/{}", SWITCH.replace('.', "/"));
    let output = Command::new("ip").args(["netns", "exec", namespace, "cat", &file]).output();
    String::from_utf8_lossy(&output.expect("ip is there").stdout).trim().to_owned()
}

/// Starts a trial without an end, and waits until its nodes have their settings.
fn changed(scenario: &Scenario) -> (Child, Vec<(String, PathBuf)>) {
    let words = ["--set", "run.duration=1h", "--set", "run.baseline=changed"];
    let _ = fs::remove_dir_all(&scenario.out);
    let trial = scenario.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let trial = trial.expect("it starts");
    within_patience(until(|| {
        let all = scenario.namespaces();
        all.len() == 3 && all.iter().all(|name| switch_in(name) == "0")
    }));
    let files = scenario.namespaces().into_iter().filter_map(|name| Some((name.clone(), old_values(&name)?)));
    let files: Vec<_> = files.collect();
    assert!(files.len() == 3 && files.iter().all(|(_, file)| file.exists()), "{files:?}");
    (trial, files)
}

#[test]
fn a_trial_that_is_killed_five_times_leaves_no_setting() {
    needs![];
    let scenario =
        Scenario::new("unsettled", "netns", &text(&format!("gro: false, sysctl: {{ {SWITCH}: 0 }}")));
    for nth in 0..5 {
        let (mut trial, files) = changed(&scenario);
        let parts = children(&trial, "part");
        kill_process(Pid::from_child(&trial), Signal::KILL).expect("it lives");
        trial.wait().expect("it ends");
        within_patience(until(|| !parts.iter().any(|part| lives(*part))));
        for (namespace, file) in files {
            // A trial of another test removes at its start what killed trials left, settings included.
            let switch = switch_in(&namespace);
            let is_gone = switch.is_empty() && !Path::new("/run/netns").join(&namespace).exists();
            assert!(is_gone || switch == "1", "kill {nth}: {namespace}: {switch:?}");
            assert!(!file.exists(), "kill {nth}: {}", file.display());
        }
    }
    // A part that is killed undoes nothing. Its namespace goes, and with it the file.
    let (mut trial, files) = changed(&scenario);
    kill_process(children(&trial, "part")[0], Signal::KILL).expect("it lives");
    assert!(!trial.wait().expect("it ends").success());
    assert!(files.iter().all(|(_, file)| !file.exists()), "{files:?}");
    assert_eq!(scenario.namespaces(), [""; 0]);
}
