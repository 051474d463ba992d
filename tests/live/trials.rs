//! Trials in real time between namespaces: their records, their refusals, and what killed processes leave.

mod carried;
mod gateway;
mod settings;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use hopwise_core::random::SplitMix64;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::namespace::{can_run, prefix};
use crate::world::{is_long, until, within_patience};

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");

/// A scenario of two hops whose name is the prefix of its namespaces.
pub(crate) struct Scenario {
    name: String,
    world: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) out: PathBuf,
}

impl Scenario {
    pub(crate) fn new(test: &str, world: &'static str, text: &str) -> Scenario {
        let name = prefix(test);
        let folder = env::temp_dir();
        let (file, out) = (folder.join(format!("{name}.yaml")), folder.join(format!("{name}-out")));
        fs::write(&file, text).expect("the temporary folder can be written");
        Scenario { name, world, file, out }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.command_of(Path::new(HOPWISE), words)
    }

    fn command_of(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.arg("trial").arg(&self.file).args(["--late", "10s", "--busy", "100%"]);
        if !words.contains(&"--world") {
            command.args(["--world", self.world]);
        }
        command.arg("--out").arg(&self.out).args(words).stdin(Stdio::null());
        command
    }

    pub(crate) fn trial(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("it starts")
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.out.join("records.jsonl")).expect("a trial has records");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Its namespaces that exist now.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(&self.name)).collect()
    }
}

impl Drop for Scenario {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
        let _ = fs::remove_dir_all(&self.out);
    }
}

#[test]
fn worlds_are_compared_arm_by_arm_and_the_one_without_a_kernel_leaves_its_arms_out() {
    needs![];
    let scenario = Scenario::new("worlds", "netns", TEXT);
    let output = scenario.trial(&["--world", "sim,netns", "--json", "--seeds", "2"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("sim has no kernel: without the arms kernel"), "{said}");
    let agreement: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(agreement["worlds"], serde_json::json!(["sim", "netns"]));
    let arms = agreement["points"][0]["arms"].as_array().expect("a list");
    let of_arm = |arm: &Value| {
        let worlds = arm["worlds"].as_array().expect("a list").iter();
        let worlds: Vec<&str> = worlds.filter_map(|world| world["world"].as_str()).collect();
        (arm["arm"].as_str().map(str::to_owned), worlds.join(","), arm["comparisons"][0]["blocks"].as_u64())
    };
    let found: Vec<_> = arms.iter().map(of_arm).collect();
    let wanted = [("delayed", "sim,netns", Some(2)), ("kernel", "netns", None)];
    assert_eq!(found, wanted.map(|(arm, worlds, blocks)| (Some(arm.to_owned()), worlds.to_owned(), blocks)));
    for file in ["agreement.json", "sim/report.html", "netns/records.jsonl"] {
        assert!(scenario.out.join(file).is_file(), "{file}");
    }
}

/// The processes on nodes that a trial has started, of that subcommand.
pub(crate) fn children(of: &Child, subcommand: &str) -> Vec<Pid> {
    let mut all = Vec::new();
    // A thread other than the first may have started them.
    for entry in fs::read_dir(format!("/proc/{}/task", of.id())).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path().join("children")).unwrap_or_default();
        all.extend(text.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)));
    }
    all.retain(|pid| {
        let words = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(subcommand.as_bytes())
    });
    all
}

