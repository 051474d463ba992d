//! Settings that a trial changes on hosts behind ssh: they come back however it ends.

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Child;

use hopwise_lab::live::mesh::OnMesh;
use hopwise_lab::live::part::NodePart;
use hopwise_lab::scenario::Scenario;
use hopwise_lab::scenario::point::MatrixPoint;

use super::*;

const CHANGED: &str = "\
world: mesh\n\
topology: { kind: chain, hops: 2 }\n\
traffic: [{ from: first, to: last, kind: bulk }]\n\
host: { gro: false, txqueuelen: 333, sysctl: { net.ipv4.tcp_slow_start_after_idle: 0, \
net.ipv4.ip_local_reserved_ports: 8080 } }\n\
arms: { kernel: { receiver: kernel, sender: kernel:reno } }\n\
run: { duration: 2s, warmup: 500ms, seeds: 1 }\n";

impl Hosts {
    /// The settings of a host as its own programs show them.
    fn shown(&self, nth: usize) -> String {
        let script = format!(
            "ip -o link show air{nth} | grep -o 'qlen [0-9]*'; ethtool -k air{nth} | grep generic-receive; \
             cat /proc/sys/net/ipv4/ip_local_reserved_ports /proc/sys/net/ipv4/tcp_slow_start_after_idle"
        );
        String::from_utf8_lossy(&self.nodes[nth].output(&["sh", "-c", &script]).stdout).into_owned()
    }

    fn all_shown(&self) -> Vec<String> {
        (0..self.nodes.len()).map(|nth| self.shown(nth)).collect()
    }

    /// Kills the trial and waits until no host has a setting of it.
    fn kill(&self, mut trial: Child, before: &[String]) {
        kill_process(Pid::from_child(&trial), Signal::KILL).expect("it lives");
        trial.wait().expect("it ends");
        within_patience(until(|| self.all_shown() == before));
        within_patience(until(|| (0..self.nodes.len()).all(|node| !self.old_values(node).exists())));
    }

    /// The file of old values of a host.
    fn old_values(&self, nth: usize) -> PathBuf {
        let facts = self.nodes[nth].run(|| fs::metadata("/proc/thread-self/ns/net")).expect("it is there");
        PathBuf::from(format!("/run/hopwise-mesh/trial.{}-{}.up", facts.dev(), facts.ino()))
    }

    /// A trial without an end, whose hosts have all settings.
    fn changed(&self) -> Child {
        let mut command = self.command(&["--set", "run.duration=1h"]);
        let trial = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let is_changed = |shown: &String| shown.contains("qlen 333") && shown.ends_with("\n0\n");
        within_patience(until(|| self.all_shown().iter().all(is_changed)));
        let _ = fs::remove_dir_all(self.path("out"));
        trial
    }
}

#[test]
fn hosts_behind_ssh_have_their_settings_during_a_run_alone() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen", "ethtool"];
    let hosts = Hosts::new("settings");
    hosts.write("line.yaml", CHANGED);
    let before = hosts.all_shown();
    let output = hosts.trial(&[]);
    assert!(output.status.success(), "{}", said(&output));
    for node in ["n0", "n1", "n2"] {
        let rows = &hosts.records()[0]["result"]["live"]["host"][node];
        let row = &rows.as_array().expect("a list")[3];
        assert_eq!(
            (&row["name"], &row["wanted"], &row["after"]),
            (&"txqueuelen".into(), &"333".into(), &"333".into())
        );
    }
    assert_eq!(hosts.all_shown(), before);
}

#[test]
fn hosts_behind_ssh_keep_no_setting_of_a_trial_that_is_killed_five_times() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen", "ethtool"];
    let hosts = Hosts::new("unsettled");
    hosts.write("line.yaml", CHANGED);
    let before = hosts.all_shown();
    for nth in 0..5 {
        hosts.kill(hosts.changed(), &before);
        println!("kill {nth}: nothing is left");
    }
    // A host that loses its part keeps the settings until the doctor or the next run.
    for is_repaired in [true, false] {
        let mut trial = hosts.changed();
        let [part] = hosts.processes(1, "part")[..] else { panic!("one part") };
        kill_process(part, Signal::KILL).expect("it lives");
        let _ = trial.kill();
        trial.wait().expect("it ends");
        within_patience(until(|| hosts.shown(0) == before[0] && hosts.shown(2) == before[2]));
        assert!(hosts.shown(1).contains("qlen 333") && hosts.old_values(1).exists());
        if is_repaired {
            let found = hosts.nodes[1].output(&[HOPWISE, "doctor"]).stdout;
            assert!(String::from_utf8_lossy(&found).contains("[mesh-up-left]"));
            hosts.nodes[1].output(&[HOPWISE, "doctor", "--repair"]);
        } else {
            let output = hosts.trial(&[]);
            assert!(output.status.success(), "{}", said(&output));
        }
        assert_eq!(hosts.all_shown(), before, "by the doctor: {is_repaired}");
        assert!(!hosts.old_values(1).exists());
    }
}

