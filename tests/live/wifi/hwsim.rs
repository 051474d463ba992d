//! The Wi-Fi stack of a real kernel over a scenario's radio, in a guest: reach, retries, outages, and what is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::namespace::missing;
use crate::world::{until, within_patience};

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");
/// A guest that comes up at all does so within this, on a machine that is busy with other tests.
pub(super) const LIMIT: &str = "240s";

/// Returns whether a guest can be made here. If not, it prints the reason.
pub(super) fn can_run(test: &str) -> bool {
    let tools = ["apt-get", "dpkg-deb", "mke2fs", "setpriv", "xz"];
    let obstacle = tools.iter().find_map(|tool| missing(tool)).or_else(|| {
        let made = Command::new(HOPWISE).args(["air", "hwsim", "--prepare"]).output().expect("it starts");
        let said = String::from_utf8_lossy(&made.stderr).trim().replace('\n', "; ");
        (!made.status.success()).then_some(said)
    });
    if let Some(reason) = &obstacle {
        println!("skipped: {test}: {reason}");
    }
    obstacle.is_none()
}

/// A folder for results and for temporary files, removed at the end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("hoplive-hwsim-{}-{test}", std::process::id()));
        fs::create_dir_all(path.join("tmp")).expect("the temporary folder can be written");
        Folder(path)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The command, for a chain with this number of hops.
    pub(super) fn world(&self, hops: usize, limit: &str, words: &[&str], script: &str) -> Command {
        let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/chain.yaml");
        let mut command = Command::new(HOPWISE);
        command.args(["air", "hwsim", "--limit", limit, "--set", &format!("topology.hops={hops}")]);
        command.args(words).arg("--out").arg(self.0.join("out")).arg(scenario);
        command.args(["--", "sh", "-c", script]).env("TMPDIR", self.0.join("tmp")).stdin(Stdio::null());
        command
    }

    /// Plays a recording of a chain with this number of hops in a simulation, for a part of its time.
    pub(super) fn plays(&self, field: &str, hops: usize) {
        let path = self.0.join("field.csv");
        fs::write(&path, format!("{}\n", field.trim_end())).expect("a file");
        let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/chain.yaml");
        let mut command = Command::new(HOPWISE);
        command.arg("run").arg(scenario).args([
            "--arm",
            "delayed",
            "--json",
            "--set",
            "run.duration=3s",
            "--set",
            "run.warmup=0s",
        ]);
        command.args(["--set", &format!("topology.hops={hops}")]);
        let done = command.args(["--set", &format!("channel.trace={}", path.display())]).output();
        let done = done.expect("it starts");
        let told: serde_json::Value =
            serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(&done)));
        assert!(told["total"]["goodput_kbps"].as_f64() > Some(100.0), "{told}");
    }

    /// The number of entries in the folder for temporary files.
    fn left(&self) -> usize {
        fs::read_dir(self.0.join("tmp")).expect("it is there").count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn said(output: &Output) -> String {
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{out}\n--- {err}")
}

/// A number of `iw station get` in what was printed behind a mark.
fn figure(said: &str, mark: &str, name: &str) -> Option<i64> {
    let (_, behind) = said.split_once(&format!("mark {mark}\n"))?;
    let line = behind.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Times of outages of a link, one after the other: whenever nodes have joined, there is one to come.
fn outages(link: &str) -> String {
    let each = |n: u32| format!("link {link} down from {} s to {} s", 40 * n + 20, 40 * n + 40);
    let all: Vec<_> = (0..60).map(|n| format!("\"{}\"", each(n))).collect();
    format!("channel.links=[{}]", all.join(", "))
}

#[test]
fn kernels_reach_over_three_hops_see_losses_as_retries_and_an_outage_as_failures() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("reach");
    let input = folder.0.join("input");
    fs::write(&input, "come in\n").expect("a file");
    let script = "\
        cat\n\
        on() { ip netns exec \"$@\"; }\n\
        until on n0 ping -q -c 3 -i 0.2 -W 2 10.0.0.4; do :; done\n\
        on n0 ping -q -c 30 -i 0.05 10.0.0.2\n\
        echo mark near; on n0 iw dev air0 station get 02:00:00:00:00:01\n\
        while on n0 ping -q -c 3 -i 0.2 -W 2 10.0.0.4; do :; done\n\
        on n0 ping -q -c 3 -W 2 10.0.0.3 && echo still there\n\
        echo mark far; on n2 iw dev air0 station get 02:00:00:00:00:03\n\
        ping -c 1 -W 1 10.0.0.1 || exit 9";
    let words = ["--set", "channel.loss=10%", "--set", &outages("n2-n3"), "--capture"];
    let input = fs::File::open(input).expect("it is there");
    let done = folder.world(3, LIMIT, &words, script).stdin(input).output().expect("it starts");
    let all = said(&done);
    assert!(all.starts_with("come in\n"), "{all}");
    // The last ping is of the guest itself, which has no route to the nodes: the status is the script's.
    assert_eq!(done.status.code(), Some(9), "{all}");
    assert!(all.contains("still there"), "{all}");
    let near = |name| figure(&all, "near", name).unwrap_or_else(|| panic!("no {name} in {all}"));
    // A tenth of all frames is lost, with ACKs and RTSs: a packet is tried again now and then.
    assert!(near("tx retries") >= 5 && near("tx failed") <= 2, "{all}");
    assert_eq!(near("signal"), -60, "{all}");
    let far = |name| figure(&all, "far", name).unwrap_or_else(|| panic!("no {name} in {all}"));
    assert!(far("tx failed") >= 1, "{all}");
    let captured = fs::metadata(folder.0.join("out/n1.pcapng")).map(|facts| facts.len());
    assert!(captured.expect("a capture") > 10_000);
    let report = fs::read(folder.0.join("out/medium.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("one object");
    assert!(report["nodes"][0]["frames_sent"].as_u64() > Some(50), "{report}");
    assert_eq!(folder.left(), 0);
}

/// Each round of a string instruction takes a nanosecond of such a guest: a frame that is copied by bytes costs eight
/// times as much as by words.
#[test]
fn a_guest_whose_instructions_are_counted_copies_by_words_and_clears_no_memory_that_it_takes() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("counted");
    let script = "grep -q -w rep_good /proc/cpuinfo && ! grep -q -w -E 'erms|fsrm' /proc/cpuinfo &&
        grep -q -w init_on_alloc=0 /proc/cmdline";
    let done = folder.world(1, LIMIT, &["--accelerator", "counted"], script).output().expect("it starts");
    assert!(done.status.success(), "{}", said(&done));
}

#[test]
fn a_routing_daemon_a_proxy_and_the_doctor_read_the_stations_of_a_real_nl80211() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("facts");
    let script = "\
        on() { ip netns exec \"$@\"; }\n\
        f=/run/route.yaml\n\
        printf 'address: 10.0.0.1\\nnetwork: 10.0.0.0/24\\ninterfaces: [air0]\\n' > $f\n\
        printf 'control: /run/route.sock\\nrouting: { protocol: aodv }\\n' >> $f\n\
        ip netns exec n0 /program/hopwise route $f & daemon=$!\n\
        until on n0 ping -q -c 3 -i 0.2 -W 2 10.0.0.2; do :; done\n\
        told() { /program/hopwise status --control /run/route.sock; }\n\
        for n in $(seq 100); do told | grep -q -e -60 && break; sleep 0.2; done\n\
        echo mark status; told\n\
        p=/run/proxy.yaml\n\
        printf 'fixed: { name: hopf }\nmobile: { name: hopm }\nuser: root\nwatchdog: off\n' > $p\n\
        printf 'control: /run/proxy.sock\nstations: [{ interface: air0, mobiles: ' >> $p\n\
        printf '[{ address: 10.0.0.2, station: \"02:00:00:00:00:01\" }] }]\n' >> $p\n\
        ip netns exec n0 /program/hopwise proxy $p & proxy=$!\n\
        told() { /program/hopwise proxy status --text --control /run/proxy.sock; }\n\
        for n in $(seq 100); do told | grep -q -e -60 && break; sleep 0.2; done\n\
        echo mark proxy; told\n\
        echo mark doctor; on n0 /program/hopwise doctor\n\
        for one in $daemon $proxy; do kill $one; wait $one; echo ended $?; done";
    let done = folder.world(1, LIMIT, &[], script).output().expect("it starts");
    let all = said(&done);
    let (_, told) = all.split_once("mark status\n").unwrap_or_else(|| panic!("{all}"));
    let (told, doctor) = told.split_once("mark doctor\n").unwrap_or_else(|| panic!("{all}"));
    let (route, proxy) = told.split_once("mark proxy\n").unwrap_or_else(|| panic!("{all}"));
    assert!(route.contains("air0: 1 station"), "{all}");
    for wanted in ["10.0.0.2", "02:00:00:00:00:01", "-60"] {
        assert!(route.contains(wanted) && proxy.contains(wanted), "{wanted}: {all}");
    }
    let row = doctor.lines().find(|line| line.contains("stations     air0: "));
    assert!(
        row.is_some_and(|row| row.contains("1 station is odd") || row.contains("airtime-never-counts")),
        "{all}"
    );
    assert_eq!(doctor.matches("ended 0").count(), 2, "{all}");
}

#[test]
fn a_killed_one_takes_its_guest_along_and_the_next_one_removes_its_files() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("killed");
    let mut process =
        folder.world(1, LIMIT, &[], "sleep 600").stderr(Stdio::null()).spawn().expect("it starts");
    let place = folder.0.join("tmp").to_string_lossy().into_owned();
    let guests = || {
        let all = fs::read_dir("/proc").expect("it is mounted").filter_map(Result::ok);
        let words = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        words.filter(|words| String::from_utf8_lossy(words).contains(&place)).count()
    };
    within_patience(until(|| guests() == 1));
    kill_process(Pid::from_child(&process), Signal::KILL).expect("it runs");
    process.wait().expect("it was ours");
    within_patience(until(|| guests() == 0));
    assert_eq!(folder.left(), 1, "a killed process removes nothing");
    let done = folder.world(1, LIMIT, &[], "exit 0").output().expect("it starts");
    assert_eq!((done.status.code(), folder.left()), (Some(0), 0), "{}", said(&done));
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_words() {
    if !can_run(name_of_test!()) {
        return;
    }
    let folder = Folder::new("limit");
    let done = folder.world(1, "1s", &[], "sleep 600").output().expect("it starts");
    let all = said(&done);
    assert_eq!(done.status.code(), Some(1), "{all}");
    assert!(all.contains("was not done within 1 s"), "{all}");
    assert_eq!(folder.left(), 0);
}