pub(crate) fn lives(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

pub(crate) const TEXT: &str = "\
topology: { kind: chain, hops: 2 }\n\
radio: { profile: dsss-11mbps }\n\
traffic:\n\
\x20 - { from: first, to: last, kind: bulk }\n\
\x20 - { from: last, to: first, kind: request, request: 100B, response: 2kB, think: 100ms, background: true }\n\
\x20 - { from: n1, to: last, kind: cbr, every: 50ms, segment_bytes: 200, background: true }\n\
arms:\n\
\x20 delayed: { receiver: delayed }\n\
\x20 kernel: { receiver: kernel, sender: kernel:reno }\n\
run: { duration: 3s, warmup: 1s, seeds: 1 }\n";

/// A request may lose its first packets to the full queue of the bulk flow, and comes whole some RTOs later.
pub(crate) const LASTS: [&str; 2] = ["--set", "run.duration=6s"];

/// Holds what a flow's receiver measured against the number that was sent, between stations of one clock. A delay holds
/// the time of the air and is less than that of a full queue.
pub(crate) fn assert_datagrams(seen: &Value, sent: u64) {
    let number = |key: &str| seen[key].as_f64().unwrap_or_else(|| panic!("{key} of {seen}"));
    assert!((sent - 3..=sent + 3).contains(&seen["sent"].as_u64().expect("a count")), "{seen}");
    assert!((number("loss") - (1.0 - number("arrived") / number("sent"))).abs() < 1e-9, "{seen}");
    let (median, p95) = (number("delay_median_ms"), number("delay_p95_ms"));
    assert!(number("delay_ms") > 0.3 && 0.3 < median && median <= p95 && p95 < 2000.0, "{seen}");
    assert!(number("jitter_ms") > 0.0 && number("delay_error_ms") == 0.0, "{seen}");
}

/// Holds the records of [`TEXT`], one of each arm, against what flows and TCPs can tell.
pub(crate) fn each_tcp_tells_its_own(scenario: &Scenario) {
    let records = scenario.records();
    assert_eq!(records.len(), 2);
    for record in &records {
        let result = &record["result"];
        let flow = |id: &str| {
            let flows = result["flows"].as_array().expect("a list");
            flows.iter().find(|flow| flow["id"] == id).expect("it is there").clone()
        };
        assert_eq!(result["world"], scenario.world);
        // About 1,200 without a timeout.
        assert!(result["total"]["goodput_kbps"].as_f64() > Some(100.0), "{result}");
        assert!(flow("f0")["rtt_ms"].as_f64() > Some(1.0), "{result}");
        assert!(flow("f1")["completed"]["count"].as_u64() > Some(0), "{result}");
        // A datagram each 50 ms for 5 s.
        assert!(flow("f2")["bytes_delivered"].as_u64() > Some(200 * 30), "{result}");
        assert_datagrams(&flow("f2")["datagrams"], 60);
        assert!(result["air"]["data_airtime_s"].as_f64() > Some(0.5), "{result}");
        let is_kernels = record["arm"] == "kernel";
        assert_eq!(flow("f0").get("acks_repeated").is_none(), is_kernels, "{result}");
        let hops = if is_kernels { Value::Null } else { 2.into() };
        assert_eq!(flow("f0")["hops"], hops, "{result}");
    }
}

#[test]
fn a_trial_between_namespaces_counts_what_each_tcp_tells() {
    needs![];
    let scenario = Scenario::new("trial", "netns", TEXT);
    let output = scenario.trial(&[&LASTS[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    each_tcp_tells_its_own(&scenario);
    assert_eq!(scenario.namespaces(), [""; 0]);
}

/// A setting, the place that is named, and the problem or its remedy.
const REFUSED: &[(&str, &str, &str)] = &[
    ("routing={ protocol: dsr }", "--set", "this protocol is only for simulations"),
    ("routing={ protocol: batman }", "--set", "kernels speak this protocol over Wi-Fi alone"),
    ("routing={ protocol: hwmp }", "--set", "static, aodv, dymo, world: hwsim, or world: sim"),
    ("routing={ protocol: gpsr }", "--set", "static, aodv or dymo, or world: sim"),
    ("routing={ protocol: aodv, rules: ns2 }", "--set", "AODV does not follow the rules of ns-2"),
    ("routing={ protocol: dymo, dymo: { signed: true } }", "--set", "messages are not signed"),
    ("routing={ protocol: aodv, data_hop_limit: 9 }", "--set", "set the hop limit of their packets"),
    (
        "traffic=[{ from: first, to: last, kind: saturated }]",
        "--set",
        "a program does not see whether the radio has room",
    ),
    ("radio.when_full=hold", "--set", "a kernel's queue does not hold packets back"),
    ("arms.kernel.receiver=delayed", "--set", "the kernel's TCP has both ends of a connection"),
    ("arms.kernel.sender=kernel:../x", "--set", "`../x` is no name of an algorithm"),
    ("arms.kernel.sender=kernel:none-such", "kernel:none-such", "expected one of: "),
    ("arms.kernel.transparent=true", "--set", "the kernel's TCP has no agents"),
    ("arms.delayed={ transparent: true, shadows: immediate }", "--set", "agents of a node have no shadows"),
    (
        "arms.delayed={ transparent: true, set: { traffic: [{ from: first, to: last, kind: cbr, every: 50ms }] } }",
        "--set",
        "no flow is over TCP",
    ),
    ("world=sim", "yaml:9", "the simulation has no kernel"),
];

#[test]
fn a_live_world_refuses_what_it_cannot_run_at_its_place() {
    let scenario = Scenario::new("refused", "netns", TEXT);
    for &(set, place, words) in REFUSED {
        let words_of_trial: &[&str] =
            if set.starts_with("world") { &["--world", "sim"] } else { &["--set", set] };
        let mut command = Command::new(HOPWISE);
        command.arg("trial").arg(&scenario.file).args(["--set", "world=netns"]).args(words_of_trial);
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{set}: {said}");
        assert!(said.contains(words) && said.contains(place), "{set}: {said}");
    }
}

/// Transfers of one size, a flow that is over before anything counts, and one that starts late.
const TIMED: &str = "traffic=[\
    { from: first, to: last, kind: bulk, bytes: 20kB, repeat: 3, think: 100ms, start: 1100ms }, \
    { from: first, to: last, kind: cbr, every: 20ms, segment_bytes: 200, stop: 500ms, background: true }, \
    { from: last, to: first, kind: bulk, start: 2500ms, background: true }]";

#[test]
fn flows_between_namespaces_start_stop_and_have_their_size() {
    needs![];
    let scenario = Scenario::new("timed", "netns", TEXT);
    let output = scenario.trial(&["--set", TIMED]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = scenario.records();
    assert_eq!(records.len(), 2);
    for record in &records {
        let flows = &record["result"]["flows"];
        assert_eq!((&flows[0]["id"], &flows[0]["completed"]["count"]), (&"f0".into(), &3.into()), "{flows}");
        assert_eq!(flows[1]["bytes_delivered"], 0, "{flows}");
        // Half a second of a link that carries 11 Mbit/s at the most.
        let late = flows[2]["bytes_delivered"].as_u64().expect("it is counted");
        assert!((1..11_000_000 / 8 / 2).contains(&late), "{flows}");
    }
}

#[test]
fn a_run_between_namespaces_keeps_the_traces_of_its_endpoints() {
    needs![];
    let scenario = Scenario::new("traced", "netns", TEXT);
    let run = |arm: &str, words: &[&str]| {
        let out = scenario.out.join(arm);
        let mut command = Command::new(HOPWISE);
        command
            .arg("run")
            .arg(&scenario.file)
            .args(["--world", "netns", "--arm", arm, "--trace", "--out"])
            .arg(&out);
        let output =
            command.args(["--late", "10s", "--busy", "100%"]).args(words).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        ["n0", "n1", "n2"].map(|node| fs::read_to_string(out.join(format!("{node}.trace.txt"))).ok())
    };
    let traces = run("delayed", &["--capture"]).map(|trace| trace.expect("each node has an end of a flow"));
    let of_third_second = |trace: &String| trace.lines().filter(|line| line.starts_with("2.")).count();
    let [n0, n1, n2] = traces.each_ref().map(of_third_second);
    assert!(n0 > 3 && n1 == 0 && n2 > 3, "n1 sends datagrams, and has no connection: {n0}, {n1}, {n2}");
    assert!(traces.iter().all(|trace| trace.starts_with("# hopwise-trace")), "{traces:?}");
    assert_eq!(run("kernel", &[]), [None, None, None], "the kernel's TCP tells nothing");
}

/// No radio is less than a nanosecond late, so that no run counts.
#[test]
fn runs_that_do_not_count_are_repeated_only_within_the_time_of_the_trial() {
    needs![];
    let one_arm = TEXT.replace("  kernel: { receiver: kernel, sender: kernel:reno }\n", "");
    let scenario = Scenario::new("repeats", "netns", &one_arm);
    let mut command = Command::new(HOPWISE);
    command
        .arg("trial")
        .arg(&scenario.file)
        .args(["--world", "netns", "--late", "0s", "--for", "4s", "--out"]);
    let output = command.arg(&scenario.out).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("the run does not count").count(), 1, "{said}");
    assert!(said.contains("--for leaves no time to repeat it"), "{said}");
    assert!(said.contains("with --resume goes on"), "{said}");
    let output = scenario.trial(&["--resume"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        scenario.records()[0]["result"]["live"]["repeated"],
        1,
        "tries of the earlier command count, too"
    );
}

/// A trial without `--for` waits for such a process, and then says that nothing came from it.
#[test]
fn a_run_that_hangs_is_ended_with_the_time_of_its_trial() {
    needs![];
    let scenario = Scenario::new("hangs", "netns", TEXT);
    let trial = scenario.command(&["--for", "12s"]).stderr(Stdio::piped()).spawn();
    let trial = trial.expect("it starts");
    within_patience(until(|| children(&trial, "part").len() == 3));
    kill_process(children(&trial, "part")[0], Signal::STOP).expect("it lives");
    let output = trial.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the time of --for is over"), "{said}");
    assert_eq!(scenario.namespaces(), [""; 0]);
}

/// Short runs of both arms.
const SHORT: &[&str] = &["--set", "run.duration=1500ms", "--set", "run.warmup=500ms"];

/// Starts a trial of short runs, and returns once it has some records.
fn begun(scenario: &Scenario, program: &Path, words: &[&str]) -> Child {
    let trial = scenario.command_of(program, &[SHORT, words].concat());
    let trial = { trial }.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let records = scenario.out.join("records.jsonl");
    within_patience(until(|| fs::read_to_string(&records).is_ok_and(|text| text.lines().count() >= 2)));
    trial
}

#[test]
fn a_live_trial_goes_on_where_a_kill_has_ended_it() {
    needs![];
    let scenario = Scenario::new("resume", "netns", TEXT);
    let seeds = ["--seeds", "4"];
    let mut trial = begun(&scenario, Path::new(HOPWISE), &seeds);
    trial.kill().expect("it lives");
    trial.wait().expect("it ends");
    let before = fs::read_to_string(scenario.out.join("records.jsonl")).expect("it has records");
    // The last line may be half written.
    let whole = &before[..before.rfind('\n').map_or(0, |end| end + 1)];
    let output = scenario.trial(&[SHORT, &seeds, &["--resume"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let after = fs::read_to_string(scenario.out.join("records.jsonl")).expect("it has records");
    assert!(after.starts_with(whole), "what was there is kept");
    assert_eq!(scenario.records().len(), 8);
}

#[test]
fn a_live_trial_goes_on_when_its_program_is_replaced() {
    needs![];
    let scenario = Scenario::new("replaced", "netns", TEXT);
    let (program, other) = (scenario.file.with_extension("program"), scenario.file.with_extension("other"));
    fs::copy(HOPWISE, &program).expect("the temporary folder can be written");
    fs::write(&other, "").expect("the temporary folder can be written");
    let trial = begun(&scenario, &program, &["--seeds", "2"]);
    fs::rename(&other, &program).expect("both are there");
    let output = trial.wait_with_output().expect("it ends");
    fs::remove_file(&program).expect("it is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(scenario.records().len(), 4);
}

#[test]
fn a_live_trial_ends_in_its_time_with_complete_blocks() {
    needs![];
    let scenario = Scenario::new("in-time", "netns", TEXT);
    let output = scenario.trial(&[SHORT, &["--seeds", "40", "--for", "15s", "--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let records = scenario.records().len();
    assert!((2..80).contains(&records) && records.is_multiple_of(2), "{records}: {said}");
}

/// A window of one segment carries less than half.
#[test]
fn a_live_trial_stops_when_its_verdicts_are_sure() {
    needs![];
    let slow = "kernel: { receiver: delayed, sender: [newreno, \"limit:1\"] }";
    let text = TEXT.replace("kernel: { receiver: kernel, sender: kernel:reno }", slow);
    let scenario = Scenario::new("sure", "netns", &text);
    let output =
        scenario.trial(&[SHORT, &["--seeds", "40", "--set", "run.stop=when-sure", "--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let records = scenario.records().len();
    assert!((4..80).contains(&records), "{records}: {said}");
}

/// Starts a trial, and kills one of its processes a while later: itself, or one on a node.
#[expect(clippy::disallowed_methods, reason = "the kill comes at any time")]
fn kill_one(scenario: &Scenario, nth: u32, random: &mut SplitMix64) {
    let endless = ["--set", "run.duration=1h", "--set", "routing={ protocol: aodv }"];
    let routing_too = nth % 2 == 1;
    let endless = if routing_too { &endless[..] } else { &endless[..2] };
    // A trial that was killed is gone on with, or begun elsewhere.
    let _ = fs::remove_dir_all(&scenario.out);
    let trial =
        scenario.command(endless).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let kills_trial = nth.is_multiple_of(3);
    if !kills_trial {
        within_patience(until(|| children(&trial, "part").len() == 3));
    }
    thread::sleep(Duration::from_millis(random.below(1_500)));
    let processes = [children(&trial, "part"), children(&trial, "route")].concat();
    assert_eq!(processes.len() == 6 || kills_trial, routing_too || kills_trial, "a daemon on each node");
    let drawn = random.below(processes.len() as u64) as usize;
    let victim = if kills_trial { Pid::from_child(&trial) } else { processes[drawn] };
    kill_process(victim, Signal::KILL).expect("it lives");
    let output = trial.wait_with_output().expect("it ends");
    within_patience(until(|| !processes.iter().any(|process| lives(*process))));
    if !kills_trial {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("it has ended early"), "{said}");
        assert_eq!(scenario.namespaces(), [""; 0], "kill {nth}");
    }
}

/// Chance for kills, of a printed seed.
pub(crate) fn random_kills(test: &str) -> SplitMix64 {
    let drawn = || u64::from(hopwise_host::random_key().expect("the kernel has random bytes")[0]);
    let seed = env::var("HOPWISE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(drawn);
    println!("{test}: the kills of HOPWISE_SEED={seed}");
    SplitMix64::new(seed)
}

/// Kills processes of a trial that many times. The next start removes what they left.
fn kills(test: &str, count: u32) {
    let (scenario, next) =
        (Scenario::new(test, "netns", TEXT), Scenario::new(&format!("{test}-next"), "netns", TEXT));
    let mut random = random_kills(test);
    for nth in 0..count {
        kill_one(&scenario, nth, &mut random);
    }
    let output = next.trial(&["--set", "run.duration=1500ms"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((scenario.namespaces(), next.namespaces()), (Vec::new(), Vec::new()));
}

#[test]
fn a_killed_process_of_a_trial_leaves_nothing_after_the_next_start() {
    needs![];
    kills("kill", 4);
}

#[test]
fn twenty_killed_processes_of_trials_leave_nothing_after_the_next_start() {
    let test = "twenty_killed_processes_of_trials_leave_nothing_after_the_next_start";
    if !is_long() {
        println!("skipped: {test}: takes a minute; scripts/test --long runs it");
    } else if can_run(test, &[]) {
        kills("kills", 20);
    }
}