/// A recipe of two settings over three hops, as a reader of `docs/settings.md` begins it.
#[test]
fn a_recipe_over_four_hosts_behind_ssh_comes_to_a_verdict_and_killed_five_times_leaves_no_setting() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen", "ethtool"];
    let hosts = Hosts::in_line("recipe", 4);
    let before = hosts.all_shown();
    let (inventory, out) = (hosts.path("hosts.yaml"), hosts.path("out"));
    let given =
        [HOPWISE, "trial", "--recipe", "gro", "--inventory", &inventory, "--out", &out, "--late", "10s"];
    let sets = ["--set", "topology.hops=3", "--set", "host.txqueuelen=333"];
    let recipe = |words: &[&str]| {
        let mut command = hosts.admin.command(&[&given[..], &sets, words].concat());
        command.env("TMPDIR", hosts.path("tmp"));
        command
    };
    for nth in 0..5 {
        let trial = recipe(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        within_patience(until(|| hosts.all_shown().iter().all(|shown| shown.contains("qlen 333"))));
        hosts.kill(trial, &before);
        let _ = fs::remove_dir_all(&out);
        println!("kill {nth}: nothing is left");
    }
    let short = ["--set", "run.duration=1500ms", "--set", "run.warmup=500ms", "--set", "run.seeds=3"];
    let output = recipe(&short).output().expect("ip netns exec runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", said(&output));
    assert!(told.contains("gro-off") && told.contains("verdict"), "{told}");
    for record in hosts.records() {
        let nodes = record["result"]["live"]["host"].as_object().expect("nodes").clone();
        assert_eq!(nodes.len(), 4);
        let mut rows = nodes.values().flat_map(|rows| rows.as_array().expect("a list"));
        assert!(rows.all(|row| row["wanted"] == row["after"]), "{record}");
    }
    assert_eq!(hosts.all_shown(), before);
}

/// A host whose settings end its way to the trial: no word to begin comes, and nobody closes its input.
#[test]
fn a_host_that_its_settings_cut_off_has_its_old_ones_after_the_time_for_the_word_to_begin() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen", "ethtool"];
    let hosts = Hosts::new("cut-off");
    let commands = "before: { n1: ip link set adm1 down }, after: { n1: ip link set adm1 up }";
    let text = CHANGED.replace("gro: false", &format!("gro: false, {commands}"));
    let (before, node) = (hosts.shown(1), &hosts.nodes[1]);
    let is_up = || {
        let link = node.output(&["ip", "-o", "link", "show", "adm1"]).stdout;
        String::from_utf8_lossy(&link).contains(",UP")
    };
    assert!(is_up());
    let scenario = Scenario::parse("line.yaml", &text, &[]).expect("it is sound");
    let addresses = [1, 2, 3].map(|last| Ipv4Addr::new(10, 66, 0, last)).to_vec();
    let mesh = OnMesh { name: "n1".to_owned(), addresses, capture: false };
    let part = scenario.part(&MatrixPoint::new(), "kernel", 1);
    let part = NodePart { node: 1, mesh: Some(mesh), word_within_s: 2, ..part };
    let mut command = node.command(&[HOPWISE, "part"]);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Child { stdin, stdout, .. } = &mut started.expect("ip netns exec runs");
    let input = stdin.as_mut().expect("a pipe");
    writeln!(input, "{}", serde_json::to_string(&part).expect("it is plain")).expect("it listens");
    let mut lines = BufReader::new(stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("\"ready\""));
    assert!(!is_up() && hosts.shown(1).contains("qlen 333"), "the host is cut off");
    let said = lines.next().expect("it says why it ends");
    assert!(said.contains("no word to begin came within 2s"), "{said}");
    assert_eq!(lines.next(), None);
    assert!(is_up() && !hosts.old_values(1).exists());
    assert_eq!(hosts.shown(1), before);
}

#[test]
fn a_host_whose_settings_a_trial_has_changed_takes_no_part_in_another_trial() {
    needs!["ip", "tc", "ssh", "sshd", "ssh-keygen", "ethtool"];
    let hosts = Hosts::new("taken");
    hosts.write("line.yaml", CHANGED);
    let mut trial = hosts.changed();
    for (settings, out) in [("host={ gro: false }", "other"), ("host={}", "third")] {
        let [file, inventory, out] = ["line.yaml", "hosts.yaml", out].map(|name| hosts.path(name));
        let words = [HOPWISE, "trial", &file, "--inventory", &inventory, "--out", &out, "--set", settings];
        let output = hosts.admin.output(&words);
        let said = said(&output);
        assert!(
            !output.status.success() && said.contains("expected one trial at a time"),
            "{settings}: {said}"
        );
    }
    kill_process(Pid::from_child(&trial), Signal::KILL).expect("it lives");
    trial.wait().expect("it ends");
}
