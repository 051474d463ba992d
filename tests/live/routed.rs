//! Trials whose routes are found by a daemon on each node, and captures at the ends of their flows.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::namespace::can_run;
use crate::trials::{Scenario, TEXT, children, lives};
use crate::world::{until, within_patience};

/// Three hops, with our TCP and the kernel's.
const CHAIN: &str = "\
topology: { kind: chain, hops: 3 }\n\
radio: { profile: dsss-11mbps }\n\
traffic: [{ from: first, to: last, kind: bulk }]\n\
arms:\n\
\x20 delayed: { receiver: delayed }\n\
\x20 kernel: { receiver: kernel, sender: kernel:reno }\n\
run: { duration: 4s, warmup: 1s, seeds: 1 }\n";

/// Makes a trial of the chain with that routing. Both arms have to find their way and to carry data.
fn carries(test: &str, name: &str, routing: &str) -> Option<Scenario> {
    if !can_run(test, &[]) {
        return None;
    }
    let scenario = Scenario::new(name, "netns", &format!("{CHAIN}routing: {routing}\n"));
    let output = scenario.trial(&["--capture"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = scenario.records();
    assert_eq!(records.len(), 2);
    for record in &records {
        let result = &record["result"];
        assert!(result["total"]["goodput_kbps"].as_f64() > Some(100.0), "{result}");
        // The first node searches for the last one, and later ones for what a route error names.
        assert!(result["routing"]["discoveries"].as_u64() > Some(0), "{result}");
        assert!(result["routing"]["route_failures"].is_u64(), "{result}");
        let hops = if record["arm"] == "kernel" { Value::Null } else { 3.into() };
        assert_eq!(result["flows"][0]["hops"], hops, "{result}");
    }
    assert_eq!(scenario.namespaces(), [""; 0]);
    Some(scenario)
}

fn folder_of(scenario: &Scenario, record: &Value) -> PathBuf {
    scenario.out.join("captures").join(record["id"].as_str().expect("a name"))
}

#[test]
fn a_chain_carries_both_tcps_over_the_routes_that_aodv_finds() {
    let test = "a_chain_carries_both_tcps_over_the_routes_that_aodv_finds";
    let Some(scenario) = carries(test, "aodv", "{ protocol: aodv, ttl_start: 5 }") else { return };
    for record in scenario.records() {
        let log = folder_of(&scenario, &record).join("routing/n1.log");
        let log = fs::read_to_string(log).expect("the logs of daemons are kept beside captures");
        assert!(log.contains("INFO") && log.contains(" route "), "{log}");
    }
}

#[test]
fn a_chain_carries_both_tcps_over_the_routes_that_dymo_finds() {
    carries(
        "a_chain_carries_both_tcps_over_the_routes_that_dymo_finds",
        "dymo",
        "{ protocol: dymo, dymo: { rreq_wait_time: 500ms } }",
    );
}

#[test]
fn captures_at_the_ends_of_a_live_run_say_why() {
    needs!["tshark"];
    let scenario = Scenario::new("ends", "netns", CHAIN);
    let output = scenario.trial(&["--capture"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for record in scenario.records() {
        let ends = folder_of(&scenario, &record).join("ends");
        if record["arm"] == "kernel" {
            assert!(!ends.exists(), "the kernel's TCP tells nothing");
            continue;
        }
        for (node, address) in [("n0", "10.64.0.1"), ("n3", "10.64.0.4")] {
            let file = ends.join(format!("{node}.pcapng"));
            let fields = ["frame.interface_name", "ip.src", "tcp.checksum.status", "frame.comment"];
            let words = fields.iter().flat_map(|field| ["-e", field]);
            let mut tshark = Command::new("tshark");
            tshark.arg("-r").arg(&file).args(["-o", "tcp.check_checksum:TRUE", "-T", "fields"]).args(words);
            let text = String::from_utf8(tshark.output().expect("it is installed").stdout).expect("text");
            let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
            assert!(rows.len() > 100, "{node}: {}", rows.len());
            let is_sound = |row: &&Vec<&str>| {
                let (is_own, says_why) = (row[1] == address, row.get(3).is_some_and(|why| !why.is_empty()));
                row[0] == node && row[2] == "1" && (says_why || !is_own)
            };
            let odd = rows.iter().find(|row| !is_sound(row));
            assert_eq!(odd, None, "{node}");
            assert!(text.contains("delayed") || text.contains("newreno"), "the agents are named: {node}");
            let neighbour = if node == "n0" { "02:00:00:00:00:01" } else { "02:00:00:00:00:02" };
            assert!(
                text.contains(&format!("link to {neighbour}; signal -")),
                "the first link is told: {node}"
            );
        }
    }
}

/// Starts an endless trial with a daemon on each of three nodes, and waits until the one in the middle has a route.
fn endless(scenario: &Scenario) -> (Child, Vec<Pid>) {
    let words = ["--set", "run.duration=1h", "--set", "routing={ protocol: aodv }"];
    let mut command = scenario.command(&words);
    let trial = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let routes = || {
        let names = scenario.namespaces();
        let middle = names.iter().find(|name| name.ends_with("-n1")).map_or("", String::as_str);
        let words = ["-n", middle, "route", "show", "proto", "87"];
        Command::new("ip").args(words).output().expect("it is installed").stdout
    };
    within_patience(until(|| !routes().is_empty()));
    let daemons = children(&trial, "route");
    assert_eq!(daemons.len(), 3);
    (trial, daemons)
}

#[test]
fn a_daemon_that_dies_ends_its_run_with_the_node_and_the_cause() {
    needs![];
    let scenario = Scenario::new("routeless", "netns", TEXT);
    let (trial, daemons) = endless(&scenario);
    kill_process(daemons[1], Signal::KILL).expect("it lives");
    let output = trial.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let cause = "run a node's routing: n1: it has ended early (signal: 9 (SIGKILL))";
    assert!(said.contains(cause), "{said}");
    let log = scenario.out.join("routing/n1.log");
    assert!(said.contains(&log.display().to_string()), "{said}");
    assert!(fs::read_to_string(&log).expect("it is kept").contains("INFO"));
    within_patience(until(|| !daemons.iter().any(|daemon| lives(*daemon))));
    assert_eq!(scenario.namespaces(), [""; 0]);
}

#[test]
fn a_killed_trial_takes_its_daemons_along_and_they_leave_nothing() {
    needs![];
    let (scenario, next) =
        (Scenario::new("routekill", "netns", TEXT), Scenario::new("routekill-next", "netns", TEXT));
    let (trial, daemons) = endless(&scenario);
    kill_process(Pid::from_child(&trial), Signal::KILL).expect("it lives");
    drop(trial.wait_with_output().expect("it ends"));
    within_patience(until(|| !daemons.iter().any(|daemon| lives(*daemon))));
    // Their state was in folders of their own.
    let state = fs::read_dir("/run/hopwise").into_iter().flatten().flatten();
    let left: Vec<_> = state.map(|entry| entry.file_name()).filter(|name| name == "route.yaml").collect();
    assert_eq!(left, [""; 0]);
    let words = ["--set", "run.duration=1500ms", "--set", "routing={ protocol: aodv }"];
    let output = next.trial(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((scenario.namespaces(), next.namespaces()), (Vec::new(), Vec::new()));
}
