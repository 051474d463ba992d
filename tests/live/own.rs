//! A program with an agent of its own, in namespaces: processes that it starts there are itself, and know the agent.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::field::{Field, HOPWISE};
use crate::namespace::{Running, can_run};
use crate::trials::Scenario;
use crate::world::{until, within_patience};

const TEXT: &str = "\
topology: { kind: chain, hops: 2 }\n\
radio: { profile: dsss-11mbps }\n\
traffic: [{ from: first, to: last, kind: bulk }]\n\
arms:\n\
\x20 delayed: { receiver: delayed }\n\
\x20 growing: { receiver: \"growing:4\" }\n\
run: { duration: 3s, warmup: 1s, seeds: 1 }\n";

/// The program of `examples/own-agent`, which tests of all crates build; `None` if this test cannot run.
fn program(test: &str) -> Option<PathBuf> {
    if !can_run(test, &[]) {
        return None;
    }
    let program = Path::new(HOPWISE).with_file_name("own-agent");
    let version = Command::new(&program).arg("--version").output();
    let version = version.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    if version.contains(hopwise_lab::VERSION) {
        return Some(program);
    }
    println!(
        "skipped: {test}: `cargo build -p own-agent` has not built examples/own-agent from these sources"
    );
    None
}

#[test]
fn a_trial_in_namespaces_runs_the_agent_of_its_own_program() {
    let test = "a_trial_in_namespaces_runs_the_agent_of_its_own_program";
    let Some(program) = program(test) else { return };
    let scenario = Scenario::new("own", "netns", TEXT);
    let mut command = Command::new(program);
    command.arg("trial").arg(&scenario.file).args(["--late", "10s", "--busy", "100%", "--world", "netns"]);
    let output = command.arg("--out").arg(&scenario.out).stdin(Stdio::null()).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = scenario.records();
    let receiver = |arm: &str| {
        let record = records.iter().find(|record| record["arm"] == arm).expect("both arms ran");
        assert!(record["result"]["total"]["goodput_kbps"].as_f64() > Some(100.0), "{record}");
        record["result"]["flows"][0]["receiver"].clone()
    };
    assert_eq!((receiver("delayed"), receiver("growing")), ("delayed".into(), "growing:4".into()));
}

#[test]
fn send_and_recv_choose_the_agent_of_their_own_program() {
    let test = "send_and_recv_choose_the_agent_of_their_own_program";
    let Some(program) = program(test) else { return };
    let program = program.to_str().expect("a path in UTF-8");
    let field = Field::new("own");
    let recv = ["recv", "--address", "10.8.0.2/24", "--kernel", "10.8.0.1/24", "--receiver", "growing:4"];
    let said = fs::File::create(field.path("said")).expect("the folder can be written");
    let mut recv = field.web.command(&[&[program], &recv[..]].concat());
    let _recv =
        Running(recv.stdin(Stdio::null()).stdout(said).stderr(Stdio::null()).spawn().expect("it runs"));
    let has_said = || fs::read_to_string(field.path("said")).is_ok_and(|said| said.contains("waiting at "));
    within_patience(until(has_said));
    let place = ["send", "10.8.0.2", "--address", "10.7.0.2/24", "--kernel", "10.7.0.1/24", "--json"];
    let told = field.node.output(&[&[program], &place[..], &["--bytes", "1MB"]].concat());
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let told: Value = serde_json::from_slice(&told.stdout).expect("one object");
    let flow = &told["flows"][0];
    assert_eq!(
        (&flow["bytes_delivered"], &flow["receiver"]),
        (&1_000_000.into(), &"growing:4".into()),
        "{flow}"
    );
}
