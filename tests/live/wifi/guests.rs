//! Trials under the Wi-Fi stack of a guest's kernel: their records, their refusals, and what killed processes leave.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use hopwise_core::random::SplitMix64;
use rustix::process::{Pid, Signal, kill_process};

use crate::folder::Folder;
use crate::trials::{LASTS, Scenario, TEXT, each_tcp_tells_its_own, random_kills};
use crate::world::{is_long, until, within_patience};

use super::hwsim::can_run;

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");

/// A scenario whose trials have a folder for temporary files of their own, which is removed at the end.
struct Guests {
    scenario: Scenario,
    temporary: Folder,
}

impl Guests {
    fn new(test: &str) -> Guests {
        Guests { scenario: Scenario::new(test, "hwsim", TEXT), temporary: Folder::new(test) }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.scenario.command(words);
        command.env("TMPDIR", &*self.temporary);
        command
    }

    /// A trial of a recipe, with these settings.
    fn recipe(&self, name: &str, sets: &[&str]) -> Command {
        let mut command = Command::new(HOPWISE);
        command.args(["trial", "--recipe", name, "--world", "hwsim", "--out"]).arg(&self.scenario.out);
        command.args(sets.iter().flat_map(|set| ["--set", *set]));
        command.env("TMPDIR", &*self.temporary).stdin(Stdio::null());
        command
    }

    fn trial(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("it starts")
    }

    /// The guests that run now.
    fn running(&self) -> Vec<Pid> {
        let place = self.temporary.to_string_lossy().into_owned();
        let all = fs::read_dir("/proc").expect("it is mounted").filter_map(Result::ok);
        let is_one = |entry: &fs::DirEntry| {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(&place)
        };
        let ids = all.filter(is_one).filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter_map(Pid::from_raw).collect()
    }

    /// The number of entries in the folder for temporary files.
    fn left(&self) -> usize {
        fs::read_dir(&*self.temporary).expect("it is there").count()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_trial_in_a_guest_counts_what_each_tcp_tells_and_leaves_nothing() {
    if !can_run(name_of_test!()) {
        return;
    }
    let guests = Guests::new("counts");
    let output = guests.trial(&[&LASTS[..], &["--capture"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    each_tcp_tells_its_own(&guests.scenario);
    for record in guests.scenario.records() {
        let (live, air) = (&record["result"]["live"], &record["result"]["air"]);
        assert!(live["air_late_ms"].is_number() && live["busy_elsewhere"].is_null(), "{live}");
        assert!(air["data_airtime_s"].as_f64() < air["airtime_s"].as_f64(), "beacons take some: {air}");
        let id = record["id"].as_str().expect("a name");
        let folder = guests.scenario.out.join("captures").join(id);
        for node in ["n0", "n1", "n2"] {
            let bytes = fs::metadata(folder.join(format!("{node}.pcapng"))).expect("a capture").len();
            assert!(bytes > 100_000, "{node}: {bytes}");
        }
    }
    assert_eq!((guests.running(), guests.left()), (Vec::new(), 0));
}

#[test]
fn ten_settings_of_a_guests_radios_are_taken_and_read_back() {
    if !can_run(name_of_test!()) {
        return;
    }
    let guests = Guests::new("settings");
    let arm = ["--set", "arms={ kernel: { receiver: kernel, sender: kernel:reno } }", "--set"];
    let with = |settings: &str| {
        let host = format!("host={{ {settings} }}");
        guests.trial(&[&arm[..], &[host.as_str()]].concat())
    };
    // Debian's kernel 6.1 has no queues of mac80211 above the radios of mac80211_hwsim; a newer kernel has them.
    let is_newer = std::env::var("HOPWISE_HWSIM_SUITE").is_ok_and(|suite| !suite.is_empty());
    let (more, count) = if is_newer { ("txq_limit: 2000, ", 11) } else { ("", 10) };
    let output = with(&format!(
        "{more}fragmentation: 1000, short_retries: 4, long_retries: 9, txqueuelen: 77, gro: false, \
         sysctl: {{ net.ipv4.tcp_sack: 0, net.ipv4.tcp_ecn: 1, net.ipv4.tcp_timestamps: 0, \
         net.ipv4.tcp_window_scaling: 0, net.ipv4.tcp_slow_start_after_idle: 0 }}"
    ));
    assert!(output.status.success(), "{}", said(&output));
    let record = &guests.scenario.records()[0];
    for node in ["n0", "n1", "n2"] {
        let rows = record["result"]["live"]["host"][node].as_array().expect("a list");
        assert_eq!(rows.len(), count, "{rows:?}");
        for row in rows {
            assert_eq!(row["after"], row["wanted"], "{row}");
            assert_ne!(row["before"], row["wanted"], "{row}");
        }
    }
    fs::remove_dir_all(&guests.scenario.out).expect("it is there");
    let refused = said(&with("coverage_class: 2"));
    let words = "set its coverage_class to 2: Operation not supported (os error 95) (driver mac80211_hwsim)";
    assert!(refused.contains(words), "{refused}");
    fs::remove_dir_all(&guests.scenario.out).expect("it is there");
    // Debian's kernels differ: 6.1.0-57 sets the power of an interface, 6.12.95 takes it and does nothing.
    let set = with("tx_power: 10");
    if set.status.success() {
        let row = guests.scenario.records()[0]["result"]["live"]["host"]["n0"][0].clone();
        assert!(row["name"] == "tx_power" && row["after"] == "10", "{row}");
    } else {
        assert!(said(&set).contains("takes tx_power 10, and stays at 20"), "{}", said(&set));
    }
    fs::remove_dir_all(&guests.scenario.out).expect("it is there");
    // Debian builds its kernels without the files of mac80211 in debugfs.
    for (name, value) in [("mesh_hwmp_rootmode", "4"), ("aql_limit", "1500us")] {
        let refused = said(&with(&format!("{name}: {value}")));
        let words = format!("air0 has no {name}, expected one of its settings: rts_threshold, fragmentation");
        assert!(refused.contains(&words), "{refused}");
        fs::remove_dir_all(&guests.scenario.out).expect("it is there");
    }
}

#[test]
fn settings_of_the_kernels_meshes_and_of_the_radios_below_them_are_taken_and_read_back() {
    if !can_run(name_of_test!()) {
        return;
    }
    let guests = Guests::new("meshes");
    let arm = |protocol: &str, settings: &str| {
        format!(
            "{protocol}: {{ receiver: kernel, sender: kernel:reno, set: {{ routing.protocol: {protocol} }}, \
             host: {{ {settings} }} }}"
        )
    };
    let of_radio = "fragmentation: 1000, short_retries: 4, long_retries: 9";
    let of_mesh = "txqueuelen: 77, gro: false, mesh_retry_timeout: 50ms, mesh_path_refresh_time: 500ms, \
                   mesh_hwmp_active_path_timeout: 3s, mesh_hwmp_rootmode: 4, mesh_rssi_threshold: -90";
    // The command comes after all settings are undone. If it fails, the run does.
    let is_undone = "after: { all: 'iw dev air0 get mesh_param mesh_hwmp_rootmode | grep -qx 0' }";
    let arms = [
        arm("batman", &format!("{of_radio}, orig_interval: 500ms")),
        arm("hwmp", &format!("{of_radio}, {of_mesh}, {is_undone}")),
    ];
    let output = guests.trial(&["--set", &format!("arms={{ {} }}", arms.join(", "))]);
    assert!(output.status.success(), "{}", said(&output));
    let records = guests.scenario.records();
    assert_eq!(records.len(), 2);
    for (record, count) in records.iter().zip([4, 10]) {
        for node in ["n0", "n1", "n2"] {
            let rows = record["result"]["live"]["host"][node].as_array().expect("a list");
            assert_eq!(rows.len(), count, "{rows:?}");
            for row in rows {
                assert_eq!(row["after"], row["wanted"], "{row}");
                assert_ne!(row["before"], row["wanted"], "{row}");
                let is_of_batman = row["name"] == "orig_interval";
                assert_eq!(row["interface"] == "bat0", is_of_batman, "{row}");
            }
        }
    }
}

/// Four hops at MCS 7 came to 6.2 Mbit/s while the kernel did not get frames that were handed up after their status,
/// because they had waited for an earlier frame of their aggregate.
#[test]
fn radios_of_802_11n_aggregate_the_frames_of_a_guests_kernel_and_hand_all_of_them_up() {
    if !can_run(name_of_test!()) {
        return;
    }
    let guests = Guests::new("aggregates");
    let radio = "radio={ profile: ht20-mcs7, rts_threshold: off }";
    let arms = "arms={ convoy: { receiver: convoy, sender: [convoy] } }";
    let traffic = "traffic=[{ from: first, to: last, kind: bulk, segment_bytes: 1448 }]";
    let sets = [radio, arms, traffic, "mac.rules=standard", "topology.hops=4", "run.duration=8s"];
    let output = guests.trial(sets.map(|set| ["--set", set]).as_flattened());
    assert!(output.status.success(), "{}", said(&output));
    for record in guests.scenario.records() {
        assert!(record["result"]["total"]["goodput_kbps"].as_f64() > Some(9_000.0), "{record}");
    }
    assert_eq!((guests.running(), guests.left()), (Vec::new(), 0));
}

/// Losses that mac80211 reports end a route, as missed hellos do.
#[test]
fn routes_in_a_guest_are_found_and_its_captures_have_the_ends_too() {
    if !can_run(name_of_test!()) {
        return;
    }
    let guests = Guests::new("routes");
    // Searches wait behind data: in the first seconds the smallest flow may get nothing through.
    let (routing, longer) = ("routing={ protocol: aodv }", "run.duration=8s");
    let output = guests.trial(&["--capture", "--set", routing, "--set", longer]);
    assert!(output.status.success(), "{}", said(&output));
    each_tcp_tells_its_own(&guests.scenario);
    for record in guests.scenario.records() {
        let routing = &record["result"]["routing"];
        assert!(routing["discoveries"].as_u64() > Some(0), "{record}");
        let folder = guests.scenario.out.join("captures").join(record["id"].as_str().expect("a name"));
        let log = fs::read_to_string(folder.join("routing/n1.log")).expect("its log is kept");
        assert!(log.contains(" route "), "{log}");
        assert_eq!(folder.join("ends/n0.pcapng").is_file(), record["arm"] != "kernel", "{record}");
    }
    assert_eq!((guests.running(), guests.left()), (Vec::new(), 0));
}

#[test]
fn batman_adv_and_802_11s_of_the_guests_kernel_carry_flows_as_one_hop_for_ip() {
    if !can_run(name_of_test!()) {
        return;
    }
    let guests = Guests::new("below");
    let arm =
        |protocol| format!("{protocol}: {{ receiver: delayed, set: {{ routing.protocol: {protocol} }} }}");
    let arms = format!("arms={{ {}, {} }}", arm("batman"), arm("hwmp"));
    let output = guests.trial(&[&LASTS[..], &["--set", &arms]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let records = guests.scenario.records();
    let arms: Vec<_> = records.iter().map(|record| record["arm"].as_str().expect("a name")).collect();
    assert_eq!(arms, ["batman", "hwmp"]);
    for record in &records {
        let result = &record["result"];
        assert!(result["total"]["goodput_kbps"].as_f64() > Some(100.0), "{record}");
        // The ends do not hear each other: a kernel between them forwards, and no hop limit tells.
        assert_eq!(result["flows"][0]["hops"], 1, "{record}");
        assert_eq!(result["routing"]["discoveries"], 0, "{record}");
    }
    assert_eq!((guests.running(), guests.left()), (Vec::new(), 0));
}

#[test]
fn what_the_guests_kernel_does_not_have_is_refused_with_what_it_has() {
    if !can_run(name_of_test!()) {
        return;
    }
    let guests = Guests::new("lacks");
    let output = guests.trial(&["--set", "arms={ x: { receiver: kernel, sender: kernel:no-such } }"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("make a run in the guest") && said.contains("no-such"), "{said}");
    let (_, known) = said.split_once("expected one of: ").expect("they are named");
    let known: Vec<_> = known.trim().split(", ").collect();
    assert!(["bbr", "cubic", "reno"].iter().all(|name| known.contains(name)), "{known:?}");
}

#[test]
fn what_simulated_radios_of_a_kernel_cannot_carry_is_refused_before_there_is_a_guest() {
    let guests = Guests::new("guest-refused");
    for (set, words) in [
        ("topology.wired={ rate: 1mbit, delay: 1ms }", "radios have no wires beside them"),
        ("topology.hops=64", "65 nodes, expected at most 64"),
        ("routing={ protocol: dsr }", "this protocol is only for simulations"),
    ] {
        let output = guests.trial(&["--set", set]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{set}: {said}");
        assert!(said.contains(words), "{set}: {said}");
    }
    assert_eq!(guests.left(), 0);
}

/// Starts a trial, and a while later kills it, or its guest.
#[expect(clippy::disallowed_methods, reason = "the kill comes at any time")]
fn kill_one(guests: &Guests, nth: u32, random: &mut SplitMix64) {
    let _ = fs::remove_dir_all(&guests.scenario.out);
    let mut command = guests.command(&["--set", "run.duration=1h"]);
    let trial = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    within_patience(until(|| guests.running().len() == 1));
    thread::sleep(Duration::from_millis(random.below(20_000)));
    let kills_trial = nth.is_multiple_of(2);
    let victim = if kills_trial { Pid::from_child(&trial) } else { guests.running()[0] };
    kill_process(victim, Signal::KILL).expect("it lives");
    if kills_trial {
        within_patience(until(|| guests.running().is_empty()));
        drop(trial.wait_with_output().expect("it ends"));
        return;
    }
    // A guest that was not up yet is started again; then a signal ends the trial in order.
    within_patience(until(|| !guests.running().contains(&victim)));
    let _ = kill_process(Pid::from_child(&trial), Signal::INT);
    let output = trial.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(guests.running().is_empty(), "kill {nth}");
}

/// Kills trials or their guests that many times. The next start removes what they left.
fn kills(test: &str, count: u32) {
    let guests = Guests::new(test);
    let mut random = random_kills(test);
    for nth in 0..count {
        kill_one(&guests, nth, &mut random);
    }
    let _ = fs::remove_dir_all(&guests.scenario.out);
    let output = guests.trial(&["--set", "run.duration=1500ms", "--set", "run.warmup=1s"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!((guests.running(), guests.left()), (Vec::new(), 0));
}

#[test]
fn a_killed_trial_takes_its_guest_along_and_the_next_one_removes_its_files() {
    if can_run(name_of_test!()) {
        kills("guest-kill", 2);
    }
}

#[test]
fn recipes_run_as_they_stand_in_a_guest_and_end_with_a_sentence() {
    if !can_run(name_of_test!()) {
        return;
    }
    let shorter = ["topology.hops=1", "host.settle=1s", "run.duration=2s", "run.warmup=1s", "run.seeds=2"];
    for (name, arms, more) in
        [("rts", 2, &[][..]), ("retries", 3, &[]), ("gro", 2, &[]), ("ogm", 3, &["routing.protocol=batman"])]
    {
        let guests = Guests::new(name);
        let output = guests.recipe(name, &[&shorter[..], more].concat()).output().expect("it starts");
        assert!(output.status.success(), "{name}: {}", said(&output));
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.contains("(baseline)") && told.contains(" against "), "{told}");
        assert_eq!(guests.scenario.records().len(), 2 * arms, "{name}");
    }
}

/// A recipe of two settings over three hops, as a reader of `docs/settings.md` begins it.
#[test]
#[expect(clippy::disallowed_methods, reason = "the kill comes at any time")]
fn a_recipe_over_three_hops_of_a_guest_comes_to_a_verdict_and_killed_five_times_leaves_nothing() {
    let test = "a_recipe_over_three_hops_of_a_guest_comes_to_a_verdict_and_killed_five_times_leaves_nothing";
    if !is_long() {
        println!("skipped: {test}: takes minutes; scripts/test --long runs it");
        return;
    }
    if !can_run(test) {
        return;
    }
    let guests = Guests::new("recipe");
    let recipe = |sets: &[&str]| {
        guests.recipe("retries", &[&["topology.hops=3", "host.txqueuelen=333"], sets].concat())
    };
    let mut random = random_kills(test);
    for nth in 0..5 {
        let mut trial = recipe(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        within_patience(until(|| guests.running().len() == 1));
        thread::sleep(Duration::from_millis(random.below(60_000)));
        kill_process(Pid::from_child(&trial), Signal::KILL).expect("it lives");
        trial.wait().expect("it ends");
        within_patience(until(|| guests.running().is_empty()));
        let _ = fs::remove_dir_all(&guests.scenario.out);
        println!("kill {nth}: no guest is left");
    }
    let output = recipe(&["run.duration=2s", "run.warmup=1s", "run.seeds=3"]).output().expect("it starts");
    assert!(output.status.success(), "{}", said(&output));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("tries-15") && told.contains("verdict"), "{told}");
    let records = guests.scenario.records();
    assert_eq!(records.len(), 9);
    for record in records {
        let nodes = record["result"]["live"]["host"].as_object().expect("nodes").clone();
        assert_eq!(nodes.len(), 4);
        let mut rows = nodes.values().flat_map(|rows| rows.as_array().expect("a list"));
        // A guest that an earlier trial left changed would begin with the changed queue.
        assert!(rows.all(|row| row["wanted"] == row["after"] && row["before"] != "333"), "{record}");
    }
    assert_eq!((guests.running(), guests.left()), (Vec::new(), 0));
}

#[test]
fn ten_killed_trials_and_guests_leave_nothing_after_the_next_start() {
    let test = "ten_killed_trials_and_guests_leave_nothing_after_the_next_start";
    if !is_long() {
        println!("skipped: {test}: takes minutes; scripts/test --long runs it");
    } else if can_run(test) {
        kills("guest-kills", 10);
    }
}
